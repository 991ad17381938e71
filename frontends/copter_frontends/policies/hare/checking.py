"""Check that a schedule keeps the problem's rules (the paper's (4) to (8))."""

from __future__ import annotations

import numpy as np

from copter_frontends.policies.hare.schedule import HareSchedule


def faults(schedule: HareSchedule, tolerance_s: float = 1e-9) -> list[str]:
    """Return the faults of a schedule; none if it is feasible.

    The rules are: every task is on a GPU that can run it; none starts before its job arrives (4), or before all tasks
    of the previous chunk have synchronised (7); no two tasks share a GPU at a time (8); the completion times follow
    from the tasks (6).
    """
    instance, chunks = schedule.instance, schedule.chunks
    slack = tolerance_s * (1.0 + schedule.makespan_s)
    result: list[str] = []
    job, kind = schedule.task_job, schedule.gpu_type()
    if not np.isfinite(instance.train_s[job, kind]).all():
        result.append("a task is on a GPU that cannot run it")
    if np.any(schedule.start_s < instance.arrival_s[job] - slack):
        result.append("a task starts before its job arrives")
    synced = np.full(len(chunks), -np.inf)
    np.maximum.at(synced, schedule.chunk, schedule.synced_s)
    earlier = schedule.chunk - 1
    follows = chunks.first[job] < schedule.chunk
    if np.any(schedule.start_s[follows] < synced[earlier[follows]] - slack):
        result.append("a task starts before its round may")
    for gpu, tasks in schedule.sequences().items():
        if np.any(schedule.start_s[tasks[1:]] < schedule.end_s[tasks[:-1]] - slack):
            result.append(f"GPU {gpu} runs two tasks at once")
            break
    last = np.full(instance.n_jobs, -np.inf)
    np.maximum.at(last, job, schedule.synced_s)
    if np.any(np.abs(last - schedule.completion_s) > slack):
        result.append("a completion time is not that of the job's last task")
    if len(schedule.chunk) != int(instance.tasks[chunks.job].sum()):
        result.append("tasks are missing")
    return result
