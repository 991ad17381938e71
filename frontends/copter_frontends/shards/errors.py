"""Errors about shards, servers or loads; each says what is wrong, where, and how to fix it."""

from copter_frontends.vocabulary.errors import FrontendError


class ShardError(FrontendError, ValueError):
    """Invalid shards, servers or loads: a shard larger than any server, more replicas than servers, NaN."""


class NoRoomError(ShardError):
    """No arrangement of these copies fits the servers' memory; another choice of copies may fit."""


class UnknownServerError(FrontendError, KeyError):
    """A server or shard that the cluster does not have."""

    __str__ = Exception.__str__
