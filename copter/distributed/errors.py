"""Errors of models that are spread over processes."""

from copter.errors import CopterError


class ShardLostError(CopterError, RuntimeError):
    """A shard died and cannot be restored: there is no directory, or it does not come back."""


class SupersededError(CopterError, RuntimeError):
    """Another coordinator continues this session: this one changes nothing any more."""
