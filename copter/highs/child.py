"""The child process of :class:`copter.highs.tree.Tree`: it reads tasks, searches, and writes reports."""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp

from copter.highs.children import end_with_parent, limit_memory
from copter.highs.search import Search, Warm
from copter.highs.tree import Point, Program, Report, Stop, Task

SCIPY_SHARE = 0.95  # share of the time limit for SciPy's HiGHS, which returns its point only at the end
SOLVED, INFEASIBLE = 0, 2  # statuses of scipy.optimize.milp


class Inbox:
    """Messages from the parent, as a thread reads them."""

    def __init__(self, source: Any) -> None:
        self.tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self.stopped = 0  # number of the last task that must stop
        self.point: Point | None = None
        self.search: Search | None = None  # the one that runs
        self._source = source

    def read(self) -> None:
        """Read until the parent closes its end."""
        with suppress(EOFError, OSError):
            while True:
                message = pickle.load(self._source)
                if isinstance(message, Task):
                    self.tasks.put(message)
                elif isinstance(message, Point):
                    self.point = message
                elif isinstance(message, Stop):
                    self.stopped = message.number
                    if (search := self.search) is not None and search.number <= message.number:
                        search.stop_beside()
        self.tasks.put(None)
        os._exit(0)

    def stops(self, number: int) -> bool:
        """Whether a task must stop, because the parent said so or has sent another."""
        return self.stopped >= number or not self.tasks.empty()

    def point_of(self, number: int) -> Point | None:
        """Return the LP's point if the parent has sent this task's."""
        point = self.point
        return point if point is not None and point.number == number else None


def main() -> None:
    """Search one task after the other; ends with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # so that a solver's output does not mix with the reports
    threading.Thread(target=end_with_parent, args=(int(sys.argv[1]),), daemon=True).start()
    limit_memory()
    inbox = Inbox(source)
    threading.Thread(target=inbox.read, daemon=True).start()

    def tell(report: Report) -> None:
        pickle.dump(report, sink, protocol=pickle.HIGHEST_PROTOCOL)
        sink.flush()

    has_highspy, warm = find_spec("highspy") is not None, Warm()
    if has_highspy:
        import_module("highspy")
    with suppress(BrokenPipeError):
        while (task := inbox.tasks.get()) is not None:
            try:
                program = whole_program(task.program, warm)
                if has_highspy:
                    inbox.search = Search(task, program, warm, inbox.stops, inbox.point_of, tell)
                    inbox.search.run()
                else:
                    by_scipy(task, program, tell)
            except BrokenPipeError:
                raise
            except Exception:  # no fault of one task may end those that follow
                warm.__init__()  # type: ignore[misc]
                tell(Report(task.number, finished=True))


def whole_program(program: Program, warm: Warm) -> Program:
    """Return the program with its matrix, which is the last one's if the parent did not send it."""
    if program.matrix is not None:
        return program
    if warm.program is None:
        raise ValueError("there is no last program")
    return Program(
        program.cost, warm.program.matrix, program.row_lower, program.row_upper, program.col_lower, program.col_upper,
        program.integrality, program.group,
    )  # fmt: skip


def by_scipy(task: Task, program: Program, tell: Callable[[Report], None]) -> None:
    """Run branch and bound by SciPy's HiGHS, which has no start and reports its point at the end only."""
    optimize = import_module("scipy.optimize")  # loaded here, because a start without it takes half as long
    rows = [optimize.LinearConstraint(sp.csc_array(program.matrix), program.row_lower, program.row_upper)]
    options: dict[str, Any] = {"mip_rel_gap": task.gap, "disp": False}
    if task.max_nodes is not None:
        options["node_limit"] = task.max_nodes
    if np.isfinite(task.time_limit_s):
        options["time_limit"] = SCIPY_SHARE * task.time_limit_s
    result = optimize.milp(
        program.cost,
        integrality=program.integrality.astype(int),
        bounds=optimize.Bounds(program.col_lower, program.col_upper),
        constraints=rows if len(program.row_lower) else None,
        options=options,
    )
    bound, none = result.get("mip_dual_bound"), result.status == INFEASIBLE
    tell(
        Report(
            task.number,
            None if result.x is None else np.asarray(result.x, dtype=np.float64),
            -np.inf if bound is None or none else float(bound),
            "branch and bound",
            none,
            finished=True,
            solved=none or result.status == SOLVED,
        )
    )
