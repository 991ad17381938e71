"""Transports of calls to shards, and one within a process for tests of the protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from copter_distributed.messages.messages import size_of
from copter_distributed.messages.traffic import Traffic
from copter_distributed.messages.turns import Order
from copter_distributed.shards.shard import Shard


@dataclass(frozen=True)
class Late:
    """A shard did not answer in time; its later answer is ignored."""


@dataclass(frozen=True)
class Lost:
    """A shard died before it answered; a new one of the same number replaces it."""


LATE, LOST = Late(), Lost()


@dataclass(frozen=True)
class ShardOptions:
    """Options that every shard of a session is made with.

    Attributes
    ----------
    sense : {"max", "min"}
    cost_dtype : str
    threads : int
        Threads of a shard's pricing pass; 0 for all processors of its machine.
    directory : str or None
        Directory to which all shards and the coordinator have access.
    sync : {"always", "batch", "never"}
    """

    sense: str
    cost_dtype: str = "float64"
    threads: int = 0
    directory: str | None = None
    sync: str = "batch"

    def arguments(self) -> tuple[Any, ...]:
        """Return the arguments of :class:`Shard` after its number."""
        return self.sense, self.cost_dtype, self.threads, self.directory, self.sync


class Transport(Protocol):
    """Interface: starts shards and carries calls to them.

    Attributes
    ----------
    traffic : Traffic
        Counts of all calls and replies so far.
    """

    traffic: Traffic

    def reserve(self, numbers: Sequence[int]) -> None:
        """Reserve processors for these shards, before the first of them starts."""

    def release(self) -> None:
        """Free the reservation and end the shards started in it."""

    def start(self, number: int, options: ShardOptions) -> None:
        """Start the shard with this number, or find a running one."""

    def stop(self, number: int) -> None:
        """End a shard for good."""

    def call(
        self, method: str, arguments: Mapping[int, tuple[Any, ...]], order: Order, seconds: float | None = None
    ) -> dict[int, Any]:
        """Call shards at the same time.

        Parameters
        ----------
        method : str
            Name of a method of :class:`Shard`.
        arguments : mapping of int to tuple
            Arguments by shard number.
        order : tuple of (term, number, births)
            Order of the call, and whom it is meant for: a shard refuses a call that comes after a later one, or that
            was sent before its last restart.
        seconds : float, optional
            Longest wait for late answers; None for no limit.

        Returns
        -------
        dict
            By shard number: (True, result, birth), (False, error, birth), LATE or LOST. A shard runs its calls in
            order, including those that were not waited for.
        """


class LocalTransport:
    """Shards in this process, called one after the other; tests can kill and delay them.

    Attributes
    ----------
    late : set of int
        Shards that answer too late to every call with a deadline.
    doomed : dict of int to int
        Shard -> number of further calls after which it dies: before running the call if the number is even, after it if
        odd.
    """

    def __init__(self) -> None:
        self.traffic = Traffic()
        self.late: set[int] = set()
        self.doomed: dict[int, int] = {}
        self.shards: dict[int, Shard] = {}
        self._options: dict[int, ShardOptions] = {}

    def reserve(self, numbers: Sequence[int]) -> None:
        """Do nothing: shards in this process need no reservation."""

    def release(self) -> None:
        """Do nothing: there is no reservation."""

    def start(self, number: int, options: ShardOptions) -> None:
        """Start a shard unless it is running."""
        if number not in self.shards:
            self.shards[number] = Shard(number, *options.arguments())
            self._options[number] = options

    def stop(self, number: int) -> None:
        """End a shard for good."""
        shard = self.shards.pop(number, None)
        self._options.pop(number, None)
        if shard is not None:
            close(shard)

    def kill(self, number: int) -> None:
        """Kill a shard: its state is lost except for what is on disk, and a new shard starts."""
        options = self._options[number]
        close(self.shards.pop(number))
        self.shards[number] = Shard(number, *options.arguments())

    def call(
        self, method: str, arguments: Mapping[int, tuple[Any, ...]], order: Order, seconds: float | None = None
    ) -> dict[int, Any]:
        """Call shards one after the other."""
        found: dict[int, Any] = {}
        for number, given in arguments.items():
            self.traffic.messages += 2
            self.traffic.sent += size_of(given)
            found[number] = self._one(number, method, given, order)
            if number in self.late and seconds is not None:
                found[number] = LATE
            self.traffic.received += size_of(found[number])
        return found

    def _one(self, number: int, method: str, given: tuple[Any, ...], order: Order) -> Any:
        left = self.doomed.get(number)
        if left is not None:
            self.doomed[number] = left - 2
            if left < 2:
                del self.doomed[number]
                if left == 1:
                    self.shards[number].invoke(method, given, order)
                self.kill(number)
                return LOST
        return self.shards[number].invoke(method, given, order)


def close(shard: Shard) -> None:
    """Close a shard's journal, as the end of its process would."""
    journal = shard.model.ledger.journal
    if journal is not None:
        shard.model.ledger.journal = None
        journal.close()
