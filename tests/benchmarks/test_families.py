"""Every family for a few rounds at a tiny scale: the arrays say what the model says, and the judge finds optima."""

from __future__ import annotations

import numpy as np
import pytest
from families import FAMILIES, NAMES, Instance, make_family
from families.bursts import BurstyRounds
from families.protocol import SolverOptions
from families.verdicts import judge_plan
from judge import judge

SCALE = {"sia": 112, "bursts": 560} | dict.fromkeys(("gub", "transport", "multicommodity"), 40)
CHANGES = [(name, change) for name in NAMES for change in FAMILIES[name].kind.changes]


def make(name: str, seed: int = 0, change: str | None = None):
    amount = 0.1 if change in (None, "churn") else None
    return make_family(name, Instance(SCALE[name], change, amount, seed, rows=12))


def require_same_program(family) -> None:
    """The family's arrays are the program that the model holds."""
    held, said = family.model.to_linear_program(), family.program()
    assert tuple(family.requests.tolist()) == family.model.requests
    np.testing.assert_allclose(held.c, said.c, rtol=1e-14, atol=1e-15)
    assert abs(held.A - said.A).max() == 0
    for side in ("row_lower", "row_upper", "col_lower", "col_upper"):
        np.testing.assert_array_equal(getattr(held, side), getattr(said, side))


@pytest.mark.parametrize(("name", "change"), CHANGES)
def test_rounds_are_judged_optimal_after_every_kind_of_change(name: str, change: str) -> None:
    family = make(name, change=change)
    solver, last = family.solver(SolverOptions()), None
    for _ in range(3):
        family.edit()
        require_same_program(family)
        outcome, program = solver.solve(), family.program()
        for keys in (program.column_key, program.row_key):
            assert len(np.unique(keys)) == len(keys)
        assert last is None or np.isin(program.column_key, last).mean() > 0.4
        last = program.column_key
        judged = judge(program, *family.point(outcome))
        assert judged.residual <= 1e-6
        assert judged.objective > 0
        judge_plan(family, program, outcome, judged.bound)
        family.adopt(outcome)
        family.prepare()


@pytest.mark.parametrize("name", NAMES)
def test_parts_are_judged_as_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("families.uniform.CHUNK", 100)
    family = make(name)
    family.edit()
    outcome = family.solver(SolverOptions()).solve()
    parts, whole = family.judged_in_parts(outcome), judge(family.program(), *family.point(outcome))
    assert parts.objective == pytest.approx(whole.objective, rel=1e-12)
    assert parts.bound == pytest.approx(whole.bound, rel=1e-9)
    assert parts.bound_is_certified
    assert parts.residual <= 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_sequence(name: str) -> None:
    one, two, other = make(name), make(name), make(name, seed=1)
    for family in (one, two, other):
        family.edit()
    first = one.program()
    np.testing.assert_array_equal(first.c, two.program().c)
    np.testing.assert_array_equal(first.row_upper, two.program().row_upper)
    unlike = other.program()
    assert first.shape != unlike.shape or (first.c != unlike.c).any() or (first.row_upper != unlike.row_upper).any()


def test_a_change_is_the_change_that_was_asked_for() -> None:
    for change, name in (("limits", "transport"), ("some-limits", "multicommodity"), ("costs", "gub")):
        family = make(name, change=change)
        family.edit()
        before = family.program()
        family.prepare()
        family.edit()
        now, shared = family.program(), len(family.capacity)
        np.testing.assert_array_equal(now.column_key, before.column_key)
        limits = now.row_upper[shared:] / before.row_upper[shared:]
        assert (now.row_upper[:shared] == before.row_upper[:shared]).all()
        assert (now.c != before.c).all() == (change == "costs")
        if change == "limits":
            assert 0.0 < abs(limits - 1.0).max() <= 0.05
            assert (limits != 1.0).all()
        else:
            assert (limits != 1.0).sum() == (change == "some-limits")


def test_a_link_goes_out_and_comes_back() -> None:
    family = make("multicommodity", change="link")
    family.edit()
    counts = [family.program().row_upper.copy()]
    for _ in range(4):
        family.prepare()
        family.edit()
        counts.append(family.program().row_upper.copy())
        assert family.model.count(int(family.recounted[0])) == family.capacity[family.recounted[0]]
    assert [int((c != counts[0]).sum()) for c in counts] == [0, 1, 0, 1, 0]
    assert counts[1].min() == counts[3].min() == 0.0


def test_the_harness_sees_a_plan_that_is_wrong() -> None:
    family = make("gub")
    family.edit()
    outcome = family.solver(SolverOptions()).solve()
    program = family.program()
    with pytest.raises(SystemExit, match="the bound is"):
        judge_plan(family, program, outcome, 0.9 * outcome.plan.objective)
    tight = outcome.plan.objective
    judge_plan(family, program, outcome, outcome.bound)
    family.capacity = family.capacity / 4.0
    with pytest.raises(SystemExit, match=f"says {tight}"):
        judge_plan(family, family.program(), outcome, outcome.bound)


def test_bursts_lose_and_return_a_rack_and_stay_optimal() -> None:
    family = BurstyRounds(560, "full", 0.02, 0, every=3)
    solver, before, seen, most, least = family.solver(SolverOptions()), family.capacity[0], [], 0, np.inf
    for _ in range(20):
        family.edit()
        outcome, program = solver.solve(), family.program()
        judged = judge(program, *family.point(outcome))
        judge_plan(family, program, outcome, judged.bound)
        assert judged.gap <= 1e-6
        assert family.model.count(0) == family.capacity[0]
        seen.append(family.event)
        most, least = max(most, len(family.jobs)), min(least, family.capacity[0])
        family.adopt(outcome)
        family.prepare()
    assert {"burst", "rack_lost", "rack_back", "costs", "plain"} == set(seen)
    assert most >= 1.15 * family.usual
    assert least == before - family.rack < family.capacity[0] == before


@pytest.mark.parametrize(
    ("name", "instance", "complaint"),
    [
        ("knapsack", Instance(10), "unknown family 'knapsack'"),
        ("gub", Instance(40, "limits"), "gub knows no change 'limits'"),
        ("sia", Instance(40), "must be >= 56"),
    ],
)
def test_what_there_is_not_is_named(name: str, instance: Instance, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        make_family(name, instance)
