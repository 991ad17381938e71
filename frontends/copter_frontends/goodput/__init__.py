"""Training speed of jobs: throughput, statistical efficiency, and their product, goodput (docs/method/goodput.md)."""

from copter_frontends.goodput.applications import (
    ALL_APPLICATIONS,
    APPLICATIONS,
    HYBRID_APPLICATIONS,
    Application,
    GpuProfile,
    application_of,
)
from copter_frontends.goodput.bootstrap import bootstrapped
from copter_frontends.goodput.efficiency import efficiency, noise_scale_at
from copter_frontends.goodput.errors import UnknownApplicationError
from copter_frontends.goodput.model import PHASES, Batch, GoodputModel
from copter_frontends.goodput.throughput import (
    ThroughputParameters,
    compute_time_s,
    step_time_s,
    sync_time_s,
    throughput,
)

__all__ = [
    "ALL_APPLICATIONS",
    "APPLICATIONS",
    "HYBRID_APPLICATIONS",
    "PHASES",
    "Application",
    "Batch",
    "GoodputModel",
    "GpuProfile",
    "ThroughputParameters",
    "UnknownApplicationError",
    "application_of",
    "bootstrapped",
    "compute_time_s",
    "efficiency",
    "noise_scale_at",
    "step_time_s",
    "sync_time_s",
    "throughput",
]
