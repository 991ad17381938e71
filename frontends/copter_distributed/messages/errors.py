"""Errors of models that are spread over processes."""

from copter.runtime.errors import CopterError


class ShardLostError(CopterError, RuntimeError):
    """A shard died and cannot be restored: there is no directory, or restarts fail."""


class SupersededError(CopterError, RuntimeError):
    """Another coordinator continues this session, so this one may not change anything."""
