"""Traces: readers of public formats, a sampler of days, and a generator of jobs without a trace."""

from copter_frontends.simulator.traces.arrivals import ArrivalProfile, busy_day
from copter_frontends.simulator.traces.generator import generate_day
from copter_frontends.simulator.traces.readers import read_trace
from copter_frontends.simulator.traces.sampler import listed_jobs, sample_day, workload_jobs
from copter_frontends.simulator.traces.throughput_file import find_throughputs, read_throughputs, with_durations
from copter_frontends.simulator.traces.trace import SkippedLine, Trace, TraceFormat, TraceJob

__all__ = [
    "ArrivalProfile",
    "SkippedLine",
    "Trace",
    "TraceFormat",
    "TraceJob",
    "busy_day",
    "find_throughputs",
    "generate_day",
    "listed_jobs",
    "read_throughputs",
    "read_trace",
    "sample_day",
    "with_durations",
    "workload_jobs",
]
