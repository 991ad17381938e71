"""What queues ask for: workloads that are all or nothing, each with the ways in which it may run."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from copter_frontends.queues.quota_tree import Amounts


@dataclass(frozen=True, slots=True)
class Ask:
    """Workloads of one queue that are alike.

    Attributes
    ----------
    key : hashable
        Id of the request in the model.
    queue : str
    options : tuple of Amounts
        What one workload takes of each (flavor, resource), by the flavors it may be given; the first is preferred.
    value : float
        Of one workload that runs.
    priority : int
    since_s : float
        When the oldest of them came.
    count : int
    """

    key: Hashable
    queue: str
    options: tuple[Amounts, ...]
    value: float
    priority: int = 0
    since_s: float = 0.0
    count: int = 1
    queues: tuple[str, ...] = ()

    def queue_of(self, option: int) -> str:
        """The queue of an option."""
        return self.queues[option] if self.queues else self.queue
