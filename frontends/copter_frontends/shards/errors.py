"""What can be wrong with shards, servers or loads; every message says what, where and how to fix it."""

from copter_frontends.vocabulary.errors import FrontendError


class ShardError(FrontendError, ValueError):
    """Shards, servers or loads that cannot be: a shard larger than any server, more replicas than servers, NaN."""


class NoRoomError(ShardError):
    """Copies for which no arrangement within the servers' memory was found; another choice of copies may have one."""


class UnknownServerError(FrontendError, KeyError):
    """A server or shard that the cluster does not have."""

    __str__ = Exception.__str__
