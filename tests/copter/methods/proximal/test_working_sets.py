"""The columns between two pricing passes: how they come in, start, leave, and stay within bounds and limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from copter import Model
from copter.methods.proximal.splice import merged_keys, places_of, places_with
from copter.methods.proximal.working_set import NOTHING, WorkingSet
from tests.copter.twins import Floats

INF = np.inf


def block_matrix(*requests: dict[str, Any]) -> Any:
    """A matrix of requests over two rows; each uses 1, 2, 3... of the first."""
    model = Model("min")
    for name in ("a", "b"):
        model.add_resources(name, 50.0)
    for name, given in enumerate(requests):
        cost = given.pop("cost")
        model.add_request(name, cost, usage={"a": 1.0 + np.arange(len(cost)), "b": np.ones(len(cost))}, **given)
    return model.ledger.matrix


def grown(matrix: Any, *pairs: tuple[int, int], ws: WorkingSet | None = None, y: Floats | None = None) -> WorkingSet:
    """A working set with columns (slot, column)."""
    found = WorkingSet() if ws is None else ws
    slot, column = np.array(pairs, dtype=np.int32).T
    found.grow(matrix, slot.copy(), column.copy(), y)
    return found


def pairs_of(ws: WorkingSet) -> list[tuple[int, int]]:
    return list(zip(ws.slot_of_column.tolist(), ws.column.tolist(), strict=True))


THREE = {"cost": [-1.0, -4.0, -2.0], "upper": 2.0, "limit": 3.0}
PLAIN = {"cost": [-1.0, -4.0, -2.0], "limit": 3.0}  # without bounds of its own, which make a request resident


def test_an_empty_working_set_has_empty_arrays() -> None:
    for ws in (WorkingSet(), NOTHING):
        assert ws.size == 0
        assert [len(each) for each in (ws.key, ws.x, ws.generation, ws.row, ws.coefficient, ws.cost, ws.lower)] == [
            0
        ] * 7
        assert (ws.entry_start.tolist(), ws.start.tolist()) == ([0], [0])
        ws.fit()
        assert ws.activity(2).tolist() == [0.0, 0.0]


def test_columns_come_in_once_in_the_order_of_their_keys() -> None:
    matrix = block_matrix(dict(THREE), dict(THREE), dict(THREE))
    ws = grown(matrix, (0, 2), (2, 0), (2, 1))
    assert ws.grow(matrix, np.array([2, 0, 2, 1, 0], np.int32), np.array([1, 0, 2, 1, 0], np.int32)) == 3
    assert pairs_of(ws) == [(0, 0), (0, 2), (1, 1), (2, 0), (2, 1), (2, 2)]
    assert (ws.slots.tolist(), ws.start.tolist()) == ([0, 1, 2], [0, 2, 3, 6])
    assert ws.cost.tolist() == [-1.0, -2.0, -4.0, -1.0, -4.0, -2.0]
    assert ws.coefficient.tolist() == [1.0, 1.0, 3.0, 1.0, 2.0, 1.0, 1.0, 1.0, 2.0, 1.0, 3.0, 1.0]
    assert ws.limit.tolist() == [3.0] * 3
    assert ws.x.tolist() == [0.0] * 6
    assert ws.generation.tolist() == matrix.generation[[0, 0, 1, 2, 2, 2]].tolist()
    assert ws.grow(matrix, np.array([0, 2], np.int32), np.array([2, 1], np.int32)) == 0
    assert ws.size == 6


def test_unknown_columns_are_found_with_their_places() -> None:
    ws = grown(block_matrix(dict(THREE), dict(THREE)), (0, 1), (1, 0))
    for slots, columns, wanted, places in [
        ([0, 0, 1, 1], [0, 1, 0, 2], [(0, 0), (1, 2)], [0, 2]),
        ([1, 0, 1], [2, 0, 2], [(0, 0), (1, 2)], [0, 2]),  # not in order, one twice
        ([0, 0, 1], [2, 2, 1], [(0, 2), (1, 1)], [1, 2]),
        ([1, 0], [1, 2], [(0, 2), (1, 1)], [1, 2]),
        ([0, 1, 1], [2, 1, 1], [(0, 2), (1, 1)], [1, 2]),
        ([0, 1], [1, 0], [], []),
        ([], [], [], []),
    ]:
        key, at = ws.unknown(np.array(slots, dtype=np.int32), np.array(columns, dtype=np.int32))
        assert key.tolist() == [slot << 32 | column for slot, column in wanted]
        assert at.tolist() == places


@pytest.mark.parametrize("seed", range(30))
def test_keys_are_merged_with_wanted_ones_and_columns_copied_in_runs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    key = np.flatnonzero(rng.random(20) < 0.5)
    x, alive = rng.random(len(key)), rng.random(len(key)) < 0.8
    wanted = np.sort(rng.integers(0, 20, int(rng.integers(0, 8))))  # some twice
    for mask in (alive, None):
        here = key if mask is None else key[mask]
        keys, values, fresh = merged_keys(key, x, mask, wanted)
        assert keys.tolist() == sorted({*here.tolist(), *wanted.tolist()})
        assert keys[fresh].tolist() == sorted({*wanted.tolist()} - {*here.tolist()})
        known = dict(zip(key.tolist(), x.tolist(), strict=True))
        assert values.tolist() == [known[each] if each in here else 0.0 for each in keys.tolist()]
    assert places_of(alive.view(np.uint8), True).tolist() == np.flatnonzero(alive).tolist()
    assert places_of(alive.view(np.uint8), False).tolist() == np.flatnonzero(~alive).tolist()
    at = np.sort(rng.integers(0, 6, 3))
    assert places_with(5, at).tolist() == np.insert(np.arange(5), at, [-1, -2, -3]).tolist()


def test_values_of_the_known_columns_stay_where_others_come_in() -> None:
    matrix = block_matrix(dict(THREE), dict(THREE))
    ws = grown(matrix, (0, 0), (1, 2))
    ws.x[:] = [1.5, 0.5]
    grown(matrix, (0, 1), (1, 0), ws=ws)
    assert ws.x.tolist() == [1.5, 0.0, 0.0, 0.5]
    ws.keep(np.array([True, False, False, True]))
    assert pairs_of(ws) == [(0, 0), (1, 2)]
    assert ws.x.tolist() == [1.5, 0.5]
    assert ws.coefficient.tolist() == [1.0, 1.0, 3.0, 1.0]
    part = ws.take(np.array([1]))
    part.x[0] = 9.0
    assert (pairs_of(part), part.cost.tolist(), ws.x.tolist()) == ([(1, 2)], [-2.0], [1.5, 0.5])


def test_a_new_column_with_a_lower_bound_makes_its_group_fit() -> None:
    """Its value is raised to the bound, and the others give way."""
    matrix = block_matrix({"cost": [1.0, 1.0], "lower": [0.0, 1.0], "upper": 2.0, "limit": 2.0}, dict(PLAIN))
    ws = WorkingSet()
    ws.refresh(matrix)
    assert pairs_of(ws) == [(0, 0), (0, 1)], "a request with bounds of its own is resident"
    assert ws.x.tolist() == [0.0, 1.0]
    ws.keep(np.array([True, False]))
    ws.x[0] = 2.0
    grown(matrix, (0, 1), (1, 0), ws=ws)
    assert ws.x == pytest.approx([4.0 / 3.0, 1.0, 0.0])


def test_a_refresh_forgets_what_was_removed_and_gathers_again() -> None:
    model = Model("min")
    model.add_resources("a", 50.0)
    for name in range(3):
        model.add_request(name, [-1.0, -2.0], usage={"a": [1.0, 2.0]}, limit=1.0)
    matrix = model.ledger.matrix
    ws = grown(matrix, (0, 0), (1, 1), (2, 0))
    ws.x[:] = [0.25, 0.5, 0.75]
    model.remove_request(1)
    model.update_cost(2, [-7.0, -8.0])
    model.update_limit(2, 0.5)
    ws.refresh(matrix)
    assert pairs_of(ws) == [(0, 0), (2, 0)]
    assert ws.cost.tolist() == [-1.0, -7.0]
    assert ws.x.tolist() == [0.25, 0.5]
    model.add_request(3, [-1.0, -2.0], usage={"a": [1.0, 2.0]}, limit=1.0)  # in the slot that is free
    ws.refresh(matrix)
    assert pairs_of(ws) == [(0, 0), (2, 0)]
    model.fix(3, 1)
    ws.refresh(matrix, np.array([5.0]))
    assert (1, 1) in pairs_of(ws)
    assert ws.generation.tolist() == matrix.generation[ws.slot_of_column].tolist()


@pytest.mark.parametrize("by_price", [False, True])
def test_a_fixed_column_that_comes_in_starts_by_the_prices_that_are_given(by_price: bool) -> None:
    matrix = block_matrix(dict(PLAIN), dict(THREE))
    ws = WorkingSet()
    ws.refresh(matrix, np.zeros(2) if by_price else None)
    assert pairs_of(ws) == [(1, 0), (1, 1), (1, 2)]
    assert ws.x.tolist() == ([0.0, 2.0, 0.0] if by_price else [0.0, 0.0, 0.0])
    ws.x[:] = [0.5, 0.25, 0.0]
    ws.refresh(matrix, np.zeros(2))
    assert ws.x.tolist() == [0.5, 0.25, 0.0], "known columns keep their values"


# Starting values --------------------------------------------------------------------------------------------------


def test_the_best_new_column_of_a_resting_group_is_raised() -> None:
    """As far as its bound or the limit allows; none of a group that has a value, none that costs."""
    matrix = block_matrix(*(dict(THREE) for _ in range(4)))
    free = np.zeros(2)
    ws = grown(matrix, (0, 0), (0, 1), (0, 2), (1, 0), (1, 2), (2, 0), y=free)
    assert ws.x.tolist() == [0.0, 2.0, 0.0, 0.0, 2.0, 2.0]
    grown(matrix, (1, 1), (2, 1), (3, 2), ws=ws, y=free)
    assert pairs_of(ws)[3:] == [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (3, 2)]
    assert ws.x.tolist() == [0.0, 2.0, 0.0, 0.0, 0.0, 2.0, 2.0, 0.0, 2.0]
    dear = grown(matrix, (0, 0), (0, 1), (0, 2), y=np.array([0.0, -4.0]))
    assert dear.x.tolist() == [0.0, 0.0, 0.0], "a reduced cost of zero does not improve"
    assert grown(matrix, (0, 0), (0, 1)).x.tolist() == [0.0, 0.0], "without prices all are at their lower bounds"


def test_a_limit_bounds_what_is_raised() -> None:
    tight = {**THREE, "limit": 0.5}
    ws = grown(block_matrix(dict(tight), dict(tight)), (0, 1), (1, 0), (1, 2), y=np.zeros(2))
    assert ws.x.tolist() == [0.5, 0.0, 0.5]


def start(ws: WorkingSet, new: list[int], x: list[float], **given: list[float]) -> list[float]:
    """Values after columns of one's own start by the price zero."""
    ws.x = np.array(x)
    for name, values in given.items():
        getattr(ws, name)[:] = values
    ws.start_by_price(np.array(new), np.zeros(2))
    return ws.x.tolist()


def test_starts_by_bounds_limits_and_room() -> None:
    """Groups of two, three and one columns."""
    matrix = block_matrix(*(dict(THREE) for _ in range(3)))
    ws = grown(matrix, (0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 2))
    six = np.arange(6)
    plain = {"cost": [-1.0, -2.0, -3.0, -1.0, -2.0, -1.0], "lower": [0.0] * 6, "upper": [9.0] * 6}
    everything = six.tolist()
    none, limits = [INF, INF, INF], [4.0, 5.0, 6.0]
    assert start(ws, everything, [0.0] * 6, **plain, limit=none) == [9.0] * 6
    assert start(ws, [1, 2], [0.0] * 6, **plain, limit=none) == [0.0, 9.0, 9.0, 0.0, 0.0, 0.0]
    assert start(ws, everything, [0.0] * 6, **plain, limit=limits) == [0.0, 4.0, 5.0, 0.0, 0.0, 6.0]
    assert start(ws, everything, [0.0] * 6, **plain, limit=[4.0, INF, 6.0]) == [0.0, 4.0, 9.0, 9.0, 9.0, 6.0]
    assert start(ws, [0, 5], [0.0] * 6, **plain, limit=limits) == [4.0, 0.0, 0.0, 0.0, 0.0, 6.0]
    assert start(ws, [4, 5], [0.0, 0.0, 0.0, 1.0, 0.0, 0.0], **plain, limit=limits) == [0, 0, 0, 1.0, 0.0, 6.0]
    lower = {**plain, "lower": [0.5, 0.0, 1.0, 0.25, 0.0, 2.0]}
    at_rest = lower["lower"]
    assert start(ws, everything, at_rest, **lower, limit=limits) == [0.5, 3.5, 1.0 + 3.75, 0.25, 0.0, 2.0 + 4.0]
    full = {**lower, "limit": [0.25, 1.25, 2.0]}
    assert start(ws, everything, at_rest, **full) == at_rest, "no room is no reason to go below"
    some = {**plain, "cost": [0.5, 0.0, -3.0, -1.0, -2.0, 0.25], "upper": [9.0, 9.0, INF, 0.0, 2.0, 9.0]}
    assert start(ws, everything, [0.0] * 6, **some, limit=limits) == [0.0, 0.0, 0.0, 0.0, 2.0, 0.0]
    assert start(ws, everything, [0.0] * 6, **some, limit=none) == [0.0, 0.0, 0.0, 0.0, 2.0, 0.0]
    dear = {**plain, "cost": [0.5] * 6}
    assert start(ws, everything, [0.0] * 6, **dear, limit=none) == [0.0] * 6
    held = {**plain, "lower": [9.0, 0.0, 0.0, 0.0, 0.0, 0.0]}
    assert start(ws, [0, 1], [9.0, 0.0, 0.0, 0.0, 0.0, 0.0], **held, limit=[11.0, 5.0, 6.0])[:2] == [9.0, 2.0]


def test_a_point_is_made_to_fit_bounds_and_limits() -> None:
    """First clipped, then shrunk to the limit, then clipped again; groups within their limits stay."""
    matrix = block_matrix(*(dict(THREE) for _ in range(3)))
    ws = grown(matrix, (0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1))
    ws.x[:] = [-1.0, 2.0, 3.0, 2.0, 1.0, 1.0]
    ws.fit()
    assert ws.x == pytest.approx([0.0, 2.0, 1.5, 1.5, 1.0, 1.0])
    ws.lower[2], ws.x = 1.75, np.array([2.0, 2.0, 2.0, 2.0, 2.0, 2.0])
    ws.fit()
    assert ws.x == pytest.approx([1.5, 1.5, 1.75, 1.5, 1.5, 1.5])
    exact = np.array([0.1 + 0.2, 0.3, 0.0, 0.0, 0.0, 0.0])
    ws.lower[:] = 0.0
    for over, shrinks in ((0.0, False), (0.5e-12, False), (4e-12, True)):
        ws.x, ws.limit[0] = exact.copy(), 0.6 * (1.0 - over)
        before = ws.x.tolist()
        ws.fit()
        assert (ws.x.tolist() != before) == shrinks
    ws.limit[:], ws.x = [INF, 0.5, 3.0], np.array([2.0, 2.0, 2.0, 2.0, 0.5, 0.5])
    ws.fit()
    assert ws.x.tolist() == [2.0, 2.0, 0.25, 0.25, 0.5, 0.5]


def test_a_working_set_of_keys_knows_nothing_else() -> None:
    matrix = block_matrix(dict(THREE), dict(THREE))
    known = grown(matrix, (0, 1), (1, 2))
    ws = WorkingSet.of(known.key, np.array([5.0, 0.5]), known.generation)
    assert (ws.size, len(ws.cost), ws.slots.tolist()) == (2, 0, [])
    ws.gather(matrix)
    assert (ws.slots.tolist(), ws.cost.tolist(), ws.x.tolist()) == ([0, 1], [-4.0, -2.0], [2.0, 0.5])
    assert ws.free.tolist() == [0, 0]
    assert ws.multiplier.tolist() == [0.0, 0.0]
    assert ws.activity(2).tolist() == [2.0 * 2.0 + 0.5 * 3.0, 2.5]
    assert ws.activity_of(np.ones(2), 2).tolist() == [5.0, 2.0]
    assert ws.reduced_costs(np.array([-1.0, 0.5])).tolist() == [-4.0 + 2.0 - 0.5, -2.0 + 3.0 - 0.5]
    assert grown(matrix, (0, 0), (0, 1), (1, 0)).least_of_groups(np.array([3.0, 2.0, 7.0])).tolist() == [2.0, 7.0]


def test_requests_without_working_columns_get_those_that_are_best_at_prices_around_the_last() -> None:
    rng = np.random.default_rng(3)
    model = Model("max")
    model.add_resources("a", 4.0)
    model.add_resources("b", 4.0)
    units = np.arange(1.0, 9.0)
    shape = model.add_template({"a": np.append(units, 0 * units), "b": np.append(0 * units, units)})
    values = np.sqrt(np.outer(rng.uniform(1.0, 3.0, 6), np.append(units, units)))
    for at, value in enumerate(values):
        model.add_request(at, value, template=shape)
    model.fix(5, 3)
    matrix, slot = model.ledger.matrix, model.ledger.slot_of
    rows = [model.ledger.row_of[name] for name in "ab"]
    first = WorkingSet()
    first.grow(matrix, np.array([slot[0]], dtype=np.int32), np.array([2], dtype=np.int32))
    price = np.zeros(matrix.n_rows)
    price[rows] = -0.4, -0.6
    times = np.array([1.0, 0.5, 2.0])
    first.refresh(matrix, price, times)
    expected = {slot[0] << 32 | 2, slot[5] << 32 | 3}
    for at in range(1, 5):
        for row in np.outer(times, price):
            reduced = -values[at] - np.append(row[rows[0]] * units, row[rows[1]] * units)
            best = [int(np.argmin(reduced[:8])), 8 + int(np.argmin(reduced[8:]))]
            expected |= {slot[at] << 32 | j for j in best if reduced[j] < 0.0}
    assert first.key.tolist() == sorted(expected)
    again = first.key.copy()
    first.refresh(matrix, price, 3.0 * times)  # all have columns now
    assert first.key.tolist() == again.tolist()


def test_columns_for_the_next_round_come_in_at_zero_and_their_data_with_it() -> None:
    model = Model("max")
    model.add_resources("a", 4.0)
    for name in ("x", "y"):
        model.add_request(name, [1.0, 3.0, 2.0], {"a": [1.0, 2.0, 3.0]})
    matrix, (x, y) = model.ledger.matrix, model.ledger.slot_of.values()
    ws = WorkingSet()
    ws.grow(matrix, np.array([x, y], dtype=np.int32), np.array([1, 2], dtype=np.int32))
    ws.x = np.array([1.0, 0.5])
    kept = ws.without(np.array([0, 1], dtype=np.uint8))
    assert (kept.key.tolist(), kept.x.tolist()) == ([x << 32 | 1], [1.0])
    more = kept.expecting(matrix, np.array([x, y], dtype=np.int32), np.array([1, 0], dtype=np.int32))
    assert (more.key.tolist(), more.x.tolist()) == ([x << 32 | 1, y << 32], [1.0, 0.0])
    assert more.generation.tolist() == [matrix.generation[x], matrix.generation[y]]
    assert more.expecting(matrix, np.array([y], dtype=np.int32), np.array([0], dtype=np.int32)) is more
    assert more.grow(matrix, np.array([y], dtype=np.int32), np.array([0], dtype=np.int32)) == 0
    assert more.cost.tolist() == [-3.0, -1.0], "the first call that needs the data gathers them"
