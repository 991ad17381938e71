"""An optimal vertex of a linear program, from HiGHS in a process that can be ended at any time (K18)."""

from __future__ import annotations

import queue
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

from copter.highs.linear import LinearTask, Vertex
from copter.runtime.watch import Watch

LOOK_S = 0.005  # seconds between two looks at the clock


def optimal_vertex(task: LinearTask, watch: Watch) -> Vertex | None:
    """Return HiGHS's optimum, or that there is none; None without an answer, in time or at all."""
    process = import_module("copter.highs.process")  # loaded here, because `import copter` does without it
    try:
        worker = process.taken() if sys.executable else None
    except OSError:
        worker = None
    if worker is None:
        return None
    reports: queue.SimpleQueue[Any] = queue.SimpleQueue()
    try:
        worker.start(task, reports)
        while not watch():
            with suppress(queue.Empty):
                found = reports.get(timeout=LOOK_S)
                return found if isinstance(found, Vertex) and (found.x is not None or found.no_optimum) else None
        return None
    finally:
        process.given_back(worker)
