"""Conversion of a list schedule to GPU ownership until the next plan (docs/papers/hare.md, HR27)."""

from __future__ import annotations

import numpy as np

from copter_frontends.hare.instance import Floats, HareInstance, Ints, least_round_s
from copter_frontends.hare.round_kernel import kept_or_wanted
from copter_frontends.hare.schedule import HareSchedule


def slot_owners(schedule: HareSchedule, begin_s: float, end_s: float) -> Ints:
    """Return, per GPU, the job it works for most of the time between two plans; -1 without tasks, (GPUs,).

    A job has no more GPUs than a round has tasks: the fastest for it, of those that its tasks were put on.
    """
    instance = schedule.instance
    jobs = instance.n_jobs
    overlap = np.minimum(schedule.end_s, end_s) - np.maximum(schedule.start_s, begin_s)
    inside = np.flatnonzero(overlap > 0.0)
    pair, at = np.unique(schedule.gpu[inside] * jobs + schedule.task_job[inside], return_inverse=True)
    busy = np.bincount(at, weights=overlap[inside], minlength=len(pair)).astype(np.float64)
    order = np.lexsort((-pair, busy))  # the last of a GPU is its busiest job, the first of equals by number
    owner = np.full(int(instance.gpus.sum()), -1, dtype=np.int64)
    owner[pair[order] // jobs] = pair[order] % jobs
    kind = np.repeat(np.arange(len(instance.gpus)), instance.gpus)
    count = np.bincount(owner[owner >= 0], minlength=jobs)
    for job in np.flatnonzero(count > instance.tasks).tolist():
        mine = np.flatnonzero(owner == job)
        slow_first = mine[np.argsort(-instance.train_s[job, kind[mine]], kind="stable")]
        owner[slow_first[: count[job] - int(instance.tasks[job])]] = -1
    return owner


def fill_idle(schedule: HareSchedule, owner: Ints, order: Ints) -> Ints:
    """Give GPUs without tasks to jobs with fewer GPUs than tasks, in order, (GPUs,).

    They go to the types on which the job's tasks are quickest.
    """
    instance, owner = schedule.instance, owner.copy()
    kind = np.repeat(np.arange(len(instance.gpus)), instance.gpus)
    idle = [np.flatnonzero((owner < 0) & (kind == g)).tolist()[::-1] for g in range(len(instance.gpus))]
    lacking = instance.tasks - np.bincount(owner[owner >= 0], minlength=instance.n_jobs)
    for job in order.tolist():
        want = int(lacking[job])
        if want <= 0:
            continue
        if not any(idle):
            break
        for g in np.argsort(instance.train_s[job], kind="stable").tolist():
            while want > 0 and idle[g] and np.isfinite(instance.train_s[job, g]):
                owner[idle[g].pop()] = job
                want -= 1
    return owner


def counts_of(instance: HareInstance, owner: Ints) -> Ints:
    """GPUs of each type that each job has, (jobs, types)."""
    types = len(instance.gpus)
    kind = np.repeat(np.arange(types), instance.gpus)
    own = owner >= 0
    return np.bincount(owner[own] * types + kind[own], minlength=instance.n_jobs * types).reshape(-1, types)


def steady_counts(
    instance: HareInstance, wanted: Ints, held: Ints, order: Ints, restart_s: Floats, slot_s: float
) -> Ints:
    """Give each job GPUs: those it holds, or those it wants if their speed repays the restart within the slot (HR29).

    Parameters
    ----------
    instance : HareInstance
    wanted, held : int64 array (jobs, types)
        What the tasks ask for, and what the jobs have now.
    order : int64 array (jobs,)
        Jobs by rank: each takes of the GPUs that are left. Jobs that got none then take what is left over, of the types
        on which their tasks are quickest.
    restart_s : float64 array (jobs,)
        Seconds that a change of GPUs costs each job.
    slot_s : float
        Seconds to the next plan.

    Returns
    -------
    int64 array (jobs, types)
    """
    faster = (_rate(instance, wanted) - _rate(instance, held)) * slot_s
    stays = held.any(axis=1) & (faster <= _rate(instance, wanted) * np.minimum(restart_s, slot_s))
    left, result = instance.gpus.copy(), np.zeros_like(wanted)
    kept_or_wanted(order, stays.astype(np.int64), held, wanted, instance.tasks, instance.train_s, left, result)
    return result


def _rate(instance: HareInstance, counts: Ints) -> Floats:
    """Rounds per second of each job with these GPUs, (jobs,)."""
    usable = (counts > 0) & np.isfinite(instance.train_s)
    some = np.flatnonzero(usable.any(axis=1))
    rate: Floats = np.zeros(instance.n_jobs)
    train = np.where(usable, instance.train_s, np.inf)[some]
    rate[some] = 1.0 / least_round_s(train, instance.sync_s[some], instance.tasks[some], counts[some])
    return rate
