"""What can be wrong with a job, a cluster or a trace; every message says what, where and how to fix it."""

from copter.errors import CopterError


class FrontendError(CopterError):
    """Base of every error that the frontends raise."""


class UnknownGpuTypeError(FrontendError, KeyError):
    """A GPU type that the cluster, or the table of throughput models, does not have."""

    __str__ = Exception.__str__


class InvalidClusterError(FrontendError, ValueError):
    """A cluster without GPUs, or with an impossible node."""


class InvalidJobError(FrontendError, ValueError):
    """A job with an impossible field, or one that fits nowhere in the cluster."""


class UnknownJobError(FrontendError, KeyError):
    """A job id that the policy does not hold (never added, or already removed)."""

    __str__ = Exception.__str__


class DuplicateJobError(FrontendError, ValueError):
    """A job id added twice."""


class CapacityInUseError(FrontendError, ValueError):
    """A capacity drop below what jobs that may not be moved are using, or below zero."""


class TraceError(FrontendError, ValueError):
    """A trace that cannot be used at all (no such column, no usable line)."""
