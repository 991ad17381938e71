"""What a warm solve of many coupling rows tries, and in which order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import copter.methods.choose
import copter.methods.interior_start
import copter.methods.proximal.newton
from copter import Model, Session, Settings, Solution, Status
from copter.methods.block_round import BlockRound
from copter.methods.proximal.solve import Solve
from tests.copter.by_highs import highs


def assignment(rows: int, jobs: int, seed: int = 0) -> Model:
    """Jobs that take some of one resource each, of a few that suit them."""
    rng = np.random.default_rng(seed)
    model = Model(sense="max")
    for i in range(rows):
        model.add_resources(i, float(rng.integers(2, 6)))
    for j in range(jobs):
        usage = np.zeros((rows, 6))
        usage[rng.choice(rows, 6, replace=False), np.arange(6)] = rng.integers(1, 4, 6)
        model.add_request(j, rng.uniform(1.0, 9.0, 6), usage=sp.csc_array(usage), resources=list(range(rows)))
    return model


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was tried, in order; the block structure gives no answer."""
    made: list[str] = []
    interior, improve = copter.methods.interior_start.solve_interior, Solve.improve

    def blocks(self: BlockRound) -> None:
        made.append("blocks")

    def whole(*arguments: Any, **options: Any) -> Solution:
        made.append("interior")
        return interior(*arguments, **options)

    def step(self: Solve, *arguments: Any) -> Any:
        if self.fallback is None or not self.fallback.comes_first:
            made.append("prices")
        return improve(self, *arguments)

    monkeypatch.setattr(BlockRound, "by_interior_points", blocks)
    monkeypatch.setattr(copter.methods.interior_start, "solve_interior", whole)
    monkeypatch.setattr(Solve, "improve", step)
    return made


def test_prices_come_before_interior_points_of_the_whole_where_blocks_fail(tried: list[str]) -> None:
    model = assignment(80, 120)
    found = Session(model, Settings(basis_columns=0)).solve()
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(highs(model.to_linear_program())[1], rel=1e-6)
    assert tried[0] == "blocks"
    assert set(tried[1:]) == {"prices"}
    assert tried.count("blocks") == 1


def test_interior_points_of_the_whole_come_where_prices_stall(
    tried: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copter.methods.proximal.newton, "MAX_NEWTON_STEPS", 1)
    model = assignment(80, 120)
    found = Session(model, Settings(basis_columns=0, max_proximal_steps=1)).solve()
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(highs(model.to_linear_program())[1], rel=1e-6)
    assert tried.index("blocks") < tried.index("prices") < tried.index("interior")


def test_beyond_a_thousand_rows_interior_points_come_first(tried: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copter.methods.choose, "PRICED_ROWS", 79)
    found = Session(assignment(80, 120), Settings(basis_columns=0)).solve()
    assert found.status is Status.OPTIMAL
    assert tried[:2] == ["blocks", "interior"]
