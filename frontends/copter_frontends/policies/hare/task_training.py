"""Training of any application by tasks, on mixed types or with turns on few GPUs (docs/papers/hare.md, HR24, HR28)."""

from __future__ import annotations

import math

import numpy as np

from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.hare.instance import least_round_s
from copter_frontends.policies.hare.task_times import GoodputTaskTimes, JobTimes
from copter_frontends.policy_kit import requested_gpus
from copter_frontends.simulator.errors import SimulationError
from copter_frontends.simulator.rates import RateTable
from copter_frontends.vocabulary import Allocation, Cluster, Configuration, Job, Shape


class TaskRateTable(RateTable):
    """Table of rates: the simulator's for jobs with their requested GPUs of one type, task rates for other GPUs.

    On other GPUs, a job's rate is its rate on the fastest of their types, multiplied by the ratio of the times of a
    round there and on these GPUs.
    """

    def __init__(self, model: GoodputModel, applications: list[str], times: GoodputTaskTimes, cluster: Cluster) -> None:
        super().__init__(model, applications)
        self._times = times
        self._per_node = {name: kind.gpus_per_node for name, kind in cluster.types.items()}
        self._by_tasks: dict[tuple[Shape, int, tuple[tuple[str, int], ...]], int] = {}
        self._factor: dict[int, float] = {}

    def curve(self, job: Job, allocation: Allocation) -> int:
        """Return the number of the curve; raises SimulationError if none of the GPUs can run the job."""
        tasks, mixture = requested_gpus(job), allocation.mixture
        if len(mixture) < 2 and allocation.gpus == tasks:
            return super().curve(job, allocation)
        key = job.shape, tasks, tuple(sorted(mixture)) or ((allocation.gpu_type, allocation.gpus),)
        if key not in self._by_tasks:
            times, gpus = self._times.of(job), allocation.by_type
            kinds = [kind for kind in gpus if kind in times.train_s]
            if not kinds:
                raise SimulationError(f"application {job.application!r} cannot run on {gpus}, where job {job.id!r} is")
            base = min(kinds, key=lambda kind: times.train_s[kind] + times.sync_s[kind])
            number = self._by_tasks[key] = len(self._keys)
            self._keys.append((job, Configuration(math.ceil(tasks / self._per_node[base]), tasks, base)))
            if number == len(self._rates):
                self._rates = np.vstack([self._rates, np.full_like(self._rates, np.nan)])
            whole_s = times.train_s[base] + times.sync_s[base]
            self._factor[number] = whole_s / round_on_s(times, tasks, {kind: gpus[kind] for kind in kinds})
        return self._by_tasks[key]

    def _fill(self, curve: int, phase: int) -> float:
        known = not np.isnan(self._rates[curve, phase])
        rate = super()._fill(curve, phase)
        if not known and curve in self._factor:
            rate *= self._factor[curve]
            self._rates[curve, phase] = rate
        return rate


class TasksGoodput(GoodputModel):
    """A goodput model with which the simulator trains jobs by tasks.

    Parameters
    ----------
    model : GoodputModel
    cluster : Cluster
    """

    def __init__(self, model: GoodputModel, cluster: Cluster) -> None:
        super().__init__(model.configurations, model.applications)
        self.plain, self.cluster = model, cluster

    def over(self, configurations: object) -> GoodputModel:
        """Return the model without tasks for other configurations."""
        return self.plain.over(configurations)  # type: ignore[arg-type]

    def rate_table(self, applications: list[str]) -> TaskRateTable:
        """Return the table from which the simulator reads rates."""
        return TaskRateTable(self.plain, applications, GoodputTaskTimes(self.cluster, self.plain), self.cluster)


def round_on_s(times: JobTimes, tasks: int, gpus: dict[str, int]) -> float:
    """Return the seconds of a round on these GPUs, all of types that can run it (HR24)."""
    train = np.array([[times.train_s[kind] for kind in gpus]])
    sync = np.array([[times.sync_s[kind] for kind in gpus]])
    return float(least_round_s(train, sync, np.array([tasks]), np.array(list(gpus.values()), dtype=np.int64))[0])
