"""The compiled steps of the two-objective genetic search (docs/papers/baselines.md, B30 and B31)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Dice = NDArray[np.uint64]

FLOOR = 1e-3  # added to every speedup, so that means with a negative power are defined
CROSSED = 0.9  # share of the pairs that exchange jobs
BACK_TO_BASE, THINNED = 0.1, 0.1  # shares of a child's jobs that mutation resets to the current GPUs, and thins out
LOST = 0.1  # share of a thinned job's nodes that it loses
TRIES = 20  # most attempts to make a child that differs from all others

_compile: Callable[..., Any] = njit(cache=True, nogil=True)


@_compile
def draw(dice: Dice) -> float:
    """Return a random number in [0, 1) (xorshift64*) and advance the nonzero state."""
    x = dice[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    dice[0] = x
    return float((x * np.uint64(0x2545F4914F6CDD1D)) >> np.uint64(11)) / 9007199254740992.0


@_compile
def keep_one_type(state: Ints, kind: Ints, rank: Ints, runs: NDArray[np.bool_]) -> None:
    """Keep, for every job (row), only the GPUs of its most frequent type, ties to the lowest rank (B29); in place."""
    jobs, nodes = state.shape
    totals = np.zeros(len(rank), np.int64)
    for j in range(jobs):
        totals[:] = 0
        for v in range(nodes):
            if runs[j, kind[v]]:
                totals[kind[v]] += state[j, v]
        best = 0
        for k in range(1, len(rank)):
            if totals[k] > totals[best] or (totals[k] == totals[best] and rank[k] < rank[best]):
                best = k
        for v in range(nodes):
            if kind[v] != best or not runs[j, best]:
                state[j, v] = 0


@_compile
def repair(state: Ints, room: Ints, least: Ints, most: Ints, dice: Dice) -> None:
    """Make an individual feasible, earlier jobs first (B31); in place."""
    jobs, nodes = state.shape
    seen = np.zeros(nodes, np.int64)  # split jobs on each node
    for j in range(jobs):
        wide = 0
        for v in range(nodes):
            wide += state[j, v] > 0
        for v in range(nodes):
            if wide > 1 and state[j, v] > 0:
                seen[v] += 1
            if seen[v] > 1:
                state[j, v] = 0
    left = room.copy()
    for j in range(jobs):
        _cut(state[j], most[j], dice)
        gpus = 0
        for v in range(nodes):
            state[j, v] = min(state[j, v], left[v])
            left[v] -= state[j, v]
            gpus += state[j, v]
        if gpus < least[j]:
            for v in range(nodes):
                state[j, v] = 0


@_compile
def _cut(row: Ints, most: int, dice: Dice) -> None:
    """Reduce a job to at most `most` GPUs, visiting its nodes in random order; in place."""
    nodes, gpus = len(row), 0
    for v in range(nodes):
        gpus += row[v]
    if gpus <= most:
        return
    order = np.arange(nodes)
    for at in range(nodes):
        other = at + int(draw(dice) * (nodes - at))
        order[at], order[other] = order[other], order[at]
        v = order[at]
        row[v] = min(row[v], most)
        most -= row[v]


@_compile
def evaluate(
    state: Ints, base: Ints, room: Ints, size: int, speedup: Floats, factor: Floats, power: float
) -> tuple[float, float]:
    """Return both objectives: the power mean of the speedups, and their sum over the GPUs of used nodes (B30)."""
    jobs, nodes = state.shape
    mean = whole = 0.0
    busy = np.zeros(nodes, np.int64)
    for j in range(jobs):
        wide = gpus = changed = 0
        for v in range(nodes):
            here = int(state[j, v])
            gpus += here
            wide += here > 0
            changed |= here ^ int(base[j, v])
            busy[v] |= here
        value = speedup[j, min(wide, 2), gpus]
        whole += value
        scaled = value * (factor[j] if changed else 1.0) / size + FLOOR
        mean += 1.0 / scaled if power == -1.0 else scaled**power
    active = 0
    for v in range(nodes):
        active += room[v] if busy[v] else 0
    return (mean / jobs) ** (1.0 / power), (whole / active if active else 0.0)


@_compile
def mutate(state: Ints, base: Ints, room: Ints, dice: Dice) -> None:
    """Reset some jobs to their current GPUs, thin out some, and grow some into free GPUs (B31); in place."""
    jobs, nodes = state.shape
    for j in range(jobs):
        if draw(dice) < BACK_TO_BASE:
            for v in range(nodes):
                state[j, v] = base[j, v]
        if draw(dice) < THINNED:
            for v in range(nodes):
                if draw(dice) < LOST:
                    state[j, v] = 0
    used, there = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    for j in range(jobs):
        for v in range(nodes):
            used[v] += state[j, v]
            there[v] += state[j, v] > 0
    anyone = 1.0 / jobs
    for v in range(nodes):
        if used[v] >= room[v]:
            continue
        chance = anyone + (1.0 - anyone) / max(there[v], 1)
        for j in range(jobs):
            if draw(dice) < (chance if state[j, v] > 0 else anyone):
                state[j, v] += int(draw(dice) * (room[v] - state[j, v] + 1))


@_compile
def mate(crowd: Ints, values: Floats, spread: Floats, first: Ints, second: Ints, dice: Dice) -> None:
    """Make two children of two tournament winners, possibly exchanging the jobs before a random point (B31); in
    place.
    """
    a, b = _winner(values, spread, dice), _winner(values, spread, dice)
    first[:], second[:] = crowd[a], crowd[b]
    if draw(dice) < CROSSED:
        point = int(draw(dice) * first.shape[0])
        first[:point], second[:point] = crowd[b, :point], crowd[a, :point]


@_compile
def _winner(values: Floats, spread: Floats, dice: Dice) -> int:
    """Return the winner of a tournament of two random individuals: the dominating one, else the less crowded one."""
    a, b = int(draw(dice) * len(values)), int(draw(dice) * len(values))
    if _dominates(values[a], values[b]):
        return a
    if _dominates(values[b], values[a]):
        return b
    if spread[a] != spread[b]:
        return a if spread[a] > spread[b] else b
    return a if draw(dice) < 0.5 else b


@_compile
def _dominates(one: Floats, other: Floats) -> bool:
    if one[0] < other[0] or one[1] < other[1]:
        return False
    return bool(one[0] > other[0] or one[1] > other[1])


@_compile
def mark(state: Ints) -> np.int64:
    """Return a hash of an individual (FNV-1a)."""
    result = np.uint64(14695981039346656037)
    jobs, nodes = state.shape
    for j in range(jobs):
        for v in range(nodes):
            result = (result ^ np.uint64(state[j, v])) * np.uint64(1099511628211)
    return np.int64(result)


@_compile
def survivors(values: Floats, count: int) -> tuple[Ints, Ints, Floats]:
    """Return indices of the `count` best by front, least crowded first in the last front; their fronts and spreads
    (B31).
    """
    order = np.argsort(-values[:, 1], kind="mergesort")
    order = order[np.argsort(-values[order, 0], kind="mergesort")]
    front = np.zeros(len(values), np.int64)  # front of each individual, in this order
    last = np.zeros(len(values), np.int64)  # last member added to each front
    fronts = 0
    for at, i in enumerate(order):
        k, above = 0, fronts  # fronts before k dominate the individual; fronts from `above` on do not
        while k < above:
            middle = (k + above) // 2
            if _dominates(values[last[middle]], values[i]):
                k = middle + 1
            else:
                above = middle
        front[at], last[k] = k, i
        fronts = max(fronts, k + 1)
    by_front = np.argsort(front, kind="mergesort")
    order, front = order[by_front], front[by_front]
    spread = np.zeros(len(values))
    kept = min(count, len(values))
    begin = 0
    while begin < kept:
        end = begin
        while end < len(order) and front[end] == front[begin]:
            end += 1
        _spread_out(values, order[begin:end], spread)
        if end > kept:
            order[begin:end] = order[begin:end][np.argsort(-spread[order[begin:end]], kind="mergesort")]
        begin = end
    return order[:kept], front[:kept], spread[order[:kept]]


@_compile
def _spread_out(values: Floats, members: Ints, spread: Floats) -> None:
    """Compute, for each member of a front, its neighbours' distance relative to the front's extent; duplicates get
    0.
    """
    known = np.empty(len(members), np.int64)
    n = 0
    for i in members:
        if n == 0 or values[i, 0] != values[known[n - 1], 0] or values[i, 1] != values[known[n - 1], 1]:
            known[n] = i
            n += 1
    extent = np.abs(values[known[0]] - values[known[n - 1]])
    for at in range(n):
        if at == 0 or at == n - 1:
            spread[known[at]] = np.inf
            continue
        gap = np.abs(values[known[at - 1]] - values[known[at + 1]])
        for k in range(2):
            spread[known[at]] += gap[k] / extent[k] / 2 if extent[k] > 0 else 0.0
