"""Coordinate descent's kernel where a limit is tight, and its active set (A11, A12)."""

from __future__ import annotations

import numpy as np

from copter.methods.proximal.sweep import sweep
from tests.copter.twins import Group, flat


def test_a_tight_limit_with_a_little_room_does_not_stop_a_pair_step() -> None:
    """The room that rounding leaves is taken, and the rest comes from the dearest column."""
    usage, x = np.zeros((1, 2)), np.array([0.0, 1.0 - 1e-16])
    group = Group(np.array([-2.0, -1.0]), np.zeros(2), np.ones(2), 1.0, usage, x.copy())
    problem = flat([group])
    rest = (np.zeros(1), np.ones(1), group.center, 10.0, x, np.zeros(1), np.zeros(1), np.ones(2, dtype=np.uint8), 0.0)
    for _ in range(3):
        sweep(*problem.columns, np.array([-np.inf]), np.array([np.inf]), *rest)
    np.testing.assert_allclose(x, [1.0, 0.0], atol=1e-12)


def test_sweeps_leave_out_groups_that_are_not_active() -> None:
    """Of two alike the inactive one stays; one that does not move becomes inactive."""
    usage = np.ones((1, 1))
    limited = [Group(np.array([-1.0]), np.zeros(1), np.ones(1), 1.0, usage, np.zeros(1)) for _ in range(2)]
    free = Group(np.array([-1.0, -1.0, 1.0]), np.zeros(3), np.ones(3), np.inf, np.ones((1, 3)), np.zeros(3))
    problem, x = flat([*limited, free]), np.zeros(5)
    active = np.array([1, 0, 1, 0, 1], dtype=np.uint8)
    rest = (np.zeros(1), np.ones(1), np.zeros(5), 1.0, x, np.zeros(1), np.zeros(1), active, 1e-6)
    sweep(*problem.columns, np.array([-np.inf]), np.array([np.inf]), *rest)
    np.testing.assert_allclose(x, [0.5, 0.0, 0.5, 0.0, 0.0])
    assert active.tolist() == [1, 0, 1, 0, 0]
