"""Edits of many requests at once, each with a usage pattern of its own, from one matrix of all their columns."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from copter.model.checks import (
    Costs,
    Ints,
    checked_cost,
    checked_own_bounds,
    checked_sums,
    different,
    listed,
    require_order,
    stored_cost,
    whole_numbers,
)
from copter.model.columns import Columns
from copter.model.inventory import Inventory
from copter.model.private_rows import PrivateRows, split_pattern
from copter.model.usage import Usage, pattern_of
from copter.problem.linear_program import Floats, as_floats, checked_vector
from copter.runtime.errors import DimensionError, EditNotAllowedError, InvalidDataError


def _stored_costs(ids: list[Hashable], first: Ints, cost: Floats, kind: np.dtype[Any]) -> Costs:
    """Return the requests' costs in their storage type; the error names the request and its column."""
    try:
        return stored_cost("all", checked_cost("all", cost, len(cost)), kind)[0]
    except InvalidDataError:
        for request, begin, end in zip(ids, first[:-1].tolist(), first[1:].tolist(), strict=True):
            stored_cost(request, checked_cost(request, cost[begin:end], end - begin), kind)
        raise


class OwnRequests(Inventory):
    """The part of :class:`copter.Model` that adds and changes requests with patterns of their own, many at once."""

    def add_own_requests(
        self,
        requests: Sequence[Hashable],
        sizes: ArrayLike,
        cost: ArrayLike,
        usage: Usage,
        *,
        resources: Sequence[Hashable] | None = None,
        limit: ArrayLike = 1.0,
        at_least: ArrayLike = -np.inf,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = np.inf,
        integer: ArrayLike = False,
        private_rows: PrivateRows | None = None,
        private_sizes: ArrayLike = 0,
    ) -> None:
        """Add many requests, each with its own pattern, from one matrix; on an error, none is added.

        The costs are the objective coefficients: scale 1, offset 0.

        Parameters
        ----------
        requests : sequence of ids (k,)
        sizes : array_like of int (k,)
            Number of columns of each request, at least one.
        cost : array_like (n,)
            Costs of all columns, request by request; copied.
        usage, resources
            See :meth:`add_template`, with the columns of all requests, n in all.
        limit, at_least : float or array_like (k,)
        lower, upper : float or array_like (n,)
            Bounds of each column.
        integer : bool or array_like (k,)
            Whether each request's columns are integer.
        private_rows : PrivateRows, optional
            The rows of all requests, request by request, as one matrix (rows, n). A row has entries in its own
            request's columns only.
        private_sizes : array_like of int (k,)
            Number of private rows of each request.

        Raises
        ------
        DuplicateHandleError, DimensionError, InvalidDataError, UnknownHandleError
        """
        ids = listed("requests", requests)
        for request in ids:
            self._require_new(request)
        different(ids)
        require_order(
            ids, "requests", sizes=sizes, cost=cost, limit=limit, at_least=at_least, integer=integer,
            private_sizes=private_sizes,
        )  # fmt: skip
        if ids:
            bounds = limit, at_least, lower, upper
            own = self._own(ids, sizes, cost, (usage, resources), (private_rows, private_sizes), bounds)
            whole = checked_vector("integer", integer, len(ids), 0.0) != 0
            self.ledger.apply("add_own", ids, *own._replace(integer=whole))

    def update_columns(
        self,
        requests: Sequence[Hashable],
        sizes: ArrayLike,
        cost: ArrayLike,
        usage: Usage,
        *,
        resources: Sequence[Hashable] | None = None,
        limit: ArrayLike = 1.0,
        at_least: ArrayLike = -np.inf,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = np.inf,
        private_rows: PrivateRows | None = None,
        private_sizes: ArrayLike = 0,
        kept: ArrayLike = -1,
        kept_rows: ArrayLike = -1,
    ) -> None:
        """Give requests other columns and private rows, as many as wanted; on an error, none is changed.

        A request keeps its id, its place in the order, and whether its columns are integer. What `kept` and `kept_rows`
        name keeps its value, its dual and its place in the basis, so that the next solve starts from them. Arguments
        that are not listed are those of :meth:`add_own_requests`. Only a request that is not fixed can be changed, and
        solutions found before have no values for it any more.

        Parameters
        ----------
        kept : int or array_like of int (n,)
            For each new column, the number of the request's old column that it continues; -1 for none.
        kept_rows : int or array_like of int (rows,)
            For each new private row, the number of the request's old private row that it continues; -1 for none.

        Raises
        ------
        UnknownHandleError, DuplicateHandleError, DimensionError, InvalidDataError, EditNotAllowedError

        Examples
        --------
        >>> import copter
        >>> model = copter.Model(sense="max")
        >>> model.add_resource("gpu", 4)
        >>> model.add_request("job", [1.0, 1.8], {"gpu": [1, 2]})
        >>> model.update_columns(["job"], [3], [1.8, 2.5, 3.5], {"gpu": [2, 3, 4]}, kept=[1, -1, -1])
        >>> copter.Session(model).solve().of("job").tolist()
        [0.0, 0.0, 1.0]
        """
        ids = listed("requests", requests)
        require_order(
            ids, "requests", sizes=sizes, cost=cost, limit=limit, at_least=at_least, private_sizes=private_sizes
        )
        slots = self.ledger.slots(ids)
        different(ids, slots=slots)
        for request in ids:
            if self.ledger.matrix.fixed_of(self.ledger.slot_of[request]) >= 0:
                raise EditNotAllowedError(f"request {request!r} is fixed to one of its columns; unfix it first")
        if not ids:
            return
        bounds = limit, at_least, lower, upper
        own = self._own(ids, sizes, cost, (usage, resources), (private_rows, private_sizes), bounds)
        columns = self._continued("kept", ids, kept, np.diff(own.first), self.ledger.matrix.sizes_of(slots))
        counts = np.zeros(len(ids), dtype=np.int32) if own.private is None else np.diff(own.private[0])
        rows = self._continued("kept_rows", ids, kept_rows, counts, self.ledger.matrix.private_sizes(slots))
        for request, slot in zip(ids, slots.tolist(), strict=True):
            if self.ledger.matrix.slabs[slot].whole_each is not None:
                raise EditNotAllowedError(
                    f"request {request!r}: some of its columns are whole and some are not: remove it and add it again"
                )
        whole = np.array([self.ledger.matrix.slabs[slot].integer for slot in slots.tolist()], dtype=bool)
        self.ledger.apply("columns", ids, *own._replace(integer=whole), columns, rows)

    @staticmethod
    def _continued(what: str, ids: list[Hashable], given: ArrayLike, counts: Ints, before: Ints) -> Ints:
        """Return the old numbers of new columns or rows; each old one of a request may be continued once."""
        n = int(counts.sum())
        kept = whole_numbers(what, np.full(n, given) if isinstance(given, int | np.integer) else given, n)
        of = np.repeat(np.arange(len(ids)), counts)
        for at in np.flatnonzero((kept < -1) | (kept >= before[of]))[:1].tolist():
            raise InvalidDataError(
                f"request {ids[of[at]]!r}: {what} names {kept[at]}, there are numbers 0 to {before[of[at]] - 1} "
                "(-1 for a new one)"
            )
        named = np.flatnonzero(kept >= 0)
        pair = np.sort(of[named].astype(np.int64) << 32 | kept[named])
        for at in np.flatnonzero(pair[1:] == pair[:-1])[:1].tolist():
            raise InvalidDataError(f"request {ids[pair[at] >> 32]!r}: {what} names {pair[at] & 0xFFFFFFFF} twice")
        return kept

    def _own(
        self,
        ids: list[Hashable],
        sizes: ArrayLike,
        cost: ArrayLike,
        pattern: tuple[Usage, Sequence[Hashable] | None],
        private: tuple[PrivateRows | None, ArrayLike],
        bounds: tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike],
    ) -> Columns:
        """Return the checked columns of many requests.

        `pattern` holds usage and resources, `private` the private rows and their numbers, `bounds` the largest and the
        least sums, and the columns' lower and upper bounds.
        """
        limit, at_least, lower, upper = bounds
        counts = whole_numbers("sizes", sizes, len(ids))
        for at in np.flatnonzero(counts < 1)[:1].tolist():
            raise DimensionError(f"request {ids[at]!r}: a request needs at least one column, sizes has {counts[at]}")
        start, row, coefficient = pattern_of(*pattern, self.ledger.row)
        n, first = len(start) - 1, np.concatenate(([0], np.cumsum(counts)))
        if first[-1] != n:
            raise DimensionError(f"usage has {n} columns, sizes sum to {first[-1]}")
        given = as_floats("cost", cost)
        if given.shape != (n,):
            raise DimensionError(f"cost has shape {given.shape}, must be ({n},): a cost for each column")
        costs = _stored_costs(ids, first, given, self.cost_dtype)
        rounding = np.maximum.reduceat(np.abs(given - costs), first[:-1])
        limits, leasts = checked_sums(ids, limit, at_least)
        columns = first.astype(np.int32)
        rows = split_pattern(ids, columns, *private)
        low, high = checked_own_bounds(ids, lower, upper, limits, first)
        return Columns(columns, start, row, coefficient, costs, limits, leasts, rounding, rows, low, high)
