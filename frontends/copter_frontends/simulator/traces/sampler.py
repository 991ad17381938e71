"""Days of jobs sampled from a trace."""

from __future__ import annotations

from typing import Literal

import numpy as np

from copter_frontends.simulator.traces.arrivals import busy_day
from copter_frontends.simulator.traces.classes import check_day, check_work, classes_of, draw_applications, named_jobs
from copter_frontends.simulator.traces.durations import work_of_durations
from copter_frontends.simulator.traces.trace import Trace, TraceFormat
from copter_frontends.vocabulary import Job, TraceError


def sample_day(
    trace: Trace, jobs: int, hours: float = 24.0, seed: int = 0, work: Literal["full", "trace"] = "full"
) -> list[Job]:
    """Sample `jobs` jobs over `hours` from a cluster's log.

    Arrivals follow one real day of the trace (:func:`copter_frontends.simulator.traces.arrivals.busy_day`). Sizes and
    durations are those of jobs drawn from the whole trace, each at most once while there are enough. The GPU hours
    determine the application: under 1 cifar10, under 10 deepspeech2 or bert (at random), under 100 yolov3, otherwise
    imagenet.

    Parameters
    ----------
    trace : Trace
        A cluster's log in the Philly format, with durations and clock times.
    jobs : int
        Number of jobs, >= 1.
    hours : float
        Length of the window: up to 24 hours the day's busiest window of that length; for longer ones the day repeats.
    seed : int
        The same seed gives the same jobs.
    work : {"full", "trace"}
        "full": every job does its application's full run. "trace": a job's work takes the trace's duration on its
        requested GPUs of type v100, including the slowdown but no restarts.

    Returns
    -------
    list of Job
        Jobs by submission time. Requests above 64 GPUs are reduced to 64.

    Raises
    ------
    SettingsError
        If `jobs`, `hours` or `work` is out of range.
    TraceError
        If the trace is not in the Philly format or has no start: use :func:`workload_jobs` for a Sia workload,
        :func:`listed_jobs` for the other formats.
    """
    check_day(jobs, hours)
    check_work(work)
    if trace.format is not TraceFormat.PHILLY or trace.start is None:
        raise TraceError(
            f"{trace.path}: days are sampled from Philly logs with a start only; use workload_jobs for a Sia "
            "workload, listed_jobs for the other formats: they keep the jobs' times"
        )
    rng = np.random.default_rng(seed)
    _, profile = busy_day(np.array([job.submit_s for job in trace.jobs]), trace.start)
    times = profile.sample(jobs, hours, rng)
    drawn = rng.choice(len(trace.jobs), size=jobs, replace=jobs > len(trace.jobs))
    result = [trace.jobs[i] for i in drawn]
    applications = draw_applications(classes_of([job.gpu_hours for job in result]), rng)
    gpus = [job.gpus for job in result]
    durations_s = [float(job.duration_s or 0.0) for job in result]
    works = work_of_durations(applications, gpus, durations_s) if work == "trace" else None
    return named_jobs(applications, times, gpus, works)


def workload_jobs(trace: Trace, cap_batch: bool = False) -> list[Job]:
    """Return the jobs of a Sia workload unchanged: names, times, applications, requests; full runs.

    Parameters
    ----------
    trace : Trace
        A workload.
    cap_batch : bool
        Whether the workload's `batch_size` becomes each job's `max_batch_size`, as in Sia's estimator. By default the
        application's own limit holds, as when jobs run in Sia.

    Raises
    ------
    TraceError
        If the trace is a log: use :func:`sample_day`.
    """
    if trace.format is not TraceFormat.WORKLOAD:
        raise TraceError(f"{trace.path}: a cluster's log names no applications; use sample_day")
    return [
        Job(
            id=str(job.name),
            application=str(job.application),
            submit_s=job.submit_s,
            requested_gpus=job.gpus,
            max_batch_size=job.batch_size if cap_batch else None,
            min_gpus=job.least_gpus,
            max_gpus=job.most_gpus,
            weight=job.weight,
            priority=job.priority,
            tenant=job.tenant,
            preemptible=job.preemptible,
            reservation=job.reservation,
        )
        for job in trace.jobs
    ]


def listed_jobs(trace: Trace, seed: int = 0, work: Literal["full", "trace"] = "trace") -> list[Job]:
    """Return another scheduler's jobs with their times and requests, each as a representative application.

    The application follows from the job's GPU hours as in :func:`sample_day`, and so does its work.

    Parameters
    ----------
    trace : Trace
        A trace with durations: of Shockwave, Chronus or Tiresias, or Alibaba's openb.
    seed : int
        Seed of the random choice between a class's two applications.
    work : {"full", "trace"}

    Raises
    ------
    TraceError
        If the trace has no durations, such as Gavel's, which has steps.
    """
    check_work(work)
    unknown = [at for at, job in enumerate(trace.jobs) if job.duration_s is None]
    if unknown:
        raise TraceError(
            f"{trace.path}: the jobs of a {trace.format.value} trace have no durations, so their work is not known; "
            "give a file of throughputs (--throughputs), which turns their steps into durations"
        )
    rng = np.random.default_rng(seed)
    applications = draw_applications(classes_of([job.gpu_hours for job in trace.jobs]), rng)
    gpus = [job.gpus for job in trace.jobs]
    durations_s = [float(job.duration_s or 0.0) for job in trace.jobs]
    works = work_of_durations(applications, gpus, durations_s) if work == "trace" else None
    return named_jobs(applications, [job.submit_s for job in trace.jobs], gpus, works)
