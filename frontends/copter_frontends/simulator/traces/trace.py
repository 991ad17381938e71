"""A trace: the jobs of a cluster's log, or of a workload derived from one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum


class TraceFormat(str, Enum):
    """Kind of file that a trace was read from."""

    PHILLY = "philly"  # a cluster's log: time, duration, number of GPUs
    WORKLOAD = "workload"  # a scheduler's input: time, application
    GAVEL = "gavel"  # time, model, number of steps
    SHOCKWAVE = "shockwave"  # Gavel's columns, with durations and batch-size schedules
    CHRONUS = "chronus"  # Tiresias's columns, with deadlines
    TIRESIAS = "tiresias"  # time, duration, number of GPUs
    CLUSTER_LOG = "cluster-log"  # Slurm's log of Helios and of Acme: state, clock times, number of GPUs
    PHILLY_LOG = "philly-log"  # Philly's own JSON, with attempts
    PAI = "pai"  # Alibaba's tasks of 2020: instances and parts of GPUs
    SPOT = "spot"  # Alibaba's jobs of 2026: some may be evicted
    OPENB = "openb"  # Alibaba's pods, with parts of GPUs and allowed GPU types


@dataclass(frozen=True, slots=True)
class TraceJob:
    """One job of a trace.

    Attributes
    ----------
    submit_s : float
        Submission time, in seconds from the trace's start.
    gpus : int
        Requested GPUs.
    duration_s : float or None
        Running time on those GPUs; None in a workload.
    name, application, batch_size : str, str and int, or None
        Name, application and batch size of a workload's job; None in a log.
    model : str or None
        Name of the trained model, as in the trace.
    steps : float or None
        Training steps.
    weight : float
    deadlines : tuple of (float, float)
        (Seconds after submission, value of ending by then) of each deadline.
    batch_schedule : str or None
        How the batch size changes: static, gns or accordion.
    gpu_share : float
        Part of one GPU that the job uses.
    gpu_types : tuple of str
        Allowed GPU types; empty for any.
    priority : int
        Priority class; 0 is the lowest.
    tenant : str or None
    preemptible : bool
    reservation : (GPU type, GPUs) or None
    least_gpus, most_gpus : int and None or int
        Range of GPUs that the job may run on.
    line_number : int
        Number of the job's line in the file; 0 if unknown.
    """

    submit_s: float
    gpus: int
    duration_s: float | None = None
    name: str | None = None
    application: str | None = None
    batch_size: int | None = None
    model: str | None = None
    steps: float | None = None
    weight: float = 1.0
    deadlines: tuple[tuple[float, float], ...] = ()
    batch_schedule: str | None = None
    gpu_share: float = 1.0
    gpu_types: tuple[str, ...] = ()
    priority: int = 0
    tenant: str | None = None
    preemptible: bool = True
    reservation: tuple[str, int] | None = None
    least_gpus: int = 1
    most_gpus: int | None = None
    line_number: int = 0

    @property
    def gpu_hours(self) -> float:
        """GPUs times hours; 0 if the duration is unknown."""
        return 0.0 if self.duration_s is None else self.gpus * self.duration_s / 3600.0


@dataclass(frozen=True, slots=True)
class SkippedLine:
    """An unusable line: its number (the header is 1) and the reason."""

    line_number: int
    reason: str


@dataclass(frozen=True, slots=True)
class Trace:
    """The usable jobs of a file by submission time, and the skipped lines.

    Attributes
    ----------
    path : str
        Path of the file.
    format : TraceFormat
    jobs : tuple of TraceJob
        Jobs by submission time.
    skipped : list of SkippedLine
        Broken lines, in the file's order.
    filtered : int
        Number of valid lines left out on purpose: a log's jobs under a minute or of 1,000 GPU hours or more; in other
        traces, jobs without GPUs and jobs that never ran.
    start : datetime or None
        The clock time of ``submit_s == 0``, a midnight; None if the file has no clock times.
    lacks : str
        What the format does not tell, and what is taken in its place.
    """

    path: str
    format: TraceFormat
    jobs: tuple[TraceJob, ...]
    skipped: list[SkippedLine]
    filtered: int = 0
    start: datetime | None = None
    lacks: str = ""
