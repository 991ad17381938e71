"""The optimum of small Hare instances by trying everything: semi-active schedules, branch and bound."""

from __future__ import annotations

import random

from copter_frontends.policies.hare import HareInstance, HareJob

TYPES = ("a", "b", "c")


def optimum(instance: HareInstance) -> float:
    """Least sum of w_n C_n over all orders of tasks and all assignments.

    Every schedule that waits for nothing is the list schedule of its tasks by start, with its own assignment, and no
    other need be looked at, since the objective never falls when a task ends later.
    """
    jobs, weight = instance.jobs, instance.weight
    kinds = [g for g, count in enumerate(instance.gpus) for _ in range(count)]
    n = len(jobs)
    ell = (instance.train_s + instance.sync_s).min(axis=1)
    best = float("inf")

    def search(left, in_round, ready, done, free, spent):
        nonlocal best
        floor = spent + sum(weight[i] * max(done[i], ready[i] + left[i] * ell[i]) for i in range(n) if left[i])
        if floor >= best - 1e-12:
            return
        if not any(left):
            best = spent
            return
        for i in range(n):
            if not left[i]:
                continue
            seen = set()
            for m, g in enumerate(kinds):
                p, s = instance.train_s[i, g], instance.sync_s[i, g]
                if p == float("inf") or (g, free[m]) in seen:
                    continue
                seen.add((g, free[m]))
                start = max(ready[i], free[m])
                next_left, next_in, next_ready = list(left), list(in_round), list(ready)
                next_done, next_free, more = list(done), list(free), spent
                next_free[m] = start + p
                next_done[i] = max(done[i], start + p + s)
                next_in[i] += 1
                if next_in[i] == jobs[i].tasks:
                    next_in[i], next_ready[i] = 0, next_done[i]
                    next_left[i] -= 1
                    if not next_left[i]:
                        more += weight[i] * next_done[i]
                search(next_left, next_in, next_ready, next_done, next_free, more)

    arrival = [job.arrival_s for job in jobs]
    search([job.rounds for job in jobs], [0] * n, arrival, list(arrival), [0.0] * len(kinds), 0.0)
    return best


def small_instance(seed: int, most_tasks: int = 6) -> HareInstance:
    """A random instance of two or three jobs with few tasks, on two or three GPUs."""
    rng = random.Random(seed)
    gpus = dict.fromkeys(TYPES[: rng.choice([2, 2, 3])], 1)
    if rng.random() < 0.3:
        gpus["a"] = 2
    jobs, room = [], most_tasks
    for i in range(rng.choice([2, 3])):
        shapes = [(r, k) for r in (1, 2, 3) for k in (1, 2, 3) if r * k <= min(room, 4)]
        if not shapes:
            break
        rounds, tasks = rng.choice(shapes)
        room -= rounds * tasks
        usable = [k for k in gpus if rng.random() < 0.85] or [next(iter(gpus))]
        train = {k: rng.choice([0.5, 1.0, 1.5, 2.0, 3.0]) * rng.uniform(0.8, 1.2) for k in usable}
        sync = {k: rng.choice([0.0, 0.2, 0.5]) for k in usable}
        arrival = rng.choice([0.0, 0.0, rng.uniform(0, 3)])
        jobs.append(HareJob(f"j{i}", rounds, tasks, train, sync, rng.choice([1.0, 1.0, 2.0, 5.0]), arrival))
    return HareInstance.of(jobs, gpus)
