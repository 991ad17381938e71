"""Kernels that place tasks: on the class with the least score, or on the first server with room."""

from __future__ import annotations

import heapq

import numba
import numpy as np

from copter_frontends.policies.servers.score_kernels import best_place, score_of
from copter_frontends.policies.servers.state_kernels import domain, room, take


@numba.njit(cache=True)
def mark_group(jobs, group, mark):  # type: ignore[no-untyped-def]
    """Mark the servers, or zones, that have as many tasks of the group as they may; returns the mark."""
    before = mark[-1]
    mark[-1] += jobs.most[group]
    task = jobs.first[group]
    while task >= 0:
        if jobs.server[task] >= 0:
            at = domain(jobs, group, jobs.server[task])
            mark[at] = max(mark[at], before) + 1
        task = jobs.next[task]
    return mark[-1]


@numba.njit(cache=True)
def unmarked(board, jobs, group, state, mark, stamp):  # type: ignore[no-untyped-def]
    """Return the first server of a class without the group's mark, or -1."""
    server = board.state_head[state]
    while server >= 0 and group >= 0 and mark[domain(jobs, group, server)] >= stamp:
        server = board.after[server]
    return server


@numba.njit(cache=True)
def candidates(rule, board, shapes, price, capacity, shape, states):  # type: ignore[no-untyped-def]
    """Return the heap of (score, class) of those of some classes that have servers on which the shape fits."""
    heap = [(np.float32(0.0), np.int64(0)) for _ in range(0)]
    for state in states:
        if board.state_count[state] == 0:
            continue
        found = board.score[state, shape]
        if np.isnan(found):
            found = score_of(rule, board, shapes, price, capacity, state, shape)
        if found < np.inf:
            heap.append((found, np.int64(state)))
    heapq.heapify(heap)
    return heap


@numba.njit(cache=True)
def put(board, shapes, jobs, task, server):  # type: ignore[no-untyped-def]
    """Start a task on a server whose score is known; returns the server's new class."""
    shape = jobs.shape[task]
    jobs.bits[task] = take(board, shapes, server, shape, board.choice[board.state[server], shapes.like[shape]])
    jobs.server[task] = server
    return board.state[server]


@numba.njit(cache=True)
def place_by_score(rule, board, shapes, price, capacity, jobs, order, mark):  # type: ignore[no-untyped-def]
    """Place tasks in order, each on a server of the class with the least score; the others stay waiting.

    Tasks of like shapes that follow each other share one heap. `mark` is scratch, its last entry the last stamp.
    """
    heap = [(np.float32(0.0), np.int64(0)) for _ in range(0)]
    shape, size = -1, 0
    states = np.empty(board.made[0] + len(order), dtype=np.int64)  # those with servers, and what placing makes of them
    for made in range(board.made[0]):
        if board.state_count[made] > 0:
            states[size] = made
            size += 1
    for task in order:
        if shapes.like[jobs.shape[task]] != shape:
            shape = shapes.like[jobs.shape[task]]
            heap = candidates(rule, board, shapes, price, capacity, shape, states[:size])
        if len(heap) == 0:
            continue
        stamp = 0
        if jobs.group[task] >= 0:
            stamp = mark_group(jobs, jobs.group[task], mark)
        aside = [(np.float32(0.0), np.int64(0)) for _ in range(0)]
        while len(heap) > 0:
            state = heap[0][1]
            if board.state_count[state] == 0:
                heapq.heappop(heap)
                continue
            server = unmarked(board, jobs, jobs.group[task], state, mark, stamp)
            if server < 0:
                aside.append(heapq.heappop(heap))
                continue
            fresh = put(board, shapes, jobs, task, server)
            found = board.score[fresh, shape]
            if np.isnan(found):
                found = score_of(rule, board, shapes, price, capacity, fresh, shape)
            if board.state_count[fresh] == 1:
                states[size] = fresh
                size += 1
                if found < np.inf:
                    heapq.heappush(heap, (found, fresh))
            break
        for each in aside:
            heapq.heappush(heap, each)


@numba.njit(cache=True)
def place_on_first(board, shapes, jobs, task, servers, first, mark):  # type: ignore[no-untyped-def]
    """Place a task on the first of the servers, from number `first` on, that has room for it.

    Returns the number up to which none has room for another task of the shape.
    """
    shape, stamp, passed = jobs.shape[task], 0, True
    if jobs.group[task] >= 0:
        stamp = mark_group(jobs, jobs.group[task], mark)
    need, gpus, milli = shapes.need[shape], shapes.gpus[shape], shapes.milli[shape]
    for at in range(first, len(servers)):
        server = servers[at]
        fits = board.status[server] == 0 and shapes.allowed[shape, board.kind[server]]
        if fits and room(need, gpus, milli, board.free[server], board.gpu[server]) > 0:
            if stamp > 0 and mark[domain(jobs, jobs.group[task], server)] >= stamp:
                passed = False
                continue
            state = board.state[server]
            board.choice[state, shapes.like[shape]] = best_place(shapes, shape, board.state_gpu[state])
            put(board, shapes, jobs, task, server)
            break
        if passed:
            first = at + 1
    return first


@numba.njit(cache=True)
def place_first(board, shapes, jobs, order, mark):  # type: ignore[no-untyped-def]
    """Place tasks in order, each on the first server with room; the others stay waiting."""
    shape, first, servers = -1, 0, np.arange(len(board.kind))
    for task in order:
        if jobs.shape[task] != shape:
            shape, first = jobs.shape[task], 0
        first = place_on_first(board, shapes, jobs, task, servers, first, mark)


@numba.njit(cache=True)
def link_groups(jobs, tasks):  # type: ignore[no-untyped-def]
    """Enter new tasks into the lists of their groups."""
    for task in tasks:
        if jobs.group[task] >= 0:
            jobs.next[task] = jobs.first[jobs.group[task]]
            jobs.first[jobs.group[task]] = task


@numba.njit(cache=True)
def first_of_each(jobs, tasks, places):  # type: ignore[no-untyped-def]
    """Return the first tasks of each shape, as many as there are places, and all tasks of groups."""
    found, left = np.empty_like(tasks), places.copy()
    size = 0
    for task in tasks:
        k = jobs.shape[task]
        if jobs.group[task] < 0:
            left[k] -= 1
        if left[k] >= 0 or jobs.group[task] >= 0:
            found[size] = task
            size += 1
    return found[:size]
