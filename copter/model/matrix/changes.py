"""Record of the changes since a solve, for programs that are kept and patched (docs/method/blocks.md, K14)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]

MOST = 8  # changes that are remembered, per request of the model
LEAST_MOST = 10_000  # changes that are remembered in any case


@dataclass(frozen=True, slots=True)
class Mark:
    """A position in the sequence of edits.

    Attributes
    ----------
    shape : object
        An object that is replaced at every edit of rows, templates or the order of slots.
    place : int
        Number of edits of requests before it.
    """

    shape: object
    place: int


class Changes:
    """The requests whose bounds or contents have changed, in order; any other kind of edit invalidates all marks.

    Recorded are edits of the bounds of requests' sums, columns and private rows, and of contents: requests that are
    added, removed, or get other costs or columns. Bounds of resources are not recorded: they are few, so a kept program
    reads them all again.
    """

    def __init__(self) -> None:
        self._shape = object()
        self._slots: list[Ints] = []
        self._first = self._size = 0
        self._contents = 0  # number of edits of requests up to the last one of contents

    @property
    def mark(self) -> Mark:
        """Return a mark of the present state, from which later changes can be asked for."""
        return Mark(self._shape, self._first + len(self._slots))

    def anything(self) -> None:
        """Record an edit of rows, templates or the order of slots: no kept program can be patched any more."""
        self._shape = object()
        self._first += len(self._slots)
        self._slots.clear()
        self._size = 0

    def bounds(self, slots: Ints, n_requests: int) -> None:
        """Record that the bounds of the requests in these slots have changed; `n_requests` is the size of the model."""
        self._slots.append(slots)
        self._size += len(slots)
        while self._size > max(MOST * n_requests, LEAST_MOST):
            self._size -= len(self._slots.pop(0))
            self._first += 1

    def contents(self, slots: Ints, n_requests: int) -> None:
        """Record that requests were added to these slots or removed from them, or that their contents have changed."""
        self.bounds(slots, n_requests)
        self._contents = self._first + len(self._slots)

    def since(self, mark: Mark) -> Ints | None:
        """Return the slots whose bounds changed since a mark, ascending and unique; None if other edits were made or
        unknown.
        """
        return None if self._contents > mark.place else self.of_requests_since(mark)

    def of_requests_since(self, mark: Mark) -> Ints | None:
        """Return the slots whose bounds or contents changed since a mark, ascending and unique; None if other edits
        were made or unknown.
        """
        if mark.shape is not self._shape or mark.place < self._first:
            return None
        later = self._slots[mark.place - self._first :]
        slots = np.sort(np.concatenate(later)) if later else np.zeros(0, dtype=np.int32)
        first: Ints = slots[np.append(True, slots[1:] != slots[:-1])[: len(slots)]]
        return first
