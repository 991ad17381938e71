"""What a change of GPUs costs: the same for all jobs, by application, or by job (docs/papers/hadar.md, H4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from copter.runtime.errors import SettingsError
from copter_frontends.policies.hadar import HadarPolicy
from copter_frontends.policy_kit import ThroughputTable
from copter_frontends.vocabulary import Allocation, Cluster, InvalidJobError, Job

ROUND_S = 360.0
RATES = {"fast": 4.05, "slow": 4.0}
Seconds = float | Mapping[str, float] | Callable[[Job], float]
MODES = ["lp", "online"]


def policy_of(restart_s: Seconds, mode: str = "lp") -> HadarPolicy:
    """Two jobs of four GPUs, of a large and a small model, on one fast and two slow servers of four."""
    source = ThroughputTable({"large": RATES, "small": RATES}, dict.fromkeys(("large", "small"), 1e5))
    cluster = Cluster.of({"fast": (1, 4), "slow": (2, 4)})
    return HadarPolicy(cluster, source, restart_s=restart_s, mode=mode)  # type: ignore[arg-type]


BY_JOB: list[Seconds] = [{"large": 10.0, "small": 1.0}, lambda job: 10.0 if job.application == "large" else 1.0]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("restart_s", BY_JOB)
@pytest.mark.parametrize(("application", "after"), [("large", "slow"), ("small", "fast")])
def test_a_small_gain_moves_a_job_whose_restart_is_short(
    application: str, after: str, restart_s: Seconds, mode: str
) -> None:
    """70 rounds on slow and 69 on fast: 1.4%, against 10 s or 1 s of 360."""
    policy = policy_of(restart_s, mode)
    policy.add_job(Job("j", application, requested_gpus=4))
    policy.pin("j", Allocation("slow", 4, (("slow-0", 4),)))
    policy.plan(0.0)
    policy.pin("j", None)
    assert policy.plan(ROUND_S).allocations["j"].gpu_type == after


@pytest.mark.parametrize("restart_s", BY_JOB)
def test_a_move_is_worth_the_round_less_the_jobs_own_restart(restart_s: Seconds) -> None:
    policy = policy_of(restart_s)
    for name in ("large", "small"):
        policy.add_job(Job(name, name, requested_gpus=4))
    values = policy.formulation.value(policy.terms(0.0))
    left = np.array([[1 - 10 / ROUND_S], [1 - 1 / ROUND_S]])
    assert values.worth == pytest.approx(np.array([[1 / 69, 1 / 70]] * 2))
    assert values.pure == pytest.approx(values.worth * left, rel=1e-14)
    assert values.mixed == pytest.approx(values.worth * left * 0.95, rel=1e-14)


def test_one_number_and_the_same_number_for_every_application_are_the_same() -> None:
    plans = []
    for restart_s in (10.0, dict.fromkeys(("large", "small"), 10.0)):
        policy = policy_of(restart_s)
        for name in ("large", "small"):
            policy.add_job(Job(name, name, requested_gpus=4))
        plans.append([(p.allocations, p.objective, p.bound) for p in (policy.plan(0.0), policy.plan(ROUND_S))])
    assert plans[0] == plans[1]


def test_a_restart_longer_than_the_round_leaves_nothing_of_it() -> None:
    policy = policy_of({"large": 1000.0})
    policy.add_job(Job("large", "large", requested_gpus=4))
    assert policy.formulation.value(policy.terms(0.0)).pure.tolist() == [[0.0, 0.0]]


def test_impossible_and_missing_restart_times_are_refused() -> None:
    with pytest.raises(SettingsError, match="restart_s >= 0"):
        policy_of({"large": -1.0})
    for restart_s in ({"large": 1.0}, lambda job: -1.0, lambda job: float("nan")):
        policy = policy_of(restart_s)
        with pytest.raises(InvalidJobError, match="restart time of 'small'"):
            policy.add_job(Job("small", "small", requested_gpus=4))
        assert policy.plan(0.0).allocations == {}
