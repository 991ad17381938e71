"""Summary of a load test's run beside its bounds and Kueue's ranges, as plain values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from copter_serve.queues.load_bounds import LoadBounds, least_waiting_ms
from copter_serve.queues.load_run import LoadResult
from copter_serve.queues.load_test import LoadTest


def load_summary(test: LoadTest, bounds: LoadBounds, result: LoadResult) -> dict[str, Any]:
    """Return the run's figures; workloads' times are in simulated milliseconds.

    A class's least mean wait is a lower bound for every schedule in which no class of higher priority waits longer than
    in this run.
    """
    kinds = {each.name: each for _, _, queues in test.each_queue() for each in queues.classes}
    ranges = test.ranges.admission_ms or {}
    classes: list[dict[str, Any]] = []
    above: dict[str, float] = {}
    for kind in sorted(kinds.values(), key=lambda each: -each.priority):
        waits = result.waits_ms[kind.name]
        classes.append(
            {
                "class": kind.name,
                "priority": kind.priority,
                "count": len(waits),
                "mean_ms": float(waits.mean()),
                "p99_ms": float(np.percentile(waits, 99)),
                "most_ms": float(waits.max()),
                "least_mean_ms": least_waiting_ms(test, {kind.name: 1.0}, above),
                "kueue_range_ms": ranges.get(kind.name),
            }
        )
        above[kind.name] = float(waits.mean()) * (1.0 + 1e-9)
    wall = test.ranges.wall_ms
    return {
        "test": test.name,
        "workloads": test.workloads,
        "queues": test.queues,
        "admitted": result.decided,
        "usage": {"mean": result.usage, "most": bounds.usage, "of_attainable": result.usage / bounds.usage},
        "end_ms": result.end_ms,
        "least_end_ms": bounds.end_ms,
        "mean_ms": result.waiting_ms(),
        "least_mean_ms": bounds.waiting_ms,
        "weighted_mean_ms": result.waiting_ms({name: float(kind.priority) for name, kind in kinds.items()}),
        "least_weighted_mean_ms": bounds.weighted_waiting_ms,
        "classes": classes,
        "inversions": result.inversions,
        "idle": result.idle,
        "moments": result.moments,
        "most_waiting": result.most_waiting,
        "largest_gap": result.largest_gap,
        "solve_s": result.solve_s,
        "edit_s": result.edit_s,
        "decide_s": result.decide_s,
        "decide_cpu_s": result.decide_cpu_s,
        "slowest_s": result.slowest_s,
        "kueue_ranges": {
            "wall_ms": None if math.isinf(wall) else wall,
            "usage": test.ranges.usage or None,
        },
    }
