"""Migrations: running tasks are moved where that makes room for a waiting one or empties a server (PS9)."""

from __future__ import annotations

import numba
import numpy as np

from copter_frontends.placement.servers.board import DRAINING, UP, Bools, Floats, Ints
from copter_frontends.placement.servers.fleet import Fleet
from copter_frontends.placement.servers.place_kernels import mark_group, place_by_score
from copter_frontends.placement.servers.score_kernels import STRANDED, best_place, needs_at
from copter_frontends.placement.servers.state_kernels import (
    change,
    domain,
    enter,
    kernel,
    leave,
    put_back,
    room,
    shift,
    take,
)

MOST_MOVED = 4
"""Tasks that are moved for one waiting task at most."""
LOOKS, NEAREST = 4096, 16
"""Servers that are looked at for one waiting task at most (the next ones for the next task), and those of them, with
the least lacking, whose tasks are looked at.
"""
TRIES = 3
"""Servers on which a waiting task is tried; and tasks of like shapes, and servers to be emptied, that may fail."""
PORTION = 64
"""Moves between two growths of the table of classes."""


def migrate(fleet: Fleet, price: Floats, order: Ints, budget: int, cost: float, moved: Bools) -> int:
    """Move running tasks so that waiting ones fit and, when all do, so that fewer servers are in use.

    Parameters
    ----------
    fleet : Fleet
    price : ndarray (dimensions + 2,) of float64
        What a unit of each dimension is worth, GPUs and opening a server last, as in PS4.
    order : ndarray (tasks,) of int64
        Tasks that may still wait; those in front are tried first. They are started where room is made.
    budget : int
        Tasks that may be moved.
    cost : float
        Worth that each move costs. A waiting task must be worth more than its moves; a server is emptied only if moves
        cost nothing.
    moved : ndarray (tasks,) of bool
        The tasks that have been moved, which stay; further ones are entered.

    Returns
    -------
    int
        How many more may be moved.
    """
    jobs = fleet.jobs
    runs = np.flatnonzero(jobs.server[: fleet.tasks] >= 0)
    runs = runs[~np.isin(runs, order)]
    own = runs[np.argsort(jobs.server[runs], kind="stable")]
    starts = np.searchsorted(jobs.server[own], np.arange(fleet.servers + 1)).astype(np.int64)
    leaving = np.flatnonzero((fleet.board.status == DRAINING) & (fleet.board.running > 0))
    budget = _emptied(fleet, price, leaving, own, starts, budget, moved, True)
    at, server, tries = 0, 0, np.zeros(len(fleet.names), dtype=np.int64)
    while at < len(order) and budget > 0:
        fleet.reserve(PORTION * (1 + TRIES * (4 * MOST_MOVED + 2)))
        at, server, budget = make_room(
            fleet.board, fleet.shapes, price, fleet.capacity, jobs, order, at, own, starts, server, budget, cost, tries,
            fleet.mark, moved,
        )  # fmt: skip
    if cost == 0.0 and price[-1] > 0.0 and not (jobs.server[order] < 0).any():
        running = fleet.board.running
        used = np.flatnonzero((running > 0) & (fleet.board.status == UP))
        budget = _emptied(
            fleet, price, used[np.argsort(running[used], kind="stable")], own, starts, budget, moved, False
        )
    return budget


def _emptied(
    fleet: Fleet, price: Floats, servers: Ints, own: Ints, starts: Ints, budget: int, moved: Bools, opens: bool
) -> int:
    """Empty servers in order as far as moves last; returns how many are left. See `relocated` for `opens`."""
    failed = 0
    for server in servers.tolist():
        tasks = own[starts[server] : starts[server + 1]]
        if len(tasks) > budget or failed == TRIES:
            break
        if not len(tasks) or moved[tasks].any() or fleet.board.running[server] != len(tasks):
            continue
        fleet.reserve(4 * len(tasks) + 4)
        if relocated(fleet.board, fleet.shapes, price, fleet.capacity, fleet.jobs, -1, tasks, fleet.mark, opens):
            moved[tasks] = True
            budget -= len(tasks)
        else:
            failed += 1
    return budget


@kernel
def lacking(shapes, price, shape, free, gpu):  # type: ignore[no-untyped-def]
    """Return what a server lacks for a task of the shape, at prices; 0 if it fits."""
    found, last = 0.0, len(price) - 2
    if room(shapes.need[shape], shapes.gpus[shape], shapes.milli[shape], free, gpu) > 0:
        return 0.0
    for d in range(last):
        found += price[d] * max(shapes.need[shape, d] - free[d], 0)
    if shapes.gpus[shape] > 0:
        usable = 0
        for g in range(len(gpu)):
            usable += gpu[g] // shapes.milli[shape]
        missing = max(shapes.gpus[shape] - usable, 0) * shapes.milli[shape]
        if missing > 0:  # the part that is free of the fullest free GPU counts
            part = 0
            for g in range(len(gpu)):
                part = max(part, gpu[g] % shapes.milli[shape])
            missing -= part
        found += price[last] * missing
    return max(found, 1e-300)


@numba.njit(cache=True)
def chosen_moves(board, shapes, price, jobs, task, server, own, moved, most, out):  # type: ignore[no-untyped-def]
    """Write tasks that make room for another one into `out`; returns (how many, their size at prices), or (0, 0).

    Of a server's tasks the one goes first that leaves least lacking, and of those that leave nothing the smallest.
    """
    shape = jobs.shape[task]
    free, gpu = board.free[server].copy(), board.gpu[server].copy()
    count, total = 0, 0.0
    while count < most:
        best, best_lack, best_size = -1, np.inf, np.inf
        for other in own:
            if jobs.server[other] != server or moved[other]:
                continue
            if jobs.group[task] >= 0 and jobs.group[other] == jobs.group[task]:
                return 0, 0.0
            k = jobs.shape[other]
            size = needs_at(shapes, price, k)
            taken = False
            for i in range(count):
                taken = taken or out[i] == other
            if taken or total + size >= needs_at(shapes, price, shape):
                continue
            change(shapes, free, gpu, k, jobs.bits[other], 1)
            lack = lacking(shapes, price, shape, free, gpu)
            change(shapes, free, gpu, k, jobs.bits[other], -1)
            if lack < best_lack or (lack == best_lack and size < best_size):
                best, best_lack, best_size = other, lack, size
        if best < 0:
            return 0, 0.0
        change(shapes, free, gpu, jobs.shape[best], jobs.bits[best], 1)
        out[count] = best
        count += 1
        total += best_size
        if best_lack == 0.0:
            return count, total
    return 0, 0.0


@kernel
def start_on(board, shapes, jobs, task, server):  # type: ignore[no-untyped-def]
    """Start a task on a server that has room."""
    shape, place = jobs.shape[task], 0
    if shapes.gpus[shape] > 0 and shapes.milli[shape] < 1000:
        place = best_place(shapes, shape, board.state_gpu[board.state[server]])
    jobs.bits[task] = take(board, shapes, server, shape, place)
    jobs.server[task] = server


@kernel
def set_status(board, server, status):  # type: ignore[no-untyped-def]
    """Give a server another status."""
    leave(board, server)
    board.status[server] = status
    enter(board, server)


@kernel
def stop(board, shapes, jobs, task):  # type: ignore[no-untyped-def]
    """Take a running task off its server."""
    shift(board, shapes, jobs.server[task], jobs.shape[task], jobs.bits[task], 1)
    jobs.server[task] = -1


@numba.njit(cache=True)
def relocated(board, shapes, price, capacity, jobs, task, own, mark, opens):  # type: ignore[no-untyped-def]
    """Move tasks off their server to others, first starting `task` there (-1: none, and no task may come back).

    Returns whether all have found room, on servers in use already unless `opens`; if not, all is as before.
    """
    server = jobs.server[own[0]]
    had = jobs.bits[own].copy()
    for other in own:
        stop(board, shapes, jobs, other)
    status = board.status[server]
    if task >= 0:
        start_on(board, shapes, jobs, task, server)
    else:
        set_status(board, server, DRAINING)
    place_by_score(STRANDED, board, shapes, price, capacity, jobs, own, mark)
    fine = True
    for other in own:
        fine = fine and jobs.server[other] >= 0
        if fine and not opens:
            beside = 0
            for each in own:
                beside += jobs.server[each] == jobs.server[other]
            fine = board.running[jobs.server[other]] > beside
    if task < 0:
        set_status(board, server, status)
    if fine:
        return True
    for other in own:
        if jobs.server[other] >= 0:
            stop(board, shapes, jobs, other)
    if task >= 0:
        stop(board, shapes, jobs, task)
    put_back(board, shapes, jobs, own, np.full(len(own), server), had)
    return False


@numba.njit(cache=True)
def nearest(board, shapes, price, jobs, task, first, mark, stamp):  # type: ignore[no-untyped-def]
    """Return the servers that lack least for a task, among the next LOOKS, in that order."""
    shape = jobs.shape[task]
    n = len(board.kind)
    looks, size = min(LOOKS, n), 0
    lack, found = np.empty(NEAREST), np.empty(NEAREST, dtype=np.int64)
    for step in range(looks):
        server = (first + step) % n
        if board.status[server] != 0 or board.running[server] == 0 or not shapes.allowed[shape, board.kind[server]]:
            continue
        if stamp > 0 and mark[domain(jobs, jobs.group[task], server)] >= stamp:
            continue
        own = lacking(shapes, price, shape, board.free[server], board.gpu[server])
        at = min(size, NEAREST - 1)
        if size == NEAREST and own >= lack[at]:
            continue
        while at > 0 and lack[at - 1] > own:
            lack[at], found[at] = lack[at - 1], found[at - 1]
            at -= 1
        lack[at], found[at] = own, server
        size = min(size + 1, NEAREST)
    return found[:size]


@numba.njit(cache=True)
def make_room(  # type: ignore[no-untyped-def]
    board, shapes, price, capacity, jobs, order, at, tasks, starts, first, budget, cost, tries, mark, moved
):
    """Start waiting tasks from number `at` on, moving others away, until PORTION were tried.

    `tasks` from `starts[server]` to `starts[server + 1]` are those that ran on a server. Returns (number of the next
    waiting task, the next server to look at, moves that are left).
    """
    done, n = 0, len(board.kind)
    out = np.empty(MOST_MOVED, dtype=np.int64)
    one = np.empty(1, dtype=np.int64)
    while at < len(order) and done < PORTION and budget > 0:
        task = order[at]
        at += 1
        shape = jobs.shape[task]
        if jobs.server[task] >= 0 or tries[shapes.like[shape]] >= TRIES:
            continue
        done += 1
        one[0] = task
        place_by_score(STRANDED, board, shapes, price, capacity, jobs, one, mark)
        if jobs.server[task] >= 0:
            continue
        stamp = 0
        if jobs.group[task] >= 0:
            stamp = mark_group(jobs, jobs.group[task], mark)
        near = nearest(board, shapes, price, jobs, task, first, mark, stamp)
        first = (first + LOOKS) % n if n > LOOKS else 0
        sizes = np.full(len(near), np.inf)
        most = min(MOST_MOVED, budget)
        if cost > 0.0:
            most = min(most, int(np.ceil(shapes.worth[shape] / cost)) - 1)
        for i in range(len(near)):
            own = tasks[starts[near[i]] : starts[near[i] + 1]]
            count, size = chosen_moves(board, shapes, price, jobs, task, near[i], own, moved, most, out)
            if count > 0:
                sizes[i] = size
        for _ in range(min(TRIES, len(near))):
            i = int(np.argmin(sizes))
            if sizes[i] == np.inf:
                break
            sizes[i] = np.inf
            own = tasks[starts[near[i]] : starts[near[i] + 1]]
            count, _size = chosen_moves(board, shapes, price, jobs, task, near[i], own, moved, most, out)
            chosen = out[:count].copy()
            if relocated(board, shapes, price, capacity, jobs, task, chosen, mark, True):
                budget -= count
                for other in chosen:
                    moved[other] = True
                break
        if jobs.server[task] < 0:
            tries[shapes.like[shape]] += 1
    return at, first, budget
