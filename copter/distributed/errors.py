"""What can go wrong only where a model is spread over processes."""

from copter.errors import CopterError


class ShardLostError(CopterError, RuntimeError):
    """A shard died and there is no directory that it could be read back from, or it does not come back."""


class SupersededError(CopterError, RuntimeError):
    """Another coordinator has begun to go on with this session: this one changes nothing any more."""
