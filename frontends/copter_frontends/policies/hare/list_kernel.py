"""The compiled list scheduler; the GPUs of each type are sorted by the time from which they are free."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import njit

from copter_frontends.policies.hare.array_groups import ChunkList, Floats, FreeTimes, Ints, TaskTimes


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return cast("Callable[..., Any]", njit(cache=True, nogil=True, error_model="numpy")(function))


@_compiled
def latest_free(times: Floats, first: int, end: int, ready: float) -> int:
    """Return the GPU that became free last among those free by `ready`; if there are none, the first to become free."""
    low, high = first, end
    while low < high:
        middle = (low + high) // 2
        if times[middle] <= ready:
            low = middle + 1
        else:
            high = middle
    return max(low - 1, first)


@_compiled
def close(values: Any, at: int, last: int, count: int) -> None:
    """Move the entries from `at + count` on to `at`, up to position `last`.

    Positions are unsigned, and a distance of one, the usual one, is written out: then the loop moves several entries at
    a time, four times as fast.
    """
    begin, end, one, many = np.uint64(at), np.uint64(last), np.uint64(1), np.uint64(count)
    if count == 1:
        for k in range(begin, end):
            values[k] = values[k + one]
    else:
        for k in range(begin, end):
            values[k] = values[k + many]


@_compiled
def occupy(times: Floats, gpu: Ints, at: int, count: int, end: int, until: float, held: Ints) -> None:
    """Occupy `count` GPUs until a later time, and keep the times sorted.

    `held` is working memory with room for these GPUs.
    """
    for k in range(count):
        held[k] = gpu[at + k]
    low, high = at + count - 1, end - 1
    while low < high:
        middle = (low + high + 1) // 2
        if times[middle] < until:
            low = middle
        else:
            high = middle - 1
    last = low - count + 1  # first position of the occupied GPUs
    close(times, at, last, count)
    close(gpu, at, last, count)
    for k in range(count):
        times[last + k], gpu[last + k] = until, held[k]


@_compiled
def earliest_finish(ready: float, whole: Floats, train: Floats, top: Floats) -> int:
    """Return the GPU type on which a task is synchronised first (HR19), among equals the faster one.

    `whole` (G,) are the seconds of the task until then, `top` (G,) the times from which the first GPU of each type is
    free, infinite without GPUs.
    """
    best, best_time, best_train = -1, np.inf, np.inf
    for g in range(len(top)):
        finish = max(ready, top[g]) + whole[g]
        if finish < best_time or (finish == best_time and train[g] < best_train):
            best, best_time, best_train = g, finish, train[g]
    return best


@_compiled
def first_free(train: Floats, top: Floats, free: FreeTimes) -> int:
    """Return the GPU type with the GPU that is free first, as in Algorithm 1, line 12 (HR20)."""
    gpu, first = free.gpu, free.first
    best, best_time = -1, np.inf
    for g in range(len(top)):
        if train[g] == np.inf or top[g] == np.inf:
            continue
        if top[g] < best_time or (top[g] == best_time and gpu[first[g]] < gpu[first[best]]):
            best, best_time = g, top[g]
    return best


@_compiled
def list_schedule(
    chunks: ChunkList,
    work: TaskTimes,
    ready: Floats,
    synced: Floats,
    free: FreeTimes,
    paper: bool,
    start: Floats,
    where: Ints,
) -> None:
    """Place the chunks' tasks in order.

    `ready` (N,), the time from which each job's next chunk may start, and `free` are updated. `synced` (N,) is the time
    at which the running tasks of a job's first chunk will have synchronised; the chunk is not done before. Chunk b's
    tasks are written to `start` and `where` (T,) from offset[b] on.
    """
    job, rounds, offset = chunks.job, chunks.rounds, chunks.offset
    tasks, train, sync = chunks.tasks, work.train, work.sync
    times, gpu, first, end = free.times, free.gpu, free.first, free.end
    held = np.empty(max(tasks.max(), 1), dtype=np.int64) if len(tasks) else np.empty(1, dtype=np.int64)
    types = train.shape[1]
    top, whole = np.full(types, np.inf), np.empty(types)
    for g in range(types):
        if end[g] > first[g]:
            top[g] = times[first[g]]
    for b in chunks.order:
        n, count = job[b], float(rounds[b])
        done = max(ready[n], synced[n])
        for g in range(types):
            whole[g] = count * (train[n, g] + sync[n, g])
        k = 0
        while k < tasks[b]:
            g = first_free(train[n], top, free) if paper else earliest_finish(ready[n], whole, train[n], top)
            at = first[g]
            if not paper and top[g] <= ready[n]:
                at = latest_free(times, first[g], end[g], ready[n])
            begin = max(ready[n], times[at])
            until = begin + count * train[n, g] + (count - 1.0) * sync[n, g]
            many = 1
            if not paper and times[at] <= ready[n] and until > ready[n]:  # GPUs that are free earlier are equally good
                many = min(tasks[b] - k, at - first[g] + 1)
            for m in range(many):
                start[offset[b] + k + m], where[offset[b] + k + m] = begin, gpu[at - m]
            done = max(done, begin + whole[g])
            occupy(times, gpu, at - many + 1, many, end[g], until, held)
            top[g] = times[first[g]]
            k += many
        ready[n] = done
