"""Shockwave's window: HiGHS chooses the jobs of each of the next rounds (docs/papers/baselines.md, B19-B22)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from copter import LinearProgram
from copter.highs.milp import branch_and_bound

Floats = NDArray[np.float64]
Lines = Sequence[tuple[Any, Any]]  # slopes and intercepts, one for all jobs or by job

BASES = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])  # breakpoints of the piecewise-linear logarithm
LEAST = 1e-6  # progress whose logarithm is used for zero progress
# worth of running one round earlier, divided by the window's number of cells, so that idle rounds come last
EARLIER = 1e-6
MOST_WEIGHT = 1e9  # largest weight; with larger ones, other jobs' values would fall below a solver's tolerance


@dataclass(frozen=True, slots=True)
class WindowJob:
    """A job in the window's program.

    Attributes
    ----------
    gpus : int
    progress : float
        Fraction done, 0 to 1.
    step : float
        Progress of one round.
    rounds_left : float
        Rounds that the job would take alone.
    most_delay : float
        Rounds that the job can wait in the window and still finish fairly.
    weight : float
        Weight of the job's utility, and in the order of jobs, if the fairness rows are left out.
    """

    gpus: int
    progress: float
    step: float
    rounds_left: float
    most_delay: float
    weight: float


@dataclass(frozen=True, slots=True)
class Window:
    """A planned window: runs (jobs, rounds), the objective, its bound, and whether the fairness rows hold."""

    runs: NDArray[np.bool_]
    objective: float
    bound: float
    fair: bool


def plan_window(
    jobs: Sequence[WindowJob],
    gpus: int,
    rounds: int,
    k: float,
    relative_gap: float,
    time_limit_s: float,
    whole_counts: bool = False,
) -> Window | None:
    """Plan the window with fairness rows, or with weights if the rows are infeasible; None without a plan.

    Parameters
    ----------
    jobs : sequence of WindowJob
    gpus : int
        GPUs of all types.
    rounds : int
    k : float
        Weight of the longest remaining time, relative to the mean utility.
    relative_gap, time_limit_s : float
        Gap and time at which HiGHS stops; the time is for both attempts together.
    whole_counts : bool
        Whether the lines join the logarithm at every whole number of rounds, where they are then exact; rounds that
        do not fit in turn then stay where they are.
    """
    if not jobs:
        return Window(np.zeros((0, rounds), dtype=bool), 0.0, 0.0, True)
    lines: Lines = _lines_at_counts(jobs, rounds) if whole_counts else list(zip(*log_lines(), strict=True))
    if all(least_rounds(job, rounds) <= most_rounds(job, rounds) for job in jobs):
        result = _solve(jobs, gpus, rounds, k, True, lines, relative_gap, time_limit_s / 2)
        if result is not None:
            return result
    result = _solve(jobs, gpus, rounds, k, False, lines, relative_gap, time_limit_s / 2)
    if result is None:
        return None
    turned = in_turn(jobs, result.runs, gpus)
    loses = whole_counts and turned.sum() < result.runs.sum()
    return result if loses else replace(result, runs=turned)


def in_turn(jobs: Sequence[WindowJob], runs: NDArray[np.bool_], gpus: int) -> NDArray[np.bool_]:
    """Move each job's rounds as early as possible, in descending order of weight divided by number of rounds (B22).

    Rounds that no longer fit are dropped.
    """
    counts = runs.sum(axis=1)
    turn = np.array([job.weight for job in jobs]) / np.maximum(counts, 1)
    left = np.full(runs.shape[1], gpus)
    ordered = np.zeros_like(runs)
    for row in np.argsort(-turn, kind="stable").tolist():
        at = np.flatnonzero(left >= jobs[row].gpus)[: counts[row]]
        ordered[row, at] = True
        left[at] -= jobs[row].gpus
    return ordered


def log_lines() -> tuple[Floats, Floats]:
    """Return slopes and intercepts of the lines whose minimum is the piecewise-linear logarithm on [0, 1]."""
    heights = np.log(np.maximum(BASES, LEAST))
    slopes = np.diff(heights) / np.diff(BASES)
    return slopes, heights[:-1] - slopes * BASES[:-1]


def _lines_at_counts(jobs: Sequence[WindowJob], rounds: int) -> list[tuple[Floats, Floats]]:
    """Return slopes and intercepts, by job, of the lines that join its utilities at whole numbers of rounds."""
    done, step = np.array([job.progress for job in jobs]), np.array([job.step for job in jobs])
    most = np.array([most_rounds(job, rounds) for job in jobs])
    found = []
    for count in range(int(most.max(initial=0))):
        first = np.minimum(count, np.maximum(most - 1, 0))  # a job that can use fewer rounds has its last line again
        low, high = utility(done + first * step), utility(done + (first + 1) * step)
        slope = (high - low) / step
        found.append((slope, low - slope * (done + first * step)))
    return found


def utility(progress: Floats) -> Floats:
    """Return the logarithm of the progress, at least that of LEAST and at most zero."""
    return np.log(np.clip(progress, LEAST, 1.0))


def most_rounds(job: WindowJob, rounds: int) -> int:
    """Return the rounds of the window that the job can use."""
    return int(min(rounds, np.ceil(job.rounds_left - 1e-9)))


def least_rounds(job: WindowJob, rounds: int) -> int:
    """Return the rounds of the window that the job needs to finish fairly."""
    return int(max(0, np.ceil(most_rounds(job, rounds) - job.most_delay - 1e-9)))


def _solve(
    jobs: Sequence[WindowJob],
    gpus: int,
    rounds: int,
    k: float,
    fair: bool,
    lines: Lines,
    relative_gap: float,
    time_limit_s: float,
) -> Window | None:
    """Solve the program with columns x by job and round, utility by job, and the longest remaining time in windows."""
    n = len(jobs)
    cells = n * rounds
    columns = cells + n + 1
    weights = np.ones(n) if fair else np.minimum([job.weight for job in jobs], MOST_WEIGHT)
    scale = weights.max()  # scale of the objective, so that its largest coefficients do not depend on the weights
    cost = np.zeros(columns)
    cost[:cells] = np.tile(EARLIER * np.arange(rounds) / cells, n)
    cost[cells : cells + n] = -weights / (scale * n * rounds)
    cost[-1] = k / scale
    rows, lower, upper = _rows(jobs, gpus, rounds, fair, lines)
    integrality = np.zeros(columns)
    integrality[:cells] = 1
    program = LinearProgram(
        cost,
        rows,
        lower,
        upper,
        np.concatenate([np.zeros(cells), np.full(n, np.log(LEAST)), [0.0]]),
        np.concatenate([np.ones(cells), np.zeros(n), [np.inf]]),
        integrality,
    )
    result = branch_and_bound(program, time_limit_s, relative_gap)
    if result.x is None:
        return None
    worth = -float(cost @ result.x)
    bound = -result.bound if np.isfinite(result.bound) else worth
    runs = result.x[:cells].reshape(n, rounds) > 0.5
    value, bound = worth * scale, bound * scale
    return Window(runs, value, max(bound, value), fair)


def _rows(
    jobs: Sequence[WindowJob], gpus: int, rounds: int, fair: bool, lines: Lines
) -> tuple[sparse.csr_array, Floats, Floats]:
    """Return the rows: capacity by round; rounds by job; utility below every line; remaining time below its maximum."""
    n = len(jobs)
    demand = np.array([job.gpus for job in jobs], dtype=np.float64)
    step = np.array([job.step for job in jobs])
    done = np.array([job.progress for job in jobs])
    left = np.array([job.rounds_left for job in jobs])
    each_round = sparse.kron(demand[None, :], sparse.identity(rounds))
    each_job = sparse.kron(sparse.identity(n), np.ones((1, rounds)))
    blocks = [
        [each_round, None, None],
        [each_job, None, None],
        *([-sparse.diags(slope * step) @ each_job, sparse.identity(n), None] for slope, _ in lines),
        [each_job / rounds, None, np.ones((n, 1))],
    ]
    infinite = np.full(n, np.inf)
    least = np.array([least_rounds(job, rounds) if fair else 0 for job in jobs], dtype=np.float64)
    most = np.array([most_rounds(job, rounds) for job in jobs], dtype=np.float64)
    lower = [np.zeros(rounds), least, *(-infinite for _ in lines), left / rounds]
    upper = [
        np.full(rounds, float(gpus)),
        most,
        *(height + slope * done for slope, height in lines),
        infinite,
    ]
    return sparse.csr_array(sparse.block_array(blocks)), np.concatenate(lower), np.concatenate(upper)
