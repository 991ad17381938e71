"""The relaxation's columns of each job in the engine's model, added when prices make them attractive (HR12)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter_frontends.policies.hare.formulation import Relaxation
from copter_frontends.policies.hare.instance import Floats, Ints
from copter_frontends.policies.hare.standing import Standing

Bools = NDArray[np.bool_]

# columns almost as good as the interval's best, within this share of the job's price, are added too (HR14)
NEAR = 0.005
HELD = 1e-9  # a column is in use if it holds at least this share of its upper limit
FEW = 4000  # programs of at most this many columns are solved with all columns
FASTEST = 3  # number of each job's fastest types that have columns at a start without prices


@dataclass(frozen=True, slots=True, eq=False)
class JobColumns:
    """The columns of one job, in a relaxation's units.

    Attributes
    ----------
    edge, kind : ndarray (k,)
        Right edge of each column's interval, in seconds, and its GPU type.
    row : ndarray (k,) of int
        Number of the job's parallelism row that each column is in.
    alpha, start : ndarray (k,)
        See :class:`.Relaxation`.
    parallel : ndarray (rows,)
    excess, weight : float
    """

    edge: Floats
    kind: Ints
    row: Ints
    alpha: Floats
    start: Floats
    parallel: Floats
    excess: float
    weight: float

    @classmethod
    def of_jobs(cls, data: Relaxation, used: Bools, edges: Floats) -> list[JobColumns]:
        """Return the columns of each job that `used` (N, L, G) marks; the arrays are views."""
        job, interval, kind = np.nonzero(used)
        live = used.any(axis=2)
        row = (np.cumsum(live, axis=1) - 1)[job, interval]
        edge, alpha, start = edges[interval], data.alpha[job, kind], data.start[job, interval]
        parallel, excess, weight = data.parallel[live], data.excess.tolist(), data.weight.tolist()
        column = np.searchsorted(job, np.arange(len(used) + 1)).tolist()
        rows = np.concatenate(([0], np.cumsum(live.sum(axis=1)))).tolist()
        found = []
        for n in range(len(used)):
            own = slice(column[n], column[n + 1])
            room = parallel[rows[n] : rows[n + 1]]
            found.append(cls(edge[own], kind[own], row[own], alpha[own], start[own], room, excess[n], weight[n]))
        return found


def whole(data: Relaxation, jobs: Ints) -> bool:
    """Return whether the program of these jobs is small enough to be solved with all columns."""
    return len(jobs) * data.capacity.size <= FEW


def first_columns(data: Relaxation, v: Floats) -> Bools:
    """Return columns to start with if there are no prices: those of a point, and neighbours on the fastest types."""
    near: Bools = np.asarray((v > 0).any(axis=2))
    near[:, 1:] |= near[:, :-1]
    near[:, :-1] |= near[:, 1:]
    fastest = np.zeros(data.alpha.shape, dtype=np.bool_)
    np.put_along_axis(fastest, np.argsort(-data.alpha, axis=1, kind="stable")[:, :FASTEST], True, axis=1)
    return np.asarray(((near[:, :, None] & fastest[:, None, :]) | (v > 0)) & data.usable)


def priced_columns(data: Relaxation, jobs: Ints, at: Standing, v: Floats) -> Bools:
    """Return the columns of some jobs that are attractive or nearly so, and those used by a point, (jobs, L, G).

    Parameters
    ----------
    data : Relaxation
        Program of all jobs.
    jobs : ndarray of int
    at : Standing
        State whose prices count, together with the jobs' own duals.
    v : ndarray (N, L, G)
    """
    part = data.of_jobs(jobs)
    lam, nu = at.lam[jobs], at.nu[jobs]
    worth = lam[:, None] - part.start * nu[:, None]
    margin = part.alpha[:, None, :] * worth[:, :, None] - at.price[None]
    best = np.maximum(margin.max(axis=2, keepdims=True), 0.0)
    near = NEAR * part.alpha * np.abs(lam)[:, None]
    held = v[jobs] > HELD * np.maximum(part.parallel, 1e-300)[:, :, None]
    return np.asarray(((margin >= best - near[:, None, :]) | held) & part.usable)
