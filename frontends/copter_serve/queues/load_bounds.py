"""Bounds on usage and waiting in a load test that no scheduler can beat, computed before any decision.

A stopped workload starts from the beginning, so completed runs form a schedule without stops, which obeys:

- end: for each time r, T >= r + (work left at r, summed over workloads, if each ran from its arrival) / quota;
- waiting: on the grid of arrivals and runtimes, with x_gt the workloads of group g (a class, an arrival) that start at
  t, sum over t of x_gt is the group's size, and at each t running workloads take at most the cohort's quota. This is a
  linear program. Its certified bound holds for every schedule, because starts can be moved to the grid without loss.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

import copter
from copter_serve.queues.load_test import CohortSet, LoadTest, WorkloadClass

MOST_COLUMNS = 60_000  # larger programs that bound waiting times are not solved


@dataclass(frozen=True, slots=True)
class LoadBounds:
    """Bounds that hold for each schedule of a test.

    Attributes
    ----------
    end_ms : float
        Earliest possible end.
    usage : float
        Largest possible mean usage from the start to the end, as a share of nominal quota.
    waiting_ms : float or None
        Least mean time to admission over all workloads; None if its program would be too large.
    weighted_waiting_ms : float or None
        The same, with each workload weighted by its priority.
    """

    end_ms: float
    usage: float
    waiting_ms: float | None
    weighted_waiting_ms: float | None


def load_bounds(test: LoadTest) -> LoadBounds:
    """Compute the bounds of a test."""
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
    """Compute a lower bound on the mean time to admission, weighted by class.

    Parameters
    ----------
    test : LoadTest
    weights : mapping of str to float
        Weights by class; 0 if missing.
    most_ms : mapping of str to float, optional
        Largest mean times to admission that classes may have.

    Returns
    -------
    float or None
        A certified bound; None if the program would be too large or cohorts differ.
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
    """Return each group: its class, its arrival in milliseconds, and the number of its workloads in one cohort."""
    return [
        (each, (at + 1) * each.interval_ms, queues.count)
        for queues in cohorts.queue_sets
        for each in queues.classes
        for at in range(each.count)
    ]


def _end_ms(cohorts: CohortSet) -> float:
    """Return the largest of the lower bounds on the end, in milliseconds."""
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
    """Return a lower bound on the weighted sum of one cohort's waiting times, in milliseconds."""
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
