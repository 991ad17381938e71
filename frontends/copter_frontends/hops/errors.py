"""What can be wrong with Hops' own inputs."""

from copter_frontends.vocabulary.errors import FrontendError


class ThroughputDatabaseError(FrontendError, OSError):
    """A throughput database that cannot be opened, read or written; the file is left as it is."""


class ThroughputError(FrontendError, ValueError):
    """A throughput, or a time that it is made of, that is not finite or has the wrong sign."""
