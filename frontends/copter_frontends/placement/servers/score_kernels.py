"""Scores of a shape's next task on a server of a class; the least one is the best. Equation PS4 for copter's own."""

from __future__ import annotations

import numpy as np

from copter_frontends.placement.servers.state_kernels import kernel, room

STRANDED, BEST_FIT, DOT_PRODUCT, FRAGMENTATION, PROTEAN = 0, 1, 2, 3, 4
"""Rules by number; the names are in `schemes.py`."""
BALANCE = 0.5
"""Weight of how much more is free of one dimension than of another."""
REST = 0.25
"""Weight of what a shape leaves over when as many tasks as fit have come; what no task of it can use counts in full."""
FULLER, TIE = 0.05, 1e-3
"""Weight of all that is free on a server in its score, so that fuller servers are taken: while wholly free servers have
a price, and only among servers that strand as little.
"""


@kernel
def fragments(shapes, kind, free, gpu):  # type: ignore[no-untyped-def]
    """Return the expected fragments of FGD: free GPU that the next task, drawn from the shares, cannot use."""
    total, found = 0, 0.0
    for g in range(len(gpu)):
        total += gpu[g]
    if total == 0:
        return 0.0
    for m in range(len(shapes.share)):
        if shapes.share[m] <= 0.0:
            continue
        usable = shapes.gpus[m] > 0 and shapes.allowed[m, kind]
        if not usable or room(shapes.need[m], shapes.gpus[m], shapes.milli[m], free, gpu) == 0:
            found += shapes.share[m] * total
            continue
        for g in range(len(gpu)):
            if gpu[g] < shapes.milli[m]:
                found += shapes.share[m] * gpu[g]
    return found


@kernel
def needs_at(shapes, price, shape):  # type: ignore[no-untyped-def]
    """Return a task's size at prices."""
    last = len(price) - 2
    size = price[last] * shapes.gpus[shape] * shapes.milli[shape]
    for d in range(last):
        size += price[d] * shapes.need[shape, d]
    return size


@kernel
def stranded(shapes, price, capacity, kind, free, gpu):  # type: ignore[no-untyped-def]
    """Return the expected worth, at prices, of what is free and of no use to a shape: all where not one task fits, else
    a part (REST) of what is left over when as many as fit have come; less the last price for a server that is wholly
    free (PS4).
    """
    value, found, last = 0.0, 0.0, len(price) - 2
    most, least = 0.0, np.inf
    for d in range(last):
        value += price[d] * free[d]
        most, least = max(most, price[d] * free[d]), min(least, price[d] * free[d])
    for g in range(len(gpu)):
        value += price[last] * gpu[g]
    whole = True
    for d in range(last):
        whole = whole and free[d] == capacity[kind, d]
    found = BALANCE * (most - least) - (price[last + 1] if whole else 0.0)
    for m in range(len(shapes.share)):
        if shapes.share[m] <= 0.0:
            continue
        fit = 0
        if shapes.allowed[m, kind]:
            fit = room(shapes.need[m], shapes.gpus[m], shapes.milli[m], free, gpu)
        if fit == 0:
            found += shapes.share[m] * value
            continue
        found += shapes.share[m] * REST * (value - needs_at(shapes, price, m) * fit)
    return found


@kernel
def left_over(rule, shapes, price, capacity, kind, free, gpu):  # type: ignore[no-untyped-def]
    """Return what a rule thinks of a server's free amounts; a task's score is by how much it grows."""
    if rule == FRAGMENTATION:
        return fragments(shapes, kind, free, gpu)
    if rule == STRANDED:
        return stranded(shapes, price, capacity, kind, free, gpu)
    return 0.0


@kernel
def simple(rule, shapes, shape, capacity, kind, free, gpu):  # type: ignore[no-untyped-def]
    """Return the score of rules that look at shares of the type's capacity only."""
    found, n, total = 0.0, free.shape[0], 0
    for g in range(len(gpu)):
        total += gpu[g]
    worst, best = 0.0, 1.0
    for d in range(n + 1):
        size = capacity[kind, d]
        if size == 0:
            continue
        have = free[d] / size if d < n else total / size
        need = shapes.need[shape, d] / size if d < n else shapes.gpus[shape] * shapes.milli[shape] / size
        worst, best = max(worst, have - need), min(best, have - need)
        found += have * need if rule == DOT_PRODUCT else have - need
    if rule == DOT_PRODUCT:
        return -found
    if rule == PROTEAN:
        return worst - best + 1e-3 * found
    return found


@kernel
def drawn(state, shape):  # type: ignore[no-untyped-def]
    """Return a number from 0 to 1 that looks random, the same for the same class and shape."""
    key = np.uint64(state * 1_000_003 + shape + 1) * np.uint64(0x9E3779B97F4A7C15)
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.float64(key >> np.uint64(11)) / 9007199254740992.0


@kernel
def best_place(shapes, shape, gpu):  # type: ignore[no-untyped-def]
    """Return the place of the fullest GPU on which a part of a GPU fits."""
    best = 0
    for g in range(len(gpu)):
        if gpu[g] >= shapes.milli[shape]:
            best = g
    return best


@kernel
def score_of(rule, board, shapes, price, capacity, state, shape):  # type: ignore[no-untyped-def]
    """Compute and keep the score and the GPU of a shape on a class; infinity where it does not fit."""
    kind, free, gpu = board.state_kind[state], board.state_free[state], board.state_gpu[state]
    part = shapes.gpus[shape] == 1 and shapes.milli[shape] < 1000
    fits = shapes.allowed[shape, kind]
    if not fits or room(shapes.need[shape], shapes.gpus[shape], shapes.milli[shape], free, gpu) == 0:
        board.score[state, shape] = np.inf
        return np.float32(np.inf)
    place = best_place(shapes, shape, gpu) if part else 0
    if rule in (STRANDED, FRAGMENTATION):
        before = board.left[state]
        if np.isnan(before):
            before = left_over(rule, shapes, price, capacity, kind, free, gpu)
            board.left[state] = before
        rest, cut = board.rest, board.cut
        for d in range(len(free)):
            rest[d] = free[d] - shapes.need[shape, d]
        for g in range(len(gpu)):
            cut[g] = gpu[g]
        found, last = np.inf, -1
        for g in range(len(gpu) if part else 1):
            if part and (gpu[g] < shapes.milli[shape] or gpu[g] == last):
                continue
            if part:
                last = gpu[g]
                cut[g] -= shapes.milli[shape]
            else:
                for h in range(shapes.gpus[shape]):
                    cut[h] = 0
            grown = left_over(rule, shapes, price, capacity, kind, rest, cut) - before
            if part:
                cut[g] += shapes.milli[shape]
            if grown <= found:
                found, place = grown, g if part else 0
        if rule == STRANDED:
            whole = True
            for d in range(len(free)):
                whole = whole and free[d] == capacity[kind, d]
            fuller = FULLER if price[len(free) + 1] > 0.0 else TIE
            if whole:
                fuller = -TIE  # of wholly free servers, which have one price, the largest
            for d in range(len(free)):
                found += fuller * price[d] * free[d]
            for g in range(len(gpu)):
                found += fuller * price[len(free)] * gpu[g]
    else:
        found = simple(rule, shapes, shape, capacity, kind, free, gpu)
    if rule == FRAGMENTATION:  # as published: whole scores of 0 to 100, equal ones in random order
        found = drawn(state, shape) - np.floor(100.0 / (1.0 + np.exp(found / 1000.0)))
    board.score[state, shape] = found
    board.choice[state, shape] = place
    return board.score[state, shape]
