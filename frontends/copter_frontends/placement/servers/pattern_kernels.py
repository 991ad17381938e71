"""Best patterns (how many tasks of every shape) for the room of a server, with proven bounds; and filling servers."""

from __future__ import annotations

import numba
import numpy as np

from copter_frontends.placement.servers.score_kernels import best_place
from copter_frontends.placement.servers.state_kernels import change, domain, kernel, room, shift, take

MOST_STEPS = 4000
"""Steps of a search for one pattern; beyond them the relaxation's bound is returned."""
LARGER = 1e-6
"""Weight of a shape's share of the room in its value, by which among shapes of like value the larger comes first."""
MOST_LOOKS = 64
"""Waiting tasks of a shape that are looked at for one whose group is not on the server yet."""
SLACK = 0.5
"""Values are whole numbers, so that a bound below the best one plus this proves it, whatever the rounding."""


@kernel
def collected(shapes, value, most, kind, free, gpu, left, own, density, limit):  # type: ignore[no-untyped-def]
    """Write all that is free, and the shapes that fit there: number, value per scarcest share, tasks at most."""
    dims, used = len(left), 0
    left[dims - 1] = 0
    for d in range(dims - 1):
        left[d] = free[d]
    for g in range(len(gpu)):
        left[dims - 1] += gpu[g]
    for k in range(len(value)):
        if value[k] <= 0 or most[k] <= 0 or not shapes.allowed[k, kind]:
            continue
        fit = room(shapes.need[k], shapes.gpus[k], shapes.milli[k], free, gpu)
        if fit == 0:
            continue
        worst = 1e-12
        for d in range(dims):
            need = shapes.need[k, d] if d < dims - 1 else shapes.gpus[k] * shapes.milli[k]
            if need > 0:
                worst = max(worst, need / left[d])
        own[used], limit[used] = k, min(most[k], fit)
        density[used] = value[k] / worst * (1.0 + LARGER * worst)
        used += 1
    return used


@kernel
def searched(shapes, value, order, limit, left, need, best_rate, all_of, taken, counts, least):  # type: ignore[no-untyped-def]
    """Search the shapes in order, depth first; see `best_pattern`. The arrays behind `left` are scratch."""
    used, dims = len(order), len(left)
    for i in range(used - 1, -1, -1):
        k = order[i]
        all_of[i] = all_of[i + 1] + value[k] * min(limit[i], 1 << 20)
        for d in range(dims):
            need[i, d] = shapes.need[k, d] if d < dims - 1 else shapes.gpus[k] * shapes.milli[k]
            rate = value[k] / need[i, d] if need[i, d] > 0 else np.inf
            best_rate[i, d] = max(best_rate[i + 1, d], rate)  # of this shape and the later ones
    root = all_of[0]
    for d in range(dims):
        if best_rate[0, d] < np.inf:
            root = min(root, best_rate[0, d] * left[d])
    best, have, depth, steps = least, 0, 0, 0
    descend = True
    while depth >= 0:
        if descend:
            steps += 1
            bound = all_of[depth]
            for d in range(dims):
                if best_rate[depth, d] < np.inf:
                    bound = min(bound, best_rate[depth, d] * left[d])
            if depth == used or have + bound < best + SLACK or steps > MOST_STEPS:
                if have > best:
                    best = have
                    for i in range(used):
                        counts[order[i]] = taken[i]
                descend = False
                depth -= 1
                continue
            fit = limit[depth]
            for d in range(dims):
                if need[depth, d] > 0:
                    fit = min(fit, left[d] // need[depth, d])
        elif taken[depth] > 0 and steps <= MOST_STEPS:
            fit = -1
        else:
            fit = -taken[depth]
        taken[depth] += fit
        have += fit * value[order[depth]]
        for d in range(dims):
            left[d] -= fit * need[depth, d]
        descend = descend or (fit == -1 and steps <= MOST_STEPS)
        depth += 1 if descend else -1
    return best, best if steps <= MOST_STEPS else max(best, np.int64(np.floor(root + SLACK)))


@numba.njit(cache=True)
def best_pattern(shapes, value, most, kind, free, gpu, counts, least=0):  # type: ignore[no-untyped-def]
    """Write the best pattern into `counts`; returns (value, proven upper bound), whole numbers (PS3).

    Only patterns worth more than `least` are sought; if there is none, `counts` is 0 and the value is `least`.

    GPUs count by their sum and by how many tasks of one shape fit alone, so the bound also holds where parts of GPUs do
    not fit together. Depth-first, shapes in order of value per scarcest share of the room, bounded by one dimension at
    a time.
    """
    n, dims = len(value), len(free) + 1
    left, own, limit = np.empty(dims, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    density = np.empty(n)
    counts[:] = 0
    used = collected(shapes, value, most, kind, free, gpu, left, own, density, limit)
    if used == 0:
        return least, least
    order = np.argsort(-density[:used])
    need, best_rate, all_of = np.empty((used, dims), dtype=np.int64), np.zeros((used + 1, dims)), np.zeros(used + 1)
    taken = np.zeros(used, dtype=np.int64)
    return searched(shapes, value, own[order], limit[order], left, need, best_rate, all_of, taken, counts, least)


@numba.njit(cache=True)
def bound_rooms(shapes, rooms, value, most, bound, patterns):  # type: ignore[no-untyped-def]
    """Write bound and pattern of each room; returns the sum of count times bound."""
    total = 0
    for at in range(len(rooms.servers)):
        _, bound[at] = best_pattern(shapes, value, most, rooms.kind[at], rooms.free[at], rooms.gpu[at], patterns[at])
        total += rooms.servers[at] * bound[at]
    return total


@numba.njit(cache=True)
def known_patterns(shapes, rooms, pool, value, most, found):  # type: ignore[no-untyped-def]
    """Write for each room the patterns of a pool that fit there and are worth most, as many as `found` has room for."""
    n, dims = pool.shape[1], rooms.free.shape[1]
    use = np.zeros((len(pool), dims + 1), dtype=np.int64)
    worth = np.zeros(len(pool), dtype=np.int64)
    for i in range(len(pool)):
        for k in range(n):
            many = pool[i, k]
            if many == 0:
                continue
            worth[i] += many * value[k] if many <= most[k] else -(1 << 40)
            use[i, dims] += many * shapes.gpus[k] * shapes.milli[k]
            for d in range(dims):
                use[i, d] += many * shapes.need[k, d]
    order = np.argsort(-worth)
    for at in range(len(rooms.servers)):
        free, gpu, size = rooms.free[at], rooms.gpu[at], 0
        for i in order:
            if worth[i] <= 0 or size == len(found):
                break
            fits = use[i, dims] <= gpu.sum()
            for d in range(dims):
                fits = fits and use[i, d] <= free[d]
            if not fits:
                continue
            for k in range(n):
                many = pool[i, k]
                if fits and many > 0:
                    fits = shapes.allowed[k, rooms.kind[at]]
                    fits = fits and many <= room(shapes.need[k], shapes.gpus[k], shapes.milli[k], free, gpu)
            if fits:
                found[size, at] = pool[i]
                size += 1


@numba.njit(cache=True)
def useful_states(board, shapes, count, waiting):  # type: ignore[no-untyped-def]
    """Return the classes with servers on which one of the waiting shapes fits."""
    found = np.empty(board.made[0], dtype=np.int64)
    least = np.full(shapes.need.shape[1], 1 << 62)  # of each dimension, what any shape needs
    for k in waiting:
        least = np.minimum(least, shapes.need[k])
    size = 0
    for state in range(board.made[0]):
        if count[state] == 0 or (board.state_free[state] < least).any():
            continue
        kind, free, gpu = board.state_kind[state], board.state_free[state], board.state_gpu[state]
        for k in waiting:
            if shapes.allowed[k, kind] and room(shapes.need[k], shapes.gpus[k], shapes.milli[k], free, gpu) > 0:
                found[size] = state
                size += 1
                break
    return found[:size]


@numba.njit(cache=True)
def how_many_fit(shapes, waiting, kind, free, gpu):  # type: ignore[no-untyped-def]
    """Return how many tasks of each waiting shape fit on a server of each of some states, selectors included."""
    found = np.zeros((len(kind), len(waiting)), dtype=np.int64)
    for at in range(len(kind)):
        for i in range(len(waiting)):
            k = waiting[i]
            if shapes.allowed[k, kind[at]]:
                found[at, i] = room(shapes.need[k], shapes.gpus[k], shapes.milli[k], free[at], gpu[at])
    return found


@kernel
def meets(jobs, task, server):  # type: ignore[no-untyped-def]
    """Return whether as many tasks of the same group as may be run on the server, or in its zone."""
    group, found = jobs.group[task], 0
    if group < 0:
        return False
    here = domain(jobs, group, server)
    other = jobs.first[group]
    while other >= 0:
        if jobs.server[other] >= 0 and domain(jobs, group, jobs.server[other]) == here:
            found += 1
        other = jobs.next[other]
    return found >= jobs.most[group]


@numba.njit(cache=True)
def beside(jobs, group, shape, fits, room):  # type: ignore[no-untyped-def]
    """Return how many tasks of each group run where tasks of the shape beside it fit, or anywhere if zones count."""
    found = np.zeros(len(group), dtype=np.int64)
    for at in range(len(group)):
        task = jobs.first[group[at]]
        while task >= 0:
            if jobs.server[task] >= 0 and (jobs.zonal[group[at]] > 0 or fits[room[jobs.server[task]], shape[at]]):
                found[at] += 1
            task = jobs.next[task]
    return found


@kernel
def put_pattern(board, shapes, jobs, server, counts, waiting):  # type: ignore[no-untyped-def]
    """Start the queues' first tasks on a server, as many of each shape as the pattern says and fit; returns worth."""
    gained, queue, first, ends = 0, waiting.task, waiting.first, waiting.ends
    for k in waiting.by_size:
        for _ in range(counts[k]):
            if first[k] == ends[k]:
                break
            if room(shapes.need[k], shapes.gpus[k], shapes.milli[k], board.free[server], board.gpu[server]) == 0:
                break
            at = first[k]
            while at < ends[k] and jobs.group[queue[at]] >= 0 and meets(jobs, queue[at], server):
                at += 1
                if at == first[k] + MOST_LOOKS:
                    at = ends[k]
            if at >= ends[k]:
                break
            queue[at], queue[first[k]] = queue[first[k]], queue[at]
            place = best_place(shapes, k, board.state_gpu[board.state[server]]) if shapes.milli[k] < 1000 else 0
            task = queue[first[k]]
            jobs.bits[task] = take(board, shapes, server, k, place)
            jobs.server[task] = server
            first[k] += 1
            gained += shapes.worth[k]
    return gained


@kernel
def put_patterns(board, shapes, jobs, servers, patterns, waiting):  # type: ignore[no-untyped-def]
    """Give each server its pattern, as far as tasks wait; returns the worth of what was started."""
    gained = 0
    for at in range(len(servers)):
        gained += put_pattern(board, shapes, jobs, servers[at], patterns[at], waiting)
    return gained


@numba.njit(cache=True)
def exchange(board, shapes, jobs, servers, own, starts, waiting):  # type: ignore[no-untyped-def]
    """Empty each server of the round's own tasks and fill it anew from what waits, if that is worth more (PS6).

    `own` are the round's tasks server by server, `starts` where each server's begin; returns the worth that was gained.
    """
    queue, first = waiting.task, waiting.first
    counts, back = np.zeros(len(shapes.worth), dtype=np.int64), np.zeros(len(shapes.worth), dtype=np.int64)
    gained = 0
    for at in range(len(servers)):
        server, mine = servers[at], own[starts[at] : starts[at + 1]]
        free, gpu = board.free[server].copy(), board.gpu[server].copy()
        worth = 0
        back[:] = 0
        for task in mine:
            if jobs.server[task] == server:
                k = jobs.shape[task]
                worth += shapes.worth[k]
                back[k] += 1
                change(shapes, free, gpu, k, jobs.bits[task], 1)
        best, _ = best_pattern(
            shapes, shapes.worth, waiting.ends - first + back, board.kind[server], free, gpu, counts, worth
        )  # fmt: skip
        if best <= worth:
            continue
        had = jobs.bits[mine].copy()
        for task in mine:
            if jobs.server[task] == server:
                k = jobs.shape[task]
                shift(board, shapes, server, k, jobs.bits[task], 1)
                jobs.server[task] = -1
                first[k] -= 1
                queue[first[k]] = task
        began = first.copy()
        found = put_pattern(board, shapes, jobs, server, counts, waiting)
        if found < worth:
            for k in waiting.by_size:  # back as it was
                while first[k] > began[k]:
                    first[k] -= 1
                    task = queue[first[k]]
                    shift(board, shapes, server, k, jobs.bits[task], 1)
                    jobs.server[task] = -1
            found = as_before(board, shapes, jobs, server, mine, had, queue, first)
        gained += found - worth
    return gained


@kernel
def as_before(board, shapes, jobs, server, mine, had, queue, first):  # type: ignore[no-untyped-def]
    """Start again the tasks that were just taken off a server, with the GPUs that they had; returns their worth."""
    worth = 0
    for i in range(len(mine)):
        task = mine[i]
        k = jobs.shape[task]
        if jobs.server[task] >= 0:
            continue
        at = first[k]  # the task is among the first waiting ones of its shape: bring it to the front
        while queue[at] != task:
            at += 1
        queue[at], queue[first[k]] = queue[first[k]], task
        first[k] += 1
        shift(board, shapes, server, k, had[i], -1)
        jobs.server[task], jobs.bits[task] = server, had[i]
        worth += shapes.worth[k]
    return worth
