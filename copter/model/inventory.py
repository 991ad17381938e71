"""What a model holds, and the look-ups that its edits begin with."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from copter.errors import CopterError, DimensionError, DuplicateHandleError, StaleSolutionError, UnknownHandleError
from copter.matrix import Template
from copter.model.checks import Costs, checked_cost, finite, hashable, stored_cost
from copter.model.ledger import Ledger
from copter.model.usage import Pattern, Usage, pattern_of

Floats = NDArray[np.float64]


class Inventory(Ledger):
    """The readers' side of :class:`copter.Model`: nothing here changes it."""

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
    def templates(self) -> tuple[Template, ...]:
        """The declared templates, in the order they were added."""
        return tuple(template for template in self._matrix.templates if template.shared)

    @property
    def n_columns(self) -> int:
        """Number of columns of all requests."""
        return int(self._matrix.n_columns)

    def count(self, resource: Hashable) -> float:
        """Units of a resource."""
        return float(self._matrix.row_upper[self._row(resource)])

    def template_of(self, request: Hashable) -> Template | None:
        """Template that a request shares, or None where its usage is its own."""
        template = self._template_at(self._slot(request))
        return template if template.shared else None

    def limit(self, request: Hashable) -> float:
        """Largest sum of a request's columns."""
        return float(self._matrix.limit_of(self._slot(request)))

    def bounds(self, request: Hashable) -> tuple[Floats, Floats]:
        """(lower, upper) of a request's columns, (n,) each, new arrays; whether it is fixed or not."""
        return self._matrix.free_bounds_of(self._slot(request))

    def is_integer(self, request: Hashable) -> bool:
        """Whether a request's columns must be whole in an integer plan."""
        return bool(self._matrix.slabs[self._slot(request)].integer)

    def fixed(self, request: Hashable) -> int | None:
        """Column that a request is fixed on, or None."""
        column = int(self._matrix.fixed_of(self._slot(request)))
        return None if column < 0 else column

    def fixed_usage(self, resource: Hashable) -> float:
        """Units of a resource that fixed requests use."""
        return float(self._matrix.fixed_usage(self._row(resource)))

    def cost(self, request: Hashable) -> Floats:
        """Objective coefficients of a request's columns, (n,), a new array."""
        return self._sign * np.asarray(self._matrix.costs_of(self._slot(request))) + 0.0

    def __contains__(self, request: Hashable) -> bool:
        return request in self._slot_of

    # Checks -------------------------------------------------------------------------------------------------------

    def _row(self, resource: Hashable) -> int:
        try:
            return self._row_of[resource]
        except TypeError:
            hashable("resource", resource)
            raise
        except KeyError:
            raise UnknownHandleError(f"unknown resource {resource!r}; add_resources makes it") from None

    def _slot(self, request: Hashable) -> int:
        try:
            return self._slot_of[request]
        except TypeError:
            hashable("request", request)
            raise
        except KeyError:
            raise UnknownHandleError(f"unknown request {request!r}: never added, or already removed") from None

    def _slots(self, requests: list[Hashable]) -> NDArray[np.int32]:
        """Slots of many requests, by one run over them; a wrong id is looked for only where there is one."""
        try:
            return np.fromiter(map(self._slot_of.__getitem__, requests), dtype=np.int32, count=len(requests))
        except (KeyError, TypeError):
            return np.array([self._slot(request) for request in requests], dtype=np.int32)

    def _template_at(self, slot: int) -> Template:
        template: Template = self._matrix.slabs[slot].template
        return template

    def _require_new(self, request: Hashable) -> None:
        hashable("request", request)
        if request in self._slot_of:
            raise DuplicateHandleError(f"request {request!r} is in the model already; remove it first")

    def _require_template(self, template: Template, where: str = "") -> None:
        if not isinstance(template, Template) or template not in self._matrix.templates:
            raise UnknownHandleError(f"{where}the template is not of this model; add_template makes one")

    @staticmethod
    def _require_columns(what: str, pattern: Pattern, n: int) -> None:
        if len(pattern[0]) - 1 != n:
            raise DimensionError(
                f"{what} has {n} columns, the usage {len(pattern[0]) - 1}: to change their number, remove and add again"
            )

    def require_unchanged(self, request: Hashable, version: int) -> None:
        """Raise StaleSolutionError if a request has been removed since a version of the model."""
        if self._added_at.get(request, version + 1) > version:
            raise StaleSolutionError(f"request {request!r} has been removed since this solution was found")

    def _signed(self, request: Hashable, scale: float, offset: float) -> tuple[float, float]:
        """Scale and offset of costs as minimised."""
        if type(scale) is float and type(offset) is float and isfinite(scale) and isfinite(offset):
            return self._sign * scale, self._sign * offset
        factor, constant = finite(f"request {request!r}: scale", scale), finite(f"request {request!r}: offset", offset)
        return self._sign * factor, self._sign * constant

    def _stored_anew(self, request: Hashable, cost: ArrayLike) -> tuple[Costs, float]:
        slab = self._matrix.slabs[self._slot(request)]
        return stored_cost(request, checked_cost(request, cost, slab.template.n_columns), slab.cost.dtype)

    def _plain_bounds(self, request: Hashable) -> tuple[Any, Any]:
        """Bounds as :meth:`add_request` takes them."""
        slab = self._matrix.slabs[self._slot(request)]
        lower = 0.0 if slab.lower_each is None else slab.lower_each
        return lower, float(self._matrix.upper_of(slab.slot)) if slab.upper_each is None else slab.upper_each

    def _own_pattern(self, request: Hashable, usage: Usage, resources: Sequence[Hashable] | None) -> Pattern:
        """A usage of one request; an error names the request."""
        try:
            return pattern_of(usage, resources, self._row)
        except CopterError as error:
            raise type(error)(f"request {request!r}: {error}") from None
