"""Edits of constraints on one request: limits, least sums, column bounds, private rows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from copter.model.checks import (
    Bound,
    Floats,
    Ints,
    checked_bounds,
    checked_least,
    checked_limit,
    checked_sums,
    different,
    listed,
    require_order,
)
from copter.model.inventory import Inventory
from copter.model.private_rows import PrivateRows, private_pattern
from copter.problem.linear_program import as_floats
from copter.runtime.errors import DimensionError, EditNotAllowedError, InvalidDataError


class RowEdits(Inventory):
    """The part of :class:`copter.Model` that changes constraints on one request."""

    # Sums and bounds of columns -----------------------------------------------------------------------------------

    def update_limit(self, request: Hashable, limit: float, at_least: float | None = None) -> None:
        """Change the largest sum of a request's columns (inf for no limit) and, if given, the least sum.

        Examples
        --------
        >>> import copter
        >>> model = copter.Model()
        >>> model.add_resource("gpu", 4)
        >>> model.add_request("job", [1.0], {"gpu": [1]})
        >>> model.update_limit("job", 2.0)
        >>> model.limit("job")
        2.0
        """
        lower, upper = self._plain_bounds(request)
        self._update_limits(request, limit, lower, upper, self.at_least(request) if at_least is None else at_least)

    def update_limits(self, requests: Sequence[Hashable], limits: ArrayLike, at_least: ArrayLike | None = None) -> None:
        """Call :meth:`update_limit` for many requests at once; on an error, none is changed.

        Parameters
        ----------
        requests : sequence of ids (k,)
        limits : float or array_like (k,)
        at_least : float or array_like (k,), optional
            Least sums, -inf for none; None leaves them as they are.

        Raises
        ------
        UnknownHandleError, DuplicateHandleError, DimensionError, InvalidDataError, EditNotAllowedError
            The error names the first request whose figures are wrong.
        """
        ids = listed("requests", requests)
        require_order(ids, "requests", limits=limits, at_least=at_least)
        slots = self.ledger.slots_of_edit(ids)
        different(ids, slots=slots)
        matrix = self.ledger.matrix
        limit, least = checked_sums(ids, limits, matrix.sums_of(slots)[1] if at_least is None else at_least)
        at, total, fixed = matrix.contradiction(slots, limit)
        if at >= 0:
            self._check_sum(ids[at], float(limit[at]), total, fixed)
        for at in np.flatnonzero(~(limit < np.inf) | ((least > -np.inf) & (least != limit))).tolist():
            self._require_worth(ids[at], float(limit[at]), float(least[at]))
        self.ledger.apply("sums", ids, limit, least)

    def _require_worth(
        self, request: Hashable, limit: float, least: float, lower: Bound = 0.0, upper: Bound = np.inf
    ) -> None:
        """Raise if a request with a worth would have more than a limit."""
        if self.ledger.slot(request) not in self.ledger.worths:
            return
        why = None
        if not limit < np.inf:
            why = "its limit would be infinite"
        elif least > -np.inf and least != limit:
            why = "its least sum would be below its limit"
        elif bool(np.any(lower)):
            why = "it would have lower bounds"
        elif float(np.min(upper, initial=np.inf)) < limit and self.fixed(request) is None:
            why = "its columns would have upper bounds below its limit"
        if why is not None:
            raise EditNotAllowedError(f"request {request!r} has a worth, and so a limit alone, but {why}")

    @staticmethod
    def _check_sum(request: Hashable, limit: float, total: float, fixed: bool) -> None:
        """Raise if a limit contradicts a request's least sum, bounds or fixed column."""
        if fixed:
            raise EditNotAllowedError(
                f"request {request!r} is fixed: the limit {limit:g} would not let it be (a finite one up to its upper "
                "bound would); unfix it first"
            )
        if not np.isfinite(total):
            raise InvalidDataError(f"request {request!r}: a limit needs finite lower bounds; give limit=inf or bounds")
        raise InvalidDataError(f"request {request!r}: lower bounds sum to {total:g}, above the limit {limit:g}")

    def update_bounds(self, request: Hashable, lower: ArrayLike | None = None, upper: ArrayLike | None = None) -> None:
        """Change the bounds of a request's columns, float or array_like (n,); None keeps that side.

        Examples
        --------
        >>> import copter
        >>> model = copter.Model(sense="max")
        >>> model.add_resource("gpu", 4)
        >>> model.add_request("job", [1.0], {"gpu": [1]}, upper=1.0)
        >>> model.update_bounds("job", upper=0.5)
        >>> copter.Session(model).solve().of("job").tolist()
        [0.5]
        """
        low, high = self._plain_bounds(request)
        self._update_limits(
            request,
            self.limit(request),
            low if lower is None else lower,
            high if upper is None else upper,
            self.at_least(request),
        )

    def _update_limits(
        self, request: Hashable, limit: float, lower: ArrayLike, upper: ArrayLike, at_least: float
    ) -> None:
        number = checked_limit(request, limit)
        least = checked_least(request, at_least, number)
        low, high = checked_bounds(
            request, lower, upper, number, self._template_at(self.ledger.slot(request)).n_columns
        )
        can_be_fixed = (
            isinstance(low, float) and low == 0.0 and isinstance(high, float) and number <= high and np.isfinite(number)
        )
        if self.fixed(request) is not None and not can_be_fixed:
            raise EditNotAllowedError(
                f"request {request!r} is fixed: these bounds would not let it be (lower bounds of zero, one upper "
                "bound, a finite limit up to it); unfix it first"
            )
        self._require_worth(request, number, least, low, high)
        self.ledger.apply("limits", request, number, low, high, least)

    # Private rows -------------------------------------------------------------------------------------------------

    def update_row_bounds(
        self,
        requests: Sequence[Hashable],
        lower: ArrayLike | Sequence[ArrayLike] | None = None,
        upper: ArrayLike | Sequence[ArrayLike] | None = None,
        *,
        row: int | None = None,
    ) -> None:
        """Change the bounds of the private rows of many requests at once; on an error, none is changed.

        Parameters
        ----------
        requests : sequence of ids (k,)
        lower, upper : array_like, optional
            (k, rows); or (rows,) or a float for all requests alike. If requests have different numbers of rows: a list
            with an array for each request, or one array of all rows, request by request. With `row`: float or (k,).
            None keeps that side.
        row : int, optional
            The one private row of each request to change; the others keep their bounds.

        Raises
        ------
        UnknownHandleError, DuplicateHandleError, DimensionError, InvalidDataError
            The error names the first request whose figures are wrong.
        """
        ids = listed("requests", requests)
        require_order(ids, "requests", lower=lower, upper=upper)
        slots = self.ledger.slots_of_edit(ids)
        different(ids, slots=slots)
        sizes = self.ledger.matrix.private_sizes(slots)
        first = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
        bounds = self.ledger.matrix.private_bounds_of(slots)
        if row is None:
            low, high = (
                now if given is None else self._bounds_of_all(what, given, sizes)
                for what, given, now in (("lower", lower, bounds[0]), ("upper", upper, bounds[1]))
            )
        else:
            low, high = (each.copy() for each in bounds)
            for what, given, target in (("lower", lower, low), ("upper", upper, high)):
                if given is not None:
                    target[self._places(ids, row, sizes, first)] = self._one_each(what, given, len(ids))
        wrong = np.isnan(low) | np.isnan(high) | np.isposinf(low) | np.isneginf(high) | (low > high)
        for at in np.flatnonzero(wrong)[:1].tolist():
            which = int(np.searchsorted(first, at, side="right")) - 1
            raise InvalidDataError(
                f"request {ids[which]!r}, private row {at - first[which]}: lower bound {low[at]} and upper bound "
                f"{high[at]} must be numbers (-inf and inf for none), the lower no more than the upper"
            )
        self.ledger.apply("private_bounds", ids, low, high)

    @staticmethod
    def _bounds_of_all(what: str, given: ArrayLike | Sequence[ArrayLike], sizes: Ints) -> Floats:
        """Return the bounds of all private rows of all requests, request by request."""
        total, width = int(sizes.sum()), int(sizes[0]) if len(sizes) else 0
        if isinstance(given, (list, tuple)) and len(given) == len(sizes) and any(np.ndim(each) for each in given):
            parts = [as_floats(what, each) for each in given]
            if [part.size for part in parts] == sizes.tolist():
                return np.concatenate([part.reshape(-1) for part in parts])
        array = as_floats(what, given)  # type: ignore[arg-type]
        if array.ndim == 0:
            return np.full(total, float(array))
        same = bool((sizes == width).all())
        if array.shape == (total,) or (same and array.shape == (len(sizes), width)):
            return array.reshape(-1)
        if same and array.shape == (width,):
            return np.tile(array, len(sizes))
        rows = f"({len(sizes)}, {width})" if same else f"({total},)"
        raise DimensionError(f"{what} has shape {array.shape}, the requests' private rows {rows}")

    @staticmethod
    def _places(ids: list[Hashable], row: Any, sizes: Ints, first: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the position of one private row of every request among all their private rows."""
        if isinstance(row, bool) or not isinstance(row, (int, np.integer)):
            raise InvalidDataError(f"row is {row!r}, must be a whole number")
        for at in np.flatnonzero((row < 0) | (row >= sizes))[:1].tolist():
            raise DimensionError(f"request {ids[at]!r} has {sizes[at]} private rows, no row {row}")
        return np.asarray(first[:-1] + row)

    @staticmethod
    def _one_each(what: str, given: Any, k: int) -> Floats:
        """Return one float for each of k requests; a scalar is repeated."""
        array = as_floats(what, given)
        if array.ndim and array.shape != (k,):
            raise DimensionError(f"{what} has shape {array.shape}, must be ({k},): one for each request")
        return np.broadcast_to(array, (k,))

    def update_private_rows(self, request: Hashable, private_rows: PrivateRows) -> None:
        """Replace the coefficients and bounds of a request's private rows; their number must stay the same.

        If the request shares a template, it gets its own pattern.

        Raises
        ------
        UnknownHandleError, DimensionError, InvalidDataError
        """
        template = self._template_at(self.ledger.slot(request))
        private = private_pattern(f"request {request!r}", private_rows, template.n_columns)
        self._require_rows(f"request {request!r}", private, template.n_private)
        if private is None:
            return
        with self.ledger.batch():
            self.ledger.apply("usage", request, (*template.contents()[:3], private))
            self.ledger.apply("private_bounds", [request], private[3], private[4])
