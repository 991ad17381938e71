"""Errors about jobs, clusters and traces; each says what is wrong, where, and how to fix it."""

from copter.runtime.errors import CopterError


class FrontendError(CopterError):
    """Base of every error that the frontends raise."""


class UnknownGpuTypeError(FrontendError, KeyError):
    """A GPU type is missing from the cluster or from the table of throughput models."""

    __str__ = Exception.__str__


class InvalidClusterError(FrontendError, ValueError):
    """A cluster without GPUs, or with an impossible node."""


class InvalidJobError(FrontendError, ValueError):
    """A job with an impossible field, or one that fits nowhere in the cluster."""


class UnknownJobError(FrontendError, KeyError):
    """A job id is unknown to the policy: never added, or already removed."""

    __str__ = Exception.__str__


class DuplicateJobError(FrontendError, ValueError):
    """A job id added twice."""


class CapacityInUseError(FrontendError, ValueError):
    """A capacity would drop below what pinned or non-preemptible jobs use, or below zero."""


class TraceError(FrontendError, ValueError):
    """A trace is unusable: a column is missing or no line is valid."""
