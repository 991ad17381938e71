"""A plan that cannot be made by its deadline is not begun: the last one is kept, without the jobs that have gone."""

from __future__ import annotations

from math import isinf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import deadlines
from copter.runtime.errors import InvalidDataError
from copter_frontends.cli.run import Run
from copter_frontends.policy_kit.deadline_guard import PATIENCE, Pace, that_fit
from copter_frontends.simulator import Simulation
from copter_frontends.vocabulary import Allocation, Cluster, Job, PlanStatus
from copter_serve.allocation import AllocationPolicy

SOON_S = 1e-3


def begun(policy: str) -> Simulation:
    """A simulation in which at least three jobs run and go on."""
    simulation = Run.read(deadlines.options(policy, 64, seed=3)).simulation
    for _ in range(900):
        ended = simulation.step().completed
        if len(simulation.policy.held.keys() - set(ended)) > 2:  # type: ignore[attr-defined]
            return simulation
    raise AssertionError("no three jobs run at once")


@pytest.mark.parametrize("policy", ["sia", "hadar", "hops", "chronus", "hare", "srtf"])
def test_a_plan_that_would_be_late_is_the_last_one_without_the_jobs_that_have_gone(policy: str) -> None:
    simulation = begun(policy)
    mine: Any = simulation.policy
    simulation.tell_policy()  # removes the jobs that ended in the last round
    held = dict(mine.held)
    gone = next(iter(held))
    mine.remove_job(gone)
    mine.pace.least_s = 1.0
    plan = mine.plan(simulation.now_s, SOON_S)
    assert plan.status is PlanStatus.KEPT_PREVIOUS
    assert isinf(plan.gap)
    assert isinf(plan.bound)
    assert dict(plan.allocations) == {job: given for job, given in held.items() if job != gone}
    assert not plan.start
    assert not plan.move
    later = mine.plan(simulation.now_s + simulation.round_s, 60.0)
    assert later.status is not PlanStatus.KEPT_PREVIOUS
    with pytest.raises(InvalidDataError, match="deadline"):
        mine.plan(simulation.now_s, 0.0)


@pytest.mark.parametrize("policy", ["sia", "hadar", "hops", "chronus", "hare"])
def test_a_simulation_goes_on_with_kept_plans(policy: str) -> None:
    simulation = begun(policy)
    simulation.deadline_s = SOON_S
    mine: Any = simulation.policy
    for _ in range(10):
        mine.pace.least_s = 1.0
        simulation.step()
    assert all(record.status is PlanStatus.KEPT_PREVIOUS for record in simulation.records[-10:])
    simulation.deadline_s = 60.0
    assert simulation.step().status is not PlanStatus.KEPT_PREVIOUS


@pytest.mark.parametrize("policy", ["sia"])
def test_a_kept_plan_makes_room_for_pins(policy: str) -> None:
    simulation = begun(policy)
    mine: Any = simulation.policy
    simulation.tell_policy()
    (first, given), (second, _), *_ = mine.held.items()
    mine.pin(second, given)
    mine.pace.least_s = 1.0
    plan = mine.plan(simulation.now_s, SOON_S)
    assert plan.status is PlanStatus.KEPT_PREVIOUS
    assert plan.allocations[second] == given
    assert first not in plan.allocations or sum(n for _, n in given.nodes) * 2 <= simulation.cluster.gpus


def test_the_allocation_policy_keeps_its_plan_too() -> None:
    policy = AllocationPolicy(Cluster.of({"t4": (2, 4)}))
    for name in "abc":
        policy.add_job(Job(name, "any"), {"t4": {2: 1.0}})
    before = dict(policy.plan(0.0).allocations)
    policy.remove_job("b")
    policy.pace.least_s = 1.0  # type: ignore[attr-defined]
    plan = policy.plan(60.0, SOON_S)
    assert plan.status is PlanStatus.KEPT_PREVIOUS
    assert dict(plan.allocations) == {job: before[job] for job in "ac"}
    assert policy.plan(120.0).status is PlanStatus.OPTIMAL


def test_the_pace_counts_what_the_solver_took_beyond_the_deadline_and_tries_again() -> None:
    pace = Pace()
    assert pace.allows(1e-9)
    pace.note(9.0, {}, 1.0)
    assert pace.allows(1e-9), "one slow plan is no reason to make none"
    pace.note(0.8, {"solve": 0.3, "observe": 0.0}, 1.0)
    assert pace.allows(1e-9)
    pace.note(0.5, {"solve": 0.45, "observe": 0.0}, 0.05)
    assert pace.least_s == pytest.approx(0.45)
    tries = 0
    while not pace.allows(0.2):
        tries += 1
    assert 0.45 * PATIENCE**tries <= 0.2 < 0.45 * PATIENCE ** (tries - 1)


def test_allocations_that_no_longer_fit_are_left_out() -> None:
    cluster = Cluster.of({"t4": (2, 4)})
    (one, two) = list(cluster.nodes)
    held = {"a": Allocation("t4", 3, ((one, 3),)), "b": Allocation("t4", 4, ((two, 4),))}
    pins = {"p": Allocation("t4", 2, ((one, 2),))}
    assert that_fit(cluster, held, pins) == {"p": pins["p"], "b": held["b"]}


@pytest.mark.parametrize("seed", range(60))
def test_what_fits_is_found_at_once_or_one_by_one(seed: int) -> None:
    """Full, overfull and lost nodes; jobs that are pinned elsewhere than they are held."""
    rng = np.random.default_rng(seed)
    cluster = Cluster.of({"t4": (4, 4)})
    names = [*cluster.nodes, "lost"][: 4 + seed % 2]

    def some(prefix: str, count: int) -> dict[str, Allocation]:
        gpus = rng.integers(1, 4, count).tolist()
        return {f"{prefix}{at}": Allocation("t4", n, ((str(rng.choice(names)), n),)) for at, n in enumerate(gpus)}

    held = some("a", int(rng.integers(0, 9)))
    pins = some("p", int(rng.integers(0, 2))) | some("a", int(rng.integers(0, 2)))
    free, kept = {name: node.gpus for name, node in cluster.nodes.items()}, dict[str, Allocation]()
    for job, given in (*pins.items(), *((job, given) for job, given in held.items() if job not in pins)):
        ((node, gpus),) = given.nodes
        if free.get(node, 0) >= gpus:
            kept[job] = given
            free[node] -= gpus
    assert list(that_fit(cluster, held, pins).items()) == list(kept.items())


def test_the_page_has_a_row_for_each_scheduler_and_keeps_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "deadlines.md"
    command = ["deadlines.py", "--gpus", "64", "--plans", "4", "--seeds", "2", "--page", str(page)]
    for name in ("hops", "sia"):
        monkeypatch.setattr("sys.argv", [*command, "--only", name])
        deadlines.main()
    rows = deadlines.rows_of(page)
    assert [key[0] for key in rows] == ["sia", "hops"]
    assert all(line.split("|")[4].strip() == "4" for line in rows.values())
