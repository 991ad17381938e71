"""Shards that die, are late, join and leave; coordinators that begin again: nothing acknowledged is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from both_sides import EXACT, Pair, feasible

import copter
import copter_distributed as distributed
from copter.runtime.errors import SettingsError, SnapshotError
from copter.testing import sia_like_model
from copter_distributed.shards.exchange import Exchange
from copter_distributed.shards.transport import LOST, LocalTransport, ShardOptions, close


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A local shard is back at once."""
    monkeypatch.setattr("copter_distributed.shards.exchange.PAUSE_S", 0.0)


def killed(pair: Pair) -> None:
    """The coordinator and all shards die, and begin again from their directory."""
    transport = pair.many._exchange.transport
    for shard in transport.shards.values():
        close(shard)
    directory = pair.many._members.options.directory
    pair.many = distributed.Session.load(directory, EXACT, LocalTransport())
    pair.templates = [(here, there) for (here, _), there in zip(pair.templates, pair.many.model.templates, strict=True)]


def coordinator_killed(pair: Pair) -> None:
    """The coordinator alone dies; its shards run on."""
    directory, transport = pair.many._members.options.directory, pair.many._exchange.transport
    pair.many = distributed.Session.load(directory, EXACT, transport)
    pair.templates = [(here, there) for (here, _), there in zip(pair.templates, pair.many.model.templates, strict=True)]


@pytest.mark.parametrize("seed", range(3))
def test_shards_that_die_at_any_call_lose_nothing(seed: int, tmp_path: Path) -> None:
    transport = LocalTransport()
    pair = Pair(seed, directory=str(tmp_path / "s"), transport=transport, sync="never")
    rng = np.random.default_rng(seed + 100)
    for _ in range(10):
        pair.add()
    for _ in range(8):
        transport.doomed[int(rng.integers(3))] = int(rng.integers(12))
        for _ in range(int(rng.integers(1, 5))):
            pair.edit()
        pair.agree()
    assert pair.many.lost >= 3


def test_a_shard_that_is_back_before_anybody_has_called_it_is_noticed(tmp_path: Path) -> None:
    transport = LocalTransport()
    pair = Pair(4, ("plain", "template"), directory=str(tmp_path / "s"), transport=transport, sync="never")
    for _ in range(15):
        pair.add()
    pair.agree()
    for shard in range(3):
        transport.kill(shard)
        ids = list(pair.one.model.requests)
        pair.both("rescale_costs", ids, np.linspace(0.7, 1.3, len(ids)) + 0.1 * shard)
        pair.agree()
        transport.kill(shard)
        pair.agree()
    assert pair.many.lost == 6


def test_a_shard_that_dies_without_a_directory_is_an_error() -> None:
    transport = LocalTransport()
    session = distributed.Session(sia_like_model(10, 64), EXACT, shards=2, transport=transport)
    transport.doomed[1] = 0
    with pytest.raises(distributed.ShardLostError, match="directory"):
        session.solve()


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("alone", [False, True])
def test_a_coordinator_that_begins_again_goes_on(saved: bool, alone: bool, tmp_path: Path) -> None:
    pair = Pair(5, directory=str(tmp_path / "s"), transport=LocalTransport(), sync="never")
    for _ in range(14):
        pair.add()
    pair.agree()
    if saved:
        pair.many.save()
    for _ in range(4):
        pair.edit()
    (coordinator_killed if alone else killed)(pair)
    pair.agree()
    if saved:
        assert pair.many.solve().pricing_passes == 1
    for _ in range(6):
        pair.edit()
    pair.agree()
    assert set(pair.many.model.requests) == set(pair.one.model.requests)


def test_the_last_plan_is_remembered(tmp_path: Path) -> None:
    directory = str(tmp_path / "s")
    session = distributed.Session(sia_like_model(30, 128), EXACT, directory=directory)
    plan = session.solve_integer()
    session.save()
    for shard in session._exchange.transport.shards.values():
        close(shard)
    again = distributed.Session.load(directory)
    later = again.solve_integer()
    assert later.objective >= plan.objective - 1e-9
    assert again.settings == EXACT


class Dead(Exception):
    """The coordinator dies here."""


class Mortal(LocalTransport):
    """Kills its caller at a call."""

    def __init__(self) -> None:
        super().__init__()
        self.fatal: tuple[str, int] | None = None

    def call(self, method: str, arguments: Any, order: Any, seconds: float | None = None) -> dict[int, Any]:
        """Do as many shards' calls as are left before the end."""
        if self.fatal is not None and self.fatal[0] == method:
            done = dict(list(arguments.items())[: self.fatal[1]])
            self.fatal = None
            super().call(method, done, order, seconds)
            raise Dead
        return super().call(method, arguments, order, seconds)


@pytest.mark.parametrize("method", ["prepare", "commit"])
@pytest.mark.parametrize("done", [0, 1, 2, 3])
@pytest.mark.parametrize("shards_too", [False, True])
def test_a_batch_is_on_all_shards_or_on_none(method: str, done: int, shards_too: bool, tmp_path: Path) -> None:
    """The coordinator dies in the middle of a batch, with or without its shards."""
    transport = Mortal()
    model = sia_like_model(9, 64)
    session = distributed.Session(model, EXACT, shards=3, directory=str(tmp_path), transport=transport, sync="never")
    transport.fatal = (method, done)
    ids = list(session.model.requests)
    with pytest.raises(Dead), session.model.batch():
        session.model.rescale_costs(ids, 0.5)
        session.model.add_resources("type-0", 8.0)
        session.model.add_request("new", np.ones(5), {"type-1": np.arange(1.0, 6.0)})
    if shards_too:
        for shard in transport.shards.values():
            close(shard)
        transport = Mortal()
    again = distributed.Session.load(str(tmp_path), EXACT, transport)
    happened = method == "commit"  # it was decided for
    assert ("new" in again.model) is happened
    assert again.model.count("type-0") == 64.0 + 8.0 * happened
    factor = 0.5 if happened else 1.0
    for request in ids:
        assert np.allclose(again.model.cost(request), factor * model.cost(request))
    assert not list(tmp_path.glob("pending*"))
    assert again.solve().status is copter.Status.OPTIMAL


def test_a_late_shard_counts_with_its_last_answer() -> None:
    transport = LocalTransport()
    model = sia_like_model(60, 128, seed=4)
    session = distributed.Session(model, EXACT, shards=3, transport=transport)
    here = copter.Session(model, EXACT)
    optimum = session.solve().objective
    transport.late = {1}
    same = session.solve(deadline_s=30.0)
    assert same.status is copter.Status.OPTIMAL  # nothing has changed since its answer
    assert same.bound >= optimum * (1 - 1e-12)
    for edited in (model, session.model):
        edited.set_count("type-0", 100.0)
        edited.set_count("type-1", 120.0)
    optimum = here.solve().objective
    late = session.solve(deadline_s=30.0)
    assert late.status is copter.Status.TIME_LIMIT
    assert np.isfinite(late.bound)
    assert late.bound >= optimum >= late.objective - 1e-6 * optimum
    feasible(model, late)
    transport.late = set()
    assert session.solve(deadline_s=30.0).objective == pytest.approx(optimum, rel=1e-9)


def test_a_late_shard_whose_requests_were_edited_leaves_no_bound_but_a_plan() -> None:
    transport = LocalTransport()
    model = sia_like_model(40, 128, seed=4)
    session = distributed.Session(model, EXACT, shards=2, transport=transport)
    session.solve()
    transport.late = {0}
    for edited in (model, session.model):
        edited.rescale_costs(["job-0", "job-1"], [2.0, 3.0])
    late = session.solve(deadline_s=30.0)
    assert late.status is copter.Status.TIME_LIMIT
    assert late.bound == np.inf
    assert not late.bound_is_certified
    feasible(model, late)
    plan = session.solve_integer(deadline_s=30.0)
    assert plan.is_feasible


def test_shards_join_and_leave(tmp_path: Path) -> None:
    pair = Pair(8, shards=2, directory=str(tmp_path / "s"), transport=LocalTransport(), sync="never")
    for _ in range(20):
        pair.add()
    pair.both("fix", next(r for r in pair.one.model.requests if pair.one.model.limit(r) == 1.0 and r == r
                          and pair.one.model.private_rows(r) is None and pair.one.model.at_least(r) == -np.inf
                          and np.isinf(pair.one.model.bounds(r)[1]).all()), 0)  # fmt: skip
    before = pair.agree()
    joined = pair.many.join()
    assert pair.many.shards[joined].requests > 0
    assert pair.agree().objective == pytest.approx(before.objective, rel=1e-9)
    assert before.of(pair.one.model.requests[0]) is not None
    for _ in range(5):
        pair.edit()
    pair.agree()
    pair.many.leave(0)
    assert set(pair.many.shards) == {1, joined}
    pair.agree()
    killed(pair)
    assert set(pair.many.shards) == {1, joined}
    for _ in range(5):
        pair.edit()
    pair.agree()
    with pytest.raises(SettingsError):
        pair.many.leave(17)
    pair.many.leave(1)
    pair.agree()
    with pytest.raises(SettingsError):
        pair.many.leave(joined)
    pair.many.close()


def test_directories_are_looked_at(tmp_path: Path) -> None:
    directory = str(tmp_path / "s")
    session = distributed.Session(sia_like_model(5, 64), EXACT, directory=directory)
    with pytest.raises(SnapshotError, match="already"):
        distributed.Session(sia_like_model(5, 64), EXACT, directory=directory)
    with pytest.raises(SnapshotError):
        distributed.Session.load(str(tmp_path / "nothing"))
    with pytest.raises(SnapshotError, match="no directory"):
        distributed.Session(copter.Model()).save()
    session.save()
    (tmp_path / "s" / "coordinator").write_bytes(b"not a snapshot, and long enough to have a head" * 3)
    session.close()
    with pytest.raises(SnapshotError, match="not a coordinator's"):
        distributed.Session.load(directory)


def test_a_shard_that_never_comes_back_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("copter_distributed.shards.exchange.TRIES", 3)

    class Gone(LocalTransport):
        def call(self, method: str, arguments: Any, order: Any, seconds: float | None = None) -> dict[int, Any]:
            return dict.fromkeys(arguments, LOST)

    exchange = Exchange(Gone(), ShardOptions("max", directory=str(tmp_path)), [0])
    with pytest.raises(distributed.ShardLostError, match="does not come back"):
        exchange.every("hello")


class Heard(LocalTransport):
    """Keeps every message; commits can be refused, and shards not started."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[str, dict[int, Any], Any]] = []
        self.refusing, self.full = False, False

    def start(self, number: int, options: Any) -> None:
        if self.full:
            raise SnapshotError("No space left on device")
        super().start(number, options)

    def call(self, method: str, arguments: Any, order: Any, seconds: float | None = None) -> dict[int, Any]:
        self.sent.append((method, dict(arguments), order))
        if self.refusing and method == "commit":
            for shard in arguments:
                self.shards[shard].abort()
            return {shard: (False, SnapshotError("full"), self.shards[shard].birth) for shard in arguments}
        return super().call(method, arguments, order, seconds)


def test_a_coordinator_that_was_replaced_changes_nothing(tmp_path: Path) -> None:
    """Its calls on their way, sent again or made later, took the place of the new coordinator's batch."""
    transport = Heard()
    old = distributed.Session(sia_like_model(9, 64), EXACT, shards=3, directory=str(tmp_path), transport=transport)
    ids = list(old.model.requests)
    old.model.rescale_costs(ids, 0.5)
    prepared = [each for each in transport.sent if each[0] == "prepare"][-1]
    new = distributed.Session.load(str(tmp_path), EXACT, transport)
    late = LocalTransport.call(transport, *prepared)
    assert all(isinstance(answer[1], distributed.SupersededError) for answer in late.values())
    before = new.model.cost(ids[0]).copy()
    for edit in (lambda: old.model.rescale_costs(ids, 4.0), lambda: old.model.rescale_cost(ids[0], 4.0)):
        with pytest.raises(distributed.SupersededError):
            edit()
    with pytest.raises(distributed.SupersededError):
        old.save()
    assert np.array_equal(new.model.cost(ids[0]), before)
    new.model.rescale_costs(ids, 2.0)
    for again in [each for each in transport.sent if each[2][0] == new._exchange.turn.term and each[0] != "hello"]:
        answers = LocalTransport.call(transport, *again)
        assert all(isinstance(answer[1], distributed.SupersededError) for answer in answers.values())
    assert distributed.Session.load(str(tmp_path), EXACT, transport).solve().status is copter.Status.OPTIMAL


def test_messages_sent_before_a_shard_was_started_again_change_nothing(tmp_path: Path) -> None:
    """A batch that came a second time after a restart was open in the shard, and read with its costs."""
    transport = Heard()
    session = distributed.Session(
        sia_like_model(9, 64), copter.Settings(), shards=2, directory=str(tmp_path), transport=transport, sync="always"
    )
    name = next(iter(session.model.requests))
    session.model.rescale_cost(name, 0.5)
    old = [each for each in transport.sent if each[0] in ("prepare", "commit")][-2:]
    session.model.rescale_cost(name, 3.0)
    before = session.model.cost(name).copy()
    transport.kill(session._deal.owner[name])
    for message in old:
        (answer,) = LocalTransport.call(transport, *message).values()
        assert not answer[0]
        assert "before this shard was started again" in str(answer[1])
    assert np.array_equal(session.model.cost(name), before)
    session.model.rescale_cost(name, 2.0)
    np.testing.assert_allclose(
        session.model.cost(name), before * 2.0 / 3.0, rtol=1e-14
    )  # a factor is set, not multiplied


def test_a_shard_whose_disk_refuses_for_good_is_an_error_and_the_batch_is_carried_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The coordinator asked it again and again without an end; for a shard alone nothing has happened."""
    monkeypatch.setattr("copter_distributed.shards.exchange.TRIES", 3)
    transport = Heard()
    session = distributed.Session(sia_like_model(9, 64), EXACT, shards=3, directory=str(tmp_path), transport=transport)
    ids = list(session.model.requests)
    before = {request: session.model.cost(request).copy() for request in ids}
    transport.refusing = True
    with pytest.raises(SnapshotError):
        session.model.rescale_cost(ids[0], 4.0)
    transport.refusing = False
    assert np.array_equal(session.model.cost(ids[0]), before[ids[0]])
    transport.refusing = True
    with pytest.raises(distributed.ShardLostError, match="does not make a batch durable"):
        session.model.rescale_costs(ids, 0.5)
    transport.refusing = False
    with pytest.raises(distributed.ShardLostError, match=r"Session\.load"):
        session.model.rescale_costs(ids, 8.0)
    again = distributed.Session.load(str(tmp_path), EXACT, transport)
    for request in ids:
        assert np.array_equal(again.model.cost(request), 0.5 * before[request])


def test_a_batch_that_is_done_but_not_struck_out_is_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next start found it beside shards that had gone on, and refused the session."""
    transport = Heard()
    session = distributed.Session(sia_like_model(9, 64), EXACT, shards=3, directory=str(tmp_path), transport=transport)
    ids = list(session.model.requests)

    def refused(path: Any) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr("copter.storage.disk.SystemDisk.remove", staticmethod(refused))
        session.model.rescale_costs(ids, 0.5)
        with pytest.raises(SnapshotError, match="cannot be removed"):
            session.model.rescale_cost(ids[0], 4.0)
    session.model.rescale_cost(ids[0], 0.25)
    cost = session.model.cost(ids[0]).copy()
    again = distributed.Session.load(str(tmp_path), EXACT, transport)
    assert np.array_equal(again.model.cost(ids[0]), cost)


def test_a_shard_that_cannot_start_does_not_join(tmp_path: Path) -> None:
    """It was in the list of members, without resources; every later batch that it took part in failed."""
    transport = Heard()
    session = distributed.Session(sia_like_model(9, 64), EXACT, shards=2, directory=str(tmp_path), transport=transport)
    transport.full = True
    with pytest.raises(SnapshotError):
        session.join()
    transport.full = False
    assert set(session.shards) == {0, 1}
    session.model.add_request("new", np.ones(5), {"type-1": np.arange(1.0, 6.0)})
    assert session.join() == 3
    expected = session.solve().objective
    again = distributed.Session.load(str(tmp_path), EXACT, transport)
    assert set(again.shards) == {0, 1, 3}
    assert again.solve().objective == pytest.approx(expected, rel=1e-9)
