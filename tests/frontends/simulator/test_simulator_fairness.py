"""Finish-time fairness, latency ratios and fragments on cases worked by hand (docs/papers/baselines.md, B39-B43)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from copter_frontends.goodput import APPLICATIONS, GoodputModel
from copter_frontends.simulator import RoundRecord, SimulationResult
from copter_frontends.simulator.alone import GoodputAloneTimes, isolated_jct_s
from copter_frontends.simulator.fairness import (
    fairness_summary,
    finish_time_fairness,
    fragmentation_gpus,
    latency_ratios,
    latency_ratios_by_hour,
    mean_contention,
    partly_used_gpus,
    recent_latency_ratio,
)
from copter_frontends.vocabulary import Allocation, Cluster, Configuration, Job, PlanStatus


class Halving:
    """1,000 s on one GPU of type a and 500 s of b, in proportion to the GPUs; type c runs nothing."""

    def seconds(self, job: Job, gpu_type: str, gpus: int) -> float:
        return {"a": 1000.0, "b": 500.0}.get(gpu_type, math.inf) / gpus


def record(index: int, active: int, queued: int, used: int, capacity: dict[str, int]) -> RoundRecord:
    return RoundRecord(
        index=index, now_s=100.0 * index, warmup=False, active_jobs=active, running_jobs=active - queued,
        queued_jobs=queued, started=0, stopped=0, moved=0, gpus_used={"a": used}, gpus_capacity=capacity,
        objective=0.0, bound=0.0, gap=0.0, fractional_jobs=0, status=PlanStatus.FEASIBLE, prices={}, timings={},
        round_s=0.0, overhead_s=0.0, variables=0, completed=(), peak_rss_mb=1.0,
    )  # fmt: skip


def result(jobs: dict[str, tuple[float, float, float]], rounds: list[RoundRecord]) -> SimulationResult:
    """Jobs are {id: (submit_s, completion_s, queue_s)}."""
    submit, end, queue = (np.array(column) for column in zip(*jobs.values(), strict=True))
    columns = {
        "id": np.array(list(jobs)), "submit_s": submit, "completion_s": end, "jct_s": end - submit, "queue_s": queue,
    }  # fmt: skip
    return SimulationResult(4, 100.0, 0, tuple(rounds), columns, ())


ONE = {"a": 4}
TWO = {"a": 6, "b": 2}


def test_contention_is_the_mean_over_the_jobs_rounds():
    rounds = [record(i, active, 0, 0, ONE) for i, active in enumerate((1, 3, 2, 0))]
    found = mean_contention(result({"j": (0.0, 150.0, 0.0), "k": (50.0, 300.0, 0.0), "m": (301.0, 305.0, 0.0)}, rounds))
    np.testing.assert_allclose(found, [2.0, 2.5, 1.0])  # never below the job itself


def test_parts_of_gpus_are_interpolated_and_below_one_divided():
    job = Job("j", "x")
    assert isolated_jct_s(Halving(), job, "a", 2.0) == 500.0
    assert isolated_jct_s(Halving(), job, "a", 1.5) == 750.0
    assert isolated_jct_s(Halving(), job, "a", 0.25) == 4000.0
    assert isolated_jct_s(Halving(), job, "c", 2.0) == math.inf


def test_on_one_type_both_ways_are_jct_over_isolated_jct():
    rounds = [record(i, 2, 0, 0, ONE) for i in range(10)]  # two jobs: 2 GPUs each, 500 s
    found = finish_time_fairness(
        result({"j": (0.0, 400.0, 0.0), "k": (0.0, 1000.0, 0.0)}, rounds), [Job("j", "x"), Job("k", "x")], Halving()
    )
    for ratios in found.values():
        np.testing.assert_allclose(ratios.values, [0.8, 2.0])
        assert (ratios.worst, ratios.unfair_fraction) == (2.0, 0.5)
    values, shares = found["thesis"].cdf()
    assert (values.tolist(), shares.tolist()) == ([0.8, 2.0], [0.5, 1.0])


def test_on_two_types_the_thesis_takes_the_mean_of_ratios_and_the_artifact_the_ratio_of_means():
    rounds = [record(i, 2, 0, 0, TWO) for i in range(10)]  # 3 of a: 1000/3 s; 1 of b: 500 s; P = 3/4, 1/4
    found = finish_time_fairness(result({"j": (0.0, 600.0, 0.0)}, rounds), [Job("j", "x")], Halving())
    assert found["thesis"].worst == pytest.approx(0.75 * 600 / (1000 / 3) + 0.25 * 600 / 500)
    assert found["artifact"].worst == pytest.approx(600 / (0.75 * 1000 / 3 + 0.25 * 500))
    assert found["artifact"].worst <= found["thesis"].worst


def test_types_that_cannot_run_the_job_are_left_out():
    rounds = [record(i, 1, 0, 0, {"a": 1, "c": 3}) for i in range(20)]
    found = finish_time_fairness(result({"j": (0.0, 1500.0, 0.0)}, rounds), [Job("j", "x")], Halving())
    assert found["thesis"].worst == found["artifact"].worst == 1.5


def test_the_latency_ratio_is_waiting_over_the_time_alone_on_the_fastest_type():
    rounds = [record(0, 1, 0, 0, TWO)]
    ran = result({"j": (0.0, 900.0, 125.0), "k": (0.0, 5000.0, 1000.0), "never": (0.0, math.nan, 50.0)}, rounds)
    jobs = [Job("j", "x", requested_gpus=2), Job("k", "x", requested_gpus=1), Job("never", "x")]
    ratios = latency_ratios(ran, jobs, Halving())
    assert ratios.jobs == ("j", "k")
    np.testing.assert_allclose(ratios.values, [0.5, 2.0])
    assert recent_latency_ratio(ran, ratios, 5000.0, 1.0) == 2.0
    assert recent_latency_ratio(ran, ratios, 5000.0, 2.0) == 1.25
    assert recent_latency_ratio(ran, ratios, 100.0, 1.0) is None


def test_latency_ratios_by_hour_are_means_over_the_jobs_that_end_in_it():
    jobs = {"a": (0.0, 900.0, 125.0), "b": (0.0, 3600.0, 375.0), "c": (0.0, 3600.5, 1000.0), "d": (0.0, 10801.0, 250.0)}
    ran = result(jobs, [record(0, 1, 0, 0, TWO)])
    known = [Job(name, "x", requested_gpus=2) for name in jobs]
    ratios = latency_ratios(ran, known, Halving())
    np.testing.assert_allclose(ratios.values, [0.5, 1.5, 4.0, 1.0])
    by_hour = latency_ratios_by_hour(ran, ratios)
    assert by_hour == {1: 1.0, 2: 4.0, 4: 1.0}
    assert all(recent_latency_ratio(ran, ratios, 3600.0 * hour, 1.0) == value for hour, value in by_hour.items())
    assert recent_latency_ratio(ran, ratios, 3 * 3600.0, 1.0) is None
    assert fairness_summary(ran, known, Halving())["latency_ratio"]["worst_hour"] == 4.0


def test_fragments_are_gpus_idle_while_jobs_wait():
    rounds = [record(0, 3, 1, 3, ONE), record(1, 2, 0, 1, ONE), record(2, 2, 1, 2, ONE)]
    assert fragmentation_gpus(rounds) == pytest.approx((1 + 0 + 2) / 3)
    assert fragmentation_gpus([]) is None


def test_idle_gpus_of_partly_used_nodes():
    cluster = Cluster.of({"a": (3, 4)})
    plan = {"j": Allocation("a", 3, (("a-0", 3),)), "k": Allocation("a", 5, (("a-1", 4), ("a-2", 1)))}
    assert partly_used_gpus(plan, cluster) == 4


def test_times_alone_take_the_best_size_up_to_the_limit():
    sizes = [Configuration(1, 1, "t4"), Configuration(1, 2, "t4"), Configuration(1, 4, "t4")]
    model = GoodputModel(sizes)
    alone = GoodputAloneTimes(model)
    for gpus, size in ((1, 0), (3, 1), (64, 2)):
        best = min(model.training_time_s("bert", each) for each in sizes[: size + 1])
        expected = APPLICATIONS["bert"].restart_s + best
        assert alone.seconds(Job("j", "bert"), "t4", gpus) == pytest.approx(expected)
    half = Job("k", "bert", work_samples=0.5 * APPLICATIONS["bert"].work_samples)
    assert alone.seconds(half, "t4", 1) < alone.seconds(Job("j", "bert"), "t4", 1)
    assert alone.seconds(half, "a100", 1) == math.inf


def test_a_run_without_completed_jobs_has_a_summary_of_nones():
    found = fairness_summary(result({"j": (0.0, math.nan, 0.0)}, [record(0, 1, 0, 0, ONE)]), [Job("j", "x")], Halving())
    assert found["finish_time_fairness"]["thesis"]["worst"] is None
    assert found["latency_ratio"] == {"max": None, "mean": None, "worst_hour": None}
