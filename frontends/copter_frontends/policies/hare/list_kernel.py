"""The compiled list scheduler; the GPUs of each type are in the order of the times from which they are free."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from copter_frontends.policies.hare.array_groups import ChunkList, Floats, FreeTimes, Ints, TaskTimes
from copter_frontends.vocabulary.compilation import compiled

BLOCK = 64  # most entries of a block


class Blocks(NamedTuple):
    """GPUs of each type in the order of their free times, in blocks, so that few entries move when one does.

    Attributes
    ----------
    times : float64 array (types, blocks, BLOCK)
    gpu : int64 array (types, blocks, BLOCK)
    size : int64 array (types, blocks)
        Entries of each block.
    upper : float64 array (types, blocks)
        No entry of a block is above it, and none of a later block below it; infinite for a type's last block.
    head, used : int64 arrays (types,)
        First block with an entry, and blocks used.
    """

    times: Floats
    gpu: Ints
    size: Ints
    upper: Floats
    head: Ints
    used: Ints


@compiled
def spread(blocks: Blocks, g: int, times: Floats, gpu: Ints) -> None:
    """Divide a type's GPUs, in order, among its blocks, all of which are at most half full then."""
    half = BLOCK // 2
    used = max(-(-len(times) // half), 1)
    for k in range(used):
        begin, end = k * half, min((k + 1) * half, len(times))
        blocks.times[g, k, : end - begin], blocks.gpu[g, k, : end - begin] = times[begin:end], gpu[begin:end]
        blocks.size[g, k] = end - begin
        blocks.upper[g, k] = times[end - 1] if k < used - 1 else np.inf
    blocks.head[g], blocks.used[g] = 0, used


@compiled
def in_blocks(free: FreeTimes) -> Blocks:
    """Return the GPUs of all types in blocks."""
    types, most = len(free.first), 1
    for g in range(types):
        most = max(most, -(-(free.end[g] - free.first[g]) // (BLOCK // 2)))
    most *= 2  # later times are added more often than early ones: there are blocks for them
    blocks = Blocks(
        np.empty((types, most, BLOCK)),
        np.empty((types, most, BLOCK), dtype=np.int64),
        np.zeros((types, most), dtype=np.int64),
        np.full((types, most), np.inf),
        np.zeros(types, dtype=np.int64),
        np.ones(types, dtype=np.int64),
    )
    for g in range(types):
        own = slice(free.first[g], free.end[g])
        spread(blocks, g, free.times[own], free.gpu[own])
    return blocks


@compiled
def gathered(blocks: Blocks, g: int, times: Floats, gpu: Ints) -> None:
    """Write a type's GPUs in order to two arrays."""
    at = 0
    for k in range(blocks.used[g]):
        count = blocks.size[g, k]
        times[at : at + count], gpu[at : at + count] = blocks.times[g, k, :count], blocks.gpu[g, k, :count]
        at += count


@compiled
def latest_free(blocks: Blocks, g: int, ready: float) -> tuple[int, int]:
    """Return block and place of the GPU that became free last among those free by `ready`, of which there is one."""
    low, high = blocks.head[g], blocks.used[g] - 1
    while low < high:  # the first block that may have a later one
        middle = (low + high) // 2
        if blocks.upper[g, middle] > ready:
            high = middle
        else:
            low = middle + 1
    place = blocks.size[g, low] - 1
    while place < 0 or blocks.times[g, low, place] > ready:
        place -= 1
        if place < 0:
            low -= 1
            place = blocks.size[g, low] - 1
    return low, place


@compiled
def take(blocks: Blocks, g: int, block: int, place: int) -> int:
    """Remove a GPU; returns its number."""
    times, gpu = blocks.times[g, block], blocks.gpu[g, block]
    taken: int = gpu[place]
    blocks.size[g, block] -= 1
    one = np.uint64(1)
    for k in range(np.uint64(place), np.uint64(blocks.size[g, block])):  # unsigned: several entries at a time
        times[k] = times[k + one]
        gpu[k] = gpu[k + one]
    return taken


@compiled
def put(blocks: Blocks, g: int, until: float, number: int) -> None:
    """Add a GPU that is free from a time on, before those that are free from the same time on."""
    low, high = 0, blocks.used[g] - 1
    while low < high:
        middle = (low + high) // 2
        if blocks.upper[g, middle] >= until:
            high = middle
        else:
            low = middle + 1
    times, gpu = blocks.times[g, low], blocks.gpu[g, low]
    place, one = np.uint64(blocks.size[g, low]), np.uint64(1)
    while place > np.uint64(0) and times[place - one] >= until:
        times[place], gpu[place] = times[place - one], gpu[place - one]
        place -= one
    times[place], gpu[place] = until, number
    blocks.size[g, low] += 1
    blocks.head[g] = min(blocks.head[g], low)
    while blocks.size[g, blocks.head[g]] == 0:
        blocks.head[g] += 1
    if blocks.size[g, low] == BLOCK:
        make_room(blocks, g, low)


@compiled
def make_room(blocks: Blocks, g: int, block: int) -> None:
    """Halve a full block: the last one into a block that is not used, any other with all blocks of its type."""
    half, after = BLOCK // 2, block + 1
    if after == blocks.used[g] and after < blocks.size.shape[1]:
        blocks.times[g, after, :half], blocks.gpu[g, after, :half] = (
            blocks.times[g, block, half:],
            blocks.gpu[g, block, half:],
        )
        blocks.size[g, block], blocks.size[g, after], blocks.used[g] = half, half, after + 1
        blocks.upper[g, block], blocks.upper[g, after] = blocks.times[g, block, half - 1], np.inf
        return
    count = blocks.size[g, : blocks.used[g]].sum()
    times, gpu = np.empty(count), np.empty(count, dtype=np.int64)
    gathered(blocks, g, times, gpu)
    spread(blocks, g, times, gpu)


@compiled
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


@compiled
def first_free(train: Floats, top: Floats, blocks: Blocks) -> int:
    """Return the GPU type with the GPU that is free first, as in Algorithm 1, line 12 (HR20)."""
    best, best_time, best_gpu = -1, np.inf, -1
    for g in range(len(top)):
        if train[g] == np.inf or top[g] == np.inf:
            continue
        number = blocks.gpu[g, blocks.head[g], 0]
        if top[g] < best_time or (top[g] == best_time and number < best_gpu):
            best, best_time, best_gpu = g, top[g], number
    return best


@compiled
def list_schedule(
    chunks: ChunkList,
    work: TaskTimes,
    ready: Floats,
    synced: Floats,
    free: FreeTimes,
    paper: bool,
    start: Floats,
    end: Floats,
    synced_at: Floats,
    where: Ints,
) -> None:
    """Place the chunks' tasks in order.

    `ready` (N,), the time from which each job's next chunk may start, and `free` are updated. `synced` (N,) is the time
    at which the running tasks of a job's first chunk will have synchronised; the chunk is not done before. Chunk b's
    tasks are written to `start`, `end`, `synced_at` and `where` (T,) from offset[b] on.
    """
    job, rounds, offset = chunks.job, chunks.rounds, chunks.offset
    tasks, train, sync = chunks.tasks, work.train, work.sync
    types, blocks = train.shape[1], in_blocks(free)
    top, whole = np.full(types, np.inf), np.empty(types)
    for g in range(types):
        if free.end[g] > free.first[g]:
            top[g] = free.times[free.first[g]]
    for b in chunks.order:
        n, count = job[b], float(rounds[b])
        done = max(ready[n], synced[n])
        for g in range(types):
            whole[g] = count * (train[n, g] + sync[n, g])
        for k in range(offset[b], offset[b] + tasks[b]):
            g = first_free(train[n], top, blocks) if paper else earliest_finish(ready[n], whole, train[n], top)
            block, place = blocks.head[g], 0
            if not paper and top[g] <= ready[n]:
                block, place = latest_free(blocks, g, ready[n])
            begin = max(ready[n], blocks.times[g, block, place])
            start[k], where[k] = begin, take(blocks, g, block, place)
            done = max(done, begin + whole[g])
            end[k] = begin + count * train[n, g] + (count - 1.0) * sync[n, g]
            synced_at[k] = end[k] + sync[n, g]
            put(blocks, g, end[k], where[k])
            top[g] = blocks.times[g, blocks.head[g], 0]
        ready[n] = done
    for g in range(types):
        own = slice(free.first[g], free.end[g])
        gathered(blocks, g, free.times[own], free.gpu[own])
