"""Assignment of requests to shards."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

from copter.model.checks import hashable
from copter.runtime.errors import DuplicateHandleError, UnknownHandleError
from copter_distributed.messages.messages import Ints


class Deal:
    """Requests by shard with their sizes; changes by a batch can be undone.

    Attributes
    ----------
    load : dict of int to int
        Columns of every shard.
    owner, size, added_at : dict by id, in the order added
        Each request's shard, number of columns, and version at which it got them.
    version : int
        Number of edits so far.
    """

    def __init__(self, shards: Iterable[int]) -> None:
        self.load: dict[int, int] = dict.fromkeys(shards, 0)
        self.owner: dict[Hashable, int] = {}
        self.size: dict[Hashable, int] = {}
        self.added_at: dict[Hashable, int] = {}
        self.version = 0
        self._undo: list[Callable[[], Any]] = []

    def mark(self) -> int:
        """Return a position for :meth:`back_to`."""
        return len(self._undo)

    def back_to(self, mark: int) -> None:
        """Undo all changes since a mark."""
        while len(self._undo) > mark:
            self._undo.pop()()

    def settle(self) -> None:
        """Forget how to undo the changes so far."""
        self._undo.clear()

    def shard_of(self, request: Hashable) -> int:
        """Return a request's shard; raises UnknownHandleError for an unknown request."""
        try:
            return self.owner[request]
        except TypeError:
            hashable("request", request)
            raise
        except KeyError:
            raise UnknownHandleError(f"unknown request {request!r}: never added, or already removed") from None

    def lightest(self) -> int:
        """Return the shard with the fewest columns."""
        return min(self.load, key=lambda shard: (self.load[shard], shard))

    def add(self, request: Hashable, size: int, shard: int | None = None) -> int:
        """Assign a new request, by default to the lightest shard; returns the shard."""
        hashable("request", request)
        if request in self.owner:
            raise DuplicateHandleError(f"request {request!r} is in the model already; remove it first")
        where = self.lightest() if shard is None else shard
        self.owner[request], self.size[request] = where, size
        self.added_at[request] = self.version
        self.load[where] += size
        self._undo.append(lambda: self._forget(request))
        return where

    def remove(self, request: Hashable) -> int:
        """Remove a request; returns its shard."""
        shard, size, since = self.shard_of(request), self.size[request], self.added_at[request]
        self._forget(request)

        def again() -> None:
            self.owner[request], self.size[request], self.added_at[request] = shard, size, since
            self.load[shard] += size

        self._undo.append(again)
        return shard

    def resize(self, request: Hashable, size: int) -> None:
        """Note that a request gets other columns."""
        before, since = self.size[request], self.added_at[request]
        self._resized(request, size, self.version + 1)
        self._undo.append(lambda: self._resized(request, before, since))

    def _resized(self, request: Hashable, size: int, since: int) -> None:
        self.load[self.owner[request]] += size - self.size[request]
        self.size[request], self.added_at[request] = size, since

    def move(self, request: Hashable, shard: int) -> None:
        """Assign a request to another shard; its identity does not change."""
        before, size = self.shard_of(request), self.size[request]
        self._moved(request, before, shard, size)
        self._undo.append(lambda: self._moved(request, shard, before, size))

    def _moved(self, request: Hashable, before: int, after: int, size: int) -> None:
        self.load[before] -= size
        self.load[after] += size
        self.owner[request] = after

    def _forget(self, request: Hashable) -> None:
        self.load[self.owner.pop(request)] -= self.size.pop(request)
        del self.added_at[request]

    def split(self, requests: list[Hashable]) -> dict[int, Ints]:
        """Return the positions of a list of requests, by shard."""
        shards = np.array([self.shard_of(request) for request in requests], dtype=np.int64)
        return {shard: np.flatnonzero(shards == shard).astype(np.int32) for shard in np.unique(shards).tolist()}

    def of_shard(self, shard: int) -> list[Hashable]:
        """Return the requests of a shard."""
        return [request for request, owner in self.owner.items() if owner == shard]
