"""From a draft to the plan that a shim returns, or to the finding that there is none."""

from __future__ import annotations

from collections.abc import Hashable
from math import fsum, isfinite

import numpy as np

from copter.integer.solution import IntegerStatus
from copter.model.model import Model
from copter.problem.residuals import relative_gap
from copter.problem.solution import Solution
from copter.shims.draft import Draft
from copter.shims.plan import IDLE, IntegerPlan, no_keys, no_shares

PROVEN = 1e-6  # relative gap within which a plan is as good as its certified bound


def planned(model: Model, draft: Draft, solution: Solution, fractional: int, kept_previous: bool) -> IntegerPlan:
    """The plan of a feasible draft, with its gap. A bound that its objective beats is not certified."""
    sign, bound = model.ledger.sign, solution.bound
    objective = fsum([model.offset, *(sign * draft.terms()).tolist()])
    gap = relative_gap(objective, bound) if isfinite(bound) else float("inf")
    certified = solution.bound_is_certified and sign * objective >= sign * bound
    shares = draft.shares
    return IntegerPlan(
        objective=objective,
        bound=bound,
        gap=gap,
        fractional_requests=fractional,
        kept_previous=kept_previous,
        column_of_slot=draft.column,
        generation=draft.matrix.generation[: draft.matrix.n_slots].copy(),
        slot_of=dict(model.ledger.slot_of),
        status=IntegerStatus.OPTIMAL if certified and gap <= PROVEN else IntegerStatus.FEASIBLE,
        bound_is_certified=certified,
        share_key=no_keys() if shares is None else shares.key,
        share=no_shares() if shares is None else draft.share,
        continuous=continuous_requests(model, draft),
    )


def continuous_requests(model: Model, draft: Draft) -> frozenset[Hashable]:
    """Ids of the requests that are not integer."""
    if draft.shares is None:
        return frozenset()
    return frozenset(request for request, slot in model.ledger.slot_of.items() if not draft.whole[slot])


def no_plan(model: Model, draft: Draft) -> IntegerPlan:
    """The result where no plan exists: it names the requests in conflict and the resources that run short."""
    matrix = model.ledger.matrix
    rows = draft.exceeded()
    relievable = not draft.conflict and draft.can_be_relieved()
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
    return IntegerPlan(
        objective=float("nan"),
        bound=float("nan"),
        gap=float("nan"),
        fractional_requests=0,
        kept_previous=False,
        column_of_slot=np.full(matrix.n_slots, IDLE, dtype=np.int32),
        generation=matrix.generation[: matrix.n_slots].copy(),
        slot_of=dict(model.ledger.slot_of),
        status=IntegerStatus.NONE_FOUND if relievable else IntegerStatus.PRIMAL_INFEASIBLE,
        conflict=tuple(request for request, slot in model.ledger.slot_of.items() if slot in guilty),
        short=tuple(name for name, row in model.ledger.row_of.items() if row in set(rows.tolist())),
        continuous=continuous_requests(model, draft),
    )
