"""The suite: a fixed list of tapes, made from seeds by the simulator, and every installed solver on each of them.

    python benchmarks/tapes.py make                    # `make tapes`: those that are not there yet
    python benchmarks/tapes.py suite                   # replay all, write docs/measured.md, print its rows at a glance
    python benchmarks/tapes.py suite --left            # `make suite`: those that this command has not measured yet
    python benchmarks/tapes.py make --only sia-1000    # of these only
    python benchmarks/tapes.py ways --only sia-1000    # copter from nothing, and the thesis's solver
    python benchmarks/tapes.py whole --only sia-1000   # whole rounds of the simulator, and their replay at once
    python benchmarks/tapes.py list

Tapes go to the folder COPTER_TAPES (build/tapes). tapes.json has the SHA-256 of the models and edits that a tape
must have, so that everybody replays the same; `make` writes down those that are not in it yet.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from floor import stream_bytes_per_s
from pictures import measured as measured_picture

from copter.problem.figures import short
from copter.runtime.errors import SnapshotError
from copter.session.tape_tools import described
from copter.storage.tape import TapeReader
from copter.storage.tape.layout import ROUND
from copter_frontends.replay import runs
from copter_frontends.replay.peers import LICENSED, PEERS, installed, keeps_state

ROOT = Path(__file__).parents[1]
HASHES = Path(__file__).with_name("tapes.json")
PAGE = ROOT / "docs" / "measured.md"
ROUNDS = 60  # that are counted, of every simulated tape
SHARD_ROUNDS = 240  # of which a fifth solves a program
LOADS = {  # of each size, by scheduler: (L1), of the counted rounds
    1_000: (1.6,),
    10_000: (1.0, 1.6),
}
MORE_LOADS = {("sia", 10_000): (0.8, 1.0, 1.2, 1.6)}
LEASES = 25  # of Chronus, whose rounds within a lease of four solve no program
OWN = {"chronus": ("--admission", "paper")}  # with selective promises plans are proven without programs
POLICIES = ("sia", "hadar", "hops", "chronus")  # Hare solves no linear program unless its bound is asked for
NEED_FEW = ("shards", "chronus", "kueue")  # solve in rounds in which no plan by hand is proven, or end sooner
PEER_TIME_LIMIT_S = 60.0
PEER_BUDGET_S = 20.0  # of all rounds of a tape, unless --budget says otherwise: the suite ends in an hour or two
THREADS = 2
OVER = re.compile(r"its [\d.e+]+ s for this tape are over after \d+ rounds")
LARGE = re.compile(r"(?<![\w.])[1-9](?:\.\d+)?e\+\d\d\b")  # a figure as what was kept before 0.3.0 has it: 2.17e+03
WHOLE = ".whole.json"  # the end of the file with what its rounds take by replay, as they were recorded
WAYS = ".ways.json"  # the end of the file with a tape's measurements in all ways of copter
COPTERS: dict[str, dict[str, Any]] = {  # with HiGHS's ways, the parts of the thesis's Figure 4.6
    "copter_cold": {"cold": True},
    "copter_price_descent": {"settings": {"threads": THREADS, "method": "price_descent"}},
    "copter_price_descent_cold": {
        "settings": {"threads": THREADS, "method": "price_descent"},
        "cold": True,
    },
}


@dataclass(frozen=True)
class Tape:
    """A tape of the list.

    Attributes
    ----------
    name : str
    command : tuple of str
        Of `program`, without ``--tape``.
    program : str
        ``copter``, or a script of the project's.
    """

    name: str
    command: tuple[str, ...]
    program: str = "copter"

    @property
    def shown(self) -> str:
        """The command as one types it."""
        return f"{'copter' if self.program == 'copter' else f'python {self.program}'} {shlex.join(self.command)}"

    def run(self, path: Path) -> subprocess.CompletedProcess[str]:
        """Make it."""
        copter = [sys.executable, "-m", "copter_frontends.cli"]
        program = copter if self.program == "copter" else [sys.executable, str(ROOT / self.program)]
        path.unlink(missing_ok=True)
        command = [*program, *self.command, "--tape", str(path), "--json"]
        return subprocess.run(command, capture_output=True, text=True, check=False)


def simulated(policy: str, gpus: int, load: float) -> Tape:
    """A scheduler's tape, on its default kind of jobs."""
    rounds = 4 * LEASES if policy == "chronus" else ROUNDS
    options = ("--gpus", str(gpus), "--rounds", str(rounds), "--seed", "1", "--load", str(load))
    return Tape(f"{policy}-{gpus}-{load}", ("simulate", policy, *options, "--threads", "1", *OWN.get(policy, ())))


def at_once(gpus: int) -> Tape:
    """Sia's tape of a cluster that jobs fill in minutes, as a sampled day takes hours of ever larger rounds to do it.

    The deadline is beyond what a plan takes, so that the tape does not depend on the speed of the machine.
    """
    jobs = ("--jobs", str(3 * gpus // 10), "--window-hours", "0.25", "--warmup-rounds", "12", "--rounds", "3")
    options = ("--gpus", str(gpus), "--mode", "capped", *jobs, "--deadline-s", "3600", "--seed", "1", "--threads", "1")
    return Tape(f"sia-{gpus}", ("simulate", "sia", *options))


def traffic(network: str, stream: str) -> Tape:
    """A traffic stream's tape."""
    options = ("--network", network, "--stream", stream, "--rounds", str(ROUNDS), "--seed", "1", "--threads", "1")
    return Tape(f"traffic-{network.lower()}-{stream}", ("simulate", "traffic", *options))


def shards(count: int, servers: int | None = None) -> Tape:
    """A shard balancer's tape; of eight shards a server, unless told."""
    options = ("--shards", str(count), "--servers", str(servers or count // 8), "--seed", "1")
    rounds = ("--rounds", str(SHARD_ROUNDS), "--threads", "1")
    return Tape(f"shards-{count}", ("simulate", "shards", *options, *rounds))


def queues(test: str) -> Tape:
    """The tape of a test of Kueue's."""
    return Tape(f"kueue-{test}", ("simulate", "kueue", "--test", test, "--threads", "1"))


def outside(stream: str) -> Tape:
    """A tape that is no scheduler's."""
    options = ("--rounds", str(ROUNDS), "--seed", "1", "--threads", "1")
    return Tape(stream, (stream, *options), "benchmarks/streams.py")


TAPES = (
    *(
        simulated(policy, gpus, load)
        for gpus, loads in LOADS.items()
        for policy in POLICIES
        for load in MORE_LOADS.get((policy, gpus), loads)
    ),
    at_once(1_000_000),
    *(
        traffic(network, stream)
        for network in ("random-30", "GtsCe", "UsCarrier", "Cogentco")
        for stream in ("perturbed", "failure")
    ),
    shards(1_024),
    shards(2_048),
    queues("large-scale-60000"),
    *(outside(stream) for stream in ("energy", "reopt", "bounds")),
)


def make(tapes: Sequence[Tape], folder: Path) -> int:
    """Make the tapes that are not there; 1 if one of them is not what the list says."""
    folder.mkdir(parents=True, exist_ok=True)
    wrong = 0
    for tape in tapes:
        path = folder / f"{tape.name}.tape"
        if not path.exists():
            part = path.with_suffix(".part")
            part.unlink(missing_ok=True)
            print(f"{tape.name}: {tape.shown}", flush=True)
            done = tape.run(part)
            if done.returncode:
                print(f"{tape.name}: {(done.stderr.splitlines() or ['it said nothing'])[-1]}")
                wrong += 1
                continue
            figures = json.loads((done.stdout.splitlines() or ["{}"])[-1]) | {"programs_s": programs_s(part)}
            path.with_suffix(".json").write_text(json.dumps(figures) + "\n")
            part.rename(path)
        found = described(path)
        known: dict[str, str] = json.loads(HASHES.read_text()) if HASHES.exists() else {}  # others may make tapes too
        if tape.name not in known:
            HASHES.write_text(json.dumps(dict(sorted({**known, tape.name: found["sha256"]}.items())), indent=1) + "\n")
        expected = known.get(tape.name, found["sha256"])
        same = "as listed" if expected == found["sha256"] else f"NOT {expected[:12]}, which is listed"
        told = dict(pairwise(tape.command))  # a test of Kueue's has its own number of rounds
        rounds = 1 if tape.command[1] in NEED_FEW else int(told.get("--rounds", 1))
        few = found["rounds"] < rounds
        if few:
            same += f", and FEWER solves than its {rounds} rounds"
        print(
            f"{tape.name}: {found['rounds']} solves, {found['bytes']:,} bytes, SHA-256 {found['sha256'][:12]}, {same}"
        )
        wrong += expected != found["sha256"] or few
    return int(wrong > 0)


def suite(
    tapes: Sequence[Tape],
    folder: Path,
    rounds: int,
    budget_s: float,
    limit_s: float,
    command: str,
    ways: bool = False,
    processor: bool = False,
    peers: Sequence[str] = tuple(name for name in PEERS if name not in LICENSED),
    left: bool = False,
) -> int:
    """Replay the tapes that are there through all installed solvers, or in all ways of copter; write the page.

    What was measured of a tape is kept beside it, so that the page has all tapes when some are replayed again. With
    `left`, tapes that the same command has measured at this commit are left out: a suite that was stopped goes on.
    """
    failed = 0
    clock = "processor time on one thread" if processor else f"wall time on {THREADS} threads"
    how = f"`{command}`, {clock}, commit {commit()}, work beside it "
    for tape in tapes:
        path = folder / f"{tape.name}.tape"
        if not path.exists():
            print(f"{tape.name}: not there, make it first")
            continue
        result = path.with_suffix(WAYS) if ways else kept(path)
        if left and result.exists() and json.loads(result.read_text())["how"].startswith(how):
            print(f"{tape.name}: measured before (without --left it is measured again)", flush=True)
            continue
        load = os.getloadavg()[0]
        threads = 1 if processor else THREADS
        asked = runs.Asked(
            str(path), 0, rounds, {"threads": threads}, None, threads, limit_s, peer_budget_s=budget_s,
            from_nothing=True, processor=processor,
        )  # fmt: skip
        section = ways_of_copter(asked) if ways else measured(tape, asked, peers)
        failed += section.pop("failed")
        told = f"{how}{load:.1f}, {datetime.date.today().isoformat()}"
        result.write_text(json.dumps(section | {"how": told}))
        write_page(folder)
        print(f"{tape.name}: measured", flush=True)
    if not ways:
        rows, _ = on_page()
        print("\n".join([*GLANCE[-2:], *(rows[tape.name] for tape in tapes if tape.name in rows)]))
    return int(failed > 0)


def whole(tapes: Sequence[Tape], folder: Path, command: str) -> int:
    """Make tapes once more and replay them at once, on one thread both, so that both take their time alike."""
    for tape in tapes:
        load = os.getloadavg()[0]
        with tempfile.TemporaryDirectory() as fresh:
            path = Path(fresh) / f"{tape.name}.tape"
            done = tape.run(path)
            if done.returncode:
                print(f"{tape.name}: {(done.stderr.splitlines() or ['it said nothing'])[-1]}")
                return 1
            found = json.loads(done.stdout.splitlines()[-1]) | {"programs_s": programs_s(path)}
            run = runs.run_copter(runs.Asked(str(path), settings={"threads": 1}, threads=1))
        if run.ended is not None:
            print(f"{tape.name}: copter's replay ended after {len(run.rows)} rounds: {run.ended}")
            return 1
        found["replayed_s"] = sum(row["edit_s"] + row["solve_s"] for row in run.rows)
        found["solves"] = len(run.rows)
        found["how"] = f"`{command}`, commit {commit()}, load {load:.1f}, {datetime.date.today().isoformat()}"
        (folder / f"{tape.name}{WHOLE}").write_text(json.dumps(found))
        write_page(folder)
        print(f"{tape.name}: measured", flush=True)
    return 0


def told(path: Path) -> dict[str, Any]:
    """What the program that made a tape told of it, and what its rounds took by replay."""
    found: dict[str, Any] = {}
    for each in (path.with_suffix(".json"), path.with_suffix(WHOLE)):
        found |= json.loads(each.read_text()) if each.exists() else {}
    return found


def kept(path: Path) -> Path:
    """Where a tape's measurements are."""
    return path.with_suffix(".measured.json")


def measured(tape: Tape, asked: runs.Asked, peers: Sequence[str]) -> dict[str, Any]:
    """A tape's part of the page: its `lines`, its row `at_a_glance`, and whether an answer of copter's `failed`."""
    path = Path(asked.tape)
    found = described(path)
    if not found["rounds"]:
        return {"lines": ["No round of it solved a linear program: there is nothing to compare."], "failed": False}
    try:
        done = [runs.run_copter(asked)]
    except SnapshotError as error:
        print(f"{tape.name}: copter: {error}", flush=True)
        return {"lines": [f"copter: {error}"], "failed": True}
    ways = [way for name in peers for way in ways_of(name)]
    done += [runs.run_peer(way, asked) for way in ways]
    for run in done:
        if run.ended is not None:
            print(f"{tape.name}: {run.solver}: {run.ended}", flush=True)
    lines = load_of(told(path)) + table([runs.summary(run) for run in done], done, found)
    failed = done[0].ended is not None or any(row["verified"] is False for row in done[0].rows)
    return {"lines": lines, "at_a_glance": at_a_glance(tape, done), "failed": failed}


def ways_of(name: str) -> tuple[str, ...]:
    """The installed ways of a peer, or the one way of this name; none if its package is not there."""
    owner, ways = next((own, each) for own, (_, each) in PEERS.items() if name == own or name in each)
    return () if not installed(owner) else ways if name == owner else (name,)


def ways_of_copter(asked: runs.Asked) -> dict[str, Any]:
    """The lines of copter's other ways on a tape, each with the same rounds."""
    done = [runs.run_copter(asked)]
    done += [replace(runs.run_copter(replace(asked, **more)), solver=name) for name, more in COPTERS.items()]
    lines = table([runs.summary(run) for run in done], done, described(Path(asked.tape)))
    failed = any(run.ended is not None or any(row["verified"] is False for row in run.rows) for run in done)
    return {"lines": lines[2:], "failed": failed}


def on_page() -> tuple[dict[str, str], dict[str, list[str]]]:
    """The rows at a glance and the sections that the page has, by tape."""
    parts = PAGE.read_text().split("\n## ")[1:] if PAGE.exists() else []
    sections = {part.partition("\n")[0]: f"## {part}".rstrip("\n").splitlines() for part in parts}
    glance = [line for line in sections.pop(GLANCE[1].removeprefix("## "), []) if line.startswith("| ")][1:]
    return {line.split(" | ")[0].removeprefix("| "): line for line in glance}, sections


def write_page(folder: Path) -> None:
    """The page of all tapes that were measured, and its picture beside it.

    A tape that was not measured here stays as the page has it: one row can be replayed in a new clone.
    """
    lines, glance = [], []
    rows, sections = on_page()
    for tape in TAPES:
        result = kept(folder / f"{tape.name}.tape")
        if not result.exists() and tape.name in sections:
            glance += [rows[tape.name]] if tape.name in rows else []
            lines += ["", *sections[tape.name]]
        if result.exists():
            section = json.loads(result.read_text())
            glance += [section["at_a_glance"]] if "at_a_glance" in section else []
            lines += ["", f"## {tape.name}", "", f"`{tape.shown}`", "", f"Measured: {section['how']}.", ""]
            lines += [OVER.sub("time", line) for line in section["lines"]]
            others = result.with_name(f"{tape.name}{WAYS}")
            lines += ["", *also(json.loads(others.read_text()))] if others.exists() else []
            lines += whole_rounds(told(folder / f"{tape.name}.tape"))
    PAGE.write_text(plain("\n".join([*header(), *GLANCE, *glance, *lines])) + "\n")
    if glance:
        measured_picture.write(PAGE)


def plain(page: str) -> str:
    """The page with large figures that were kept with an exponent as they are written now."""
    return LARGE.sub(lambda found: short(float(found[0])), page)


def also(section: dict[str, Any]) -> list[str]:
    """What copter's other ways take: the parts of the thesis's Figure 4.6."""
    return [f"copter's own ways, measured: {section['how']}.", "", *section["lines"]]


GLANCE = (
    "",
    "## At a glance",
    "",
    f"Every solver begins with nothing. Its first solve is cold and counts nowhere here: p50, p99 and ratios are of "
    f"the "
    f"rounds after it, edits and linear program (copter's shim, which rounds the answer, stands in the sections). The "
    f"rival is the fastest other solver, by the sum over the rounds that both proved, of those that have at least "
    f"{runs.LEAST_ROUNDS} such rounds; `times` is its median over copter's in these rounds, `sum` the same for sums. "
    f"Below 1 the rival is faster. `start`: warm if the rival keeps a basis or a point as copter does, scratch if it "
    f"solves every round anew and is faster than all that keep one. Without {runs.LEAST_ROUNDS} rounds there is no "
    f"ratio, and the cell says how many there are. The goal on Sia's tapes from 10,000 GPUs on is 30 `times` or more; "
    f"rows below it stand. No commercial solver was run ([sizes](results/sizes.md)).",
    "",
    measured_picture.line(),
    "",
    "| tape | columns | copter, p50 (ms) | rival | its p50 (ms) | times | sum | rounds of both | start | copter, "
    "p99 (ms) | "
    "counted |",
    "|---|---|---|---|---|---|---|---|---|---|---|",
)


def at_a_glance(tape: Tape, done: Sequence[runs.Run]) -> str:
    """One tape's row: copter beside its fastest rival."""
    copters = done[0]
    mine = [row["lp_s"] for row in copters.counted]
    columns = max((row["columns"] for row in copters.rows), default=0)
    own, own_most = (short(1e3 * runs.quantile(mine, share)) for share in (0.5, 0.99))
    beside = {run.solver: runs.compared(run, copters) for run in done[1:]}
    enough = [way for way, each in beside.items() if each.enough]
    if enough:
        best = min(enough, key=lambda way: beside[way].total)
        found = beside[best]
        cells = [
            best, short(1e3 * found.own_s), short(found.median), short(found.total), str(found.rounds),
            "warm" if keeps_state(best) else "scratch",
        ]  # fmt: skip
    else:
        best = max(beside, key=lambda way: beside[way].rounds, default="")
        most = beside[best].rounds if best else 0
        cells = [f"{best}: {most} of {len(mine)} rounds" if most else "none has an answer", "", "", "", str(most), ""]
    return f"| {tape.name} | {columns:,} | {own} | {' | '.join(cells)} | {own_most} | {len(mine)} |"


def load_of(figures: dict[str, Any]) -> list[str]:
    """What the jobs ask for, and how many wait, on a tape of a scheduler's."""
    load = figures.get("load")
    if not load:
        return []
    waiting = figures.get("jobs_without_gpus") or {}
    return [
        f"Load {load['all']:.2f} from hour {load['begin_h']:.3g} to {load['end_h']:.3g}; jobs without GPUs: "
        f"{waiting.get('p50', 0):,.0f} in the median round.",
        "",
    ]


def whole_rounds(figures: dict[str, Any]) -> list[str]:
    """What whole rounds took, the programs of the same rounds in them, and their replay right after it, of `whole`.

    What a tape's rounds took when it was made for a replay of later is not told: rounds.md measures whole rounds.
    """
    whole_s, rounds, programs = (figures.get(name) for name in ("all_rounds_s", "rounds", "programs_s"))
    if not whole_s or not rounds or programs is None or "replayed_s" not in figures:
        return []
    replayed = figures["replayed_s"]
    return [
        "",
        f"Whole rounds when it was made, on one thread: {short(1e3 * whole_s / rounds)} ms in the mean, "
        f"{short(1e3 * programs / rounds)} ms of it ({programs / whole_s:.0%}) for linear programs; "
        f"the rest, {short(1e3 * (whole_s - programs) / rounds)} ms, for policy, shim and placement. "
        f"Replayed right after it: {short(1e3 * replayed / rounds)} ms a round, {replayed / programs:.2f} times as "
        f"long ({figures['how']}).",
    ]


def programs_s(path: Path) -> float:
    """Seconds that the edits and the solves on a tape took when it was recorded."""
    marks = [record.value()[-1] for record in TapeReader(path) if record.kind == ROUND]
    return float(sum(mark["edit_s"] + mark["solve_s"] for mark in marks))


def commit() -> str:
    """The commit that is measured."""
    command = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def header() -> list[str]:
    """Where the page comes from."""
    free = [name for name in PEERS if name not in LICENSED and not installed(name)]
    missing = [f"{name} (needs {PEERS[name][0]})" for name in free]
    return [
        "# Measured",
        "",
        "This page is generated. Every row is one solver on the rounds of one tape ([tape.md](reference/tape.md)), "
        "in a "
        "process of its own that begins with nothing: milliseconds of edits, by its own calls, and linear program. "
        "`cold` is the first solve, and stands in no other column; `counted` are the rounds after it. "
        "The solvers have the seconds a solve and a tape that each section's command says, and in any case "
        f"{runs.LEAST_ROUNDS} counted rounds if these take under {runs.SHORT_S:g} s. `times` and `times, sum`: "
        f"median and "
        f"sum over copter's, on the rounds that both proved, if there are {runs.LEAST_ROUNDS}. A solver whose name "
        f"ends "
        "in `_warm` keeps its last basis or point; the others solve every round from scratch. `judged`: solves "
        "whose answer was accepted, for copter by `copter verify`, "
        "for others by residuals and gap within 1e-6; a gap of copter's is one that was proven there. `ended`: why a "
        "solver did not do all rounds (time: its seconds for the tape were over). Where a section's work beside it "
        "is above "
        "zero, other work shared the processors: times are long for all there, and times in processor time count.",
        "",
        "| | |",
        "|---|---|",
        "| command | `make tapes`, `make suite` |",
        f"| machine | {platform.processor() or platform.machine()}, {os.cpu_count()} processors, {platform.system()} |",
        f"| memory | read at {stream_bytes_per_s() / 1e9:.1f} GB/s |",
        f"| date | {datetime.date.today().isoformat()} |",
        f"| not installed | {', '.join(missing) or 'none'} |",
        "| commercial solvers | none was run: the project has no licence; `--peers gurobi,cplex,copt` runs them |",
    ]


def table(summaries: list[dict[str, Any]], done: Sequence[runs.Run], found: dict[str, Any]) -> list[str]:
    """One tape's rows."""
    copters = done[0]
    columns = sorted(row["columns"] for row in copters.rows)
    wall_s = sum(row["solve_s"] + row["shim_s"] for row in copters.rows)
    processors = sum(row["processor_s"] for row in copters.rows) / wall_s if wall_s else float("nan")
    shim = 1e3 * runs.quantile([row["shim_s"] for row in copters.counted], 0.5)
    methods = ", ".join(f"{name} {count}" for name, count in sorted(summaries[0]["methods"].items()))
    lines = [
        f"{len(copters.rows)} solves of up to {columns[-1] if columns else 0:,} columns; {found['bytes']:,} bytes; "
        f"SHA-256 {found['sha256'][:16]}. copter's methods: {methods}; its solves' processor time over "
        f"their time: {processors:.2f}; its shim, p50: {short(shim)} ms.",
        "",
        "| solver | cold | counted | p50 | p95 | p99 | sum | edits p50 | times | times, sum | of both | judged | "
        "gap, at "
        "most | objective apart | ended |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for each, run in zip(summaries, done, strict=True):
        times, found = each["lp_s"], runs.compared(run, copters)
        gap = f"{each['gap_max']:.1e}" if each["gap_max"] == each["gap_max"] else "not proven"
        ratios = [short(value) if found.enough else "-" for value in (found.median, found.total)]
        lines.append(
            f"| {each['solver']} | "
            + (short(1e3 * each["cold_s"]) if each["cold_s"] is not None else "-")
            + f" | {each['counted']} | "
            + " | ".join(short(1e3 * times[share]) for share in ("p50", "p95", "p99", "sum"))
            + f" | {short(1e3 * each['edit_s']['p50'])} | {' | '.join(ratios)} | {found.rounds} | "
            f"{each['verified']} | {gap} | "
            f"{each['difference_max']:.1e} | {each['ended'] or ''} |"
        )
    return lines


def main() -> int:
    """Do what is asked; 0 if all went well."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("what", choices=("make", "suite", "ways", "whole", "list"))
    parser.add_argument("--only", default="", help="names of tapes, separated by commas")
    parser.add_argument(
        "--rounds", type=int, default=1 << 30, help="solves of each that are replayed, from the first on"
    )
    parser.add_argument("--budget", type=float, default=PEER_BUDGET_S, help="seconds of each other solver on a tape")
    parser.add_argument("--clock", choices=("wall", "processor"), default="wall", help="processor: one thread each")
    parser.add_argument(
        "--peers",
        default="",
        help=f"of {', '.join(PEERS)}, or ways of them such as highs_dual_warm  [default: all that are free]",
    )
    parser.add_argument("--left", action="store_true", help="only tapes that this command has not measured yet")
    parser.add_argument("--time-limit", type=float, default=PEER_TIME_LIMIT_S, help="seconds of each other's solve")
    given = parser.parse_args()
    names = [name for name in given.only.split(",") if name]
    if unknown := set(names) - {tape.name for tape in TAPES}:
        parser.error(f"unknown tape {sorted(unknown)[0]!r}; `list` says which there are")
    tapes = [tape for tape in TAPES if not names or tape.name in names]
    folder = Path(os.environ.get("COPTER_TAPES", ROOT / "build" / "tapes"))
    if given.what == "list":
        for tape in tapes:
            print(f"{tape.name}: {tape.shown}")
        return 0
    if given.what == "make":
        return make(tapes, folder)
    command = shlex.join(["python", "benchmarks/tapes.py", *(each for each in sys.argv[1:] if each != "--left")])
    if given.what == "whole":
        return whole(tapes, folder, command)
    peers = [name for name in given.peers.split(",") if name] or [name for name in PEERS if name not in LICENSED]
    if others := set(peers) - set(PEERS) - {way for _, ways in PEERS.values() for way in ways}:
        parser.error(f"unknown peer {sorted(others)[0]!r}: there are {', '.join(PEERS)}")
    return suite(
        tapes, folder, given.rounds, given.budget, given.time_limit, command, given.what == "ways",
        given.clock == "processor", peers, given.left,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
