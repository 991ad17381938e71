"""The search that closes a small plan's gap (docs/method/integer.md, M15)."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from copter import IntegerStatus, Model, Session
from copter.shims import RoundingShim
from copter.shims.choices import Choices
from copter.shims.closing import MOST_COLUMNS


def best_by_enumeration(counts: list[float], requests: list[tuple[list[float], np.ndarray]], sense: str) -> float:
    """The best worth of all whole plans."""
    found = 0.0 if sense == "max" else np.inf
    for choice in product(*(range(-1, len(cost)) for cost, _ in requests)):
        used, worth = np.zeros(len(counts)), 0.0
        for (cost, usage), column in zip(requests, choice, strict=True):
            if column >= 0:
                used += usage[:, column]
                worth += cost[column]
        if (used <= np.array(counts) + 1e-9).all():
            found = max(found, worth) if sense == "max" else min(found, worth)
    return found


@given(st.integers(0, 10**6), st.sampled_from(["max", "min"]), st.booleans(), st.booleans())
@example(7465, "min", False, False)  # an offset that cancels the objective: relative gaps show the margin of the bound
@settings(max_examples=300, deadline=None)
def test_small_plans_are_the_best_there_are(seed: int, sense: str, fix: bool, gives: bool) -> None:
    """Also where options give units back (`gives`): what does not fit now may fit after a later request."""
    rng = np.random.default_rng(seed)
    n, m, k = int(rng.integers(1, 6)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    counts = rng.integers(0, 8, m).astype(float).tolist()
    model = Model(sense, offset=float(rng.normal()))
    for row, count in enumerate(counts):
        model.set_count(row, count)
    sign = 1.0 if sense == "max" else -1.0
    requests = []
    for i in range(n):
        cost = (sign * np.round(rng.uniform(-1.0, 5.0, k), 1)).tolist()
        usage = rng.integers(-5 if gives else 0, 5, (m, k)).astype(float)
        requests.append((cost, usage))
        model.add_request(i, cost, {row: usage[row] for row in range(m)}, integer=True)
    if fix and (requests[0][1][:, 0] <= counts).all():
        model.fix(0, 0)
        requests[0] = ([requests[0][0][0]], requests[0][1][:, :1])
        rest = [count - used for count, used in zip(counts, requests[0][1][:, 0], strict=True)]
        best = requests[0][0][0] + best_by_enumeration(rest, requests[1:], sense)
    else:
        best = best_by_enumeration(counts, requests, sense)
    plan = Session(model).solve_integer()
    assert plan.objective == pytest.approx(best + model.offset, abs=1e-9)
    assert plan.status is IntegerStatus.OPTIMAL
    assert plan.bound_is_certified
    assert sign * plan.bound >= sign * plan.objective
    assert plan.gap <= 1e-6


def twelve() -> Model:
    model = Model("max")
    model.add_resources("a100", 8)
    model.add_resources("t4", 16)
    usage = {"a100": [1, 2, 4, 0, 0], "t4": [0, 0, 0, 1, 4]}
    for job in range(12):
        model.add_request(job, [3.0, 5.0 + job / 9, 8.0, 1.0, 2.5], usage, integer=True)
    return model


def test_the_readme_s_example_is_proven_optimal() -> None:
    """12 jobs, two kinds of GPUs: the LP's bound is 1.1% above the best plan, 35 5/6."""
    session = Session(twelve())
    plan = session.solve_integer()
    assert plan.status is IntegerStatus.OPTIMAL
    assert plan.objective == pytest.approx(35 + 5 / 6)
    assert plan.bound == pytest.approx(plan.objective, abs=1e-5)
    alone = session.solve_integer(RoundingShim())
    assert alone.bound == pytest.approx(36.0 + 2.0 / 9.0)
    assert alone.status is IntegerStatus.FEASIBLE


def test_few_nodes_leave_the_lp_s_bound() -> None:
    session = Session(twelve())
    plan = session.solve_integer(RoundingShim(most_work=12))
    assert plan.status is IntegerStatus.FEASIBLE
    assert plan.bound == pytest.approx(36.0 + 2.0 / 9.0)


def test_large_models_are_left_alone() -> None:
    model = Model("max")
    model.add_resources("g", 3)
    for i in range(MOST_COLUMNS + 1):
        model.add_request(i, [1.0 + i / 7], {"g": [2]}, integer=True)
    plan = Session(model).solve_integer()
    assert plan.bound > plan.objective + 0.1


def test_continuous_requests_are_left_to_the_lp() -> None:
    model = Model("max")
    model.add_resources("g", 3)
    model.add_request("part", [1.0], {"g": [2]})
    for i in "ab":
        model.add_request(i, [3.0], {"g": [2]}, integer=True)
    plan = Session(model).solve_integer()
    assert plan.objective == pytest.approx(3.5)
    assert plan.bound == pytest.approx(4.5)


# The kernel -----------------------------------------------------------------------------------------------------------


def search(rng: np.random.Generator) -> tuple[Choices, list[list[tuple[float, np.ndarray]]], np.ndarray, np.ndarray]:
    n, m, least = int(rng.integers(1, 5)), int(rng.integers(1, 4)), int(rng.choice([0, -3]))
    price, left = rng.uniform(0.0, 1.0, m) * rng.integers(0, 2, m), rng.integers(0, 7, m).astype(float)
    options = [
        sorted(
            ((float(rng.uniform()), rng.integers(least, 4, m).astype(float)) for _ in range(rng.integers(1, 4))),
            key=lambda o: o[0],
        )
        for _ in range(n)
    ]
    flat = [option for each in options for option in each]
    start = np.cumsum([0, *(len(each) for each in options)]).astype(np.int32)
    entry_start = (np.arange(len(flat) + 1) * m).astype(np.int32)
    row = np.tile(np.arange(m, dtype=np.int32), len(flat))
    kernel = Choices(
        start,
        np.array([loss for loss, _ in flat]),
        (entry_start, row, np.concatenate([use for _, use in flat])),
        (price, left, np.zeros(m)),
        0.0,
    )
    return kernel, options, price, left


@pytest.mark.parametrize("seed", range(60))
def test_the_search_against_all_choices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kernel, options, price, left = search(rng)
    best, which = 2.5, None
    for choice in product(*(range(len(each)) for each in options)):
        used = sum((options[i][j][1] for i, j in enumerate(choice)), np.zeros(len(left)))
        loss = sum(options[i][j][0] for i, j in enumerate(choice)) + price @ (left - used)
        if (used <= left).all() and loss < best:
            best, which = loss, choice
    assert kernel.search(2.5, 10**6)
    assert kernel.found == (which is not None)
    assert kernel.worth == pytest.approx(best)
    if which is not None:
        starts = np.cumsum([0, *(len(each) for each in options)])
        assert (kernel.choice() - starts[:-1]).tolist() == list(which)
    assert not kernel.search(2.5, 0)


def test_the_kernel_refuses_arrays_that_disagree() -> None:
    one = np.zeros(1)
    start, entries, row = (
        np.array([0, 1], dtype=np.int32),
        np.array([0, 1], dtype=np.int32),
        np.zeros(1, dtype=np.int32),
    )
    Choices(start, one, (entries, row, one), (one, one, one), 0.0)
    with pytest.raises(ValueError, match="rows"):
        Choices(start, one, (entries, row, one), (one, np.zeros(2), one), 0.0)
    with pytest.raises(ValueError, match="options"):
        Choices(start, np.zeros(2), (entries, row, one), (one, one, one), 0.0)
    with pytest.raises(ValueError, match="entries"):
        Choices(start, one, (entries, row, np.zeros(2)), (one, one, one), 0.0)
    with pytest.raises(IndexError, match="row"):
        Choices(start, one, (entries, row + 1, one), (one, one, one), 0.0)
