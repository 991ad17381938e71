"""Every loop of the compiled code ends by counting, and every method hears its watch, also where the clock stands."""

from __future__ import annotations

import re
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import copter
from copter import LinearProgram, Model, Session, Settings, Status
from copter.methods.proximal.ascent import newton_matrix
from copter.methods.proximal.groups import Groups
from copter.methods.simplex.dual_steps import dual_steps
from copter.methods.simplex.form import formed
from copter.runtime.watch import Watch

ROOT = Path(__file__).parents[2] / "copter"
LOOKS = 40  # at an expired watch, until a method has ended
METHODS = ("auto", "simplex", "interior", "proximal", "price_descent")
ENDED = (Status.OPTIMAL, Status.TIME_LIMIT, Status.NUMERICAL_ERROR)


def sources() -> list[Path]:
    found = sorted(ROOT.rglob("*.pyx"))
    assert len(found) > 30
    return found


@pytest.mark.parametrize("source", sources(), ids=lambda path: path.stem)
def test_every_while_says_why_it_ends(source: Path) -> None:
    before = ""
    for number, line in enumerate(source.read_text().splitlines(), 1):
        if re.match(r"\s*while\b", line):
            assert "# ends: " in line + before, f"{source.name}, line {number}: say with '# ends: ' what counts"
        assert not re.match(r"\s*for\b.*\b(count|cycle|repeat|iter)\(", line), f"{source.name}, line {number}"
        before = line


def program() -> LinearProgram:
    rng = np.random.default_rng(5)
    matrix = sp.random_array((120, 260), density=0.1, rng=rng, format="csc")
    return LinearProgram(rng.uniform(0, 1, 260), matrix, -np.inf, rng.uniform(1, 2, 120), 0.0, 1.0, sense="max")


def model(private: bool, requests: int = 60, columns: int = 8) -> Model:
    rng = np.random.default_rng(6)
    made = Model("max")
    for k in range(12):
        made.add_resources(k, 6.0)
    for request in range(requests):
        usage = {k: rng.uniform(0, 2, columns) * (rng.random(columns) < 0.5) for k in range(12)}
        bounds = {"at_least": 0.2} if private else {}
        made.add_request(request, rng.uniform(0, 1, columns), usage, upper=1.0, **bounds)
    return made


class Expiring:
    """A watch's answer: no, for so many looks, then yes; it counts the looks after."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, looks: int) -> None:
        self.left, self.after = looks, 0
        monkeypatch.setattr(Watch, "__call__", lambda watch: self.asked())
        monkeypatch.setattr(Watch, "elapsed_s", property(lambda watch: 0.0 if self.left > 0 else watch.limit_s))

    def asked(self) -> bool:
        self.left -= 1
        self.after += self.left < 0
        return self.left < 0


@pytest.mark.parametrize("looks", [0, 1, 3, 10])
@pytest.mark.parametrize("method", METHODS)
def test_a_method_ends_soon_after_its_watch_says_so(monkeypatch: pytest.MonkeyPatch, method: str, looks: int) -> None:
    lp = program()
    watch = Expiring(monkeypatch, looks)
    found = copter.solve(lp, Settings(method=method, time_limit_s=1e6))  # type: ignore[arg-type]
    assert found.status in ENDED
    assert watch.after <= LOOKS


@pytest.mark.parametrize("looks", [0, 1, 3, 10])
@pytest.mark.parametrize("private", [False, True])
def test_a_session_ends_soon_after_its_watch_says_so(
    monkeypatch: pytest.MonkeyPatch, private: bool, looks: int
) -> None:
    made = model(private)
    for method in ("auto", "simplex", "interior") if private else METHODS:
        session = Session(made, Settings(method=method, time_limit_s=1e6))  # type: ignore[arg-type]
        watch = Expiring(monkeypatch, looks)
        assert session.solve().status in ENDED
        assert watch.after <= LOOKS


@pytest.mark.parametrize("private", [False, True])
def test_where_the_clock_stands_still_counts_end_all(monkeypatch: pytest.MonkeyPatch, private: bool) -> None:
    monkeypatch.setattr(time, "perf_counter", lambda: 1000.0)
    made = model(private, 12, 5)
    for method in ("auto", "simplex", "interior") if private else METHODS:
        assert Session(made, Settings(method=method, time_limit_s=1e6)).solve().status in ENDED  # type: ignore[arg-type]
    assert Session(made).solve_integer().is_feasible
    for method in METHODS[:-1]:
        assert copter.solve(program(), Settings(method=method, time_limit_s=1e6)).status in ENDED  # type: ignore[arg-type]


def test_one_ratio_test_of_many_breakpoints_is_counted() -> None:
    """Each of 10,000 breakpoints alone: the work of a step was their square."""
    n = 10_000
    rng = np.random.default_rng(7)
    lp = LinearProgram(rng.uniform(1.0, 2.0, n), rng.uniform(0.5, 1.0, (1, n)), 0.4 * n, np.inf, 0.0, 1.0)
    tableau = formed(lp).tableau
    tableau.settle(True)
    before = tableau.factor.work
    dual_steps(tableau, 1.0)
    assert tableau.factor.work - before < 300.0 * n
    assert copter.solve(lp, Settings(method="simplex")).status is Status.OPTIMAL


def test_the_newton_matrix_of_a_wide_group_is_a_sum_over_its_entries() -> None:
    """100,000 free columns in one group: in pairs they were ten billion."""
    n, m, sigma = 100_000, 3, 0.7
    rng = np.random.default_rng(8)
    matrix = sp.random_array((m, n), density=0.6, rng=rng, format="csc")
    found, free = np.zeros((m, m)), np.ones(n, dtype=np.uint8)
    start, indptr = np.array([0, n], dtype=np.int32), matrix.indptr.astype(np.int32)
    each, wide = np.zeros(n), np.ones(1)
    columns = Groups(start, wide, each, each, each, indptr, matrix.indices.astype(np.int32), matrix.data)
    newton_matrix(columns, free, np.ones(1), sigma, found)
    total = np.asarray(matrix.sum(axis=1)).ravel()
    np.testing.assert_allclose(found, sigma * ((matrix @ matrix.T).toarray() - np.outer(total, total) / n), rtol=1e-9)
