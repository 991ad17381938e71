"""Deltas with numbers at the limits: every policy plans with them, and what is beyond is refused at the door."""

from __future__ import annotations

import random
from typing import Any

import pytest
from served import TYPES

from copter_serve.service import limits
from copter_serve.service.cluster_record import ClusterRecord
from copter_serve.service.cluster_state import ClusterState
from copter_serve.service.delta import Delta
from copter_serve.service.policy_names import POLICY_NAMES, RATED
from copter_serve.service.problems import Problem
from copter_serve.service.scheduler import Scheduler

BEYOND: list[tuple[str, dict[str, Any]]] = [
    ("/add_jobs/0/work", {"add_jobs": [{"id": "a", "work": 1e150}]}),
    ("/add_jobs/0/weight", {"add_jobs": [{"id": "a", "weight": 1e301}]}),
    ("/add_jobs/0/weight", {"add_jobs": [{"id": "a", "weight": 1e-301}]}),
    ("/add_jobs/0/submit_s", {"add_jobs": [{"id": "a", "submit_s": 1e300}]}),
    ("/add_jobs/0/throughputs/t4/1", {"add_jobs": [{"id": "a", "throughputs": {"t4": {"1": 1e301}}}]}),
    ("/add_jobs/0/throughputs/t4/1", {"add_jobs": [{"id": "a", "throughputs": {"t4": {"1": 1e-301}}}]}),
    ("/throughputs/there/t4/2", {"throughputs": {"there": {"t4": {"2": 1e301}}}}),
    ("/change_jobs/0/weight", {"change_jobs": [{"id": "there", "weight": 1e301}]}),
]


class Told:
    """A scheduler that is told of deltas as a service tells it."""

    def __init__(self, policy: str) -> None:
        record = ClusterRecord.read({"types": TYPES, "policy": policy})
        self.policy, self.state = policy, ClusterState(record)
        self.scheduler = Scheduler(ClusterState(record), {}, 0)
        self.now_s = 0.0

    def plan(self, document: dict[str, Any]) -> dict[str, Any]:
        """The plan's header after a delta."""
        self.now_s += 60.0
        change = self.state.resolve(Delta.read(document), self.now_s)
        self.state.apply(change)
        self.scheduler.take(change)
        header: dict[str, Any] = self.scheduler.plan(self.now_s)["header"]
        return header


def extreme(rng: random.Random, least: float, most: float) -> float:
    return rng.choice([least, most, (least * most) ** 0.5, 1.0])


def job(rng: random.Random, policy: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": name,
        "work": extreme(rng, limits.LEAST_WORK, limits.MOST_WORK),
        "weight": extreme(rng, limits.LEAST_WEIGHT, limits.MOST_WEIGHT),
        "submit_s": rng.choice([0.0, 1.0, limits.MOST_S]),
        "progress": rng.choice([0.0, 0.5, 1.0 - 1e-15, 1.0]),
        "restarts": rng.choice([0, 1, 1_000_000]),
        "preemptible": rng.random() < 0.8,
        "requested_gpus": rng.choice([1, 3, 8, 1_000_000]),
    }
    if policy in RATED:
        kinds = {
            str(gpus): rng.choice([0.0, extreme(rng, limits.LEAST_RATE, limits.MOST_RATE)])
            for gpus in rng.sample([1, 2, 4, 8, 100], 3)
        }
        found["throughputs"] = {kind: dict(kinds) for kind in rng.sample(sorted(TYPES), rng.randint(0, 2))}
    else:
        found["application"] = rng.choice(["bert", "cifar10", "imagenet"])
        found["max_gpus"] = rng.choice([1, 8, 1_000_000])
    return found


@pytest.mark.parametrize("policy", POLICY_NAMES)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_policies_plan_with_every_number_that_is_accepted(policy: str) -> None:
    for seed in range(6):
        rng = random.Random(seed)
        told, there = Told(policy), 0
        for _ in range(6):
            names = list(told.state.jobs)
            document: dict[str, Any] = {"add_jobs": [job(rng, policy, f"j{there + k}") for k in range(4)]}
            there += 4
            if names:
                document["change_jobs"] = [
                    {"id": rng.choice(names), "weight": extreme(rng, limits.LEAST_WEIGHT, limits.MOST_WEIGHT)}
                ]
                if policy in RATED:
                    rate = extreme(rng, limits.LEAST_RATE, limits.MOST_RATE)
                    document["throughputs"] = {rng.choice(names): {rng.choice(sorted(TYPES)): {"1": rate}}}
            if rng.random() < 0.5:
                document["set_capacity"] = {"t4": rng.choice([0, 4, 16])}
            header = told.plan(document)
            assert header["failure"] is None, (seed, header["failure"])
            assert not told.scheduler._aside, seed


@pytest.mark.parametrize(("where", "document"), BEYOND)
def test_numbers_beyond_the_limits_are_refused_and_nothing_changes(where: str, document: dict[str, Any]) -> None:
    told = Told("allocation")
    told.plan({"add_jobs": [{"id": "there"}]})
    before = told.state.jobs["there"]
    with pytest.raises(Problem) as caught:
        told.plan(document)
    assert (caught.value.status, caught.value.where) == (422, where)
    assert "must be from" in caught.value.detail
    assert told.state.jobs == {"there": before}


@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_a_cluster_without_nodes_is_planned_and_comes_back(policy: str) -> None:
    told = Told(policy)
    work = {"id": "a", "work": 1e3, **({"throughputs": {"t4": {"1": 1.0}}} if policy in RATED else {})}
    if policy not in RATED:
        work["application"] = "cifar10"
    header = told.plan({"set_capacity": dict.fromkeys(TYPES, 0), "add_jobs": [work]})
    assert (header["failure"], header["running"]) == (None, 0)
    again = Scheduler(told.state, {}, header["version"])
    assert again.plan(120.0)["header"]["failure"] is None
    assert told.plan({"set_capacity": {"t4": 8}})["running"] == 1
