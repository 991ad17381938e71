"""What no scheduler can do better in a load test: usage and waiting, as bounds computed before anything is decided.

A workload that was stopped starts afresh, so the runs that end are a schedule without stops; every one of them obeys:

- end: for each time r, T >= r + (sum over workloads of what remains of them at r if each ran from its arrival) / quota;
- waiting: on the grid of arrivals and runtimes, with x_gt the workloads of group g (a class, an arrival) that start at
  t, sum over t of x_gt is the group's size, and at each t those that run take at most the cohort's quota. It is a
  linear program; its certified bound is one on every schedule, as starts can be moved to the grid without loss.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

import copter
from copter_frontends.queues.load_test import CohortSet, LoadTest, WorkloadClass

MOST_COLUMNS = 60_000  # of the program of waiting: larger ones are not made


@dataclass(frozen=True, slots=True)
class LoadBounds:
    """Bounds of a test.

    Attributes
    ----------
    end_ms : float
        No schedule ends before.
    usage : float
        Most mean usage, of nominal quota, from the first moment to the end.
    waiting_ms : float or None
        Least mean time to admission, all workloads alike; None where its program would be too large.
    weighted_waiting_ms : float or None
        The same with each workload counted by its priority.
    """

    end_ms: float
    usage: float
    waiting_ms: float | None
    weighted_waiting_ms: float | None


def load_bounds(test: LoadTest) -> LoadBounds:
    """The bounds of a test."""
    end = max(_end_ms(each) for each in test.cohort_sets)
    work = sum(
        cohorts.count * queues.count * each.count * each.work
        for cohorts in test.cohort_sets
        for queues in cohorts.queue_sets
        for each in queues.classes
    )
    kinds = {each.name: each.priority for _, _, queues in test.each_queue() for each in queues.classes}
    return LoadBounds(
        end,
        work / (test.quota * end),
        least_waiting_ms(test, dict.fromkeys(kinds, 1.0)),
        least_waiting_ms(test, {name: float(priority) for name, priority in kinds.items()}),
    )


def least_waiting_ms(
    test: LoadTest, weights: Mapping[str, float], most_ms: Mapping[str, float] | None = None
) -> float | None:
    """The least mean time to admission, each workload weighted by its class.

    Parameters
    ----------
    test : LoadTest
    weights : mapping of str to float
        By class; 0 where it is missing.
    most_ms : mapping of str to float, optional
        Mean times to admission that classes must keep to.

    Returns
    -------
    float or None
        A certified bound; None where the program would be too large, or there are cohorts of several kinds.
    """
    if len(test.cohort_sets) > 1:
        return None
    cohorts = test.cohort_sets[0]
    weight = sum(
        queues.count * each.count * weights.get(each.name, 0.0)
        for queues in cohorts.queue_sets
        for each in queues.classes
    )
    total = _waiting(test, cohorts, weights, most_ms or {})
    return None if total is None else total / max(weight, 1e-300)


def _groups(cohorts: CohortSet) -> list[tuple[WorkloadClass, int, int]]:
    """Every class, arrival in milliseconds, and how many of one cohort come then."""
    return [
        (each, (at + 1) * each.interval_ms, queues.count)
        for queues in cohorts.queue_sets
        for each in queues.classes
        for at in range(each.count)
    ]


def _end_ms(cohorts: CohortSet) -> float:
    """The largest of the bounds on the end."""
    groups = _groups(cohorts)
    request, runtime, arrival, count = (
        np.array(column, dtype=np.float64)
        for column in zip(*((kind.request, kind.runtime_ms, at, many) for kind, at, many in groups), strict=True)
    )
    best = float((arrival + runtime).max())
    for time in np.unique(np.append(arrival, 0.0)):
        remains = np.clip(runtime - np.clip(time - arrival, 0.0, None), 0.0, None)
        best = max(best, float(time + (remains * request * count).sum() / cohorts.quota))
    return best


def _waiting(
    test: LoadTest, cohorts: CohortSet, weights: Mapping[str, float], most_ms: Mapping[str, float]
) -> float | None:
    """A bound on the weighted sum of the waiting times of one cohort, in milliseconds."""
    grid, groups = test.grid_ms, _groups(cohorts)
    horizon = sum(each.work * queues.count * each.count for queues in cohorts.queue_sets for each in queues.classes)
    last = max(at for _, at, _ in groups)
    steps = math.ceil((last + horizon / cohorts.quota) / grid) + max(kind.runtime_ms for kind, _, _ in groups) // grid
    if steps * len(groups) > MOST_COLUMNS:
        return None
    limited = list(most_ms)
    costs: list[float] = []
    rows: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    for at, (kind, arrival, _) in enumerate(groups):
        length = kind.runtime_ms // grid
        for start in range(arrival // grid, steps):
            wait = float(start * grid - arrival)
            lasts = range(start, min(start + length, steps))
            rows += [at, *(len(groups) + step for step in lasts)]
            values += [1.0] + [kind.request] * len(lasts)
            columns += [len(costs)] * (1 + len(lasts))
            if kind.name in most_ms and wait > 0.0:
                rows.append(len(groups) + steps + limited.index(kind.name))
                values.append(wait)
                columns.append(len(costs))
            costs.append(wait * weights.get(kind.name, 0.0))
    sizes = np.array([count for _, _, count in groups], dtype=np.float64)
    allowed = np.array(
        [most_ms[name] * sum(count for kind, _, count in groups if kind.name == name) for name in limited]
    )
    size = (len(groups) + steps + len(limited), len(costs))
    matrix = sp.csr_array((values, (rows, columns)), shape=size)
    low = np.concatenate([sizes, np.full(steps + len(limited), -math.inf)])
    high = np.concatenate([sizes, np.full(steps, cohorts.quota), allowed])
    program = copter.LinearProgram(
        np.array(costs), matrix, low, high, np.zeros(len(costs)), np.full(len(costs), math.inf)
    )
    return max(0.0, copter.solve(program).bound)
