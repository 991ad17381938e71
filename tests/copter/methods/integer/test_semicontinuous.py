"""Semi-continuous columns: zero or within a range that leaves zero out (M16), as HiGHS has them."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path

import highspy
import numpy as np
import pytest
from judge import integer_violation

from copter import DimensionError, InvalidDataError, LinearProgram, read_mps, solve, solve_integer, testing, write_mps
from copter.highs.lp import highs_lp
from copter.methods.integer.semicontinuous import with_switches
from copter.runtime.settings import Internals

INF = np.inf


def batches(seed: int, integers: bool = True) -> LinearProgram:
    """Machines that run at least so much or not at all, some in whole units; demands and a budget."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 9)), int(rng.integers(1, 4))
    least = np.where(rng.random(n) < 0.7, np.round(rng.uniform(1.0, 5.0, n), 1), 0.0)
    most = np.where(least > 0.0, least + np.round(rng.uniform(0.0, 6.0, n), 1), rng.choice([3.0, INF], n))
    a = np.round(rng.uniform(0.0, 3.0, (m, n)), 1)
    integrality = (rng.random(n) < 0.3) if integers else np.zeros(n)
    need = np.round(rng.uniform(0.0, 8.0, m), 1)
    cost = np.round(rng.uniform(-1.0, 4.0, n), 1) * np.where(np.isfinite(most), 1.0, 0.0) + np.where(
        most == INF, 5.0, 0.0
    )
    top = np.where(rng.random(m) < 0.3, need + 0.5, INF)
    return LinearProgram(cost, a, need, top, 0.0, most, integrality, semicontinuous=least, offset=2.0)


def by_highs(lp: LinearProgram) -> float | None:
    """HiGHS's optimum with its own kind of semi-continuous columns; None if there is no point."""
    solver = highspy.Highs()
    solver.silent()
    solver.passModel(highs_lp(lp, integer=True))
    solver.run()
    if solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        return None
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(solver.getInfo().objective_function_value)


@pytest.mark.parametrize("shim", ["dive", "exact"])
@pytest.mark.parametrize("seed", range(40))
def test_as_highs_has_them(seed: int, shim: str) -> None:
    lp = batches(seed)
    found, reference = solve_integer(lp, shim), by_highs(lp)
    if reference is None:
        assert found.status.value == "primal_infeasible"
        assert found.x is None
        return
    assert found.status.value == "optimal"
    assert found.objective == pytest.approx(reference, rel=1e-6, abs=1e-6)
    assert found.x is not None
    assert found.x.shape == lp.c.shape
    assert found.bound <= found.objective + 1e-9
    assert integer_violation(lp, found.x) == testing.integer_violation(lp, found.x) == 0.0
    some = lp.semicontinuous > 0.0
    assert ((found.x[some] == 0.0) | (found.x[some] >= lp.semicontinuous[some])).all()
    assert testing.check(lp, found.x, np.zeros(lp.shape[0])).primal_absolute <= 1e-5
    assert found.relaxation is None or len(found.relaxation.x) == lp.shape[1]


def test_by_the_projects_own_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without branch and bound: points hold, and the bound is not beyond HiGHS's optimum."""
    from copter import Settings

    for seed in range(12):
        lp = batches(seed, integers=False)
        found, reference = solve_integer(lp, settings=Settings(internals=Internals(hand_over_s=0.0))), by_highs(lp)
        assert (found.x is None) or integer_violation(lp, found.x) == 0.0
        if reference is not None:
            assert found.x is not None
            assert found.objective >= reference - 1e-6 * (1.0 + abs(reference))
            assert found.bound <= reference + 1e-6 * (1.0 + abs(reference))


def test_the_relaxation_takes_all_between() -> None:
    lp = LinearProgram([1.0], [[1.0]], row_lower=2.0, col_upper=9.0, semicontinuous=[3.0])
    assert solve(lp).objective == pytest.approx(2.0)
    found = solve_integer(lp)
    assert found.objective == 3.0
    assert found.relaxation is None or found.relaxation.objective == pytest.approx(2.0)
    most = LinearProgram([1.0], [[1.0]], row_upper=2.0, col_upper=9.0, semicontinuous=[3.0], sense="max")
    assert solve(most).objective == pytest.approx(2.0)
    assert solve_integer(most).objective == 0.0


def test_the_relaxation_is_judged_on_the_program_as_given() -> None:
    lp = batches(3)
    found = solve_integer(lp, "rounding")
    if found.relaxation is not None:
        assert (found.relaxation.x.shape, found.relaxation.y.shape) == (lp.c.shape, (lp.shape[0],))
        assert found.relaxation.residuals.gap <= 1e-6


def test_switches() -> None:
    lp = batches(5)
    program, switches = with_switches(lp)
    k = int((lp.semicontinuous > 0.0).sum())
    assert program.shape == (lp.shape[0] + 2 * k, lp.shape[1] + k)
    x = np.concatenate((lp.col_upper.clip(max=50.0) * 0.5, np.arange(k) % 2))
    obeyed = switches.obeyed(x)
    off = switches.column[x[switches.switch] == 0.0]
    assert (obeyed[off] == 0.0).all()
    assert testing.integer_violation(LinearProgram(**vars(lp) | {"integrality": None}), obeyed[: lp.shape[1]]) == 0.0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"semicontinuous": [-1.0], "col_upper": 3.0}, r"semicontinuous\[0\] is -1.0"),
        ({"semicontinuous": [1.0]}, "upper bound is inf"),
        ({"semicontinuous": [4.0], "col_upper": 3.0}, "upper bound is 3.0"),
        ({"semicontinuous": [1.0], "col_upper": 3.0, "col_lower": 1.0}, "lower bound is 1.0, must be 0"),
        ({"semicontinuous": [np.nan], "col_upper": 3.0}, r"semicontinuous\[0\] is nan"),
    ],
)
def test_what_cannot_be(arguments: dict[str, object], text: str) -> None:
    with pytest.raises(InvalidDataError, match=text):
        LinearProgram([1.0], [[1.0]], **arguments)
    with pytest.raises(DimensionError, match="semicontinuous"):
        LinearProgram([1.0], [[1.0]], semicontinuous=[1.0, 2.0])


def test_distances() -> None:
    lp = LinearProgram([0.0] * 3, np.zeros((1, 3)), col_upper=9.0, semicontinuous=[3.0, 3.0, 0.0])
    for x, expected in (([0.0, 9.0, 0.5], 0.0), ([0.25, 3.0, 0.5], 0.25), ([2.5, 0.0, 0.5], 0.5)):
        assert testing.integer_violation(lp, np.array(x)) == integer_violation(lp, np.array(x)) == expected


@pytest.mark.parametrize("seed", range(8))
def test_files_hold_them(seed: int, tmp_path: Path) -> None:
    lp = batches(seed)
    write_mps(lp, tmp_path / "a.mps")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = read_mps(tmp_path / "a.mps")
    for name in ("semicontinuous", "integrality", "col_lower", "col_upper"):
        assert np.array_equal(getattr(again, name), getattr(lp, name))
    assert np.array_equal(pickle.loads(pickle.dumps(lp)).semicontinuous, lp.semicontinuous)
    solver = highspy.Highs()
    solver.silent()
    solver.readModel(str(tmp_path / "a.mps"))
    solver.run()
    reference = by_highs(lp)
    if reference is None:
        assert solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible
    else:
        assert solver.getInfo().objective_function_value == pytest.approx(reference, rel=1e-6, abs=1e-6)
