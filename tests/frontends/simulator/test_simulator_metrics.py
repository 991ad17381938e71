"""Figures over rounds and jobs."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from copter_frontends.simulator import RoundRecord
from copter_frontends.simulator.metrics import peak_rss_mb, spread, summarise
from copter_frontends.vocabulary import PlanStatus


def record(index: int, **facts: Any) -> RoundRecord:
    fields: dict[str, Any] = {
        "index": index,
        "now_s": 60.0 * index,
        "warmup": False,
        "active_jobs": 2,
        "running_jobs": 1,
        "queued_jobs": 1,
        "started": 0,
        "stopped": 0,
        "moved": 0,
        "gpus_used": {"t4": 2},
        "gpus_capacity": {"t4": 8},
        "objective": 1.0,
        "bound": 1.0,
        "gap": 0.0,
        "fractional_jobs": index,
        "status": PlanStatus.FEASIBLE,
        "prices": MappingProxyType({}),
        "timings": {"edit": 0.1, "solve": 0.2 * index},
        "round_s": 0.5,
        "overhead_s": 0.001,
        "variables": 100 * index,
        "completed": (),
        "peak_rss_mb": 100.0 + index,
    }
    return RoundRecord(**{**fields, **facts})


JOBS = {
    "submit_s": np.array([0.0, 3600.0, 7200.0]),
    "first_start_s": np.array([0.0, 3600.0, np.nan]),
    "completion_s": np.array([3600.0, 14400.0, np.nan]),
    "jct_s": np.array([3600.0, 10800.0, np.nan]),
    "restarts": np.array([0, 3, 0]),
    "gpu_seconds": np.array([7200.0, 14400.0, 60.0]),
    "queue_s": np.array([0.0, 7200.0, 900.0]),
}


def test_jobs_that_have_not_ended_are_left_out_of_times_but_not_of_the_first_submission():
    summary = summarise([record(0)], JOBS)
    assert summary["jobs_completed"] == 2
    assert summary["avg_jct_h"] == 2.0
    assert summary["makespan_h"] == 4.0
    assert summary["p99_jct_h"] == pytest.approx(np.percentile([1, 3], 99))
    assert summary["restarts_per_job"] == 1.5
    assert summary["gpu_hours_per_job"] == 3.0
    assert summary["queue_h_per_job"] == 1.0


def test_contention_is_over_the_rounds_that_have_jobs():
    summary = summarise([record(i, active_jobs=jobs) for i, jobs in enumerate((0, 2, 7))], JOBS)
    assert (summary["contention"], summary["contention_max"]) == (4.5, 7)
    assert summarise([record(0, active_jobs=0)], JOBS)["contention_max"] is None


def test_the_warm_up_is_left_out_of_round_statistics():
    rounds = [record(0, warmup=True, round_s=99.0, gpus_used={"t4": 8}), *(record(i) for i in (1, 2, 3))]
    summary = summarise(rounds, JOBS)
    assert (summary["rounds"], summary["warmup_rounds"]) == (3, 1)
    assert summary["round_s"] == {"p50": 0.5, "p95": 0.5, "p99": 0.5, "max": 0.5}
    assert summary["all_rounds_s"] == 0.5 * summary["rounds"]
    assert summary["variables"] == {"p50": 200.0, "max": 300.0}
    assert summary["fractional_jobs"] == {"p50": 2.0, "max": 3.0}
    assert summary["solve_s"]["max"] == pytest.approx(0.6)
    assert summary["shim_s"]["max"] == 0.0
    assert summary["utilisation"] == 0.25
    assert summary["rss_growth_mb"] == 2.0


def test_nothing_gives_none_and_not_nan():
    empty = {name: values[:0] for name, values in JOBS.items()}
    summary = summarise([], empty)
    assert summary["rounds"] == 0
    assert summary["jobs_completed"] == 0
    for key in ("avg_jct_h", "p99_jct_h", "makespan_h", "utilisation", "restarts_per_job", "rss_growth_mb"):
        assert summary[key] is None
    assert summary["round_s"] == {"p50": None, "p95": None, "p99": None, "max": None}


def test_spread_and_memory():
    assert spread([3.0, 1.0, 2.0]) == {"p50": 2.0, "p99": pytest.approx(2.98), "max": 3.0}
    assert 10 < peak_rss_mb() < 1e6
