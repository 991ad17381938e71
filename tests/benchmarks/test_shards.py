"""The family of shards: every round's point is an optimum of the program with all its columns."""

from __future__ import annotations

import numpy as np
import pytest
from families.protocol import SolverOptions
from families.shards import ShardRounds
from judge import judge


@pytest.mark.parametrize("change", ShardRounds.changes)
def test_rounds_are_judged_optimal(change: str) -> None:
    family = ShardRounds(96, 12, change, 0)
    solver, objectives = family.solver(SolverOptions()), []
    for _ in range(5):
        family.edit()
        outcome, program = solver.solve(), family.program()
        judged = judge(program, *family.point(outcome))
        assert judged.residual <= 1e-6
        assert outcome.objective == pytest.approx(judged.objective, abs=1e-7)
        objectives.append(judged.objective)
        held = family.cluster.holds.sum()
        family.adopt(outcome)
        assert family.cluster.holds.sum() >= 96
        assert program.shape == (2 * 12 + 96, 96 * 12)
        assert np.count_nonzero(program.c == 0.0) == held
        family.prepare()
    assert objectives[0] > 0
