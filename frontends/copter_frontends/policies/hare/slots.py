"""Conversion of a list schedule to GPU ownership until the next plan (docs/papers/hare.md, HR27)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from copter_frontends.policies.hare.instance import Floats, HareInstance, Ints, least_round_s
from copter_frontends.policies.hare.round_kernel import kept_or_wanted
from copter_frontends.policies.hare.schedule import HareSchedule

PROFILED = 0.25  # share of a type's GPUs for jobs that were never measured


def slot_owners(schedule: HareSchedule, begin_s: float, end_s: float) -> Ints:
    """Return for each GPU the job with most time on it between two plans, -1 without tasks, (GPUs,).

    Jobs that end between the plans come before all others: otherwise the rest of a job, shorter than half of the time
    between plans, would wait for other jobs again and again. A job gets at most as many GPUs as a round has tasks: the
    fastest of the GPUs with its tasks.
    """
    instance = schedule.instance
    jobs = instance.n_jobs
    overlap = np.minimum(schedule.end_s, end_s) - np.maximum(schedule.start_s, begin_s)
    inside = np.flatnonzero(overlap > 0.0)
    pair, at = np.unique(schedule.gpu[inside] * jobs + schedule.task_job[inside], return_inverse=True)
    busy = np.bincount(at, weights=overlap[inside], minlength=len(pair)).astype(np.float64)
    busy[schedule.completion_s[pair % jobs] <= end_s] += end_s - begin_s
    # the last entry of a GPU is its busiest job, among equals the one of least number
    order = np.lexsort((-pair, busy))
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
    """Return `owner` with idle GPUs given, in order, to jobs with fewer GPUs than tasks, (GPUs,).

    A job gets GPUs of its fastest types first.
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
    """Return the number of each job's GPUs by type, (jobs, types)."""
    types = len(instance.gpus)
    kind = np.repeat(np.arange(types), instance.gpus)
    own = owner >= 0
    return np.bincount(owner[own] * types + kind[own], minlength=instance.n_jobs * types).reshape(-1, types)


def steady_counts(
    instance: HareInstance, wanted: Ints, held: Ints, order: Ints, restart_s: Floats, slot_s: float
) -> Ints:
    """Return each job's numbers of GPUs: the wanted ones if their speed repays the restart within the slot, else the
    held ones (HR29).

    Parameters
    ----------
    instance : HareInstance
    wanted, held : int64 array (jobs, types)
        GPUs that follow from the planned tasks, and GPUs that the jobs have now.
    order : int64 array (jobs,)
        Jobs by rank; each gets GPUs as far as available. Jobs without GPUs then get remaining ones, of their fastest
        types first.
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


def with_profiles(instance: HareInstance, counts: Ints, new: Sequence[int], held: Ints, order: Ints) -> Ints:
    """Return the numbers of GPUs if jobs that were never measured first get a GPU per task, all of one type.

    Such jobs have at most :data:`PROFILED` of a type, or a single job has more; the last jobs in the order lose theirs.

    Parameters
    ----------
    instance : HareInstance
    counts, held : int64 array (jobs, types)
        GPUs without profiles, and current GPUs; a job that is being measured keeps its type.
    new : sequence of int
        Jobs that were never measured, first come, first served.
    order : int64 array (jobs,)
        Jobs by rank.

    Returns
    -------
    int64 array (jobs, types)
    """
    result, taken, profiled = counts.copy(), np.zeros_like(instance.gpus), set[int]()
    running = [n for n in new if held[n].max(initial=0) == instance.tasks[n]]
    for n in [*running, *(n for n in new if n not in running)]:
        total = taken + instance.tasks[n]
        room = np.where(taken == 0, instance.gpus, PROFILED * instance.gpus) - total
        room = np.where(np.isfinite(instance.train_s[n]), room, -1.0)
        kind = int(np.argmax(held[n] if n in running else room))
        if room[kind] < 0:
            continue
        result[n], result[n, kind] = 0, instance.tasks[n]
        taken[kind] = total[kind]
        profiled.add(n)
    for kind, gpus in enumerate(instance.gpus.tolist()):
        over = int(result[:, kind].sum()) - gpus
        for n in reversed([n for n in order.tolist() if n not in profiled] if over > 0 else []):
            lost = min(max(over, 0), int(result[n, kind]))
            result[n, kind] -= lost
            over -= lost
    return result


def _rate(instance: HareInstance, counts: Ints) -> Floats:
    """Return the rounds per second of each job with these GPUs, (jobs,)."""
    usable = (counts > 0) & np.isfinite(instance.train_s)
    some = np.flatnonzero(usable.any(axis=1))
    rate: Floats = np.zeros(instance.n_jobs)
    train = np.where(usable, instance.train_s, np.inf)[some]
    rate[some] = 1.0 / least_round_s(train, instance.sync_s[some], instance.tasks[some], counts[some])
    return rate
