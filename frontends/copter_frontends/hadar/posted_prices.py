"""The paper's price function (5)-(8), its units mended (docs/hadar.md, H17)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from copter_frontends.hadar.job_book import Floats, Ints
from copter_frontends.hadar.round_values import RoundValues


@dataclass(frozen=True, slots=True)
class PriceFunction:
    """k^r(gamma) = U_min (U_max^r / U_min)^(gamma / c): what a GPU of type r costs for one round (H17).

    Attributes
    ----------
    lowest : float
        U_min, utility per GPU and round.
    highest : float64 array (types,)
        U_max^r; no less than U_min.
    """

    lowest: float
    highest: Floats

    @classmethod
    def of(cls, values: RoundValues, gpus: Ints, capacity: Ints) -> PriceFunction:
        """Bounds from the jobs present: the most and the least that a GPU is worth to any of them for a round."""
        runs = values.worth > 0
        per_gpu = np.where(runs, values.worth, 0.0) / np.maximum(gpus, 1)[:, None]
        if not runs.any():
            return cls(0.0, np.zeros(len(capacity)))
        eta = max(float(capacity.sum()) / float(gpus[runs.any(axis=1)].min()), 1.0)
        lowest = float(per_gpu[runs].min()) / (4.0 * eta)
        return cls(lowest, np.maximum(per_gpu.max(axis=0), lowest))

    @property
    def alpha(self) -> float:
        """Half the competitive ratio of posted prices: max(1, ln(U_max / U_min))."""
        if self.lowest <= 0:
            return 1.0
        return max(1.0, float(np.log(self.highest.max() / self.lowest)))

    def price(self, kind: Ints, used_share: Floats) -> Floats:
        """Prices of GPUs of types `kind` (k,) of which a share `used_share` (k,), 0 to 1, is in use."""
        if self.lowest <= 0:
            return np.zeros(len(used_share))
        return np.asarray(self.lowest * (self.highest[kind] / self.lowest) ** used_share)

    def segments(self, count: int) -> Floats:
        """Prices over `count` equal parts of every type's capacity, each at its middle, (types, count) (H10)."""
        middle = (np.arange(count) + 0.5) / count
        kinds = np.arange(len(self.highest))
        return np.stack([self.price(np.full(count, kind), middle) for kind in kinds])
