"""Kernels that place tasks: on the class with the least score, or on the first server with room."""

from __future__ import annotations

import numba
import numpy as np

from copter_frontends.placement.servers.score_kernels import best_place, score_of
from copter_frontends.placement.servers.state_kernels import domain, kernel, room, take


@kernel
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


@kernel
def unmarked(board, jobs, group, state, mark, stamp):  # type: ignore[no-untyped-def]
    """Return the first server of a class without the group's mark, or -1."""
    server = board.state_head[state]
    while server >= 0 and group >= 0 and mark[domain(jobs, group, server)] >= stamp:
        server = board.after[server]
    return server


@kernel
def pushed(score, state, size):  # type: ignore[no-untyped-def]
    """Enter the pair behind a heap's end into the heap, whose first has the least (score, state)."""
    own, which = score[size], state[size]
    while size > 0:
        above = (size - 1) // 2
        if score[above] < own or (score[above] == own and state[above] <= which):
            break
        score[size], state[size] = score[above], state[above]
        size = above
    score[size], state[size] = own, which


@kernel
def popped(score, state, size):  # type: ignore[no-untyped-def]
    """Move the first of a heap's pairs behind its end; returns the new size."""
    size -= 1
    own, which = score[size], state[size]
    score[size], state[size] = score[0], state[0]
    at = 0
    while 2 * at + 1 < size:
        least = 2 * at + 1
        right = least + 1
        if right < size and (
            score[right] < score[least] or (score[right] == score[least] and state[right] < state[least])
        ):
            least = right
        if own < score[least] or (own == score[least] and which < state[least]):
            break
        score[at], state[at] = score[least], state[least]
        at = least
    if size > 0:
        score[at], state[at] = own, which
    return size


@kernel
def put(board, shapes, jobs, task, server):  # type: ignore[no-untyped-def]
    """Start a task on a server whose score is known; returns the server's new class."""
    shape = jobs.shape[task]
    jobs.bits[task] = take(board, shapes, server, shape, board.choice[board.state[server], shapes.like[shape]])
    jobs.server[task] = server
    return board.state[server]


@kernel
def score_in(rule, board, shapes, price, capacity, state, shape):  # type: ignore[no-untyped-def]
    """Return a shape's score on a class, computed if it is not known."""
    found = board.score[state, shape]
    return score_of(rule, board, shapes, price, capacity, state, shape) if np.isnan(found) else found


@kernel
def placed(rule, board, shapes, price, capacity, jobs, order, mark, states, size, score, heap):  # type: ignore[no-untyped-def]
    """Place tasks in order; `states` are the `size` classes with servers, `score` and `heap` scratch for pairs."""
    shape, live = -1, 0
    for task in order:
        if shapes.like[jobs.shape[task]] != shape:
            shape, live = shapes.like[jobs.shape[task]], 0
            for at in range(size):
                if board.state_count[states[at]] == 0:
                    continue
                score[live] = score_in(rule, board, shapes, price, capacity, states[at], shape)
                if score[live] < np.inf:
                    heap[live] = states[at]
                    pushed(score, heap, live)
                    live += 1
        stamp = mark_group(jobs, jobs.group[task], mark) if live > 0 and jobs.group[task] >= 0 else 0
        aside = 0  # classes without a server for this task's group: behind the heap's end
        while live > 0:
            empty = board.state_count[heap[0]] == 0
            server = -1 if empty else unmarked(board, jobs, jobs.group[task], heap[0], mark, stamp)
            if server >= 0:
                break
            live = popped(score, heap, live)
            if empty:
                score[live], heap[live] = score[live + aside], heap[live + aside]
            else:
                aside += 1
        found = live > 0
        for _ in range(aside):
            pushed(score, heap, live)
            live += 1
        if not found:
            continue
        fresh = put(board, shapes, jobs, task, server)
        if board.state_count[fresh] == 1:
            states[size] = fresh
            size += 1
            score[live] = score_in(rule, board, shapes, price, capacity, fresh, shape)
            if score[live] < np.inf:
                heap[live] = fresh
                pushed(score, heap, live)
                live += 1


@numba.njit(cache=True)
def place_by_score(rule, board, shapes, price, capacity, jobs, order, mark):  # type: ignore[no-untyped-def]
    """Place tasks in order, each on a server of the class with the least score; the others stay waiting.

    Tasks of like shapes that follow each other share one heap. `mark` is scratch, its last entry the last stamp.
    """
    made = board.made[0]
    states = np.empty(made + len(order), dtype=np.int64)  # those with servers, and what placing makes of them
    there = np.flatnonzero(board.state_count[:made])
    states[: len(there)] = there
    score, heap = np.empty(len(states), dtype=np.float32), np.empty(len(states), dtype=np.int64)
    placed(rule, board, shapes, price, capacity, jobs, order, mark, states, len(there), score, heap)


@kernel
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


@kernel
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
