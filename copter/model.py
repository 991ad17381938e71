"""The differential model: requests that draw on shared resources, edited in place."""

from __future__ import annotations

import operator
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from copter.assembly import assemble
from copter.errors import (
    CopterError,
    DimensionError,
    DuplicateHandleError,
    EditNotAllowedError,
    InvalidDataError,
    StaleSolutionError,
    UnknownHandleError,
)
from copter.linear_program import LinearProgram, as_floats, checked_vector, require_ordered
from copter.matrix import BlockMatrix, Template

ROUNDING = 1e-12  # relative; sums of usage that differ by less are equal

Floats = NDArray[np.float64]
Usage = Mapping[Hashable, ArrayLike] | Any  # {resource: one coefficient a column}, or a sparse matrix with `resources`


def finite(what: str, value: float) -> float:
    """The value as a float; InvalidDataError unless it is finite."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidDataError(f"{what} is {value!r}, must be a finite number") from None
    if not np.isfinite(number):
        raise InvalidDataError(f"{what} is {number}, must be finite")
    return number


class Model:
    """A resource-allocation LP kept alive: resources are rows, requests are blocks of columns.

    sense c'x + offset subject to, for every resource, sum of usage <= count; for every request, sum x <= limit and
    lower <= x <= upper. An edit costs time in proportion to the nonzeros that it touches. Ids are the caller's own
    (any hashable); they never renumber, and a removed id can be added again. A failed edit leaves the model as it was.

    Parameters
    ----------
    sense : {"max", "min"}
    offset : float
        Constant in the objective.
    """

    def __init__(self, sense: Literal["max", "min"] = "max", offset: float = 0.0) -> None:
        if sense not in ("max", "min"):
            raise InvalidDataError(f"sense is {sense!r}, must be 'max' or 'min'")
        self.sense: Literal["max", "min"] = sense
        self.offset = finite("offset", offset)
        self.version = 0
        self._sign = -1.0 if sense == "max" else 1.0
        self._matrix = BlockMatrix()
        self._row_of: dict[Hashable, int] = {}
        self._slot_of: dict[Hashable, int] = {}
        self._added_at: dict[Hashable, int] = {}
        self._integer: dict[Hashable, bool] = {}
        self._own_template: set[Hashable] = set()

    # What is in the model -----------------------------------------------------------------------------------------

    @property
    def requests(self) -> tuple[Hashable, ...]:
        """Ids of the requests, in the order they were added."""
        return tuple(self._slot_of)

    @property
    def resources(self) -> tuple[Hashable, ...]:
        """Ids of the resources, in the order they were added."""
        return tuple(self._row_of)

    @property
    def n_columns(self) -> int:
        """Number of columns of all requests."""
        return int(self._matrix.n_columns)

    def count(self, resource: Hashable) -> float:
        """Units of a resource."""
        return float(self._matrix.row_upper[self._row(resource)])

    def __contains__(self, request: Hashable) -> bool:
        return request in self._slot_of

    # Resources ----------------------------------------------------------------------------------------------------

    def add_resources(self, resource: Hashable, count: float) -> None:
        """Add `count` units of a resource; its row is made when it is new.

        Raises
        ------
        InvalidDataError
            If count is negative, NaN or infinite.
        """
        count = finite(f"resource {resource!r}: count", count)
        if count < 0:
            raise InvalidDataError(
                f"resource {resource!r}: cannot add {count} units; to take some away, remove_resources"
            )
        if resource in self._row_of:
            row = self._row_of[resource]
            total = finite(f"resource {resource!r}: count", float(self._matrix.row_upper[row]) + count)
            self._matrix.set_row_bounds(row, self._matrix.row_lower[row], total)
        else:
            self._row_of[resource] = self._matrix.add_row(-np.inf, count)
        self.version += 1

    def remove_resources(self, resource: Hashable, count: float) -> None:
        """Take `count` units of a resource away.

        Raises
        ------
        UnknownHandleError, InvalidDataError
            If the resource is not known; if count is negative, not finite, or more than there is.
        EditNotAllowedError
            If fixed requests use more than what would be left.
        """
        row = self._row(resource)
        count = finite(f"resource {resource!r}: count", count)
        here = float(self._matrix.row_upper[row])
        if count < 0 or count > here:
            raise InvalidDataError(f"resource {resource!r}: cannot remove {count} units of {here}")
        used = self.fixed_usage(resource)
        if count > 0 and used > here - count + ROUNDING * (1.0 + here):
            raise EditNotAllowedError(
                f"resource {resource!r}: {used:g} units are in use by fixed requests, {here - count:g} would be left; "
                "unfix or remove some requests first"
            )
        self._matrix.set_row_bounds(row, self._matrix.row_lower[row], here - count)
        self.version += 1

    def drop_resource(self, resource: Hashable) -> None:
        """Remove a resource's row with all its coefficients: what used it does so no longer."""
        row = self._row(resource)
        self._matrix.drop_row(row)
        del self._row_of[resource]
        self.version += 1

    def fixed_usage(self, resource: Hashable) -> float:
        """Units of a resource that fixed requests use."""
        row, total = self._row(resource), 0.0
        for slot in self._fixed_slots():
            template, column = self._matrix.slabs[slot].template, self._matrix.fixed_of(slot)
            entries = slice(template.column_start[column], template.column_start[column + 1])
            value = self._matrix.bounds_of(slot)[1][column]
            total += value * float(template.coefficient[entries][template.row[entries] == row].sum())
        return total

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
        if isinstance(usage, Mapping):
            rows, stacked = self._dense_usage(usage)
            n = stacked.shape[1]
            at, entry_column = np.nonzero(np.isnan(stacked) | (stacked != 0))
            entry_row, data = np.asarray(rows, dtype=np.int64)[at], stacked[at, entry_column]
        elif sp.issparse(usage):
            entry_row, entry_column, data = self._sparse_usage(usage, resources)
            n = usage.shape[1]
        else:
            raise InvalidDataError(
                f"usage is a {type(usage).__name__}: give {{resource: units of each column}}, or a sparse matrix "
                "with the ids of its rows in `resources`"
            )
        if n == 0:
            raise DimensionError("usage has no columns: a request needs at least one")
        if not np.isfinite(data).all():
            raise InvalidDataError("usage has an entry that is NaN or infinite")
        matrix = sp.csc_array((data, (entry_row, entry_column)), shape=(self._matrix.n_rows, n), dtype=np.float64)
        matrix.sum_duplicates()
        return self._matrix.add_template(matrix.indptr, matrix.indices, matrix.data)

    def _sparse_usage(
        self, usage: Any, resources: Sequence[Hashable] | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """Rows, columns and values of a sparse usage matrix's entries."""
        if resources is None or len(resources) != usage.shape[0]:
            raise DimensionError(f"usage has {usage.shape[0]} rows: give the ids of as many resources")
        rows = [self._row(resource) for resource in resources]
        matrix = sp.coo_array(usage)
        return np.asarray(rows, dtype=np.int64)[matrix.row], matrix.col, as_floats("usage", matrix.data)

    def _dense_usage(self, usage: Mapping[Hashable, ArrayLike]) -> tuple[list[int], Floats]:
        """(rows, units (rows, columns)) of a usage given by resource."""
        vectors = {}
        for resource, units in usage.items():
            vector = np.atleast_1d(as_floats(f"usage of resource {resource!r}", units))
            if vector.ndim != 1:
                raise DimensionError(f"usage of resource {resource!r} has shape {vector.shape}: one figure a column")
            vectors[self._row(resource)] = vector
        lengths = {len(v) for v in vectors.values()}
        if len(lengths) > 1:
            raise DimensionError(f"usage gives {sorted(lengths)} columns for different resources: must be equal")
        n = lengths.pop() if lengths else 0
        return list(vectors), np.array(list(vectors.values())).reshape(len(vectors), n)

    def drop_template(self, template: Template) -> None:
        """Forget a template; EditNotAllowedError while requests use it."""
        self._require_template(template)
        if template.users:
            raise EditNotAllowedError(f"the template is in use by {template.users} requests; remove them first")
        self._matrix.drop_template(template)

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

        Raises
        ------
        DuplicateHandleError, DimensionError, InvalidDataError, UnknownHandleError
        """
        if request in self._slot_of:
            raise DuplicateHandleError(f"request {request!r} is in the model already; remove it first")
        if (usage is None) == (template is None):
            raise InvalidDataError(f"request {request!r}: give either usage or a template")
        if template is not None:
            self._require_template(template, f"request {request!r}: ")
        own = self._own_pattern(request, usage, resources) if template is None else template
        try:
            costs = self._checked_cost(request, cost, own.n_columns)
            limit = self._checked_limit(request, limit)
            bounds = self._checked_bounds(request, lower, upper, limit, own.n_columns)
            scale, offset = finite(f"request {request!r}: scale", scale), finite(f"request {request!r}: offset", offset)
        except Exception:
            if template is None:
                self._matrix.drop_template(own)
            raise
        slot = self._matrix.add_slab(own, costs, limit, *bounds, self._sign * scale, self._sign * offset)
        self._slot_of[request] = slot
        self._integer[request] = bool(integer)
        self.version += 1
        self._added_at[request] = self.version
        if template is None:
            self._own_template.add(request)

    def remove_request(self, request: Hashable) -> None:
        """Take a request out, with its columns and its limit."""
        slot = self._slot(request)
        template = self._matrix.slabs[slot].template
        self._matrix.remove_slab(slot)
        if request in self._own_template:
            self._own_template.discard(request)
            self._matrix.drop_template(template)
        for table in (self._slot_of, self._integer, self._added_at):
            del table[request]
        self.version += 1

    def update_cost(self, request: Hashable, cost: ArrayLike, scale: float = 1.0, offset: float = 0.0) -> None:
        """Replace a request's objective coefficients by ``scale * cost + offset``; exceptions are forgotten."""
        slot = self._slot(request)
        costs = self._checked_cost(request, cost, self._matrix.slabs[slot].template.n_columns)
        scale, offset = finite(f"request {request!r}: scale", scale), finite(f"request {request!r}: offset", offset)
        self._matrix.set_cost(slot, costs, self._sign * scale, self._sign * offset)
        self.version += 1

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
        scale, offset = finite(f"request {request!r}: scale", scale), finite(f"request {request!r}: offset", offset)
        single = {
            self._checked_column(request, slot, j): finite(f"request {request!r}: cost of column {j}", value)
            for j, value in (exceptions or {}).items()
        }
        columns = sorted(single)
        self._matrix.set_scale(slot, self._sign * scale, self._sign * offset)
        if columns:
            self._matrix.set_exceptions(slot, columns, self._sign * np.array([single[j] for j in columns]))
        else:
            self._matrix.set_exceptions(slot, None, None)
        self.version += 1

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
        n = len(requests)
        slots = np.fromiter((self._slot(request) for request in requests), dtype=np.int32, count=n)
        scales, offsets = checked_vector("scale", scale, n, 1.0), checked_vector("offset", offset, n, 0.0)
        single = checked_vector("costs", costs, n, 0.0)
        column = np.full(n, -1, dtype=np.int32) if columns is None else np.array(columns, dtype=np.int32)
        if column.shape != (n,):
            raise DimensionError(f"columns has shape {column.shape}, must be ({n},)")
        for at in np.flatnonzero((column < -1) | (column >= self._matrix.sizes_of(slots))):
            self._checked_column(requests[int(at)], int(slots[at]), int(column[at]))
        self._matrix.rescale(slots, self._sign * scales, self._sign * offsets, column, self._sign * single)
        self.version += 1

    def fix(self, request: Hashable, column: int) -> None:
        """Hold one column at its upper bound (or the limit) and the request's others at their lower bounds."""
        slot = self._slot(request)
        column = self._checked_column(request, slot, column)
        if self._matrix.is_resident(slot):
            raise EditNotAllowedError(
                f"request {request!r}: only requests with lower bounds of zero, one upper bound and a finite limit "
                "up to it can be fixed"
            )
        self._matrix.set_fixed(slot, column)
        self.version += 1

    def unfix(self, request: Hashable) -> None:
        """Free a fixed request."""
        self._matrix.set_fixed(self._slot(request), -1)
        self.version += 1

    def fixed(self, request: Hashable) -> int | None:
        """Column that a request is fixed on, or None."""
        column = int(self._matrix.fixed_of(self._slot(request)))
        return None if column < 0 else column

    def cost(self, request: Hashable) -> Floats:
        """Objective coefficients of a request's columns, (n,), a new array."""
        return self._sign * np.asarray(self._matrix.costs_of(self._slot(request))) + 0.0

    def to_linear_program(self) -> LinearProgram:
        """The model as one LP: columns by request in the order added; rows are resources, then finite limits."""
        return assemble(self)

    # Checks -------------------------------------------------------------------------------------------------------

    def _row(self, resource: Hashable) -> int:
        try:
            return self._row_of[resource]
        except KeyError:
            raise UnknownHandleError(f"unknown resource {resource!r}; add_resources makes it") from None

    def _slot(self, request: Hashable) -> int:
        try:
            return self._slot_of[request]
        except KeyError:
            raise UnknownHandleError(f"unknown request {request!r}: never added, or already removed") from None

    def _require_template(self, template: Template, where: str = "") -> None:
        if not isinstance(template, Template) or template not in self._matrix.templates:
            raise UnknownHandleError(f"{where}the template is not of this model; add_template makes one")

    def _checked_column(self, request: Hashable, slot: int, column: int) -> int:
        n = self._matrix.slabs[slot].template.n_columns
        try:
            index = operator.index(column)
        except TypeError:
            index = -1
        if not 0 <= index < n:
            raise DimensionError(f"request {request!r} has columns 0 to {n - 1}, not {column!r}")
        return index

    def _require_unchanged(self, request: Hashable, version: int) -> None:
        if self._added_at.get(request, version + 1) > version:
            raise StaleSolutionError(f"request {request!r} has been removed since this solution was found")

    def _lower_of(self, request: Hashable) -> Floats:
        """Lower bounds of a request's columns, whether it is fixed or not."""
        return np.asarray(self._matrix.lower_of(self._slot(request)))

    def _fixed_slots(self) -> list[int]:
        _, fixed = self._matrix.limits()
        return [int(slot) for slot in np.flatnonzero(fixed)]

    def _checked_cost(self, request: Hashable, cost: ArrayLike, n: int) -> Floats:
        array = as_floats(f"request {request!r}: cost", cost)
        if array.shape != (n,):
            raise DimensionError(f"request {request!r}: cost has shape {array.shape}, must be ({n},)")
        if not np.isfinite(array).all():
            at = int(np.flatnonzero(~np.isfinite(array))[0])
            raise InvalidDataError(f"request {request!r}: cost of column {at} is {array[at]}, must be finite")
        return array

    @staticmethod
    def _checked_limit(request: Hashable, limit: float) -> float:
        try:
            number = float(limit)
        except (TypeError, ValueError):
            number = np.nan
        if not number >= 0:
            raise InvalidDataError(f"request {request!r}: limit is {limit!r}, must be >= 0 (inf for none)")
        return number

    def _own_pattern(self, request: Hashable, usage: Usage, resources: Sequence[Hashable] | None) -> Template:
        """A template for one request; an error names the request."""
        try:
            return self.add_template(usage, resources)
        except CopterError as error:
            raise type(error)(f"request {request!r}: {error}") from None

    @staticmethod
    def _checked_bounds(
        request: Hashable, lower: ArrayLike, upper: ArrayLike, limit: float, n: int
    ) -> tuple[Floats | float, Floats | float]:
        low = checked_vector(f"request {request!r}: lower", lower, n, 0.0, -1)
        high = checked_vector(f"request {request!r}: upper", upper, n, 1.0, 1)
        require_ordered(f"request {request!r}, column", low, high)
        if np.isfinite(limit) and not np.isfinite(low).all():
            raise InvalidDataError(f"request {request!r}: a limit needs finite lower bounds; give limit=inf or bounds")
        if low.sum() > limit:
            raise InvalidDataError(f"request {request!r}: lower bounds sum to {low.sum():g}, above the limit {limit:g}")
        plain_low = float(low[0]) if (low == low[0]).all() else low
        plain_high = float(high[0]) if (high == high[0]).all() else high
        return plain_low, plain_high
