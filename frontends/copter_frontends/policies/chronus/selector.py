"""The selector: admission and the plan of leases, cycle by cycle (sections 3.3.2 and 3.3.4; papers/chronus.md, C4)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from copter_frontends.policies.chronus.arrival_kernel import AT_ONCE, PLACED, SCARCE, SQUEEZE, TOO_DEAR
from copter_frontends.policies.chronus.arrived_jobs import ArrivedJobs
from copter_frontends.policies.chronus.draft import MOST_MOVED, Draft
from copter_frontends.policies.chronus.exact_plan import exact_plan
from copter_frontends.policies.chronus.expected_demand import ExpectedDemand
from copter_frontends.policies.chronus.formulation import LeaseFormulation, LeaseSolution
from copter_frontends.policies.chronus.free_tail import FreeTail
from copter_frontends.policies.chronus.held_leases import HeldLeases
from copter_frontends.policies.chronus.job_book import Admission, Notice, Now, SloBook
from copter_frontends.policies.chronus.lease_grid import LeaseGrid
from copter_frontends.policies.chronus.lease_model import LeaseModel
from copter_frontends.policies.chronus.options import Bools, Floats, Ints, Options
from copter_frontends.policies.chronus.pricing import LeasePrices
from copter_frontends.policies.chronus.salvage import salvaged
from copter_frontends.policies.chronus.shim import LeaseShim, improve
from copter_frontends.policies.chronus.slo_record import NO_LEASES, SloRecord, Standing

GPUS_LOST = "its leases cannot be had any more: GPUs have gone"
SLOWER = "its leases cannot be had any more: it, or a job before it, was slower than its rate says"
HALF = 0.5
"""Share of one job's reward at which the LP's gap is small enough: integer plans of few jobs are further from the
bound.
"""

FirstLease = Literal["adaptive", "now", "late"]


def scarcity_of(use: Ints, capacity: Ints) -> Floats:
    """Return the scarcity of each GPU type from the promised share of its GPUs, for jobs that can run on several
    types.
    """
    return np.asarray(np.exp(SCARCE * use.sum(axis=1) / np.maximum(capacity.sum(axis=1), 1)))


@dataclass(frozen=True, slots=True)
class Cycle:
    """Result of a cycle.

    Attributes
    ----------
    reward, bound : float
        Reward of the plan above the floors, and a certified bound for all plans that keep the promises.
    solution : LeaseSolution or None
        None if no LP was needed.
    solve_s, shim_s : float
    """

    reward: float
    bound: float
    solution: LeaseSolution | None
    solve_s: float
    shim_s: float


@dataclass(frozen=True, slots=True)
class RestOfLease:
    """What is left of the current lease for jobs that arrive.

    Attributes
    ----------
    now : callable () -> Now or None
        Returns the rest; None if no further plan falls into it.
    join : callable (SloRecord)
        Lets a job have it.
    """

    now: Callable[[], Now | None]
    join: Callable[[SloRecord], object]


class Selector:
    """Assigns leases to SLO jobs.

    Parameters
    ----------
    grid : LeaseGrid
    formulation : LeaseFormulation, optional
    shim : LeaseShim, optional
    first_lease : {"adaptive", "now", "late"}
        Whether further jobs get the free GPUs of the lease that begins: only if no best-effort job waits, as in the
        artifact ("adaptive"); always ("now"); or never ("late"). Running jobs always get them.
    demand : ExpectedDemand, optional
        If given, a new job is not promised leases with which expected jobs would earn more (C6).

    Attributes
    ----------
    book : SloBook
    notices : list of Notice
    gpus_lost : bool
        Whether GPUs were lost since the last plan, which then explains broken promises.
    """

    def __init__(
        self,
        grid: LeaseGrid,
        formulation: LeaseFormulation | None = None,
        shim: LeaseShim | None = None,
        first_lease: FirstLease = "adaptive",
        demand: ExpectedDemand | None = None,
    ) -> None:
        self.grid, self.book = grid, SloBook(grid)
        self.formulation, self.shim = formulation or LeaseFormulation(), shim or LeaseShim()
        self.first_lease: FirstLease = first_lease
        self.demand = demand
        self.notices: list[Notice] = []
        self.gpus_lost = False  # whether GPUs were lost since the last plan
        self._prices: tuple[int, Floats] | None = None  # the last LP's first lease and prices
        self._ended = 0.0  # when the last linear program was solved
        self._held: HeldLeases | None = None  # promised jobs' leases after the last admission
        self._failed = 0  # times since the last plan that moving leases made no room for an arrived job

    def cycle(
        self,
        now_s: float,
        first: int,
        gpus: Ints,
        fixed: Ints,
        running: set[str],
        queue: bool,
        begins: bool,
        fresh: bool,
        time_limit_s: float = 10.0,
        solved: Callable[[LeaseModel], object] | None = None,
        aside: Ints | None = None,
    ) -> Cycle:
        """Plan the leases from `first` on.

        Parameters
        ----------
        now_s : float
        first : int
            Absolute number of the first lease to plan.
        gpus : int64 array (types,)
            GPUs of each type.
        fixed : int64 array (types,)
            GPUs of each type that are not available in the first lease.
        running : set of str
            Jobs that currently have GPUs.
        queue : bool
            Whether best-effort jobs wait.
        begins : bool
            Whether a lease begins; if not, the jobs in the current lease continue.
        fresh : bool
            Whether all jobs are planned again and waiting jobs decided, as when a lease begins or the GPUs change.
            Otherwise waiting jobs only get free leases.
        time_limit_s : float
            Time limit of the linear program; the plan keeps all promises in any case.
        solved : callable, optional
            Called with the model after the linear program is solved, before decisions are made.
        aside : int64 array (types,), optional
            GPUs of each type that only leases already promised may use.
        """
        ending = self._see_ends(now_s, first)
        rows, table = self.book.planned(first, begins, ending), self.book.table
        horizon = self.book.most_leases(first)
        promised = None if aside is None or not aside.any() else self.book.promised_gpus(len(gpus), first, horizon)
        capacity = self._capacity(gpus, horizon, aside, promised)
        capacity[:, 0] = np.maximum(capacity[:, 0] - fixed, 0)
        options = self.book.options_of_rows(rows, first, horizon, begins)
        begun = time.perf_counter()
        draft = self._filled(rows, options, capacity, first, not fresh, time_limit_s)
        draft, bound, solution = self._improved(rows, options, capacity, first, draft, fresh, time_limit_s, solved)
        if fresh:
            left = time_limit_s - (time.perf_counter() - begun)
            draft, bound = exact_plan(options, capacity, draft, bound, left)
        ended = begun if solution is None else self._ended
        if begins:
            self._left_shift(table.at(rows), draft, running, queue)
        self.book.give(rows, draft, first, keep=not begins)
        every = table.every
        past = sum(table.values(every[~np.isin(every, rows)]).tolist())
        self._held = HeldLeases.of_draft(table.at(rows), draft, self.book, first)
        self._decide(rows, draft, now_s, fresh)
        self.gpus_lost, self._failed = False, 0
        shim_s = time.perf_counter() - ended
        return Cycle(draft.reward + past, max(bound, draft.reward) + past, solution, ended - begun, shim_s)

    def _improved(
        self,
        rows: Ints,
        options: Options,
        capacity: Ints,
        first: int,
        draft: Draft,
        fresh: bool,
        time_limit_s: float,
        solved: Callable[[LeaseModel], object] | None,
    ) -> tuple[Draft, float, LeaseSolution | None]:
        """Return a better plan by the linear program, its bound, and the solution; None if no LP is needed."""
        bound = options.most
        if not len(options.job) or draft.reward >= bound - 1e-9 * (1.0 + bound):
            return draft, bound, None
        start = self._start(first, capacity.shape)
        if start is not None:
            tail = FreeTail.of(options, capacity)  # leases after the scarce ones have price zero (C15)
            bound = min(bound, LeasePrices(start[:, : tail.scarce]).bound(tail.reduced, tail.early(capacity)))
        gap = max(self.formulation.gap, HALF * float(options.value.max()) / options.most)
        if not fresh or bound - draft.reward <= gap * bound:
            return draft, bound, None
        names = [record.job.id for record in self.book.table.at(rows)]
        solution = self.formulation.solve(
            options, capacity, start, draft, time_limit_s, gap=gap, names=names, first=first
        )
        if solved is not None:
            solved(self.formulation.lease_model)
        self._ended, self._prices = time.perf_counter(), (first, solution.prices.price)
        return self.shim(options, capacity, solution, draft), min(bound, solution.bound), solution

    def admit(
        self,
        records: Sequence[SloRecord],
        now_s: float,
        first: int,
        gpus: Ints,
        aside: Ints | None = None,
        lease: RestOfLease | None = None,
    ) -> Admission:
        """Promise jobs, in turn, leases from `first` on in the plan's free GPUs, moving other jobs' leases if needed.

        Promised jobs keep their deadlines. If a job is not admitted, nothing changes. With `lease` a job may also use
        the rest of the current lease, if it then meets a better deadline. Leases are moved until that has failed, since
        the last plan, as often as the shim allows; the next plan decides about the jobs after these. Returns the answer
        to the last job.
        """
        self.book.consider(records)
        answer = Admission(records[-1].job.id, records[-1].standing)
        if (self.book.most_in_one_lease(len(gpus), first) > gpus).any():
            return answer  # GPUs were lost: the next plan decides which promises are kept
        batch = ArrivedJobs(records, self.book, first, None if lease is None else lease.now())
        begin = 0
        while begin < len(records):
            use = self.book.promised_gpus(len(gpus), first, batch.horizon)
            free = self._capacity(gpus, batch.horizon, aside, use) - use
            moves = MOST_MOVED if self._failed < self.shim.most_failures else 0
            end = batch.answer(begin, use, free, gpus, moves, self.demand, now_s)
            answer = self._give(batch, begin, end, now_s, first)
            record, last = records[end - 1], int(batch.answers[end - 1])
            joined = [records[begin + at] for at in np.flatnonzero(batch.answers[begin:end] == AT_ONCE).tolist()]
            if lease is not None and joined:
                for each in joined:
                    lease.join(each)
                batch.rest(lease.now())
            if last == SQUEEZE:
                answer = self._admit_with_moves(record, now_s, first, gpus, int(batch.reach[end - 1]), aside)
            begin = end
        return answer

    def _give(self, batch: ArrivedJobs, begin: int, end: int, now_s: float, first: int) -> Admission:
        """Store the answers to these arrived jobs; returns the last one."""
        given = batch.given(begin, end)
        self.book.give_new(given, first)
        for record, said in zip(batch.records[begin:end], batch.answers[begin:end].tolist(), strict=True):
            if said == TOO_DEAR:
                self._tell(record, Standing.UNGUARANTEED, now_s, "its leases are worth more to the jobs that come")
            elif said in (PLACED, AT_ONCE):
                if said == AT_ONCE and batch.now is not None:
                    self.book.give_rest(record, batch.now)
                self._promise(record, now_s)
        last = batch.records[end - 1]
        return self._admitted(last, ()) if last.promised >= 0 else Admission(last.job.id, last.standing)

    def _admit_with_moves(
        self, record: SloRecord, now_s: float, first: int, gpus: Ints, horizon: int, aside: Ints | None
    ) -> Admission:
        """Promise a job leases for which other jobs' leases have to be moved."""
        held = self._held = HeldLeases.of(self.book, first) if self._held is None else self._held.now(self.book, first)
        options, taken = held.with_one_more(record, self.book, horizon)
        number = len(held.records)
        use = self.book.promised_gpus(len(gpus), first, taken.shape[1])
        draft = Draft.standing(options, self._capacity(gpus, taken.shape[1], aside, use), use, taken)
        scarcity = scarcity_of(use, use if draft is None else use + draft.free)
        if draft is None or not any(draft.squeeze(row) for row in draft.ranked(number, scarcity)):
            self._failed += 1
            return Admission(record.job.id, record.standing)
        moves: list[tuple[str, int, int]] = []
        for other in sorted(draft.moved):
            had, has = held.records[other].leases, np.flatnonzero(draft.taken[other]) + first
            before, after = np.setdiff1d(had[had >= first], has), np.setdiff1d(has, had)
            name = held.records[other].job.id
            moves += [(name, a, b) for a, b in zip(before.tolist(), after.tolist(), strict=True)]
            if len(before):
                self.book.give_one(held.records[other], draft, other, first)
        self.book.give_one(record, draft, number, first)
        held.admit(record, draft, self.book.version)
        self._promise(record, now_s)
        return self._admitted(record, tuple(moves))

    def _promise(self, record: SloRecord, now_s: float) -> None:
        """Store the promise of an admitted job and notify its user."""
        self.book.promised(record)
        self._tell(record, Standing.GUARANTEED, now_s, "leases are held for it")

    @staticmethod
    def _admitted(record: SloRecord, moves: tuple[tuple[str, int, int], ...]) -> Admission:
        return Admission(record.job.id, record.standing, record.step, tuple(record.leases.tolist()), moves)

    @staticmethod
    def _capacity(gpus: Ints, horizon: int, aside: Ints | None, promised: Ints | None) -> Ints:
        """Return GPUs of each type in each lease, (types, leases), minus reserves, but at least the promised GPUs."""
        total = np.repeat(np.asarray(gpus, dtype=np.int64)[:, None], horizon, axis=1)
        if aside is None or promised is None or not aside.any():
            return total
        return np.asarray(np.minimum(total, np.maximum(total - aside[:, None], promised)))

    def _filled(
        self,
        rows: Ints,
        options: Options,
        capacity: Ints,
        first: int,
        thorough: bool,
        time_limit_s: float,
    ) -> Draft:
        """Return the last plan, filled with waiting jobs in order of arrival; `thorough` also moves other jobs'
        leases.
        """
        draft = Draft(options, capacity)
        draft.put_leases(*self.book.incumbent(rows, options, first, capacity.shape[1]))
        left = self.shim.most_failures if thorough else 0
        possible = np.diff(options.rows_of()) > 0
        for must in (True, False):
            waiting = np.flatnonzero((draft.row < 0) & possible & (options.must == must))
            for job, able in zip(waiting.tolist(), draft.jobs_with_room(waiting).tolist(), strict=True):
                if not able and left <= 0:
                    continue
                ranked = draft.ranked(job)
                if not any(draft.place(row) or (left > 0 and draft.squeeze(row)) for row in ranked):
                    left -= 1
            if must and self._broken(draft, possible):
                for job in np.flatnonzero((draft.row < 0) & possible & options.must).tolist():
                    any(draft.squeeze(row) for row in draft.ranked(job))
            if must and self._broken(draft, possible):  # GPUs were lost, or jobs were slower than estimated
                draft = min(draft, salvaged(options, capacity, time_limit_s), key=lambda each: each.broken)
        if thorough:
            improve(draft, left)
        return draft

    @staticmethod
    def _broken(draft: Draft, possible: Bools) -> bool:
        """Return whether a promised job that could still meet a deadline has no leases."""
        return bool((draft.options.must & possible & (draft.row < 0)).any())

    def _left_shift(self, records: list[SloRecord], draft: Draft, running: set[str], queue: bool) -> None:
        """Fill the first lease with running jobs, and with other jobs according to `first_lease`."""
        runs = np.array([record.job.id in running for record in records], dtype=bool)
        draft.shift_left(np.flatnonzero(runs))
        if self.first_lease == "now" or (self.first_lease == "adaptive" and not queue):
            draft.shift_left(np.flatnonzero(~runs))

    def prices(self, kinds: int, first: int, horizon: int) -> Floats | None:
        """Return the last LP's prices of one GPU, (types, leases from `first` on); None before the first LP."""
        return self._start(first, (kinds, horizon))

    def _start(self, first: int, shape: tuple[int, ...]) -> Floats | None:
        """Return the last LP's prices without those of past leases."""
        if self._prices is None:
            return None
        before, price = self._prices
        start = np.zeros(shape)
        ahead = price[:, first - before :]
        width = min(ahead.shape[1], shape[1])
        if price.shape[0] == shape[0]:
            start[:, :width] = ahead[:, :width]
        return start

    def _see_ends(self, now_s: float, first: int) -> list[SloRecord]:
        """Free the leases of jobs whose work is done, and return these jobs; a promise counts as broken if the deadline
        passes before the end.
        """
        ending = self.book.ending()
        for record in ending:
            self.book.free_ahead(record, first)
            if record.job.submit_s + record.reward.steps[record.promised][0] < now_s:
                self._tell(record, Standing.DEMOTED, now_s, "its deadline is over, and it has not ended")
        return ending

    def _decide(self, rows: Ints, draft: Draft, now_s: float, fresh: bool) -> None:
        """Give and break promises, with a notice for each."""
        has, had = draft.row >= 0, draft.options.must
        asked = np.flatnonzero((has & ~had) | (~has & (had | fresh)))
        for number, record in zip(asked.tolist(), self.book.table.at(rows[asked]), strict=True):
            if has[number]:
                self._promise(record, now_s)
            elif had[number]:
                record.leases = NO_LEASES
                self._tell(record, Standing.DEMOTED, now_s, GPUS_LOST if self.gpus_lost else SLOWER)
            else:
                self._tell(record, Standing.UNGUARANTEED, now_s, "no leases are left that meet one of its deadlines")

    def _tell(self, record: SloRecord, standing: Standing, now_s: float, reason: str) -> None:
        record.standing = standing
        step = record.promised if standing is Standing.GUARANTEED else -1
        self.notices.append(Notice(now_s, record.job.id, standing, step, reason))
        if standing is not Standing.GUARANTEED:
            self.book.remove(record.job.id)
