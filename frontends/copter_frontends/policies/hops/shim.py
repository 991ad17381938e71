"""Builds Hops's placements from the relaxation: integral columns, packing, diving, filling, swaps (HP24 to HP27)."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from copter import Solution
from copter_frontends.policies.hops.core import choose_columns
from copter_frontends.policies.hops.draft import Draft, Placed
from copter_frontends.policies.hops.formulation import GroupFormulation
from copter_frontends.policies.hops.offers import PACKED

WHOLE, SUPPORT = 1 - 1e-6, 1e-6


@dataclass(frozen=True, slots=True)
class HopsShim:
    """Builds a plan of whole jobs on servers from a solution of the relaxation.

    Parameters
    ----------
    dives : int
        Most warm re-solves of the relaxation for the unplaced jobs and the free GPUs.
    repeats : int
        Most times that a round plans idle GPUs again by the program before it fills them greedily.
    swaps : int
        Most passes of local exchange.
    good_enough : float
        Relative gap at which diving and swapping end.
    core_gap : float
        If the rounded plan's gap exceeds this, a MILP also decides on the jobs with close options; the better plan is
        returned.
    core_jobs, core_nodes : int
        Most jobs in that MILP, and most nodes of its branch and bound.
    core_gap_goal : float
        Relative gap at which the MILP ends.
    """

    dives: int = 0
    repeats: int = 0
    swaps: int = 2
    good_enough: float = 1e-3
    core_gap: float = 0.03
    core_jobs: int = 100
    core_nodes: int = 50
    core_gap_goal: float = 1e-3

    def __call__(
        self,
        draft: Draft,
        formulation: GroupFormulation,
        solution: Solution,
        bound: float,
        residual: GroupFormulation,
        deadline_s: float,
    ) -> tuple[Draft, int]:
        """Place the jobs; return the better of one or two drafts, and the number of fractional jobs."""
        begun = time.perf_counter()
        empty = draft.copy()
        fractional = place_support(draft, formulation, solution)
        for _ in range(self.dives):
            late = time.perf_counter() - begun > 0.3 * deadline_s
            if late or self._gap(draft, bound) <= self.good_enough or not draft.idle or not dive(draft, residual):
                break
        self._finish(draft, bound, begun, 0.5 * deadline_s)
        left_s = 0.8 * deadline_s - (time.perf_counter() - begun)
        if self._gap(draft, bound) > self.core_gap and self.core_jobs and left_s > 0:
            self._settle(empty, formulation, solution, left_s)
            self._finish(empty, bound, begun, 0.95 * deadline_s)
            draft = max(draft, empty, key=lambda each: each.value)
        return draft, fractional

    def _settle(self, draft: Draft, formulation: GroupFormulation, solution: Solution, limit_s: float) -> None:
        """Place the jobs as the MILP over close jobs chooses, largest first."""
        limits = (self.core_jobs, self.core_nodes, self.core_gap_goal, limit_s)
        capacity = formulation.capacities(np.array(draft.free, dtype=np.int64)).astype(np.float64)
        chosen = choose_columns(formulation, formulation.prices(solution), capacity, *limits)
        order = sorted(
            chosen, key=lambda job: (-int(draft.wishes[job].offers.gpus[chosen[job]]), -draft.wishes[job].weight)
        )
        for job in order:
            draft.give(job, chosen[job])

    def _finish(self, draft: Draft, bound: float, begun: float, limit_s: float) -> None:
        fill(draft)
        for _ in range(self.swaps):
            late = time.perf_counter() - begun > limit_s
            if late or self._gap(draft, bound) <= self.good_enough or not swap(draft):
                return
            fill(draft)

    @staticmethod
    def _gap(draft: Draft, bound: float) -> float:
        return (bound - draft.value) / max(abs(bound), 1e-12)


def place_support(draft: Draft, formulation: GroupFormulation, solution: Solution) -> int:
    """Place integral columns, largest first, then fractional jobs' columns by share.

    Returns the number of fractional jobs.
    """
    names, at, columns, values = solution.by_column()
    chosen, settled = values >= WHOLE, np.zeros(len(names), dtype=bool)
    settled[at[chosen]] = True
    split = np.flatnonzero((values > SUPPORT) & ~settled[at])
    partial: list[tuple[float, float, str, int]] = []
    for i, column, value in zip(at[split].tolist(), columns[split].tolist(), values[split].tolist(), strict=True):
        job = str(names[i])
        if job not in draft.placed:
            wish = draft.wishes[job]
            partial.append((-value, -wish.weight * float(wish.offers.gain[column]), job, column))
    jobs = [str(names[i]) for i in at[chosen].tolist()]
    asked = draft.asked(
        [(job, c) for job, c in zip(jobs, columns[chosen].tolist(), strict=True) if job not in draft.placed]
    )
    draft.give_all(asked.largest_first())
    for _, _, job, column in sorted(partial):
        if job not in draft.placed:
            draft.give(job, column)
    return len({job for _, _, job, _ in partial})


def dive(draft: Draft, residual: GroupFormulation) -> bool:
    """Solve the relaxation again for the remaining GPUs; return whether more jobs were placed."""
    before = len(draft.placed)
    left = {job: wish for job, wish in draft.wishes.items() if job not in draft.placed}
    residual.set_free(np.array(draft.free, dtype=np.int64))
    residual.set_wishes(left)
    place_support(draft, residual, residual.solve())
    return len(draft.placed) > before


def fill(draft: Draft) -> None:
    """Give remaining GPUs to idle jobs and to running jobs that can grow in place, most worth per GPU first."""
    while draft.idle and _fill_once(draft):  # every successful pass leaves fewer GPUs idle
        pass


def _fill_once(draft: Draft) -> bool:
    hole = np.array([draft.largest_hole(g) for g in range(len(draft.groups))])
    kinds = [group.gpu_type for group in draft.groups.groups]
    room = np.array([sum(left for left, kind in zip(draft.left, kinds, strict=True) if kind == own) for own in kinds])
    offers: list[tuple[float, float, str, int, bool]] = []
    for job, wish in draft.wishes.items():
        if job not in draft.placed:
            o = wish.offers
            fits = np.flatnonzero(o.gpus <= np.where(o.kind == PACKED, hole[o.group], room[o.group]))
            value = wish.weight * o.gain[fits]
            offers += [
                (-v / n, -v, job, c, False)
                for v, n, c in zip(value.tolist(), o.gpus[fits].tolist(), fits.tolist(), strict=True)
            ]
    free = draft.free
    beside = [job for job, had in draft.placed.items() if free[had.shares[0][0]] and had.kind == PACKED]
    for job in beside:
        if job not in draft.fixed:
            offers += _growths(draft, job, draft.at(job))
    done = False
    for _, _, job, column, grows in sorted(offers):
        if draft.idle == 0:
            break
        if grows:
            done |= _grow(draft, job, column)
        elif job not in draft.placed:
            done |= draft.give(job, column)
    return done


def _growths(draft: Draft, job: str, had: Placed) -> list[tuple[float, float, str, int, bool]]:
    """Return larger sizes of a job on its server, as offers with their additional worth."""
    wish, server = draft.wish(job), had.shares[0][0]
    if wish is None:
        return []
    most, result = had.gpus + draft.free[server], []
    for gpus, column in wish.offers.packed_on(draft.group_of(server)):
        if had.gpus < gpus <= most:
            more = wish.weight * float(wish.offers.gain[column]) - had.value
            if more > 0:
                result.append((-more / (gpus - had.gpus), -more, job, column, True))
    return result


def _grow(draft: Draft, job: str, column: int) -> bool:
    had = draft.at(job)
    gpus, server = int(draft.wish_of(job).offers.gpus[column]), had.shares[0][0]
    if gpus <= had.gpus or gpus - had.gpus > draft.free[server] or had.kind != PACKED:
        return False
    draft.take_back(job)
    if draft.put(job, PACKED, gpus, ((server, gpus),)) and draft.at(job).value > had.value:
        return True
    if job in draft.placed:
        draft.take_back(job)
    draft.put(job, had.kind, had.gpus, had.shares)
    return False


def swap(draft: Draft) -> bool:
    """Replace a job by an idle job that is worth more on its server, using the server's free GPUs too."""
    best = _best_idle(draft)
    trades: list[tuple[float, str]] = []
    free, tables = draft.free, [best.get(g) for g in draft.groups.group.tolist()]  # by server
    for job, had in draft.placed.items():
        if had.kind == PACKED and job not in draft.fixed:
            server = had.shares[0][0]
            table = tables[server]
            if table is not None:
                more = table[min(had.gpus + free[server], len(table) - 1)][0] - draft.value_of(job)
                if more > 1e-9:
                    trades.append((-more, job))
    done = False
    for _, job in sorted(trades):
        had, server = draft.at(job), draft.placed[job].shares[0][0]
        table = best[int(draft.groups.group[server])]
        value, other, gpus = table[min(had.gpus + draft.free[server], len(table) - 1)]
        if other in draft.placed or value <= had.value:
            continue
        draft.take_back(job)
        if draft.put(other, PACKED, gpus, ((server, gpus),)) and draft.at(other).value > had.value:
            done = True
            continue
        if other in draft.placed:
            draft.take_back(other)
        draft.put(job, had.kind, had.gpus, had.shares)
    return done


def _best_idle(draft: Draft) -> dict[int, list[tuple[float, str, int]]]:
    """Return {group: for up to n GPUs of a server, (value, job, size) of the most valuable idle job}."""
    result = {g: [(0.0, "", 0)] * (group.gpus + 1) for g, group in enumerate(draft.groups.groups)}
    for job, wish in draft.wishes.items():
        if job not in draft.placed:
            o = wish.offers
            for c in np.flatnonzero(o.kind == PACKED).tolist():
                g, n = int(o.group[c]), int(o.gpus[c])
                result[g][n] = max(result[g][n], (wish.weight * float(o.gain[c]), job, n))
    for table in result.values():
        for n in range(1, len(table)):
            table[n] = max(table[n], table[n - 1])
    return result
