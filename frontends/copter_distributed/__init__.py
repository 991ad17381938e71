"""Sessions beyond one machine: requests are spread over shards, each with its own model (docs/method/distributed.md).

``import copter`` does not import this package, and this package imports Ray only where a session is started over it.
"""

from copter_distributed.coordinator.session import Session
from copter_distributed.messages.errors import ShardLostError, SupersededError
from copter_distributed.messages.traffic import Traffic
from copter_distributed.shards.transport import LocalTransport, Transport

__all__ = ["LocalTransport", "Session", "ShardLostError", "SupersededError", "Traffic", "Transport"]
