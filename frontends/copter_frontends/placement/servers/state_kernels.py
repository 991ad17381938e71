"""Kernels of the classes: a server enters or leaves a class, a task enters or leaves a server."""

from __future__ import annotations

import numba
import numpy as np
from numba.core.cpu import CPUTargetOptions

kernel = numba.njit(cache=True, **({"_nrt": False} if hasattr(CPUTargetOptions, "_nrt") else {}))
"""Decorator of kernels that make no arrays. Numba counts the references to every array at each call and each row that
is read, though none can go while a kernel runs (numba issue 2350); small kernels spend most of their time on that. The
option is not public: a numba without it counts.
"""
UNLIMITED = 1 << 40


@kernel
def room(need, gpus, milli, free, gpu):  # type: ignore[no-untyped-def]
    """Return how many tasks of a shape fit in the free amounts."""
    most = UNLIMITED
    for d in range(len(need)):
        if need[d] > free[d]:  # before any division: most shapes fit on few servers
            return 0
    for d in range(len(need)):
        if need[d] > 0:
            most = min(most, free[d] // need[d])
    if gpus > 0:
        found = 0
        for g in range(len(gpu)):
            found += gpu[g] // milli
        most = min(most, found // gpus)
    return most


@kernel
def sorted_gpus(gpu, into):  # type: ignore[no-untyped-def]
    """Write GPUs in decreasing order of what is free."""
    for g in range(len(gpu)):
        at = g
        while at > 0 and into[at - 1] < gpu[g]:
            into[at] = into[at - 1]
            at -= 1
        into[at] = gpu[g]


@kernel
def state_of(board, kind, free, gpu):  # type: ignore[no-untyped-def]
    """Return the class of this state, made if there is none."""
    key = np.uint64(kind + 1)
    for d in range(len(free)):
        key = (key ^ np.uint64(free[d])) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    for g in range(len(gpu)):
        key = (key ^ np.uint64(gpu[g])) * np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(32)
    mask = len(board.slots) - 1
    at = np.int64(key & np.uint64(mask))
    while board.slots[at] >= 0:
        state = board.slots[at]
        same = board.state_kind[state] == kind
        for d in range(len(free)):
            same = same and board.state_free[state, d] == free[d]
        for g in range(len(gpu)):
            same = same and board.state_gpu[state, g] == gpu[g]
        if same:
            return state
        at = (at + 1) & mask
    state = board.made[0]
    board.made[0] += 1
    board.slots[at] = state
    board.state_kind[state] = kind
    for d in range(len(free)):
        board.state_free[state, d] = free[d]
    for g in range(len(gpu)):
        board.state_gpu[state, g] = gpu[g]
    return state


@kernel
def leave(board, server):  # type: ignore[no-untyped-def]
    """Take a server out of its class."""
    state = board.state[server]
    if state < 0:
        return
    after, before = board.after[server], board.before[server]
    if before >= 0:
        board.after[before] = after
    else:
        board.state_head[state] = after
    if after >= 0:
        board.before[after] = before
    board.state_count[state] -= 1
    board.state[server] = -1


@kernel
def enter(board, server):  # type: ignore[no-untyped-def]
    """Put a server that takes tasks into the class of its state; returns the class, or -1."""
    if board.status[server] != 0:
        return -1
    sorted_gpus(board.gpu[server], board.ordered)
    state = state_of(board, board.kind[server], board.free[server], board.ordered)
    first = board.state_head[state]
    board.after[server], board.before[server], board.state[server] = first, -1, state
    if first >= 0:
        board.before[first] = server
    board.state_head[state] = server
    board.state_count[state] += 1
    return state


@kernel
def enter_all(board):  # type: ignore[no-untyped-def]
    """Put every server into its class; the first ones come first in their lists."""
    for server in range(len(board.kind) - 1, -1, -1):
        enter(board, server)


@kernel
def shift(board, shapes, server, shape, bits, sign):  # type: ignore[no-untyped-def]
    """Put a task with these GPUs (as bits) on a server (sign -1), or take it off (sign 1)."""
    leave(board, server)
    for d in range(board.free.shape[1]):
        board.free[server, d] += sign * shapes.need[shape, d]
    for g in range(board.gpu.shape[1]):
        if bits >> g & 1:
            board.gpu[server, g] += sign * shapes.milli[shape]
    board.running[server] -= sign
    enter(board, server)


@kernel
def domain(jobs, group, server):  # type: ignore[no-untyped-def]
    """Return what the group's limit holds for: the server, or after all servers its zone."""
    return len(jobs.zone) + jobs.zone[server] if jobs.zonal[group] > 0 else server


@kernel
def change(shapes, free, gpu, shape, bits, sign):  # type: ignore[no-untyped-def]
    """Add a task's amounts to what is free, or take them away."""
    for d in range(len(free)):
        free[d] += sign * shapes.need[shape, d]
    for g in range(len(gpu)):
        if bits >> g & 1:
            gpu[g] += sign * shapes.milli[shape]


@kernel
def take(board, shapes, server, shape, place):  # type: ignore[no-untyped-def]
    """Put a task on a server; `place` says which GPU, in the class's order; returns the GPUs as bits."""
    bits, left, milli = 0, shapes.gpus[shape], shapes.milli[shape]
    if left > 0:
        value = board.state_gpu[board.state[server], place] if milli < 1000 else 1000
        for g in range(board.gpu.shape[1]):
            if left > 0 and board.gpu[server, g] == value:
                bits |= 1 << g
                left -= 1
    shift(board, shapes, server, shape, bits, -1)
    return bits


@kernel
def depart(board, shapes, tasks, shape, server, bits):  # type: ignore[no-untyped-def]
    """Take running tasks off their servers; the arrays are those of all tasks."""
    for task in tasks:
        if server[task] >= 0:
            shift(board, shapes, server[task], shape[task], bits[task], 1)
            server[task] = -1


@kernel
def put_back(board, shapes, jobs, tasks, server, bits):  # type: ignore[no-untyped-def]
    """Put tasks on the servers and GPUs that they had; -1 is none."""
    for at in range(len(tasks)):
        if server[at] >= 0:
            shift(board, shapes, server[at], jobs.shape[tasks[at]], bits[at], -1)
            jobs.server[tasks[at]], jobs.bits[tasks[at]] = server[at], bits[at]
