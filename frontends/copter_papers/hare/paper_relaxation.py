"""The paper's own relaxation (9) for a given assignment, and its order H_i (docs/papers/hare.md, HR22)."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from copter import LinearProgram, solve
from copter.runtime.errors import CopterError
from copter_frontends.policies.hare.chunks import Chunks
from copter_frontends.policies.hare.instance import Floats, HareInstance, Ints


def paper_program(instance: HareInstance, chunks: Chunks, share: Floats) -> LinearProgram:
    """Return the program of (4), (6), (7) and (9) for the set of all tasks, with the types of tasks given.

    With a fixed assignment the products of (9) are linear in the starts. The GPUs of a type are alike, so that each
    gets the same part of the type's tasks. Columns: the common start of each chunk's tasks, then C.

    Parameters
    ----------
    share : ndarray (N, G)
        Share of each job's tasks on each type.
    """
    count, jobs = len(chunks), instance.n_jobs
    usable = np.isfinite(instance.train_s)
    train, sync = np.where(usable, instance.train_s, 0.0), instance.sync_s
    times = chunks.rounds[:, None] * train[chunks.job] + (chunks.rounds[:, None] - 1) * sync[chunks.job]
    whole = times + sync[chunks.job]
    spent = (share[chunks.job] * whole).sum(axis=1)  # mean time of a task in (6) and (7), sum_m y T
    last = np.append(chunks.job[1:] != chunks.job[:-1], True)
    step = np.flatnonzero(~last)
    ends = np.flatnonzero(last)
    rows = [np.repeat(np.arange(len(step)), 2), len(step) + np.repeat(np.arange(jobs), 2)]
    columns = [np.stack((step, step + 1), axis=1).ravel(), np.stack((ends, count + chunks.job[ends]), axis=1).ravel()]
    values = [np.tile([-1.0, 1.0], len(step)), np.tile([-1.0, 1.0], jobs)]
    lower = [spent[step], spent[ends]]
    load = share[chunks.job] * instance.tasks[chunks.job][:, None] * times  # (B, G) GPU seconds
    for g, gpus in enumerate(instance.gpus.tolist()):
        mine = np.flatnonzero(load[:, g] > 0.0)
        if len(mine):
            rows.append(np.full(len(mine), len(step) + jobs + g))
            columns.append(mine)
            values.append(load[mine, g])
            squares = float((load[mine, g] * times[mine, g]).sum())
            total = float(load[mine, g].sum())
            lower.append(np.array([0.5 * (total**2 / gpus + squares) - squares]))
        else:
            lower.append(np.zeros(1))
    height = len(step) + jobs + len(instance.gpus)
    matrix = sp.csc_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(height, count + jobs)
    )
    cost = np.concatenate((np.zeros(count), instance.weight))
    low = np.concatenate((instance.arrival_s[chunks.job], instance.arrival_s))
    return LinearProgram(cost, matrix, np.concatenate(lower), None, low)


def paper_order(instance: HareInstance, chunks: Chunks, share: Floats) -> Ints:
    """Order chunks by H_i from (9)'s starts, the largest middle on any usable type; a job's rounds stay in order.

    Raises
    ------
    CopterError
        If the program is not solved.
    """
    solution = solve(paper_program(instance, chunks, share))
    if not solution.status.value == "optimal":
        raise CopterError(f"the paper's relaxation ended {solution.status.value}")
    train = np.where(np.isfinite(instance.train_s), instance.train_s, 0.0).max(axis=1)
    sync = instance.sync_s.max(axis=1)
    half = 0.5 * (chunks.rounds * train[chunks.job] + (chunks.rounds - 1) * sync[chunks.job])
    key = solution.x[: len(chunks)] + half
    for first, end in zip(chunks.first[:-1].tolist(), chunks.first[1:].tolist(), strict=True):
        # a shorter last chunk must not overtake the previous chunk
        key[first:end] = np.maximum.accumulate(key[first:end])
    return np.lexsort((np.arange(len(chunks)), key)).astype(np.int64)


def shares_of(instance: HareInstance, gpu_seconds: Floats) -> Floats:
    """Return the share of each job's tasks on each type, (N, G), at a point (N, L, G) of the relaxation."""
    train = np.where(np.isfinite(instance.train_s), instance.train_s, np.inf)
    done = gpu_seconds.sum(axis=1) / train
    return np.asarray(done / np.maximum(done.sum(axis=1, keepdims=True), 1e-300))
