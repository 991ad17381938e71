"""Hare_Sched as a mixed-integer program against trying everything, and the paper's own relaxation (9)."""

from __future__ import annotations

import numpy as np
import pytest
from hare_exhaustive import optimum, small_instance

from copter import solve, solve_integer
from copter_frontends.policies.hare import HareInstance, HareJob, HareScheduler, faults
from copter_frontends.policies.hare.chunks import Chunks
from copter_frontends.policies.hare.shim import schedule_in_order
from copter_frontends.vocabulary import InvalidJobError
from copter_papers.hare.exact import hare_sched
from copter_papers.hare.paper_relaxation import paper_order, paper_program, shares_of
from copter_papers.hare.workload import random_instance


@pytest.mark.parametrize("seed", range(6))
def test_the_program_has_the_optimum_of_trying_everything(seed: int) -> None:
    pytest.importorskip("highspy")
    instance = small_instance(seed, most_tasks=5)
    found = solve_integer(hare_sched(instance), "exact", deadline_s=60.0)
    assert found.objective == pytest.approx(optimum(instance), rel=1e-5)


@pytest.mark.parametrize("seed", range(6))
def test_without_sequences_it_is_a_lower_bound(seed: int) -> None:
    instance = small_instance(seed)
    assert solve(hare_sched(instance, sequencing=False)).objective <= optimum(instance) * (1 + 1e-7)


def test_plans_of_small_instances_are_near_the_optimum_and_the_bound_is_below_it() -> None:
    """The gap to the bound is three times the plan's distance from the optimum (docs/papers/hare.md)."""
    above, below = [], []
    for seed in range(40):
        instance = small_instance(seed)
        made, best = HareScheduler(growth=1.25, max_tasks=4000).schedule(instance), optimum(instance)
        above.append(made.schedule.objective / best - 1.0)
        below.append(1.0 - made.relaxation.bound / best)
    assert min(*above, *below) > -1e-9
    assert np.mean(above) < 0.04
    assert np.mean(np.array(above) < 1e-9) > 0.6
    assert np.mean(below) < 0.06


def test_many_tasks_are_refused() -> None:
    job = HareJob("long", 100, 1, {"g": 1.0})
    with pytest.raises(InvalidJobError, match="100 tasks"):
        hare_sched(HareInstance.of([job], {"g": 1}))


@pytest.mark.parametrize("seed", range(4))
def test_9_holds_for_every_schedule_with_its_own_assignment(seed: int) -> None:
    """On one GPU a type the mean starts of a whole schedule are a point of the program."""
    instance = random_instance(6, {"a": 1}, seed)
    chunks = Chunks.of(instance, 400)
    made = schedule_in_order(instance, chunks, np.arange(len(chunks)))
    program = paper_program(instance, chunks, np.ones((6, 1)))
    start = np.array([made.start_s[made.chunk == b].mean() for b in range(len(chunks))])
    x = np.concatenate((start, made.completion_s))
    capacity = (program.A @ x)[-1]
    assert capacity >= program.row_lower[-1] * (1 - 1e-9)


def test_the_papers_order_schedules_all_and_ours_is_better_where_weights_differ() -> None:
    ours, papers = [], []
    for seed in range(3):
        instance = random_instance(20, {"a": 4, "b": 3, "c": 2}, seed)
        made = HareScheduler(growth=1.25, max_tasks=4000).schedule(instance)
        share = shares_of(instance, made.relaxation.gpu_seconds)
        assert share.sum(axis=1) == pytest.approx(np.ones(20))
        chunks = Chunks.of(instance, 4000)
        theirs = schedule_in_order(instance, chunks, paper_order(instance, chunks, share))
        assert faults(theirs) == []
        ours.append(made.ratio)
        papers.append(theirs.objective / made.relaxation.bound)
    assert np.mean(ours) < np.mean(papers)
