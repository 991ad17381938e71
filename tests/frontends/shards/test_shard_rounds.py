"""A round of the policy: what stands, when the program is asked, bounds, statuses, and the better of two plans."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_shard_program import cluster_of

from copter_frontends.shards import CopterShards, ShardCluster, policy
from copter_frontends.shards.formulation import Relaxed
from copter_frontends.shards.policy import with_homes


def relaxed(entries: list[tuple[int, int, float]], bound: float = 0.0) -> Relaxed:
    """A program's optimum by (shard, server, share)."""
    shard, server, share = (np.array(column) for column in zip(*entries, strict=True))
    none = np.zeros(0)
    return Relaxed(shard, server, share, bound, bound, 5, 1, 1, 3.0, 4.0, 0.0, none, none, none)


def answers(scheme: CopterShards, monkeypatch: pytest.MonkeyPatch, found: Relaxed) -> list[Any]:
    """Have the program answer that, and the shim leave it as it is; the deadlines that the program is given."""
    asked: list[Any] = []

    def solve(cluster: ShardCluster, load: Any, standing: Any, deadline_s: float | None) -> Relaxed:
        asked.append(deadline_s)
        return found

    repair = policy.repair
    monkeypatch.setattr(scheme.formulation, "solve", solve)
    monkeypatch.setattr(
        policy, "repair", lambda *given, **named: given[2:5] if given[2] is found.shard else repair(*given, **named)
    )
    return asked


def moving() -> CopterShards:
    """Two servers, both shards on the first: a new copy is certain to be needed, and one will do."""
    return CopterShards(cluster_of([[0], [0]], servers=2, band=0.1))


def splitting() -> CopterShards:
    """Three servers with one shard each, the first 1.2 of the mean: no bound on copies says that one is needed."""
    return CopterShards(cluster_of([[0], [1], [2]], band=0.15))


# What stands ----------------------------------------------------------------------------------------------------------


def test_loads_are_scaled_to_the_mean_of_the_servers_that_are_up() -> None:
    up = np.array([True, True, False])
    scheme = CopterShards(cluster_of([[0], [1]], servers=3, up=up))
    for loads in ([1.0, 3.0], [0.1, 0.3]):
        given, load = scheme.scaled(loads)
        assert given.tolist() == loads
        np.testing.assert_allclose(load, [0.5, 1.5])
    assert scheme.scaled([0.0, 0.0])[1].tolist() == [0.0, 0.0]


def test_shards_without_a_copy_get_one_where_there_is_most_memory() -> None:
    up = np.array([True, True, True, False])
    cluster = cluster_of([[0], [], [], [], [1]], [4.0, 3.5, 2.25, 9.0], servers=4, up=up)
    shard, server, share = with_homes(cluster, np.array([0, 4]), np.array([0, 1]), np.array([0.7, 0.6]))
    assert shard.tolist() == [0, 4, 1, 2, 3]
    assert server.tolist() == [0, 1, 0, 1, 2]
    assert share.tolist() == [0.7, 0.6, 1.0, 1.0, 1.0]


def test_copies_stand_with_the_shares_of_the_last_plan() -> None:
    """Where those that are left had none, and where a shard has lost all, all of it is served by what there is."""
    scheme = CopterShards(cluster_of([[0, 1], [0, 1], [2], [2]], servers=3, band=0.4))
    load = np.array([1.0, 1.0, 0.5, 0.5])
    assert scheme.standing(load)[2].tolist() == [0.5, 0.5, 0.5, 0.5, 1.0, 1.0]
    scheme.shares = np.array([[0.7, 0.3, 0.0], [0.4, 0.6, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(scheme.standing(load)[2], [0.7, 0.3, 0.4, 0.6, 1.0, 1.0])
    scheme.shares[0] = [1.0, 0.0, 0.0]
    scheme.remove_server(0)  # what is left of shard 0 served nothing
    shard, server, share = scheme.standing(load * 2.0 / 3.0)
    assert (shard.tolist(), server.tolist()) == ([0, 1, 2, 3], [1, 1, 2, 2])
    assert share.tolist() == [1.0, 1.0, 1.0, 1.0]


def test_a_lost_shard_counts_as_much_as_one_that_stands() -> None:
    """Its home is the second server, so the shard on both goes to the first."""
    scheme = CopterShards(cluster_of([[0, 1], [0, 1]], [9.0, 10.0], servers=2, band=0.1))
    scheme.cluster.holds[1] = False
    shard, server, share = scheme.standing(np.ones(2))
    assert (shard.tolist(), server.tolist()) == ([0, 0, 1], [0, 1, 1])
    assert share[0] >= 0.9
    scheme.shares = np.array([[0.0, 0.0], [0.5, 0.5]])  # of a plan before the first shard's copies
    again = scheme.standing(np.ones(2))[2]
    np.testing.assert_allclose(again, share)


# When the program is asked --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("servers", "alone"), [(1000, False), (1001, True)])
def test_a_thousand_servers_have_a_program_and_more_have_none(
    monkeypatch: pytest.MonkeyPatch, servers: int, alone: bool
) -> None:
    scheme = CopterShards(cluster_of([[server] for server in range(servers)]))
    asked = answers(scheme, monkeypatch, relaxed([(shard, shard, 1.0) for shard in range(servers)]))
    loads = np.ones(servers)
    loads[0] = 1.5
    plan = scheme.plan(loads)
    assert plan.in_band
    assert plan.bound == 0.0 < plan.cost
    assert len(asked) == (not alone)
    assert plan.status == ("feasible" if alone else "kept_previous")


def test_a_plan_that_costs_what_is_certain_to_be_needed_is_optimal_without_a_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scheme = moving()
    monkeypatch.setattr(scheme.formulation, "solve", None)
    plan = scheme.plan([1.0, 1.0])
    assert (plan.status, plan.cost, plan.bound) == ("optimal", 1.0, 1.0)
    assert (plan.seconds["solve"], plan.seconds["shim"]) == (0.0, 0.0)


def test_copies_that_serve_nothing_go_if_nothing_else_is_said() -> None:
    cluster = cluster_of([[0, 1], [1]], band=0.1)
    for keep, left in ((None, 2), (False, 2), (True, 3)):
        scheme = CopterShards(cluster) if keep is None else CopterShards(cluster, keep_idle=keep)
        scheme.shares = np.array([[1.0, 0.0], [0.0, 1.0]])
        assert len(scheme.plan([1.0, 1.0]).shard) == left


# The program's plan ---------------------------------------------------------------------------------------------------


ONE_COPY = [(0, 0, 0.9), (0, 1, 0.1), (1, 1, 1.0), (2, 2, 1.0)]
TWO_COPIES = [(0, 0, 0.9), (0, 1, 0.05), (0, 2, 0.05), (1, 1, 1.0), (2, 2, 1.0)]
OUT_OF_BAND = [(0, 0, 1.0), (1, 1, 1.0), (2, 2, 1.0)]
LOADS = [1.2, 0.9, 0.9]


@pytest.mark.parametrize(
    ("entries", "kept"), [(ONE_COPY, False), (TWO_COPIES, True), (OUT_OF_BAND, True)]
)  # fmt: skip
def test_the_kept_plan_stays_where_it_is_better(
    monkeypatch: pytest.MonkeyPatch, entries: list[tuple[int, int, float]], kept: bool
) -> None:
    """It has one new copy and is in the band."""
    scheme = splitting()
    asked = answers(scheme, monkeypatch, relaxed(entries))
    plan = scheme.plan(LOADS)
    assert asked == [None]
    assert plan.in_band
    assert (plan.cost, plan.movements, plan.bound) == (1.0, 1, 0.0)
    assert plan.status == ("kept_previous" if kept else "feasible")
    assert plan.columns == (0 if kept else 5)
    assert plan.seconds["solve"] == 4.0
    assert scheme.cluster.holds is plan.holds


def test_a_program_that_moves_less_is_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shim alone, made to need two copies, is beaten by one."""
    scheme = splitting()
    answers(scheme, monkeypatch, relaxed(ONE_COPY))
    repair = policy.repair
    two = tuple(np.array(column) for column in zip(*TWO_COPIES, strict=True))
    monkeypatch.setattr(policy, "repair", lambda *own, **named: repair(*own, **named) if len(own[2]) > 3 else two)
    plan = scheme.plan(LOADS)
    assert (plan.cost, plan.status) == (1.0, "feasible")


def test_a_program_that_reaches_the_band_is_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it costs: the shim alone is out of the band, although none of that is certain to be needed."""
    scheme = splitting()
    answers(scheme, monkeypatch, relaxed(TWO_COPIES))
    repair = policy.repair
    none = tuple(np.array(column) for column in zip(*OUT_OF_BAND, strict=True))
    monkeypatch.setattr(policy, "repair", lambda *own, **named: repair(*own, **named) if len(own[2]) > 3 else none)
    plan = scheme.plan(LOADS)
    assert (plan.in_band, plan.cost, plan.status) == (True, 2.0, "feasible")


@pytest.mark.parametrize(
    ("cost", "proven", "bound"),
    [("unit", 0.25, 1.0), ("unit", 1.0, 1.0), ("unit", 1.0 + 5e-7, 1.0), ("unit", -np.inf, 0.0),
     ("size", 0.25, 0.25), ("size", -np.inf, 0.0)],
)  # fmt: skip
def test_bounds_are_whole_where_copies_cost_one_each(
    monkeypatch: pytest.MonkeyPatch, cost: str, proven: float, bound: float
) -> None:
    scheme = CopterShards(cluster_of([[0], [1], [2]], band=0.15, cost=cost, size=[2.0, 1.0, 1.0]))
    answers(scheme, monkeypatch, relaxed(ONE_COPY, proven))
    plan = scheme.plan(LOADS)
    assert plan.bound == bound
    assert plan.status == ("optimal" if bound == plan.cost else "feasible")


@pytest.mark.parametrize(("proven", "bound"), [(0.5, 2.0), (3.0, 3.0)])
def test_the_bound_is_the_better_of_the_programs_and_the_copies(
    monkeypatch: pytest.MonkeyPatch, proven: float, bound: float
) -> None:
    scheme = splitting()
    answers(scheme, monkeypatch, relaxed(TWO_COPIES, proven))
    monkeypatch.setattr(policy, "copies_bound", lambda *_: 2.0)
    monkeypatch.setattr(
        policy, "plan_of", lambda *own, _of=policy.plan_of, **named: replace(_of(*own, **named), in_band=False)
    )
    assert scheme.plan(LOADS).bound == bound


# Time -----------------------------------------------------------------------------------------------------------------


def clocked(scheme: CopterShards, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A clock that only the shim moves, by 2 each time it is asked; the deadlines that the program is given."""
    asked, now = answers(scheme, monkeypatch, relaxed(ONE_COPY)), [7.0]
    repair = policy.repair

    def slow(*given: Any, **named: Any) -> Any:
        now[0] += 2.0
        return repair(*given, **named)

    monkeypatch.setattr(policy, "repair", slow)
    monkeypatch.setattr(policy, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    return asked


@pytest.mark.parametrize(("deadline_s", "left"), [(None, [None]), (10.0, [8.0]), (2.5, [0.5]), (1.0, [])])
def test_the_program_has_what_is_left_of_the_deadline(
    monkeypatch: pytest.MonkeyPatch, deadline_s: float | None, left: list[float | None]
) -> None:
    scheme = splitting()
    asked = clocked(scheme, monkeypatch)
    plan = scheme.plan(LOADS, deadline_s)
    assert asked == left
    assert plan.in_band
    assert plan.status == ("feasible" if left else "kept_previous")
    assert plan.seconds == ({"edit": 5.0, "solve": 4.0, "shim": 2.0} if left else {"edit": 2.0, "solve": 0, "shim": 0})
