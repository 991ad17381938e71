"""Quotes: the earliest deadline that could be promised now, by GPU type and number of GPUs (chronus.md, C7)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from copter_frontends.policies.chronus.job_book import Now, SloBook
from copter_frontends.policies.chronus.mode import Mode
from copter_frontends.policies.chronus.options import Floats, Ints

FARTHEST = 100_000  # a quote considers at most so many leases ahead


@dataclass(frozen=True, slots=True)
class Quote:
    """An offer that reserves nothing.

    Attributes
    ----------
    gpu_type : str
    gpus : int
    ends_s : float
        The earliest time by which the job's end can be promised, in seconds of the policy's clock.
    in_s : float
        The same, in seconds from now.
    leases : int
        Number of leases; the rest of the current lease counts as one.
    gpu_leases : int
        GPUs, rounded up to a size that consolidates, times leases.
    price : float
        Price of these leases in the last linear program, in reward: what other jobs would lose. 0 if no program was
        needed.
    """

    gpu_type: str
    gpus: int
    ends_s: float
    in_s: float
    leases: int
    gpu_leases: int
    price: float


def quote_for(
    mode: Mode,
    gpu_type: str,
    done: float,
    book: SloBook,
    capacity: Ints,
    first: int,
    now_s: float,
    prices: Floats | None,
    now: Now | None,
) -> Quote | None:
    """Return the earliest end in one mode; None if the job never fits.

    Parameters
    ----------
    mode : Mode
    gpu_type : str
        Name of the mode's GPU type.
    done : float
        Fraction of the job's time that has passed.
    book : SloBook
        It is read, not changed.
    capacity : int64 array (types,)
        GPUs of each type that promises may use.
    first : int
        The first lease that can be given.
    now_s : float
    prices : float64 array (types, leases), optional
        Prices of a GPU in the leases from `first` on.
    now : Now, optional
        The rest of the current lease.
    """
    grid, restart_s = book.grid, max(book.grid.restart_s, mode.restart_s)
    train_s, left_s = grid.lease_s - restart_s, mode.total_s * (1.0 - done)
    if train_s <= 0 or mode.taken > capacity[mode.kind]:
        return None
    at_once = now is not None and now.free[mode.kind] >= mode.taken and now.seconds > restart_s
    found: list[Quote] = []
    for joins in (False, True) if at_once else (False,):
        rest_s = left_s
        if joins and now is not None:
            if left_s + restart_s <= now.seconds:
                ends_s = now.begins_s + restart_s + left_s
                found.append(Quote(gpu_type, mode.gpus, ends_s, ends_s - now_s, 1, mode.taken, 0.0))
                continue
            rest_s = left_s - (now.seconds - restart_s)
        need = max(int(np.ceil(rest_s / train_s - 1e-9)), 1)
        horizon = min(max(book.end - first, 0) + need, FARTHEST)
        used = book.promised_gpus(len(capacity), first, horizon)[mode.kind]
        roomy = np.flatnonzero(capacity[mode.kind] - used >= mode.taken)[:need]
        if len(roomy) < need:
            continue
        ends_s = (first + int(roomy[-1])) * grid.lease_s + restart_s + rest_s - (need - 1) * train_s
        known = roomy[roomy < prices.shape[1]] if prices is not None else roomy[:0]
        price = mode.taken * float(prices[mode.kind, known].sum()) if prices is not None else 0.0
        leases = need + joins
        found.append(Quote(gpu_type, mode.gpus, ends_s, ends_s - now_s, leases, leases * mode.taken, price))
    return min(found, key=lambda each: (each.ends_s, each.gpu_leases), default=None)
