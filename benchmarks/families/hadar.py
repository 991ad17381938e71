"""A seeded sequence of Hadar LPs: gangs on seven GPU types, every job's values new in every round."""

from __future__ import annotations

from typing import Any

import numpy as np

from copter import Model
from copter.shims import IDLE
from families.job_rounds import JobRounds
from families.protocol import At, Floats, Ints

GPU_TYPES = 7
JOBS_PER_GPU = 0.2  # 2,000 jobs on 10,000 GPUs
SIZES, SIZE_SHARES = (1, 2, 4, 8, 16, 32), (0.35, 0.15, 0.2, 0.15, 0.1, 0.05)
SPEEDS = np.array([1.0, 3.0, 2.0, 6.0, 10.0, 4.0, 0.7])
ROUND_S, RESTART_S = 360.0, 10.0


class HadarRounds(JobRounds):
    """Hadar's per-round LP (docs/papers/hadar.md): a job of W GPUs runs on W of one type; a round of it is worth U / T.

    U is the effective throughput over the job's life, in units of its best rate, and T the rounds that it still needs
    on the type. Waiting jobs age and running ones get on, so that every cost is new in every round; a change of type
    costs the share of a round that a restart takes.

    Parameters
    ----------
    gpus : int
        Size of the cluster.
    mode : {"full", "capped"}
        A column for every (slowest type used, type) pair, 28 a job, as in the paper's form; or the 7 that can be in an
        optimum (docs/papers/hadar.md, H7).
    churn : float
        Share of jobs replaced every round.
    seed : int
    """

    def __init__(self, gpus: int, mode: str, churn: float, seed: int) -> None:
        super().__init__(churn, seed)
        self.full = mode == "full"
        self.columns = GPU_TYPES * (GPU_TYPES + 1) // 2 if self.full else GPU_TYPES
        self.capacity = np.full(GPU_TYPES, float(gpus // GPU_TYPES))
        self.capacity[: gpus - int(self.capacity.sum())] += 1.0
        self.model = Model(sense="max")
        for q, count in enumerate(self.capacity.tolist()):
            self.model.add_resources(q, count)
        self.gpus, self.age_s, self.work_s = np.zeros(0), np.zeros(0), np.zeros(0)
        self.left = np.zeros(0)  # share of the work that is left
        self.speed = np.zeros((0, GPU_TYPES))  # relative to the fastest type, 1
        self.kind = np.zeros(0, dtype=np.int64)  # the type that a job has, or IDLE
        self.waiting = self.draw(round(JOBS_PER_GPU * gpus))
        self.templates: dict[bytes, Any] = {}
        self.cost = np.zeros((0, self.columns))

    def draw(self, count: int) -> tuple[Floats, Floats, Floats]:
        """(GPUs, seconds on the fastest type, relative speeds) of new jobs."""
        speed = SPEEDS * self.rng.uniform(0.5, 1.5, (count, GPU_TYPES))
        gpus = self.rng.choice(SIZES, count, p=SIZE_SHARES).astype(np.float64)
        return gpus, 60.0 * 10.0 ** self.rng.uniform(1.0, 3.0, count), speed / speed.max(axis=1, keepdims=True)

    @property
    def nonzeros(self) -> int:
        """Nonzeros of the GPU types' rows."""
        return len(self.jobs) * self.columns

    def pairs(self) -> tuple[Ints, Ints]:
        """(slowest type used, type) of every column, each (n, k); types as the job ranks them."""
        if not self.full:
            kinds = np.broadcast_to(np.arange(GPU_TYPES), (len(self.jobs), GPU_TYPES))
            return kinds, kinds
        rank = np.argsort(-self.speed, axis=1, kind="stable")
        slowest, kind = np.tril_indices(GPU_TYPES)
        return rank[:, slowest], rank[:, kind]

    def worth(self) -> Floats:
        """Utility per round, by the slowest type used, (n, types)."""
        rounds = np.maximum(np.ceil(self.left[:, None] * self.work_s[:, None] / (self.speed * ROUND_S) - 1e-9), 1.0)
        return np.asarray(self.work_s[:, None] / ((self.age_s[:, None] + rounds * ROUND_S) * rounds))

    def costs(self, at: At) -> Floats:
        """Objective coefficients of the jobs at these places, (m, k)."""
        return self.cost[at]

    def pattern(self, at: At) -> tuple[Ints, Floats]:
        """(types, GPUs) of the columns, each (m, k, 1)."""
        kind = self.pairs()[1][at][..., None]
        return kind, np.broadcast_to(self.gpus[at][:, None, None], kind.shape)

    def edit(self) -> None:
        """Apply the round's changes to the model: departures, new values for all, arrivals."""
        gpus, work_s, speed = self.waiting
        fresh = len(gpus)
        keep = self.turn_over(fresh)
        old = int(keep.sum())
        self.gpus = np.concatenate((self.gpus[keep], gpus))
        self.work_s = np.concatenate((self.work_s[keep], work_s))
        self.speed = np.concatenate((self.speed[keep], speed))
        self.age_s = np.concatenate((self.age_s[keep] + ROUND_S, np.zeros(fresh)))
        self.left = np.concatenate((self.left[keep], np.ones(fresh)))
        self.kind = np.concatenate((self.kind[keep], np.full(fresh, IDLE)))
        slowest, kind = self.pairs()
        value = self.worth() * (1.0 - RESTART_S / ROUND_S)
        cost = np.take_along_axis(value, slowest, axis=1)
        same = (slowest == kind) & (kind == self.kind[:, None])
        cost[same] /= 1.0 - RESTART_S / ROUND_S
        self.cost = cost
        self.model.update_costs(self.jobs[:old].tolist(), cost[:old])
        for at in range(old, old + fresh):
            template = self.template(self.gpus[at], kind[at])
            self.model.add_request(int(self.jobs[at]), cost[at], template=template, integer=True)

    def template(self, gpus: float, kind: Ints) -> Any:
        """The usage pattern of jobs of this size whose columns are of these types."""
        key = kind.tobytes() + np.float64(gpus).tobytes()
        if key not in self.templates:
            usage = {q: np.where(kind == q, gpus, 0.0) for q in range(GPU_TYPES)}
            self.templates[key] = self.model.add_template(usage)
        return self.templates[key]

    def take(self, column: Ints) -> None:
        """Take the plan in: jobs with GPUs get on, and the next round knows what they have."""
        kind = self.pairs()[1]
        runs = np.flatnonzero(column != IDLE)
        self.kind = np.full(len(self.jobs), IDLE)
        self.kind[runs] = kind[runs, column[runs]]
        done = ROUND_S * self.speed[runs, self.kind[runs]] / self.work_s[runs]
        self.left[runs] = np.maximum(self.left[runs] - done, 0.05)  # jobs leave by churn alone
