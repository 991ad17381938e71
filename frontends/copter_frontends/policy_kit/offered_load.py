"""The load of a workload: GPU time that its jobs can hold in a window over what there is (L1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from copter_frontends.policy_kit.throughputs import Throughputs, requested_gpus
from copter_frontends.vocabulary import Job, Shape

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Load:
    """Offered load of a window.

    Attributes
    ----------
    begin_s, end_s : float
        The window, in simulated seconds.
    all : float
        Load of the cluster; above 1.0 not every job can have its GPUs from its submission on.
    by_type : dict of GPU type to float
        Share of each type's GPU time that is used, in the spread of jobs over types whose busiest type has the least.
    """

    begin_s: float
    end_s: float
    all: float
    by_type: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        """Return the load as ``--json`` prints it."""
        return {"all": self.all, "by_type": self.by_type, "begin_h": self.begin_s / 3600, "end_h": self.end_s / 3600}


def offered_load(
    jobs: Iterable[Job], rates: Throughputs, capacity: Mapping[str, int], begin_s: float, end_s: float
) -> Load:
    """Return the load that jobs offer to a cluster in a window, (L1).

    A job that has its requested GPUs of a type from its submission on holds them for a part of the window: only that
    part counts, so work that cannot run in the window does not. Each kind of job (shape, requested GPUs) is spread over
    the types on which it runs, so that the busiest type has as little to do as possible; the GPU time that is held
    there, over the GPU time that there is, is the load.

    Parameters
    ----------
    jobs : iterable of Job
    rates : Throughputs
        Speeds of the jobs on their requested GPUs, in wall-clock time (:class:`.TrainingThroughputs`).
    capacity : mapping of GPU type to int
        GPUs of the cluster.
    begin_s, end_s : float
        The window.
    """
    kinds = [kind for kind, count in capacity.items() if count]
    empty = Load(begin_s, end_s, 0.0, dict.fromkeys(kinds, 0.0))
    if not kinds or end_s <= begin_s:
        return empty
    row_of: dict[tuple[Shape, int], int] = {}
    per_unit: list[list[float]] = []  # seconds of a unit of work on each type, infinite where such jobs cannot run
    gpus_of: list[int] = []
    at: list[int] = []
    facts: list[tuple[float, float]] = []
    for job in jobs:
        if job.submit_s < end_s:
            gpus = requested_gpus(job)
            key = job.shape, gpus
            row = row_of.get(key)
            if row is None:
                speeds = [rates.rate(job, kind, gpus) if gpus <= capacity[kind] else 0.0 for kind in kinds]
                row = row_of[key] = len(per_unit)
                per_unit.append([1.0 / speed if speed > 0 else np.inf for speed in speeds])
                gpus_of.append(gpus)
            at.append(row)
            facts.append((job.submit_s, rates.work(job)))
    if not facts:
        return empty
    submit_s, work = np.array(facts, dtype=np.float64).T
    unit_s, wanted, rows = np.array(per_unit, dtype=np.float64), np.array(gpus_of), np.array(at)
    runs = np.isfinite(unit_s)
    held = np.zeros(
        unit_s.shape
    )  # GPU seconds of the window that a kind of job holds on each type, if all of it runs there
    for k in range(len(kinds)):
        ends_s = submit_s + np.where(runs[:, k], unit_s[:, k], 0.0)[rows] * work
        inside_s = np.maximum(np.minimum(ends_s, end_s) - np.maximum(submit_s, begin_s), 0.0)
        held[:, k] = np.bincount(rows, wanted[rows] * inside_s, len(wanted))
    has = np.array([capacity[kind] * (end_s - begin_s) for kind in kinds], dtype=np.float64)
    return _spread(kinds, held / has, runs, empty)


def _spread(kinds: list[str], held: Floats, runs: NDArray[np.bool_], empty: Load) -> Load:
    """Spread kinds of job over the types so that the busiest has the least; `held` are shares of each type's time."""
    some = np.flatnonzero((held > 0.0).any(axis=1))
    if not len(some):
        return empty
    job, kind = np.nonzero(runs[some])
    n = len(job)
    by_kind = np.zeros((len(kinds), n + 1))
    by_kind[kind, np.arange(n)], by_kind[:, n] = held[some][job, kind], -1.0
    whole = np.zeros((len(some), n + 1))
    whole[job, np.arange(n)] = 1.0
    found = linprog(
        np.append(np.zeros(n), 1.0), A_ub=by_kind, b_ub=np.zeros(len(kinds)), A_eq=whole, b_eq=np.ones(len(some))
    )
    used = by_kind[:, :n] @ found.x[:n]
    return Load(empty.begin_s, empty.end_s, float(used.max()), dict(zip(kinds, used.tolist(), strict=True)))
