"""Transports of calls to shards, and one within a process for tests of the protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from copter.distributed.messages import size_of
from copter.distributed.shard import Shard
from copter.distributed.traffic import Traffic
from copter.distributed.turns import Order


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
        Seen by all shards and the coordinator.
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
        All that it has carried.
    """

    traffic: Traffic

    def reserve(self, numbers: Sequence[int]) -> None:
        """Reserve what these shards need, before the first of them starts."""

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
            By the shards' numbers.
        order : tuple of (term, number)
            Of the call: a shard refuses one that another has overtaken.
        seconds : float, optional
            How long to wait for those that answer late; None for as long as it takes.

        Returns
        -------
        dict
            By number (True, result, birth), (False, error, birth), LATE or LOST. A shard does its calls in order, those
            too that were not waited for.
        """


class LocalTransport:
    """Shards in this process, called one after the other; tests can kill and delay them.

    Attributes
    ----------
    late : set of int
        Shards that answer too late wherever there is a deadline.
    doomed : dict of int to int
        Shards that die after so many more calls: before the call is done where the number is even, after it where
        it is odd.
    """

    def __init__(self) -> None:
        self.traffic = Traffic()
        self.late: set[int] = set()
        self.doomed: dict[int, int] = {}
        self.shards: dict[int, Shard] = {}
        self._options: dict[int, ShardOptions] = {}

    def reserve(self, numbers: Sequence[int]) -> None:
        """Nothing: shards here need no place of their own."""

    def release(self) -> None:
        """Nothing was set aside."""

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
        """Kill a shard: what was not durable is lost, and a new one starts."""
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
    """Let go of a shard's journal, as the end of its process would."""
    journal = shard.model.ledger.journal
    if journal is not None:
        shard.model.ledger.journal = None
        journal.close()
