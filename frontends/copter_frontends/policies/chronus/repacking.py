"""New leases for decided options: by deadline, in an order improved by failures (papers/chronus.md, C16)."""

from __future__ import annotations

import numpy as np

from copter_frontends.policies.chronus.draft import Draft
from copter_frontends.policies.chronus.options import Bools, Floats, Ints, Options

TRIES = 12  # largest number of orders tried for the jobs of one GPU type
PATIENCE = 2  # after so many tries without a plan that keeps the promises, unpromised jobs are left out
MORE = 2.0  # factor by which the number of GPU-leases left out grows with each further try


def repacked(options: Options, capacity: Ints, row: Ints, dear: Floats) -> Draft:
    """Return a plan with these options of as many jobs as the search can place; the other jobs get no leases.

    Since the GPU type of each job is given, each type is planned by itself. Jobs are placed in the order of their
    deadlines, large jobs first among equals, on the leases with most free GPUs, late ones first. Jobs that find no room
    come first in the next order. If a promised job finds no room repeatedly, unpromised jobs of least worth per
    GPU-lease are left out: as many GPU-leases as promised jobs lack, then twice as many, and so on.

    Parameters
    ----------
    options : Options
    capacity : int64 array (types, leases)
    row : int64 array (jobs,)
        An option for each job, -1 for none.
    dear : float64 array (jobs,)
        Worth of each job; it only decides which jobs are left out first.
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
        """Return the leases of each job, (jobs, leases), of the best plan: fewest broken promises, then most reward."""
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
        """Return the leases of the jobs that are not left out, and how many each lacks; a job that lacks any gets
        none.
        """
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
        """Return the unpromised jobs of least worth that together need this many GPU-leases."""
        others = self.cheap_first[~(self.must | out)[self.cheap_first]]
        size = np.cumsum(self.gpus[others] * self.need[others])
        chosen = np.zeros(len(out), dtype=bool)
        chosen[others[: int(np.searchsorted(size, gpu_leases)) + 1]] = True
        return chosen
