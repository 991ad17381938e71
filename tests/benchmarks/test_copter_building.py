"""Every way of building a round's program builds the same program (thesis 4.3)."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import copter

pytest.importorskip("cvxpy")
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "tables"))

import copter_building


def program(seed: int) -> copter.Model:
    """Jobs with a column for each of some types and sizes."""
    rng = np.random.default_rng(seed)
    model = copter.Model("max")
    for row in range(3):
        model.add_resources(row, float(rng.integers(4, 9)))
    for job in range(12):
        n = int(rng.integers(1, 6))
        usage = np.zeros((3, n))
        usage[rng.integers(3, size=n), np.arange(n)] = 2.0 ** rng.permutation(6)[:n]
        model.add_request(job, rng.random(n), {row: usage[row] for row in range(3)})
    return model


@pytest.mark.parametrize("seed", range(3))
def test_every_way_has_the_same_optimum(seed: int) -> None:
    model = program(seed)
    best = copter.Session(model).solve().objective
    jobs = copter_building.Jobs.of(model.to_linear_program())
    assert len(jobs.values) == 12
    cost, matrix, upper = copter_building.scipy_arrays(jobs)
    arrays = copter.LinearProgram(cost, matrix, -np.inf, upper, 0.0, np.inf)
    assert copter_building.copter_model(jobs).solve().objective == pytest.approx(best)
    assert -copter.solve(arrays).objective == pytest.approx(best)
    assert -copter_building.one_matrix(jobs).solve() == pytest.approx(best, rel=1e-5)
    assert copter_building.as_published(jobs).solve() == pytest.approx(best, rel=1e-5)


def test_a_column_of_two_resources_is_refused() -> None:
    model = program(0)
    model.add_request("both", [1.0], {0: [1.0], 1: [1.0]})
    with pytest.raises(SystemExit, match="more than one resource"):
        copter_building.Jobs.of(model.to_linear_program())


def test_the_table_names_every_way(capsys: pytest.CaptureFixture[str]) -> None:
    copter_building.main(["--gpus", "112", "--hours", "0.2", "--every", "4"])
    told = capsys.readouterr().out
    assert "copter's edits" in told
    assert all(name in told for name in copter_building.BUILDERS)
