"""Days of jobs: sampled from a log, taken from a workload, or made up."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from copter.runtime.errors import SettingsError
from copter_frontends.goodput import APPLICATIONS, GoodputModel
from copter_frontends.simulator.traces import (
    ArrivalProfile,
    Trace,
    TraceFormat,
    TraceJob,
    busy_day,
    generate_day,
    read_trace,
    sample_day,
    workload_jobs,
)
from copter_frontends.simulator.traces.classes import classes_of
from copter_frontends.vocabulary import Configuration, Job, TraceError

PHILLY = Path(os.environ.get("COPTER_DATA", "../shared/data")) / "philly" / "philly_sia.csv.gz"
MONDAY = datetime(2017, 10, 9)


def small_log() -> Trace:
    """Two weekdays: Monday with 200 jobs from 8 to 18 h, Tuesday with 400, all within ten minutes."""
    rng = np.random.default_rng(5)
    submit = [*(8 * 3600 + rng.random(200) * 36000), *(86400 + 3600 + rng.random(400) * 600)]
    hours = np.exp(rng.uniform(np.log(0.05), np.log(900), 600))
    gpus = rng.choice([1, 2, 4, 8, 128], 600)
    jobs = [TraceJob(float(s), int(g), float(h * 3600 / g)) for s, g, h in zip(submit, gpus, hours, strict=True)]
    return Trace("small", TraceFormat.PHILLY, tuple(sorted(jobs, key=lambda j: j.submit_s)), [], 0, MONDAY)


LOG = small_log()
WORKLOAD = Trace("w", TraceFormat.WORKLOAD, (TraceJob(107.0, 6, None, "bert-0", "bert", 48),), [])
MAKERS: list[Callable[[int, float, int], list[Job]]] = [lambda n, h, s: sample_day(LOG, n, h, s), generate_day]


def shares(jobs: Sequence[Job]) -> dict[str, float]:
    """Share of each application, the two that share a class together."""
    names = Counter("medium" if job.application in ("bert", "deepspeech2") else job.application for job in jobs)
    return {name: names[name] / len(jobs) for name in ("cifar10", "medium", "yolov3", "imagenet")}


def hourly(times: Sequence[float]) -> NDArray[np.float64]:
    return np.bincount((np.asarray(times) // 3600 % 24).astype(int), minlength=24).astype(float)


@pytest.mark.parametrize("make", MAKERS)
@settings(max_examples=20, deadline=None)
@given(jobs=st.integers(1, 900), hours=st.floats(0.01, 60), seed=st.integers(0, 2**32 - 1))
def test_a_day_is_sorted_unique_in_time_and_repeatable(
    make: Callable[[int, float, int], list[Job]], jobs: int, hours: float, seed: int
) -> None:
    day = make(jobs, hours, seed)
    times = [job.submit_s for job in day]
    assert len(day) == len({job.id for job in day}) == jobs
    assert times == sorted(times)
    assert times[-1] < hours * 3600
    assert all(job.application in APPLICATIONS and job.id.startswith(job.application + "-") for job in day)
    assert all(1 <= job.requested_gpus <= 64 and job.work_samples is None for job in day)
    assert make(jobs, hours, seed) == day


@pytest.mark.parametrize("make", MAKERS)
def test_seeds_differ_and_bad_settings_are_refused(make: Callable[[int, float, int], list[Job]]) -> None:
    assert make(50, 24.0, 0) != make(50, 24.0, 1)
    with pytest.raises(SettingsError, match="jobs is 0"):
        make(0, 24.0, 0)
    for hours in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(SettingsError, match="hours"):
            make(5, hours, 0)


def test_classes_begin_at_their_lower_boundary() -> None:
    assert classes_of([0.0, 0.99, 1.0, 9.9, 10.0, 99.9, 100.0, 5000.0]).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_the_busy_day_is_not_one_that_a_single_burst_dominates() -> None:
    assert LOG.start is not None
    day, profile = busy_day(np.array([job.submit_s for job in LOG.jobs]), LOG.start)
    assert day == MONDAY
    assert profile.weights.sum() == pytest.approx(1.0)
    assert profile.weights[:48].sum() == 0
    only_burst = np.full(30, 7200.0)
    assert busy_day(only_burst, MONDAY)[1].weights[12] == 1.0


def test_a_short_window_is_the_busiest_of_the_day() -> None:
    weights = np.ones(144)
    weights[60:66] = 50.0
    times = ArrivalProfile.of(weights).sample(500, 1.0, np.random.default_rng(0))
    assert times.max() < 3600
    assert np.bincount((times // 600).astype(int), minlength=6).min() > 50  # six busy bins, evenly
    with pytest.raises(SettingsError, match="144"):
        ArrivalProfile.of([1.0, 2.0])
    with pytest.raises(SettingsError, match="not all of them 0"):
        ArrivalProfile.of(np.zeros(144))


def test_work_of_the_trace_takes_its_duration_on_the_reference_gpus() -> None:
    full, scaled = sample_day(LOG, 300, seed=3), sample_day(LOG, 300, seed=3, work="trace")
    assert [(j.id, j.submit_s, j.requested_gpus) for j in full] == [
        (j.id, j.submit_s, j.requested_gpus) for j in scaled
    ]
    durations = sorted(job.duration_s for job in LOG.jobs if job.duration_s)
    taken = []
    for job in scaled:
        place = Configuration(-(-job.requested_gpus // 8), job.requested_gpus, "v100")
        run_s = GoodputModel([place]).training_time_s(job.application, place)
        assert job.work_samples is not None
        taken.append(run_s * job.work_samples / APPLICATIONS[job.application].work_samples)
    nearest = [min(abs(d - t) / d for d in durations) for t in taken]
    assert max(nearest) < 1e-9


def test_bad_work_is_refused() -> None:
    with pytest.raises(SettingsError, match="'half'"):
        sample_day(LOG, 5, work="half")  # type: ignore[arg-type]


def test_workloads_keep_their_times_and_are_not_sampled() -> None:
    (job,) = workload_jobs(WORKLOAD)
    assert job == Job("bert-0", "bert", 107.0, None, 6)
    assert workload_jobs(WORKLOAD, cap_batch=True)[0].max_batch_size == 48
    with pytest.raises(TraceError, match="workload_jobs"):
        sample_day(WORKLOAD, 5)
    with pytest.raises(TraceError, match="sample_day"):
        workload_jobs(LOG)


def test_generated_hours_vary_but_follow_the_profile() -> None:
    days = [hourly([job.submit_s for job in generate_day(5000, seed=seed)]) for seed in range(20)]
    mean = np.mean(days, axis=0)
    assert mean[3] == mean[4] == 0
    assert mean.argmax() in (7, 8, 23)
    assert np.std(days, axis=0)[7] > 3 * math.sqrt(mean[7])  # far burstier than independent arrivals


@pytest.mark.skipif(not PHILLY.is_file(), reason=f"no trace at {PHILLY}: set COPTER_DATA to the data folder")
def test_generated_and_sampled_days_agree_with_the_philly_log() -> None:
    trace = read_trace(PHILLY)
    counts = np.bincount(classes_of([job.gpu_hours for job in trace.jobs]), minlength=4) / len(trace.jobs)
    assert trace.start is not None
    day, profile = busy_day(np.array([job.submit_s for job in trace.jobs]), trace.start)
    assert day == datetime(2017, 10, 12)
    real = profile.weights.reshape(24, 6).sum(axis=1)
    single = np.mean([job.gpus == 1 for job in trace.jobs])
    for jobs, least in ((sample_day(trace, 20_000, seed=1), 0.99), (generate_day(20_000, seed=1), 0.75)):
        np.testing.assert_allclose(list(shares(jobs).values()), counts, atol=0.02)
        assert np.mean([job.requested_gpus == 1 for job in jobs]) == pytest.approx(single, abs=0.02)
        assert np.corrcoef(hourly([job.submit_s for job in jobs]), real)[0, 1] > least
        drawn = Counter(job.application for job in jobs)
        assert drawn["bert"] / drawn["deepspeech2"] == pytest.approx(1.0, abs=0.1)
