"""Compilation of the passes over jobs and tasks before the first round; after an installation it takes seconds."""

from __future__ import annotations

from functools import cache

import numpy as np

from copter_frontends.policies.hare.chunks import Chunks
from copter_frontends.policies.hare.formulation import Relaxation, sufficient_horizon_s
from copter_frontends.policies.hare.grid import TimeGrid
from copter_frontends.policies.hare.instance import HareInstance
from copter_frontends.policies.hare.job import HareJob
from copter_frontends.policies.hare.repair import repaired
from copter_frontends.policies.hare.shim import middle_order, schedule_in_order
from copter_frontends.policies.hare.slots import steady_counts
from copter_frontends.policies.hare.standing import Standing


@cache
def compile_passes() -> None:
    """Run every pass once on a small job, so that Numba compiles and caches it; later calls do nothing."""
    instance = HareInstance.of([HareJob("one", 2, 2, {"fast": 1.0, "slow": 2.0})], {"fast": 1, "slow": 1})
    data = Relaxation.of(instance, TimeGrid.geometric(0.0, sufficient_horizon_s(instance)))
    repaired(data, np.zeros(data.shape), data.weight)
    Standing.at_prices(data, np.zeros_like(data.capacity), data.weight * data.floor, 0.5 * data.weight)
    chunks = Chunks.cut(instance, np.ones(1, dtype=np.int64))
    schedule_in_order(instance, chunks, middle_order(instance, chunks, np.ones(1)))
    counts = np.ones((1, 2), dtype=np.int64)
    steady_counts(instance, counts, counts, np.zeros(1, dtype=np.int64), np.ones(1), 1.0)
