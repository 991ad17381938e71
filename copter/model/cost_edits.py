"""Edits of objective coefficients: all costs of a request, scale and offset, or single columns."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from copter.model.checks import (
    LARGEST_COST,
    USUAL_OFFSET,
    USUAL_SCALE,
    Floats,
    Ints,
    checked_column,
    finite,
    listed,
    listed_for,
    plain_table,
    require_finite_costs,
    require_order,
    whole_numbers,
)
from copter.model.inventory import Inventory
from copter.problem.linear_program import checked_vector
from copter.runtime.errors import InvalidDataError

SHARED = 0.75  # equal cost arrays are stored once if at most this share of the given arrays are different objects


class CostEdits(Inventory):
    """The part of :class:`copter.Model` that changes objective coefficients."""

    def update_cost(self, request: Hashable, cost: ArrayLike, scale: float = 1.0, offset: float = 0.0) -> None:
        """Replace a request's objective coefficients by ``scale * cost + offset``; single-column costs are discarded.

        Examples
        --------
        >>> import copter
        >>> model = copter.Model()
        >>> model.add_resource("gpu", 4)
        >>> model.add_request("job", [1.0, 2.0], {"gpu": [1, 1]})
        >>> model.update_cost("job", [3.0, 4.0])
        >>> model.cost("job").tolist()
        [3.0, 4.0]
        """
        costs, rounding = self._stored_anew(request, cost)
        scale, offset = self._signed(request, scale, offset)
        require_finite_costs(request, costs, scale, offset)
        self.ledger.apply("cost", request, costs, scale, offset, rounding)

    def update_costs(self, requests: Sequence[Hashable], costs: ArrayLike | Sequence[ArrayLike]) -> None:
        """Replace the objective coefficients of many requests, all or none.

        Parameters
        ----------
        requests : sequence of ids (k,)
        costs : sequence of k array_like (n,), or array or DataFrame (k, n), or one array with the costs of all, request
            by request. A DataFrame's rows are taken in the order of `requests`; one whose index has the same ids in
            another order is refused.
            float64 arrays for requests that store float64 costs are copied without a Python loop. An array object
            that occurs many times is stored once.

        Examples
        --------
        >>> import copter
        >>> model = copter.Model()
        >>> model.add_resource("gpu", 4)
        >>> for job in ("a", "b"):
        ...     model.add_request(job, [1.0], {"gpu": [1]})
        >>> model.update_costs(["a", "b"], [[2.0], [3.0]])
        >>> model.cost("b").tolist()
        [3.0]
        """
        ids = listed("requests", requests)
        require_order(ids, "requests", costs=costs)
        costs = plain_table(costs)
        shared = self._shared(ids, costs)
        if shared is not None:
            self.ledger.apply("shared_costs", ids, *shared, self.ledger.sign, self.ledger.sign * 0.0)
            return
        table = self._side_by_side(ids, costs)
        if table is not None:
            self.ledger.apply("costs", ids, table, self.ledger.sign, self.ledger.sign * 0.0)
            return
        each = listed_for(ids, "costs", costs)
        with self.ledger.batch():
            for request, cost in zip(ids, each, strict=True):
                self.update_cost(request, cost)

    def _shared(self, ids: list[Hashable], costs: object) -> tuple[Floats, Ints, Ints] | None:
        """Return (different arrays end to end, start of each, array number of each request) if many costs are one
        object.
        """
        if not ids or self.cost_dtype != np.float64 or not isinstance(costs, (list, tuple)) or len(costs) != len(ids):
            return None
        number = {each: place for place, each in enumerate(dict.fromkeys(map(id, costs)))}
        if len(number) > SHARED * len(ids):
            return None
        which = np.fromiter(map(number.__getitem__, map(id, costs)), dtype=np.int32, count=len(costs))
        slots = self.ledger.slots_of_edit(ids)
        sizes, last = self.ledger.matrix.sizes_of(slots), np.empty(len(number), dtype=np.int64)
        last[which] = np.arange(len(ids))
        table = joined([costs[at] for at in last.tolist()], sizes[last])
        if table is None or not np.array_equal(sizes[last][which], sizes) or not within(table):
            return None
        if self.ledger.matrix.any_single_precision(slots):
            return None
        return table, np.concatenate(([0], np.cumsum(sizes[last]))).astype(np.int32), which

    def _side_by_side(self, ids: list[Hashable], costs: object) -> Floats | None:
        """Return the float64 costs of all requests copied into one array or matrix; None if they need individual
        checks.
        """
        if not ids or self.cost_dtype != np.float64:
            return None
        slots = self.ledger.slots_of_edit(ids)
        sizes = self.ledger.matrix.sizes_of(slots)
        if self.ledger.matrix.any_single_precision(slots):
            return None
        if type(costs) is np.ndarray and costs.dtype == np.float64:
            matrix = costs.ndim == 2 and costs.shape[0] == len(ids) and bool(np.all(sizes == costs.shape[1]))
            fits = matrix or costs.shape == (int(sizes.sum()),)
            table = np.array(costs, order="C") if fits else None
        else:
            table = joined(costs, sizes)
        return table if table is not None and within(table) else None

    def update_column_cost(self, request: Hashable, column: ArrayLike, cost: ArrayLike) -> None:
        """Set the objective coefficients of single columns; the request's other columns keep theirs.

        Parameters
        ----------
        request : hashable
        column : int or array_like of int (k,)
        cost : float or array_like (k,)
            They hold until the next :meth:`update_cost` or :meth:`rescale_cost`.
        """
        slot = self.ledger.slot(request)
        try:
            columns = np.atleast_1d(np.asarray(column))
        except ValueError:
            raise InvalidDataError(f"request {request!r}: columns {column!r} are no list of numbers") from None
        values = checked_vector(f"request {request!r}: cost of column", cost, columns.size, 0.0)
        own = dict(zip(*(array.tolist() for array in self.ledger.matrix.exceptions_of(slot)), strict=True))
        n = self._template_at(slot).n_columns
        for j, value in zip(columns.tolist(), values.tolist(), strict=True):
            own[checked_column(request, n, j)] = self.ledger.sign * value
        each = sorted(own)
        self.ledger.apply(
            "exceptions", request, np.array(each, dtype=np.int32), np.array([own[j] for j in each], dtype=float)
        )

    def rescale_cost(
        self,
        request: Hashable,
        scale: float,
        offset: float = 0.0,
        exceptions: Mapping[int, float] | None = None,
    ) -> None:
        """Change the scale and offset that apply to the stored cost, in constant time.

        `exceptions` {column: objective coefficient} replaces the single-column costs.

        Examples
        --------
        >>> import copter
        >>> model = copter.Model()
        >>> model.add_resource("gpu", 4)
        >>> model.add_request("job", [1.0, 2.0], {"gpu": [1, 1]})
        >>> model.rescale_cost("job", 10.0, 1.0)
        >>> model.cost("job").tolist()
        [11.0, 21.0]
        """
        slot = self.ledger.slot(request)
        scale, offset = self._signed(request, scale, offset)
        require_finite_costs(request, self.ledger.matrix.slabs[slot].cost, scale, offset)
        n = self._template_at(slot).n_columns
        if exceptions is not None and not isinstance(exceptions, Mapping):
            raise InvalidDataError(f"request {request!r}: exceptions is {exceptions!r}, must be {{column: cost}}")
        single = {
            checked_column(request, n, j): finite(f"request {request!r}: cost of column {j}", value)
            for j, value in (exceptions or {}).items()
        }
        columns = costs = None
        if single:
            columns = np.array(sorted(single), dtype=np.int32)
            costs = self.ledger.sign * np.array([single[j] for j in columns.tolist()])
        self.ledger.apply("scale", request, scale, offset, columns, costs)

    def rescale_costs(
        self,
        requests: Sequence[Hashable],
        scale: ArrayLike,
        offset: ArrayLike = 0.0,
        columns: ArrayLike | None = None,
        costs: ArrayLike = 0.0,
        worst: ArrayLike | None = None,
    ) -> None:
        """Call :meth:`rescale_cost` for many requests at once.

        Parameters
        ----------
        requests : sequence of ids (n,)
        scale, offset : float or array_like (n,)
        columns : array_like of int (n,), optional
            Column of each request whose objective coefficient is given in `costs` (n,); -1 for none.
        worst : float or array_like (n,), optional
            Worst objective coefficient: worse ones (smaller in a maximisation, larger in a minimisation) are replaced
            by it; infinite for no such limit. It applies to the columns not in `columns`, until costs or scale are set
            again.

        Examples
        --------
        >>> import copter
        >>> model = copter.Model(sense="max")
        >>> model.add_resource("gpu", 4)
        >>> model.add_request("job", [-1.0, 2.0], {"gpu": [1, 1]})
        >>> model.rescale_costs(["job"], 10.0, worst=0.5)
        >>> model.cost("job").tolist()
        [0.5, 20.0]
        """
        ids = listed("requests", requests)
        n = len(ids)
        require_order(ids, "requests", scale=scale, offset=offset, columns=columns, costs=costs, worst=worst)
        slots = self.ledger.slots_of_edit(ids)
        scales, offsets = checked_vector("scale", scale, n, 1.0), checked_vector("offset", offset, n, 0.0)
        single = checked_vector("costs", costs, n, 0.0)
        column = np.full(n, -1, dtype=np.int32) if columns is None else whole_numbers("columns", columns, n)
        sizes = self.ledger.matrix.sizes_of(slots)
        for at in np.flatnonzero((column < -1) | (column >= sizes)):
            checked_column(ids[int(at)], int(sizes[at]), int(column[at]))
        for place in np.flatnonzero((np.abs(scales) > USUAL_SCALE) | (np.abs(offsets) > USUAL_OFFSET)).tolist():
            require_finite_costs(
                ids[place],
                self.ledger.matrix.slabs[int(slots[place])].cost,
                float(scales[place]),
                float(offsets[place]),
            )
        sign = self.ledger.sign
        most = [] if worst is None else [sign * checked_vector("worst", worst, n, 0.0, int(sign))]
        self.ledger.apply("rescale", ids, sign * scales, sign * offsets, column, sign * single, *most)


def within(costs: Floats) -> bool:
    """Whether all costs are finite and at most `LARGEST_COST` in size."""
    return bool(costs.min(initial=0.0) >= -LARGEST_COST and costs.max(initial=0.0) <= LARGEST_COST)


def joined(costs: object, sizes: Ints) -> Floats | None:
    """Concatenate float64 arrays of the given sizes; returns None for any other input."""
    if not isinstance(costs, (list, tuple)) or len(costs) != len(sizes):
        return None
    if any(type(each) is not np.ndarray or each.dtype != np.float64 or each.ndim != 1 for each in costs):
        return None
    return np.concatenate(costs) if np.array_equal([len(each) for each in costs], sizes) else None
