"""Processes for branch and bound; one is kept for the next search, so that most searches start none."""

from __future__ import annotations

import atexit
import os
import pickle
import queue
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from copter.highs.branch_and_bound import Report, Task
from copter.highs.linear import LinearTask, Vertex
from copter.runtime.errors import InternalError

Answer = Report | Vertex

PROGRAM = "from copter.highs.branch_and_bound import main; main()"


class Worker:
    """A process that solves one task at a time.

    Raises
    ------
    OSError
        If no process can be started.
    """

    def __init__(self) -> None:
        root = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH", "")) if part)
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": path},
        )
        self.owner = os.getpid()  # after a fork only the parent may use the process
        self._thread: threading.Thread | None = None
        self._ended = True  # whether no task is running

    def start(self, task: Task | LinearTask, reports: queue.SimpleQueue[Any]) -> None:
        """Start a task; reports arrive as they are made, and the last one is `finished` even if the process dies."""
        self._ended = False
        self._thread = threading.Thread(target=self._serve, args=(task, reports), daemon=True)
        self._thread.start()

    def _serve(self, task: Task | LinearTask, reports: queue.SimpleQueue[Any]) -> None:
        """Send the task and collect its reports."""
        source, sink = self.process.stdin, self.process.stdout
        if source is None or sink is None:
            raise InternalError("the process of the branch and bound has no pipes")
        try:
            pickle.dump(task, source, protocol=pickle.HIGHEST_PROTOCOL)
            source.flush()
            finished = False
            while not finished:
                report: Answer = pickle.load(sink)
                finished = self._ended = report.finished
                reports.put(report)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            reports.put(Report(finished=True))

    def is_free(self) -> bool:
        """Whether the worker can accept a task from this process."""
        return self._ended and self.owner == os.getpid() and self.process.poll() is None

    def end(self) -> None:
        """End the process at once, even during a task."""
        if self.owner != os.getpid():
            return
        self.process.kill()
        self.process.wait()
        if self._thread is not None:
            self._thread.join()  # both pipes are closed, so the thread ends at once
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):  # unsent data are no longer needed
                    pipe.close()


_SPARE: list[Worker] = []
_LOCK = threading.Lock()


def taken() -> Worker:
    """Return the kept process or a new one; raises OSError if none can be started."""
    with _LOCK:
        spare = _SPARE.pop() if _SPARE else None
    if spare is not None and spare.is_free():
        return spare
    if spare is not None:
        spare.end()
    return Worker()


def warmed_up() -> bool:
    """Return whether a process is kept; otherwise start one for a later search."""
    with _LOCK:
        if _SPARE and _SPARE[0].is_free():
            return True
    given_back(Worker())
    return False


def given_back(worker: Worker) -> None:
    """Keep an idle process for the next search; end a busy one."""
    with _LOCK:
        if not _SPARE and worker.is_free():
            _SPARE.append(worker)
            return
    worker.end()


@atexit.register
def end_spare() -> None:
    """End the kept process."""
    with _LOCK:
        spare = _SPARE.pop() if _SPARE else None
    if spare is not None:
        spare.end()
