"""Schedules over several rounds: the program over time beside HiGHS, its bound beside exhaustive optima, its plans."""

from __future__ import annotations

import numpy as np
import pytest
from hadar_instances import by_highs
from test_hadar_guarantee import best_schedule, instance, run

from copter.runtime.errors import SettingsError
from copter_frontends.policies.hadar import (
    AverageJct,
    EffectiveThroughput,
    FinishTimeFairness,
    HadarPolicy,
    Horizon,
    Makespan,
)
from copter_frontends.policies.hadar.utility import Utility
from copter_frontends.policy_kit import ThroughputTable
from copter_frontends.vocabulary import Cluster, Job

UTILITIES: list[Utility] = [
    EffectiveThroughput(),
    AverageJct(),
    AverageJct(horizon_s=3600.0),
    Makespan(),
    FinishTimeFairness(),
]


def policy_of(seed: int, utility: Utility, horizon: Horizon | None = None) -> HadarPolicy:
    """Two to eight jobs of 1 to 4 GPUs on two or three types, one of which may be too small for a job."""
    rng = np.random.default_rng(seed)
    kinds = int(rng.integers(2, 4))
    cluster = Cluster.of({f"t{q}": (int(rng.integers(1, 3)), 2) for q in range(kinds)})
    rows = {
        f"j{j}": {f"t{q}": float(rng.uniform(0.5, 5)) for q in range(kinds)} for j in range(int(rng.integers(2, 9)))
    }
    table = ThroughputTable(rows, {name: float(rng.uniform(0.3, 12)) * 360.0 * 3 for name in rows})
    policy = HadarPolicy(cluster, table, utility=utility, mode="horizon", horizon=horizon, spread_cost=0.0)
    for name in rows:
        policy.add_job(Job(name, "any", requested_gpus=int(rng.integers(1, 5))))
    return policy


@pytest.mark.parametrize("utility", UTILITIES, ids=["throughput", "jct", "jct-1h", "makespan", "ftf"])
@pytest.mark.parametrize("seed", range(3))
def test_the_program_edited_from_round_to_round_is_that_of_highs(seed: int, utility: Utility) -> None:
    policy = policy_of(seed, utility)
    jobs = [job.id for job in policy.book.jobs]
    for t in range(4):
        plan = policy.plan(360.0 * t)
        solution = policy.last_solution
        assert solution is not None
        expected = by_highs(policy.model.to_linear_program(), whole=False).fun
        assert solution.objective == pytest.approx(expected, rel=1e-5, abs=1e-6)
        assert solution.bound >= expected - 1e-6 * (1 + abs(expected))
        assert plan.objective <= plan.bound * (1 + 1e-9) + 1e-9
        for job in plan.allocations:
            policy.update_job(job, progress=min(0.3 * (t + 1), 0.95))
        if t == 1 and len(jobs) > 2:
            policy.remove_job(jobs[0])
        if t == 2:
            name = policy.servers.types[0]
            policy.add_resources(name, 2)


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_over_single_rounds_holds_for_every_schedule(seed: int) -> None:
    cluster, rates, work, gpus = instance(seed)
    most = sum(cluster.capacity(kind) for kind in cluster.types)
    gpus = {name: min(count, most) for name, count in gpus.items()}
    policy = HadarPolicy(
        cluster, ThroughputTable(rates, work), utility=EffectiveThroughput(), mode="horizon",
        horizon=Horizon(16, 1.0), restart_s=0.0, spread_cost=0.0,
    )  # fmt: skip
    for name, count in gpus.items():
        policy.add_job(Job(name, "any", requested_gpus=count))
    policy.plan(0.0)
    assert policy.last_solution is not None
    bound = policy.ahead.bound_of(policy.last_solution)
    best = best_schedule(cluster, rates, work, gpus, 16)
    assert bound >= best * (1 - 1e-6)
    for name in gpus:
        policy.remove_job(name)
    worth, _ = run(policy, rates, work, gpus)
    assert worth <= best * (1 + 1e-9)
    assert worth >= 0.75 * best


def test_what_of_the_exhaustive_optimum_is_reached_looking_ahead_and_not() -> None:
    """The single round loses next to nothing on tiny cases, so it is not what keeps Hadar near Gavel."""
    shares: dict[str, list[float]] = {"lp": [], "horizon": []}
    for seed in range(6):
        cluster, rates, work, gpus = instance(seed)
        most = sum(cluster.capacity(kind) for kind in cluster.types)
        gpus = {name: min(count, most) for name, count in gpus.items()}
        best = best_schedule(cluster, rates, work, gpus, 16)
        for mode in shares:
            policy = HadarPolicy(
                cluster, ThroughputTable(rates, work), utility=EffectiveThroughput(), mode=mode,  # type: ignore[arg-type]
                restart_s=0.0, spread_cost=0.0,
            )  # fmt: skip
            shares[mode].append(run(policy, rates, work, gpus)[0] / best)
    assert np.mean(shares["lp"]) >= 0.98
    assert np.mean(shares["horizon"]) >= 0.93


def test_intervals_grow_and_wrong_ones_are_refused() -> None:
    assert Horizon(5, 2.0).lengths.tolist() == [1, 2, 4, 8, 16]
    assert Horizon(3, 1.0).starts.tolist() == [0, 1, 2, 3]
    assert Horizon().lengths[0] == 1
    for intervals, growth in ((0, 1.5), (4, 0.5), (4, np.nan)):
        with pytest.raises(SettingsError):
            Horizon(intervals, growth)


def test_a_long_job_waits_for_its_fast_type_if_that_is_soon_free() -> None:
    rows = {"short": {"fast": 1.0, "slow": 1.0}, "long": {"fast": 10.0, "slow": 0.5}}
    table = ThroughputTable(rows, {"short": 2 * 360.0, "long": 10 * 10 * 360.0})
    policy = HadarPolicy(
        Cluster.of({"fast": (1, 1), "slow": (1, 1)}), table, utility=AverageJct(), mode="horizon", restart_s=0.0
    )
    for name in rows:
        policy.add_job(Job(name, "any", requested_gpus=1))
    placed = {job: allocation.gpu_type for job, allocation in policy.plan(0.0).allocations.items()}
    assert placed == {"short": "slow", "long": "fast"}
