"""The model of a distributed session: edits and look-ups of a Model, routed to the shards by id."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from copter.distributed.deal import Deal
from copter.distributed.export import calls_of_inventory, inventory_of
from copter.distributed.messages import Call, Floats, TemplateAt
from copter.distributed.portions import at_all, rows_taken, taken, taken_rows
from copter.errors import DimensionError, EditNotAllowedError, InvalidDataError
from copter.model.checks import different, listed
from copter.model.matrix import Template
from copter.model.model import Model
from copter.model.private_rows import PrivateRows
from copter.model.usage import Usage, pattern_of
from copter.problem.linear_program import LinearProgram

Batch = dict[int, list[Call]]
BY_REQUEST = {
    "add_requests": ("costs", "limit", "at_least", "integer", "scale", "offset"),
    "update_limits": ("limits", "at_least"),
    "rescale_costs": ("scale", "offset", "columns", "costs", "worst"),
}  # arguments with one entry for each request
BOUNDS = ("row_lower", "row_upper")


class RoutedModel:
    """A :class:`copter.Model` whose requests are on shards.

    The coordinator and every shard have all resources and templates. A request is on one shard, which checks its edits.
    The edits of a ``with model.batch():`` are sent together when the block ends, so an error in one of them is raised
    at the end of the block, and then no shard has applied any of them.

    Parameters
    ----------
    model : Model
        The restricted master's model, which has the resources and templates.
    deal : Deal
    apply : callable
        Function that applies a batch on all shards or on none.
    read : callable (shard, method, argument)
        Function that reads from a shard's model.
    cost_dtype : str
        Name of the type that shards store costs in.
    """

    def __init__(
        self,
        model: Model,
        deal: Deal,
        apply: Callable[[Batch], None],
        read: Callable[[int, str, Any], Any],
        cost_dtype: str = "float64",
    ) -> None:
        self._model, self._deal, self._apply, self._read = model, deal, apply, read
        self._cost_dtype = np.dtype(cost_dtype)
        self._templates: list[Template] = list(model.templates)
        self._calls: Batch = {}
        self._depth = 0

    # Look-ups ------------------------------------------------------------------------------------------------

    @property
    def sense(self) -> Literal["max", "min"]:
        """Whether the objective is maximised or minimised."""
        return self._model.sense

    @property
    def offset(self) -> float:
        """Constant in the objective."""
        return self._model.offset

    @property
    def cost_dtype(self) -> np.dtype[Any]:
        """Default storage type of requests' costs."""
        return self._cost_dtype

    @property
    def version(self) -> int:
        """Number of edits so far."""
        return self._deal.version

    @property
    def requests(self) -> tuple[Hashable, ...]:
        """Ids of the requests, in the order they were added."""
        return tuple(self._deal.owner)

    @property
    def resources(self) -> tuple[Hashable, ...]:
        """Ids of the resources, in the order they were added."""
        return self._model.resources

    @property
    def templates(self) -> tuple[Template, ...]:
        """The declared templates, in the order they were added."""
        return tuple(self._templates)

    @property
    def n_columns(self) -> int:
        """Number of columns of all requests."""
        return sum(self._deal.load.values())

    def __contains__(self, request: Hashable) -> bool:
        return request in self._deal.owner

    def count(self, resource: Hashable) -> float:
        """Return the number of units of a resource."""
        return self._model.count(resource)

    def lower_count(self, resource: Hashable) -> float:
        """Return the least sum of usage of a resource; -inf for no bound."""
        return self._model.lower_count(resource)

    def fixed_usage(self, resource: Hashable) -> float:
        """Return how many units of a resource the fixed requests use."""
        self._model.ledger.row(resource)
        return sum(float(self._read(shard, "fixed_usage", resource)) for shard in self._deal.load)

    def cost(self, request: Hashable) -> Floats:
        """Return the objective coefficients of a request's columns, (n,)."""
        found: Floats = self._look_up("cost", request)
        return found

    def limit(self, request: Hashable) -> float:
        """Return the largest allowed sum of a request's columns."""
        return float(self._look_up("limit", request))

    def at_least(self, request: Hashable) -> float:
        """Return the least sum of a request's columns; -inf for no bound."""
        return float(self._look_up("at_least", request))

    def bounds(self, request: Hashable) -> tuple[Floats, Floats]:
        """Return the (lower, upper) bounds of a request's columns, (n,) each."""
        found: tuple[Floats, Floats] = self._look_up("bounds", request)
        return found

    def private_rows(self, request: Hashable) -> PrivateRows | None:
        """Return a request's private rows; None if it has none."""
        found: PrivateRows | None = self._look_up("private_rows", request)
        return found

    def is_integer(self, request: Hashable) -> bool:
        """Whether a request's columns must be whole in an integer plan."""
        return bool(self._look_up("is_integer", request))

    def fixed(self, request: Hashable) -> int | None:
        """Return the column that a request is fixed to, or None."""
        found: int | None = self._look_up("fixed", request)
        return found

    def template_of(self, request: Hashable) -> Template | None:
        """Return the template that a request shares; None if it has its own usage."""
        place = int(self._look_up("template_of", request))
        return None if place < 0 else self._templates[place]

    def to_linear_program(self) -> LinearProgram:
        """Return the whole model as one LP; needs the memory of all shards in this process."""
        if self._calls:
            raise EditNotAllowedError("a batch is open, whose edits are not made yet: ask before it, or after")
        whole = Model(self.sense, self.offset)
        for call in calls_of_inventory(inventory_of(self._model, self._templates)):
            getattr(whole, call.method)(*call.arguments, **call.named)
        templates = whole.templates
        for request, shard in self._deal.owner.items():
            for call in self._read(shard, "export", [request]):
                named = {
                    name: templates[value.place] if isinstance(value, TemplateAt) else value
                    for name, value in call.named.items()
                }
                getattr(whole, call.method)(*call.arguments, **named)
        return whole.to_linear_program()

    def _look_up(self, method: str, request: Hashable) -> Any:
        if self._calls:
            raise EditNotAllowedError(
                f"request {request!r} is asked about inside a batch, whose edits are not made yet: ask before it, "
                "or after"
            )
        return self._read(self._deal.shard_of(request), method, request)

    # Batches --------------------------------------------------------------------------------------------------------

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Apply all edits of a ``with`` block on all shards, or none if the block raises an exception."""
        deal, mark, version = self._deal, self._deal.mark(), self._deal.version
        templates, sizes = list(self._templates), {shard: len(calls) for shard, calls in self._calls.items()}
        self._depth += 1
        try:
            with self._model.batch():
                yield
                if self._depth == 1 and self._calls:
                    self._apply(self._calls)
        except BaseException:
            deal.back_to(mark)
            deal.version, self._templates = version, templates
            for shard, calls in list(self._calls.items()):
                del calls[sizes.get(shard, 0) :]
                if not calls:
                    del self._calls[shard]
            raise
        finally:
            self._depth -= 1
        if self._depth == 0:
            deal.settle()
            self._calls = {}

    def _send(self, shard: int, method: str, *arguments: Any, **named: Any) -> None:
        """Queue one edit for one shard, inside a batch."""
        self._deal.version += 1
        self._calls.setdefault(shard, []).append(Call(method, arguments, named))

    def send(self, shard: int, call: Call) -> None:
        """Queue an edit that is already routed, inside a batch."""
        self._send(shard, call.method, *call.arguments, **call.named)

    def _everywhere(self, method: str, *arguments: Any, **named: Any) -> None:
        for shard in self._deal.load:
            self._send(shard, method, *arguments, **named)

    def _place(self, template: Template) -> TemplateAt:
        for place, each in enumerate(self._templates):
            if each is template:
                return TemplateAt(place)
        raise InvalidDataError("the template is not one of this model's, or has been dropped")

    def _own(self, method: str, request: Hashable, *arguments: Any, **named: Any) -> None:
        """Send an edit of one request."""
        with self.batch():
            self._send(self._deal.shard_of(request), method, request, *arguments, **named)

    # Resources and templates ------------------------------------------------------------------------------------------

    def add_resources(self, resource: Hashable, count: float, lower: float | None = None) -> None:
        """See :meth:`copter.Model.add_resources`."""
        with self.batch():
            self._model.add_resources(resource, count, lower)
            self._everywhere("add_resources", resource, count, lower)

    def set_count(self, resource: Hashable, count: float, lower: float | None = None) -> None:
        """See :meth:`copter.Model.set_count`."""
        with self.batch():
            self._model.set_count(resource, count, lower)
            self._everywhere("set_count", resource, count, lower)

    def update_counts(self, resources: Sequence[Hashable], counts: ArrayLike, lower: ArrayLike | None = None) -> None:
        """See :meth:`copter.Model.update_counts`."""
        with self.batch():
            self._model.update_counts(resources, counts, lower)
            self._everywhere("update_counts", list(resources), counts, lower)

    def remove_resources(self, resource: Hashable, count: float) -> None:
        """See :meth:`copter.Model.remove_resources`."""
        with self.batch():
            self._model.remove_resources(resource, count)
            self._everywhere("remove_resources", resource, count)

    def drop_resource(self, resource: Hashable) -> None:
        """See :meth:`copter.Model.drop_resource`."""
        with self.batch():
            self._model.drop_resource(resource)
            self._everywhere("drop_resource", resource)

    def add_template(
        self, usage: Usage, resources: Sequence[Hashable] | None = None, *, private_rows: PrivateRows | None = None
    ) -> Template:
        """See :meth:`copter.Model.add_template`."""
        with self.batch():
            template = self._model.add_template(usage, resources, private_rows=private_rows)
            self._templates.append(template)
            self._everywhere("add_template", usage, resources, private_rows=private_rows)
        return template

    def update_template(
        self,
        template: Template,
        usage: Usage | None = None,
        resources: Sequence[Hashable] | None = None,
        *,
        private_rows: PrivateRows | None = None,
    ) -> None:
        """See :meth:`copter.Model.update_template`."""
        with self.batch():
            place = self._place(template)
            self._model.update_template(template, usage, resources, private_rows=private_rows)
            self._everywhere("update_template", place, usage, resources, private_rows=private_rows)

    def drop_template(self, template: Template) -> None:
        """See :meth:`copter.Model.drop_template`."""
        with self.batch():
            place = self._place(template)
            self._model.drop_template(template)
            self._everywhere("drop_template", place)
            del self._templates[place.place]

    # Requests -------------------------------------------------------------------------------------------------------

    def add_request(
        self,
        request: Hashable,
        cost: ArrayLike,
        usage: Usage | None = None,
        *,
        template: Template | None = None,
        **named: Any,
    ) -> None:
        """See :meth:`copter.Model.add_request`; the shard with the fewest columns gets it."""
        with self.batch():
            shard = self._deal.add(request, np.size(cost))
            if template is not None:
                named["template"] = self._place(template)
            self._send(shard, "add_request", request, cost, usage, **named)

    def add_requests(
        self, requests: Sequence[Hashable], costs: ArrayLike | Sequence[ArrayLike], *, template: Template, **named: Any
    ) -> None:
        """See :meth:`copter.Model.add_requests`; requests are assigned to shards one by one."""
        ids = listed("requests", requests)
        with self.batch():
            place = self._place(template)
            for request in ids:
                self._deal.add(request, template.n_columns)
            self._many("add_requests", ids, {"costs": costs, **named}, template=place)

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
        """See :meth:`copter.Model.add_own_requests`; requests are assigned to shards one by one."""
        ids = listed("requests", requests)
        count = np.asarray(sizes, dtype=np.int64)
        start, row, value = pattern_of(usage, resources, self._model.ledger.row)
        names = {at: resource for resource, at in self._model.ledger.row_of.items()}
        used = np.unique(row)
        matrix = sp.csc_array((value, np.searchsorted(used, row), start), shape=(len(used), len(start) - 1))
        costs = np.asarray(cost)
        if count.shape != (len(ids),) or count.sum() != matrix.shape[1] or costs.shape != (matrix.shape[1],):
            raise DimensionError(
                f"usage has {matrix.shape[1]} columns, cost {costs.size}, sizes of {len(ids)} requests sum to "
                f"{count.sum()}"
            )
        owner = np.repeat(np.arange(len(ids)), count)
        rows_of = np.broadcast_to(np.asarray(private_sizes, dtype=np.int64), (len(ids),))
        with self.batch():
            for request, size in zip(ids, count.tolist(), strict=True):
                self._deal.add(request, size)
            for shard, at in self._deal.split(ids).items():
                columns = np.flatnonzero(np.isin(owner, at))
                each = {"limit": limit, "at_least": at_least, "integer": integer}
                named: dict[str, Any] = {name: taken(value, at, len(ids)) for name, value in each.items()}
                named |= {"lower": taken(lower, columns, len(owner)), "upper": taken(upper, columns, len(owner))}
                if private_rows is not None:
                    named["private_sizes"] = rows_of[at]
                    named["private_rows"] = rows_taken(
                        private_rows, np.isin(np.repeat(at_all(ids), rows_of), at), columns
                    )
                self._send(
                    shard, "add_own_requests", [ids[i] for i in at], count[at], costs[columns], matrix[:, columns],
                    resources=[names[each] for each in used.tolist()], **named,
                )  # fmt: skip

    def remove_request(self, request: Hashable) -> None:
        """See :meth:`copter.Model.remove_request`."""
        with self.batch():
            self._send(self._deal.remove(request), "remove_request", request)

    def remove_requests(self, requests: Sequence[Hashable]) -> None:
        """See :meth:`copter.Model.remove_requests`."""
        ids = listed("requests", requests)
        different(ids)
        with self.batch():
            for shard, at in self._deal.split(ids).items():
                self._send(shard, "remove_requests", [ids[i] for i in at])
            for request in ids:
                self._deal.remove(request)

    def update_usage(
        self, request: Hashable, usage: Usage | None = None, *, template: Template | None = None, **named: Any
    ) -> None:
        """See :meth:`copter.Model.update_usage`."""
        if template is not None:
            named["template"] = self._place(template)
        self._own("update_usage", request, usage, **named)

    def update_integrality(self, request: Hashable, integer: bool) -> None:
        """See :meth:`copter.Model.update_integrality`."""
        self._own("update_integrality", request, integer)

    def fix(self, request: Hashable, column: int) -> None:
        """See :meth:`copter.Model.fix`."""
        self._own("fix", request, column)

    def unfix(self, request: Hashable) -> None:
        """See :meth:`copter.Model.unfix`."""
        self._own("unfix", request)

    def update_limit(self, request: Hashable, limit: float, at_least: float | None = None) -> None:
        """See :meth:`copter.Model.update_limit`."""
        self._own("update_limit", request, limit, at_least)

    def update_limits(self, requests: Sequence[Hashable], limits: ArrayLike, at_least: ArrayLike | None = None) -> None:
        """See :meth:`copter.Model.update_limits`."""
        self._many("update_limits", listed("requests", requests), {"limits": limits, "at_least": at_least})

    def update_bounds(self, request: Hashable, lower: ArrayLike | None = None, upper: ArrayLike | None = None) -> None:
        """See :meth:`copter.Model.update_bounds`."""
        self._own("update_bounds", request, lower, upper)

    def update_row_bounds(
        self, requests: Sequence[Hashable], lower: Any = None, upper: Any = None, *, row: int | None = None
    ) -> None:
        """See :meth:`copter.Model.update_row_bounds`; bounds are either common to all requests or given one per
        request.
        """
        ids = listed("requests", requests)
        with self.batch():
            for shard, at in self._deal.split(ids).items():
                bounds = (taken_rows(each, at, len(ids), row is not None) for each in (lower, upper))
                self._send(shard, "update_row_bounds", [ids[i] for i in at], *bounds, row=row)

    def update_private_rows(self, request: Hashable, private_rows: PrivateRows) -> None:
        """See :meth:`copter.Model.update_private_rows`."""
        self._own("update_private_rows", request, private_rows)

    # Costs ----------------------------------------------------------------------------------------------------------

    def update_cost(self, request: Hashable, cost: ArrayLike, scale: float = 1.0, offset: float = 0.0) -> None:
        """See :meth:`copter.Model.update_cost`."""
        self._own("update_cost", request, cost, scale, offset)

    def update_costs(self, requests: Sequence[Hashable], costs: ArrayLike | Sequence[ArrayLike]) -> None:
        """See :meth:`copter.Model.update_costs`."""
        ids = listed("requests", requests)
        if isinstance(costs, np.ndarray) and costs.ndim == 1 and costs.dtype != object:
            sizes = np.array([self._deal.size[each] for each in ids if each in self._deal.size], dtype=np.int64)
            if len(sizes) == len(ids) and sizes.sum() != len(costs):
                raise DimensionError(f"costs has {len(costs)} entries, the requests have {sizes.sum()} columns")
            costs = np.split(costs, np.cumsum(sizes)[:-1])
        with self.batch():
            for shard, at in self._deal.split(ids).items():
                self._send(shard, "update_costs", [ids[i] for i in at], taken(costs, at, len(ids)))

    def update_column_cost(self, request: Hashable, column: ArrayLike, cost: ArrayLike) -> None:
        """See :meth:`copter.Model.update_column_cost`."""
        self._own("update_column_cost", request, column, cost)

    def rescale_cost(self, request: Hashable, *arguments: Any, **named: Any) -> None:
        """See :meth:`copter.Model.rescale_cost`."""
        self._own("rescale_cost", request, *arguments, **named)

    def rescale_costs(
        self,
        requests: Sequence[Hashable],
        scale: ArrayLike,
        offset: ArrayLike = 0.0,
        columns: ArrayLike | None = None,
        costs: ArrayLike = 0.0,
        worst: ArrayLike | None = None,
    ) -> None:
        """See :meth:`copter.Model.rescale_costs`."""
        given = {"scale": scale, "offset": offset, "columns": columns, "costs": costs, "worst": worst}
        self._many("rescale_costs", listed("requests", requests), given)

    def _many(self, method: str, ids: list[Hashable], given: Mapping[str, Any], **named: Any) -> None:
        """Send an edit of many requests; each shard gets its part of the arguments."""
        with self.batch():
            for shard, at in self._deal.split(ids).items():
                part = {
                    name: taken(value, at, len(ids), name)
                    if name in BY_REQUEST[method]
                    else taken_rows(value, at, len(ids), False)
                    if name in BOUNDS
                    else value
                    for name, value in given.items()
                }
                self._send(shard, method, [ids[i] for i in at], **part, **named)
