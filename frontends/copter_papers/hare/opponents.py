"""The paper's four opponents (section 7.1) on Hare's instances (docs/papers/hare.md)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import linear_sum_assignment

from copter_frontends.policies.hare.instance import Floats, HareInstance, Ints
from copter_frontends.policies.hare.schedule import gpu_type_of
from copter_papers.hare.job_level import Choice, Choose, JobLevelSchedule, run_jobs

DEEPEST = 3  # places per queue in AlloX's matching, relative to the mean length of a queue


def fifo_rule(instance: HareInstance, one_type: bool = False) -> Choose:
    """Gavel_FIFO: strict order of arrival, each job on the fastest idle GPUs; the first job waits for enough GPUs."""
    kind = gpu_type_of(instance)

    def choose(waiting: list[int], busy_s: Floats) -> Choice | None:
        return _fastest(instance, waiting[0], _idle(busy_s), kind, one_type)

    return choose


def srtf_rule(instance: HareInstance, one_type: bool = False, backfill: bool = True) -> Choose:
    """SRTF: start the job that ends first among those that fit on idle GPUs, on the fastest GPUs.

    Without `backfill`, the other jobs wait while the first in this order does not fit.
    """
    kind = gpu_type_of(instance)
    alone = instance.rounds * instance.least_round_s()

    def choose(waiting: list[int], busy_s: Floats) -> Choice | None:
        idle = _idle(busy_s)
        order = sorted(waiting, key=lambda n: (alone[n], n))
        for job in order if backfill else order[:1]:
            result = _fastest(instance, job, idle, kind, one_type)
            if result is not None:
                return result
        return None

    return choose


def homo_rule(instance: HareInstance, one_type: bool = False, backfill: bool = True) -> Choose:
    """Sched_Homo: order by weight divided by work at the GPUs' mean speed, on any idle GPUs, ignoring types.

    Without `backfill`, the other jobs wait while the first in this order does not fit.
    """
    usable = np.isfinite(instance.train_s)
    share = usable * instance.gpus
    mean = (np.where(usable, instance.train_s, 0.0) * share).sum(axis=1) / share.sum(axis=1)
    density = instance.rounds * instance.tasks * mean / instance.weight
    kind = gpu_type_of(instance)

    def choose(waiting: list[int], busy_s: Floats) -> Choice | None:
        idle = _idle(busy_s)
        order = sorted(waiting, key=lambda n: (density[n], n))
        for job in order if backfill else order[:1]:
            fits = idle[usable[job, kind[idle]]]
            count = min(int(instance.tasks[job]), int(share[job].sum()))
            if one_type:
                fits = _with_room(fits, kind, count)
                fits = fits[kind[fits] == kind[fits[_blind(job, len(fits), 1)]]] if len(fits) else fits
            if len(fits) >= count:
                return job, fits[_blind(job, len(fits), count)]
        return None

    return choose


def allox_rule(instance: HareInstance, one_type: bool = False) -> Choose:
    """Sched_Allox: a min-cost matching of jobs to places in the GPUs' queues, whenever jobs have arrived.

    Every job runs on one GPU. With `one_type` it runs on as many GPUs as it has tasks: a queue then stands for as many
    GPUs of a type as waiting jobs have tasks on average, and each job in turn starts if its type has room.
    """
    kind = gpu_type_of(instance)
    side_by_side = 1 if one_type else instance.tasks[:, None]
    seconds = (instance.rounds[:, None] * (side_by_side * instance.train_s + instance.sync_s))[:, kind]
    turns: list[tuple[int, int]] = []
    known: set[int] = set()

    def choose(waiting: list[int], busy_s: Floats) -> Choice | None:
        if not known.issuperset(waiting):
            known.update(waiting)
            width = -(-int(instance.tasks[waiting].sum()) // len(waiting)) if one_type else 1
            heads = _every(width, kind, busy_s)
            turns[:] = [(job, int(heads[at])) for job, at in _match(seconds[:, heads], waiting, busy_s[heads])]
        idle = _idle(busy_s)
        for turn, (job, gpu) in enumerate(turns):
            if not one_type and busy_s[gpu] <= 0:
                del turns[turn]
                return job, np.array([gpu])
            room = idle[kind[idle] == kind[gpu]] if one_type else idle[:0]
            if len(room) >= instance.tasks[job]:
                del turns[turn]
                return job, room[: instance.tasks[job]]
        return None

    return choose


RULES: dict[str, Callable[[HareInstance, bool], Choose]] = {
    "gavel_fifo": fifo_rule,
    "srtf": srtf_rule,
    "sched_homo": homo_rule,
    "sched_allox": allox_rule,
}
"""Makers of rules by name: they take the instance, and whether a job needs a GPU of one type for each task."""


def gavel_fifo(instance: HareInstance) -> JobLevelSchedule:
    """Schedule jobs in the order of their arrival (:func:`fifo_rule`)."""
    return run_jobs(instance, fifo_rule(instance))


def srtf(instance: HareInstance) -> JobLevelSchedule:
    """Start whichever job ends first among those that fit (:func:`srtf_rule`)."""
    return run_jobs(instance, srtf_rule(instance))


def sched_homo(instance: HareInstance) -> JobLevelSchedule:
    """Schedule jobs by weight over work at the mean speed, blind to GPU types (:func:`homo_rule`)."""
    return run_jobs(instance, homo_rule(instance))


def sched_allox(instance: HareInstance) -> JobLevelSchedule:
    """Schedule jobs by AlloX's matching (:func:`allox_rule`)."""
    return run_jobs(instance, allox_rule(instance))


def _idle(busy_s: Floats) -> Ints:
    """Return the numbers of the idle GPUs."""
    return np.flatnonzero(busy_s <= 0)


def _with_room(idle: Ints, kind: Ints, count: int) -> Ints:
    """Return idle GPUs of types with at least `count` idle GPUs."""
    return idle[np.bincount(kind[idle], minlength=1)[kind[idle]] >= count]


def _fastest(instance: HareInstance, job: int, idle: Ints, kind: Ints, one_type: bool) -> Choice | None:
    """Return the fastest idle GPUs, one per task or as many as can run the job; None if too few are idle."""
    usable = np.isfinite(instance.train_s[job])
    count = min(int(instance.tasks[job]), int(instance.gpus[usable].sum()))
    if one_type:
        idle = _with_room(idle, kind, count)
    speed = instance.train_s[job, kind[idle]] + instance.sync_s[job, kind[idle]]
    if int(np.isfinite(speed).sum()) < count:
        return None
    return job, idle[np.argsort(speed, kind="stable")[:count]]


def _blind(job: int, among: int, count: int) -> Ints:
    """Return a random choice of `count` GPUs, independent of types; a job's choice is always the same."""
    return np.sort(np.random.default_rng(job).permutation(among)[:count])


def _every(width: int, kind: Ints, busy_s: Floats) -> Ints:
    """Return every `width`-th GPU of each type by time of becoming idle, when `width` GPUs are idle; else the last."""
    result = []
    for each in range(int(kind[-1]) + 1):
        here = np.flatnonzero(kind == each)
        here = here[np.argsort(busy_s[here], kind="stable")]
        result.append(here[min(width, len(here)) - 1 :: width] if len(here) else here)
    return np.sort(np.concatenate(result))


def _match(seconds: Floats, waiting: list[int], busy_s: Floats) -> list[tuple[int, int]]:
    """Return AlloX's matching as pairs (job, queue) in order of start; place k from the end costs busy + k seconds."""
    queues = seconds.shape[1]
    depth = min(len(waiting), DEEPEST * -(-len(waiting) // queues) + 1)
    places = np.arange(1, depth + 1)
    cost = busy_s[None, :, None] + seconds[waiting][:, :, None] * places[None, None, :]
    cost = np.where(np.isfinite(cost), cost, 1e18).reshape(len(waiting), queues * depth)
    rows, columns = linear_sum_assignment(cost)
    by_queue: dict[int, list[tuple[int, int]]] = {}
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        by_queue.setdefault(column // depth, []).append((-(column % depth), waiting[row]))
    turns = [(turn, queue, job) for queue, jobs in by_queue.items() for turn, (_, job) in enumerate(sorted(jobs))]
    return [(job, queue) for _, queue, job in sorted(turns)]


OPPONENTS: dict[str, Callable[[HareInstance], JobLevelSchedule]] = {
    "gavel_fifo": gavel_fifo,
    "srtf": srtf,
    "sched_homo": sched_homo,
    "sched_allox": sched_allox,
}
"""Schedulers of the opponents by name."""
