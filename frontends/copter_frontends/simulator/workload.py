"""The jobs of a simulation: sampled from a trace, listed in a workload file, or generated."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from copter_frontends.goodput import ALL_APPLICATIONS
from copter_frontends.simulator.traces import (
    SkippedLine,
    TraceFormat,
    find_throughputs,
    generate_day,
    listed_jobs,
    read_throughputs,
    read_trace,
    sample_day,
    with_durations,
    workload_jobs,
)
from copter_frontends.vocabulary import Job
from copter_frontends.vocabulary.samples import WORKLOAD, given_or_sample

Work = Literal["trace", "full"]

JOBS_PER_GPU_DAY = 4.0
"""Default load: jobs per GPU in 24 hours, as in the thesis (40,000 jobs on 10,000 GPUs)."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs, with a description of their source, the trace's unusable lines, and whether a day was sampled.

    `weights` holds the weights of jobs that have one, by id; `round_s` the seconds between plans, if the workload sets
    them; `deadlines` the trace's own deadlines by job (seconds after submission, and the reward for ending by then);
    `drawn_from` the number of the trace's jobs from which a day was sampled; `lacks` what the trace does not tell.
    """

    jobs: list[Job]
    source: str
    skipped_lines: list[SkippedLine]
    sampled: bool = True
    weights: Mapping[str, float] = field(default_factory=dict)
    round_s: float | None = None
    deadlines: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    drawn_from: int | None = None
    lacks: str = ""


def make_workload(
    trace: str | None,
    jobs: int | None,
    hours: float,
    gpus: int,
    seed: int,
    work: Work = "trace",
    cap_batch: bool = False,
    throughputs: str | None = None,
    applications: Collection[str] = ALL_APPLICATIONS,
) -> Workload:
    """Make the jobs of a simulation.

    Parameters
    ----------
    trace : str, optional
        File to sample from, or "sample" for the shipped workload; without a trace the embedded generator makes the
        jobs. Workload files, which have times and applications, and other schedulers' traces, which have times, are
        used unchanged.
    jobs : int, optional
        Number of jobs over `hours`; by default :data:`JOBS_PER_GPU_DAY` for each of `gpus` and 24 hours. Of a file that
        is used unchanged, the number of first jobs used, by default all.
    hours : float
        Length of the window in which jobs arrive.
    gpus : int
        Size of the cluster.
    seed : int
        The same seed gives the same jobs.
    work : {"trace", "full"}
        Work of a sampled job: either as much as takes the trace's duration on the requested GPUs, or a full run of its
        application.
    cap_batch : bool
        Whether a workload file's batch sizes limit the jobs' batches (see :attr:`.Semantics.batch_limit`).
    throughputs : str, optional
        File of measured steps per second, for a trace with steps instead of durations (Gavel's); by default the file in
        the data directory, if there is one.
    applications : collection of str
        Names that a workload file may use.

    Raises
    ------
    TraceError
        If the trace cannot be used.
    """
    count = jobs if jobs is not None else max(1, round(JOBS_PER_GPU_DAY * gpus * hours / 24.0))
    if trace is None:
        made = generate_day(count, hours, seed, work)
        return Workload(made, f"embedded generator: {count:,} jobs over {hours:g} h", [])
    read = read_trace(given_or_sample(trace, WORKLOAD), applications)
    if read.format is TraceFormat.WORKLOAD:
        listed = workload_jobs(read, cap_batch)[:jobs]
        return Workload(listed, f"{trace}: a workload of {len(listed):,} jobs", read.skipped, sampled=False)
    if read.format is TraceFormat.PHILLY:
        drawn = sample_day(read, count, hours, seed, work)
        more = ", some more than once" if count > len(read.jobs) else ""
        source = f"{trace}: {count:,} jobs over {hours:g} h, drawn from its {len(read.jobs):,}{more}"
        return Workload(drawn, source, read.skipped, drawn_from=len(read.jobs))
    if any(job.duration_s is None for job in read.jobs):
        result = throughputs or find_throughputs(trace)
        read = with_durations(read, read_throughputs(result)) if result else read
    made = listed_jobs(read, seed, work)[:jobs]
    own = {job.id: line.deadlines for job, line in zip(made, read.jobs, strict=False) if line.deadlines}
    source = f"{trace}: {len(made):,} jobs of a {read.format.value} trace"
    return Workload(made, source, read.skipped, sampled=False, deadlines=own, lacks=read.lacks)
