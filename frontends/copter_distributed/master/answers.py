"""Answers of the restricted master in the requests' own column numbers."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from copter.methods.answers import with_bound
from copter.methods.integer.solution import IntegerStatus
from copter.problem.residuals import plan_gap
from copter.problem.solution import Solution, Status
from copter.problem.values import Given
from copter.runtime.errors import InternalError
from copter.shims.finished import PROVEN
from copter.shims.plan import IDLE, IntegerPlan
from copter_distributed.master.behind import Ask, RoutedSparse, RoutedValues
from copter_distributed.master.master import Master, Values
from copter_distributed.messages.messages import Floats, Ints
from copter_distributed.model.deal import Deal

Keys = NDArray[np.int64]


def in_own_columns(deal: Deal, master: Master, slot: Ints, column: Ints, x: Floats) -> tuple[Keys, Floats]:
    """Convert slots and columns of the master to ascending keys in the order of the requests; returns (keys,
    values).
    """
    ledger = master.model.ledger
    place, begin = np.zeros((2, ledger.matrix.n_slots), dtype=np.int64)
    order = {request: at for at, request in enumerate(deal.owner)}
    first = 0
    for request, own in master.columns.items():
        where = ledger.slot_of[request]
        place[where], begin[where] = order[request], first
        first += len(own)
    flat = np.concatenate([np.zeros(0, dtype=np.int32), *master.columns.values()])
    key = place[slot] << 32 | flat[begin[slot] + column]
    ascending = np.argsort(key)
    return key[ascending], x[ascending]


def solution_of(
    deal: Deal,
    master: Master,
    ask: Ask,
    found: Solution,
    status: Status,
    bound: float,
    certified: bool,
    passes: int,
    seconds: float,
) -> Solution:
    """Convert the restricted master's solution to one of the whole model, in the requests' own columns.

    Parameters
    ----------
    deal : Deal
        Which shard has which request.
    master : Master
    ask : Ask
        Function that calls shards, for values that are computed when they are read.
    found : Solution
        The master's.
    status : Status
    bound : float
        Bound on the whole model's optimum; if there is none, bound and gap are infinite.
    certified : bool
        Whether the bound is safe against rounding.
    passes : int
        Pricing passes.
    seconds : float
        Seconds of the whole solve.
    """
    key, x = in_own_columns(deal, master, *found.working_columns_by_slot())
    order = {request: at for at, request in enumerate(deal.owner)}
    rows = {resource: at for at, resource in enumerate(master.model.resources)}
    prices = found.prices()
    behind = RoutedValues(deal, master, ask, key, x, prices, master.own_duals(found))
    residuals = with_bound(found.residuals, found.objective, bound)
    if not isfinite(bound):
        residuals = replace(residuals, gap=float("inf"))
    infeasible = status is Status.PRIMAL_INFEASIBLE and found.ray is not None
    return replace(
        found,
        status=status,
        bound=bound,
        bound_is_certified=certified,
        residuals=residuals,
        pricing_passes=passes,
        solve_time_s=seconds,
        model_version=deal.version,
        working_columns=len(key),
        _sparse=RoutedSparse(key, x, prices, order, rows, behind),
        _dense=behind.arrays,
        _ray=ray_of(master, behind, found) if infeasible else None,
        _conflict=Given(found.conflict) if infeasible else None,
        _cache={},
    )


def ray_of(master: Master, behind: RoutedValues, found: Solution) -> Callable[[], Floats]:
    """Extend the master's proof of infeasibility by the multipliers of all requests' own rows."""
    ray = found.ray
    if ray is None:
        raise InternalError("there is no ray to send")
    # rays have the signs of a minimisation, duals those of the model's sense
    m, sign = len(behind.resources), master.model.ledger.sign
    y, known = sign * ray[:m], master.own_of_whole(sign * ray[m:])

    def whole() -> Floats:
        own, _, _ = behind.duals(behind.requests, y, known, costs=False, reduced=False)
        return sign * np.concatenate((y, own.dual)) + 0.0

    return whole


def plan_of(deal: Deal, master: Master, plan: IntegerPlan, bound: float, certified: bool) -> IntegerPlan:
    """Convert the master's plan to one of the whole model, with the whole model's bound."""
    sign = master.model.ledger.sign
    order = {request: at for at, request in enumerate(deal.owner)}
    column = np.full(len(order), IDLE, dtype=np.int32)
    for request, which in chosen_of(master, plan).items():
        column[order[request]] = which
    slot = (plan.share_key >> 32).astype(np.int32)
    key, share = in_own_columns(deal, master, slot, (plan.share_key & 0xFFFFFFFF).astype(np.int32), plan.share)
    gap = plan_gap(plan.objective, bound) if isfinite(bound) else float("inf")
    holds = certified and sign * plan.objective >= sign * bound
    return replace(
        plan,
        bound=bound,
        gap=gap,
        column_of_slot=column,
        generation=np.zeros(len(order), dtype=np.int64),
        slot_of=order,
        status=IntegerStatus.OPTIMAL if holds and gap <= PROVEN else IntegerStatus.FEASIBLE,
        bound_is_certified=holds,
        share_key=key,
        share=share,
    )


def chosen_of(master: Master, plan: IntegerPlan) -> dict[Hashable, int]:
    """Return {id: column} of the integer requests with a column."""
    found = {}
    for request, slot in plan.slot_of.items():
        column = int(plan.column_of_slot[slot])
        if column != IDLE:
            found[request] = int(master.columns[request][column])
    return found


def shares_of(master: Master, plan: IntegerPlan) -> Values:
    """Return {id: (columns, values)} of the continuous requests with nonzero columns."""
    found: Values = {}
    for request, slot in plan.slot_of.items():
        first, last = np.searchsorted(plan.share_key, [slot << 32, (slot + 1) << 32])
        if last > first:
            local = (plan.share_key[first:last] & 0xFFFFFFFF).astype(np.int32)
            found[request] = master.columns[request][local], plan.share[first:last]
    return found
