"""Errors in Hops' own inputs."""

from copter_frontends.vocabulary.errors import FrontendError


class ThroughputDatabaseError(FrontendError, OSError):
    """A throughput database cannot be opened, read or written; the file is unchanged."""


class ThroughputError(FrontendError, ValueError):
    """A throughput, or a time it is computed from, is not finite or has the wrong sign."""
