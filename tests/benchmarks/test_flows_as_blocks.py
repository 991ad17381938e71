"""Flows over days given as blocks have the optimum of the program they were made from."""

from __future__ import annotations

import numpy as np
import pytest
from flows_as_blocks import COMMODITIES, model_of, solved
from lp_structures import evacuation

from copter import Status, solve


def test_given_as_blocks_the_optimum_is_the_programs() -> None:
    lp, solution, _ = solved(0.2, 60.0)
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(solve(lp).objective, rel=1e-6)


def test_every_commodity_has_its_own_rows() -> None:
    lp = evacuation(0.2, np.random.default_rng(1))
    model = model_of(lp)
    seats = int(np.isneginf(lp.row_lower).sum())
    assert (len(model.requests), len(model.resources)) == (COMMODITIES, seats)
    assert model.to_linear_program().shape == lp.shape
