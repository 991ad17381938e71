"""Storage of a model's solution: working columns, prices and own-row duals, readable by id or in bulk."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from copter.problem.explanation import Facts
from copter.problem.slots_then import table_of
from copter.runtime.errors import InvalidDataError, StaleSolutionError, UnknownHandleError

Floats = NDArray[np.float64]
Keys = NDArray[np.int64]
Offsets = NDArray[np.int64]
Value = TypeVar("Value")
Number = TypeVar("Number", bound=np.generic)

SUM = 0  # number of a request's sum in keys of its own rows; private rows have 1, 2, ...


def hashable(what: str, handle: Hashable) -> None:
    """Raise InvalidDataError if a value cannot be used as an id."""
    try:
        hash(handle)
    except TypeError:
        raise InvalidDataError(f"{what} {handle!r} is not hashable: ids must be (a tuple is, a list is not)") from None


@dataclass(frozen=True)
class Given(Generic[Value]):
    """A precomputed value of a pickled solution."""

    value: Value | None

    def __call__(self) -> Value:
        if self.value is None:
            raise StaleSolutionError("the model had been edited when this solution was pickled: solve it again")
        return self.value


@dataclass(frozen=True, slots=True)
class OwnDuals:
    """Duals of rows that belong to one request: its sum and its private rows.

    Attributes
    ----------
    key : ndarray (k,) int64
        slot << 32 | row, ascending: row 0 is the sum of the request's columns, row 1 + i its private row i.
    dual : ndarray (k,)
        In the signs of the model's sense.
    """

    key: Keys
    dual: Floats

    def between(self, first: Keys, last: Keys) -> tuple[Offsets, Floats]:
        """Return (offsets, duals) of many ranges of keys, concatenated."""
        begin, end = np.searchsorted(self.key, first), np.searchsorted(self.key, last)
        return sums_before(end - begin), self.dual[ranges(begin, end)]

    def in_order(self, slots: Keys) -> Floats:
        """Return the duals of all own rows of the requests in these slots, request by request."""
        return self.between(slots << 32, (slots + 1) << 32)[1]


class Behind(Protocol):
    """Interface of a solution to its model; methods raise StaleSolutionError if an edit since the solve prevents the
    answer.
    """

    def lowers(self, requests: Sequence[Hashable]) -> tuple[Offsets, Floats]:
        """Return (offsets, lower bounds) of the columns of requests, none of which may have been removed since the
        solve.
        """

    def x(self) -> Floats:
        """Return the values of all columns, in the order of ``Model.to_linear_program``."""

    def dense(self) -> tuple[Floats, Floats]:
        """Return (y, reduced costs) in the order of ``Model.to_linear_program``."""

    def own(self) -> OwnDuals:
        """Return the duals of sums and private rows."""

    def facts(self, request: Hashable) -> Facts:
        """Return the facts for one request's explanation."""


@dataclass(frozen=True, slots=True)
class Detached:
    """Values that a pickled solution holds in place of its model.

    Attributes
    ----------
    size : dict
        Number of columns of every request that was still in the model.
    lower : dict
        Lower bounds of the requests that have nonzero ones.
    values, pair, duals
        Values, (y, reduced costs) and own-row duals computed before pickling; None for those that could not be
        computed.
    """

    size: dict[Hashable, int]
    lower: dict[Hashable, Floats]
    values: Given[Floats]
    pair: Given[tuple[Floats, Floats]]
    duals: Given[OwnDuals]

    def lowers(self, requests: Sequence[Hashable]) -> tuple[Offsets, Floats]:
        """See :meth:`Behind.lowers`."""
        for request in requests:
            if request not in self.size:
                raise StaleSolutionError(f"request {request!r} had been removed when this solution was pickled")
        parts = [self.lower.get(request, np.zeros(self.size[request])) for request in requests]
        sizes = np.array([len(part) for part in parts], dtype=np.int64)
        return sums_before(sizes), np.concatenate([np.zeros(0), *parts])

    def x(self) -> Floats:
        """See :meth:`Behind.x`."""
        return self.values()

    def dense(self) -> tuple[Floats, Floats]:
        """See :meth:`Behind.dense`."""
        return self.pair()

    def own(self) -> OwnDuals:
        """See :meth:`Behind.own`."""
        return self.duals()

    def facts(self, request: Hashable) -> Facts:
        """Raise StaleSolutionError: a pickled solution has no model to explain from."""
        raise StaleSolutionError(f"request {request!r} cannot be explained without its model: solve it again")


@dataclass(frozen=True, slots=True)
class SparseValues:
    """Working columns and prices at the time of the solution; every other column is at its lower bound.

    Attributes
    ----------
    key : ndarray (k,) int64
        slot << 32 | column of every working column, ascending.
    values : ndarray (k,)
    y : ndarray (rows,)
        Prices by row slot, in the signs of the model's sense.
    slot_of, row_of : mapping, dict
        Slot of every request and row of every resource at the time of the solve.
    behind : Behind
    """

    key: Keys
    values: Floats
    y: Floats
    slot_of: Mapping[Hashable, int]
    row_of: dict[Hashable, int]
    behind: Behind
    _starts: list[Offsets] = field(default_factory=list, repr=False)

    def slots(self, requests: Sequence[Hashable]) -> Keys:
        """Return the slots of requests; raises UnknownHandleError for a request unknown at the solve."""
        try:
            return np.fromiter(map(table_of(self.slot_of).__getitem__, requests), dtype=np.int64, count=len(requests))
        except (KeyError, TypeError):
            for request in requests:
                hashable("request", request)
            wrong = next(each for each in requests if each not in self.slot_of)
            raise UnknownHandleError(f"request {wrong!r} was not in the model that this solution is of") from None

    def rows(self, resources: Sequence[Hashable]) -> Keys:
        """Return the rows of resources; raises UnknownHandleError for a resource unknown at the solve."""
        for resource in resources:
            hashable("resource", resource)
            if resource not in self.row_of:
                raise UnknownHandleError(f"resource {resource!r} was not in the model that this solution is of")
        return np.array([self.row_of[resource] for resource in resources], dtype=np.int64)

    def values_of(self, requests: Sequence[Hashable]) -> tuple[Offsets, Floats]:
        """Return (offsets, values) of the columns of requests, concatenated."""
        slot = self.slots(requests)
        start, x = self.behind.lowers(requests)
        begin, end = np.searchsorted(self.key, slot << 32), np.searchsorted(self.key, (slot + 1) << 32)
        chosen = ranges(begin, end)
        x[np.repeat(start[:-1], end - begin) + (self.key[chosen] & 0xFFFFFFFF)] = self.values[chosen]
        return start, x

    def reduced_costs_of(self, requests: Sequence[Hashable]) -> tuple[Offsets, Floats]:
        """Return (offsets, reduced costs) of the columns of requests, concatenated."""
        slot, reduced = self.slots(requests), self.behind.dense()[1]
        if not self._starts:
            start, _ = self.behind.lowers(list(self.slot_of))
            every = np.fromiter(self.slot_of.values(), dtype=np.int64, count=len(self.slot_of))
            place = np.zeros((int(every.max(initial=-1)) + 1, 2), dtype=np.int64)
            place[every, 0], place[every, 1] = start[:-1], start[1:]
            self._starts.append(place)
        begin, end = self._starts[0][slot].T
        return sums_before(end - begin), reduced[ranges(begin, end)]

    def detached(self) -> SparseValues:
        """Return the same values without a reference to the model."""
        size, lower = {}, {}
        for request in self.slot_of:
            with suppress(StaleSolutionError):
                _, bounds = self.behind.lowers([request])
                size[request] = len(bounds)
                if bounds.any():
                    lower[request] = bounds
        x, pair, own = None, None, None
        with suppress(StaleSolutionError):
            own = self.behind.own()
        with suppress(StaleSolutionError):
            x, pair = self.behind.x(), self.behind.dense()
        return replace(self, behind=Detached(size, lower, Given(x), Given(pair), Given(own)), _starts=[])


def sums_before(counts: Keys) -> Offsets:
    """Return 0, c0, c0 + c1, ...: the start of each piece and the end of the last."""
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts, dtype=np.int64)))


def ranges(begin: Keys, end: Keys) -> Keys:
    """Return begin[0], begin[0] + 1, ..., end[0] - 1, begin[1], ...: all ranges concatenated."""
    start = sums_before(end - begin)
    return np.arange(start[-1]) + np.repeat(begin - start[:-1], end - begin)


def distinct(values: NDArray[Number]) -> NDArray[Number]:
    """Return the different values, ascending. NumPy's ``unique`` hashes integers, a hundred times slower for keys."""
    ordered = np.sort(values)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered
