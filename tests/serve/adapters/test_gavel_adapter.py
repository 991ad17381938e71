"""Gavel's scheduler with copter's policies: its arguments by the policy's name, the optimum by SciPy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from copter.runtime.errors import InvalidDataError
from copter_frontends.policies.baselines.gavel import GavelObjective
from copter_serve.adapters.gavel import NAMES, GavelAdapter


@dataclass(frozen=True, order=True)
class JobId:
    """Gavel's JobIdPair: a single job, or two that share workers."""

    first: int
    second: int | None = None

    def is_pair(self) -> bool:
        """Whether it is two."""
        return self.second is not None


def call(policy: Any, state: Mapping[str, Any]) -> Any:
    """Call a policy as Gavel's scheduler does: by its name."""
    first, spec = (state["throughputs"], state["scale_factors"]), state["cluster_spec"]
    if policy.name.startswith("FinishTimeFairness"):
        middle = [state[each] for each in ("priority_weights", "times_since_start", "num_steps_remaining")]
        return policy.get_allocation(*first, *middle, spec)
    if policy.name.startswith("MaxMinFairness"):
        return policy.get_allocation(*first, state["priority_weights"], spec)
    if policy.name.startswith("MinTotalDuration"):
        return policy.get_allocation(*first, state["num_steps_remaining"], spec)
    return policy.get_allocation(*first, spec)


def example(jobs: int, seed: int = 0) -> dict[str, Any]:
    """Jobs on three worker types, as Gavel's scheduler would describe them."""
    rng = np.random.default_rng(seed)
    ids = [JobId(k) for k in range(jobs)]
    kinds = {"v100": 4.0, "p100": 2.0, "k80": 1.0}
    return {
        "throughputs": {
            job: {kind: speed * float(rng.uniform(0.3, 2.0)) for kind, speed in kinds.items()} for job in ids
        },
        "scale_factors": {job: int(rng.choice([1, 1, 2, 4])) for job in ids},
        "priority_weights": {job: float(rng.choice([1.0, 2.0])) for job in ids},
        "times_since_start": {job: float(rng.uniform(0, 1000)) for job in ids},
        "num_steps_remaining": {job: float(rng.uniform(1000, 9000)) for job in ids},
        "cluster_spec": {"v100": 4, "p100": 6, "k80": 8},
    }


def arrays(state: Mapping[str, Any], x: Any) -> tuple[Any, Any, Any, Any]:
    """(throughputs, shares) as (jobs, types), scale factors, workers."""
    ids, kinds = list(state["throughputs"]), sorted(state["cluster_spec"])
    rates, shares = (
        np.array([[table[job][kind] for kind in kinds] for job in ids]) for table in (state["throughputs"], x)
    )
    scale = np.array([state["scale_factors"][job] for job in ids])
    return rates, shares, scale, np.array([state["cluster_spec"][kind] for kind in kinds])


def best_level(value: Any, scale: Any, workers: Any) -> float:
    """max min_m sum_j value x, by SciPy."""
    m, n = value.shape
    c = np.zeros(m * n + 1)
    c[-1] = -1.0
    rows = [np.concatenate((np.eye(m)[k].repeat(n) * -value.ravel(), [1.0])) for k in range(m)]
    rows += [np.append(np.eye(m)[k].repeat(n), 0.0) for k in range(m)]
    rows += [np.append(np.outer(scale, np.eye(n)[j]).ravel(), 0.0) for j in range(n)]
    bound = np.concatenate((np.zeros(m), np.ones(m), workers))
    return float(-linprog(c, np.array(rows), bound, bounds=(0, None)).fun)


def test_an_objective_that_gavel_does_not_call_is_refused() -> None:
    with pytest.raises(ValueError, match="proportional_fairness"):
        GavelAdapter(GavelObjective.PROPORTIONAL_FAIRNESS)


@pytest.mark.parametrize("objective", list(NAMES))
@pytest.mark.parametrize("jobs", [1, 5, 20])
def test_gavels_calls(objective: GavelObjective, jobs: int) -> None:
    policy, state = GavelAdapter(objective), example(jobs)
    assert policy.name == NAMES[objective]
    for _ in range(2):  # the second call goes on from the first
        x = call(policy, state)
        rates, shares, scale, workers = arrays(state, x)
        assert (shares >= 0).all()
        assert (shares <= 1 + 1e-9).all()
        assert (shares.sum(axis=1) <= 1 + 1e-6).all()
        assert (scale @ shares <= workers + 1e-6).all()
        got = (rates * shares).sum(axis=1)
        if objective is GavelObjective.MAX_SUM_THROUGHPUT:
            c = -rates.ravel()
            m, n = rates.shape
            upper = np.vstack([np.kron(np.eye(m), np.ones(n)), np.kron(scale, np.eye(n))])
            assert got.sum() == pytest.approx(-linprog(c, upper, np.concatenate((np.ones(m), workers))).fun, rel=1e-6)
        elif objective is GavelObjective.MAX_MIN_FAIRNESS:
            weights = np.array([state["priority_weights"][job] for job in state["throughputs"]])
            proportional = rates @ workers / workers.sum()
            value = rates * (scale / (weights * proportional))[:, None]
            assert (value * shares).sum(axis=1).min() == pytest.approx(best_level(value, scale, workers), rel=1e-4)
        elif objective is GavelObjective.MAKESPAN:
            steps = np.array([state["num_steps_remaining"][job] for job in state["throughputs"]])
            value = rates / steps[:, None]
            assert (value * shares).sum(axis=1).min() == pytest.approx(best_level(value, scale, workers), rel=1e-4)
        else:
            assert (got > 0).all()


def test_jobs_come_and_go_between_calls() -> None:
    policy = GavelAdapter("max_min_fairness")
    for jobs in (3, 8, 5, 0, 4):
        state = example(jobs)
        x = call(policy, state)
        assert x is None if jobs == 0 else set(x) == set(state["throughputs"])


def test_what_does_not_go_with_the_name_is_refused() -> None:
    state = example(2)
    with pytest.raises(InvalidDataError, match="takes 4 arguments"):
        GavelAdapter().get_allocation(state["throughputs"], state["scale_factors"], state["cluster_spec"])
    pairs = {JobId(0, 1): {"v100": 1.0}}
    with pytest.raises(InvalidDataError, match="pairs"):
        GavelAdapter("max_sum_throughput").get_allocation(pairs, {JobId(0, 1): 1}, {"v100": 1})
    for wrong in (-1.0, math.nan, math.inf):
        with pytest.raises(InvalidDataError, match="finite"):
            GavelAdapter("max_sum_throughput").get_allocation({JobId(0): {"v100": wrong}}, {JobId(0): 1}, {"v100": 1})
