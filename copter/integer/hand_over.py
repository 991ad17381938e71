"""HiGHS's branch and bound on the same program, in a process of its own while the search goes on (M11)."""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from copter.errors import InternalError
from copter.integer.branch_and_bound import Report, Task
from copter.integer.problem import Domain, IntegerProblem
from copter.integer.relaxation import Relaxation

Floats = NDArray[np.float64]

HIGHS = "HiGHS"
PROGRAM = "from copter.integer.branch_and_bound import main; main()"
LEAST_S = 1.0  # time below which starting a process is not worth it
SLICE_S = 0.05  # of waiting, between two looks at the clock
ENDING_S = 2.0  # past the limit that the process has, after which it is ended


class HandOver:
    """A branch and bound in a process of its own; :meth:`poll` offers what it has found to the problem.

    Parameters
    ----------
    problem : IntegerProblem
        Its best point, if it has one, is where branch and bound starts.
    relaxation : Relaxation
        Recomputes continuous columns where a point's integer ones had to be rounded.
    limit_s : float
        Wall-clock seconds that it may take.
    domain : Domain, optional
        Bounds of the integer columns where only a part of the program is handed over; what is said about bounds and
        infeasibility is of that part then.
    """

    def __init__(
        self, problem: IntegerProblem, relaxation: Relaxation, limit_s: float, domain: Domain | None = None
    ) -> None:
        self.problem, self.relaxation = problem, relaxation
        self.until = time.perf_counter() + limit_s
        self.finished = self._polling = False
        self.infeasible = self.solved = False
        self.bound = -np.inf
        self._reports: queue.SimpleQueue[Report] = queue.SimpleQueue()
        root = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH", "")) if part)
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": path},
        )
        self._thread = threading.Thread(target=self._serve, args=(self._task(limit_s, domain),), daemon=True)
        self._thread.start()

    def _task(self, limit_s: float, domain: Domain | None) -> Task:
        lp, problem = self.problem.lp, self.problem
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
        )

    def _serve(self, task: Task) -> None:
        """Send the task and collect the reports, until the process ends."""
        requests, reports = self._process.stdin, self._process.stdout
        if requests is None or reports is None:
            raise InternalError("the process of the branch and bound has no pipes")
        try:
            pickle.dump(task, requests, protocol=pickle.HIGHEST_PROTOCOL)
            requests.flush()
            while True:
                self._reports.put(pickle.load(reports))
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            self._reports.put(Report(finished=True))

    def poll(self, wait_s: float = 0.0) -> None:
        """Take in what has been found since the last call, waiting up to so many seconds for the first."""
        if self._polling:  # a relaxation that completes a reported point asks whether to go on, which polls again
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
                    self._offer(report.x)
                self.infeasible = self.infeasible or report.infeasible
                self.bound = max(self.bound, report.bound)
                self.finished, self.solved = report.finished, report.solved
        finally:
            self._polling = False

    def _offer(self, x: Floats) -> None:
        """Keep the point; where it is infeasible once rounded, recompute its continuous columns."""
        problem = self.problem
        if problem.offer(x, HIGHS) or float(problem.cost @ x) >= problem.value:
            return
        if len(problem.continuous):
            self.relaxation.complete(Domain(problem, x.copy(), x.copy()), HIGHS)

    @property
    def decided(self) -> bool:
        """Whether there is nothing left to search for: its best point is known, or that there is none."""
        return self.solved and (self.infeasible or self.problem.x is not None)

    def wait(self) -> None:
        """Poll for a moment; past its time limit the process counts as ended."""
        self.poll(min(SLICE_S, max(self.problem.clock.left_s, 1e-4)))
        self.finished = self.finished or time.perf_counter() > self.until + ENDING_S

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._thread.join()  # both pipes have ended, so it does not wait for anything
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):  # what was still to be sent is not needed any more
                    pipe.close()


def hand_over(
    problem: IntegerProblem, relaxation: Relaxation, limit_s: float, domain: Domain | None = None
) -> HandOver | None:
    """Start branch and bound, on all or a part; None where there is no time for it or no process can be started."""
    if limit_s < LEAST_S or not len(problem.integers) or not sys.executable:
        return None
    try:
        return HandOver(problem, relaxation, limit_s, domain)
    except OSError:
        return None
