"""The differential model: requests that draw on shared resources, edited in place."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from copter.model.assembly import assemble
from copter.model.checks import (
    USUAL_OFFSET,
    USUAL_SCALE,
    Bound,
    Costs,
    checked_bounds,
    checked_column,
    checked_cost,
    checked_costs,
    checked_least,
    checked_limit,
    checked_sums,
    cost_type,
    different,
    integrality,
    listed,
    one_of,
    require_finite_costs,
    require_order,
    stored_cost,
)
from copter.model.cost_edits import CostEdits
from copter.model.matrix import Template
from copter.model.matrix.contents import Contents, Private
from copter.model.own_requests import OwnRequests
from copter.model.private_rows import PrivateRows, bounds_of_rows, private_pattern
from copter.model.resource_edits import ResourceEdits
from copter.model.row_edits import RowEdits
from copter.model.usage import Usage
from copter.model.worth_edits import WorthEdits
from copter.problem.linear_program import LinearProgram, as_floats, checked_vector
from copter.problem.worth import Worth
from copter.runtime.errors import DimensionError, EditNotAllowedError, InvalidDataError

Floats = NDArray[np.float64]


class Model(ResourceEdits, RowEdits, CostEdits, OwnRequests, WorthEdits):
    """A resource-allocation LP kept alive: resources are rows, requests are blocks of columns.

    sense c'x + offset subject to, for every resource, sum of usage <= count (or within two bounds); for every request,
    at_least <= sum x <= limit, its private rows, and lower <= x <= upper (equation F2; F3 for a variable that requests
    share). The time of an edit is proportional to the nonzeros that it touches. Ids are the caller's (any hashable) and
    stay as they are; a removed id can be added again. A failed edit leaves the model as it was, a failed :meth:`batch`
    of edits too.

    Parameters
    ----------
    sense : {"max", "min"}
    offset : float
        Constant in the objective.
    cost_dtype : dtype
        How requests' costs are stored: float64, or float32 at half the memory. With float32 the model's costs are the
        rounded ones (:meth:`cost` returns them), and bounds are widened so that they also hold for the costs as given.

    Examples
    --------
    >>> import copter
    >>> model = copter.Model(sense="max")
    >>> model.add_resource("gpu", 4)
    >>> model.add_request("job", [1.0, 1.8], {"gpu": [1, 2]})
    >>> copter.Session(model).solve().of("job").tolist()
    [0.0, 1.0]
    """

    def __init__(
        self, sense: Literal["max", "min"] = "max", offset: float = 0.0, cost_dtype: DTypeLike = np.float64
    ) -> None:
        super().__init__(sense, offset, cost_dtype)

    def to_linear_program(self) -> LinearProgram:
        """Return the model as one LP, with the columns of the requests in the order added.

        Rows are the resources in the order added, then for each request its sum (if it has a limit or a least sum) and
        its private rows.

        Raises
        ------
        EditNotAllowedError
            If a request has a concave worth.

        Examples
        --------
        >>> import copter
        >>> model = copter.Model()
        >>> model.add_resource("gpu", 4)
        >>> model.add_request("job", [-1.0], {"gpu": [2]})
        >>> model.to_linear_program().row_upper.tolist()
        [4.0, 1.0]
        """
        if self.ledger.worths:
            raise EditNotAllowedError(
                f"{len(self.ledger.worths)} requests have a concave worth, which no linear program holds: drop_worth "
                "takes it away"
            )
        return assemble(self.ledger)

    def batch(self) -> AbstractContextManager[None]:
        """Apply all edits of a ``with`` block, or none if the block raises an exception.

        A failed batch inside another takes back its own edits only; the outer one may go on. A journal holds the
        outermost batch as one record. The time to take edits back is proportional to the edits (and one pass over the
        ids if requests, templates or resources were removed). No solve may run inside a batch.

        Examples
        --------
        >>> import copter
        >>> model = copter.Model()
        >>> with model.batch():
        ...     model.add_resource("gpu", 4)
        ...     model.add_request("job", [-1.0], {"gpu": [1]})
        >>> model.resources, model.requests
        (('gpu',), ('job',))
        """
        return self.ledger.batch()

    # Requests -----------------------------------------------------------------------------------------------------

    def add_request(
        self,
        request: Hashable,
        cost: ArrayLike,
        usage: Usage | None = None,
        *,
        template: Template | None = None,
        resources: Sequence[Hashable] | None = None,
        limit: float = 1.0,
        at_least: float = -np.inf,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = np.inf,
        integer: ArrayLike = False,
        scale: float = 1.0,
        offset: float = 0.0,
        cost_dtype: DTypeLike | None = None,
        private_rows: PrivateRows | None = None,
        row_lower: ArrayLike | None = None,
        row_upper: ArrayLike | None = None,
        worth: Worth | None = None,
        rates: ArrayLike | None = None,
    ) -> None:
        """Add a block of columns; its objective coefficients are ``scale * cost + offset``.

        Parameters
        ----------
        request : hashable
            New id.
        cost : array_like (n,)
            Copied; with a worth also one number for all columns.
        usage, resources
            See :meth:`add_template`; or
        template : Template
            A pattern that :meth:`add_template` returned.
        limit : float
            The columns sum to at most this; inf for no limit.
        at_least : float
            The columns sum to at least this, so that the request must be served; -inf for no such bound.
        lower, upper : float or array_like (n,)
            Bounds of each column. By default only the limit bounds a column from above.
        integer : bool or array_like of bool (n,)
            Whether the columns must be whole in an integer plan (the LP ignores it); an array says it of each column.
        cost_dtype : dtype, optional
            float64 or float32; the model's own by default. Kept by later cost edits.
        private_rows : PrivateRows, optional
            Rows over these columns alone; a template has its own.
        row_lower, row_upper : float or array_like (rows,), optional
            Bounds of the private rows, to replace those that came with the rows' coefficients.
        worth : Worth, optional
            A concave function of the request's total rates'x, added to the objective of a maximisation
            (`copter.worth`; equation W1). Such a request has a finite limit, and no bounds or rows besides.
        rates : float or array_like (n,), optional
            What a unit of each column adds to the total; needed with a worth.

        Raises
        ------
        DuplicateHandleError, DimensionError, InvalidDataError, UnknownHandleError
        EditNotAllowedError
            For a worth in a minimisation, or of a request with other bounds.

        Examples
        --------
        >>> import copter
        >>> model = copter.Model(sense="max")
        >>> model.add_resource("gpu", 4)
        >>> model.add_request("job", [1.0, 1.8], {"gpu": [1, 2]}, integer=True)
        >>> model.requests
        ('job',)
        """
        self._require_new(request)
        one_of(request, usage, template)
        source: Template | Contents
        if template is not None:
            self._require_template(template, f"request {request!r}: ")
            if private_rows is not None:
                raise InvalidDataError(
                    f"request {request!r}: private rows belong to the template; row_lower and row_upper are its own"
                )
            source, n, private = template, template.n_columns, template.private
        else:
            pattern = self._own_pattern(request, usage, resources)
            n = len(pattern[0]) - 1
            private = private_pattern(f"request {request!r}", private_rows, n)
            source = (*pattern, private)
        kind = self.cost_dtype if cost_dtype is None else cost_type(cost_dtype)
        cost = np.full(n, cost) if worth is not None and np.ndim(cost) == 0 else cost
        whole = integrality(f"request {request!r}: integer", integer, n)
        costs, rounding = stored_cost(request, checked_cost(request, cost, n), kind)
        limit = checked_limit(request, limit)
        least = checked_least(request, at_least, limit)
        low, high = checked_bounds(request, lower, upper, limit, n)
        scale, offset = self._signed(request, scale, offset)
        require_finite_costs(request, costs, scale, offset)
        bounds = private_table([request], private, row_lower, row_upper)
        rest = (source, costs, limit, low, high, scale, offset, whole, rounding, least, bounds)
        if worth is None and rates is None:
            self.ledger.apply("add", request, *rest)
            return
        with self.batch():
            self.ledger.apply("add", request, *rest)
            self.update_worths([request], worth, None if rates is None else [rates])

    def add_requests(
        self,
        requests: Sequence[Hashable],
        costs: ArrayLike | Sequence[ArrayLike],
        *,
        template: Template,
        limit: ArrayLike = 1.0,
        at_least: ArrayLike = -np.inf,
        lower: float = 0.0,
        upper: float = np.inf,
        integer: ArrayLike = False,
        scale: ArrayLike = 1.0,
        offset: ArrayLike = 0.0,
        cost_dtype: DTypeLike | None = None,
        row_lower: ArrayLike | None = None,
        row_upper: ArrayLike | None = None,
        worths: Worth | Sequence[Worth] | None = None,
        rates: ArrayLike | Sequence[ArrayLike] | None = None,
    ) -> None:
        """Add many requests that share one template; on an error, none is added.

        Parameters
        ----------
        requests : sequence of ids (k,)
        costs : array_like or DataFrame (k, n)
        template : Template
        limit, at_least, scale, offset : float or array_like (k,)
        lower, upper : float
            Bounds of all columns.
        integer : bool or array_like (k,)
        cost_dtype : dtype, optional
        row_lower, row_upper : float or array_like (rows,) or (k, rows), optional
            Bounds of the private rows, to replace the template's own.
        worths : Worth or sequence of k, optional
            See :meth:`add_request`.
        rates : array_like (k, n), optional

        Raises
        ------
        DuplicateHandleError, DimensionError, InvalidDataError, UnknownHandleError

        Examples
        --------
        >>> import copter
        >>> model = copter.Model(sense="max")
        >>> model.add_resource("gpu", 4)
        >>> sizes = model.add_template({"gpu": [1, 2]})
        >>> model.add_requests(["a", "b"], [[1.0, 1.8], [1.0, 1.5]], template=sizes)
        >>> model.n_columns
        4
        """
        ids = listed("requests", requests)
        k = len(ids)
        require_order(
            ids, "requests", costs=costs, limit=limit, at_least=at_least, integer=integer, scale=scale, offset=offset,
            row_lower=row_lower, row_upper=row_upper, worths=worths, rates=rates,
        )  # fmt: skip
        self._require_template(template)
        for request in ids:
            self._require_new(request)
        different(ids)
        kind = self.cost_dtype if cost_dtype is None else cost_type(cost_dtype)
        each_cost = checked_costs(ids, costs, template.n_columns)
        stored: list[tuple[Costs, float]] = [(cost, 0.0) for cost in each_cost]
        if kind != np.float64:
            stored = [stored_cost(request, cost, kind) for request, cost in zip(ids, each_cost, strict=True)]
        sums, least = checked_sums(ids, limit, at_least)
        limits = sums.tolist()
        low: Bound = 0.0
        high: Bound = np.inf
        first_with = dict[float, Hashable]()
        for request, most in zip(ids, limits, strict=True):
            first_with.setdefault(most, request)
        for most, request in first_with.items():
            low, high = checked_bounds(request, lower, upper, most, template.n_columns)
        scales, offsets = checked_vector("scale", scale, k, 1.0), checked_vector("offset", offset, k, 0.0)
        for at in np.flatnonzero((np.abs(scales) > USUAL_SCALE) | (np.abs(offsets) > USUAL_OFFSET)).tolist():
            require_finite_costs(ids[at], stored[at][0], float(scales[at]), float(offsets[at]))
        whole = (checked_vector("integer", integer, k, 0.0) != 0).tolist()
        each = (
            limits,
            (self.ledger.sign * scales).tolist(),
            (self.ledger.sign * offsets).tolist(),
            whole,
            [r for _, r in stored],
        )
        bounds = private_table(ids, template.private, row_lower, row_upper)
        rest = (template, [cost for cost, _ in stored], low, high, each, least.tolist(), bounds)
        if worths is None and rates is None:
            self.ledger.apply("add_many", ids, *rest)
            return
        with self.batch():
            self.ledger.apply("add_many", ids, *rest)
            self.update_worths(ids, worths, rates)

    def remove_request(self, request: Hashable) -> None:
        """Remove a request with its columns and its limit.

        Examples
        --------
        >>> import copter
        >>> model = copter.Model()
        >>> model.add_resource("gpu", 4)
        >>> model.add_request("job", [1.0], {"gpu": [1]})
        >>> model.remove_request("job")
        >>> model.requests
        ()
        """
        self.ledger.slot(request)
        self.ledger.apply("remove", [request])

    def remove_requests(self, requests: Sequence[Hashable]) -> None:
        """Remove many requests; on an error, none is removed."""
        ids = listed("requests", requests)
        for request in ids:
            self.ledger.slot(request)
        different(ids)
        self.ledger.apply("remove", ids)

    def update_usage(
        self,
        request: Hashable,
        usage: Usage | None = None,
        *,
        template: Template | None = None,
        resources: Sequence[Hashable] | None = None,
    ) -> None:
        """Replace a request's usage, either by its own pattern (leaving a shared template) or by a template.

        With `usage`, the private rows stay. A template must have as many private rows as the request has, and the
        template's coefficients replace the request's.

        Parameters
        ----------
        request : hashable
        usage, resources
            See :meth:`add_template`; or
        template : Template

        Raises
        ------
        UnknownHandleError, DimensionError, InvalidDataError
        """
        now = self._template_at(self.ledger.slot(request))
        n = now.n_columns
        one_of(request, usage, template)
        if template is not None:
            self._require_template(template, f"request {request!r}: ")
            self._require_columns(f"request {request!r}", template.contents()[:3], n)
            self._require_rows(f"request {request!r}", template.private, now.n_private)
            self.ledger.apply("usage", request, template)
        else:
            pattern = self._own_pattern(request, usage, resources)
            self._require_columns(f"request {request!r}", pattern, n)
            self.ledger.apply("usage", request, (*pattern, now.private))

    def update_integrality(self, request: Hashable, integer: ArrayLike) -> None:
        """Change whether a request's columns must be whole in an integer plan; an array says it of each column."""
        n = self._template_at(self.ledger.slot(request)).n_columns
        self.ledger.apply("integer", request, integrality(f"request {request!r}: integer", integer, n))

    def fix(self, request: Hashable, column: int) -> None:
        """Fix a request to one column: this column at its upper bound (or the limit), the others at their lower bounds.

        Examples
        --------
        >>> import copter
        >>> model = copter.Model(sense="max")
        >>> model.add_resource("gpu", 4)
        >>> model.add_request("job", [1.0, 2.0], {"gpu": [1, 1]})
        >>> model.fix("job", 0)
        >>> copter.Session(model).solve().of("job").tolist()
        [1.0, 0.0]
        """
        slot = self.ledger.slot(request)
        column = checked_column(request, self._template_at(slot).n_columns, column)
        if not self.ledger.matrix.is_fixable(slot):
            raise EditNotAllowedError(
                f"request {request!r}: only requests with lower bounds of zero, one upper bound, a finite limit "
                "up to it and no private rows can be fixed; for others there is update_bounds"
            )
        self.ledger.apply("fix", request, column)

    def unfix(self, request: Hashable) -> None:
        """Free a fixed request."""
        self.ledger.slot(request)
        self.ledger.apply("fix", request, -1)


def private_table(
    requests: list[Hashable], private: Private | None, lower: ArrayLike | None, upper: ArrayLike | None
) -> Floats | None:
    """Return the bounds of new requests' private rows, (requests, 2 * rows): lower, then upper; None without rows."""
    if private is None:
        if lower is not None or upper is not None:
            raise InvalidDataError("there are no private rows that row_lower and row_upper could be of")
        return None
    k, rows = len(requests), len(private[3])
    table = np.empty((k, 2 * rows))
    for what, given, usual, side in (("lower", lower, private[3], 0), ("upper", upper, private[4], 1)):
        bounds = usual if given is None else as_floats(f"row_{what}", given)
        if bounds.shape not in ((), (rows,), (k, rows)):
            raise DimensionError(f"row_{what} has shape {bounds.shape}, must be ({rows},) or ({k}, {rows})")
        table[:, side * rows : (side + 1) * rows] = bounds
    wrong = ~(table[:, :rows] <= table[:, rows:]) | np.isposinf(table[:, :rows]) | np.isneginf(table[:, rows:])
    for at in np.flatnonzero(wrong.any(axis=1))[:1].tolist():
        bounds_of_rows(f"request {requests[at]!r}", table[at, :rows], table[at, rows:], rows)
    return table
