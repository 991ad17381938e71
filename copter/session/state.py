"""Conversion of a model and a solver state to plain values and back, for snapshots."""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.saved_basis import basis_from, basis_state
from copter.methods.integer.solution import IntegerStatus
from copter.methods.warm_state import WarmState
from copter.model.ledger import Ledger
from copter.model.matrix import Template
from copter.model.model import Model
from copter.problem.worth import LOG, PIECES, POWER, QUADRATIC
from copter.runtime.errors import SnapshotError
from copter.shims import IntegerPlan

Plain = dict[str, Any]


def model_state(model: Model) -> Plain:
    """Return the complete model as plain values, including slots and generations."""
    ledger = model.ledger
    matrix, rows = ledger.matrix, ledger.matrix.n_rows
    templates = list(matrix.templates)
    number = {template: at for at, template in enumerate(templates)}
    slots = list(ledger.slot_of.values())
    slot_array = np.array(slots, dtype=np.int32)
    slabs = [matrix.slabs[slot] for slot in slots]
    exceptions = [matrix.exceptions_of(slot) for slot in slots]
    costs = {id(slab.cost): slab.cost for slab in slabs}  # requests of equal costs may share an array
    place_of = {each: place for place, each in enumerate(costs)}
    return {
        "sense": model.sense,
        "offset": model.offset,
        "version": model.version,
        "single_precision": model.cost_dtype == np.float32,
        "resources": list(ledger.row_of),
        "row": np.array(list(ledger.row_of.values()), dtype=np.int32),
        "rows": [a[:rows] for a in (matrix.row_lower, matrix.row_upper, matrix.row_scale)],
        "row_ages": [matrix.row_generation[:rows], matrix.row_serial[:rows]],
        "free_rows": np.array(matrix.free_rows, dtype=np.int32),
        "next": [matrix.next_row, matrix.next_serial],
        "templates": [list(template.contents()[:3]) for template in templates],
        "private_rows": {at: template.private for at, template in enumerate(templates) if template.private is not None},
        "serials": [template.serial for template in templates],
        "shared": [bool(template.shared) for template in templates],
        "requests": list(ledger.slot_of),
        "added_at": list(ledger.added_at.values()),
        "slot": slot_array,
        "template": np.array([number[slab.template] for slab in slabs], dtype=np.int32),
        "limit": matrix.sums_of(slot_array)[0],
        "at_least": matrix.sums_of(slot_array)[1],
        "private_bounds": list(matrix.private_bounds_of(slot_array)),
        "upper": np.array([matrix.upper_of(slot) for slot in slots]),
        "scale": np.array([matrix.scale_of(slot) for slot in slots]).reshape(len(slots), 2),
        "most": np.array([matrix.most_of(slot) for slot in slots]),
        "fixed": np.array([matrix.fixed_of(slot) for slot in slots], dtype=np.int32),
        "integer": np.array([slab.integer for slab in slabs], dtype=bool),
        "whole_each": {at: slab.whole_each for at, slab in enumerate(slabs) if slab.whole_each is not None},
        "rounding": np.array([slab.rounding for slab in slabs], dtype=np.float64),
        "cost": list(costs.values()),
        "cost_at": np.array([place_of[id(slab.cost)] for slab in slabs], dtype=np.int32),
        "lower_each": {at: slab.lower_each for at, slab in enumerate(slabs) if slab.lower_each is not None},
        "upper_each": {at: slab.upper_each for at, slab in enumerate(slabs) if slab.upper_each is not None},
        "exceptions": {at: list(pair) for at, pair in enumerate(exceptions) if len(pair[0])},
        "generation": matrix.generation[: matrix.n_slots],
        "free_slots": np.array(matrix.free_slots, dtype=np.int32),
        "worths": {
            at: (*ledger.worths[slot][0], ledger.worths[slot][1])
            for at, slot in enumerate(slots)
            if slot in ledger.worths
        },
    }


def model_from(state: Plain) -> Model:
    """Rebuild the model exactly; raises SnapshotError if the values do not describe one."""
    model = Model(state["sense"], state["offset"], np.float32 if state["single_precision"] else np.float64)
    ledger = model.ledger
    matrix = ledger.matrix
    lower, upper, scale, generation, serial = (np.array(each) for each in (*state["rows"], *state["row_ages"]))
    scales = scale.copy()
    matrix.restore_rows(lower, upper, scale, generation, serial, state["free_rows"])
    matrix.next_row, matrix.next_serial = state["next"]
    ledger.row_of.update(zip(state["resources"], state["row"].tolist(), strict=True))
    require_all_slots([*ledger.row_of.values(), *matrix.free_rows], matrix.n_rows, "rows")
    templates = []
    private_rows = state.get("private_rows", {})
    for at, (contents, serial, shared) in enumerate(
        zip(state["templates"], state["serials"], state["shared"], strict=True)
    ):
        template = Template(contents[0], contents[1], contents[2], shared, private_rows.get(at))
        matrix.require_rows(template.rows)
        template.serial = serial
        matrix.hang_template(template)
        templates.append(template)
    matrix.restore_slots(len(state["generation"]), state["free_slots"], state["generation"])
    _hang(ledger, state, templates)
    require_all_slots([*ledger.slot_of.values(), *matrix.free_slots], matrix.n_slots, "slots")
    matrix.row_scale[: len(scales)] = scales
    ledger.added_at.update(zip(state["requests"], state["added_at"], strict=True))
    ledger.columns_at.update(ledger.added_at)
    ledger.version = state["version"]
    return model


def _hang(ledger: Ledger, state: Plain, templates: list[Template]) -> None:
    """Put all slabs into their slots."""
    matrix = ledger.matrix
    columns = [state[name].tolist() for name in ("slot", "template", "limit", "upper", "scale", "fixed", "integer")]
    count = len(state["requests"])
    least = np.asarray(state.get("at_least", np.full(count, -np.inf)), dtype=np.float64).tolist()
    private = tables_of([templates[number] for number in columns[1]], state.get("private_bounds", [[], []]))
    worths = state.get("worths", {})
    costs, most = state["cost"], np.asarray(state.get("most", np.full(count, np.inf)), dtype=np.float64).tolist()
    if "cost_at" in state:
        costs = [costs[at] for at in state["cost_at"].tolist()]
    rows = zip(state["requests"], costs, state["rounding"].tolist(), *columns, least, private, strict=True)
    for at, (request, cost, rounding, slot, number, limit, upper, scale, fixed, integer, low, own) in enumerate(rows):
        lower, own_upper = state["lower_each"].get(at, 0.0), state["upper_each"].get(at, upper)
        factor, offset = scale
        template, integer = templates[number], state.get("whole_each", {}).get(at, integer)
        matrix.place_slab(slot, template, cost, limit, lower, own_upper, factor, offset, integer, rounding, low, *own)
        matrix.set_most(slot, most[at])
        if at in state["exceptions"]:
            matrix.set_exceptions(slot, *state["exceptions"][at])
        matrix.set_fixed(slot, fixed)
        ledger.slot_of[request] = slot
        if at in worths:
            kind, numbers, rates = worths[at]
            require_worth(request, kind, numbers, rates, template.n_columns)
            ledger.worths[slot] = (kind, tuple(numbers)), np.array(rates)


def require_worth(request: Hashable, kind: Any, numbers: Any, rates: Any, n: int) -> None:
    """Raise SnapshotError unless values describe a worth of a request with n columns."""
    counts = {LOG: len(numbers) == 2, POWER: len(numbers) == 3, QUADRATIC: len(numbers) == 2}
    good = counts.get(kind, kind == PIECES and len(numbers) % 2 == 0 and len(numbers) > 0)
    if not good or np.shape(rates) != (n,) or not bool(np.isfinite([*numbers, *rates]).all()):
        raise SnapshotError(f"the worth of request {request!r} cannot be read")


def tables_of(templates: list[Template], bounds: Any) -> list[tuple[NDArray[np.float64] | None, int]]:
    """Return (table, row) for every request's private bounds; requests of one template share a table."""
    counts = [template.n_private for template in templates]
    start = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    lower, upper = (np.asarray(each, dtype=np.float64) for each in bounds)
    if lower.shape != (start[-1],) or upper.shape != (start[-1],):
        raise SnapshotError(f"there are bounds of {lower.size} and {upper.size} private rows, not {start[-1]}")
    if bool((~(lower <= upper)).any()):
        raise SnapshotError("bounds of private rows are crossed")
    found: list[tuple[NDArray[np.float64] | None, int]] = [(None, 0)] * len(templates)
    users: dict[Template, list[int]] = {}
    for at, template in enumerate(templates):
        if template.n_private:
            users.setdefault(template, []).append(at)
    for template, places in users.items():
        rows = start[places][:, None] + np.arange(template.n_private)
        table = np.ascontiguousarray(np.hstack((lower[rows], upper[rows])))
        for row, place in enumerate(places):
            found[place] = (table, row)
    return found


def require_all_slots(slots: list[int], count: int, what: str) -> None:
    """Raise SnapshotError unless every slot is named exactly once."""
    if sorted(slots) != list(range(count)):
        raise SnapshotError(f"the {what} in use and the free ones are not all there are")


def copied(model: Model) -> tuple[Callable[[Plain], Model], tuple[Plain]]:
    """Prepare a model for pickle and copy, without the journal, which stays with the original."""
    with model.ledger.guard.held("being copied"):
        return model_from, (model_state(model),)


copyreg.pickle(Model, copied)


def iterate_state(iterate: WarmState) -> Plain:
    """Return prices, working set and proximal parameter as plain values."""
    return {
        "key": iterate.ws.key,
        "x": iterate.ws.x,
        "generation": iterate.ws.generation,
        "y": iterate.y,
        "row_generation": iterate.row_generation,
        "sigma": float(iterate.sigma),
        "cold": bool(iterate.cold),
        "own": [iterate.own_key, iterate.own_dual, iterate.own_generation],
        "version": iterate.version,
        "basis": basis_state(iterate.basis),
        "mu": iterate.mu,
    }


def iterate_from(state: Plain, model: Model) -> WarmState:
    """Rebuild the solver state; its working set reads costs and bounds at the next solve."""
    iterate, matrix = WarmState(float(state["sigma"])), model.ledger.matrix
    key, x, generation = (np.array(state[name]) for name in ("key", "x", "generation"))
    require_columns(key, len(matrix.generation), x, generation)
    slots, columns = (key >> 32).astype(np.int32), (key & 0xFFFFFFFF).astype(np.int64)
    alive = (slots < matrix.n_slots) & (generation == matrix.generation[slots])
    if bool(np.any(columns[alive] >= matrix.sizes_of(slots[alive]))):
        raise SnapshotError("a working column is outside its request")
    ws = iterate.ws
    ws.key, ws.x, ws.generation = key, x, generation
    ws.allocate()
    iterate.y, iterate.row_generation = np.array(state["y"]), np.array(state["row_generation"])
    iterate.cold, iterate.mu = bool(state["cold"]), float(state.get("mu", np.inf))
    if "own" in state:
        iterate.own_key, iterate.own_dual, iterate.own_generation = (np.array(each) for each in state["own"])
        require_columns(iterate.own_key, len(matrix.generation), iterate.own_dual, iterate.own_generation)
        iterate.version = int(state["version"])
    try:
        iterate.basis = basis_from(state.get("basis"))
    except (KeyError, TypeError, ValueError) as error:
        raise SnapshotError(f"what the last solve left cannot be read: {error}") from None
    if iterate.y.shape != iterate.row_generation.shape or len(iterate.y) > matrix.n_rows:
        raise SnapshotError("there are more prices than rows")
    return iterate


def require_columns(key: NDArray[np.int64], slots: int, *others: NDArray[Any]) -> None:
    """Raise SnapshotError unless keys ascend within the slots and all arrays have the same length."""
    if key.ndim != 1 or any(other.shape != key.shape for other in others):
        raise SnapshotError("the working set's arrays differ in length")
    if len(key) and (bool(np.any(np.diff(key) <= 0)) or key[0] < 0 or key[-1] >> 32 >= slots):
        raise SnapshotError("the working set's columns are not in order")


def plan_state(plan: IntegerPlan | None) -> Plain | None:
    """Return the last integer plan as plain values; the next plan is compared with it."""
    if plan is None:
        return None
    return {
        "figures": [plan.objective, plan.bound, plan.gap, plan.fractional_requests, plan.kept_previous],
        "column": plan.column_of_slot,
        "generation": plan.generation,
        "requests": list(plan.slot_of),
        "slot": np.array(list(plan.slot_of.values()), dtype=np.int32),
        "status": plan.status.value,
        "certified": bool(plan.bound_is_certified),
        "share_key": plan.share_key,
        "share": plan.share,
        "continuous": list(plan.continuous),
    }


def plan_from(state: Plain | None) -> IntegerPlan | None:
    """Rebuild the last integer plan; None stays None."""
    if state is None:
        return None
    column, generation = np.asarray(state["column"], dtype=np.int32), state["generation"]
    slots: dict[Hashable, int] = dict(zip(state["requests"], state["slot"].tolist(), strict=True))
    if column.shape != generation.shape or any(not 0 <= slot < len(column) for slot in slots.values()):
        raise SnapshotError("the plan names a slot that is not there")
    objective, bound, gap, fractional, kept = state["figures"]
    key = np.asarray(state.get("share_key", np.zeros(0)), dtype=np.int64)
    share = np.asarray(state.get("share", np.zeros(0)), dtype=np.float64)
    if key.shape != share.shape or key.ndim != 1 or bool((np.diff(key) <= 0).any()):
        raise SnapshotError("the plan's shares are not in order")
    return IntegerPlan(
        objective,
        bound,
        gap,
        fractional,
        kept,
        column,
        generation,
        slots,
        IntegerStatus(state.get("status", "feasible")),
        state.get("certified", False),
        share_key=key,
        share=share,
        continuous=frozenset(state.get("continuous", ())),
    )
