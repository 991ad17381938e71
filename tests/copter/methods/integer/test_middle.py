"""Middles of domains that have no end."""

import numpy as np

import copter
from copter.methods.integer.relaxation import middle


def test_middles_of_domains_without_ends_are_numbers() -> None:
    """The sum of two infinite ends was no number, and whole columns were set to it."""
    lower, upper = np.array([-np.inf, 2.0, -np.inf, 1.0]), np.array([np.inf, np.inf, -3.0, 4.0])
    with np.errstate(all="raise"):
        assert middle(lower, upper).tolist() == [0.0, 2.0, -3.0, 2.5]


def test_columns_that_propagation_drives_beyond_all_numbers() -> None:
    """From SciPy's tests: rows push two whole columns up in turns; it ended in an error about a side."""
    lp = copter.LinearProgram(
        [-1.0, -1.0], [[2.0, -2.0], [-8.0, 10.0]], -np.inf, [-1.0, 13.0], 0.0, np.inf, integrality=[1, 1]
    )
    for seed in range(3):
        found = copter.solve_integer(lp, deadline_s=5.0, seed=seed)
        assert found.objective == -3.0
        assert found.x is not None
        assert found.x.tolist() == [1.0, 2.0]
