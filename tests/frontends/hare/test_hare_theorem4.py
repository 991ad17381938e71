"""Theorem 4 claims that Algorithm 1 is an alpha(2 + alpha)-approximation: a counter-example (docs/papers/hare.md)."""

import numpy as np
import pytest
from scipy.optimize import linprog

from copter_frontends.policies.hare import Chunks, HareInstance, HareJob, HareScheduler, schedule_in_order

LIGHT, HEAVY = 30, 1.02  # light jobs of one second each; seconds of the heavy one
TIMES = np.array([1.0] * LIGHT + [HEAVY])
WEIGHTS = np.array([1e-6] + [1e-5] * (LIGHT - 1) + [1.0])


def relaxed_starts() -> np.ndarray:
    """Starts of the paper's relaxation, its (9) on the one GPU with (4) to (7): one inequality over all tasks."""
    least = 0.5 * (TIMES.sum() ** 2 + (TIMES**2).sum()) - (TIMES**2).sum()
    found = linprog(WEIGHTS, A_ub=-TIMES[None, :], b_ub=[-least], bounds=(0, None))
    assert found.status == 0
    return found.x


def instance() -> HareInstance:
    jobs = [
        HareJob(f"j{i}", 1, 1, {"gpu": float(p)}, weight=float(w))
        for i, (p, w) in enumerate(zip(TIMES, WEIGHTS, strict=True))
    ]
    return HareInstance.of(jobs, {"gpu": 1})


def best() -> float:
    """Smith's rule on one machine."""
    order = np.argsort(TIMES / WEIGHTS)
    return float(WEIGHTS[order] @ np.cumsum(TIMES[order]))


def test_lemma_2_fails_for_prefixes() -> None:
    """(10): what a GPU has done by task pi(j) is at most 2 H_pi(j). The relaxation starts all but one job at zero."""
    start = relaxed_starts()
    middle = start + 0.5 * TIMES
    order = np.argsort(middle, kind="stable")
    done = np.cumsum(TIMES[order])
    assert start[1:] == pytest.approx(np.zeros(LIGHT), abs=1e-9)
    assert (done > 2.0 * middle[order] + 1e-9).sum() >= LIGHT - 1


def test_algorithm_1_is_not_within_its_bound() -> None:
    """alpha is 1 on one GPU, so that the bound is 3; the heavy job is nearly last."""
    here = instance()
    chunks = Chunks.of(here)
    order = np.argsort(relaxed_starts() + 0.5 * TIMES, kind="stable")
    made = schedule_in_order(here, chunks, order.astype(np.int64), "paper")
    assert made.objective / best() > 25.0


def test_the_order_of_the_relaxation_here_is_within_it() -> None:
    found = HareScheduler(growth=1.25, rule="paper").schedule(instance())
    assert found.schedule.objective <= 1.05 * best()
    assert found.relaxation.bound <= best()
