"""Edits of concave worths: what a request's total is worth, and the rates at which its columns add to the total."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from copter.model.checks import LARGEST_COST, Floats, different, listed, listed_for, plain_table, require_order
from copter.model.inventory import Inventory
from copter.problem.linear_program import as_floats
from copter.problem.worth import Worth
from copter.runtime.errors import DimensionError, EditNotAllowedError, InvalidDataError


class WorthEdits(Inventory):
    """The part of :class:`copter.Model` that changes concave worths (docs/method/concave_worth.md)."""

    def worth(self, request: Hashable) -> Worth | None:
        """Return a request's concave worth; None if its objective is linear."""
        held = self.ledger.worths.get(self.ledger.slot(request))
        return None if held is None else Worth(*held[0])

    def rates(self, request: Hashable) -> Floats | None:
        """Return a copy of the rates at which a request's columns add to its total, (n,); None without a worth."""
        held = self.ledger.worths.get(self.ledger.slot(request))
        return None if held is None else held[1].copy()

    def update_worth(self, request: Hashable, worth: Worth | None = None, rates: ArrayLike | None = None) -> None:
        """Replace a request's worth, its rates, or both; what is not given stays.

        Parameters
        ----------
        request : hashable
        worth : Worth, optional
        rates : array_like (n,), optional

        Raises
        ------
        UnknownHandleError, DimensionError, InvalidDataError, EditNotAllowedError

        Examples
        --------
        >>> import copter
        >>> model = copter.Model()
        >>> model.add_resources("gpu", 4)
        >>> model.add_request("job", 0.0, {"gpu": [1]}, limit=4, worth=copter.worth.log(), rates=1.0)
        >>> model.update_worth("job", copter.worth.log(weight=2.0))
        >>> model.worth("job").numbers
        (2.0, 0.0)
        """
        if worth is None and rates is None:
            raise InvalidDataError(f"request {request!r}: give a worth, rates, or both")
        self.update_worths(
            [request], None if worth is None else [worth], None if rates is None else [self._rates(request, rates)]
        )

    def update_worths(
        self,
        requests: Sequence[Hashable],
        worths: Worth | Sequence[Worth] | None = None,
        rates: ArrayLike | Sequence[ArrayLike] | None = None,
    ) -> None:
        """Replace the worths of many requests, their rates, or both; on an error, none is replaced.

        Parameters
        ----------
        requests : sequence of ids (k,)
        worths : Worth or sequence of k, optional
        rates : array_like (k, n) or sequence of k array_like (n,), optional

        Raises
        ------
        UnknownHandleError, DimensionError, InvalidDataError, EditNotAllowedError
        """
        ids = listed("requests", requests)
        require_order(ids, "requests", worths=worths, rates=rates)
        slots = self.ledger.slots(ids)
        different(ids, slots=slots)
        if self.ledger.sense != "max":
            raise EditNotAllowedError("a concave worth is maximised: make the model with sense='max'")
        each_worth = self._each(ids, worths)
        each_rate, sound = _rows(ids, rates)
        kept, found, vectors = self.ledger.worths, list[tuple[str, tuple[float, ...]]](), list[Floats]()
        for request, slot, worth, rate in zip(ids, slots.tolist(), each_worth, each_rate, strict=True):
            before = kept.get(slot)
            if worth is not None and not isinstance(worth, Worth):
                raise InvalidDataError(f"request {request!r}: worth is {worth!r}, must be one of copter.worth")
            if before is None and (worth is None or rate is None):
                raise InvalidDataError(f"request {request!r} has no worth yet: give both worth and rates")
            self._require_plain(request, slot)
            old = before or (("", ()), np.zeros(0))
            found.append(old[0] if worth is None else (worth.kind, worth.numbers))
            if sound and len(rate) == self._template_at(slot).n_columns:
                vectors.append(rate)
            else:
                vectors.append(old[1] if rate is None else self._rates(request, rate))
        self.ledger.apply("worth", ids, found, vectors)

    @staticmethod
    def _each(ids: list[Hashable], worths: Worth | Sequence[Worth] | None) -> list[Any]:
        """Return the worth of each request; None for those that stay."""
        if isinstance(worths, Worth) or worths is None:
            return [worths] * len(ids)
        if isinstance(worths, str) or not isinstance(worths, Iterable):
            raise InvalidDataError(f"worth is {worths!r}, must be one of copter.worth: copter.worth.log(), say")
        return listed_for(ids, "worths", worths)

    def drop_worth(self, request: Hashable) -> None:
        """Take a request's worth away, so that its objective is linear again."""
        if self.ledger.slot(request) not in self.ledger.worths:
            raise InvalidDataError(f"request {request!r} has no worth")
        self.ledger.apply("worth", [request], None, None)

    def _rates(self, request: Hashable, rates: ArrayLike) -> Floats:
        """Return checked rates of a request's columns."""
        n = self._template_at(self.ledger.slot(request)).n_columns
        vector = as_floats(f"request {request!r}: rates", rates)
        if vector.shape not in ((), (n,)):
            raise DimensionError(f"request {request!r}: rates have shape {vector.shape}, must be ({n},)")
        vector = np.full(n, vector) if vector.ndim == 0 else vector.copy()
        wrong = np.flatnonzero(~((vector >= 0.0) & (vector <= LARGEST_COST)))
        if len(wrong):
            at = int(wrong[0])
            raise InvalidDataError(f"request {request!r}: rate {at} is {vector[at]:g}, must be finite and not negative")
        if not vector.any():
            raise InvalidDataError(f"request {request!r}: all rates are zero, so that its total is always zero")
        return vector

    def _require_plain(self, request: Hashable, slot: int) -> None:
        """Raise EditNotAllowedError unless a request's columns have its sum's bounds only."""
        why = self.ledger.not_plain(slot)
        if why is not None:
            raise EditNotAllowedError(f"request {request!r} cannot have a worth: {why}")


def _rows(ids: list[Hashable], rates: ArrayLike | Sequence[ArrayLike] | None) -> tuple[list[Any], bool]:
    """Return (the rates of each request, or None for those that stay; whether they are checked copies)."""
    if rates is None:
        return [None] * len(ids), False
    if isinstance(rates, np.ndarray) and rates.ndim == 2 and len(rates) == len(ids) and rates.dtype == np.float64:
        table = rates.copy()
        return list(table), bool(((table >= 0.0) & (table <= LARGEST_COST)).all() and table.any(axis=1).all())
    rows = listed("rates", plain_table(rates))
    if len(rows) != len(ids):
        raise DimensionError(f"{len(ids)} requests, but rates of {len(rows)}")
    if rows and all(type(row) is np.ndarray and row.dtype == np.float64 and row.ndim == 1 and len(row) for row in rows):
        flat, first = np.concatenate([np.zeros(0), *rows]), np.cumsum([0, *map(len, rows)])
        if ((flat >= 0.0) & (flat <= LARGEST_COST)).all() and np.logical_or.reduceat(flat > 0.0, first[:-1]).all():
            return np.split(flat, first[1:-1]), True
    return rows, False
