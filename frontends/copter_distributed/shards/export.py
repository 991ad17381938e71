"""A request of one model as the edits that recreate it in another."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from copter.model.matrix import Template
from copter.model.matrix.contents import Private
from copter.model.model import Model
from copter.model.private_rows import PrivateRows
from copter_distributed.messages.messages import Call, Inventory, TemplateAt
from copter_distributed.shards.held import place_of_row


def calls_of(model: Model, templates: Sequence[Template], request: Hashable) -> list[Call]:
    """Return the edits that recreate a request in another model with the same resources and templates.

    Costs are sent as stored, with scale and offset, so that later edits of these have the same effect.
    """
    ledger = model.ledger
    slot = ledger.slot(request)
    slab, matrix = ledger.matrix.slabs[slot], ledger.matrix
    lower, upper = model.bounds(request)
    scale, offset = matrix.scale_of(slot)
    named: dict[str, Any] = {
        "cost": slab.cost.copy(),
        "cost_dtype": str(slab.cost.dtype),
        "scale": ledger.sign * scale,
        "offset": ledger.sign * offset,
        "limit": model.limit(request),
        "at_least": model.at_least(request),
        "lower": lower if slab.lower_each is not None else 0.0,
        "upper": upper if slab.upper_each is not None else matrix.upper_of(slot),
        "integer": bool(slab.integer) if slab.whole_each is None else slab.whole_each.copy(),
    }
    if slab.template.shared:
        named["template"] = TemplateAt(list(templates).index(slab.template))
        if slab.template.n_private:
            own = matrix.private_bounds_of(np.array([slot], dtype=np.int32))
            named["row_lower"], named["row_upper"] = own
    else:
        start, row, value, _ = slab.template.contents()
        shape = (len(ledger.row_of), slab.template.n_columns)
        named["usage"] = sp.csc_array((value.copy(), place_of_row(model)[row], start.copy()), shape=shape)
        named["resources"] = list(ledger.row_of)
        private: PrivateRows | None = model.private_rows(request)
        named["private_rows"] = private
    calls = [Call("add_request", (request,), named)]
    columns, costs = matrix.exceptions_of(slot)
    if np.isfinite(matrix.most_of(slot)):
        again = {"scale": [named["scale"]], "offset": [named["offset"]], "worst": [ledger.sign * matrix.most_of(slot)]}
        calls.append(Call("rescale_costs", ([request],), again))
    if len(columns):
        calls.append(Call("update_column_cost", (request, columns.copy(), ledger.sign * costs), {}))
    fixed = model.fixed(request)
    if fixed is not None:
        calls.append(Call("fix", (request, fixed), {}))
    return calls


def calls_of_inventory(inventory: Inventory) -> list[Call]:
    """Return the edits that recreate a shard's resources and templates in an empty model."""
    names = inventory.resources
    bounds = zip(names, inventory.upper.tolist(), inventory.lower.tolist(), strict=True)
    calls = [Call("set_count", (resource, upper, lower), {}) for resource, upper, lower in bounds]
    for start, row, value, private in inventory.templates:
        usage = sp.csc_array((value, row, start), shape=(len(names), len(start) - 1))
        own = rows_of_template(private, len(start) - 1)
        calls.append(Call("add_template", (usage, names), {"private_rows": own}))
    return calls


def inventory_of(model: Model, templates: Sequence[Template]) -> Inventory:
    """Return the model's requests, resources and templates, without costs."""
    ledger = model.ledger
    rows, slots = list(ledger.row_of.values()), list(ledger.slot_of.values())
    matrix, place = ledger.matrix, place_of_row(model)
    declared = [template.contents() for template in templates]
    return Inventory(
        list(ledger.row_of),
        matrix.row_lower[rows].copy(),
        matrix.row_upper[rows].copy(),
        [(start.copy(), place[row], value.copy(), private) for start, row, value, private in declared],
        list(ledger.slot_of),
        matrix.sizes_of(np.array(slots, dtype=np.int32)),
    )


def rows_of_template(private: Private | None, n: int) -> PrivateRows | None:
    """Return the private rows that a template declares."""
    if private is None:
        return None
    start, row, value, lower, upper = private
    return PrivateRows(sp.csc_array((value, row, start), shape=(len(lower), n)), lower.copy(), upper.copy())
