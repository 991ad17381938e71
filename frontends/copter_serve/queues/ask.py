"""Requests of queues: workloads that start as a whole or not at all, with the ways in which each may run."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from copter_serve.queues.quota_tree import Amounts


@dataclass(frozen=True, slots=True)
class Ask:
    """Identical workloads of one queue.

    Attributes
    ----------
    key : hashable
        Id of the request in the model.
    queue : str
    options : tuple of Amounts
        Each option: the amounts of each (flavor, resource) that one workload takes. The first is preferred.
    value : float
        Value of one workload that runs.
    priority : int
    since_s : float
        Arrival of the oldest workload, in seconds.
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
        """Return the queue whose quota an option uses."""
        return self.queues[option] if self.queues else self.queue
