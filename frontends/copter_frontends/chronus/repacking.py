"""Leases given anew where options are settled: by deadline, in an order that learns (papers/chronus.md, C16)."""

from __future__ import annotations

import numpy as np

from copter_frontends.chronus.draft import Draft
from copter_frontends.chronus.options import Bools, Floats, Ints, Options

TRIES = 12  # orders that are tried for the jobs of one GPU type
PATIENCE = 2  # tries without a plan that keeps the promises, after which unpromised jobs begin to be left out
MORE = 2.0  # times as many GPU-leases are left out after each further try


def repacked(options: Options, capacity: Ints, row: Ints, dear: Floats) -> Draft:
    """Return a plan of these options with as many jobs as the search can place; the others get no leases.

    Once each job has its GPU type, types do not meet. In one type jobs take the leases with most free GPUs, late ones
    first, in the order of their deadlines, the large ones first among equals. Those that find no room go to the front
    of the next order. Where a promised job is among them again and again, unpromised jobs are left out, those of the
    least worth for their GPU-leases first: as many as the promised one lacks, then twice as many, and so on.

    Parameters
    ----------
    options : Options
    capacity : int64 array (types, leases)
    row : int64 array (jobs,)
        An option for each job, -1 for none.
    dear : float64 array (jobs,)
        What a job is worth; only to say which is left out first.
    """
    draft = Draft(options, capacity)
    for kind in range(len(capacity)):
        jobs = np.flatnonzero((row >= 0) & (options.kind[row] == kind))
        if len(jobs):
            found = _Type(options, capacity[kind], jobs, row[jobs], dear[jobs]).best()
            has = np.flatnonzero(found.any(axis=1))
            draft.put_all(row[jobs[has]], found[has])
    return draft


class _Type:
    """Jobs of one GPU type with one option each."""

    def __init__(self, options: Options, capacity: Ints, jobs: Ints, row: Ints, dear: Floats) -> None:
        self.capacity, self.must = capacity, options.must[jobs]
        self.gpus, self.need, self.last = options.gpus[row], options.need[row], options.last[row]
        self.value = options.value[row]
        self.cheap_first = np.argsort(dear / (self.gpus * self.need), kind="stable")

    def best(self) -> Bools:
        """Leases of each job, (jobs, leases): the fewest promised jobs without any, then the most reward."""
        front, out = np.zeros(len(self.gpus), dtype=np.int64), np.zeros(len(self.gpus), dtype=bool)
        best, key, more = np.zeros((len(front), len(self.capacity)), dtype=bool), (len(front) + 1, 0.0), 1.0
        for attempt in range(TRIES):
            taken, lacks = self.placed(front, out)
            failed = lacks > 0
            now = (int((failed & self.must).sum()), -float(self.value[~failed & ~out].sum()))
            if now < key:
                best, key = taken, now
            if not failed.any() or (key[0] == 0 and attempt >= PATIENCE):
                break
            front[failed] += 1
            if now[0] and attempt >= PATIENCE:
                out |= self.left_out(out, more * float((self.gpus * lacks)[self.must].sum()))
                more *= MORE
        return best

    def placed(self, front: Ints, out: Bools) -> tuple[Bools, Ints]:
        """Return the leases of the remaining jobs and how many leases each lacks; jobs that lack any get none."""
        free, horizon = self.capacity.copy(), len(self.capacity)
        taken, lacks = np.zeros((len(self.gpus), horizon), dtype=bool), np.zeros(len(self.gpus), dtype=np.int64)
        order = np.lexsort((-self.need, -self.gpus, self.last, -front))
        table = np.stack((self.gpus, self.need, self.last), axis=1)[order].tolist()
        for job, (gpus, need, last) in zip(order.tolist(), table, strict=True):
            if out[job]:
                continue
            own = free[:last]
            room = int(np.count_nonzero(own >= gpus))
            if room < need:
                lacks[job] = need - room
                continue
            at = last - 1 - np.argsort(-own[::-1], kind="stable")[:need] if need < last else slice(0, last)
            free[at] -= gpus
            taken[job, at] = True
        return taken, lacks

    def left_out(self, out: Bools, gpu_leases: float) -> Bools:
        """Return the unpromised jobs of least worth that together have this many GPU-leases."""
        others = self.cheap_first[~(self.must | out)[self.cheap_first]]
        size = np.cumsum(self.gpus[others] * self.need[others])
        chosen = np.zeros(len(out), dtype=bool)
        chosen[others[: int(np.searchsorted(size, gpu_leases)) + 1]] = True
        return chosen
