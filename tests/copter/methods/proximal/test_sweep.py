"""Coordinate descent's kernel where a limit is tight (A11)."""

from __future__ import annotations

import numpy as np

from copter.methods.proximal.sweep import Sweep
from tests.copter.twins import Group, flat


def test_a_tight_limit_with_a_little_room_does_not_stop_a_pair_step() -> None:
    """The room that rounding leaves is taken, and the rest comes from the dearest column."""
    usage, x = np.zeros((1, 2)), np.array([0.0, 1.0 - 1e-16])
    group = Group(np.array([-2.0, -1.0]), np.zeros(2), np.ones(2), 1.0, usage, x.copy())
    problem = flat([group])
    passes = Sweep(problem.columns, np.array([-np.inf]), np.array([np.inf]), np.ones(1), group.center, 10.0, x)
    passes.begin(np.zeros(1))
    for _ in range(3):
        passes.sweep()
    np.testing.assert_allclose(x, [1.0, 0.0], atol=1e-12)
