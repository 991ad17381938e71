"""Hare's relaxation round after round: jobs are replaced, or time goes on, and all is solved again, warm.

The relaxation is solved on the engine, columns priced in (docs/papers/hare.md); peers are given the program
written out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from judge import Judged

from copter_frontends.replay.program import Floats, Ints, Names, Program
from families.frontends import (
    HareInstance,
    HareJob,
    Relaxation,
    RelaxationSolution,
    RelaxationSolver,
    TimeGrid,
    random_jobs,
    scaled_cluster,
    sufficient_horizon_s,
)
from families.protocol import EditCounts, Outcome, SolverOptions, chosen
from families.verdicts import judge_outcome

JOBS_PER_GPU = 0.2
GROWTH = {"capped": 1.5, "full": 1.25}  # 23 and 40 intervals
SPARE = 1.5  # times the first round's sufficient horizon, for what later rounds bring
ROUND_S = {"time": 360.0, "minute": 60.0}  # by which time goes on


class HareRounds:
    """A seeded sequence of instances on seven GPU types.

    Parameters
    ----------
    gpus : int
    mode : {"full", "capped"}
        The grid: 40 intervals, or 23.
    change : {"churn", "time", "minute"}
        A share of the jobs is replaced, and time stands still; or six minutes (one minute) pass as well: jobs get on as
        the last answer has it, those that are done leave, the grid rolls on, and as many jobs as left arrive.
    amount : float
        Share of the jobs replaced.
    seed : int
    """

    changes: ClassVar[tuple[str, ...]] = ("churn", "time", "minute")

    def __init__(self, gpus: int, mode: str, change: str, amount: float, seed: int) -> None:
        self.rng, self.change, self.amount = np.random.default_rng(seed), change, amount
        cluster = scaled_cluster(gpus)
        self.gpus = {kind: cluster.capacity(kind) for kind in cluster.types}
        self.made, self.now_s = 0, 0.0
        self.jobs = self._draw(max(2, round(JOBS_PER_GPU * gpus)))
        self.instance = HareInstance.of(self.jobs, self.gpus)
        self.grid = TimeGrid.geometric(0.0, SPARE * sufficient_horizon_s(self.instance), GROWTH[mode])
        self.last: RelaxationSolution | None = None
        self.columns, self.rows = Names(), Names()
        self.edit()

    def _draw(self, count: int) -> list[HareJob]:
        self.made += count
        fresh = random_jobs(count, tuple(self.gpus), self.rng, first=self.made - count)
        return [replace(job, arrival_s=job.arrival_s + self.now_s) for job in fresh]

    @property
    def relaxation(self) -> Relaxation:
        """The round's program in its own arrays."""
        if self._relaxation is None:
            self._relaxation = Relaxation.of(self.instance, self.grid)
        return self._relaxation

    @property
    def counts(self) -> dict[str, int]:
        """Size of the program."""
        program = self.program()
        sizes = {"jobs": len(self.jobs), "rows": self.relaxation.capacity.size, "variables": program.shape[1]}
        return sizes | {"nonzeros": int(program.A.nnz), "all_rows": program.shape[0]}

    def prepare(self) -> None:
        """Draw the next round: new jobs in the places of old ones."""
        if self.change in ROUND_S:
            self._pass_time()
        places = chosen(len(self.jobs), self.rng, self.amount)
        for at, job in zip(places.tolist(), self._draw(len(places)), strict=True):
            self.jobs[at] = job

    def _pass_time(self) -> None:
        """A round passes."""
        if self.last is None:
            raise RuntimeError("time goes on from an answer: adopt one first")
        self.now_s += ROUND_S[self.change]
        elapsed = np.clip((self.now_s - self.grid.left) / self.grid.length, 0.0, 1.0)
        done = np.einsum("nlg,ng,l->n", self.last.gpu_seconds, self.relaxation.alpha, elapsed)
        ahead = []
        for job, share in zip(self.jobs, done.tolist(), strict=True):
            rounds = int(np.ceil(job.rounds * (1.0 - share) - 1e-9))
            ahead += [replace(job, rounds=rounds)] if rounds > 0 else []
        self.jobs = ahead + self._draw(len(self.jobs) - len(ahead))

    def edit(self) -> None:
        """Make the round's instance and grid (timed)."""
        self.instance = HareInstance.of(self.jobs, self.gpus)
        if self.now_s > self.grid.edges[0]:
            self.grid = self.grid.rolled(self.now_s).until(sufficient_horizon_s(self.instance, self.now_s))
        self._relaxation: Relaxation | None = None
        self._program: Program | None = None

    def solver(self, options: SolverOptions) -> HareSolver:
        """The relaxation's own solver."""
        return HareSolver(self, options)

    def adopt(self, outcome: Outcome) -> None:
        """Remember what runs."""
        self.last = outcome.answer

    # As arrays ----------------------------------------------------------------------------------------------------

    def program(self) -> Program:
        """The relaxation written out; columns and rows are named by job, the interval's right edge and GPU type."""
        if self._program is None:
            lp, data = self.relaxation.program(), self.relaxation
            job, interval, kind = (part.tolist() for part in np.nonzero(data.usable))
            ids, edges = [job.id for job in self.jobs], self.grid.right.tolist()
            columns = [(ids[n], edges[i], g) for n, i, g in zip(job, interval, kind, strict=True)]
            rows = [("gpus", edge, g) for edge in edges for g in range(data.capacity.shape[1])]
            for name, first in zip(ids, data.first.tolist(), strict=True):
                rows += [(name, edge) for edge in edges[first:]] + [(name, "work"), (name, "excess")]
            self._program = Program(
                lp.c, lp.A, lp.row_lower, lp.row_upper, lp.col_lower, lp.col_upper,
                self.columns.numbers([*columns, *((name, "excess") for name in ids)]), self.rows.numbers(rows),
                "min", lp.offset, np.zeros(len(lp.c), dtype=bool),
            )  # fmt: skip
        return self._program

    def point(self, outcome: Outcome) -> tuple[Floats, Floats]:
        """GPU seconds and excesses; prices, with those of parallelism that HR11 has at them."""
        data: Relaxation = self.relaxation
        found: RelaxationSolution = outcome.answer
        excess = np.maximum(data.excess + data.mean_busy_s(found.gpu_seconds), 0.0)
        lam, nu = found.job_price[0], np.clip(found.job_price[1], 0.0, data.weight)
        price = np.maximum(found.price, 0.0)
        worth = lam[:, None] - data.start * nu[:, None]
        y: list[Floats] = [-price.ravel()]
        for n, first in enumerate(data.first.tolist()):
            kinds = data.alpha[n] > 0
            margin = (data.alpha[n, kinds] * worth[n, first:, None] - price[first:, kinds]).max(axis=1)
            y += [-np.maximum(margin, 0.0), np.array([lam[n], nu[n]])]
        return np.concatenate((found.gpu_seconds[data.usable], excess)), np.concatenate(y)

    def whole(self, outcome: Outcome) -> tuple[Ints, Floats] | None:
        """None: the relaxation has no whole plan."""
        return None

    def judged_in_parts(self, outcome: Outcome) -> Judged | None:
        """Judge the program as it is written out: the judge itself goes through its columns in parts."""
        return judge_outcome(self, self.program(), outcome)


class HareSolver:
    """The relaxation's solver on a family's rounds."""

    def __init__(self, family: HareRounds, options: SolverOptions) -> None:
        self.family, self.options = family, options
        self.solver = RelaxationSolver(options.tolerance, options.threads)

    def solve(self) -> Outcome:
        """Solve the round's relaxation."""
        family = self.family
        found: RelaxationSolution = self.solver.solve(family.instance, family.grid, self.options.time_limit_s)
        return Outcome(
            status=found.status.value,
            objective=found.objective,
            bound=found.bound,
            solve_s=found.solve_time_s,
            passes=found.passes,
            iterations=found.iterations,
            answer=found,
            edits=EditCounts(found.edits.added, found.edits.removed, found.edits.changed, found.edits.requests),
        )
