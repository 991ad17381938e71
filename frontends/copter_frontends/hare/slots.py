"""From a list schedule to who has which GPUs until the next plan (docs/papers/hare.md, HR30)."""

from __future__ import annotations

import numpy as np

from copter_frontends.hare.instance import Floats, Ints
from copter_frontends.hare.schedule import HareSchedule


def slot_owners(schedule: HareSchedule, begin_s: float, end_s: float) -> Ints:
    """The job that each GPU works for most of the time between two plans; -1 for a GPU without tasks, (GPUs,).

    A job has no more GPUs than a round has tasks: the fastest for it, of those that its tasks were put on.
    """
    instance = schedule.instance
    gpus, jobs = int(instance.gpus.sum()), instance.n_jobs
    overlap = np.minimum(schedule.end_s, end_s) - np.maximum(schedule.start_s, begin_s)
    inside = np.flatnonzero(overlap > 0.0)
    busy: Floats = np.zeros((gpus, jobs))
    np.add.at(busy, (schedule.gpu[inside], schedule.task_job[inside]), overlap[inside])
    owner = np.where(busy.any(axis=1), np.argmax(busy, axis=1), -1)
    kind = np.repeat(np.arange(len(instance.gpus)), instance.gpus)
    for job in range(jobs):
        mine = np.flatnonzero(owner == job)
        spare = len(mine) - int(instance.tasks[job])
        if spare > 0:
            slow_first = mine[np.argsort(-instance.train_s[job, kind[mine]], kind="stable")]
            owner[slow_first[:spare]] = -1
    return np.asarray(owner, dtype=np.int64)


def fill_idle(schedule: HareSchedule, owner: Ints, order: Ints) -> Ints:
    """GPUs that no task was put on, given in the order of the jobs to those with fewer GPUs than tasks, (GPUs,).

    A GPU on which a job would take longer than its whole round takes now is of no use to it.
    """
    instance, owner = schedule.instance, owner.copy()
    kind = np.repeat(np.arange(len(instance.gpus)), instance.gpus)
    idle = np.flatnonzero(owner < 0)
    for job in order.tolist():
        if not len(idle):
            break
        seconds = instance.train_s[job, kind[idle]]
        useful = idle[np.isfinite(seconds)]
        useful = useful[np.argsort(instance.train_s[job, kind[useful]], kind="stable")]
        take = useful[: max(int(instance.tasks[job]) - int((owner == job).sum()), 0)]
        owner[take] = job
        idle = np.setdiff1d(idle, take, assume_unique=True)
    return owner
