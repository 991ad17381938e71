"""What is looked up once for jobs that arrive together is each job's own; Chronus counts its jobs' service."""

from __future__ import annotations

import numpy as np
import pytest

from copter_frontends.goodput import GoodputModel, UnknownApplicationError
from copter_frontends.policies.chronus import ChronusPolicy
from copter_frontends.policies.chronus.alike_jobs import AlikeJobs
from copter_frontends.policies.chronus.job_modes import JobModes
from copter_frontends.policy_kit import (
    GoodputThroughputs,
    NodeInventory,
    Throughputs,
    ThroughputTable,
    TrainingThroughputs,
    representative_throughputs,
)
from copter_frontends.policy_kit.deadlines import DrawnRewards
from copter_frontends.vocabulary import Cluster, Configuration, InvalidJobError, Job, configurations_of

CLUSTER = Cluster.of({"t4": (4, 4), "rtx": (3, 8), "a100": (2, 8)})
RATES = ThroughputTable({name: {"t4": 1.0, "a100": 3.0} for name in ("bert", "cifar10")})


def of_goodput(unit: str) -> GoodputThroughputs:
    return GoodputThroughputs(CLUSTER, GoodputModel(configurations_of(CLUSTER)), unit=unit)  # type: ignore[arg-type]


def drawn(seed: int, many: int = 60) -> list[Job]:
    """Jobs of few kinds, each of them several times: fixed, with a goodput of their own, without work."""
    rng = np.random.default_rng(seed)

    def own(configuration: Configuration, progress: float) -> float:
        return 2.0 * configuration.gpus

    jobs = []
    for at in range(many):
        facts: dict[str, object] = [
            {},
            {"max_batch_size": 64},
            {"batch_size": 64},
            {"gpus": 2},
            {"min_gpus": 2},
            {"max_gpus": 2},
            {"goodput": own},
            {"goodput": {("a100", 4): 9.0, ("t4", 1): 1.0}},
        ][rng.integers(8)]
        work = float(rng.uniform(1e3, 1e7)) if "goodput" in facts or rng.random() < 0.8 else None
        gpus = int(2 ** rng.integers(0, 3))
        name = ("bert", "cifar10")[rng.integers(2)]
        jobs.append(Job(f"j{at}", name, float(at), work, gpus, **facts))  # type: ignore[arg-type]
    return jobs


@pytest.mark.parametrize("seed", [5, 6, 7])
@pytest.mark.parametrize("elastic", [False, True])
@pytest.mark.parametrize(
    "throughputs",
    [
        of_goodput("samples"),
        of_goodput("iterations"),
        RATES,
        TrainingThroughputs(CLUSTER, GoodputModel(configurations_of(CLUSTER))),
    ],
    ids=["samples", "iterations", "table", "training"],
)
def test_what_jobs_given_equal_share_is_each_jobs_own(throughputs: Throughputs, elastic: bool, seed: int) -> None:
    jobs = drawn(seed)
    if throughputs is RATES:
        jobs = [job for job in jobs if job.work_samples is not None]
    together, single = (JobModes(NodeInventory(CLUSTER), throughputs, True, elastic) for _ in range(2))
    known = AlikeJobs(jobs, together)
    assert known.work == [throughputs.work(job) for job in jobs]
    for job, group in zip(jobs, known.group.tolist(), strict=True):
        mine, own = known.groups[group], single.alike(job)
        assert (mine.gpus, mine.rates, mine.restart_s, mine.ways) == (own.gpus, own.rates, own.restart_s, own.ways)
    for job, (modes, times) in zip(jobs, together.ways_of(jobs), strict=True):
        expected = single.modes_of(job)
        assert modes == expected
        even = single.times_of(job, expected)
        assert times.work == even.work
        np.testing.assert_array_equal(times.time, even.time)
    if not isinstance(throughputs, ThroughputTable):
        assert len(known.groups) < len(jobs)


@pytest.mark.parametrize("seed", [5, 6, 7])
@pytest.mark.parametrize("throughputs", [of_goodput("samples"), RATES], ids=["goodput", "table"])
def test_rewards_of_jobs_given_equal_are_each_jobs_own(throughputs: Throughputs, seed: int) -> None:
    jobs = drawn(seed)
    if throughputs is RATES:
        jobs = [job for job in jobs if job.work_samples is not None]
    source = DrawnRewards(CLUSTER, throughputs, seed=seed)
    assert source.of_jobs(jobs) == [source(job) for job in jobs]


def test_an_unknown_application_among_many_adds_no_job() -> None:
    policy = ChronusPolicy(CLUSTER, representative_throughputs(CLUSTER))
    with pytest.raises(UnknownApplicationError, match="'nobody'"):
        policy.add_jobs([Job("a", "bert", 0.0), Job("b", "nobody", 0.0, 1e3)])
    assert not policy.jobs


def test_the_first_job_that_fits_nowhere_is_named() -> None:
    policy = ChronusPolicy(CLUSTER, representative_throughputs(CLUSTER))
    jobs = [Job("a", "bert", 0.0), Job("large", "bert", 0.0, requested_gpus=64), Job("huge", "bert", 0.0, gpus=99)]
    with pytest.raises(InvalidJobError, match="'large'"):
        policy.add_jobs(jobs)
    assert not policy.jobs


def test_jobs_with_gpus_have_their_service_and_jobs_without_wait() -> None:
    policy = ChronusPolicy(Cluster.of({"a100": (1, 4)}), RATES)
    for name, work in (("short", 3e3), ("long", 3e6)):
        policy.add_job(Job(name, "bert", 0.0, work_samples=work, requested_gpus=4))
    for now_s in (0.0, 300.0, 600.0):
        policy.plan(now_s)
        assert list(policy.held) == ["short"]
    short, long = policy.service["short"], policy.service["long"]
    assert (short.executed_s, short.gpu_s, short.waiting_s) == (600.0, 2400.0, 0.0)
    assert (long.executed_s, long.gpu_s, long.waiting_s) == (0.0, 0.0, 600.0)
    policy.remove_job("short")
    for now_s in (900.0, 1200.0):
        policy.plan(now_s)
    assert (long.executed_s, long.gpu_s, long.waiting_s) == (300.0, 1200.0, 0.0)
