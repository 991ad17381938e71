"""The paper's four opponents (its section 7.1), on Hare's instances (docs/hare.md)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import linear_sum_assignment

from copter_frontends.hare.instance import Floats, HareInstance, Ints
from copter_frontends.hare.job_level import Choice, JobLevelSchedule, run_jobs
from copter_frontends.hare.schedule import gpu_type_of

DEEPEST = 3  # times the mean length of a queue that a matching looks ahead


def gavel_fifo(instance: HareInstance) -> JobLevelSchedule:
    """Gavel_FIFO: strictly in order of arrival, each job on the fastest idle GPUs; it waits until there are enough."""
    kind = gpu_type_of(instance)

    def choose(waiting: list[int], idle: Ints) -> Choice | None:
        return _fastest(instance, waiting[0], idle, kind)

    return run_jobs(instance, choose)


def srtf(instance: HareInstance) -> JobLevelSchedule:
    """SRTF: of the jobs that fit on idle GPUs, the one that would end first, on the fastest of them."""
    kind = gpu_type_of(instance)
    alone = instance.rounds * instance.least_round_s()

    def choose(waiting: list[int], idle: Ints) -> Choice | None:
        for job in sorted(waiting, key=lambda n: (alone[n], n)):
            found = _fastest(instance, job, idle, kind)
            if found is not None:
                return found
        return None

    return run_jobs(instance, choose)


def sched_homo(instance: HareInstance) -> JobLevelSchedule:
    """Sched_Homo: by weight over work at the mean speed of all GPUs, on any idle GPUs; blind to their types."""
    usable = np.isfinite(instance.train_s)
    share = usable * instance.gpus
    mean = (np.where(usable, instance.train_s, 0.0) * share).sum(axis=1) / share.sum(axis=1)
    density = instance.rounds * instance.tasks * mean / instance.weight
    kind = gpu_type_of(instance)

    def choose(waiting: list[int], idle: Ints) -> Choice | None:
        for job in sorted(waiting, key=lambda n: (density[n], n)):
            fits = idle[usable[job, kind[idle]]]
            count = min(int(instance.tasks[job]), int(share[job].sum()))
            if len(fits) >= count:
                return job, fits[_blind(job, len(fits), count)]
        return None

    return run_jobs(instance, choose)


def sched_allox(instance: HareInstance) -> JobLevelSchedule:
    """Sched_Allox: every job on one GPU; a min-cost matching of jobs to places in the GPUs' queues at every arrival."""
    kind = gpu_type_of(instance)
    alone = instance.rounds[:, None] * (instance.tasks[:, None] * instance.train_s + instance.sync_s)
    seconds = alone[:, kind]
    busy_until = np.zeros(len(kind))
    queues: dict[int, list[int]] = {}
    known: set[int] = set()
    clock = [0.0]

    def choose(waiting: list[int], idle: Ints) -> Choice | None:
        fresh = [n for n in waiting if n not in known]
        if fresh:
            known.update(fresh)
            clock[0] = max(clock[0], float(instance.arrival_s[fresh].max()))
            busy_until[idle] = np.minimum(busy_until[idle], clock[0])
            queues.clear()
            queues.update(_match(seconds, waiting, np.maximum(busy_until - clock[0], 0.0)))
        for gpu in idle.tolist():
            if queues.get(gpu):
                job = queues[gpu].pop(0)
                busy_until[gpu] = max(busy_until[gpu], clock[0]) + seconds[job, gpu]
                return job, np.array([gpu])
        return None

    return run_jobs(instance, choose)


def _fastest(instance: HareInstance, job: int, idle: Ints, kind: Ints) -> Choice | None:
    """The fastest idle GPUs, as many as the job has tasks (or as can ever run it); None if there are fewer."""
    speed = instance.train_s[job, kind[idle]] + instance.sync_s[job, kind[idle]]
    usable = np.isfinite(instance.train_s[job])
    count = min(int(instance.tasks[job]), int(instance.gpus[usable].sum()))
    if int(np.isfinite(speed).sum()) < count:
        return None
    return job, idle[np.argsort(speed, kind="stable")[:count]]


def _blind(job: int, among: int, count: int) -> Ints:
    """Places of `count` GPUs of so many, chosen without a look at them: a draw that depends on the job alone."""
    return np.sort(np.random.default_rng(job).permutation(among)[:count])


def _match(seconds: Floats, waiting: list[int], busy_s: Floats) -> dict[int, list[int]]:
    """Jobs in turn for each GPU: AlloX's matching of jobs to k-th places from the end, cost busy + k times seconds."""
    gpus = seconds.shape[1]
    depth = min(len(waiting), DEEPEST * -(-len(waiting) // gpus) + 1)
    places = np.arange(1, depth + 1)
    cost = busy_s[None, :, None] + seconds[waiting][:, :, None] * places[None, None, :]
    cost = np.where(np.isfinite(cost), cost, 1e18).reshape(len(waiting), gpus * depth)
    rows, columns = linear_sum_assignment(cost)
    queues: dict[int, list[tuple[int, int]]] = {}
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        queues.setdefault(column // depth, []).append((-(column % depth), waiting[row]))
    return {gpu: [job for _, job in sorted(queue)] for gpu, queue in queues.items()}


OPPONENTS: dict[str, Callable[[HareInstance], JobLevelSchedule]] = {
    "gavel_fifo": gavel_fifo,
    "srtf": srtf,
    "sched_homo": sched_homo,
    "sched_allox": sched_allox,
}
"""By name."""
