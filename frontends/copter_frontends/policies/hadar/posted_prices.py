"""The paper's price function (5)-(8) with corrected units (docs/papers/hadar.md, H17)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from copter_frontends.policies.hadar.job_book import Floats, Ints, JobBook
from copter_frontends.policies.hadar.round_values import RoundTerms, RoundValues, job_states
from copter_frontends.policies.hadar.utility import Utility


@dataclass(frozen=True, slots=True)
class PriceFunction:
    """The price k^r(gamma) = U_min (U_max^r / U_min)^(gamma / c) of a GPU of type r for one round (H17).

    Attributes
    ----------
    lowest : float
        U_min, utility per GPU and round.
    highest : float64 array (types,)
        U_max^r, at least U_min.
    """

    lowest: float
    highest: Floats

    @classmethod
    def of(cls, values: RoundValues, gpus: Ints, capacity: Ints) -> PriceFunction:
        """Return the prices of H17.

        U_max of a type is the largest worth of one of its GPUs to a current job for a round; U_min is the least such
        worth on any type, divided by 4 eta.
        """
        runs = values.worth > 0
        per_gpu = np.where(runs, values.worth, 0.0) / np.maximum(gpus, 1)[:, None]
        if not runs.any():
            return cls(0.0, np.zeros(len(capacity)))
        eta = max(float(capacity.sum()) / float(gpus[runs.any(axis=1)].min()), 1.0)
        lowest = float(per_gpu[runs].min()) / (4.0 * eta)
        return cls(lowest, np.maximum(per_gpu.max(axis=0), lowest))

    @classmethod
    def printed(cls, book: JobBook, utility: Utility, terms: RoundTerms) -> PriceFunction:
        """Return (6) to (8) as printed in the paper, with W_j for its undefined M_j and w_j^r.

        U_max is the worth of a whole job per GPU, U_min that per GPU and round. T is the time at which all jobs would
        be done, each on its slowest type, without idle GPUs.
        """
        runs = (book.rates > 0) & (book.total > 0)[:, None]
        rows = np.flatnonzero(runs.any(axis=1))
        if len(rows) == 0:
            return cls(0.0, np.zeros(len(terms.capacity)))
        rates, gpus, total = book.rates[rows], book.gpus[rows], book.total[rows, None]
        shortest_s = total[:, 0] / rates.max(axis=1)  # (8)
        longest_s = total[:, 0] / np.where(runs[rows], rates, np.inf).min(axis=1)
        cluster = float(terms.capacity.sum())
        crowd = max(float(gpus.sum()) / max(cluster, 1.0), 1.0)
        horizon_s = terms.now_s + crowd * float(longest_s.max())
        age_s = np.maximum(terms.now_s - book.submit_s, 0.0)[:, None]
        states = job_states(book, terms, age_s, np.maximum(book.total * (1.0 - book.progress), 0.0)[:, None])
        when = np.ones((len(book), 2))
        when[rows] = np.stack([shortest_s, horizon_s - book.submit_s[rows]], axis=1)
        worth = np.asarray(utility(when, states), dtype=np.float64)[rows]
        highest = float((worth[:, 0] / gpus).max())  # (6)
        slots = longest_s / terms.round_s
        eta = max(cluster / float((slots * gpus).min()), 1.0)
        lowest = float((worth[:, 1] / (slots * gpus)).min()) / (4.0 * eta)  # (7)
        return cls(lowest, np.full(len(terms.capacity), max(highest, lowest)))

    @property
    def alpha(self) -> float:
        """Return half the competitive ratio of posted prices: max(1, ln(U_max / U_min))."""
        if self.lowest <= 0:
            return 1.0
        return max(1.0, float(np.log(self.highest.max() / self.lowest)))

    def price(self, kind: Ints, used_share: Floats) -> Floats:
        """Return the prices of GPUs of types `kind` (k,) when the shares `used_share` (k,), 0 to 1, are in use."""
        if self.lowest <= 0:
            return np.zeros(len(used_share))
        return np.asarray(self.lowest * (self.highest[kind] / self.lowest) ** used_share)

    def segments(self, count: int, capacity: Ints) -> Floats:
        """Return prices over `count` equal parts of every type's capacity, (types, count) (H10).

        The price of a part is that of a GPU when all parts before it are in use, as in the online algorithm; the first
        GPU costs U_min.
        """
        shares = np.arange(count) / count * capacity[:, None]
        whole = np.floor(shares + 1e-9) / np.maximum(capacity, 1)[:, None]
        return np.stack([self.price(np.full(count, kind), used) for kind, used in enumerate(whole)])
