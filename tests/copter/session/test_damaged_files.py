"""Snapshots and journals that are cut short, changed, foreign or newer: read, or refused by a clear error."""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from copter import CopterError, Session, SnapshotError
from copter.session.snapshot import SNAPSHOT
from copter.storage.journal import HEADER as JOURNAL_HEADER
from copter.storage.journal import read_journal
from copter.storage.sealing import DIGEST, HEADER
from tests.copter.plain import Player, innards


def close(session: Session) -> None:
    """Let a session's journal go, as the end of its process would."""
    session.journal(None)


def mutated(rng: random.Random, data: bytes) -> bytes:
    """One thing that can happen to a file."""
    kind, at, other = rng.randrange(7), rng.randrange(len(data)), rng.randrange(len(data))
    changed = bytearray(data)
    if kind == 0:
        del changed[at:]
    elif kind == 1:
        changed[at] ^= 1 << rng.randrange(8)
    elif kind == 2:
        changed[at] = rng.randrange(256)
    elif kind == 3:
        size = rng.randrange(1, 64)
        changed[at : at + size], changed[other : other + size] = data[other : other + size], data[at : at + size]
    elif kind == 4:
        del changed[at : at + rng.randrange(1, 64)]
    elif kind == 5:
        changed[at:at] = data[other : other + rng.randrange(1, 64)]
    else:
        size = rng.randrange(1, 200)
        changed[at : at + size] = bytes(min(size, len(data) - at))
    return bytes(changed)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes, list[tuple[Any, ...]]]:
    """A snapshot, its journal, and the model after each record."""
    folder = tmp_path_factory.mktemp("recorded")
    player, rng = Player(), np.random.default_rng(5)
    session = Session(player.model, journal=folder / "j")
    for _ in range(40):
        player.step(rng)
    session.solve()
    session.save(folder / "s")
    states = [innards(player.model)]
    while len(states) < 30:
        player.step(rng)
        if len(read_journal(folder / "j").records) == len(states):
            states.append(innards(player.model))
    close(session)
    return (folder / "s").read_bytes(), (folder / "j").read_bytes(), states


def attempt(path: Path, **how: Any) -> tuple[Session | None, str]:
    """The session in a file, or what is said against it."""
    try:
        return Session.load(path, **how), ""
    except SnapshotError as error:
        return None, str(error)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_damaged_snapshots(seed: int, recorded: Any, tmp_path: Path) -> None:
    snapshot, _, states = recorded
    rng, refused = random.Random(seed), 0
    for _ in range(500):
        changed = mutated(rng, snapshot)
        (tmp_path / "s").write_bytes(changed)
        session, error = attempt(tmp_path / "s", journal=None)
        if session is None:
            assert str(tmp_path / "s") in error
            refused += 1
        else:
            assert changed == snapshot
            assert innards(session.model) == states[0]
    assert refused >= 450


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_damaged_journals(seed: int, recorded: Any, tmp_path: Path) -> None:
    snapshot, journal, states = recorded
    (tmp_path / "s").write_bytes(snapshot)
    (tmp_path / "j").write_bytes(journal)
    ends = [offset for _, offset, _ in read_journal(tmp_path / "j").records[1:]] + [len(journal)]
    rng, refused, torn = random.Random(seed), 0, 0
    for _ in range(500):
        changed = mutated(rng, journal)
        (tmp_path / "j").write_bytes(changed)
        session, error = attempt(tmp_path / "s")
        if session is None:
            assert str(tmp_path / "j") in error
            refused += 1
            continue
        # Taken without complaint only where the file ends inside its last record, or has zeros there to its end: a
        # record that was being written. All that lies whole before it is there.
        torn += changed != journal
        pairs = enumerate(zip(changed, journal, strict=False))
        same = next((at for at, (now, was) in pairs if now != was), min(len(changed), len(journal)))
        assert innards(session.model) == states[sum(end <= same for end in ends)]
        close(session)
    assert refused >= 200
    assert torn >= 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_damage_under_a_right_checksum_is_no_crash(seed: int, recorded: Any, tmp_path: Path) -> None:
    """Values that no copter wrote: refused, or a model, but nothing that reads memory which is not there."""
    snapshot, _, _ = recorded
    payload, rng = snapshot[HEADER.size + DIGEST :], random.Random(seed)
    for _ in range(400):
        (tmp_path / "s").write_bytes(b"".join(SNAPSHOT.close([mutated(rng, payload)])))
        try:
            session = Session.load(tmp_path / "s", journal=None)
            session.model.to_linear_program()
        except CopterError:
            continue


FOREIGN: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "of another program": lambda data: b"PK\x03\x04" + data[4:],
    "newer": lambda data: data[:8] + struct.pack("<H", 9) + data[10:],
    "too short": lambda data: data[:20],
    "too long": lambda data: data + b"\0",
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_snapshots(name: str, recorded: Any, tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(FOREIGN[name](recorded[0]))
    words = {"newer": "newer copter", "empty": "is empty", "of another program": "not a copter snapshot"}
    with pytest.raises(SnapshotError, match=words.get(name, "cut short")):
        Session.load(tmp_path / "s")


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="No such file"):
        Session.load(tmp_path / "nothing")


def test_a_newer_journal(recorded: Any, tmp_path: Path) -> None:
    snapshot, journal, _ = recorded
    (tmp_path / "s").write_bytes(snapshot)
    (tmp_path / "j").write_bytes(journal[:8] + struct.pack("<H", 9) + journal[10:])
    with pytest.raises(SnapshotError, match="newer copter"):
        Session.load(tmp_path / "s")


@pytest.mark.slow
def test_every_torn_end_is_the_model_before_it(recorded: Any, tmp_path: Path) -> None:
    """Cut at every byte of the last records: the edits that are whole are there, the torn one is not."""
    snapshot, journal, states = recorded
    (tmp_path / "s").write_bytes(snapshot)
    (tmp_path / "j").write_bytes(journal)
    records = read_journal(tmp_path / "j").records
    starts = [offset for _, offset, _ in records] + [len(journal)]
    assert starts[0] == JOURNAL_HEADER.size + 16
    for end in range(starts[-4], len(journal), 5):
        (tmp_path / "j").write_bytes(journal[:end])
        session = Session.load(tmp_path / "s")
        whole = sum(start <= end for start in starts) - 1
        assert innards(session.model) == states[whole]
        assert os.path.getsize(tmp_path / "j") == starts[whole]
        close(session)
