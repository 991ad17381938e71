"""Answers of the restricted master in the requests' own column numbers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from copter.distributed.deal import Deal
from copter.distributed.master import Master, Values
from copter.distributed.messages import Floats, Ints
from copter.errors import StaleSolutionError
from copter.integer.solution import IntegerStatus
from copter.problem.explanation import Facts
from copter.problem.residuals import relative_gap
from copter.problem.solution import Solution, Status
from copter.problem.values import OwnDuals, SparseValues, sums_before
from copter.shims.finished import PROVEN
from copter.shims.plan import IDLE, IntegerPlan
from copter.solving.bounds import with_bound

Keys = NDArray[np.int64]


class RoutedValues:
    """What stands behind a solution of a distributed session: sizes and lower bounds, no costs.

    Parameters
    ----------
    deal : Deal
    master : Master
    key, x
        Working columns: place of the request << 32 | column.
    """

    def __init__(self, deal: Deal, master: Master, key: Keys, x: Floats) -> None:
        self.deal, self.master, self.key, self.working = deal, master, key, x
        self.version, self.requests = deal.version, list(deal.owner)

    def lowers(self, requests: Sequence[Hashable]) -> tuple[Keys, Floats]:
        """(offsets, lower bounds) of the columns of requests, which must not have been removed since."""
        for request in requests:
            if self.deal.added_at.get(request, self.version + 1) > self.version:
                raise StaleSolutionError(f"request {request!r} has been removed since this solution was found")
        offsets = sums_before(np.array([self.deal.size[request] for request in requests], dtype=np.int64))
        lower = np.zeros(int(offsets[-1]))
        for at, request in enumerate(requests):
            if request in self.master.whole:
                lower[offsets[at] : offsets[at + 1]] = self.master.model.bounds(request)[0]
        return offsets, lower

    def x(self) -> Floats:
        """Values of all columns, in the order of the requests."""
        if self.deal.version != self.version:
            raise StaleSolutionError("the model has been edited since this solution was found; solve again")
        offsets, x = self.lowers(self.requests)
        x[offsets[:-1][self.key >> 32] + (self.key & 0xFFFFFFFF)] = self.working
        return x

    def dense(self) -> tuple[Floats, Floats]:
        """Not worked out: it would take the costs of all columns of all shards."""
        raise StaleSolutionError(
            "duals and reduced costs of all columns are not gathered in one place; prices() gives the resources'"
        )

    def arrays(self) -> tuple[Floats, Floats, Floats]:
        """(x, y, reduced costs) of the whole model: as :meth:`dense`."""
        return self.x(), *self.dense()

    def own(self) -> OwnDuals:
        """As :meth:`dense`."""
        raise StaleSolutionError("a distributed session does not gather the duals of the requests' own rows")

    def facts(self, request: Hashable) -> Facts:
        """As :meth:`dense`."""
        raise StaleSolutionError(
            f"request {request!r} cannot be explained by a distributed session: its columns are on a shard"
        )


def in_own_columns(deal: Deal, master: Master, slot: Ints, column: Ints, x: Floats) -> tuple[Keys, Floats]:
    """(keys, values) in the order of the requests, from slots and columns of the master; keys ascend."""
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
    found: Solution,
    status: Status,
    bound: float,
    certified: bool,
    passes: int,
    seconds: float,
) -> Solution:
    """The master's solution as one of the whole model, with a bound of the whole model."""
    key, x = in_own_columns(deal, master, *found.working_columns_by_slot())
    order = {request: at for at, request in enumerate(deal.owner)}
    rows = {resource: at for at, resource in enumerate(master.model.resources)}
    behind = RoutedValues(deal, master, key, x)
    residuals = with_bound(found.residuals, found.objective, bound)
    if not isfinite(bound):
        residuals = replace(residuals, gap=float("inf"))
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
        _sparse=SparseValues(key, x, found.prices(), order, rows, behind),
        _dense=behind.arrays,
        _ray=None,
        _conflict=None,
        _cache={},
    )


def plan_of(deal: Deal, master: Master, plan: IntegerPlan, bound: float, certified: bool) -> IntegerPlan:
    """The master's plan as one of the whole model, with a bound of the whole model."""
    sign = master.model.ledger.sign
    order = {request: at for at, request in enumerate(deal.owner)}
    column = np.full(len(order), IDLE, dtype=np.int32)
    for request, which in chosen_of(master, plan).items():
        column[order[request]] = which
    slot = (plan.share_key >> 32).astype(np.int32)
    key, share = in_own_columns(deal, master, slot, (plan.share_key & 0xFFFFFFFF).astype(np.int32), plan.share)
    gap = relative_gap(plan.objective, bound) if isfinite(bound) else float("inf")
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
    """{id: column} of the integer requests that take one."""
    found = {}
    for request, slot in plan.slot_of.items():
        column = int(plan.column_of_slot[slot])
        if column != IDLE:
            found[request] = int(master.columns[request][column])
    return found


def shares_of(master: Master, plan: IntegerPlan) -> Values:
    """{id: (columns, values)} of the continuous requests that have any."""
    found: Values = {}
    for request, slot in plan.slot_of.items():
        first, last = np.searchsorted(plan.share_key, [slot << 32, (slot + 1) << 32])
        if last > first:
            local = (plan.share_key[first:last] & 0xFFFFFFFF).astype(np.int32)
            found[request] = master.columns[request][local], plan.share[first:last]
    return found
