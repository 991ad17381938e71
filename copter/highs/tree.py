"""Branch and bound in a child process that lives on from round to round: programs go in, points and bounds come out.

The parent's side. The child (`child.py`) may crash, hang or be killed without harm: the last report is then `finished`.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
import time
import weakref
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

# The package itself is left out: it would load all of the engine, and a start take three times as long.
CHILD = """
import sys, types
package = types.ModuleType("copter")
package.__path__ = [sys.argv[2]]
sys.modules["copter"] = package
from copter.highs.child import main
main()
"""
READY_S = 30.0  # most seconds that a new process may take until it answers
BUSY_S = 0.05  # seconds that a process may go on with an old task before a new one replaces it
GREEDY = "single moves"  # what finds a point without LP and start; the search goes on as if there was none
NAME = "HiGHS"  # whose word an uncertified bound is


@dataclass(frozen=True, slots=True)
class Program:
    """A minimisation with integer columns, for the child.

    Attributes
    ----------
    cost, col_lower, col_upper : ndarray (n,)
    matrix : csc_array (m, n) or None
        None: the matrix of the last program.
    row_lower, row_upper : ndarray (m,)
    integrality : ndarray of bool (n,)
    group : ndarray (n,) int32
        The request of each column, 0 to groups - 1: neighbourhoods are unions of requests.
    """

    cost: Floats
    matrix: sp.csc_array | None
    row_lower: Floats
    row_upper: Floats
    col_lower: Floats
    col_upper: Floats
    integrality: NDArray[np.bool_]
    group: Ints


@dataclass(frozen=True, slots=True)
class Task:
    """One search.

    Attributes
    ----------
    number : int
        Reports carry it.
    program : Program
    came_from, rows_from : ndarray int32 or None
        Number that each column and each row had in the last program, or -1: the child keeps its basis. None: nothing is
        kept.
    start : ndarray (n,) or None
        Last round's point in the new columns. It need not be feasible.
    time_limit_s : float
    gap : float
        The search ends at this gap, |bound - objective| / |objective|.
    tree_only : bool
        Branch and bound alone, without neighbourhoods.
    max_nodes : int or None
        Nodes after which branch and bound ends.
    """

    number: int
    program: Program
    came_from: Ints | None
    rows_from: Ints | None
    start: Floats | None
    time_limit_s: float
    gap: float
    tree_only: bool = False
    max_nodes: int | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """The LP's point for a running task, from the parent's solve: its values, reduced costs and bound."""

    number: int
    x: Floats
    reduced: Floats
    bound: float


@dataclass(frozen=True, slots=True)
class Stop:
    """The end of a task: its result is no longer needed."""

    number: int


@dataclass(frozen=True, slots=True)
class Report:
    """News of a task: a better point, a better bound, the finding that there is no point, or the end.

    Attributes
    ----------
    number : int
    x : ndarray (n,) or None
    bound : float
        HiGHS's bound on the minimisation.
    by : str
        Part of the search that found the point.
    infeasible, finished, solved : bool
        `solved`: the search is complete, to the gap.
    """

    number: int = 0
    x: Floats | None = None
    bound: float = -np.inf
    by: str = ""
    infeasible: bool = False
    finished: bool = False
    solved: bool = False


class Tree:
    """A child process that searches one program at a time, and keeps what the next, similar one can use.

    Raises
    ------
    OSError
        If no process can be started.
    """

    def __init__(self) -> None:
        if not sys.executable:
            raise OSError("the interpreter's path is unknown, so no process can be started")
        root = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH", "")) if part)
        self._process = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(os.getpid()), str(Path(root) / "copter")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": path},
        )
        self._owner = os.getpid()  # after a fork only the parent may use the process
        self._reports: queue.SimpleQueue[Report] = queue.SimpleQueue()
        self._to_send: queue.SimpleQueue[Task | Point | Stop | None] = queue.SimpleQueue()
        self._number = self._finished = 0
        self.is_new = True  # whether the child has no last program
        threads = [
            threading.Thread(target=target, args=(pipe, self._reports, self._to_send), daemon=True)
            for target, pipe in ((_send, self._process.stdin), (_receive, self._process.stdout))
        ]
        for thread in threads:
            thread.start()
        self.close = weakref.finalize(self, _end, self._process, self._owner, self._to_send)

    @property
    def is_alive(self) -> bool:
        """Whether the process can accept a task from this process."""
        return self.close.alive and self._owner == os.getpid() and self._process.poll() is None

    @property
    def is_idle(self) -> bool:
        """Whether the last task has ended."""
        return self._finished == self._number

    def wait_until_ready(self) -> bool:
        """Wait until the process has started; returns whether it answers."""
        empty = np.zeros(0)
        nothing = Program(
            empty, sp.csc_array((0, 0)), empty, empty, empty, empty, empty.astype(bool), empty.astype("i4")
        )
        self.start(nothing, None, None, None, 1.0, 0.0)
        until = time.perf_counter() + READY_S
        while not self.is_idle and time.perf_counter() < until:
            self.reports(0.05)
        self.is_new = True
        return self.is_idle and self.is_alive

    def settle(self) -> bool:
        """Give the process a moment to end its last task; returns whether it has."""
        until = time.perf_counter() + BUSY_S
        while not self.is_idle and time.perf_counter() < until and self.is_alive:
            self.reports(0.005)
        return self.is_idle

    def start(
        self,
        program: Program,
        came_from: Ints | None,
        rows_from: Ints | None,
        start: Floats | None,
        time_limit_s: float,
        gap: float,
        tree_only: bool = False,
        max_nodes: int | None = None,
    ) -> None:
        """Start a task (see :class:`Task`); the arrays must not change until it has ended."""
        self._number += 1
        self.is_new = False
        self._to_send.put(
            Task(self._number, program, came_from, rows_from, start, time_limit_s, gap, tree_only, max_nodes)
        )

    def tell(self, x: Floats, reduced: Floats, bound: float) -> None:
        """Give the running task the LP's point."""
        self._to_send.put(Point(self._number, x, reduced, bound))

    def stop(self) -> None:
        """Tell the child that the running task's result is no longer needed; it ends soon."""
        if not self.is_idle:
            self._to_send.put(Stop(self._number))

    def reports(self, wait_s: float = 0.0) -> list[Report]:
        """Return the running task's news, after waiting at most `wait_s` seconds for the first."""
        found = list[Report]()
        until = time.perf_counter() + wait_s
        while True:
            left = 0.0 if found else until - time.perf_counter()
            try:
                report = self._reports.get(timeout=left) if left > 0.0 else self._reports.get_nowait()
            except queue.Empty:
                return found
            if report.number < 0:  # the process has died
                report = Report(self._number, finished=True)
            if report.number == self._number:
                found.append(report)
            if report.finished:
                self._finished = max(self._finished, report.number)


_SPARE: list[Tree] = []
_LOCK = threading.Lock()


def taken() -> Tree:
    """Return the process that another session has left, or a new one; raises OSError if none can be started."""
    with _LOCK:
        spare = _SPARE.pop() if _SPARE else None
    if spare is not None and spare.is_alive and (spare.is_idle or spare.settle()):
        spare.is_new = True
        return spare
    if spare is not None:
        spare.close()
    return Tree()


def given_back(tree: Tree) -> None:
    """Keep a process that is no longer needed for the next session; a second one is ended."""
    tree.stop()
    with _LOCK:
        if not _SPARE and tree.is_alive:
            _SPARE.append(tree)
            return
    tree.close()


def _send(pipe: object, _: object, to_send: queue.SimpleQueue[Task | Point | Stop | None]) -> None:
    """Write messages until there is a None, or the child is gone."""
    with suppress(OSError, ValueError):
        while (message := to_send.get()) is not None:
            pickle.dump(message, pipe, protocol=pickle.HIGHEST_PROTOCOL)  # type: ignore[arg-type]
            pipe.flush()  # type: ignore[attr-defined]


def _receive(pipe: object, reports: queue.SimpleQueue[Report], _: object) -> None:
    """Collect reports; the last one says that the child is gone."""
    try:
        while True:
            reports.put(pickle.load(pipe))  # type: ignore[arg-type]
    except Exception:  # whatever a killed process leaves in the pipe
        reports.put(Report(-1, finished=True))


def _end(process: subprocess.Popen[bytes], owner: int, to_send: queue.SimpleQueue[Task | Point | Stop | None]) -> None:
    """End the process at once, even during a task."""
    if owner != os.getpid():
        return
    process.kill()
    process.wait()
    to_send.put(None)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError, ValueError):
                pipe.close()
