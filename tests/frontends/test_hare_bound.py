"""The relaxation is a lower bound: of everything, of list schedules, and at any prices."""

import numpy as np
import pytest
from hare_exhaustive import optimum, small_instance
from hypothesis import given, settings
from hypothesis import strategies as st

import copter
from copter_frontends.hare import HareInstance, HareJob, HareScheduler, Relaxation, RelaxationSolver, TimeGrid
from copter_frontends.hare.bound import certified_bound
from copter_frontends.hare.relaxation import sufficient_horizon_s


@pytest.mark.parametrize("block", range(10))
def test_the_bound_is_at_most_the_exhaustive_optimum(block: int) -> None:
    """250 instances: the certified bound, and the value of HiGHS, are at most the best of all schedules."""
    ratios = []
    for seed in range(25 * block, 25 * block + 25):
        instance = small_instance(seed)
        found = HareScheduler(growth=1.25).schedule(instance)
        best = optimum(instance)
        assert found.relaxation.bound <= best * (1 + 1e-9), f"seed {seed}"
        assert found.schedule.objective >= best * (1 - 1e-9), f"seed {seed}"
        ratios.append(found.relaxation.bound / best)
    assert np.mean(ratios) > 0.6
