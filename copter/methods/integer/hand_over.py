"""HiGHS's branch and bound on the same program, in its own process, in parallel to the search (M11)."""

from __future__ import annotations

import queue
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter.highs.branch_and_bound import RELATIVE_GAP, Report, Task
from copter.highs.process import given_back, taken, warmed_up
from copter.methods.integer.problem import Domain, IntegerProblem
from copter.methods.integer.relaxation import Relaxation

Floats = NDArray[np.float64]
Callback = Callable[[float, float], "bool | None"]

HIGHS = "HiGHS"  # name of the solver that takes over
LEAST_S = 1.0  # seconds; a search with less time left is not handed over
# Seconds; a search with less time starts no process, because the start would take as long, but uses one that runs.
LEAST_START_S = 0.2
SLICE_S = 0.05  # seconds between two looks at the clock while waiting
GRACE = 0.2  # a short search may exceed its time limit by this share
ENDING_S = 2.0  # a process that exceeds its own limit by this many seconds is ended


@dataclass(frozen=True, slots=True)
class Limits:
    """What ends a search early: a relative gap, a number of nodes, the caller's callback (which may return True)."""

    gap: float = RELATIVE_GAP
    max_nodes: int | None = None
    callback: Callback | None = None


NO_LIMITS = Limits()


def task_of(problem: IntegerProblem, limit_s: float, domain: Domain | None = None, limits: Limits = NO_LIMITS) -> Task:
    """Return the process's task: the problem, or its restriction to a domain's bounds of the integer columns."""
    lp = problem.lp
    part = problem.is_integer if domain is not None else np.zeros(problem.n, dtype=bool)
    bounds = domain or problem.root
    return Task(
        cost=problem.cost,
        matrix=lp.A,
        row_lower=lp.row_lower,
        row_upper=lp.row_upper,
        col_lower=np.where(part, bounds.lower, lp.col_lower),
        col_upper=np.where(part, bounds.upper, lp.col_upper),
        integrality=lp.integrality,
        start=problem.x,
        cutoff=float(problem.row_upper[-1]),
        time_limit_s=limit_s,
        gap=limits.gap,
        max_nodes=limits.max_nodes,
    )


class HandOver:
    """A branch and bound in its own process; :meth:`poll` offers its results to the problem.

    Parameters
    ----------
    problem : IntegerProblem
        Its best point, if it has one, is branch and bound's start.
    relaxation : Relaxation
        Recomputes the continuous columns if a point's integer columns had to be rounded.
    limit_s : float
        Wall-clock time limit.
    domain : Domain, optional
        Bounds of the integer columns, to hand over only a part of the program. Bounds and infeasibility then refer to
        that part.
    limits : Limits
        Gap and nodes at which it may stop before its best point is proven optimal.
    """

    def __init__(
        self,
        problem: IntegerProblem,
        relaxation: Relaxation,
        limit_s: float,
        domain: Domain | None = None,
        limits: Limits = NO_LIMITS,
    ) -> None:
        self.problem, self.relaxation = problem, relaxation
        self.until = time.perf_counter() + limit_s
        self.finished = self._polling = False
        self.infeasible = self.solved = False
        self.bound = -np.inf
        self._reports: queue.SimpleQueue[Report] = queue.SimpleQueue()
        self._worker = taken()
        self._worker.start(task_of(problem, limit_s, domain, limits), self._reports)

    def poll(self, wait_s: float = 0.0) -> None:
        """Take in all results since the last call, waiting up to `wait_s` seconds for the first."""
        if self._polling:  # completing a reported point solves a relaxation, whose stop test calls this method again
            return
        self._polling = True
        try:
            while not self.finished:
                try:
                    report = self._reports.get(timeout=wait_s) if wait_s > 0.0 else self._reports.get_nowait()
                except queue.Empty:
                    return
                wait_s = 0.0
                if report.x is not None:
                    offer(self.problem, self.relaxation, report.x)
                self.infeasible = self.infeasible or report.infeasible
                self.bound = max(self.bound, report.bound)
                self.finished, self.solved = report.finished, report.solved
        finally:
            self._polling = False

    @property
    def decided(self) -> bool:
        """Whether branch and bound has solved its program: the best point is known, or none exists."""
        return self.solved and (self.infeasible or self.problem.x is not None)

    def wait(self) -> None:
        """Wait briefly for reports; a process past its time limit counts as finished."""
        self.poll(min(SLICE_S, max(self.problem.clock.left_s, 1e-4)))
        self.finished = self.finished or time.perf_counter() > self.until + ENDING_S

    def close(self) -> None:
        """Return the process for reuse; end it if it is still working."""
        given_back(self._worker)


def offer(problem: IntegerProblem, relaxation: Relaxation, x: Floats) -> None:
    """Offer HiGHS's point; if rounding makes it infeasible, recompute its continuous columns."""
    if problem.offer(x, HIGHS) or float(problem.cost @ x) >= problem.value:
        return
    if len(problem.continuous):
        relaxation.complete(Domain(problem, x.copy(), x.copy()), HIGHS)


def solved_soon(
    problem: IntegerProblem,
    relaxation: Relaxation,
    limit_s: float,
    limits: Limits = NO_LIMITS,
    must_stop: Callable[[], bool] = lambda: False,
) -> Report:
    """Run branch and bound briefly and return its report; an empty report if no process can be started in time."""
    if not len(problem.integers) or not sys.executable:
        return Report(finished=True)
    try:
        if limit_s < LEAST_START_S and not warmed_up():
            return Report(finished=True)
        search = HandOver(problem, relaxation, limit_s, limits=limits)
    except OSError:
        return Report(finished=True)
    try:
        patience = time.perf_counter() + (1.0 + GRACE) * limit_s
        while not search.finished and not must_stop() and time.perf_counter() < patience:
            search.wait()
        search.poll()
        done = search.finished and search.solved
        return Report(bound=search.bound, infeasible=search.infeasible, finished=True, solved=done)
    finally:
        search.close()


def hand_over(
    problem: IntegerProblem,
    relaxation: Relaxation,
    limit_s: float,
    domain: Domain | None = None,
    limits: Limits = NO_LIMITS,
) -> HandOver | None:
    """Start branch and bound on all or part of the problem; None if there is no time or no process."""
    if limit_s < LEAST_S or not len(problem.integers) or not sys.executable:
        return None
    try:
        return HandOver(problem, relaxation, limit_s, domain, limits)
    except OSError:
        return None
