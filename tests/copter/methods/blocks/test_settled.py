"""Blocks that prices of an earlier optimum settle: the optimum is that of all blocks (docs/method/blocks.md, K6)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_loose_rows import dense_of
from test_screen import network

from copter import Model, Session, Settings
from copter.methods.blocks import settled, solve
from copter.methods.blocks.answer import BlockAnswer
from copter.methods.blocks.program import BlockProgram
from copter.methods.blocks.reduced_program import has_limits_alone
from copter.methods.blocks.settled import Settled
from copter.methods.blocks.settled_blocks import best_costs, settled_blocks
from copter.methods.blocks.solve import solve_blocks
from copter.runtime.settings import Internals
from copter.runtime.watch import Watch


def competing(seed: int) -> BlockProgram:
    """Columns of zero and more that compete in blocks with a limit each, and for rows."""
    found = network(seed)
    n, m = found.n_columns, found.n_rows
    lower, upper = found.lower.copy(), found.upper.copy()
    lower[:n], lower[n:] = 0.0, -np.inf
    upper[n : n + m] = np.maximum(upper[n : n + m], 1e-3)
    found = replace(found, lower=lower, upper=upper)
    assert has_limits_alone(found)
    return found


def solved(program: BlockProgram, prices: np.ndarray | None = None, point: np.ndarray | None = None) -> BlockAnswer:
    with Watch(np.inf) as watch:
        answer = solve_blocks(
            program, Settings(internals=Internals(purify=False)), watch, vertex=False, prices=prices, point=point
        )
    assert answer is not None
    return answer


def edited(program: BlockProgram, seed: int, closed: int) -> BlockProgram:
    """The program with limits a few percent off, and some rows closed."""
    rng, n, m = np.random.default_rng(seed), program.n_columns, program.n_rows
    upper = program.upper.copy()
    upper[n + m :] *= rng.uniform(0.95, 1.05, len(upper) - n - m)
    upper[n + rng.choice(m, closed, replace=False)] = 0.0
    return replace(program, upper=upper)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 3), st.booleans(), st.booleans())
def test_the_optimum_with_prices_of_an_earlier_one_is_that_without(
    seed: int, closed: int, tied: bool, known: bool
) -> None:
    program = competing(seed)
    if tied:  # a unit earns the same on every column
        program = replace(program, cost=-np.ones(program.n_columns))
    before = solved(program)
    now = edited(program, seed, closed)
    one, other = solved(now, before.y, before.x if known else None), solved(now)
    assert now.cost @ one.x == pytest.approx(now.cost @ other.x, rel=1e-6)
    n, m = now.n_columns, now.n_rows
    assert (dense_of(now) @ one.x <= now.upper[n : n + m] + 1e-6).all()
    sums = np.bincount(np.repeat(np.arange(len(now.column_start) - 1), np.diff(now.column_start)), one.x)
    assert (sums <= now.upper[n + m :] * (1.0 + 1e-7)).all()
    assert (one.private <= 1e-9).all()
    assert (now.cost - dense_of(now).T @ one.y - np.repeat(one.private, np.diff(now.column_start)) > -1e-6).all()


def test_settled_blocks_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    of = solve._Run.__init__

    def seen(self, program, *rest) -> None:
        sizes.append(program.n_columns)
        of(self, program, *rest)

    monkeypatch.setattr(solve._Run, "__init__", seen)
    program = competing(5)
    prices = solved(program).y
    whole = sizes[-1]
    sizes.clear()
    solved(edited(program, 1, 0), prices)
    assert 0 < max(sizes) < 0.7 * whole


def test_too_many_loose_blocks_are_left_to_the_whole_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settled, "MOST_LEFT", 0.0)
    program = competing(7)
    first = solved(program)
    again = solved(program, first.y)
    assert program.cost @ again.x == pytest.approx(program.cost @ first.x, rel=1e-6)


def test_prices_that_say_nothing_cost_no_optimum() -> None:
    program = competing(9)
    wild = -np.random.default_rng(0).uniform(0.0, 5.0, program.n_rows)
    assert program.cost @ solved(program, wild).x == pytest.approx(program.cost @ solved(program).x, rel=1e-6)


def blocks_of(cost: list[float], column_start: list[int], limit: list[float], row_upper: float = 10.0) -> BlockProgram:
    """Blocks of columns that all take one of the single coupling row."""
    n, ones = len(cost), np.ones(len(cost))
    each = np.arange(n + 1, dtype=np.int32)
    zeros = np.zeros(n, dtype=np.int32)
    starts = np.array(column_start, dtype=np.int32)
    upper = np.concatenate((np.full(n, np.inf), [row_upper], limit))
    return BlockProgram(
        n_rows=1, column_start=starts, private_start=np.arange(len(starts), dtype=np.int32), start=each, row=zeros,
        value=ones, own_start=each, own_row=zeros, own_value=ones, cost=np.array(cost),
        lower=np.concatenate((np.zeros(n), np.full(1 + len(limit), -np.inf))), upper=upper,
    )  # fmt: skip


def test_a_block_is_settled_by_its_lead_and_equal_columns_count_once() -> None:
    program = blocks_of([-3.0, -1.0, -3.0, -3.0, 1.0, 2.0, -3.0, -2.99], [0, 2, 4, 6, 8], [1.0, 2.0, 3.0, 4.0])
    reduced, least = best_costs(program, np.zeros(1))
    assert least.tolist() == [-3.0, -3.0, 0.0, -3.0]
    taken, loose, near = settled_blocks(program, reduced, 0.5, np.zeros(4, dtype=np.uint8))
    assert taken.tolist() == [1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert loose.tolist() == [False, False, False, True]
    assert near.tolist() == [False] * 6 + [True, True]
    free = np.array([1, 1, 0, 0], dtype=np.uint8)
    taken, loose, near = settled_blocks(program, reduced, 0.5, free)
    assert not taken.any()
    assert loose.tolist() == [True, True, False, True]
    assert near.tolist() == [True, True, True, False, False, False, True, True]


def test_ties_take_the_mixture_of_a_point_scaled_to_their_limits() -> None:
    """Of the blocks with several near choices: one was full, one is new, one may stay empty, one has a bound."""
    program = blocks_of([-3.0, -2.9, -3.0, -2.95, 0.0, 0.1, -3.0, -2.99], [0, 2, 4, 6, 8], [1.0, 2.0, 3.0, 4.0])
    upper = program.upper.copy()
    upper[7] = 1.5
    program = replace(program, upper=upper)
    reduced, _ = best_costs(program, np.zeros(1))
    point = np.array([2.0, 6.0, 0.0, 0.0, 1.0, 5.0, 1.0, 1.0])
    taken, loose, near = settled_blocks(program, reduced, 0.5, np.zeros(4, dtype=np.uint8), point)
    assert taken.tolist() == [0.25, 0.75, 0.0, 0.0, 0.5, 2.5, 0.0, 0.0]
    assert loose.tolist() == [False, True, False, True]
    assert near.tolist() == [False, False, True, True, False, False, True, True]


def test_blocks_that_overfill_a_row_are_loose(monkeypatch: pytest.MonkeyPatch) -> None:
    program = blocks_of([-3.0, -1.0, -3.0, -1.0], [0, 2, 4], [6.0, 5.0])
    state = Settled.at(program, np.zeros(1))
    assert state.loose.all()
    assert state.near.all()
    roomy = program.upper.copy()
    roomy[4] = 11.0
    state = Settled.at(replace(program, upper=roomy), np.zeros(1))
    assert state.x.tolist() == [6.0, 0.0, 5.0, 0.0]
    assert state.room.tolist() == [0.0, 6.0, 0.0, 5.0]
    monkeypatch.setattr(settled, "REACH", 3.0)  # one unit too much: the larger block moves more than three
    assert Settled.at(program, np.zeros(1)).loose.tolist() == [True, False]
    monkeypatch.setattr(settled, "REACH", 7.0)
    assert Settled.at(program, np.zeros(1)).loose.tolist() == [True, True]


def test_a_row_with_a_price_is_filled_again() -> None:
    """Limits have fallen, so that the last mixture leaves a row open that has a price: blocks with room are loose."""
    program = blocks_of([-1.0, -1.0, -1.0], [0, 1, 2, 3], [3.0, 4.0, 5.0])
    state = Settled.at(program, np.array([-1.0]), np.array([1.0, 4.0, 5.0]))
    assert state.loose.tolist() == [False, False, False]  # the row is full
    state = Settled.at(program, np.array([-1.0]), np.array([1.0, 4.0, 1.0]))
    assert state.loose.tolist() == [True, False, True]
    assert state.used.tolist() == [4.0]


def test_many_ties_are_counted() -> None:
    program = blocks_of([-1.0, -1.0] * 30, list(range(0, 61, 2)), [1.0] * 30)
    assert settled.ties_a_row(program, np.zeros(1)) == 30
    assert settled.ties_a_row(replace(program, cost=np.linspace(-2.0, -1.0, 60)), np.zeros(1)) == 0


def test_a_session_with_a_closed_link_ends_at_the_optimum_of_a_new_one() -> None:
    rng = np.random.default_rng(3)
    links, commodities = 90, 700

    def made(capacity: np.ndarray, limit: np.ndarray) -> Model:
        model = Model(sense="max")
        for link in range(links):
            model.set_count(link, float(capacity[link]))
        for each in range(commodities):
            usage = {link: path.astype(float) for link, path in zip(routes[each][0], routes[each][1], strict=True)}
            model.add_request(each, gain[each], usage, limit=float(limit[each]))
        return model

    routes = []
    for _ in range(commodities):
        used = rng.choice(links, 9, replace=False)
        path = np.zeros((9, 3))
        path[np.arange(9), np.arange(9) % 3] = 1.0
        routes.append((used.tolist(), path))
    gain = rng.uniform(0.9, 1.0, (commodities, 3))
    limit = rng.pareto(2.0, commodities) + 0.1
    capacity = np.full(links, 0.8 * 3.0 * limit.sum() / links)
    plain = Settings(internals=Internals(purify=False), basis_columns=0)
    session = Session(made(capacity, limit), plain)
    session.solve()
    for step, closed in enumerate((0.0, 1.0, 0.0)):
        capacity[7] = closed * 0.8 * 3.0 * limit.sum() / links
        session.model.set_count(7, float(capacity[7]))
        now = session.solve()
        fresh = Session(made(capacity, limit), plain).solve()
        assert now.status.value == fresh.status.value == "optimal", step
        assert now.objective == pytest.approx(fresh.objective, rel=2e-6)
