"""Programs solved by the part that prices nearby may change: the optimum is that of the whole (blocks.md, K17)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_loose_rows import dense_of, program

from copter import Model, Session, Settings, Status
from copter.methods.blocks import sift
from copter.methods.blocks.answer import BlockAnswer
from copter.methods.blocks.column_reach import column_reach, largest_of_rows
from copter.methods.blocks.path import PricePath
from copter.methods.blocks.program import BlockProgram
from copter.methods.blocks.sift import Sifting, has_parts, part_of
from copter.methods.blocks.solve import solve_blocks
from copter.methods.by_coupling import proven
from copter.runtime.watch import Watch
from tests.copter.highs import highs

TIE = 1e-9


def sums_of(found: BlockProgram) -> np.ndarray:
    """(2, blocks): least and most of every block's sum."""
    n, m = found.n_columns, found.n_rows
    return np.stack((found.lower[n + m :], found.upper[n + m :]))


def reaches(found: BlockProgram, x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, ...]:
    n = found.n_columns
    arrays = (found.column_start, found.start, found.row, found.value, found.cost, found.lower[:n], found.upper[:n])
    return column_reach(*arrays, sums_of(found), x, y, weight, TIE)


def slow_block(found: BlockProgram, g: int, x: np.ndarray, y: np.ndarray, weight: np.ndarray):
    """(held, reach, worth) of one block by the definition, in numpy; None where the block is not settled."""
    at = np.arange(found.column_start[g], found.column_start[g + 1])
    matrix, n = dense_of(found)[:, at], found.n_columns
    reduced = found.cost[at] - matrix.T @ y
    least, most = np.maximum(sums_of(found)[0, g], 0.0), sums_of(found)[1, g]
    best = int(np.argmin(reduced))
    cheapest = reduced <= reduced[best] + TIE
    before = x[at][cheapest].sum()
    amount = most if reduced[best] < -TIE else least if reduced[best] > TIE else np.clip(before, least, most)
    held = np.where(cheapest, x[at] * (amount / before), 0.0) if before > 0.0 and amount < np.inf else np.zeros(len(at))
    if before <= 0.0:
        held[best] = amount
    if (found.lower[at] != 0.0).any() or (held > found.upper[:n][at]).any() or not np.isfinite(held).all():
        return None
    if amount == np.inf:
        return None
    size = np.abs(matrix).T @ weight
    apart = np.abs(matrix - matrix[:, [best]]).T @ weight
    apart[apart <= 1e-12 * size[best]] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        if amount == 0.0 and reduced[best] > TIE:
            reach = np.where(size > 0.0, reduced / size, np.inf)
        else:
            reach = np.where(apart > 0.0, (reduced - reduced[best]) / apart, np.inf)
            own = abs(reduced[best]) / size[best] if size[best] > 0.0 else np.inf
            reach[best] = own if least < most else np.inf
    return held, reach, reduced[best] if reduced[best] < 0.0 or least > 0.0 else 0.0


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10_000), st.booleans(), st.sampled_from([1.0, 0.6]), st.booleans())
def test_reaches_are_those_of_the_definition(seed: int, negative: bool, limited: float, priced: bool) -> None:
    found, rng = program(seed, 5, 8, negative, limited), np.random.default_rng(seed)
    n, m = found.n_columns, found.n_rows
    found.lower[n + m :] = np.where(rng.random(8) < 0.3, 0.5 * np.minimum(found.upper[n + m :], 1.0), -np.inf)
    found.lower[:n] = np.where(rng.random(n) < 0.05, 0.01, 0.0)
    x, weight = rng.choice([0.0, 0.3, 1.0], n), rng.choice([0.0, 0.5, 1.0], m)
    y = -rng.uniform(0.0, 0.5, m) if priced else np.zeros(m)
    held, reach, worth, loss = reaches(found, x, y, weight)
    reduced = found.cost - dense_of(found).T @ y
    for g in range(8):
        own = slice(found.column_start[g], found.column_start[g + 1])
        expected = slow_block(found, g, x, y, weight)
        if expected is None:
            assert (reach[own] == -1.0).all()
            assert (worth[g], loss[g]) == (0.0, 0.0)
            continue
        np.testing.assert_allclose(held[own], expected[0], rtol=1e-12)
        np.testing.assert_allclose(reach[own], expected[1], rtol=1e-9, atol=1e-12)
        assert worth[g] == pytest.approx(expected[2], rel=1e-12)
        assert loss[g] == pytest.approx(reduced[own] @ (x[own] - held[own]), rel=1e-9, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.0, 0.999))
def test_within_its_reach_a_block_stays_at_its_best(seed: int, share: float) -> None:
    """Prices move by less than the least reach of a block: no other value of the block is better than what it holds."""
    found, rng = program(seed, 5, 8), np.random.default_rng(seed)
    found.upper[: found.n_columns] = np.inf
    y, weight = -rng.uniform(0.0, 0.5, 5), rng.uniform(0.1, 1.0, 5)
    held, reach, _, _ = reaches(found, np.zeros(found.n_columns), y, weight)
    for g in range(8):
        own = slice(found.column_start[g], found.column_start[g + 1])
        radius = share * min(float(reach[own].min()), 1e6)
        moved = y + radius * weight * rng.choice([-1.0, 1.0], 5)
        reduced = (found.cost - dense_of(found).T @ moved)[own]
        limit = sums_of(found)[1, g]
        assert reduced @ held[own] <= limit * min(float(reduced.min()), 0.0) + 1e-9 * (1.0 + radius)


def test_reaches_by_hand() -> None:
    """Two columns at 3 and 2 for one unit each of rows priced 1 and 0, weights 1: they change places at reach 0."""
    found = program(0, 2, 1)
    found = replace(
        found,
        column_start=np.array([0, 2], dtype=np.int32),
        start=np.array([0, 1, 2], dtype=np.int32),
        row=np.array([0, 1], dtype=np.int32),
        value=np.ones(2),
        own_start=np.arange(3, dtype=np.int32),
        own_row=np.zeros(2, dtype=np.int32),
        own_value=np.ones(2),
        cost=np.array([-3.0, -2.0]),
        lower=np.array([0.0, 0.0, -np.inf, -np.inf, -np.inf]),
        upper=np.array([np.inf, np.inf, 9.0, 9.0, 4.0]),
    )
    one = np.ones(2)
    held, reach, worth, loss = reaches(found, np.array([1.0, 1.0]), np.array([-1.0, 0.0]), one)
    assert held.tolist() == [2.0, 2.0]  # both cost -2: the shares of before, up to the limit of 4
    assert reach.tolist() == [2.0, 0.0]
    assert (worth.tolist(), loss.tolist()) == ([-2.0], [4.0])  # two units more at -2
    held, reach, worth, loss = reaches(found, np.array([1.0, 1.0]), np.array([-0.5, 0.0]), one)
    assert held.tolist() == [4.0, 0.0]
    assert reach.tolist() == [2.5, 0.25]  # half a unit apart, by two rows that move
    assert (worth.tolist(), loss.tolist()) == ([-2.5], [5.5])
    assert largest_of_rows(2, found.row, np.array([-3.0, 2.0])).tolist() == [3.0, 2.0]


def test_which_programs_have_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    found = program(0, 5, 30)
    assert not has_parts(found)
    monkeypatch.setattr(sift, "LEAST_BLOCKS", 20)
    assert has_parts(found)
    assert not has_parts(replace(found, own_value=found.own_value * 2.0))
    assert not has_parts(replace(found, private_start=(2 * found.private_start).astype(np.int32)))


def test_a_part_is_some_columns_and_rows_of_the_program() -> None:
    found = program(4, 6, 10)
    n, m = found.n_columns, found.n_rows
    kept = np.random.default_rng(4).random(n) < 0.5
    counts = np.add.reduceat(kept, found.column_start[:-1])
    rows, used = np.array([0, 2, 5]), np.arange(6.0)
    columns = np.flatnonzero(kept)
    part = part_of(found, columns, counts, rows, used)
    np.testing.assert_array_equal(dense_of(part), dense_of(found)[np.ix_(rows, columns)])
    np.testing.assert_array_equal(part.cost, found.cost[columns])
    np.testing.assert_array_equal(part.upper[: len(columns)], found.upper[columns])
    np.testing.assert_array_equal(part.upper[len(columns) : len(columns) + 3], found.upper[n + rows] - used[rows])
    np.testing.assert_array_equal(part.upper[len(columns) + 3 :], found.upper[n + m + np.flatnonzero(counts)])
    assert np.diff(part.column_start).tolist() == counts[counts > 0].tolist()


# Whole solves ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Programs of fifty blocks have parts; whether each solve came to an end by them."""
    for name, value in {"LEAST_BLOCKS": 50, "LEAST_MORE": 20, "MOST_COLUMNS": 0.9}.items():
        monkeypatch.setattr(sift, name, value)
    by_parts, run = [], Sifting.run

    def watched(self: Sifting, rows: np.ndarray) -> BlockAnswer | None:
        answer = run(self, rows)
        by_parts.append(answer is not None)
        return answer

    monkeypatch.setattr(Sifting, "run", watched)
    return by_parts


def network(seed: int, blocks: int = 300) -> BlockProgram:
    """A program of which some rows bind; limits of columns are as wide as those of blocks."""
    found = program(seed, 30, blocks)
    found.upper[: found.n_columns] = np.inf
    return found


def changed(found: BlockProgram, seed: int, kind: str) -> BlockProgram:
    """Other limits, capacities, or a row without any."""
    rng, (n, m) = np.random.default_rng(seed), (found.n_columns, found.n_rows)
    upper = found.upper.copy()
    if kind == "limits":
        upper[n + m :] *= rng.uniform(0.9, 1.1, len(upper) - n - m)
    elif kind == "some-limits":
        upper[n + m :] *= np.where(rng.random(len(upper) - n - m) < 0.02, rng.uniform(0.0, 2.0), 1.0)
    elif kind == "capacities":
        upper[n : n + m] *= rng.uniform(0.9, 1.1, m)
    else:
        upper[n + rng.integers(m)] = 0.0
    return replace(found, upper=upper)


def solved(found: BlockProgram, path: PricePath, last: BlockAnswer | None, vertex: bool = False) -> BlockAnswer:
    def accept(answer: BlockAnswer) -> bool:
        return proven(found, answer, 0.0).residuals.within(1e-6, 1e-6)

    with Watch(np.inf) as watch:
        answer = solve_blocks(found, Settings(threads=1), watch, vertex, path, accept, last)
    assert answer is not None
    return answer


@pytest.mark.parametrize("kind", ["limits", "some-limits", "capacities", "closed"])
@pytest.mark.parametrize("seed", range(5))
def test_the_optimum_is_that_of_the_whole_program(small_parts: list[bool], seed: int, kind: str) -> None:
    found = network(seed)
    path = PricePath(np.zeros(found.n_rows, dtype=np.int64))
    last = solved(found, path, None)
    for again in range(4):
        found = changed(network(seed), 10 * seed + again, kind)
        last = solved(found, path, last, vertex=again == 3)
        proof = proven(found, last, 0.0)
        assert proof.residuals.within(1e-6, 1e-6)
        whole = solved(found, PricePath(path.row_generation), None)
        assert proof.objective == pytest.approx(float(found.cost @ whole.x), rel=3e-6)
        n, m = found.n_columns, found.n_rows
        own = np.add.reduceat(last.x, found.column_start[:-1])
        assert (own <= found.upper[n + m :] * (1.0 + 1e-9) + 1e-12).all()
    assert len(small_parts) == 4
    assert any(small_parts)


def test_prices_of_blocks_complete_a_dual_point(small_parts: list[bool]) -> None:
    """Coupling rows' prices and blocks' prices together prove the optimum by the textbook's bound."""
    found = network(7)
    path = PricePath(np.zeros(found.n_rows, dtype=np.int64))
    last = solved(found, path, None)
    found = changed(found, 1, "limits")
    answer = solved(found, path, last)
    assert small_parts == [True]
    n, m = found.n_columns, found.n_rows
    block = np.repeat(np.arange(len(found.column_start) - 1), np.diff(found.column_start))
    reduced = found.cost - dense_of(found).T @ answer.y - answer.private[block]
    assert reduced.min() >= -1e-6
    assert max(answer.private.max(), answer.y.max()) <= 1e-12
    bound = answer.y @ found.upper[n : n + m] + answer.private @ found.upper[n + m :]
    assert bound == pytest.approx(float(found.cost @ answer.x), rel=3e-6)


def test_blocks_that_stay_make_room_in_a_row_that_is_too_full(small_parts: list[bool]) -> None:
    """Half of a capacity is lost: blocks that were settled on it must give way, however sure they were."""
    found = network(3)
    path = PricePath(np.zeros(found.n_rows, dtype=np.int64))
    last = solved(found, path, None)
    n, m = found.n_columns, found.n_rows
    row = int(np.argmin(last.y))  # the dearest
    upper = found.upper.copy()
    upper[n + row] *= 0.3
    found = replace(found, upper=upper)
    answer = solved(found, path, last)
    assert small_parts == [True]
    assert (dense_of(found) @ answer.x)[row] <= upper[n + row] * (1.0 + 1e-8)
    whole = solved(found, PricePath(path.row_generation), None)
    assert found.cost @ answer.x == pytest.approx(float(found.cost @ whole.x), rel=3e-6)
    assert m == 30


def test_prices_that_no_bound_answers_for_are_none() -> None:
    found = network(0)
    n, m = found.n_columns, found.n_rows
    last = BlockAnswer(np.zeros(n), np.ones(m), 0, np.zeros(0))  # rows have upper bounds: a price is at most zero
    sifting = Sifting(found, last, lambda part, rows: None, lambda answer: True, False)
    assert sifting.y.tolist() == [0.0] * m
    assert sifting.run(np.ones(m, dtype=np.bool_)) is None  # no part was solved


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_sessions_with_parts_agree_with_highs(seed: int) -> None:
    """Rounds of limits, counts and costs, requests that come and go, over more rows than the proximal method takes."""
    rng, model = np.random.default_rng(seed), Model(sense="max")
    rows = 70
    for row in range(rows):
        model.add_resources(row, float(rng.uniform(2.0, 8.0)))

    def add(name: int) -> None:
        paths = [rng.choice(rows, 3, replace=False) for _ in range(int(rng.integers(1, 4)))]
        used = {int(k): [float(k in path) for path in paths] for k in np.unique(np.concatenate(paths))}
        model.add_request(name, rng.uniform(0.5, 1.5, len(paths)), used, limit=float(rng.uniform(0.2, 2.0)))

    for name in range(160):
        add(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sift, "LEAST_BLOCKS", 50)
        patch.setattr("copter.methods.blocks.basis.MOST_COLD", (0.0, 0.0))  # no pivots
        session = Session(model, Settings(purify=False, basis_columns=0))
        for again in range(5):
            solution = session.solve()
            assert solution.status is Status.OPTIMAL
            assert solution.objective == pytest.approx(highs(model.to_linear_program())[1], rel=3e-6)
            model.update_limits(list(range(again + 1, 100, 7)), rng.uniform(0.2, 2.0, len(range(again + 1, 100, 7))))
            model.set_count(int(rng.integers(rows)), float(rng.choice([0.0, 3.0, 9.0])))
            model.remove_request(100 + again)
            add(1000 + again)


def crowded(seed: int) -> Model:
    """A model of 120 requests with two columns each, over more rows than the proximal method takes."""
    rng, model = np.random.default_rng(seed), Model(sense="max")
    for row in range(70):
        model.add_resources(row, 3.0)
    for name in range(120):
        used = {int(k): [1.0, 0.0] if at % 2 else [0.0, 1.0] for at, k in enumerate(rng.choice(70, 4, replace=False))}
        model.add_request(name, rng.uniform(0.5, 1.5, 2), used, limit=2.0)
    return model


def test_an_answer_that_an_interrupted_round_left_is_not_solved_for_again() -> None:
    model = crowded(6)
    session = Session(model, Settings(purify=False, basis_columns=0))
    first = session.solve()
    x = first.x.copy()
    model.set_count(0, 0.0)
    assert session.solve(deadline_s=1e-9).status is Status.TIME_LIMIT
    model.set_count(0, 3.0)
    again = session.solve()
    assert again.status is Status.OPTIMAL
    assert again.iterations == 0
    assert again.objective == pytest.approx(first.objective, rel=1e-9)
    assert again.x == pytest.approx(x, abs=1e-9)


def test_blocks_are_solved_whatever_the_most_columns_of_the_generic_method() -> None:
    model = crowded(5)
    solution = Session(model, Settings(interior_columns=1, basis_columns=0)).solve()
    assert solution.status is Status.OPTIMAL
    assert solution.proximal_steps == 0
    assert solution.objective == pytest.approx(highs(model.to_linear_program())[1], rel=3e-6)


def test_a_model_that_loses_all_of_its_requests() -> None:
    model = crowded(7)
    session = Session(model, Settings(purify=False, basis_columns=0))
    assert session.solve().status is Status.OPTIMAL
    model.remove_requests(list(range(119)))
    one = session.solve()
    assert one.status is Status.OPTIMAL
    assert one.objective == pytest.approx(highs(model.to_linear_program())[1], rel=3e-6)
    model.remove_request(119)
    none = session.solve()
    assert none.status is Status.OPTIMAL
    assert none.objective == 0.0
