"""What a session survives: being saved, being killed at any instant, and files that are not what they were."""

from __future__ import annotations

import os
import random
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from copter import CopterError, InvalidDataError, Model, Session, Settings, SettingsError, SnapshotError, Status
from copter.session.snapshot import DIGEST, HEADER, sealed
from copter.storage.encoding import Reader, encode
from copter.storage.journal import HEADER as JOURNAL_HEADER
from copter.storage.journal import Journal, read_journal
from copter.testing import sia_like_model
from tests.copter.plain import Player, bits, innards, played

ROOT = Path(__file__).parents[3]


def close(session: Session) -> None:
    """Let a session's journal go, as the end of its process would."""
    session.journal(None)


# Encoding ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [None, True, False, 0, -1, 2**200, -(2**63), 1.5, -0.0, np.inf, "", "ünï\ud800", b"", b"\0\xff", (),
     (1, ("a", None)), [1, [2.0]], {"a": 1, (1, 2): [3]}],
)  # fmt: skip
def test_values_come_back(value: Any) -> None:
    read = Reader(b"".join(encode(value)), "test").whole()
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "i8", "u1", "b1"])
@pytest.mark.parametrize("shape", [(0,), (3,), (2000, 3), ()])
def test_arrays_come_back(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    read = Reader(b"".join(encode([array, array[..., None].T, 1])), "test").whole()
    np.testing.assert_array_equal(read[0], array)
    assert (read[0].dtype, read[0].shape, read[2]) == (array.dtype, array.shape, 1)


def test_numpy_scalars_are_read_back_as_equal_ids() -> None:
    ids = (np.int64(3), np.float64(2.5), np.str_("x"), np.bool_(True))
    assert Reader(b"".join(encode(ids)), "test").whole() == (3, 2.5, "x", True)


@pytest.mark.parametrize("value", [object(), {1, 2}, np.array(["x"]), 1j, frozenset()])
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(InvalidDataError, match="cannot be saved"):
        encode(("deep", value))


# Saving -----------------------------------------------------------------------------------------------------------


def test_a_loaded_session_solves_in_one_pass_to_the_same_bits(tmp_path: Path) -> None:
    model = sia_like_model(60, 64, 3)
    model.add_request(("own", 1), [1.0, 2.0], {"type-0": [1, 2]}, lower=[0.1, 0.0], upper=[1.0, 0.5])
    model.add_request(b"narrow", model.cost("job-1"), template=model.templates[0], cost_dtype="float32")
    session = Session(model, Settings(keep_slack=0.1, threads=1))
    for number in range(5):
        model.remove_request(f"job-{10 + number}")
        model.rescale_cost(f"job-{number}", 1.01, 0.0, {1: 0.4, 2: 0.5})
        model.fix(f"job-{number + 20}", number)
        session.solve()
    best = session.solve()
    session.save(tmp_path / "snapshot")
    other = Session.load(tmp_path / "snapshot")
    assert innards(other.model) == innards(model)
    assert other.settings == session.settings
    again = other.solve()
    assert (again.pricing_passes, again.iterations, again.restart_reason) == (1, 0, None)
    for name in ("x", "y", "reduced_costs"):
        assert getattr(again, name).tobytes() == getattr(best, name).tobytes()
    assert (again.objective, again.bound) == (best.objective, best.bound)
    for each in (session, other):  # they go on alike
        each.model.remove_request("job-40")
        each.model.add_request("late", model.cost("job-1"), template=each.model.templates[0])
    assert innards(other.model) == innards(model)
    first, second = session.solve(), other.solve()
    assert first.x.tobytes() == second.x.tobytes()
    assert Session.load(tmp_path / "snapshot", Settings(tolerance=1e-4)).settings.tolerance == 1e-4


@pytest.mark.parametrize("seed", range(10))
def test_any_model_comes_back_to_the_last_bit(seed: int, tmp_path: Path) -> None:
    player = played(seed, 120)
    Session(player.model).save(tmp_path / "s")
    model = Session.load(tmp_path / "s").model
    assert innards(model) == innards(player.model)
    again = Player(model, player.plain)
    handles = {template.serial: template for template in model.templates}
    again.made, again.next = {n: handles[t.serial] for n, t in player.made.items()}, player.next
    for at, each in enumerate((player, again)):  # and goes on alike
        rng = np.random.default_rng(seed)
        if at:
            again.plain = played(seed, 120).plain
        for _ in range(40):
            each.step(rng)
    assert innards(model) == innards(player.model)


def test_the_integer_plan_is_kept(tmp_path: Path) -> None:
    model = sia_like_model(30, 16, 2, seed=3)
    session = Session(model)
    plan = session.solve_integer()
    session.save(tmp_path / "s")
    other = Session.load(tmp_path / "s")
    assert other._plan is not None
    assert [other._plan.column(r) for r in model.requests] == [plan.column(r) for r in model.requests]
    assert other.solve_integer().objective == session.solve_integer().objective


def test_ids_that_cannot_be_saved(tmp_path: Path) -> None:
    model = sia_like_model(3, 8, 2)
    model.add_request(frozenset({1}), [1.0], {"type-0": [1]})
    with pytest.raises(InvalidDataError, match="ids must be str, int"):
        Session(model).save(tmp_path / "s")
    assert not list(tmp_path.iterdir())
    model.remove_request(frozenset({1}))
    session = Session(model, journal=tmp_path / "j")
    before = innards(model)
    with pytest.raises(InvalidDataError, match="ids must be str, int"):
        model.add_request(frozenset({1}), [1.0], {"type-0": [1]})
    assert innards(model) == before
    close(session)


def test_a_save_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(sia_like_model(3, 8, 2))
    session.save(tmp_path / "s")
    before = (tmp_path / "s").read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SnapshotError, match="No space left"):
        session.save(tmp_path / "s")
    monkeypatch.undo()
    assert (tmp_path / "s").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["s"]
    with pytest.raises(SnapshotError, match="nowhere"):
        session.save(tmp_path / "nowhere" / "s")


# The journal ------------------------------------------------------------------------------------------------------


def test_a_journal_alone_and_then_with_a_snapshot(tmp_path: Path) -> None:
    model = sia_like_model(10, 16, 2)
    session = Session(model, journal=tmp_path / "j")
    model.remove_request("job-3")
    close(session)
    session = Session.load(tmp_path / "j")
    assert innards(session.model) == innards(model)
    model = session.model
    with model.batch():
        model.remove_request("job-4")
        model.add_resources("type-0", 3)
    session.save(tmp_path / "s")
    assert read_journal(tmp_path / "j").records == []
    model.fix("job-5", 1)
    close(session)
    again = Session.load(tmp_path / "s")
    assert innards(again.model) == innards(model)
    close(again)
    plain = Session.load(tmp_path / "s", journal=None)
    assert plain.model.fixed("job-5") is None
    with pytest.raises(SnapshotError, match="goes on from a snapshot"):
        Session.load(tmp_path / "j")


def test_a_batch_is_one_record_and_a_failed_one_none(tmp_path: Path) -> None:
    model = sia_like_model(10, 16, 2)
    session = Session(model, journal=tmp_path / "j", sync="always")
    with model.batch():
        for number in range(5):
            model.remove_request(f"job-{number}")
    with pytest.raises(ZeroDivisionError), model.batch():  # noqa: PT012
        model.remove_request("job-7")
        raise ZeroDivisionError
    with pytest.raises(CopterError):
        model.remove_request("ghost")
    assert len(read_journal(tmp_path / "j").records) == 1
    close(session)


def test_a_crash_between_snapshot_and_new_journal_does_no_edit_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = sia_like_model(10, 16, 2)
    session = Session(model, journal=tmp_path / "j")
    model.add_resources("type-0", 3)
    monkeypatch.setattr(Journal, "restart", lambda self: None)
    session.save(tmp_path / "s")
    monkeypatch.undo()
    model.add_resources("type-0", 4)  # the old journal goes on
    close(session)
    again = Session.load(tmp_path / "s")
    assert innards(again.model) == innards(model)
    close(again)


def test_snapshots_and_journals_that_do_not_belong_together(tmp_path: Path) -> None:
    model = sia_like_model(4, 16, 2)
    session = Session(model, journal=tmp_path / "j")
    session.save(tmp_path / "old")
    model.remove_request("job-0")
    session.save(tmp_path / "copy", restart_journal=False)
    session.save(tmp_path / "new")
    model.remove_request("job-1")
    close(session)
    with pytest.raises(SnapshotError, match="older than"):
        Session.load(tmp_path / "old")
    for name in ("new", "copy"):
        again = Session.load(tmp_path / name)
        assert again.model.requests == ("job-2", "job-3")
        close(again)
    other = Session(sia_like_model(4, 16, 2), journal=tmp_path / "k")
    other.model.remove_request("job-0")
    close(other)
    with pytest.raises(SnapshotError, match="is not that of"):
        Session.load(tmp_path / "new", journal=tmp_path / "k")
    with pytest.raises(SnapshotError, match="there already"):
        Session(model, journal=tmp_path / "k")
    (tmp_path / "j").unlink()
    with pytest.raises(SnapshotError, match="which is not there"):
        Session.load(tmp_path / "new")
    Session(model).save(tmp_path / "none")
    with pytest.raises(SnapshotError, match="without a journal"):
        Session.load(tmp_path / "none", journal=tmp_path / "k")
    with pytest.raises(SettingsError, match="sync"):
        Session(model, journal=tmp_path / "l", sync="sometimes")


def test_two_lines_of_one_past_are_told_apart(tmp_path: Path) -> None:
    session = Session(sia_like_model(4, 16, 2), journal=tmp_path / "j")
    session.save(tmp_path / "s")
    before = (tmp_path / "j").read_bytes()
    session.model.remove_request("job-0")
    session.save(tmp_path / "s", restart_journal=False)
    close(session)
    (tmp_path / "j").write_bytes(before)
    session = Session.load(tmp_path / "j2" if (tmp_path / "j2").exists() else tmp_path / "s")
    assert session.model.requests == ("job-1", "job-2", "job-3")  # the snapshot holds what the cut journal lost
    session.model.remove_request("job-1")
    close(session)
    again = Session.load(tmp_path / "s")
    assert again.model.requests == ("job-2", "job-3")
    close(again)


def test_one_session_writes_a_journal(tmp_path: Path) -> None:
    session = Session(sia_like_model(4, 16, 2), journal=tmp_path / "j")
    with pytest.raises(SnapshotError, match="in use"):
        Session.load(tmp_path / "j")
    close(session)


@pytest.mark.parametrize("sync", ["always", "batch"])
def test_an_edit_whose_record_cannot_be_written_is_not_done(
    sync: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = sia_like_model(4, 16, 2)
    session = Session(model, journal=tmp_path / "j", sync=sync)
    model.remove_request("job-0")
    before, file = innards(model), (tmp_path / "j").read_bytes()
    write, calls = os.write, []

    def half(handle: int, data: Any) -> int:
        calls.append(len(data))
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return write(handle, bytes(data)[:10])

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(SnapshotError, match="No space left"):
        model.remove_request("job-1")
    monkeypatch.undo()
    assert innards(model) == before
    assert (tmp_path / "j").read_bytes() == file
    model.remove_request("job-2")
    close(session)
    again = Session.load(tmp_path / "j")
    assert again.model.requests == ("job-1", "job-3")
    close(again)


# Being killed -----------------------------------------------------------------------------------------------------


def killed(folder: Path, seed: int, after_s: float, kind: type[Player] = Player) -> None:
    """Kill a working process, and require that what it acknowledged is there, exactly."""
    command = [sys.executable, "-m", "tests.copter.worker", str(folder), str(seed), kind.__name__]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "frontends")])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.read(1) == b"!"
        time.sleep(after_s)
        process.send_signal(signal.SIGKILL)
        acknowledged = len(process.stdout.read())
    session = Session.load(folder / "snapshot")
    # A step may be on the disk whose acknowledgement was not told any more.
    states = [innards(played(seed, steps, kind).model) for steps in (acknowledged, acknowledged + 1)]
    assert innards(session.model) in states
    assert session.solve().status in (Status.OPTIMAL, Status.PRIMAL_INFEASIBLE)
    close(session)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_killed_at_some_instants(seed: int, tmp_path: Path) -> None:
    killed(tmp_path, seed, random.Random(seed).uniform(0.0, 0.5))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 300))
def test_killed_at_200_instants(seed: int, tmp_path: Path) -> None:
    killed(tmp_path, seed, random.Random(seed).uniform(0.0, 1.5))


# Damaged files ----------------------------------------------------------------------------------------------------


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
        (tmp_path / "s").write_bytes(b"".join(sealed([mutated(rng, payload)])))
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


def test_models_of_no_sort_are_saved_alike(tmp_path: Path) -> None:
    for model in (Model(), Model(sense="min", offset=2.0, cost_dtype="float32")):
        Session(model).save(tmp_path / "s")
        again = Session.load(tmp_path / "s").model
        assert bits(again) == bits(model)
        assert again.cost_dtype == model.cost_dtype
