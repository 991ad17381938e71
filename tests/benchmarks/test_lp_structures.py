"""The generated structures are what they say, and both solvers find the same optimum of small ones."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from judge import faults
from lp_structures import STRUCTURES, main, measure

from copter import Status, solve

names = pytest.mark.parametrize("name", STRUCTURES)


@names
def test_a_small_one_has_an_optimum(name: str) -> None:
    lp = STRUCTURES[name](0.05, np.random.default_rng(3))
    solution = solve(lp)
    assert solution.status is Status.OPTIMAL
    assert faults(lp, solution) == []


@names
def test_a_seed_gives_the_same_program_again(name: str) -> None:
    one, two = (STRUCTURES[name](0.05, np.random.default_rng(1)) for _ in range(2))
    np.testing.assert_array_equal(one.A.toarray(), two.A.toarray())
    np.testing.assert_array_equal(one.c, two.c)
    np.testing.assert_array_equal(one.row_upper, two.row_upper)


def test_a_line_says_how_both_solvers_did() -> None:
    pytest.importorskip("highspy")
    words = measure("assignment", 0.05, 10.0).split()
    assert words[:5] == ["assignment", "52", "676", "1352", "optimal"]
    assert float(words[5]) < 1e-6
    assert words[-1] == "ok"


def test_an_unknown_structure_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["lp_structures.py", "--only", "assignment,none"])
    with pytest.raises(SystemExit):
        main()
    assert "unknown structure 'none'" in capsys.readouterr().err
