"""The model of a distributed session: edits and look-ups of a Model, routed to the shards by id."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from copter.model.checks import different, listed, whole_numbers
from copter.model.matrix import Template
from copter.model.model import Model
from copter.model.private_rows import PrivateRows
from copter.model.usage import Usage, pattern_of
from copter.problem.linear_program import LinearProgram
from copter.runtime.errors import DimensionError, EditNotAllowedError
from copter_distributed.messages.messages import TemplateAt
from copter_distributed.messages.portions import at_all, rows_taken, taken, taken_rows
from copter_distributed.model.deal import Deal
from copter_distributed.model.routing import (
    Batch,
    Routing,
    asked_of_its_shard,
    at_the_coordinator,
    everywhere,
    on_its_shard,
    on_their_shards,
)
from copter_distributed.shards.export import calls_of_inventory, inventory_of

ONE_EACH = ("costs", "limit", "at_least", "integer", "scale", "offset")  # arguments of add_requests, one a request


class RoutedModel(Routing):
    """A :class:`copter.Model` whose requests are on shards.

    The coordinator and every shard have all resources and templates. A request is on one shard, which checks its edits.

    Parameters
    ----------
    model, deal, apply, read
        See :class:`.Routing`.
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
        super().__init__(model, deal, apply, read)
        self._cost_dtype = np.dtype(cost_dtype)

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

    count = at_the_coordinator(Model.count)
    lower_count = at_the_coordinator(Model.lower_count)

    def fixed_usage(self, resource: Hashable) -> float:
        """Return how many units of a resource the fixed requests use."""
        self._model.ledger.row(resource)
        return sum(float(self._read(shard, "fixed_usage", resource)) for shard in self._deal.load)

    cost = asked_of_its_shard(Model.cost)
    limit = asked_of_its_shard(Model.limit)
    at_least = asked_of_its_shard(Model.at_least)
    bounds = asked_of_its_shard(Model.bounds)
    private_rows = asked_of_its_shard(Model.private_rows)
    is_integer = asked_of_its_shard(Model.is_integer)
    integrality = asked_of_its_shard(Model.integrality)
    fixed = asked_of_its_shard(Model.fixed)

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

    # Resources and templates ------------------------------------------------------------------------------------------

    add_resource = add_resources = everywhere(Model.add_resource)
    set_count = everywhere(Model.set_count)
    update_counts = everywhere(Model.update_counts)
    add_units = everywhere(Model.add_units)
    remove_units = remove_resources = everywhere(Model.remove_units)
    remove_resource = drop_resource = everywhere(Model.remove_resource)
    update_template = everywhere(Model.update_template)

    def add_template(
        self, usage: Usage, resources: Sequence[Hashable] | None = None, *, private_rows: PrivateRows | None = None
    ) -> Template:
        """See :meth:`copter.Model.add_template`."""
        with self.batch():
            template = _add_template(self, usage, resources, private_rows=private_rows)
            self._templates.append(template)
        return template

    def drop_template(self, template: Template) -> None:
        """See :meth:`copter.Model.drop_template`."""
        with self.batch():
            _drop_template(self, template)
            self._templates = [each for each in self._templates if each is not template]

    # Requests -------------------------------------------------------------------------------------------------------

    update_usage = on_its_shard(Model.update_usage)
    update_integrality = on_its_shard(Model.update_integrality)
    fix = on_its_shard(Model.fix)
    unfix = on_its_shard(Model.unfix)
    update_limit = on_its_shard(Model.update_limit)
    update_limits = on_their_shards("limits", "at_least")(Model.update_limits)
    update_bounds = on_its_shard(Model.update_bounds)
    update_private_rows = on_its_shard(Model.update_private_rows)
    update_cost = on_its_shard(Model.update_cost)
    update_column_cost = on_its_shard(Model.update_column_cost)
    rescale_cost = on_its_shard(Model.rescale_cost)
    rescale_costs = on_their_shards("scale", "offset", "columns", "costs", "worst")(Model.rescale_costs)

    def add_request(self, request: Hashable, cost: ArrayLike, usage: Usage | None = None, **named: Any) -> None:
        """See :meth:`copter.Model.add_request`; the shard with the fewest columns gets it."""
        with self.batch():
            self._send(self._deal.add(request, np.size(cost)), "add_request", request, cost, usage, **named)

    def add_requests(
        self, requests: Sequence[Hashable], costs: ArrayLike | Sequence[ArrayLike], *, template: Template, **named: Any
    ) -> None:
        """See :meth:`copter.Model.add_requests`; requests are assigned to shards one by one."""
        ids = listed("requests", requests)
        with self.batch():
            self._placed(template)
            for request in ids:
                self._deal.add(request, template.n_columns)
            self._many("add_requests", ids, {"costs": costs, "template": template, **named}, ONE_EACH)

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
        ids, each = listed("requests", requests), {"limit": limit, "at_least": at_least, "integer": integer}
        with self.batch():
            for request, size in zip(ids, whole_numbers("sizes", sizes, len(ids)).tolist(), strict=True):
                self._deal.add(request, size)
            rows = private_rows, private_sizes, None
            self._own("add_own_requests", ids, sizes, cost, (usage, resources), each, (lower, upper), rows, None)

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
        """See :meth:`copter.Model.update_columns`; the next solve starts the requests anew, with the present prices."""
        ids, each = listed("requests", requests), {"limit": limit, "at_least": at_least}
        different(ids)
        with self.batch():
            for request, size in zip(ids, whole_numbers("sizes", sizes, len(ids)).tolist(), strict=True):
                self._deal.resize(request, size)
            rows = private_rows, private_sizes, kept_rows
            self._own("update_columns", ids, sizes, cost, (usage, resources), each, (lower, upper), rows, kept)

    def _own(
        self,
        method: str,
        ids: list[Hashable],
        sizes: ArrayLike,
        cost: ArrayLike,
        used: tuple[Usage, Sequence[Hashable] | None],
        one_each: dict[str, ArrayLike],
        bounds: tuple[ArrayLike, ArrayLike],
        private: tuple[PrivateRows | None, ArrayLike, ArrayLike | None],
        kept: ArrayLike | None,
    ) -> None:
        """Send an edit of requests with patterns of their own: each shard gets its requests' part of every argument."""
        count = np.asarray(sizes, dtype=np.int64)
        start, row, value = pattern_of(*used, self._model.ledger.row)
        names = {at: resource for resource, at in self._model.ledger.row_of.items()}
        known = np.unique(row)
        matrix = sp.csc_array((value, np.searchsorted(known, row), start), shape=(len(known), len(start) - 1))
        costs = np.asarray(cost)
        if count.shape != (len(ids),) or count.sum() != matrix.shape[1] or costs.shape != (matrix.shape[1],):
            raise DimensionError(
                f"usage has {matrix.shape[1]} columns, cost {costs.size}, sizes of {len(ids)} requests sum to "
                f"{count.sum()}"
            )
        owner = np.repeat(np.arange(len(ids)), count)
        private_rows, private_sizes, kept_rows = private
        rows_of = np.broadcast_to(np.asarray(private_sizes, dtype=np.int64), (len(ids),))
        for shard, at in self._deal.split(ids).items():
            columns, rows = np.flatnonzero(np.isin(owner, at)), np.isin(np.repeat(at_all(ids), rows_of), at)
            named: dict[str, Any] = {name: taken(value, at, len(ids)) for name, value in one_each.items()}
            named["lower"], named["upper"] = (taken(each, columns, len(owner)) for each in bounds)
            if kept is not None:
                named["kept"] = taken(kept, columns, len(owner), "kept")
                named["kept_rows"] = taken(kept_rows, np.flatnonzero(rows), len(rows), "kept_rows")
            if private_rows is not None:
                named["private_sizes"], named["private_rows"] = rows_of[at], rows_taken(private_rows, rows, columns)
            self._send(
                shard, method, [ids[i] for i in at], count[at], costs[columns], matrix[:, columns],
                resources=[names[each] for each in known.tolist()], **named,
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


_add_template = everywhere(Model.add_template)
_drop_template = everywhere(Model.drop_template)
