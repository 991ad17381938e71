"""Shockwave's window with the logarithm itself, by copter: how many rounds each job gets, then which (B24a)."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from copter import Model, Session, worth
from copter_papers.opponents.shockwave.window import (
    EARLIER,
    LEAST,
    MOST_WEIGHT,
    Window,
    WindowJob,
    in_turn,
    least_rounds,
    most_rounds,
    plan_window,
    utility,
)

Ints = NDArray[np.int64]

LONGEST = "longest remaining time"  # id of the request whose column it is


def plan_true_log(
    jobs: Sequence[WindowJob], gpus: int, rounds: int, k: float, relative_gap: float, time_limit_s: float
) -> Window | None:
    """Plan the window as :func:`plan_window` does, with log(progress) in place of lines below it.

    A job's number of rounds is one whole column of its request, with a concave worth of its progress, and all GPUs of
    the window are one resource. If the rounds cannot be dealt so that no round has too many, HiGHS plans the window
    with lines that join the logarithm at whole numbers of rounds.
    """
    if not jobs:
        return Window(np.zeros((0, rounds), dtype=bool), 0.0, 0.0, True)
    began = perf_counter()
    fair = all(least_rounds(job, rounds) <= most_rounds(job, rounds) for job in jobs)
    found = None
    for rows in (True, False) if fair else (False,):
        left = time_limit_s - (perf_counter() - began)
        counted = _counts(jobs, gpus, rounds, k, rows, relative_gap, left / 2) if left > 0.0 else None
        if counted is None:
            continue
        counts, bound = counted
        runs = dealt(jobs, counts, gpus, rounds)
        value = worth_of(jobs, runs, k, rows)
        found = Window(
            runs, value, max(min(bound, 0.0), value), rows
        )  # no window is worth more: progress is at most one
        if bool((runs.sum(axis=1) == counts).all()):
            return found
        break
    left = time_limit_s - (perf_counter() - began)
    other = plan_window(jobs, gpus, rounds, k, relative_gap, left, whole_counts=True) if left > 0.0 else None
    if other is None:
        return found
    value = worth_of(jobs, other.runs, k, other.fair)
    if found is not None and found.fair is other.fair and found.objective >= value:
        return found
    early = EARLIER * (rounds - 1) / 2 * float(_weights(jobs, other.fair).max())  # at most, of all cells
    return Window(other.runs, value, max(min(other.bound + early, 0.0), value), other.fair)


def worth_of(jobs: Sequence[WindowJob], runs: NDArray[np.bool_], k: float, fair: bool) -> float:
    """Return what a window is worth (B19 with the logarithm itself)."""
    counts, rounds = runs.sum(axis=1), runs.shape[1]
    utilities = utility(np.array([job.progress + job.step * n for job, n in zip(jobs, counts, strict=True)]))
    left = np.array([job.rounds_left for job in jobs]) - counts
    return float(_weights(jobs, fair) @ utilities / (len(jobs) * rounds) - k * max(left.max(), 0.0) / rounds)


def dealt(jobs: Sequence[WindowJob], counts: Ints, gpus: int, rounds: int) -> NDArray[np.bool_]:
    """Return which rounds jobs run in: in turn (B22) if all fit so, else the largest first where most is left.

    Rounds that do not fit are left out.
    """
    runs = np.arange(rounds) < counts[:, None]
    early = in_turn(jobs, runs, gpus)
    if bool((early.sum(axis=1) == counts).all()):
        return early
    size = np.array([job.gpus for job in jobs])
    left, spread = np.full(rounds, gpus), np.zeros_like(runs)
    for row in np.lexsort((-counts, -size)).tolist():
        most = np.argsort(-left, kind="stable")
        at = most[left[most] >= size[row]][: counts[row]]
        spread[row, at] = True
        left[at] -= size[row]
    return spread if spread.sum() >= early.sum() else early


def _weights(jobs: Sequence[WindowJob], fair: bool) -> NDArray[np.float64]:
    return np.ones(len(jobs)) if fair else np.minimum([job.weight for job in jobs], MOST_WEIGHT)


def _counts(
    jobs: Sequence[WindowJob], gpus: int, rounds: int, k: float, fair: bool, relative_gap: float, time_limit_s: float
) -> tuple[Ints, float] | None:
    """Return how many rounds each job gets, and a bound on every window; None without a plan."""
    n, weights = len(jobs), _weights(jobs, fair)
    scale = float(weights.max()) / (n * rounds)  # of the objective
    model = Model(sense="max")
    model.add_resource("gpu rounds", gpus * rounds)
    longest = max(job.rounds_left for job in jobs) / rounds
    if k > 0.0:
        for at, job in enumerate(jobs):
            model.set_count(at, np.inf, job.rounds_left / rounds)
        usage = {at: [1.0] for at in range(n)}
        model.add_request(LONGEST, [-k / scale], usage, limit=longest)
    first = [least_rounds(job, rounds) if fair else 0 for job in jobs]
    for at, job in enumerate(jobs):
        rates, size = _columns(job, max(first[at], 1), most_rounds(job, rounds))
        if not len(size):
            continue
        used = {"gpu rounds": job.gpus * size} | ({at: size / rounds} if k > 0.0 else {})
        own = worth.log(float(weights[at]) / (n * rounds * scale), max(job.progress, LEAST))
        least = 1.0 if first[at] else -np.inf
        model.add_request(("job", at), 0.0, used, at_least=least, integer=True, worth=own, rates=rates)
    plan = Session(model).solve_integer(deadline_s=time_limit_s, gap=max(relative_gap, 1e-9))
    if not plan:
        return None
    counts = np.zeros(n, dtype=np.int64)
    for at in range(n):
        if ("job", at) in model and (column := plan.column(("job", at))) is not None:
            counts[at] = max(first[at], 1) + column
    idle = sum(float(weights[at]) * float(utility(np.array(job.progress))) for at, job in enumerate(jobs)
               if ("job", at) not in model) / (n * rounds)  # fmt: skip
    return counts, plan.bound * scale + idle


def _columns(job: WindowJob, first: int, most: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what each number of rounds from `first` on adds to the job's progress, and these numbers."""
    counts = np.arange(first, most + 1, dtype=np.float64)
    floor = max(job.progress, LEAST)
    return np.clip(job.progress + counts * job.step, floor, 1.0) - floor, counts
