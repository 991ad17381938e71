"""Chronus's lease LP cycle after cycle: leases roll on, jobs end and others come, promises become rows.

copter decomposes the program (papers/chronus.md), so that its point of the LP is not one of the compact form, which the
peers are given written out; what is judged of it is its plan.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

import numpy as np
from judge import Judged

from copter_frontends.replay.program import Floats, Ints, Names, Program
from families.frontends import (
    Cycle,
    Job,
    LeaseGrid,
    Mode,
    Options,
    Selector,
    SloRecord,
    StepReward,
    compact_form,
    round_up,
)
from families.protocol import EditCounts, Outcome, Plan, SolverOptions
from families.verdicts import judge_outcome

JOBS_PER_GPU = 0.5  # 5,000 SLO jobs on 10,000 GPUs
LEASES, LEASE_S, NODE_GPUS = 24, 1200.0, 8
SIZES, SHARES = (1, 2, 4, 8, 16, 32), (0.3, 0.15, 0.15, 0.2, 0.12, 0.08)


class ChronusRounds:
    """A seeded sequence of lease problems on one GPU type: one job in three strict, the others soft.

    Parameters
    ----------
    gpus : int
    seed : int

    Attributes
    ----------
    records, options, capacity
        The jobs of the coming cycle, their options, and GPUs free in each lease, (1, leases).
    first : int
        The lease that the cycle begins with.
    """

    changes: ClassVar[tuple[str, ...]] = ("time",)

    def __init__(self, gpus: int, seed: int) -> None:
        self.rng, self.made, self.first = np.random.default_rng(seed), 0, 0
        self.gpus, self.jobs = np.array([gpus], dtype=np.int64), max(2, round(JOBS_PER_GPU * gpus))
        self.selector = Selector(LeaseGrid(LEASE_S))
        self.columns, self.rows = Names(), Names()
        self._begin()

    def _begin(self) -> None:
        """Jobs come, up to the number that there always is; the cycle's data are drawn up for peers and judge."""
        book, first = self.selector.book, self.first
        self._arrive()
        self.records: list[SloRecord] = book.planned(first, True)
        horizon = book.most_leases(first)
        self.options: Options = book.options(self.records, first, horizon, True)
        self.capacity: Ints = np.repeat(self.gpus[:, None], horizon, axis=1)
        self.compact: Program | None = None

    def _arrive(self) -> None:
        """Jobs come, up to the number that there always is."""
        book, now_s = self.selector.book, self.first * LEASE_S
        while len(book.records) < self.jobs:
            job, reward = self.draw(now_s)
            gpus = job.requested_gpus
            mode = Mode(0, gpus, round_up(gpus, NODE_GPUS), float(job.work_samples or 0.0))
            book.records[job.id] = SloRecord(job, reward, (mode,))

    def draw(self, now_s: float) -> tuple[Job, StepReward]:
        """One more job, submitted now, that can end within the leases ahead."""
        rng, job_id = self.rng, f"job-{self.made:06d}"
        self.made += 1
        total_s = rng.uniform(0.3, 0.5 * LEASES * LEASE_S / 3600.0) * 3600.0
        gpus = min(int(rng.choice(SIZES, p=SHARES)), int(self.gpus[0]))
        first_s = max(min(total_s * rng.uniform(1.2, 2.0), LEASES * LEASE_S / 1.5), 1.2 * total_s)
        reward = StepReward.strict(first_s) if rng.random() < 1 / 3 else StepReward.soft(first_s)
        return Job(job_id, "training", now_s, work_samples=total_s, requested_gpus=gpus), reward

    @property
    def counts(self) -> dict[str, int]:
        """Size of the compact form."""
        m, n = self.program().shape
        return {
            "jobs": len(self.records),
            "rows": self.capacity.size,
            "variables": n,
            "nonzeros": int(self.program().A.nnz),
            "all_rows": m,
        }

    def prepare(self) -> None:
        """The lease passes: jobs with it get on, those that are done leave, others come."""
        book, grid = self.selector.book, self.selector.grid
        for record in book.holders(self.first):
            record.progress += (grid.lease_s - grid.restart_s) / record.modes[0].total_s
            if record.progress >= 1.0 - 1e-9:
                book.remove(record.job.id)
        self.first += 1
        self._begin()

    def edit(self) -> None:
        """The Selector keeps its own book: there is nothing to hand over."""

    def solver(self, options: SolverOptions) -> CycleSolver:
        """The Selector, which has options of its own."""
        return CycleSolver(self)

    def adopt(self, outcome: Outcome) -> None:
        """The Selector has noted its plan down."""

    def program(self) -> Program:
        """The compact form without variable upper bounds."""
        if self.compact is None:
            lp = compact_form(self.options, self.capacity, whole=True, vub=False)
            columns, rows = names_of(self.records, self.options, self.capacity, self.first)
            self.compact = Program(
                lp.c, lp.A, lp.row_lower, lp.row_upper, lp.col_lower, lp.col_upper,
                self.columns.numbers(columns), self.rows.numbers(rows),
                "max", lp.offset, np.ones(len(lp.c), dtype=bool),
            )  # fmt: skip
        return self.compact

    def point(self, outcome: Outcome) -> tuple[Floats, Floats] | None:
        """None: the LP that is solved has other columns."""
        return None

    def whole(self, outcome: Outcome) -> tuple[Ints, Floats] | None:
        """The deadlines met and leases taken, as columns of the compact form."""
        options, horizon = self.options, self.capacity.shape[1]
        block = np.concatenate(([0], np.cumsum((np.diff(options.job) != 0) | (np.diff(options.mode) != 0))))
        row_of = {key: at for at, key in enumerate(zip(options.job, options.mode, options.step, strict=True))}
        taken: list[Ints] = []
        for number, record in enumerate(self.records):
            leases = record.leases[record.leases >= self.first] - self.first
            if len(leases):
                row = row_of[number, record.mode, record.step]
                taken += [np.array([row]), len(options.job) + block[row] * horizon + leases]
        places = np.concatenate(taken) if taken else np.zeros(0, dtype=np.int64)
        return places, np.ones(len(places))

    def judged_in_parts(self, outcome: Outcome) -> Judged | None:
        """Judge the program as it is written out: the judge itself goes through its columns in parts."""
        return judge_outcome(self, self.program(), outcome)


class CycleSolver:
    """The Selector's cycle as a solver."""

    def __init__(self, family: ChronusRounds) -> None:
        self.family = family

    def solve(self) -> Outcome:
        """Plan one cycle."""
        family = self.family
        running = {record.job.id for record in family.selector.book.holders(family.first - 1)}
        nothing = np.zeros(1, dtype=np.int64)
        now_s = family.first * LEASE_S
        found: Cycle = family.selector.cycle(
            now_s, family.first, family.gpus, nothing, running, True, begins=True, fresh=True
        )
        gap = 1.0 - found.reward / found.bound if found.bound > 0 else 0.0
        passes = found.solution.passes if found.solution else 0
        plan = Plan(found.reward, gap, 0)
        made = found.solution.edits if found.solution else None
        edits = EditCounts(0, 0, 0, len(family.records))
        if made is not None:
            edits = EditCounts(made.added, made.removed, made.changed, made.requests)
        return Outcome("optimal", found.reward, found.bound, found.solve_s, passes, 0, found, plan, edits)


def names_of(
    records: list[SloRecord], options: Options, capacity: Ints, first: int
) -> tuple[list[Hashable], list[Hashable]]:
    """Names of the compact form's columns and rows (without variable upper bounds) that survive from round to round."""
    ids = [record.job.id for record in records]
    option = [(ids[j], m, p) for j, m, p in zip(options.job, options.mode, options.step, strict=True)]
    blocks = list(dict.fromkeys((job, mode) for job, mode, _ in option))
    leases = [first + k for k in range(capacity.shape[1])]
    columns: list[Hashable] = [*(("s", *each) for each in option), *((*b, k) for b in blocks for k in leases)]
    rows: list[Hashable] = [*ids, *(("all", *b) for b in blocks), *(("by", *each) for each in option)]
    return columns, rows + [("free", q, k) for q in range(capacity.shape[0]) for k in leases]
