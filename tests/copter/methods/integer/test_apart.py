"""Branch and bound in a process of its own: the same answers as in the process, and a crash or a hang is no harm."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from copter import LinearProgram
from copter.highs import milp as apart
from copter.highs import process as worker
from copter.highs.milp import branch_and_bound
from copter.highs.process import end_spare
from copter_frontends.policies.hops import core


@pytest.fixture
def fresh() -> Iterator[None]:
    """No process is kept from before, and none for later."""
    end_spare()
    yield
    end_spare()


def knapsack(seed: int, sense: str = "max") -> LinearProgram:
    rng = np.random.default_rng(seed)
    return LinearProgram(
        rng.integers(1, 9, 8), rng.integers(1, 9, (2, 8)), row_upper=[15.0, 17.0], col_upper=1.0, integrality=1,
        sense=sense,
    )  # fmt: skip


def test_answers_are_those_of_scipy() -> None:
    for seed in range(8):
        lp = knapsack(seed)
        found = branch_and_bound(lp, 20.0, 1e-9)
        there = milp(
            -lp.c, integrality=lp.integrality.astype(int), bounds=Bounds(lp.col_lower, lp.col_upper),
            constraints=LinearConstraint(lp.A, lp.row_lower, lp.row_upper), options={"mip_rel_gap": 1e-9},
        )  # fmt: skip
        assert found.solved
        np.testing.assert_array_equal(found.x, there.x)
        assert found.bound == there.mip_dual_bound


def test_infeasible_and_empty_programs() -> None:
    lp = LinearProgram([1.0], [[2.0]], [1.0], [1.0], col_upper=5.0, integrality=1)
    found = branch_and_bound(lp, 20.0)
    assert found.infeasible
    assert found.x is None
    none = branch_and_bound(LinearProgram(np.zeros(0), np.zeros((1, 0)), [-1.0], [1.0]))
    assert none.x is not None
    assert none.solved
    assert branch_and_bound(LinearProgram(np.zeros(0), np.zeros((1, 0)), [1.0], [1.0])).infeasible


def test_a_crash_is_no_answer(monkeypatch: pytest.MonkeyPatch, fresh: None) -> None:
    monkeypatch.setattr(worker, "PROGRAM", "import os, sys; sys.stdin.buffer.read(1); os.abort()")
    found = branch_and_bound(knapsack(0), 20.0)
    assert found.x is None
    assert not found.solved
    assert not found.infeasible


def test_an_endless_run_is_ended(monkeypatch: pytest.MonkeyPatch, fresh: None) -> None:
    monkeypatch.setattr(worker, "PROGRAM", "import time\nwhile True: time.sleep(1)")
    monkeypatch.setattr(apart, "ENDING_S", 0.1)
    began = time.perf_counter()
    found = branch_and_bound(knapsack(0), 0.2)
    assert time.perf_counter() - began < 30.0
    assert found.x is None
    assert not worker._SPARE


def test_no_process_can_be_started(monkeypatch: pytest.MonkeyPatch, fresh: None) -> None:
    def refused() -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(apart, "taken", refused)
    assert branch_and_bound(knapsack(0)).x is None


def test_frontends_keep_their_rounding_where_it_crashes(monkeypatch: pytest.MonkeyPatch, fresh: None) -> None:
    monkeypatch.setattr(worker, "PROGRAM", "import os; os.abort()")
    value = [np.array([2.0, 1.0])]
    usage = [core.sp.csc_array(np.ones((1, 2)))]
    assert core._program(value, value, usage, np.ones(1), (5.0, 1e-6, 100)) == [core.NONE]


def test_no_frontend_calls_a_foreign_search_in_its_own_process() -> None:
    package = core.__file__.split("copter_frontends")[0] + "copter_frontends"
    calling = [str(path) for path in Path(package).rglob("*.py") if "milp(" in path.read_text().replace("_milp(", "")]
    assert calling == []
