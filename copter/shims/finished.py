"""The result of a shim: a plan made from a draft, or the finding that no plan exists."""

from __future__ import annotations

from collections.abc import Hashable
from math import fsum, isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from copter.methods.integer.solution import IntegerStatus
from copter.model.model import Model
from copter.problem.exact_sums import exact_parts
from copter.problem.residuals import plan_gap
from copter.problem.solution import Solution, Status
from copter.shims.draft import Draft
from copter.shims.plan import IDLE, IntegerPlan, no_keys, no_shares

PROVEN = 1e-6  # relative gap within which a plan counts as equal to its certified bound


def planned(
    model: Model,
    draft: Draft,
    solution: Solution,
    fractional: int,
    kept_previous: bool,
    least: float | None = None,
) -> IntegerPlan:
    """Return the plan of a feasible draft, with its objective, bound and gap.

    `solution` has the LP's bound. `least` is another proven lower bound on every plan's cost (as minimised). The plan
    gets the better one.
    """
    shares, (filled, fill) = draft.shares, draft.filled()
    key, share = (no_keys(), no_shares()) if shares is None else (shares.key, draft.share)
    if len(filled):
        key, share = np.concatenate((key, filled)), np.concatenate((share, fill))
        order = np.argsort(key)
        key, share = key[order], share[order]
    mixed = shares is not None or draft.fillers is not None
    worth = worth_of(model, draft.terms(), solution, least)
    return IntegerPlan(
        objective=worth.objective,
        bound=worth.bound,
        gap=worth.gap,
        fractional_requests=fractional,
        kept_previous=kept_previous,
        column_of_slot=draft.column,
        generation=draft.matrix.generation[: draft.matrix.n_slots].copy(),
        slot_of=model.ledger.slots_then(),
        status=worth.status,
        bound_is_certified=worth.certified,
        share_key=key,
        share=share,
        continuous=continuous_requests(model, draft.whole) if mixed else frozenset(),
        bound_by=worth.by,
        why="fast road: rounding of the LP's columns",
    )


class Worth(NamedTuple):
    """Objective of a feasible plan, a bound on all plans, and the relative gap."""

    objective: float
    bound: float
    gap: float
    certified: bool
    by: str = ""

    @property
    def status(self) -> IntegerStatus:
        """OPTIMAL if the bound proves it, otherwise FEASIBLE."""
        return IntegerStatus.OPTIMAL if self.certified and self.gap <= PROVEN else IntegerStatus.FEASIBLE


def worth_of(model: Model, terms: NDArray[np.float64], solution: Solution, least: float | None = None) -> Worth:
    """Add the terms of a plan's objective (as minimised) and compare the sum with the bound.

    The bound is the better of the LP's and `least`. It is not certified if the objective is better than the bound.
    """
    sign, bound, by = model.ledger.sign, solution.bound, "prices" if solution.bound_is_certified else "LP"
    if solution.status is Status.DUAL_INFEASIBLE:  # its bound is that of no dual point
        bound, by = -sign * float("inf"), ""
    if least is not None and least > sign * (bound - model.offset):
        bound, by = sign * least + model.offset, "choices"
    objective = fsum([model.offset, *(sign * part for part in exact_parts(terms))])
    gap = plan_gap(objective, bound) if isfinite(bound) else float("inf")
    return Worth(objective, bound, gap, solution.bound_is_certified and sign * objective >= sign * bound, by)


def continuous_requests(model: Model, whole: NDArray[np.bool_]) -> frozenset[Hashable]:
    """Return the ids of the requests that are not integer."""
    return frozenset(request for request, slot in model.ledger.slot_of.items() if not whole[slot])


def no_plan(model: Model, draft: Draft, solution: Solution | None = None) -> IntegerPlan:
    """Return the result for "no plan exists", naming the requests in conflict and the exceeded resources."""
    rows = draft.exceeded()
    relievable = draft.can_be_relieved()
    guilty = set(draft.conflict)
    if not guilty:
        slots = np.flatnonzero(draft.forced).astype(np.int32)
        entry_start, row, coefficient = draft.usage(slots, draft.column[slots])
        owner = np.repeat(slots, np.diff(entry_start))
        guilty |= set(owner[np.isin(row, rows) & (coefficient > 0.0)].tolist())
        if draft.shares is not None:
            owner = np.repeat(draft.shares.key >> 32, np.diff(draft.shares.entry_start))
            used = np.repeat(draft.shares.base, np.diff(draft.shares.entry_start)) * draft.shares.coefficient
            guilty |= set(owner[np.isin(draft.shares.row, rows) & (used > 0.0)].tolist())
    return without_plan(
        model,
        IntegerStatus.NONE_FOUND if relievable else IntegerStatus.PRIMAL_INFEASIBLE,
        tuple(request for request, slot in model.ledger.slot_of.items() if slot in guilty),
        tuple(name for name, row in model.ledger.row_of.items() if row in set(rows.tolist())),
        frozenset() if draft.shares is None else continuous_requests(model, draft.whole),
        "fast road: rounding found no plan" if relievable else "proven: what must be taken needs more than there is",
        solution if relievable else None,
    )


def without_plan(
    model: Model,
    status: IntegerStatus,
    conflict: tuple[Hashable, ...],
    short: tuple[Hashable, ...],
    continuous: frozenset[Hashable],
    why: str = "",
    solution: Solution | None = None,
) -> IntegerPlan:
    """Return a result without a plan, because none exists or none was found; `solution` has a bound all the same."""
    matrix = model.ledger.matrix
    known = solution is not None and isfinite(solution.bound)
    certified = known and solution is not None and solution.bound_is_certified
    return IntegerPlan(
        objective=float("nan"),
        bound=solution.bound if known and solution is not None else float("nan"),
        bound_is_certified=certified,
        bound_by="prices" if certified else "LP" if known else "",
        why=why,
        gap=float("nan"),
        fractional_requests=0,
        kept_previous=False,
        column_of_slot=np.full(matrix.n_slots, IDLE, dtype=np.int32),
        generation=matrix.generation[: matrix.n_slots].copy(),
        slot_of=model.ledger.slots_then(),
        status=status,
        conflict=conflict,
        short=short,
        continuous=continuous,
    )
