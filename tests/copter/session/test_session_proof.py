"""Plans of a session with a proof, judged without the engine."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import copter
from copter.runtime.errors import SettingsError
from copter.verify import verify_proof


def requests(seed: int) -> copter.Model:
    """A few requests that take one of three columns each."""
    rng = np.random.default_rng(seed)
    model = copter.Model("max" if seed % 2 else "min", offset=0.5)
    sign = 1.0 if seed % 2 else -1.0
    for name in "ab":
        model.add_resources(name, float(rng.integers(3, 7)))
    for k in range(int(rng.integers(2, 6))):
        cost = sign * rng.integers(1, 12, 3) / 4.0
        model.add_request(k, cost, {name: rng.integers(0, 4, 3).astype(float) for name in "ab"}, integer=True)
    return model


def best_of(model: copter.Model) -> float:
    """The best plan's objective, by looking at all."""
    lp = model.to_linear_program()
    points = []
    for chosen in itertools.product(range(4), repeat=len(model.requests)):
        x = np.zeros(lp.shape[1])
        for k, column in enumerate(chosen):
            if column < 3:
                x[3 * k + column] = 1.0
        if (lp.A @ x <= lp.row_upper + 1e-9).all():
            points.append(lp.c @ x + lp.offset)
    return float(max(points) if lp.sense == "max" else min(points))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["json", "vipr"])
def test_a_plan_with_a_proof_is_the_best(tmp_path: Path, seed: int, kind: str) -> None:
    model, path = requests(seed), tmp_path / f"plan.{kind}"
    session = copter.Session(model)
    plan = session.solve_integer(proof=path)
    assert plan.proof == "written"
    assert plan.status is copter.IntegerStatus.OPTIMAL
    assert plan.objective == pytest.approx(best_of(model))
    assert verify_proof(path)[1] == []
    model.set_count("a", 2.0)
    again = session.solve_integer(proof=tmp_path / f"again.{kind}", deadline_s=30.0)
    assert again.proof == "written"
    assert again.objective == pytest.approx(best_of(model))
    assert session.solve_integer().proof == ""


def test_a_proof_begins_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / "there"
    path.write_text("mine")
    session = copter.Session(requests(1))
    with pytest.raises(SettingsError, match="is there already"):
        session.solve_integer(proof=path)
    with pytest.raises(SettingsError, match="must be a path"):
        session.solve_integer(proof=7)  # type: ignore[arg-type]
    assert path.read_text() == "mine"
    assert session.solve_integer().is_feasible


def test_without_time_there_is_a_plan_and_a_reason(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    model = copter.Model()
    model.add_resources("gpu", 60.0)
    for k in range(60):
        model.add_request(k, rng.uniform(1.0, 9.0, 4), {"gpu": rng.uniform(1.0, 7.0, 4)}, integer=True)
    plan = copter.Session(model).solve_integer(proof=tmp_path / "none", deadline_s=0.3)
    assert plan.is_feasible
    if plan.proof != "written":
        assert plan.proof
        assert not (tmp_path / "none").exists()
