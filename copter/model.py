"""The differential model: requests that draw on shared resources, edited in place."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from copter.checks import (
    checked_bounds,
    checked_column,
    checked_cost,
    checked_limit,
    cost_type,
    finite,
    hashable,
    stored_cost,
)
from copter.errors import DimensionError, DuplicateHandleError, EditNotAllowedError, InvalidDataError
from copter.inventory import Inventory
from copter.linear_program import checked_vector
from copter.matrix import Template
from copter.usage import Pattern, Usage, pattern_of

ROUNDING = 1e-12  # relative; sums of usage that differ by less are equal


class Model(Inventory):
    """A resource-allocation LP kept alive: resources are rows, requests are blocks of columns.

    sense c'x + offset subject to, for every resource, sum of usage <= count; for every request, sum x <= limit and
    lower <= x <= upper. An edit costs time in proportion to the nonzeros that it touches. Ids are the caller's own
    (any hashable); they never renumber, and a removed id can be added again. A failed edit leaves the model as it was,
    a failed :meth:`batch` of edits too.

    Parameters
    ----------
    sense : {"max", "min"}
    offset : float
        Constant in the objective.
    cost_dtype : dtype
        How requests' costs are stored: float64, or float32 at half the memory. The rounded costs are then the costs
        (:meth:`cost` gives them); solutions' bounds are widened so that they hold for the costs as given too.
    """

    def __init__(
        self, sense: Literal["max", "min"] = "max", offset: float = 0.0, cost_dtype: DTypeLike = np.float64
    ) -> None:
        super().__init__(sense, offset, cost_dtype)

    # Resources ----------------------------------------------------------------------------------------------------

    def add_resources(self, resource: Hashable, count: float) -> None:
        """Add `count` units of a resource; its row is made when it is new.

        Raises
        ------
        InvalidDataError
            If count is negative, NaN or infinite.
        """
        hashable("resource", resource)
        count = finite(f"resource {resource!r}: count", count)
        if count < 0:
            raise InvalidDataError(
                f"resource {resource!r}: cannot add {count} units; to take some away, remove_resources"
            )
        if resource in self._row_of:
            count = finite(f"resource {resource!r}: count", self.count(resource) + count)
        self._apply("count", resource, count)

    def remove_resources(self, resource: Hashable, count: float) -> None:
        """Take `count` units of a resource away.

        Raises
        ------
        UnknownHandleError, InvalidDataError
            If the resource is not known; if count is negative, not finite, or more than there is.
        EditNotAllowedError
            If fixed requests use more than what would be left.
        """
        here = self.count(resource)
        count = finite(f"resource {resource!r}: count", count)
        if count < 0 or count > here:
            raise InvalidDataError(f"resource {resource!r}: cannot remove {count} units of {here}")
        used = self.fixed_usage(resource)
        if count > 0 and used > here - count + ROUNDING * (1.0 + here):
            raise EditNotAllowedError(
                f"resource {resource!r}: {used:g} units are in use by fixed requests, {here - count:g} would be left; "
                "unfix or remove some requests first"
            )
        self._apply("count", resource, here - count)

    def drop_resource(self, resource: Hashable) -> None:
        """Remove a resource's row with all its coefficients: what used it does so no longer."""
        self._row(resource)
        self._apply("drop_row", resource)

    # Templates ----------------------------------------------------------------------------------------------------

    def add_template(self, usage: Usage, resources: Sequence[Hashable] | None = None) -> Template:
        """Declare a usage pattern that many requests share.

        Parameters
        ----------
        usage : mapping of resource to array_like (n,), or sparse matrix (len(resources), n)
            Units of each resource that a unit of each column uses.
        resources : sequence, optional
            Ids of the rows of a sparse matrix, in order.

        Returns
        -------
        Template
            Pass it to :meth:`add_request`.
        """
        template: Template = self._apply("add_template", *pattern_of(usage, resources, self._row))
        return template

    def update_template(self, template: Template, usage: Usage, resources: Sequence[Hashable] | None = None) -> None:
        """Replace a template's usage for all requests that share it; the number of columns stays.

        Parameters
        ----------
        template : Template
        usage, resources
            As for :meth:`add_template`.

        Raises
        ------
        UnknownHandleError, DimensionError, InvalidDataError
        """
        self._require_template(template)
        pattern = pattern_of(usage, resources, self._row)
        self._require_columns("the template", pattern, template.n_columns)
        self._apply("update_template", template, *pattern)

    def drop_template(self, template: Template) -> None:
        """Forget a template; EditNotAllowedError while requests use it."""
        self._require_template(template)
        if template.users:
            raise EditNotAllowedError(f"the template is in use by {template.users} requests; remove them first")
        self._apply("drop_template", template)

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
        lower: ArrayLike = 0.0,
        upper: ArrayLike = 1.0,
        integer: bool = False,
        scale: float = 1.0,
        offset: float = 0.0,
        cost_dtype: DTypeLike | None = None,
    ) -> None:
        """Add a block of columns; its objective coefficients are ``scale * cost + offset``.

        Parameters
        ----------
        request : hashable
            New id.
        cost : array_like (n,)
            Copied.
        usage, resources
            As for :meth:`add_template`; or
        template : Template
            A pattern declared before.
        limit : float
            The columns sum to at most this; inf for no limit.
        lower, upper : float or array_like (n,)
        integer : bool
            Whether the columns must be whole in an integer plan (the LP ignores it).
        cost_dtype : dtype, optional
            float64 or float32; the model's own by default. Kept by later cost edits.

        Raises
        ------
        DuplicateHandleError, DimensionError, InvalidDataError, UnknownHandleError
        """
        self._require_new(request)
        if (usage is None) == (template is None):
            raise InvalidDataError(f"request {request!r}: give either usage or a template")
        source: Template | Pattern
        if template is not None:
            self._require_template(template, f"request {request!r}: ")
            source, n = template, template.n_columns
        else:
            source = self._own_pattern(request, usage, resources)
            n = len(source[0]) - 1
        kind = self.cost_dtype if cost_dtype is None else cost_type(cost_dtype)
        costs, rounding = stored_cost(request, checked_cost(request, cost, n), kind)
        limit = checked_limit(request, limit)
        low, high = checked_bounds(request, lower, upper, limit, n)
        scale, offset = self._signed(request, scale, offset)
        self._apply("add", request, source, costs, limit, low, high, scale, offset, bool(integer), rounding)

    def add_requests(
        self,
        requests: Sequence[Hashable],
        costs: ArrayLike | Sequence[ArrayLike],
        *,
        template: Template,
        limit: ArrayLike = 1.0,
        lower: float = 0.0,
        upper: float = 1.0,
        integer: ArrayLike = False,
        scale: ArrayLike = 1.0,
        offset: ArrayLike = 0.0,
        cost_dtype: DTypeLike | None = None,
    ) -> None:
        """Add many requests of one template: all or none.

        Parameters
        ----------
        requests : sequence of ids (k,)
        costs : array_like (k, n)
        template : Template
        limit, scale, offset : float or array_like (k,)
        lower, upper : float
            Of all columns.
        integer : bool or array_like (k,)
        cost_dtype : dtype, optional

        Raises
        ------
        DuplicateHandleError, DimensionError, InvalidDataError, UnknownHandleError
        """
        ids, k = list(requests), len(requests)
        self._require_template(template)
        for request in ids:
            self._require_new(request)
        if len(set(ids)) != k:
            raise DuplicateHandleError("the requests of a batch must have different ids")
        if len(costs) != k:  # type: ignore[arg-type]
            raise DimensionError(f"{k} requests, but costs of {len(costs)}")  # type: ignore[arg-type]
        kind = self.cost_dtype if cost_dtype is None else cost_type(cost_dtype)
        stored = [
            stored_cost(request, checked_cost(request, cost, template.n_columns), kind)
            for request, cost in zip(ids, costs, strict=True)  # type: ignore[arg-type]
        ]
        limits = checked_vector("limit", limit, k, 1.0, 1).tolist()
        low, high = 0.0, 1.0
        for request, most in zip(ids, limits, strict=True):
            low, high = checked_bounds(request, lower, upper, checked_limit(request, most), template.n_columns)  # type: ignore[assignment]
        scales, offsets = checked_vector("scale", scale, k, 1.0), checked_vector("offset", offset, k, 0.0)
        whole = (checked_vector("integer", integer, k, 0.0) != 0).tolist()
        each = (limits, (self._sign * scales).tolist(), (self._sign * offsets).tolist(), whole, [r for _, r in stored])
        self._apply("add_many", ids, template, [cost for cost, _ in stored], low, high, each)

    def remove_request(self, request: Hashable) -> None:
        """Take a request out, with its columns and its limit."""
        self._slot(request)
        self._apply("remove", [request])

    def remove_requests(self, requests: Sequence[Hashable]) -> None:
        """Take many requests out: all or none."""
        ids = list(requests)
        for request in ids:
            self._slot(request)
        if len(set(ids)) != len(ids):
            raise DuplicateHandleError("the requests of a batch must have different ids")
        self._apply("remove", ids)

    def update_usage(
        self,
        request: Hashable,
        usage: Usage | None = None,
        *,
        template: Template | None = None,
        resources: Sequence[Hashable] | None = None,
    ) -> None:
        """Replace what a request's columns use: by a pattern of its own (off a shared template), or by a template.

        Parameters
        ----------
        request : hashable
        usage, resources
            As for :meth:`add_template`; or
        template : Template

        Raises
        ------
        UnknownHandleError, DimensionError, InvalidDataError
        """
        n = self._template_at(self._slot(request)).n_columns
        if (usage is None) == (template is None):
            raise InvalidDataError(f"request {request!r}: give either usage or a template")
        if template is not None:
            self._require_template(template, f"request {request!r}: ")
            self._require_columns(f"request {request!r}", template.contents(), n)
            self._apply("usage", request, template)
        else:
            pattern = self._own_pattern(request, usage, resources)
            self._require_columns(f"request {request!r}", pattern, n)
            self._apply("usage", request, pattern)

    def update_limit(self, request: Hashable, limit: float) -> None:
        """Change the largest sum of a request's columns; inf for no limit."""
        lower, upper = self._plain_bounds(request)
        self._update_limits(request, limit, lower, upper)

    def update_bounds(self, request: Hashable, lower: ArrayLike | None = None, upper: ArrayLike | None = None) -> None:
        """Change the bounds of a request's columns: float or array_like (n,); None leaves a side as it is."""
        low, high = self._plain_bounds(request)
        limit = self.limit(request)
        self._update_limits(request, limit, low if lower is None else lower, high if upper is None else upper)

    def update_integrality(self, request: Hashable, integer: bool) -> None:
        """Change whether a request's columns must be whole in an integer plan."""
        self._slot(request)
        self._apply("integer", request, bool(integer))

    def fix(self, request: Hashable, column: int) -> None:
        """Hold one column at its upper bound (or the limit) and the request's others at their lower bounds."""
        slot = self._slot(request)
        column = checked_column(request, self._template_at(slot).n_columns, column)
        if self._matrix.is_resident(slot):
            raise EditNotAllowedError(
                f"request {request!r}: only requests with lower bounds of zero, one upper bound and a finite limit "
                "up to it can be fixed"
            )
        self._apply("fix", request, column)

    def unfix(self, request: Hashable) -> None:
        """Free a fixed request."""
        self._slot(request)
        self._apply("fix", request, -1)

    # Costs --------------------------------------------------------------------------------------------------------

    def update_cost(self, request: Hashable, cost: ArrayLike, scale: float = 1.0, offset: float = 0.0) -> None:
        """Replace a request's objective coefficients by ``scale * cost + offset``; exceptions are forgotten."""
        costs, rounding = self._stored_anew(request, cost)
        self._apply("cost", request, costs, *self._signed(request, scale, offset), rounding)

    def update_costs(self, requests: Sequence[Hashable], costs: ArrayLike | Sequence[ArrayLike]) -> None:
        """Replace the objective coefficients of many requests, all or none; `costs` gives an array_like (n,) each."""
        ids = list(requests)
        if len(costs) != len(ids):  # type: ignore[arg-type]
            raise DimensionError(f"{len(ids)} requests, but costs of {len(costs)}")  # type: ignore[arg-type]
        with self.batch():
            for request, cost in zip(ids, costs, strict=True):  # type: ignore[arg-type]
                self.update_cost(request, cost)

    def update_column_cost(self, request: Hashable, column: ArrayLike, cost: ArrayLike) -> None:
        """Give columns objective coefficients of their own, beside the request's other ones.

        Parameters
        ----------
        request : hashable
        column : int or array_like of int (k,)
        cost : float or array_like (k,)
            They hold until the next :meth:`update_cost` or :meth:`rescale_cost`.
        """
        slot = self._slot(request)
        columns = np.atleast_1d(np.asarray(column))
        values = checked_vector(f"request {request!r}: cost of column", cost, columns.size, 0.0)
        own = dict(zip(*(array.tolist() for array in self._matrix.exceptions_of(slot)), strict=True))
        n = self._template_at(slot).n_columns
        for j, value in zip(columns.tolist(), values.tolist(), strict=True):
            own[checked_column(request, n, j)] = self._sign * value
        each = sorted(own)
        self._apply(
            "exceptions", request, np.array(each, dtype=np.int32), np.array([own[j] for j in each], dtype=float)
        )

    def rescale_cost(
        self,
        request: Hashable,
        scale: float,
        offset: float = 0.0,
        exceptions: Mapping[int, float] | None = None,
    ) -> None:
        """Change scale and offset over the stored cost, in constant time.

        `exceptions` {column: objective coefficient} replaces the single-column costs.
        """
        slot = self._slot(request)
        scale, offset = self._signed(request, scale, offset)
        n = self._template_at(slot).n_columns
        single = {
            checked_column(request, n, j): finite(f"request {request!r}: cost of column {j}", value)
            for j, value in (exceptions or {}).items()
        }
        columns = costs = None
        if single:
            columns = np.array(sorted(single), dtype=np.int32)
            costs = self._sign * np.array([single[j] for j in columns.tolist()])
        self._apply("scale", request, scale, offset, columns, costs)

    def rescale_costs(
        self,
        requests: Sequence[Hashable],
        scale: ArrayLike,
        offset: ArrayLike = 0.0,
        columns: ArrayLike | None = None,
        costs: ArrayLike = 0.0,
    ) -> None:
        """Do :meth:`rescale_cost` for many requests in one call.

        Parameters
        ----------
        requests : sequence of ids (n,)
        scale, offset : float or array_like (n,)
        columns : array_like of int (n,), optional
            Column of each request whose objective coefficient is given in `costs` (n,); -1 for none.
        """
        ids, n = list(requests), len(requests)
        slots = self._slots(ids)
        scales, offsets = checked_vector("scale", scale, n, 1.0), checked_vector("offset", offset, n, 0.0)
        single = checked_vector("costs", costs, n, 0.0)
        column = np.full(n, -1, dtype=np.int32) if columns is None else np.array(columns, dtype=np.int32)
        if column.shape != (n,):
            raise DimensionError(f"columns has shape {column.shape}, must be ({n},)")
        sizes = self._matrix.sizes_of(slots)
        for at in np.flatnonzero((column < -1) | (column >= sizes)):
            checked_column(ids[int(at)], int(sizes[at]), int(column[at]))
        self._apply("rescale", ids, self._sign * scales, self._sign * offsets, column, self._sign * single)

    def _update_limits(self, request: Hashable, limit: float, lower: ArrayLike, upper: ArrayLike) -> None:
        number = checked_limit(request, limit)
        low, high = checked_bounds(request, lower, upper, number, self._template_at(self._slot(request)).n_columns)
        can_be_fixed = (
            isinstance(low, float) and low == 0.0 and isinstance(high, float) and number <= high and np.isfinite(number)
        )
        if self.fixed(request) is not None and not can_be_fixed:
            raise EditNotAllowedError(
                f"request {request!r} is fixed: these bounds would not let it be (lower bounds of zero, one upper "
                "bound, a finite limit up to it); unfix it first"
            )
        self._apply("limits", request, number, low, high)
