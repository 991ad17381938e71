"""The exact program of a small plan: the best plan and a bound that it reaches; nothing where it cannot help."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from chronus_instances import NO_LIMIT_S, highs_optimum, lease_problem

from copter_frontends.cli.options import SimulateOptions
from copter_frontends.cli.run import Run
from copter_frontends.cli.simulate import simulate
from copter_frontends.policies.chronus import ChronusPolicy
from copter_frontends.policies.chronus import exact_plan as module
from copter_frontends.policies.chronus.compact import compact_form
from copter_frontends.policies.chronus.draft import Draft
from copter_frontends.policies.chronus.exact_plan import FAR, exact_plan
from copter_frontends.policies.chronus.options import Ints, Options
from copter_frontends.policies.chronus.shim import improve


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the programs end, however busy the machine is."""
    monkeypatch.setattr(module, "MOST_S", 600.0)


def filled(options: Options, capacity: Ints) -> Draft:
    """A plan by hand: jobs in order, promised ones first."""
    draft = Draft(options, capacity)
    for job in np.argsort(~options.must, kind="stable").tolist():
        any(draft.place(row) or draft.squeeze(row) for row in draft.ranked(job))
    improve(draft, 8)
    return draft


@pytest.mark.parametrize("types", [1, 2])
@pytest.mark.parametrize("seed", range(12))
def test_the_plan_is_the_best_there_is_and_the_bound_says_so(seed: int, types: int) -> None:
    options, capacity = lease_problem(10, 8, 14, seed, types, must=0.2)
    known = filled(options, capacity)
    best = highs_optimum(compact_form(options, capacity))
    found, bound = exact_plan(options, capacity, known, options.most, NO_LIMIT_S)
    if known.broken:
        assert (found, bound) == (known, options.most)
        return
    assert best is not None
    assert bound >= best - 1e-6
    assert (found.free >= 0).all()
    assert found.reward == pytest.approx(best, rel=FAR)
    if options.most - known.reward > FAR * options.most:
        assert found.reward == pytest.approx(best, abs=1e-6)
        assert bound == pytest.approx(best, rel=1e-6)
        again = Draft(options, capacity)
        jobs = np.flatnonzero(found.row >= 0)
        assert again.put_all(found.row[jobs], found.taken[jobs]).all()
        assert not again.broken


def test_some_plans_by_hand_are_improved_and_some_only_proven() -> None:
    improved = proven = 0
    for seed in range(30):
        options, capacity = lease_problem(10, 8, 14, seed)
        known = filled(options, capacity)
        found, bound = exact_plan(options, capacity, known, options.most, NO_LIMIT_S)
        improved += found.reward > known.reward
        proven += found is known and bound < options.most
    assert improved > 0
    assert proven > 0


def test_a_run_without_c6_has_no_small_plan_far_from_its_bound() -> None:
    """A heavy load on few GPUs; without the exact program its plans are further from the bound."""
    worst = {}
    for exact in (True, False):
        arguments = ["chronus", "--gpus", "56", "--jobs", "1500", "--hours", "2", "--threads", "1"]
        simulation = Run.read(SimulateOptions.of(**simulate.make_context("simulate", arguments).params)).simulation
        policy = simulation.policy
        assert isinstance(policy, ChronusPolicy)
        policy.selector.demand = None
        gaps, cycle = [0.0], policy.selector.cycle

        def noted(*given: Any, gaps: list[float] = gaps, cycle: Any = cycle, **named: Any) -> Any:
            found = cycle(*given, **named)
            gaps.append((found.bound - found.reward) / max(found.bound, 1.0))
            return found

        policy.selector.cycle = noted  # type: ignore[method-assign]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "MOST", 60_000 if exact else -1)
            patch.setattr(module, "MOST_S", 60.0)
            while simulation.now_s < 2 * 3600.0:
                simulation.tell_policy()
                simulation.step()
        worst[exact] = max(gaps)
    assert worst[True] < worst[False]
    assert worst[True] <= FAR


def test_nothing_is_solved_where_the_gap_is_small_the_program_large_or_time_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options, capacity = lease_problem(12, 6, 14, 3)
    known = filled(options, capacity)
    assert known.reward < (1.0 - FAR) * options.most

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a program is solved")

    monkeypatch.setattr(module, "solve_integer", never)
    assert exact_plan(options, capacity, known, known.reward * (1.0 + 0.5 * FAR), NO_LIMIT_S)[0] is known
    assert exact_plan(options, capacity, known, options.most, 0.0) == (known, options.most)
    monkeypatch.setattr(module, "MOST", 10)
    assert exact_plan(options, capacity, known, options.most, NO_LIMIT_S) == (known, options.most)
