"""The shim's steps one by one: replicas, memory, balance, copies done without, idle ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_shard_program import cluster_of

from copter_frontends.shards import ShardCluster, ShardError, repair, shim
from copter_frontends.shards.shim import Copies

Entries = list[tuple[int, int, float]]


def copies_of(entries: Entries) -> Copies:
    """Copies by (shard, server, part)."""
    shard, server, part = zip(*entries, strict=True)
    return Copies.of(np.array(shard), np.array(server), np.array(part, dtype=np.float64))


def told(copies: Copies) -> dict[tuple[int, int], float]:
    """Part of every copy; none is there twice."""
    found = {
        (j, i): pytest.approx(part, abs=1e-6)
        for j, i, part in zip(copies.shard.tolist(), copies.server.tolist(), copies.part.tolist(), strict=True)
    }
    assert len(found) == len(copies.shard)
    assert copies.live.all()
    return found


def test_copies_are_in_order_and_dead_ones_serve_nothing() -> None:
    copies = copies_of([(2, 0, 0.5), (0, 1, 0.25), (0, 0, 0.75), (2, 2, 1.0)])
    assert copies.shard.tolist() == [0, 0, 2, 2]
    assert copies.server.tolist() == [0, 1, 0, 2]
    first, by_first, by = shim.by_shard(cluster_of([[0], [1], [2]]), copies)
    assert (first.tolist(), by_first.tolist(), by.tolist()) == ([0, 2, 2, 4], [0, 2, 3, 4], [0, 2, 1, 3])
    copies.live[0] = False
    assert copies.server_load(3).tolist() == [0.5, 0.25, 1.0]
    assert told(copies.kept()) == {(0, 1): 0.25, (2, 0): 0.5, (2, 2): 1.0}


def test_shares_are_by_the_load_served_or_alike() -> None:
    copies = copies_of([(0, 0, 0.1), (0, 1, 0.3), (1, 0, 0.0), (1, 1, 0.0)])
    found = shim.share_of(cluster_of([[0, 1], [0, 1]]), np.array([0.4, 0.0]), copies)
    np.testing.assert_allclose(found, [0.25, 0.75, 0.5, 0.5])


# Replicas -------------------------------------------------------------------------------------------------------------


def test_missing_copies_go_where_there_is_most_memory() -> None:
    """Not to a server that is down or has the shard; two copies of one shard go to two servers."""
    up = np.array([True, True, True, True, False])
    cluster = cluster_of([[0], [0]], [9.0, 4.0, 3.5, 1.0, 99.0], servers=5, replicas=2, up=up)
    copies = shim.with_replicas(cluster, copies_of([(0, 0, 1.0), (1, 0, 1.0)]))
    assert told(copies) == {(0, 0): 1.0, (0, 1): 0.0, (1, 0): 1.0, (1, 2): 0.0}  # the first left 3 of 4
    three = cluster_of([[0], [0]], [9.0, 8.0, 3.0, 2.0, 99.0], servers=5, replicas=3, up=up)
    copies = shim.with_replicas(three, copies_of([(0, 0, 0.5), (0, 1, 0.5), (1, 0, 1.0)]))
    assert told(copies) == {(0, 0): 0.5, (0, 1): 0.5, (0, 2): 0.0, (1, 0): 1.0, (1, 1): 0.0, (1, 2): 0.0}


@pytest.mark.parametrize(("left", "server"), [(2.0, 1), (1.5, 2), (1.0, 2)])
def test_a_missing_copy_stays_where_one_was_if_it_just_fits(left: float, server: int) -> None:
    cluster = cluster_of([[0, 1], [1]], [9.0, left + 1.0, 8.0], servers=3, replicas=2, size=[2.0, 1.0])
    copies = shim.with_replicas(cluster, copies_of([(0, 0, 1.0), (1, 1, 1.0), (1, 2, 0.0)]))
    assert told(copies) == {(0, 0): 1.0, (0, server): 0.0, (1, 1): 1.0, (1, 2): 0.0}


def test_copies_that_suffice_are_as_they_were() -> None:
    copies = copies_of([(0, 0, 1.0), (1, 1, 1.0)])
    assert shim.with_replicas(cluster_of([[0], [1]]), copies) is copies


# Memory ---------------------------------------------------------------------------------------------------------------


def test_the_copies_that_serve_least_leave_a_full_server() -> None:
    """As many as must, and no more; their load goes to the others in proportion to theirs."""
    cluster = cluster_of([[0, 1, 2], [0, 1], [0, 1]], [1.0, 9.0, 9.0])
    entries = [(0, 0, 0.1), (0, 1, 0.2), (0, 2, 0.4), (1, 0, 0.3), (1, 1, 0.1), (2, 0, 0.2), (2, 1, 0.8)]
    copies = shim.memory_repaired(cluster, np.ones(3), copies_of(entries))
    parts = {(0, 1): 0.7 / 3, (0, 2): 1.4 / 3, (1, 0): 0.3, (1, 1): 0.1, (2, 1): 1.0}
    assert told(copies) == {each: pytest.approx(part) for each, part in parts.items()}
    rest = cluster_of([[0, 1, 2], [0, 1], [0, 1]], [2.0, 9.0, 9.0])
    assert len(shim.memory_repaired(rest, np.ones(3), copies_of(entries)).shard) == 6


def test_load_goes_alike_to_copies_that_serve_nothing() -> None:
    cluster = cluster_of([[0, 1, 2], [0]], [1.0, 9.0, 9.0])
    copies = shim.memory_repaired(
        cluster, np.ones(2), copies_of([(0, 0, 0.4), (0, 1, 0.0), (0, 2, 0.0), (1, 0, 0.9)])
    )  # fmt: skip
    assert told(copies) == {(0, 1): 0.2, (0, 2): 0.2, (1, 0): 0.9}


def test_a_shard_keeps_its_replicas_when_memory_is_short() -> None:
    """The first serves least there, but has no copy to spare: the second goes, although it serves most."""
    cluster = cluster_of([[0], [0, 1]], [1.0, 9.0])
    copies = shim.memory_repaired(cluster, np.ones(2), copies_of([(0, 0, 0.1), (1, 0, 0.6), (1, 1, 0.4)]))
    assert told(copies) == {(0, 0): 0.1, (1, 1): 1.0}


def test_single_copies_are_moved_to_where_there_is_most_memory() -> None:
    """The least served first; what a server has taken in counts for the next; none to a server that is down."""
    up = np.array([True, True, True, False])
    cluster = cluster_of([[0], [0], [0]], [1.0, 1.5, 1.25, 9.0], servers=4, up=up)
    copies = shim.memory_repaired(cluster, np.ones(3), copies_of([(0, 0, 0.3), (1, 0, 0.2), (2, 0, 0.1)]))
    assert told(copies) == {(0, 0): 0.3, (2, 1): 0.1, (1, 2): 0.2}


@pytest.mark.parametrize(("memory", "server"), [(3.0, 1), (2.5, 2)])
def test_a_single_copy_is_moved_to_where_one_was_if_it_just_fits(memory: float, server: int) -> None:
    """The shard of size 2, held there too before the round, beside one of size 1."""
    cluster = cluster_of([[0, 1], [0], [1]], [3.0, memory, 9.0], servers=3, size=[2.0, 2.0, 1.0])
    copies = shim.memory_repaired(cluster, np.ones(3), copies_of([(0, 0, 0.1), (1, 0, 0.9), (2, 1, 1.0)]))
    assert told(copies) == {(0, server): 0.1, (1, 0): 0.9, (2, 1): 1.0}


def test_a_copy_that_just_fits_is_moved_and_one_that_does_not_is_not() -> None:
    cluster = cluster_of([[0], [0], [1]], [2.0, 2.0], size=[2.0, 1.0, 1.0])
    copies = shim.memory_repaired(cluster, np.ones(3), copies_of([(0, 0, 0.1), (1, 0, 0.9), (2, 1, 1.0)]))
    assert told(copies) == {(0, 0): 0.1, (1, 1): 0.9, (2, 1): 1.0}  # the first serves less, and has no room there
    full = cluster_of([[0], [0], [1]], [2.0, 2.4], size=[1.2, 1.2, 1.4])
    with pytest.raises(ShardError, match="server 0 holds more than its memory of 2, and no shard of it fits"):
        shim.memory_repaired(full, np.ones(3), copies_of([(0, 0, 0.1), (1, 0, 0.9), (2, 1, 1.0)]))


def test_two_replicas_are_not_moved_onto_each_other() -> None:
    cluster = cluster_of([[0, 1], [0, 1]], [1.0, 9.0, 3.0], servers=3, replicas=2)
    copies = shim.memory_repaired(
        cluster, np.ones(2), copies_of([(0, 0, 0.1), (0, 1, 0.9), (1, 0, 0.5), (1, 1, 0.5)])
    )  # fmt: skip
    assert told(copies) == {(0, 1): 0.9, (0, 2): 0.1, (1, 0): 0.5, (1, 1): 0.5}


# Balance --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1.0, 0.05, 40.0])
def test_load_is_moved_to_the_edge_of_the_band_in_any_unit(unit: float) -> None:
    """All but a ten-millionth of the width: so that sums in another order are in it too. A server is down."""
    up = np.array([True, True, False])
    cluster = cluster_of([[0, 1], [1]], servers=3, band=0.1, up=up)
    copies = shim.balanced(cluster, copies_of([(0, 0, 1.5 * unit), (0, 1, 0.0), (1, 1, 0.5 * unit)]), reduce=False)
    width = 0.1 * (1.0 - 1e-7)
    np.testing.assert_allclose(copies.server_load(3) / unit, [1.0 + width, 1.0 - width, 0.0], rtol=1e-10)


def test_nothing_is_done_without_load() -> None:
    copies = copies_of([(0, 0, 0.0), (0, 1, 0.0)])
    assert shim.balanced(cluster_of([[0]], servers=2), copies, reduce=True) is copies


def test_one_server_out_of_the_band_does_not_keep_the_others_out() -> None:
    """The first has too heavy a shard, the second and third share one; no copies are made."""
    cluster = cluster_of([[0], [1, 2], [2]], band=0.1)
    shares = np.array([0, 1, 1, 2]), np.array([0, 1, 2, 2]), np.array([1.0, 0.0, 1.0, 1.0])
    shard, server, share = shim.moved_between(cluster, np.array([1.15, 1.15, 0.7]), *shares)
    load = np.bincount(server, share * np.array([1.15, 1.15, 0.7])[shard])
    assert (shard.tolist(), server.tolist()) == ([0, 1, 1, 2], [0, 1, 2, 2])
    assert load[0] == 1.15
    assert (np.abs(load[1:] - 1.0) <= 0.1).all()


def test_load_moved_between_copies_takes_none_out() -> None:
    """Also such as are new and not needed."""
    cluster = cluster_of([[0], [1]], band=0.1)
    shard, server, _ = shim.moved_between(
        cluster, np.ones(2), np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([0.9, 0.1, 1.0])
    )  # fmt: skip
    assert list(zip(shard.tolist(), server.tolist(), strict=True)) == [(0, 0), (0, 1), (1, 1)]


def needless() -> tuple[ShardCluster, Entries]:
    """Both servers are in the band without the first shard's new copy; the second shard's old one is as small."""
    return cluster_of([[0], [0, 1], [1]], band=0.1), [(0, 0, 0.4), (0, 1, 0.1), (1, 0, 0.5), (1, 1, 0.1), (2, 1, 0.9)]


def test_new_copies_that_are_not_needed_are_taken_out() -> None:
    cluster, entries = needless()
    assert sorted(told(shim.balanced(cluster, copies_of(entries), reduce=True))) == [(0, 0), (1, 0), (1, 1), (2, 1)]
    assert len(shim.balanced(cluster, copies_of(entries), reduce=False).shard) == 5
    up = np.array([True, True, False])
    down = cluster_of([[0], [0, 1], [1]], servers=3, band=0.1, up=up)  # where one is down that lacks nothing
    assert sorted(told(shim.balanced(down, copies_of(entries), reduce=True))) == [(0, 0), (1, 0), (1, 1), (2, 1)]
    load = np.array([0.5, 0.6, 0.9])
    shard, server, part = (np.array(column) for column in zip(*entries, strict=True))
    assert len(repair(cluster, load, shard, server, part / load[shard])[0]) == 4  # so it is if nothing else is said
    shard, server, share = repair(cluster, load, shard, server, part / load[shard], reduce=False)
    assert len(shard) == 5
    np.testing.assert_allclose(share, part / load[shard])


def test_the_copy_that_serves_least_for_its_cost_is_taken_out_first() -> None:
    """Either of two new copies suffices: one of size 4 that serves 0.2, and one of size 1 that serves 0.1."""
    cluster = cluster_of([[0], [0], [1]], band=0.1, size=[4.0, 1.0, 1.0], cost="size")
    entries = [(0, 0, 0.4), (0, 1, 0.2), (1, 0, 0.5), (1, 1, 0.1), (2, 1, 0.8)]
    copies = shim.balanced(cluster, copies_of(entries), reduce=True)
    assert sorted(told(copies)) == [(0, 0), (1, 0), (1, 1), (2, 1)]
    dear = cluster_of([[0], [0], [1]], band=0.1, size=[1.5, 1.0, 1.0], cost="size")
    copies = shim.balanced(dear, copies_of(entries), reduce=True)
    assert sorted(told(copies)) == [(0, 0), (0, 1), (1, 0), (2, 1)]


def test_copies_that_were_made_are_done_without_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once copies were made the band is reached, so that those that are not needed go."""
    cluster = cluster_of([[0], [0], [1]], band=0.1)
    entries = [(0, 0, 0.9), (1, 0, 0.6), (2, 1, 0.5)]
    made: list[int] = []

    class Counted(shim.NewCopies):
        def make(self) -> Any:
            """The copies, and one of the last shard that nobody needs."""
            made.append(1)
            shard, server, part = super().make()
            return np.append(shard, 2), np.append(server, 0), np.append(part, 0.0)

    monkeypatch.setattr(shim, "NewCopies", Counted)
    copies = shim.balanced(cluster, copies_of(entries), reduce=True, grow=True)
    assert len(made) == 1
    assert sorted(told(copies)) == [(0, 0), (0, 1), (1, 0), (2, 1)]


def test_copies_are_made_eight_times_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = cluster_of([[0]] + [[1]] * 12, 99.0, band=0.1)
    made: list[int] = []

    class OneMore:
        def __init__(self, cluster: ShardCluster, shard: Any, server: Any, part: Any, *_: Any) -> None:
            self.copies = shard, server, part

        def make(self) -> Any:
            made.append(1)
            return tuple(np.append(own, new) for own, new in zip(self.copies, (len(made), 0, 0.0), strict=True))

    monkeypatch.setattr(shim, "NewCopies", OneMore)
    monkeypatch.setattr(shim, "rebalance", lambda *_: False)
    entries = [(0, 0, 1.0), *((shard, 1, 0.1) for shard in range(1, 13))]
    assert len(shim.balanced(cluster, copies_of(entries), reduce=False, grow=True).shard) == 13 + 8
    assert len(made) == 8


def test_copies_are_asked_for_once_where_none_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other server's memory is full."""
    cluster = cluster_of([[0], [1]], [9.0, 1.0], band=0.1)
    made: list[int] = []
    make = shim.NewCopies.make
    monkeypatch.setattr(shim.NewCopies, "make", lambda self: made.append(1) or make(self))  # type: ignore[func-returns-value]
    copies = shim.balanced(cluster, copies_of([(0, 0, 1.5), (1, 1, 0.5)]), reduce=True, grow=True)
    assert told(copies) == {(0, 0): 1.5, (1, 1): 0.5}
    assert len(made) == 1


# Idle copies ----------------------------------------------------------------------------------------------------------


def test_idle_copies_go_new_ones_first_but_for_the_replicas() -> None:
    cluster = cluster_of([[1, 2], [0], [0]])
    copies = copies_of([(0, 0, 0.0), (0, 1, 0.0), (0, 2, 0.0), (1, 0, 0.5), (1, 2, 0.0), (2, 0, 0.1), (2, 1, 1.0)])
    assert told(shim.without_idle(cluster, copies)) == {(0, 2): 0.0, (1, 0): 0.5, (2, 0): 0.1, (2, 1): 1.0}
    two = cluster_of([[1, 2], [0, 1], [0, 1]], replicas=2)
    copies = copies_of([(0, 0, 0.0), (0, 1, 0.0), (0, 2, 0.0), (1, 0, 0.5), (1, 2, 0.0), (2, 0, 0.1), (2, 1, 1.0)])
    assert sorted(told(shim.without_idle(two, copies))) == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]


def test_idle_copies_stay_while_there_is_room() -> None:
    """The first two of three just fit beside what is there; one whose server is down does not stay."""
    up = np.array([True, True, False])
    cluster = cluster_of([[0, 1], [0, 1], [0, 1], [0, 1]], [4.0, 3.0, 9.0], servers=3, up=up)
    cluster.holds[0, 2] = True
    copies = shim.with_idle(cluster, copies_of([(0, 0, 1.0), (1, 0, 0.5), (2, 0, 0.5), (3, 0, 0.5), (3, 1, 0.5)]))
    parts = {(0, 0): 1.0, (0, 1): 0.0, (1, 0): 0.5, (1, 1): 0.0, (2, 0): 0.5, (3, 0): 0.5, (3, 1): 0.5}
    assert told(copies) == parts


def test_copies_are_made_where_those_that_there_are_do_not_reach_the_band() -> None:
    given = np.array([1.5, 0.5]), np.array([0, 1]), np.array([0, 1]), np.ones(2)
    shard, server, share = repair(cluster_of([[0], [1]], band=0.1), *given)
    assert list(zip(shard.tolist(), server.tolist(), strict=True)) == [(0, 0), (0, 1), (1, 1)]
    assert 0.9 <= 1.5 * share[0] <= 1.1


def test_idle_copies_go_if_nothing_else_is_said() -> None:
    cluster = cluster_of([[0, 1], [1]], band=0.1)
    given = np.ones(2), np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([1.0, 0.0, 1.0])
    assert len(repair(cluster, *given)[0]) == 2
    shard, server, share = repair(cluster, *given, idle=True)
    assert list(zip(shard.tolist(), server.tolist(), share.tolist(), strict=True)) == [
        (0, 0, 1.0), (0, 1, 0.0), (1, 1, 1.0)]  # fmt: skip
