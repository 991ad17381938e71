"""Every family for three rounds at a tiny scale: the arrays say what the model says, and the judge finds optima."""

from __future__ import annotations

import numpy as np
import pytest
from families import NAMES, make_family
from families.bursts import BurstyRounds
from harness import judge_plan, sparse_point
from judge import Point, judge, plan_value
from peers.program import matrix_of

from copter import Session, Settings
from copter.testing import check

SCALE = {"sia": 112, "hadar": 200, "hops": 168, "gub": 40, "transport": 40, "multicommodity": 30}


def make(name: str, seed: int = 0) -> object:
    return make_family(name, SCALE[name], churn=0.1, seed=seed, rows=12)


def require_same_program(family) -> None:
    """The family's arrays are the program that the model holds."""
    program = family.model.to_linear_program()
    everything = slice(0, len(family.requests))
    assert tuple(family.requests.tolist()) == family.model.requests
    np.testing.assert_allclose(program.c, family.costs(everything).ravel(), rtol=1e-14)
    assert abs(program.A - matrix_of(family)).max() == 0
    np.testing.assert_array_equal(program.row_upper, np.concatenate((family.capacity, family.limits)))
    np.testing.assert_array_equal(program.col_upper, np.repeat(family.limits, family.columns))


@pytest.mark.parametrize("name", NAMES)
def test_three_rounds_are_judged_optimal(name: str) -> None:
    family = make(name)
    session = Session(family.model, Settings(purify=family.integer))
    for _ in range(3):
        family.edit()
        require_same_program(family)
        plan = session.solve_integer() if family.integer else None
        solution = session.last_solution if family.integer else session.solve()
        judged = judge(family, sparse_point(family, solution))
        assert judged.gap <= 1e-6
        assert judged.violation <= 1e-6
        assert judged.objective > 0
        other = check(family.model.to_linear_program(), solution.x, solution.y)
        assert judged.objective == pytest.approx(other.objective, rel=1e-12)
        assert judged.bound == pytest.approx(other.bound, rel=1e-9)
        if plan is not None:
            judge_plan(family, plan, judged)
        family.adopt(solution if plan is None else plan)
        family.prepare()


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_sequence(name: str) -> None:
    one, two, other = make(name), make(name), make(name, seed=1)
    everything = slice(0, len(one.requests))
    for family in (one, two, other):
        family.edit()
    everything = slice(0, len(one.requests))
    np.testing.assert_array_equal(one.costs(everything), two.costs(everything))
    assert not np.array_equal(one.costs(everything), other.costs(everything))


def test_the_judge_finds_what_is_wrong() -> None:
    family = make("gub")
    family.edit()
    rows, nothing = len(family.capacity), np.zeros(0)
    none = nothing.astype(np.int64)
    idle = judge(family, Point(none, none, nothing, np.zeros(rows)))
    assert idle.objective == 0
    assert idle.bound == pytest.approx(family.costs(slice(0, 40)).max(axis=1).sum())
    twice = Point(np.array([0, 0]), np.array([0, 1]), np.array([1.0, 0.5]), np.zeros(rows))
    assert judge(family, twice).violation == pytest.approx(0.5)
    negative = judge(family, Point(none, none, nothing, np.full(rows, -0.25)))
    assert negative.violation == pytest.approx(0.25)
    assert negative.bound == pytest.approx(idle.bound)
    row, coefficient = family.pattern(slice(0, 40))
    first = Point(np.arange(40), np.zeros(40, dtype=np.int64), np.ones(40), np.zeros(rows))
    used = np.bincount(row[:, 0].ravel(), weights=coefficient[:, 0].ravel(), minlength=rows)
    assert judge(family, first).violation == pytest.approx((used - family.capacity).max())
    with pytest.raises(ValueError, match="over-commits"):
        plan_value(family, np.zeros(40, dtype=np.int64))


def test_bursts_lose_and_return_a_rack_and_stay_optimal() -> None:
    family = BurstyRounds(560, "full", 0.02, 0, every=3)
    session, before, seen, most, least = Session(family.model), family.capacity[0], [], 0, np.inf
    for _ in range(20):
        family.edit()
        plan = session.solve_integer()
        judged = judge(family, sparse_point(family, session.last_solution))
        judge_plan(family, plan, judged)
        assert judged.gap <= 1e-6
        assert family.model.count(0) == family.capacity[0]
        seen.append(family.event)
        most, least = max(most, len(family.jobs)), min(least, family.capacity[0])
        family.adopt(plan)
        family.prepare()
    assert {"burst", "rack_lost", "rack_back", "costs", "plain"} == set(seen)
    assert most >= 1.15 * family.usual
    assert least == before - family.rack < family.capacity[0] == before


def test_an_unknown_family_is_named() -> None:
    with pytest.raises(ValueError, match="unknown family 'shards'"):
        make_family("shards", 10, 0.1, 0)
