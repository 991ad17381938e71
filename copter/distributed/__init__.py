"""The same session past one machine: requests over shards, each with a model of its own (docs/method/distributed.md).

``import copter`` does not import this package, and this package imports Ray only where a session is started over it.
"""

from copter.distributed.errors import ShardLostError, SupersededError
from copter.distributed.session import Session
from copter.distributed.traffic import Traffic
from copter.distributed.transport import LocalTransport, Transport

__all__ = ["LocalTransport", "Session", "ShardLostError", "SupersededError", "Traffic", "Transport"]
