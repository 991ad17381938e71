"""Solves come back when they should, with a plan that holds: at 10,000 GPUs, cold and under churn."""

from __future__ import annotations

import gc
import time

import numpy as np
import pytest
from families.sia import SiaRounds

from copter import Session
from copter.runtime.collector import uncollected
from copter.shims.checked import require_feasible
from copter.shims.draft import Draft
from copter.shims.plan import IDLE

DEADLINES_MS = (1, 2, 5, 10, 50, 500)


@pytest.mark.parametrize("deadline_ms", [1, 10])
def test_a_solve_out_of_time_before_it_begins_still_gives_a_plan(deadline_ms: int) -> None:
    """Cold, on 2,000 GPUs: nothing, or what a quick fill gives, but no over-commitment."""
    rounds = SiaRounds(2_000, "full", 0.01, 0)
    rounds.edit()
    session = Session(rounds.model)
    for _ in range(3):
        plan = session.solve_integer(deadline_s=deadline_ms / 1e3)
        assert plan.is_feasible
        require_feasible(rounds.model, plan)
        rounds.take(rounds.plan_columns(plan))
        rounds.prepare()
        rounds.edit()


def test_filling_asks_the_clock() -> None:
    """Cold, with every job idle, it is most of the work: out of time it takes nothing more."""
    rounds = SiaRounds(1_000, "full", 0.01, 0)
    rounds.edit()
    draft, asked = Draft(rounds.model), []
    draft.fill(lambda: asked.append(True) is None)
    assert len(asked) == 1
    assert (draft.column == IDLE).all()
    draft.fill(lambda: asked.append(True) is not None)
    assert len(asked) > len(draft.column) // 100
    assert (draft.column != IDLE).any()


def test_a_pass_that_cannot_end_in_time_is_not_begun() -> None:
    """And is tried again before long, in case it was only slow once."""
    rounds = SiaRounds(1_000, "full", 0.01, 0)
    rounds.edit()
    session = Session(rounds.model)
    session.solve()
    session._iterate.pass_s = 5.0
    bounds = [session.solve(deadline_s=0.05).bound for _ in range(60)]
    assert np.isinf(bounds[0])
    assert np.isfinite(bounds[-1])


def test_the_collector_waits() -> None:
    with uncollected():
        assert not gc.isenabled()
        with uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_pass_that_time_ends_claims_no_bound() -> None:
    rounds = SiaRounds(1_000, "full", 0.01, 0)
    rounds.edit()
    matrix = rounds.model.ledger.matrix
    y, threshold = np.zeros(matrix.n_rows), np.zeros(matrix.n_slots)
    smallest, slot, column, _ = matrix.price(y, threshold, 1, 1.0, 0.0)
    assert np.isnan(smallest).any()
    assert len(slot) == len(column)
    whole, *_ = matrix.price(y, threshold, 1, 1.0, 60.0)
    assert not np.isnan(whole).any()


@pytest.mark.long
@pytest.mark.parametrize("gpus", [10_000, 100_000])
@pytest.mark.parametrize("deadline_ms", DEADLINES_MS)
def test_five_hundred_solves_at_each_deadline(deadline_ms: int, gpus: int) -> None:
    """At most 10% or 10 ms late, by the processor time of the calling thread, which other work does not stretch.

    A solve's wall-clock time on a busy machine is that of the others too; it is printed. One solve in a hundred may be
    later: others slow a thread's own time too, by caches and shared cores.
    """
    rounds = SiaRounds(gpus, "full", 0.01, 0)
    rounds.edit()
    session = Session(rounds.model)
    deadline_s = deadline_ms / 1e3
    late, wall = [], []
    for at in range(500):
        if at % 50 == 0:
            session = Session(rounds.model)
        begun, started = time.thread_time(), time.perf_counter()
        plan = session.solve_integer(deadline_s=deadline_s)
        late.append(time.thread_time() - begun - deadline_s)
        wall.append(time.perf_counter() - started - deadline_s)
        assert plan.is_feasible
        require_feasible(rounds.model, plan)
        rounds.take(rounds.plan_columns(plan))
        rounds.prepare()
        rounds.edit()
    spread = np.quantile(wall, [0.5, 0.95, 1.0]) * 1e3
    print(f"{gpus} GPUs, {deadline_ms} ms: wall clock late by {spread} ms (median, 95%, most)")
    assert np.quantile(late, 0.99) <= max(0.1 * deadline_s, 0.010)
