"""What a session survives: being saved, its journal, being killed at any instant."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from copter import CopterError, InvalidDataError, Model, Session, Settings, SettingsError, SnapshotError, Status
from copter.storage.journal import Journal, read_journal
from copter.testing import sia_like_model
from tests.copter.plain import Player, bits, innards, played

ROOT = Path(__file__).parents[3]


def close(session: Session) -> None:
    """Let a session's journal go, as the end of its process would."""
    session.journal(None)


# Saving -----------------------------------------------------------------------------------------------------------


def test_a_loaded_session_solves_in_one_pass_to_the_same_bits(tmp_path: Path) -> None:
    model = sia_like_model(60, 64, 3)
    model.add_request(("own", 1), [1.0, 2.0], {"type-0": [1, 2]}, lower=[0.1, 0.0], upper=[1.0, 0.5])
    model.add_request(b"narrow", model.cost("job-1"), template=model.templates[0], cost_dtype="float32")
    session = Session(model, Settings(warm_sigma=100.0, threads=1))
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


def test_models_of_no_sort_are_saved_alike(tmp_path: Path) -> None:
    for model in (Model(), Model(sense="min", offset=2.0, cost_dtype="float32")):
        Session(model).save(tmp_path / "s")
        again = Session.load(tmp_path / "s").model
        assert bits(again) == bits(model)
        assert again.cost_dtype == model.cost_dtype


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
