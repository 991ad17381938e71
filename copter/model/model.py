"""The differential model: requests that draw on shared resources, edited in place."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from copter.errors import EditNotAllowedError, InvalidDataError
from copter.matrix import Template
from copter.model.assembly import assemble
from copter.model.checks import (
    checked_bounds,
    checked_column,
    checked_cost,
    checked_limit,
    cost_type,
    different,
    flag,
    listed,
    listed_for,
    require_finite_costs,
    stored_cost,
)
from copter.model.cost_edits import CostEdits
from copter.model.resource_edits import ResourceEdits
from copter.model.usage import Pattern, Usage
from copter.problem.linear_program import LinearProgram, checked_vector


class Model(ResourceEdits, CostEdits):
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

    def to_linear_program(self) -> LinearProgram:
        """The model as one LP: columns by request in the order added; rows are resources, then finite limits."""
        return assemble(self.ledger)

    def batch(self) -> AbstractContextManager[None]:
        """All the edits of a ``with`` block or, if it is left by an exception, none.

        A batch inside a batch takes back its own edits only; the outer one may go on. With a journal, the outermost
        batch is one record. Taking back costs time in proportion to the edits (and one pass over the ids, if requests,
        templates or resources had been removed). No solve runs inside a batch.
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
        whole = flag(f"request {request!r}: integer", integer)
        costs, rounding = stored_cost(request, checked_cost(request, cost, n), kind)
        limit = checked_limit(request, limit)
        low, high = checked_bounds(request, lower, upper, limit, n)
        scale, offset = self._signed(request, scale, offset)
        require_finite_costs(request, costs, scale, offset)
        self.ledger.apply("add", request, source, costs, limit, low, high, scale, offset, whole, rounding)

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
        ids = listed("requests", requests)
        k, each_cost = len(ids), listed_for(ids, "costs", costs)
        self._require_template(template)
        for request in ids:
            self._require_new(request)
        different(ids)
        kind = self.cost_dtype if cost_dtype is None else cost_type(cost_dtype)
        stored = [
            stored_cost(request, checked_cost(request, cost, template.n_columns), kind)
            for request, cost in zip(ids, each_cost, strict=True)
        ]
        limits = checked_vector("limit", limit, k, 1.0, 1).tolist()
        low, high = 0.0, 1.0
        for request, most in zip(ids, limits, strict=True):
            low, high = checked_bounds(request, lower, upper, checked_limit(request, most), template.n_columns)  # type: ignore[assignment]
        scales, offsets = checked_vector("scale", scale, k, 1.0), checked_vector("offset", offset, k, 0.0)
        for request, (cost, _), factor, constant in zip(ids, stored, scales.tolist(), offsets.tolist(), strict=True):
            require_finite_costs(request, cost, factor, constant)
        whole = (checked_vector("integer", integer, k, 0.0) != 0).tolist()
        each = (
            limits,
            (self.ledger.sign * scales).tolist(),
            (self.ledger.sign * offsets).tolist(),
            whole,
            [r for _, r in stored],
        )
        self.ledger.apply("add_many", ids, template, [cost for cost, _ in stored], low, high, each)

    def remove_request(self, request: Hashable) -> None:
        """Take a request out, with its columns and its limit."""
        self.ledger.slot(request)
        self.ledger.apply("remove", [request])

    def remove_requests(self, requests: Sequence[Hashable]) -> None:
        """Take many requests out: all or none."""
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
        n = self._template_at(self.ledger.slot(request)).n_columns
        if (usage is None) == (template is None):
            raise InvalidDataError(f"request {request!r}: give either usage or a template")
        if template is not None:
            self._require_template(template, f"request {request!r}: ")
            self._require_columns(f"request {request!r}", template.contents(), n)
            self.ledger.apply("usage", request, template)
        else:
            pattern = self._own_pattern(request, usage, resources)
            self._require_columns(f"request {request!r}", pattern, n)
            self.ledger.apply("usage", request, pattern)

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
        self.ledger.slot(request)
        self.ledger.apply("integer", request, flag(f"request {request!r}: integer", integer))

    def fix(self, request: Hashable, column: int) -> None:
        """Hold one column at its upper bound (or the limit) and the request's others at their lower bounds."""
        slot = self.ledger.slot(request)
        column = checked_column(request, self._template_at(slot).n_columns, column)
        if self.ledger.matrix.is_resident(slot):
            raise EditNotAllowedError(
                f"request {request!r}: only requests with lower bounds of zero, one upper bound and a finite limit "
                "up to it can be fixed"
            )
        self.ledger.apply("fix", request, column)

    def unfix(self, request: Hashable) -> None:
        """Free a fixed request."""
        self.ledger.slot(request)
        self.ledger.apply("fix", request, -1)

    def _update_limits(self, request: Hashable, limit: float, lower: ArrayLike, upper: ArrayLike) -> None:
        number = checked_limit(request, limit)
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
        self.ledger.apply("limits", request, number, low, high)
