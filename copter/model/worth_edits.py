"""Edits of concave worths: what a request's total is worth, and the rates at which its columns add to the total."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from copter.errors import DimensionError, EditNotAllowedError, InvalidDataError
from copter.model.checks import LARGEST_COST, Floats, different, listed, listed_for
from copter.model.inventory import Inventory
from copter.problem.linear_program import as_floats
from copter.worth import Worth


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
        slots = self.ledger.slots(ids)
        different(ids, slots=slots)
        if self.ledger.sense != "max":
            raise EditNotAllowedError("a concave worth is maximised: make the model with sense='max'")
        kept = self.ledger.worths
        found: list[tuple[str, tuple[float, ...]]] = []
        each_worth = (
            [worths] * len(ids) if isinstance(worths, Worth) or worths is None else listed_for(ids, "worths", worths)
        )
        each_rate = [None] * len(ids) if rates is None else list(rates) if not np.isscalar(rates) else [rates]  # type: ignore[arg-type]
        if len(each_rate) != len(ids):
            raise DimensionError(f"{len(ids)} requests, but rates of {len(each_rate)}")
        vectors = list[Floats]()
        for request, slot, worth, rate in zip(ids, slots.tolist(), each_worth, each_rate, strict=True):
            before = kept.get(slot)
            if worth is not None and not isinstance(worth, Worth):
                raise InvalidDataError(f"request {request!r}: worth is {worth!r}, must be one of copter.worth")
            if before is None and (worth is None or rate is None):
                raise InvalidDataError(f"request {request!r} has no worth yet: give both worth and rates")
            self._require_plain(request, slot)
            found.append((worth.kind, worth.numbers) if worth is not None else before[0])  # type: ignore[index]
            vectors.append(self._rates(request, rate) if rate is not None else before[1])  # type: ignore[index]
        self.ledger.apply("worth", ids, found, vectors)

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
