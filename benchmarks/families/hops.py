"""A seeded sequence of Hops LPs over server groups: priority-weighted gains, every job's weight new in every round."""

from __future__ import annotations

import numpy as np

from copter import Model
from copter.shims import IDLE
from families.blocks import usage_of
from families.job_rounds import JobRounds
from families.protocol import At, Floats, Ints

GPU_TYPES, SPEED_BINS = 7, 3
GROUPS = GPU_TYPES * SPEED_BINS
JOBS_PER_GPU = 0.2  # 2,000 jobs in the window of 10,000 GPUs
SIZES = 8  # requirement set of a job: 1 to 16 GPUs
MOST_GPUS, NODE_GPUS = 16, 8
CUTS = (3, 5)  # docs/papers/hops.md, HP12
SPEEDS = np.repeat([1.0, 3.0, 2.0, 6.0, 10.0, 4.0, 0.7], SPEED_BINS) * np.tile([0.88, 1.0, 1.12], GPU_TYPES)
ROUND_S = 300.0


class HopsRounds(JobRounds):
    """Hops' per-round LP (papers/hops.md, HP11, HP12): a column each (group, size), spread where larger than a server.

    A job's weight is its wait over its age, to the power of one; running jobs wait no longer, so that every weight is
    new in every round.

    Parameters
    ----------
    gpus : int
        Size of the cluster.
    mode : {"full", "capped"}
        Eight sizes a job, or four.
    churn : float
        Share of jobs replaced every round.
    seed : int
    """

    def __init__(self, gpus: int, mode: str, churn: float, seed: int) -> None:
        super().__init__(churn, seed)
        self.sizes = SIZES if mode == "full" else SIZES // 2
        self.columns = GROUPS * self.sizes
        nodes = np.full(GROUPS, max(gpus // NODE_GPUS // GROUPS, 1))
        nodes[: max(gpus // NODE_GPUS - int(nodes.sum()), 0)] += 1
        self.capacity = np.concatenate([nodes * NODE_GPUS, *(nodes * (NODE_GPUS // r) for r in CUTS)]).astype(float)
        self.model = Model(sense="max")
        for row, count in enumerate(self.capacity.tolist()):
            self.model.add_resources(row, count)
        self.wait_s, self.age_s, self.runs = np.zeros(0), np.zeros(0), np.zeros(0, dtype=bool)
        self.gpus = np.zeros((0, self.sizes), dtype=np.int64)
        self.gain = np.zeros((0, self.columns))
        self.waiting = self.draw(round(JOBS_PER_GPU * gpus))
        self.cost = np.zeros((0, self.columns))

    def draw(self, count: int) -> tuple[Ints, Floats, Floats]:
        """(sizes, gains, ages in seconds) of new jobs; a column is group times sizes plus size."""
        rng = self.rng
        gpus = np.sort(np.stack([rng.permutation(MOST_GPUS)[: self.sizes] + 1 for _ in range(count)]), axis=1)
        ring, network = rng.uniform(0.0, 0.2, (count, 1)), rng.uniform(0.05, 1.0, (count, 1))
        slower = 1.0 + np.where(gpus > NODE_GPUS, network, ring * (gpus - 1) / gpus)
        by_type = np.repeat(rng.uniform(0.5, 1.5, (count, GPU_TYPES)), SPEED_BINS, axis=1) * SPEEDS
        rate = (by_type[:, :, None] * (gpus / slower)[:, None, :]).reshape(count, -1)
        return gpus, rate / rate.min(axis=1, keepdims=True), 60.0 * 10.0 ** rng.uniform(1.0, 3.0, count)

    @property
    def nonzeros(self) -> int:
        """Nonzeros of the resource rows."""
        return int(np.count_nonzero(self.pattern(np.arange(len(self.jobs)))[1])) if len(self.jobs) else 0

    def costs(self, at: At) -> Floats:
        """Objective coefficients of the jobs at these places, (m, k)."""
        return self.cost[at]

    def pattern(self, at: At) -> tuple[Ints, Floats]:
        """(rows, coefficients) of the columns, each (m, k, 3); a cut that does not hold a column has coefficient 0."""
        gpus = np.tile(self.gpus[at], (1, GROUPS)) if self.gpus[at].ndim == 2 else np.tile(self.gpus[at], GROUPS)
        group = np.broadcast_to(np.repeat(np.arange(GROUPS), self.sizes), gpus.shape)
        rows = np.stack([group, *(group + GROUPS * (1 + i) for i in range(len(CUTS)))], axis=-1)
        packed = gpus <= NODE_GPUS
        cuts = [np.where(packed & (gpus >= r), 1.0, 0.0) for r in CUTS]
        return rows, np.stack([gpus.astype(float), *cuts], axis=-1)

    def edit(self) -> None:
        """Apply the round's changes to the model: departures, new weights for all, arrivals."""
        gpus, gain, age_s = self.waiting
        fresh = len(gpus)
        keep = self.turn_over(fresh)
        old = int(keep.sum())
        waited = self.wait_s[keep] + np.where(self.runs[keep], 0.0, ROUND_S)
        self.wait_s = np.concatenate((waited, self.rng.uniform(0.0, 3600.0, fresh)))
        self.age_s = np.concatenate((self.age_s[keep], age_s))
        self.runs = np.concatenate((self.runs[keep], np.zeros(fresh, dtype=bool)))
        self.gpus = np.concatenate((self.gpus[keep], gpus))
        self.gain = np.concatenate((self.gain[keep], gain))
        weight = self.wait_s / self.age_s + 0.01
        weight /= weight.max()
        self.cost = weight[:, None] * self.gain
        if fresh:
            new = np.arange(old, old + fresh)
            self.model.add_own_requests(
                self.jobs[new].tolist(),
                np.full(fresh, self.columns),
                self.gain[new].ravel(),
                usage_of(*self.pattern(new), len(self.capacity)),
                resources=range(len(self.capacity)),
                integer=True,
            )
        self.model.rescale_costs(self.jobs.tolist(), weight)

    def take(self, column: Ints) -> None:
        """Take the plan in: jobs with GPUs wait no longer."""
        self.runs = np.asarray(column != IDLE)
