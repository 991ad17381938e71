"""Every status has its words, and each word is one of the library that it is for."""

from __future__ import annotations

import pytest

from copter.interop.statuses import WORDS
from copter.methods.integer.solution import IntegerStatus
from copter.problem.solution import Status

EVERY = sorted({each.value for kind in (Status, IntegerStatus) for each in kind})


def test_a_row_for_each_status_and_no_other():
    assert sorted(WORDS) == EVERY


def test_scipy_has_a_message_for_every_status_of_a_solve():
    assert all(WORDS[each.value].message for each in Status)


@pytest.mark.parametrize("status", EVERY)
def test_words_are_those_of_linopy_cvxpy_and_pyomo(status):
    linopy = pytest.importorskip("linopy.constants")
    settings = pytest.importorskip("cvxpy.settings")
    pyomo = pytest.importorskip("pyomo.contrib.solver.common.results")
    words = WORDS[status]
    assert words.linopy in linopy.TerminationCondition.__members__
    assert words.pyomo in pyomo.TerminationCondition.__members__
    assert isinstance(getattr(settings, words.cvxpy), str)
