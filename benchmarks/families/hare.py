"""Hare's relaxation round after round: a share of the jobs is replaced, and all is solved again, warm.

Not a family of models like the others: its blocks have many rows of their own, so that it has its own solver
(docs/hare.md) and its own mirror in HiGHS.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from harness import spread
from memory import peak_rss_mb

from copter import LinearProgram
from copter_frontends.clusters import scaled_cluster
from copter_frontends.hare import HareInstance, Relaxation, RelaxationSolution, RelaxationSolver, TimeGrid
from copter_frontends.hare.formulation import sufficient_horizon_s
from copter_frontends.hare.workload import random_jobs
from families.own_run import WARM_UP, OwnRun, known_peers
from families.protocol import Floats

JOBS_PER_GPU = 0.2
GROWTH = {"capped": 1.5, "full": 1.25}  # 23 and 40 intervals
SPARE = 1.5  # times the first round's sufficient horizon, for what later rounds bring


class HareRounds:
    """A seeded sequence of instances on seven GPU types; `churn` of the jobs are replaced a round.

    Parameters
    ----------
    gpus : int
    mode : {"full", "capped"}
        The grid: 40 intervals, or 23.
    churn : float
    seed : int
    """

    def __init__(self, gpus: int, mode: str, churn: float, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        cluster = scaled_cluster(gpus)
        self.gpus = {kind: cluster.capacity(kind) for kind in cluster.types}
        self.churn, self.made = churn, 0
        self.jobs = self._draw(max(2, round(JOBS_PER_GPU * gpus)))
        self.instance = HareInstance.of(self.jobs, self.gpus)
        self.grid = TimeGrid.geometric(0.0, SPARE * sufficient_horizon_s(self.instance), GROWTH[mode])

    def _draw(self, count: int) -> list[Any]:
        self.made += count
        return random_jobs(count, tuple(self.gpus), self.rng, first=self.made - count)

    def prepare(self) -> None:
        """Draw the next round: new jobs in the places of old ones."""
        count = max(1, round(self.churn * len(self.jobs))) if self.churn > 0 else 0
        places = self.rng.choice(len(self.jobs), count, replace=False)
        for at, job in zip(places.tolist(), self._draw(count), strict=True):
            self.jobs[at] = job

    def edit(self) -> None:
        """Make the round's instance (timed)."""
        self.instance = HareInstance.of(self.jobs, self.gpus)


class HighsHare:
    """HiGHS on the same programs: `warm` by simplex from the last basis, else interior point without crossover."""

    def __init__(self, warm: bool, threads: int) -> None:
        import highspy

        self.name = "highs" if warm else "highs-ipm-cold"
        self.api, self.warm, self.highs = highspy, warm, highspy.Highs()
        self.highs.silent()
        self.highs.setOptionValue("threads", threads)
        if not warm:
            self.highs.setOptionValue("solver", "ipm")
            self.highs.setOptionValue("run_crossover", "off")
        self.kept: tuple[HareInstance, Relaxation, Any] | None = None

    def round(self, instance: HareInstance, relaxation: Relaxation, program: LinearProgram, limit_s: float) -> Any:
        """(ended, objective, seconds) of one round; seconds are of HiGHS's own calls."""
        data = self.api.HighsLp()
        data.num_row_, data.num_col_ = program.shape
        data.col_cost_, data.offset_ = program.c, program.offset
        data.col_lower_, data.col_upper_ = program.col_lower, program.col_upper
        data.row_lower_, data.row_upper_ = program.row_lower, program.row_upper
        data.a_matrix_.format_ = self.api.MatrixFormat.kColwise
        data.a_matrix_.start_, data.a_matrix_.index_ = program.A.indptr, program.A.indices
        data.a_matrix_.value_ = program.A.data
        basis = self._basis(instance, relaxation)
        started = time.perf_counter()
        self.highs.passModel(data)
        if basis is not None:
            self.highs.setBasis(basis)
        self.highs.setOptionValue("time_limit", self.highs.getRunTime() + limit_s)
        self.highs.run()
        seconds = time.perf_counter() - started
        ended = self.highs.getModelStatus() == self.api.HighsModelStatus.kOptimal
        if self.warm and ended:
            self.kept = instance, relaxation, self.highs.getBasis()
        return ended, float(self.highs.getInfo().objective_function_value), seconds

    def _basis(self, instance: HareInstance, relaxation: Relaxation) -> Any:
        """The last basis by job; a new job's columns are at zero, its rows basic."""
        if self.kept is None:
            return None
        before, old, basis = self.kept
        status = self.api.HighsBasisStatus
        columns, rows = basis.col_status, basis.row_status
        shared, n_old = old.capacity.size, old.usable.sum(axis=(1, 2))
        column_at = np.concatenate(([0], np.cumsum(n_old)))
        row_at = shared + np.concatenate(([0], np.cumsum(old.parallel.shape[1] - old.first + 2)))
        where = {job.id: k for k, job in enumerate(before.jobs)}
        new_columns, new_rows, tail = [], list(rows[:shared]), []
        counts, lives = relaxation.usable.sum(axis=(1, 2)), relaxation.parallel.shape[1] - relaxation.first + 2
        for k, job in enumerate(instance.jobs):
            at = where.get(job.id)
            if at is None:
                new_columns += [status.kLower] * int(counts[k])
                new_rows += [status.kBasic] * int(lives[k])
                tail.append(status.kLower)
            else:
                new_columns += columns[column_at[at] : column_at[at + 1]]
                new_rows += rows[row_at[at] : row_at[at + 1]]
                tail.append(columns[column_at[-1] + at])
        found = self.api.HighsBasis()
        found.col_status, found.row_status = new_columns + tail, new_rows
        found.valid, found.alien = True, True
        return found


@dataclass
class _Figures:
    cold_s: float = 0.0
    cold_ended: bool = True
    given_up: bool = False
    round_s: list[float] = field(default_factory=list)
    edit_s: list[float] = field(default_factory=list)
    iterations: list[int] = field(default_factory=list)
    gap: list[float] = field(default_factory=list)
    violation: list[float] = field(default_factory=list)
    difference: list[float] = field(default_factory=list)
    late: int = 0


def judge(program: LinearProgram, data: Relaxation, found: RelaxationSolution) -> tuple[float, float]:
    """(gap against the bound, largest relative violation of any row), from the program's own matrix and NumPy alone."""
    excess = np.maximum(data.excess + data.mean_busy_s(found.gpu_seconds), 0.0)
    x: Floats = np.concatenate((found.gpu_seconds[data.usable], excess))
    activity, value = program.A @ x, float(program.c @ x + program.offset)
    below = np.where(np.isfinite(program.row_lower), program.row_lower - activity, -np.inf)
    above = np.where(np.isfinite(program.row_upper), activity - program.row_upper, -np.inf)
    side = np.where(np.isfinite(program.row_upper), program.row_upper, program.row_lower)
    worst = np.maximum(below, above) / np.maximum(np.abs(side), 1e-9 * np.abs(side).max())
    if abs(value - found.objective) > 1e-9 * abs(found.objective):
        raise SystemExit(f"the solver says {found.objective}, the point is worth {value}")
    bound = dual_value(data, found)
    if found.bound > bound + 1e-7 * abs(bound):
        raise SystemExit(f"the solver says that no point is below {found.bound}, its prices prove {bound}")
    return (value - bound) / (1.0 + abs(value)), float(max(worst.max(), 0.0))


def dual_value(data: Relaxation, found: RelaxationSolution) -> float:
    """HR11 at the prices handed back, none of which is improved here."""
    lam, nu = found.job_price[0], np.clip(found.job_price[1], 0.0, data.weight)
    price, total = np.maximum(found.price, 0.0), data.constant
    for first in range(0, len(lam), 256):
        at = slice(first, first + 256)
        worth = lam[at, None] - data.start[at] * nu[at, None]
        margin = (data.alpha[at, None, :] * worth[:, :, None] - price).max(axis=2)
        total += float((lam[at] + nu[at] * data.excess[at]).sum())
        total -= float((data.parallel[at] * np.maximum(margin, 0.0)).sum())
    return total - float((data.capacity * price).sum())


class HareRun(OwnRun):
    """One sequence through the solver and its peers; :meth:`run` gives the object that --json prints."""

    def __init__(self, options: Any) -> None:
        self.options = options
        self.family = HareRounds(options.scale, options.mode, options.churn, options.seed)
        self.solver = RelaxationSolver(options.tolerance, options.threads)
        self.figures = _Figures()
        known = known_peers("hare", options.peers, {"highs": True, "highs-ipm-cold": False})
        self.peers = {name: (HighsHare(warm, options.threads), _Figures()) for name, warm in known.items()}

    def round(self, index: int) -> None:
        """One round of the solver, then of every peer."""
        family, options = self.family, self.options
        started = time.perf_counter()
        family.edit()
        edited = time.perf_counter()
        found = self.solver.solve(family.instance, family.grid, options.time_limit_s)
        seconds = time.perf_counter() - started
        self.relaxation = Relaxation.of(family.instance, family.grid)
        self.program = self.relaxation.program()
        gap, violation = judge(self.program, self.relaxation, found)
        if index == -WARM_UP - 1:
            self.figures.cold_s = seconds
        if index >= 0:
            self.figures.round_s.append(seconds)
            self.figures.edit_s.append(edited - started)
            self.figures.iterations.append(found.iterations)
            self.figures.late += found.status.value != "optimal"
        self.figures.gap.append(gap)
        self.figures.violation.append(violation)
        if options.verbose:
            print(
                f"round {index}: {seconds:.2f} s, {found.iterations} iterations, {found.free_jobs} jobs, gap {gap:.1e},"
                f" violation {violation:.1e}, {'warm' if found.warm else 'cold'}, {found.status.value}",
                file=sys.stderr,
                flush=True,
            )
        for peer, figures in self.peers.values():
            self._peer_round(peer, figures, index, found.objective)

    def _peer_round(self, peer: HighsHare, figures: _Figures, index: int, objective: float) -> None:
        if figures.given_up:
            return
        limit = self.options.peer_time_limit_s
        ended, value, seconds = peer.round(self.family.instance, self.relaxation, self.program, limit)
        if index == -WARM_UP - 1:
            figures.cold_s, figures.cold_ended, figures.given_up = seconds, ended, not ended
        if index >= 0:
            figures.round_s.append(seconds)
            figures.late += not ended
        if ended:
            figures.difference.append(abs(objective - value) / (1.0 + abs(value)))
        if self.options.verbose:
            print(f"round {index}: {peer.name} {seconds:.2f} s{'' if ended else ', not ended'}", file=sys.stderr)

    def summary(self) -> dict[str, Any]:
        """As the other families' object, as far as it goes."""
        options, own = self.options, self.figures
        peers = {
            name: {"cold_s": f.cold_s, "cold_ended": f.cold_ended, "time_limit_hit": f.late}
            | (spread(f.round_s) if f.round_s else {})
            for name, (_, f) in self.peers.items()
        }
        best = min((p["p50_s"] for p in peers.values() if "p50_s" in p), default=None)
        differences = [d for _, f in self.peers.values() for d in f.difference]
        return {
            **{key: getattr(options, key) for key in ("family", "mode", "scale", "churn", "seed", "rounds")},
            "jobs": self.family.instance.n_jobs,
            "rows": self.program.shape[0],
            "variables": self.relaxation.variables,
            "nonzeros": int(self.program.A.nnz),
            "copter": {
                **spread(own.round_s),
                "cold_s": own.cold_s,
                "edit_p50_s": float(np.median(own.edit_s)),
                "passes_p50": float(np.median(own.iterations)),
                "gap_max": max(own.gap),
                "residual_max": max(own.violation),
                "not_optimal": own.late,
                "peak_rss_mb": peak_rss_mb(),
            },
            "peers": peers,
            "ratio_to_best_peer": None if best is None else best / float(np.median(own.round_s)),
            "objective_rel_diff_max": max(differences, default=None),
        }
