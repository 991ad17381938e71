"""The lease programs as explicit LPs: the compact cumulative form and one block per deadline (docs/papers/chronus.md,
C8).

:mod:`copter_frontends.policies.chronus.formulation` decomposes these programs; tests and benchmarks solve them
undecomposed.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from copter import LinearProgram
from copter_frontends.policies.chronus.options import Floats, Ints, Options

Entries = tuple[list[int], list[int], list[float]]


def per_deadline_form(options: Options, capacity: Ints, whole: bool = True) -> LinearProgram:
    """One block of leases per (job, mode, deadline), as in the paper's artifact: x_ipk = 1 uses lease k for deadline p.

    max sum V s; sum_k x_ipk = RL s_ip; x_ipk <= s_ip; sum_p s_ip <= 1 (= 1 with a promise); sum G x <= M.
    """
    return _form(options, capacity, np.arange(len(options.job)), whole, False)


def compact_form(options: Options, capacity: Ints, whole: bool = True, vub: bool = True) -> LinearProgram:
    """One block of leases per (job, mode), with a cumulative row per deadline, and optional variable upper bounds (C8).

    max sum V s; sum_k x_ik = RL sum_p s_ip; sum_{k <= DL_p} x_ik >= RL sum_{q <= p} s_iq;
    x_ik <= sum_{p: DL_p >= k} s_ip (`vub`); sum_p s_ip <= 1 (= 1 with a promise); sum G x <= M.
    """
    return _form(options, capacity, lease_blocks(options), whole, True, vub)


def lease_blocks(options: Options) -> Ints:
    """Return the number of each option's block of lease variables, one per job and mode."""
    block = np.zeros(len(options.job), dtype=np.int64)
    block[1:] = np.cumsum((np.diff(options.job) != 0) | (np.diff(options.mode) != 0))
    return block


def _form(
    options: Options, capacity: Ints, block: Ints, whole: bool, cumulative: bool, vub: bool = True
) -> LinearProgram:
    """Columns: s by row of the options, then x by (block, lease). Rows: jobs, totals, deadlines, bounds, capacity."""
    rows, horizon = len(options.job), capacity.shape[1]
    blocks = int(block.max(initial=-1)) + 1
    first = np.searchsorted(block, np.arange(blocks))
    longest = np.zeros(blocks, dtype=np.int64)
    np.maximum.at(longest, block, options.last)
    parts: list[tuple[Floats | Ints, Ints, Floats]] = []
    x_at = rows + np.arange(blocks)[:, None] * horizon + np.arange(horizon)[None, :]
    inside = np.arange(horizon)[None, :] < longest[:, None]
    own, lease = np.nonzero(inside)
    row = 0
    lower: list[Floats] = []
    upper: list[Floats] = []

    def add(at: Ints, column: Ints, value: Floats) -> None:
        parts.append((at + row, column, np.asarray(value, dtype=np.float64)))

    def close(low: Floats, high: Floats) -> int:
        lower.append(np.asarray(low, dtype=np.float64))
        upper.append(np.asarray(high, dtype=np.float64))
        return row + len(low)

    add(options.job, np.arange(rows), np.ones(rows))
    row = close(np.where(options.must, 1.0, 0.0), np.ones(options.jobs))
    add(own, x_at[own, lease], np.ones(len(own)))
    add(block, np.arange(rows), -options.need.astype(np.float64))
    row = close(np.zeros(blocks), np.zeros(blocks))
    if cumulative:
        for which in range(rows):  # sum_{k <= DL_p} x >= RL sum_{q <= p} s_q; deadlines are in order in a block
            b = int(block[which])
            leases = np.arange(options.last[which])
            add(np.zeros(len(leases), dtype=np.int64), x_at[b, leases], np.ones(len(leases)))
            before = np.arange(first[b], which + 1)
            add(np.zeros(len(before), dtype=np.int64), before, -np.full(len(before), float(options.need[which])))
            row = close(np.zeros(1), np.full(1, np.inf))
    if vub or not cumulative:
        order = np.full((blocks, horizon), -1, dtype=np.int64)
        order[own, lease] = np.arange(len(own))
        add(order[own, lease], x_at[own, lease], np.ones(len(own)))
        for which in range(rows):
            reach = order[block[which], : options.last[which]]
            add(reach, np.full(len(reach), which), -np.ones(len(reach)))
        row = close(np.full(len(own), -np.inf), np.zeros(len(own)))
    kind, gpus = options.kind[first][own], options.gpus[first][own]
    add(kind * horizon + lease, x_at[own, lease], gpus.astype(np.float64))
    row = close(np.full(capacity.size, -np.inf), capacity.ravel().astype(np.float64))
    return _program(options, parts, lower, upper, rows + blocks * horizon, inside, whole)


def _program(
    options: Options,
    parts: list[tuple[Floats | Ints, Ints, Floats]],
    lower: list[Floats],
    upper: list[Floats],
    columns: int,
    inside: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
    whole: bool,
) -> LinearProgram:
    low, high = np.concatenate(lower), np.concatenate(upper)
    at, column, value = (np.concatenate([part[i] for part in parts]) for i in range(3))
    matrix = sp.csc_array((value, (at, column)), shape=(len(low), columns))
    cost = np.zeros(columns)
    cost[: len(options.value)] = options.value
    top = np.concatenate([np.ones(len(options.value)), inside.ravel().astype(np.float64)])
    integrality = np.full(columns, int(whole), dtype=np.int64)
    return LinearProgram(cost, matrix, low, high, np.zeros(columns), top, integrality, "max")
