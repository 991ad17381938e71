"""Read access to a model, and the look-ups that edits need."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import islice
from math import isfinite
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from copter.model.checks import Costs, checked_cost, finite, hashable, stored_cost
from copter.model.ledger import Ledger
from copter.model.matrix import Template
from copter.model.matrix.contents import Private
from copter.model.private_rows import PrivateRows, rows_of
from copter.model.usage import Pattern, Usage, pattern_of
from copter.problem.display import MOST_ROWS, counted, figure, page
from copter.runtime.errors import CopterError, DimensionError, DuplicateHandleError, UnknownHandleError

Floats = NDArray[np.float64]


class Inventory:
    """The read-only part of :class:`copter.Model`.

    Attributes
    ----------
    ledger : Ledger
        The engine's access to the model: matrix, slots and rows by id, journal. Not for users.
    """

    def __init__(self, sense: Literal["max", "min"], offset: float, cost_dtype: DTypeLike) -> None:
        self.ledger = Ledger(sense, offset, cost_dtype)

    # The model as a whole -----------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Number of requests."""
        return len(self.ledger.slot_of)

    def __bool__(self) -> bool:
        """True, also for a model without requests."""
        return True

    def __iter__(self) -> Iterator[Hashable]:
        """Iterate over the requests' ids, in the order they were added."""
        return iter(self.requests)

    def _sizes(self) -> list[str]:
        sizes = (len(self), "request"), (self.n_columns, "column"), (len(self.ledger.row_of), "resource")
        return [counted(number, what) for number, what in sizes]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.sense}: {', '.join(self._sizes())}, version {self.version}>"

    def _repr_html_(self) -> str:
        shown = [
            (str(each), figure(self.lower_count(each)), figure(self.count(each)))
            for each in islice(self.ledger.row_of, MOST_ROWS)
        ]
        facts = [
            ("objective", f"{self.sense}imize"),
            ("size", ", ".join(self._sizes())),
            ("edits", f"{self.version:,}"),
        ]
        left = len(self.ledger.row_of) - len(shown)
        return page("copter model", facts, ("resource", "at least", "count"), shown, left)

    @property
    def sense(self) -> Literal["max", "min"]:
        """Whether the objective is maximised or minimised."""
        return self.ledger.sense

    @property
    def offset(self) -> float:
        """Constant in the objective."""
        return self.ledger.offset

    @property
    def cost_dtype(self) -> np.dtype[Any]:
        """Default storage type of requests' costs."""
        return self.ledger.cost_dtype

    @property
    def version(self) -> int:
        """Number of edits made; every solution carries the version that it was computed for."""
        return self.ledger.version

    # What is in the model -----------------------------------------------------------------------------------------

    @property
    def requests(self) -> tuple[Hashable, ...]:
        """Ids of the requests, in the order they were added."""
        return tuple(self.ledger.slot_of)

    @property
    def resources(self) -> tuple[Hashable, ...]:
        """Ids of the resources, in the order they were added."""
        return tuple(self.ledger.row_of)

    @property
    def templates(self) -> tuple[Template, ...]:
        """The declared templates, in the order they were added."""
        return tuple(template for template in self.ledger.matrix.templates if template.shared)

    @property
    def n_columns(self) -> int:
        """Number of columns of all requests."""
        return int(self.ledger.matrix.n_columns)

    def count(self, resource: Hashable) -> float:
        """Return the number of units of a resource.

        Examples
        --------
        >>> import copter
        >>> model = copter.Model()
        >>> model.add_resource("gpu", 4)
        >>> model.count("gpu")
        4.0
        """
        return float(self.ledger.matrix.row_upper[self.ledger.row(resource)])

    def lower_count(self, resource: Hashable) -> float:
        """Return how many units of a resource all requests together must use at least; -inf for no such bound."""
        return float(self.ledger.matrix.row_lower[self.ledger.row(resource)])

    def template_of(self, request: Hashable) -> Template | None:
        """Return the template that a request shares; None if the request has its own usage."""
        template = self._template_at(self.ledger.slot(request))
        return template if template.shared else None

    def limit(self, request: Hashable) -> float:
        """Return the largest allowed sum of a request's columns."""
        return float(self.ledger.matrix.limit_of(self.ledger.slot(request)))

    def at_least(self, request: Hashable) -> float:
        """Return the least allowed sum of a request's columns; -inf for no such bound."""
        return float(self.ledger.matrix.least_of(self.ledger.slot(request)))

    def private_rows(self, request: Hashable) -> PrivateRows | None:
        """Return a copy of a request's private rows, with a sparse matrix (rows, n); None if the request has none."""
        slot = self.ledger.slot(request)
        template = self._template_at(slot)
        if template.private is None:
            return None
        lower, upper = self.ledger.matrix.private_bounds_of(np.array([slot], dtype=np.int32))
        return rows_of(template.private, template.n_columns, lower, upper)

    def bounds(self, request: Hashable) -> tuple[Floats, Floats]:
        """Return copies of the (lower, upper) bounds of a request's columns, (n,) each; those before the fix if it is
        fixed.
        """
        return self.ledger.matrix.free_bounds_of(self.ledger.slot(request))

    def is_integer(self, request: Hashable) -> bool:
        """Return whether an integer plan must give the request's columns whole values, or some of them."""
        return bool(self.ledger.matrix.slabs[self.ledger.slot(request)].integer)

    def integrality(self, request: Hashable) -> NDArray[np.bool_]:
        """Return which of the request's columns must be whole in an integer plan, (n,)."""
        slab = self.ledger.matrix.slabs[self.ledger.slot(request)]
        each = slab.whole_each
        return np.full(slab.template.n_columns, slab.integer) if each is None else np.array(each)

    def fixed(self, request: Hashable) -> int | None:
        """Return the column that a request is fixed to, or None."""
        column = int(self.ledger.matrix.fixed_of(self.ledger.slot(request)))
        return None if column < 0 else column

    def fixed_usage(self, resource: Hashable) -> float:
        """Return how many units of a resource the fixed requests use."""
        return float(self.ledger.matrix.fixed_usage(self.ledger.row(resource)))

    def cost(self, request: Hashable) -> Floats:
        """Return a copy of the objective coefficients of a request's columns, (n,)."""
        return self.ledger.sign * np.asarray(self.ledger.matrix.costs_of(self.ledger.slot(request))) + 0.0

    def __contains__(self, request: Hashable) -> bool:
        return request in self.ledger.slot_of

    # Checks -------------------------------------------------------------------------------------------------------

    def _template_at(self, slot: int) -> Template:
        template: Template = self.ledger.matrix.slabs[slot].template
        return template

    def _require_new(self, request: Hashable) -> None:
        hashable("request", request)
        if request in self.ledger.slot_of:
            raise DuplicateHandleError(f"request {request!r} is in the model already; remove it first")

    def _require_template(self, template: Template, where: str = "") -> None:
        if not isinstance(template, Template) or template not in self.ledger.matrix.templates:
            raise UnknownHandleError(f"{where}the template is not of this model; add_template makes one")

    @staticmethod
    def _require_columns(what: str, pattern: Pattern, n: int) -> None:
        if len(pattern[0]) - 1 != n:
            raise DimensionError(
                f"{what} has {n} columns, the usage {len(pattern[0]) - 1}: to change their number, remove and add again"
            )

    @staticmethod
    def _require_rows(what: str, private: Private | None, rows: int | None) -> None:
        """Raise DimensionError unless the number of private rows is `rows`; None accepts any number."""
        given = 0 if private is None else len(private[3])
        if rows is not None and given != rows:
            raise DimensionError(
                f"{what} has {rows} private rows, not {given}: to change their number, remove and add again"
            )

    def _signed(self, request: Hashable, scale: float, offset: float) -> tuple[float, float]:
        """Return scale and offset with the sign of a minimisation."""
        if type(scale) is float and type(offset) is float and isfinite(scale) and isfinite(offset):
            return self.ledger.sign * scale, self.ledger.sign * offset
        factor, constant = finite(f"request {request!r}: scale", scale), finite(f"request {request!r}: offset", offset)
        return self.ledger.sign * factor, self.ledger.sign * constant

    def _stored_anew(self, request: Hashable, cost: ArrayLike) -> tuple[Costs, float]:
        slab = self.ledger.matrix.slabs[self.ledger.slot(request)]
        return stored_cost(request, checked_cost(request, cost, slab.template.n_columns), slab.cost.dtype)

    def _plain_bounds(self, request: Hashable) -> tuple[Any, Any]:
        """Return a request's bounds in the form that :meth:`add_request` accepts."""
        slab = self.ledger.matrix.slabs[self.ledger.slot(request)]
        lower = 0.0 if slab.lower_each is None else slab.lower_each
        return lower, float(self.ledger.matrix.upper_of(slab.slot)) if slab.upper_each is None else slab.upper_each

    def _own_pattern(self, request: Hashable, usage: Usage, resources: Sequence[Hashable] | None) -> Pattern:
        """Return the usage of one request by columns; errors name the request."""
        try:
            return pattern_of(usage, resources, self.ledger.row)
        except CopterError as error:
            raise type(error)(f"request {request!r}: {error}") from None
