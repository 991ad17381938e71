"""The list scheduler's loop over tasks, compiled: a heap of free times for each GPU type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return cast("Callable[..., Any]", njit(cache=True, nogil=True, error_model="numpy")(function))


@_compiled
def sift_down(times: Floats, gpu: Ints, at: int, first: int, end: int) -> None:
    """Restore the heap of (time, GPU) in [first, end) after the entry at `at` grew."""
    while True:
        child = first + 2 * (at - first) + 1
        if child >= end:
            return
        if child + 1 < end and (
            times[child + 1] < times[child] or (times[child + 1] == times[child] and gpu[child + 1] < gpu[child])
        ):
            child += 1
        if times[at] < times[child] or (times[at] == times[child] and gpu[at] < gpu[child]):
            return
        times[at], times[child] = times[child], times[at]
        gpu[at], gpu[child] = gpu[child], gpu[at]
        at = child


@_compiled
def choose_type(
    ready: float, count: float, train: Floats, sync: Floats, times: Floats, gpu: Ints, first: Ints, end: Ints, paper: bool
) -> int:  # fmt: skip
    """Type of the GPU that a task goes to: earliest finish (H20), or earliest free as Algorithm 1's line 12 (H21)."""
    best, best_time, best_train = -1, np.inf, np.inf
    for g in range(train.shape[0]):
        if train[g] == np.inf or end[g] == first[g]:
            continue
        top = times[first[g]]
        if paper:
            if top < best_time or (top == best_time and gpu[first[g]] < gpu[first[best]]):
                best, best_time = g, top
            continue
        finish = max(ready, top) + count * (train[g] + sync[g])
        if finish < best_time or (finish == best_time and train[g] < best_train):
            best, best_time, best_train = g, finish, train[g]
    return best


@_compiled
def list_schedule(
    order: Ints, job: Ints, rounds: Ints, tasks: Ints, train: Floats, sync: Floats, ready: Floats, times: Floats,
    gpu: Ints, first: Ints, end: Ints, paper: bool, start: Floats, where: Ints, offset: Ints,
) -> None:  # fmt: skip
    """Place the tasks of the chunks in `order` one by one.

    `ready` (N,) is when each job's next chunk may start, kept up to date; `times` and `gpu` are heaps of the GPUs' free
    times, type g in [first[g], end[g]). Chunk b's tasks are written to `start` and `where` from offset[b] on.
    """
    for b in order:
        n, count = job[b], float(rounds[b])
        done = ready[n]
        for k in range(tasks[n]):
            g = choose_type(ready[n], count, train[n], sync[n], times, gpu, first, end, paper)
            top = first[g]
            begin = max(ready[n], times[top])
            start[offset[b] + k], where[offset[b] + k] = begin, gpu[top]
            done = max(done, begin + count * (train[n, g] + sync[n, g]))
            times[top] = begin + count * train[n, g] + (count - 1.0) * sync[n, g]
            sift_down(times, gpu, top, top, end[g])
        ready[n] = done
