"""Readers of two public traces: Azure's virtual machines of a region, and Alibaba's GPU pods of 2023 (openb)."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from copter_frontends.placement.servers.board import Ints
from copter_frontends.placement.servers.errors import ServerError
from copter_frontends.placement.servers.fleet import ServerType, TaskShape
from copter_frontends.placement.servers.workload import FOREVER, Events, Workload, mixed_types, shares_of

ROUND_S = 300
LONGEST_KNOWN_S = 1_728_000
"""Azure's trace has lifetimes up to 20 days; a machine that runs on counts as one that stays."""


def _lines(path: Path) -> list[str]:
    """Return a file's lines; raises ServerError if it cannot be read."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            return file.read().splitlines()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise ServerError(f"{path}: cannot be read ({error}); give the folder of the trace") from error


def _numbers(path: Path, at: int, fields: list[str]) -> list[int]:
    """Return the whole numbers of a line; raises ServerError."""
    try:
        found = [int(each) for each in fields]
    except ValueError:
        raise ServerError(
            f"{path}, line {at + 1}: {','.join(fields)!r} are not whole numbers: mend or drop it"
        ) from None
    if min(found) < 0:
        raise ServerError(f"{path}, line {at + 1}: {min(found)} is below 0: mend or drop the line")
    return found


# Azure ----------------------------------------------------------------------------------------------------------------


def read_azure(
    folder: str | Path, servers: int, rounds: int | None = None, spread: bool = False, stem: str = "v1.dev"
) -> Workload:
    """Return the stream of virtual machines on a region's servers: a round for each five minutes of the trace.

    Parameters
    ----------
    folder : path
        With ``flav_map.txt``, ``v1.interval_map.txt``, and the files of sizes and of lifetimes.
    servers : int
        In three generations; the trace does not tell servers.
    rounds : int, optional
        The first ones; all by default.
    spread : bool
        Whether machines of a batch may not share a server.
    stem : str
        Name of the part: ``STEM.txt.gz`` has sizes, ``STEM.c*.txt.gz`` lifetimes.

    Raises
    ------
    ServerError
        For a missing file or a broken line, with its number.
    """
    base = Path(folder)
    letters, shapes = _flavours(base / "flav_map.txt")
    starts = _bins(base / "v1.interval_map.txt")
    ages = sorted(base.glob(f"{stem}.c*.txt.gz"))
    if not ages:
        raise ServerError(f"{base}: there is no {stem}.c*.txt.gz with the lifetimes; give the folder of the trace")
    sizes, lives = _lines(base / f"{stem}.txt.gz")[:rounds], _lines(ages[0])[:rounds]
    if len(sizes) != len(lives):
        raise ServerError(f"{ages[0]}: {len(lives)} lines, the sizes have {len(sizes)}: take both of one part")
    found = [
        _azure_round(ages[0], at, *pair, letters, starts) for at, pair in enumerate(zip(sizes, lives, strict=True))
    ]
    if not spread:
        found = [Events(each.shape, np.full(len(each.shape), -1), each.rounds) for each in found]
    share = shares_of(np.concatenate([each.shape for each in found]), len(shapes))
    shapes = [replace(each, share=float(own)) for each, own in zip(shapes, share, strict=True)]
    return Workload(f"azure {stem}, {servers:,} servers", mixed_types(servers), shapes, found)


def _flavours(path: Path) -> tuple[dict[str, int], list[TaskShape]]:
    letters: dict[str, int] = {}
    shapes: list[TaskShape] = []
    for at, line in enumerate(_lines(path)):
        amounts, _, letter = line.strip().partition(" ")
        try:
            cores, gib = (float(each) for each in amounts.split(","))
            milli, mib = round(1000 * cores), round(1024 * gib)
        except (ValueError, OverflowError):
            raise ServerError(f"{path}, line {at + 1}: {line!r} is not `vCPU,GiB letter`: mend it") from None
        if not letter or letter in letters:
            raise ServerError(f"{path}, line {at + 1}: {letter!r} is missing or named twice: mend it")
        letters[letter] = len(shapes)
        shapes.append(TaskShape(f"{amounts} {letter}", (milli, mib), milli // 10))
    return letters, shapes


def _bins(path: Path) -> Ints:
    """Return the seconds at which every bin of lifetimes begins, and the end of the last one."""
    first: dict[int, int] = {}
    for at, line in enumerate(_lines(path)):
        seconds, number = _numbers(path, at, line.split() if len(line.split()) == 2 else [line, ""])
        first.setdefault(number, seconds)
    if sorted(first) != list(range(len(first))):
        raise ServerError(f"{path}: the bins are not 0 to {len(first) - 1}: take the trace's own file")
    return np.array([*(first[each] for each in range(len(first))), LONGEST_KNOWN_S], dtype=np.int64)


def _azure_round(path: Path, at: int, sizes: str, lives: str, letters: dict[str, int], starts: Ints) -> Events:
    """Return a round's arrivals; raises ServerError for lines that do not belong together."""
    (when, _, size), (also, _, life) = sizes.partition(" "), lives.partition(" ")
    own, age = size.strip().split(","), life.strip().split(",")
    if when != also or len(own) != len(age) or [e == "|" for e in own] != [e == "|" for e in age]:
        raise ServerError(f"{path}, line {at + 1}: does not belong to the sizes' line {at + 1}: take both of one part")
    shape, group, rounds, batch = [], [], [], 0
    for letter, lived in zip(own, age, strict=True):
        if letter == "|" or not letter:
            batch += 1
            continue
        number = int(lived[1:]) if lived[1:].isdecimal() else -1
        if letter not in letters or lived[:1] not in ("U", "C") or not 0 <= number < len(starts) - 1:
            raise ServerError(f"{path}, line {at + 1}: {letter} {lived} is no size and lifetime: mend or drop it")
        shape.append(letters[letter])
        group.append(batch)
        stays = lived[0] == "C"
        rounds.append(FOREVER if stays else max(1, int(starts[number] + starts[number + 1]) // (2 * ROUND_S)))
    return Events(np.array(shape, np.int64), np.array(group, np.int64), np.array(rounds, np.int64))


# openb ----------------------------------------------------------------------------------------------------------------

NODES, PODS = "openb_node_list_gpu_node.csv", "openb_pod_list_default.csv"


def read_openb(folder: str | Path, load: float = 1.3, seed: int = 0, batch: int = 100, pods: str = PODS) -> Workload:
    """Return FGD's setting: pods of the trace, and more drawn of them until they ask for `load` times all GPUs, in
    random order, one by one; pods without room are gone, and none ends.

    Parameters
    ----------
    folder : path
        With the nodes and pods of ``cluster-trace-gpu-v2023``.
    load : float
        GPUs asked for over GPUs there are.
    seed : int
    batch : int
        Pods of a round.
    pods : str
        File of the pods.

    Raises
    ------
    ServerError
        For a missing file or a broken line, with its number.
    """
    base, rng = Path(folder), np.random.default_rng(seed)
    kinds = Counter(
        (int(c), int(m), int(g), model)
        for c, m, g, model in _rows(base / NODES, ("cpu_milli", "memory_mib", "gpu"), "model")
    )
    types = [
        ServerType(f"{model or 'cpu'}-{at}", (c, m), count, g)
        for at, ((c, m, g, model), count) in enumerate(kinds.items())
    ]
    own = [
        (int(c), int(m), int(g), int(milli) or 1000, spec)
        for c, m, g, milli, spec in _rows(base / pods, ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli"), "gpu_spec")
    ]
    counts = Counter(own)
    number = {each: at for at, each in enumerate(counts)}
    shapes = [
        TaskShape(
            f"{c}m-{m}Mi-{g}x{milli}{'-' + spec if spec else ''}",
            (c, m),
            g * milli,
            g,
            milli,
            tuple(t.name for t in types if t.name.rpartition("-")[0] in spec.split("|")) if spec else None,
            float(n),
        )
        for (c, m, g, milli, spec), n in counts.items()
    ]
    shape = np.array([number[each] for each in own], dtype=np.int64)
    gpus = np.array([each.gpus * each.gpu_milli for each in shapes], dtype=np.int64)
    if not gpus[shape].any():
        raise ServerError(f"{base / pods}: no pod asks for a GPU: take another file")
    limit = int(load * 1000 * sum(each.count * each.gpus for each in types))
    drawn = shape[rng.integers(0, len(shape), 1 + 4 * limit * len(shape) // int(gpus[shape].sum()))]
    every = np.concatenate((rng.permutation(shape), drawn))
    every = rng.permutation(every[: int(np.searchsorted(np.cumsum(gpus[every]), limit, side="right"))])
    rounds = [
        Events(part, np.full(len(part), -1), np.full(len(part), FOREVER))
        for part in (every[at : at + batch] for at in range(0, len(every), batch))
    ]
    return Workload(f"openb, load {load:g}, seed {seed}", types, shapes, rounds, waits=False, one_by_one=True)


def _rows(path: Path, numbers: tuple[str, ...], text: str) -> Iterator[tuple[str, ...]]:
    """Yield columns of a CSV file, the numbers checked; raises ServerError."""
    lines = csv.reader(_lines(path))
    head = next(lines, [])
    missing = [name for name in numbers if name not in head]
    if missing:
        raise ServerError(f"{path}: there is no column {missing[0]!r}: take the trace's own file")
    at_numbers, at_text = [head.index(name) for name in numbers], head.index(text) if text in head else -1
    for at, row in enumerate(lines, 1):
        if len(row) != len(head):
            raise ServerError(f"{path}, line {at + 1}: {len(row)} fields, the head has {len(head)}: mend or drop it")
        found = _numbers(path, at, [row[each] for each in at_numbers])
        yield *(str(each) for each in found), row[at_text] if at_text >= 0 else ""
