"""Concave worths' benchmark: DeDe's half steps are optimal, it comes to known optima, and rows of the page stay."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

pytest.importorskip("clarabel")
pytest.importorskip("numba")

import concave
from concave_dede import DeDe, jobs_step, types_step


@pytest.mark.parametrize("seed", range(6))
def test_a_job_s_shares_are_optimal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    jobs, types, rho = 8, 4, 10.0 ** rng.uniform(-1, 2)
    target, rates = rng.normal(0.1, 0.6, (jobs, types)), rng.uniform(0.5, 4.0, (jobs, types))
    weights, slope, shares = rng.uniform(0.5, 2.0, jobs), rng.uniform(0.01, 9.0, jobs), np.zeros((jobs, types))
    jobs_step(target, rates, weights, rho, slope, shares)
    assert shares.min() >= 0.0
    assert shares.sum(axis=1).max() <= 1.0 + 1e-12
    assert slope == pytest.approx(weights / (rates * shares).sum(axis=1), rel=1e-9)

    def loss(z: np.ndarray, job: int) -> float:
        near = 0.5 * rho * float(((z - target[job]) ** 2).sum())
        return near - float(weights[job] * np.log(max(rates[job] @ z, 1e-12)))

    limit = {"type": "ineq", "fun": lambda z: 1.0 - z.sum()}
    for job in range(jobs):
        best = minimize(loss, np.full(types, 0.2), (job,), bounds=[(0, 1)] * types, constraints=limit, tol=1e-12)
        assert loss(shares[job], job) <= best.fun + 1e-8 * (1.0 + abs(best.fun))


def test_a_type_s_shares_are_the_nearest_that_fit() -> None:
    wanted = np.array([[0.9, 0.2, -1.0], [0.5, -0.3, -2.0], [0.1, 0.4, -3.0]])
    price, given = np.zeros(3), np.zeros((3, 3))
    types_step(wanted, np.array([1.0, 1.0, 1.0]), price, given)
    assert given == pytest.approx(np.array([[0.7, 0.2, 0.0], [0.3, 0.0, 0.0], [0.0, 0.4, 0.0]]))
    assert price == pytest.approx([0.2, 0.0, 0.0])


@pytest.mark.parametrize(
    ("rates", "weights", "counts", "shares"),
    [
        ([[1.0], [5.0], [2.0]], [1.0, 2.0, 2.0], [1.0], [[0.2], [0.4], [0.4]]),  # weights divide one GPU
        ([[2.0, 1.0], [1.0, 2.0]], [1.0, 1.0], [1.0, 1.0], [[1.0, 0.0], [0.0, 1.0]]),  # each takes its fast type
        ([[1.0, 3.0]], [2.0], [5.0, 5.0], [[0.0, 1.0]]),  # the job's limit, where GPUs are many
    ],
)
@pytest.mark.parametrize("rho", [0.3, 3.0])
def test_it_comes_to_known_optima(
    rates: list[list[float]], weights: list[float], counts: list[float], shares: list[list[float]], rho: float
) -> None:
    method = DeDe(np.array(rates), np.array(weights), np.array(counts), rho)
    for _ in range(600):
        method.step()
    objective, found = method.feasible()
    assert found == pytest.approx(np.array(shares), abs=1e-6)
    optimum = float(np.array(weights) @ np.log((np.array(rates) * shares).sum(axis=1)))
    assert objective == pytest.approx(optimum, abs=1e-6)
    assert (found.sum(axis=0) <= np.array(counts) * (1.0 + 1e-12)).all()
    assert (found.sum(axis=1) <= 1.0 + 1e-12).all()


def test_rounds_of_all_three_come_to_the_same_optimum() -> None:
    """With churn, from the last round: a method that kept what has left would miss the optimum of each round."""
    rows = concave.dede_rows(60, 3, 0)
    assert len(rows) == len(concave.WITHIN)
    for row, within in zip(rows, concave.WITHIN, strict=True):
        cells = [cell.strip() for cell in row.split("|")[1:-1]]
        assert cells[:2] == ["60", f"{within:g}"]
        share, missed = float(cells[6].rstrip("%")) / 100.0, int(cells[7])
        assert missed == 0
        assert 1.0 - 2.0 * within - 1e-6 <= share <= 1.0 + 1e-5


def test_rows_that_are_not_measured_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "concave.md"
    kept = "| power(2) | 1,000 | as it was |", "| 10,000 | 0.01 | too |"
    page.write_text(concave.PAGE.format(rounds=20) + "| log | 1,000 | old |\n" + "\n".join(kept) + "\n")
    monkeypatch.setattr(concave, "row", lambda *_: "| log | 1,000 | new |")
    monkeypatch.setattr(concave, "dede_rows", lambda jobs, *_: [f"| {jobs:,} | 0.01 | of DeDe |"])
    options = ["--jobs", "1000", "--alpha", "1", "--page", str(page)]
    monkeypatch.setattr(sys, "argv", ["concave.py", *options])
    concave.main()
    rows = [line for line in page.read_text().splitlines() if line.startswith("| ") and "measured" not in line]
    assert rows == ["| log | 1,000 | new |", *kept, "| 1,000 | 0.01 | of DeDe |"]
    assert page.read_text().index("## DeDe") > page.read_text().index("power(2)")
    monkeypatch.setattr(sys, "argv", ["concave.py", "--only", "dede", *options])
    monkeypatch.setattr(concave, "row", lambda *_: pytest.fail("not asked for"))
    concave.main()
    again = [line for line in page.read_text().splitlines() if line.startswith("| ") and "measured" not in line]
    assert again == rows
