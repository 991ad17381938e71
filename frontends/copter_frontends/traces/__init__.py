"""Traces: readers of public formats, a sampler of days, and a generator for where there is no trace."""

from copter_frontends.traces.arrivals import ArrivalProfile, busy_day
from copter_frontends.traces.generator import generate_day
from copter_frontends.traces.readers import read_trace
from copter_frontends.traces.sampler import listed_jobs, sample_day, workload_jobs
from copter_frontends.traces.trace import SkippedLine, Trace, TraceFormat, TraceJob

__all__ = [
    "ArrivalProfile",
    "SkippedLine",
    "Trace",
    "TraceFormat",
    "TraceJob",
    "busy_day",
    "generate_day",
    "listed_jobs",
    "read_trace",
    "sample_day",
    "workload_jobs",
]
