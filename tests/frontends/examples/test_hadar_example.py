"""The example of the paper's Figure 1, job by job (docs/papers/hadar.md)."""

from __future__ import annotations

from typing import Any

import pytest

from copter_frontends.policies.hadar import AverageJct, EffectiveThroughput, HadarPolicy, OnlineRule
from copter_frontends.policies.hadar.utility import Utility
from copter_frontends.policy_kit import ThroughputTable
from copter_frontends.vocabulary import Cluster, Job

GPUS = {"J1": 3, "J2": 2, "J3": 2}
EPOCHS = {"J1": 80.0, "J2": 30.0, "J3": 50.0}
RATES = {  # epochs a round of the whole job, by the slowest type that it uses
    "J1": {"v100": 40.0, "p100": 20.0, "k80": 30.0},
    "J2": {"v100": 5.0, "p100": 15.0, "k80": 5.0},
    "J3": {"v100": 10.0, "p100": 2.0, "k80": 20.0},
}
GAVEL = [  # Figure 1a: the type that each job is on, round by round
    {"J1": "p100", "J2": "v100"},
    {"J2": "p100", "J3": "v100"},
    {"J2": "p100", "J3": "v100"},
    {"J1": "p100", "J3": "v100"},
    {"J1": "p100", "J3": "v100"},
    {"J1": "p100", "J3": "v100"},
]


def cluster() -> Cluster:
    return Cluster.of({"v100": (1, 2), "p100": (1, 3), "k80": (1, 1)})


def hadar(utility: Utility, **options: Any) -> tuple[dict[str, int], list[dict[str, dict[str, int]]]]:
    """Rounds that each job takes, and what the jobs have in each round."""
    table = ThroughputTable(RATES, EPOCHS)
    policy = HadarPolicy(cluster(), table, utility=utility, round_s=1.0, restart_s=0.0, spread_cost=0.0, **options)
    for job, gpus in GPUS.items():
        policy.add_job(Job(job, "example", requested_gpus=gpus))
    left, done, rounds = dict(EPOCHS), {}, []
    while left:
        plan = policy.plan(float(len(rounds)))
        rounds.append({job: allocation.by_type for job, allocation in plan.allocations.items()})
        for job, allocation in plan.allocations.items():
            left[job] -= min(RATES[job][kind] for kind in allocation.by_type)
            policy.update_job(job, progress=min(1.0 - left[job] / EPOCHS[job], 1.0))
        for job in [job for job, epochs in left.items() if epochs <= 0]:
            done[job] = len(rounds)
            policy.remove_job(job)
            del left[job]
    return done, rounds


def gavel() -> dict[str, int]:
    left, done = dict(EPOCHS), {}
    for number, placed in enumerate(GAVEL, 1):
        for job, kind in placed.items():
            left[job] -= RATES[job][kind]
            if left[job] <= 0:
                done.setdefault(job, number)
    return done


MODES: list[dict[str, Any]] = [
    {"mode": "lp"},
    {"mode": "lp_posted"},
    {"mode": "horizon"},
    {"mode": "online"},
    {"mode": "online", "rule": OnlineRule(prices="printed")},
]


@pytest.mark.parametrize("options", MODES, ids=["lp", "lp_posted", "horizon", "online", "printed"])
@pytest.mark.parametrize("utility", [EffectiveThroughput(), EffectiveThroughput(normalised=True), AverageJct()])
def test_hadar_takes_four_rounds_on_average(utility: Utility, options: dict[str, Any]) -> None:
    done, rounds = hadar(utility, **options)
    assert done == {"J1": 3, "J2": 2, "J3": 7}
    assert sum(done.values()) / 3 == 4
    assert max(done.values()) == 7
    assert rounds[0] == rounds[1] == {"J1": {"v100": 2, "k80": 1}, "J2": {"p100": 2}}, "a mixture, as in the figure"


def test_gavels_schedule_takes_five() -> None:
    done = gavel()
    assert done == {"J1": 6, "J2": 3, "J3": 6}
    assert sum(done.values()) / 3 == 5
    assert max(done.values()) == 6
