"""Training speed of jobs: throughput, statistical efficiency, and their product, goodput (docs/method/goodput.md)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from copter_frontends.goodput.applications import (
    ALL_APPLICATIONS,
    APPLICATIONS,
    HYBRID_APPLICATIONS,
    Application,
    GpuProfile,
    application_of,
    noise_scale_at,
)
from copter_frontends.goodput.bootstrap import bootstrapped
from copter_frontends.goodput.efficiency import efficiency
from copter_frontends.goodput.errors import UnknownApplicationError
from copter_frontends.goodput.throughput import (
    ThroughputParameters,
    compute_time_s,
    step_time_s,
    sync_time_s,
    throughput,
)

if TYPE_CHECKING:
    from copter_frontends.goodput.model import PHASES, Batch, GoodputModel

# Imported when first asked for: they need Numba, and a service that only knows applications by name starts without it.
_LAZY = ("PHASES", "Batch", "GoodputModel")

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


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module("copter_frontends.goodput.model"), name)
    globals()[name] = value
    return value
