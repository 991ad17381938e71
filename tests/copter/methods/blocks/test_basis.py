"""The dual simplex method on blocks: as HiGHS ends from any prices, and again from the kept basis after edits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from highspy import HighsModelStatus
from hypothesis import example, given, settings
from hypothesis import strategies as st

from copter import LinearProgram
from copter.methods.blocks.basis import BlockWarmBasis, Ending, LastRound, applies_to, begun, carried, ended, renewed
from copter.methods.blocks.breakpoints import Breakpoints
from copter.methods.blocks.program import BlockProgram, sums_before
from copter.methods.blocks.slotted_program import SlottedProgram
from copter.methods.blocks.working_inverse import WorkingInverse
from copter.runtime.watch import Watch
from tests.copter.by_highs import highs

FOREVER = Watch(float("inf"))


def program_like(rng: np.random.Generator, blocks: int, rows: int, exotic: bool = True) -> BlockProgram:
    """Blocks of up to four columns with a sum each; with `exotic` all kinds of bounds, twins and signs."""
    counts = rng.integers(1, 5, blocks)
    n = int(counts.sum())
    entries, values = [], []
    for _ in range(n):
        used = np.sort(rng.choice(rows, min(rows, int(rng.integers(0, 4))), replace=False))
        value = rng.integers(1, 4, len(used)).astype(float)
        if exotic and rng.random() < 0.2:
            value *= rng.choice([-1.0, 1.0], len(used))
        if entries and rng.random() < 0.15:
            used, value = entries[-1], values[-1]
        entries.append(used)
        values.append(value)
    start = sums_before(np.array([len(used) for used in entries]))
    lower, upper = np.zeros(n), np.full(n, np.inf)
    least, most = np.full(blocks, -np.inf), rng.integers(1, 5, blocks).astype(float)
    row_lower, row_upper = np.full(rows, -np.inf), rng.integers(0, blocks, rows).astype(float)
    cost = -rng.integers(0, 6, n).astype(float)
    if exotic:
        boxed = rng.random(n) < 0.3
        upper[boxed] = rng.integers(0, 3, int(boxed.sum()))
        equal = rng.random(blocks) < 0.15
        least[equal] = most[equal]
        ranged = rng.random(blocks) < 0.15
        least[ranged] = most[ranged] - 1.0
        ranged_rows = rng.random(rows) < 0.2
        row_lower[ranged_rows] = row_upper[ranged_rows] - rng.integers(0, 3, int(ranged_rows.sum()))
        row_upper[rng.random(rows) < 0.1] = np.inf
    limited = np.ones(blocks, dtype=bool)
    return BlockProgram(
        n_rows=rows,
        column_start=sums_before(counts),
        private_start=sums_before(limited),
        start=start,
        row=np.concatenate(entries).astype(np.int32),
        value=np.concatenate(values).astype(float),
        own_start=np.arange(n + 1, dtype=np.int32),
        own_row=np.zeros(n, dtype=np.int32),
        own_value=np.ones(n),
        cost=cost,
        lower=np.concatenate((lower, row_lower, least)),
        upper=np.concatenate((upper, row_upper, most)),
    )


def whole(program: BlockProgram) -> LinearProgram:
    """The same as one linear program."""
    n, blocks = program.n_columns, len(program.column_start) - 1
    coupling = sp.csc_array((program.value, program.row, program.start), shape=(program.n_rows, n))
    block = np.repeat(np.arange(blocks), np.diff(program.column_start))
    sums = sp.csc_array((np.ones(n), (block, np.arange(n))), shape=(blocks, n))
    return LinearProgram(
        c=program.cost,
        A=sp.vstack((coupling, sums)).tocsc(),
        row_lower=program.lower[n:],
        row_upper=program.upper[n:],
        col_lower=program.lower[:n],
        col_upper=program.upper[:n],
    )


def names(program: BlockProgram) -> tuple[np.ndarray, np.ndarray]:
    """Slots and generations of the blocks: their numbers."""
    blocks = len(program.column_start) - 1
    return np.arange(blocks, dtype=np.int32), np.ones(blocks, dtype=np.int64)


def ends_as_highs(program: BlockProgram, state: LastRound) -> bool:
    """Pivot to the end, and ask HiGHS for the same program; whether there is an optimum."""
    ending = ended(state, FOREVER)
    assert ending in (Ending.OPTIMAL, Ending.INFEASIBLE)
    if ending == Ending.OPTIMAL:
        assert_as_highs(program, state.dual.values, state.dual.prices)
    else:
        assert highs(whole(program))[0] == HighsModelStatus.kInfeasible
    return ending == Ending.OPTIMAL


def assert_as_highs(program: BlockProgram, values: np.ndarray, prices: np.ndarray) -> None:
    """The point is feasible, and as good as HiGHS's."""
    lp = whole(program)
    status, value, *_ = highs(lp)
    n = program.n_columns
    x = values[:n]
    activity = np.concatenate((x, lp.A @ x))
    assert status == HighsModelStatus.kOptimal
    assert (activity >= program.lower - 1e-7).all()
    assert (activity <= program.upper + 1e-7).all()
    assert float(program.cost @ x) == pytest.approx(value, rel=1e-7, abs=1e-7)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_from_any_prices_it_ends_as_highs_does(seed, exotic, from_zero):
    rng = np.random.default_rng(seed)
    program = program_like(rng, int(rng.integers(1, 25)), int(rng.integers(1, 8)), exotic)
    assert applies_to(program)
    prices = np.zeros(program.n_rows) if from_zero else rng.normal(0.0, 1.0, program.n_rows)
    start = begun(program, *names(program), prices)
    if start is None:  # a block that contradicts itself
        assert highs(whole(program))[0] != HighsModelStatus.kOptimal
        return
    ends_as_highs(program, start)


def edited(rng: np.random.Generator, program: BlockProgram) -> BlockProgram:
    """New limits, new capacities, and new costs of some blocks."""
    n, m = program.n_columns, program.n_rows
    upper, cost = program.upper.copy(), program.cost.copy()
    some = rng.random(len(upper)) < 0.2
    some[:n] = False
    some &= np.isneginf(program.lower) & np.isfinite(upper)
    upper[some] = np.maximum(upper[some] + rng.integers(-2, 3, int(some.sum())), 0.0)
    block = np.repeat(np.arange(len(program.column_start) - 1), np.diff(program.column_start))
    repriced = (rng.random(len(program.column_start) - 1) < 0.1)[block]
    cost[repriced] = -rng.integers(0, 6, int(repriced.sum())).astype(float)
    if rng.random() < 0.3:
        link = n + int(rng.integers(m))
        if np.isneginf(program.lower[link]):
            upper[link] = 0.0
    return replace(program, upper=upper, cost=cost)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_a_kept_basis_ends_as_highs_does_after_edits(seed, exotic):
    rng = np.random.default_rng(seed)
    program = program_like(rng, 30, 6, exotic)
    last = begun(program, *names(program), np.zeros(program.n_rows))
    if last is None or ended(last, FOREVER) != Ending.OPTIMAL:
        return
    for _ in range(4):
        program = edited(rng, program)
        last = carried(last, program, *names(program))
        assert last is not None
        if not ends_as_highs(program, last):
            return


def written_over(last: LastRound, program: BlockProgram) -> bool:
    """Write a program of the same sizes over the kept one, and bring the basis to it."""
    old, n, m, blocks = last.program, program.n_columns, program.n_rows, len(program.column_start) - 1
    block = np.concatenate((np.repeat(np.arange(blocks), np.diff(program.column_start)), np.arange(blocks)))
    changed, own = np.zeros(blocks + 1, dtype=np.uint8), np.r_[0:n, n + m : n + m + blocks]
    for one, other in ((old.lower, program.lower), (old.upper, program.upper)):
        changed[block[one[own] != other[own]]] = 1
    entry = block[np.repeat(np.arange(n), np.diff(program.start))]
    changed[block[:n][old.cost != program.cost]] = 2
    changed[entry[(old.row != program.row) | (old.value != program.value)]] = 3
    for name in ("cost", "row", "value", "lower", "upper"):
        getattr(old, name)[:] = getattr(program, name)
    order, stamps = np.arange(blocks, dtype=np.int32), np.zeros(blocks, dtype=np.int64)
    slotted = SlottedProgram(old, last.slots, order, last.generation, stamps, changed)
    return renewed(last, slotted)


def of_other_contents(rng: np.random.Generator, program: BlockProgram, share: float) -> BlockProgram:
    """Other limits, costs, or rows and coefficients of some blocks, as many entries as before; and other capacities."""
    n, m = program.n_columns, program.n_rows
    found = replace(program, **{k: getattr(program, k).copy() for k in ("cost", "row", "value", "upper")})
    for g in np.flatnonzero(rng.random(len(program.column_start) - 1) < share).tolist():
        columns, kind = range(program.column_start[g], program.column_start[g + 1]), rng.integers(4)
        if kind == 0 and np.isneginf(program.lower[n + m + g]):
            found.upper[n + m + g] = max(found.upper[n + m + g] + rng.integers(-2, 3), 0.0)
        elif kind in (1, 3):
            found.cost[columns] = -rng.integers(0, 6, len(columns)).astype(float)
        for j in columns if kind > 1 else ():
            at = slice(int(program.start[j]), int(program.start[j + 1]))
            found.row[at] = np.sort(rng.choice(m, at.stop - at.start, replace=False))
            found.value[at] = rng.integers(1, 4, at.stop - at.start)
    row = n + int(rng.integers(m))
    if rng.random() < 0.4 and np.isneginf(program.lower[row]):
        found.upper[row] = float(rng.integers(0, len(program.column_start)))
    return found


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_a_basis_that_follows_edits_in_place_ends_as_highs_does(seed, exotic):  # K14
    rng = np.random.default_rng(seed)
    blocks, m = int(rng.integers(20, 200)), int(rng.integers(2, 12))
    program = program_like(rng, blocks, m, exotic)
    first = replace(program, **{k: getattr(program, k).copy() for k in ("cost", "row", "value", "lower", "upper")})
    last = begun(first, *names(first), np.zeros(m))
    if last is None or ended(last, FOREVER) != Ending.OPTIMAL:
        return
    for _ in range(6):
        program = of_other_contents(rng, program, float(rng.choice([0.02, 0.1])))
        if not written_over(last, program):  # a block that contradicts itself
            assert highs(whole(program))[0] == HighsModelStatus.kInfeasible
            return
        if not ends_as_highs(program, last):
            return
        assert last.dual.error() < 1e-9


def bottlenecks(rng: np.random.Generator, blocks: int, rows: int) -> BlockProgram:
    """Many blocks of three columns over few rows; most columns are like others, and rows begin and cease to bind."""
    matrix = (rng.random((rows, 3 * blocks)) < 0.3).astype(float)
    usage = sp.csc_array(matrix)
    usage.sort_indices()
    n = 3 * blocks
    limit = rng.integers(1, 6, blocks).astype(float)
    capacity = rng.integers(blocks // 4, blocks, rows).astype(float)
    return BlockProgram(
        n_rows=rows,
        column_start=np.arange(0, n + 1, 3, dtype=np.int32),
        private_start=np.arange(blocks + 1, dtype=np.int32),
        start=usage.indptr.astype(np.int32),
        row=usage.indices.astype(np.int32),
        value=usage.data,
        own_start=np.arange(n + 1, dtype=np.int32),
        own_row=np.zeros(n, dtype=np.int32),
        own_value=np.ones(n),
        cost=-np.ones(n),
        lower=np.concatenate((np.zeros(n), np.full(rows + blocks, -np.inf))),
        upper=np.concatenate((np.full(n, np.inf), capacity, limit)),
    )


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
@example(3686)
def test_classes_of_like_columns_change_nothing(seed):  # K13
    rng = np.random.default_rng(seed)
    program = bottlenecks(rng, 120, 6)
    n, m = program.n_columns, program.n_rows
    last = begun(program, *names(program), np.zeros(m))
    assert ended(last, FOREVER, 4.0) == Ending.OPTIMAL
    for _ in range(6):
        upper = program.upper.copy()
        some = n + np.flatnonzero(rng.random(len(upper) - n) < 0.2)
        upper[some] = np.maximum(upper[some] * rng.uniform(0.3, 1.8, len(some)), 0.0)
        program, before = replace(program, upper=upper), last
        assert last.differs_in_right_sides(program, *names(program))
        last = carried(last, program, *names(program))
        assert last.dual is before.dual  # nothing was made anew
        assert ended(last, FOREVER, 4.0) == Ending.OPTIMAL
        assert 1 <= last.dual.classes.n_classes <= 2**m  # one if the ratio tests did not need them
        assert_as_highs(program, last.dual.values, last.dual.prices)


def test_blocks_that_leave_and_come_are_known_by_slot_and_generation():
    rng = np.random.default_rng(5)
    program = program_like(rng, 40, 6, exotic=False)
    warm, slots = BlockWarmBasis(), np.arange(40, dtype=np.int32)
    generation = np.ones(40, dtype=np.int64)
    assert warm.solve(program, slots, generation, np.zeros(6), FOREVER) is not None
    for _ in range(6):
        other = program_like(rng, 40, 6, exotic=False)
        stay = rng.random(40) < 0.8
        program, generation = mixed(program, other, stay), generation + ~stay
        answer = warm.solve(program, slots, generation, np.zeros(6), FOREVER)
        assert answer is not None
        assert answer.vertex
        assert_as_highs(program, answer.x, answer.y)


def mixed(one: BlockProgram, other: BlockProgram, stay: np.ndarray) -> BlockProgram:
    """Blocks of one program where they stay, else those of the other; the rows of the first."""
    parts: dict[str, list[np.ndarray]] = {k: [] for k in ("cost", "lower", "upper", "row", "value")}
    counts, lengths, least, most = [], [], [], []
    for g, stays in enumerate(stay.tolist()):
        p = one if stays else other
        first, last = p.column_start[g], p.column_start[g + 1]
        counts.append(last - first)
        lengths.extend(np.diff(p.start)[first:last])
        parts["cost"].append(p.cost[first:last])
        parts["lower"].append(p.lower[first:last])
        parts["upper"].append(p.upper[first:last])
        parts["row"].append(p.row[p.start[first] : p.start[last]])
        parts["value"].append(p.value[p.start[first] : p.start[last]])
        least.append(p.lower[p.n_columns + p.n_rows + g])
        most.append(p.upper[p.n_columns + p.n_rows + g])
    n, m = sum(counts), one.n_rows
    rows = slice(one.n_columns, one.n_columns + m)
    return BlockProgram(
        n_rows=m,
        column_start=sums_before(np.array(counts)),
        private_start=one.private_start,
        start=sums_before(np.array(lengths)),
        row=np.concatenate(parts["row"]),
        value=np.concatenate(parts["value"]),
        own_start=np.arange(n + 1, dtype=np.int32),
        own_row=np.zeros(n, dtype=np.int32),
        own_value=np.ones(n),
        cost=np.concatenate(parts["cost"]),
        lower=np.concatenate((*parts["lower"], one.lower[rows], least)),
        upper=np.concatenate((*parts["upper"], one.upper[rows], most)),
    )


def test_prices_and_private_prices_prove_the_optimum():
    program = program_like(np.random.default_rng(3), 50, 7, exotic=False)
    answer = BlockWarmBasis().solve(program, *names(program), np.zeros(7), FOREVER)
    assert answer is not None
    usage = sp.csc_array((program.value, program.row, program.start), shape=(7, program.n_columns)).T @ answer.y
    block = np.repeat(np.arange(50), np.diff(program.column_start))
    reduced = program.cost - usage - answer.private[block]
    assert (reduced >= -1e-9).all()
    assert (answer.y <= 1e-9).all()
    assert (answer.private <= 1e-9).all()
    n = program.n_columns
    bound = float(answer.y @ program.upper[n : n + 7] + answer.private @ program.upper[n + 7 :])
    assert bound == pytest.approx(float(program.cost @ answer.x), rel=1e-9)


def test_more_rows_than_before_keep_the_basis():
    program = program_like(np.random.default_rng(8), 40, 5, exotic=False)
    last = begun(program, *names(program), np.zeros(5))
    assert last is not None
    assert ended(last, FOREVER) == Ending.OPTIMAL
    n = program.n_columns
    lower = np.concatenate((program.lower[: n + 5], [-np.inf], program.lower[n + 5 :]))
    upper = np.concatenate((program.upper[: n + 5], [3.0], program.upper[n + 5 :]))
    wider = replace(program, n_rows=6, lower=lower, upper=upper)
    more = carried(last, wider, *names(wider))
    assert more is not None
    assert ended(more, FOREVER) == Ending.OPTIMAL
    assert more.dual.pivots == 0
    assert carried(more, program, *names(program)) is None  # fewer rows: the basis does not fit


def test_what_the_method_does_not_know_is_left_to_others():
    program = program_like(np.random.default_rng(1), 5, 3, exotic=False)
    doubled = replace(program, own_value=2.0 * program.own_value)
    assert not applies_to(doubled)
    assert BlockWarmBasis().solve(doubled, *names(doubled), np.zeros(3), FOREVER) is None
    assert BlockWarmBasis().solve(program, *names(program), np.zeros(3), Watch(1e-9)) is None


def test_the_inverse_is_that_of_the_basis_after_many_pivots():
    program = program_like(np.random.default_rng(11), 200, 12, exotic=False)
    start = begun(program, *names(program), np.zeros(12))
    assert start is not None
    assert ended(start, FOREVER) == Ending.OPTIMAL
    dual, n, blocks = start.dual, program.n_columns, 200
    matrix = sp.csc_array(
        (program.value * start.scale[program.row], program.row, program.start), shape=(12, n)
    ).toarray()
    basis = np.zeros((12, 12))
    block = np.repeat(np.arange(blocks), np.diff(program.column_start))
    for p, v in enumerate(dual.heads.tolist()):
        if v >= n + blocks:
            basis[v - n - blocks, p] = -1.0
            continue
        g = block[v] if v < n else v - n
        key = dual.keys[g]
        own = matrix[:, v] if v < n else np.zeros(12)
        sign = (1.0 if v < n else -1.0) * (1.0 if key < n else -1.0)
        basis[:, p] = own - (sign * matrix[:, key] if key < n else 0.0)
    assert np.allclose(dual.inverse.entries.T @ basis, np.eye(12), atol=1e-9)
    assert dual.pivots > 5
    assert dual.error() < 1e-9


def test_an_inverse_begins_as_that_of_the_rows_activities():
    inverse = WorkingInverse(3)
    inverse.reset()
    assert np.array_equal(inverse.entries, -np.eye(3))
    assert np.array_equal(inverse.norms, np.ones(3))


@given(st.lists(st.floats(0.0, 10.0), min_size=1, max_size=50))
def test_breakpoints_come_in_order(steps):
    ahead = Breakpoints(len(steps))
    for variable, step in enumerate(steps):
        ahead.push(variable, step)
    taken = [ahead.pop() for _ in steps]
    assert [step for _, step in taken] == sorted(steps)
    assert sorted(variable for variable, _ in taken) == list(range(len(steps)))
    with pytest.raises(IndexError, match="no breakpoints"):
        ahead.pop()


class Patience:
    """A watch that says stop after so many looks."""

    def __init__(self, looks: int) -> None:
        self.left = looks

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("looks", [1, 2, 3, 5])
def test_a_round_out_of_time_leaves_the_basis_to_the_next(looks, monkeypatch):
    monkeypatch.setattr("copter.methods.blocks.basis.SLICE", 1)
    rng = np.random.default_rng(5)
    program = program_like(rng, 40, 6, exotic=False)
    basis, prices = BlockWarmBasis(), np.zeros(program.n_rows)
    while basis.solve(program, *names(program), prices, Patience(looks)) is None:
        assert looks < 2 or basis.last is not None
        looks += 1
    assert_as_highs(program, basis.last.dual.values, basis.last.dual.prices)
