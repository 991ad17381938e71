"""Middles of domains that have no end."""

import numpy as np

from copter.methods.integer.relaxation import middle


def test_middles_of_domains_without_ends_are_numbers() -> None:
    """The sum of two infinite ends was no number, and whole columns were set to it."""
    lower, upper = np.array([-np.inf, 2.0, -np.inf, 1.0]), np.array([np.inf, np.inf, -3.0, 4.0])
    with np.errstate(all="raise"):
        assert middle(lower, upper).tolist() == [0.0, 2.0, -3.0, 2.5]
