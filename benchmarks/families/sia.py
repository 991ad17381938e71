"""A seeded sequence of Sia LPs: jobs come and go, and every running job's values move every round."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from copter import Model
from copter.shims import IDLE
from families.protocol import At, Floats, Ints, chosen
from families.uniform import UniformFamily

GPU_TYPES = 7
GPUS_PER_NODE = 8
JOBS_PER_GPU = 0.14  # 1,400 jobs on 10,000 GPUs
CAPPED_GPUS = 64
INCENTIVE = 1.1
RESTART_S = 60.0
ROUND_S = 60.0


class SiaRounds(UniformFamily):
    """Sia's LP over all configurations of a cluster of seven types, with goodput of each job's own.

    v = 1.1 - (rho G)^(-1/2); G is concave in the GPUs and saturates at a size of the job's own, so that every column
    has a positive value. rho is the restart factor: it moves with age, so all costs of all running jobs drift in every
    round, but for the configuration that a job has.

    Parameters
    ----------
    gpus : int
        Size of the cluster.
    mode : {"full", "capped"}
    churn : float
        Share of jobs replaced every round.
    seed : int

    Attributes
    ----------
    jobs : ndarray (n,)
        Ids of the jobs, in the order they were added.
    doomed : ndarray
        Places of the jobs that the next round takes out.
    waiting : list of ndarray
        G^(-1/2) of the jobs that it puts in.
    """

    changes: ClassVar[tuple[str, ...]] = ("churn",)
    integer = True

    def __init__(self, gpus: int, mode: str, churn: float, seed: int) -> None:
        self.rng, self.churn = np.random.default_rng(seed), churn
        self.jobs = np.zeros(0, dtype=np.int64)
        self.next_job = 0
        self.doomed = np.zeros(0, dtype=np.int64)
        self.departed, self.arrived = self.doomed, self.doomed
        nodes = np.full(GPU_TYPES, gpus // GPUS_PER_NODE // GPU_TYPES)
        nodes[: gpus // GPUS_PER_NODE - nodes.sum()] += 1
        sizes = [self.sizes(int(n), mode) for n in nodes]
        self.gpus: Floats = np.concatenate(sizes)
        self.kind = np.repeat(np.arange(GPU_TYPES), [len(s) for s in sizes])
        self.model = Model(sense="max")
        for k, count in enumerate(nodes):
            self.model.add_resource(k, int(count) * GPUS_PER_NODE)
        self.template = self.model.add_template({k: np.where(self.kind == k, self.gpus, 0.0) for k in range(GPU_TYPES)})
        self.log_gpus = np.log(self.gpus)
        self.age_s, self.restarts = np.zeros(0), np.zeros(0)
        self.column, self.own_base = np.zeros(0, dtype=np.int32), np.zeros(0)
        self.base: dict[int, Floats] = {}
        self.waiting = self.draw(round(JOBS_PER_GPU * gpus))
        self.scale = np.zeros(0)
        self.columns = len(self.gpus)
        self.capacity = nodes * float(GPUS_PER_NODE)

    @staticmethod
    def sizes(nodes: int, mode: str) -> Floats:
        """Configurations of a type: powers of two within a node, then whole nodes."""
        found = np.concatenate((2.0 ** np.arange(3), GPUS_PER_NODE * np.arange(1.0, nodes + 1)))
        return found[found <= CAPPED_GPUS] if mode == "capped" else found

    def draw(self, count: int) -> list[Floats]:
        """G^(-1/2) of new jobs."""
        return [self.new_base() for _ in range(count)]

    def new_base(self) -> Floats:
        """G^(-1/2) of one job, (n,)."""
        rng = self.rng
        speed = np.log(rng.uniform(1.0, 10.0, GPU_TYPES))[self.kind]
        log_goodput = speed + rng.uniform(0.6, 0.95) * self.log_gpus - np.log1p(self.gpus / 2.0 ** rng.uniform(2, 9))
        return np.asarray(np.exp(-0.5 * (log_goodput - log_goodput.min())))

    @property
    def requests(self) -> Ints:
        """Ids of the jobs."""
        return self.jobs

    @property
    def limits(self) -> Floats:
        """One configuration, or one share of a round, a job."""
        return np.ones(len(self.jobs))

    def prepare(self) -> None:
        """Draw the next round's arrivals and departures (not timed: it is the cluster's doing, not the solver's)."""
        self.doomed = chosen(len(self.jobs), self.rng, self.churn)
        self.waiting = self.draw(len(self.doomed))

    def turn_over(self, fresh: int) -> NDArray[np.bool_]:
        """Take the doomed jobs out of the model, give `fresh` new ones ids; which of the old ones stay, (n,) bool."""
        self.departed = self.jobs[self.doomed]
        self.model.remove_requests(self.departed.tolist())
        keep = np.ones(len(self.jobs), dtype=bool)
        keep[self.doomed] = False
        self.arrived = np.arange(self.next_job, self.next_job + fresh)
        self.next_job += fresh
        self.jobs = np.concatenate((self.jobs[keep], self.arrived))
        return keep

    @property
    def nonzeros(self) -> int:
        """Nonzeros of the GPU types' rows."""
        return len(self.jobs) * self.columns

    def costs(self, at: At) -> Floats:
        """Values of the jobs at these places, (m, k), from the bases and restart factors alone."""
        value = np.array([self.base[job] for job in self.jobs[at].tolist()]).reshape(-1, self.columns)
        value *= -self.scale[at][:, None]
        value += INCENTIVE
        running = np.flatnonzero(self.column[at] != IDLE)
        value[running, self.column[at][running]] = INCENTIVE - self.own_base[at][running]
        return value

    def pattern(self, at: At) -> tuple[Ints, Floats]:
        """(types, GPUs) of the configurations, (1, k, 1): the same for all jobs."""
        return self.kind[None, :, None], self.gpus[None, :, None]

    def edit(self) -> None:
        """Apply the round's edits to the model."""
        fresh = len(self.waiting)
        keep = self.turn_over(fresh)
        arrived = self.arrived.tolist()
        self.model.add_requests(
            arrived, self.waiting, template=self.template, integer=True, scale=-1.0, offset=INCENTIVE
        )
        self.base.update(zip(arrived, self.waiting, strict=True))
        self.age_s = np.concatenate((self.age_s[keep] + ROUND_S, np.zeros(fresh)))
        self.restarts = np.concatenate((self.restarts[keep], np.zeros(fresh)))
        self.column = np.concatenate((self.column[keep], np.full(fresh, IDLE, dtype=np.int32)))
        self.own_base = np.concatenate((self.own_base[keep], np.zeros(fresh)))
        factor = np.maximum(self.age_s - self.restarts * RESTART_S, 0.2 * self.age_s) / (self.age_s + RESTART_S)
        running = self.column != IDLE
        scale = np.where(running & (factor > 0), np.maximum(factor, 0.2) ** -0.5, 1.0)
        self.scale = scale
        self.model.rescale_costs(
            self.jobs.tolist(), -scale, INCENTIVE, self.column, np.where(running, INCENTIVE - self.own_base, 0.0)
        )

    def take(self, column: Ints) -> None:
        """Take the plan in: running jobs that changed configuration have restarted."""
        column = column.astype(np.int32)
        self.restarts += (self.column != IDLE) & (column != self.column)
        self.column = column
        for at in np.flatnonzero(column != IDLE):
            self.own_base[at] = self.base[int(self.jobs[at])][column[at]]
        alive = set(self.jobs.tolist())
        for job in [job for job in self.base if job not in alive]:
            del self.base[job]
