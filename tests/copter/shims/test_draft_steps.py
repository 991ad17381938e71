"""Steps of the rounding shim's draft, and reading a plan, each against a slow twin."""

from __future__ import annotations

import numpy as np
import pytest

from copter import EditNotAllowedError, IntegerStatus, Model, Session, UnknownHandleError
from copter.runtime.errors import StaleSolutionError
from copter.shims import IDLE, RoundingShim
from copter.shims.draft import Draft
from copter.shims.rounding import rounded

SEEDS = range(8)
COLUMNS = 4


def random_model(seed: int, requests: int = 12, sense: str = "max") -> Model:
    """Integer requests of four columns on three resources; every other one shares a pattern."""
    rng = np.random.default_rng(seed)
    model = Model(sense)  # type: ignore[arg-type]
    for row in range(3):
        model.add_resources(row, int(rng.integers(6, 15)))
    shared = {row: rng.integers(0, 5, COLUMNS).astype(float) for row in range(3)}
    template = model.add_template(shared)
    sign = 1.0 if sense == "max" else -1.0
    for request in range(requests):
        costs = sign * rng.uniform(0.5, 5.0, COLUMNS)
        if request % 2:
            model.add_request(request, costs, template=template, integer=True)
        else:
            usage = {row: rng.integers(0, 5, COLUMNS).astype(float) for row in range(3)}
            model.add_request(request, costs, usage, integer=True)
    return model


def usage_of(model: Model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(use of every resource by (row, request, column), worth (request, column), counts)."""
    lp = model.to_linear_program()
    sign = 1.0 if model.sense == "max" else -1.0
    n = len(model.requests)
    use = lp.A[:3].toarray().reshape(3, n, COLUMNS)
    return use, sign * lp.c.reshape(n, COLUMNS), lp.row_upper[:3]


def taken(model: Model, draft: Draft) -> dict[int, int]:
    """{request: column}."""
    slots = {request: model.ledger.slot(request) for request in model.requests}
    return {
        int(request): int(draft.column[slot]) for request, slot in slots.items() if draft.column[slot] != IDLE  # type: ignore[call-overload]
    }  # fmt: skip


@pytest.mark.parametrize("sense", ["max", "min"])
@pytest.mark.parametrize("seed", SEEDS)
def test_whole_columns_are_taken_the_dearest_first_then_the_others_by_weight(seed: int, sense: str) -> None:
    model = random_model(seed, sense=sense)
    use, worth, counts = usage_of(model)
    rng = np.random.default_rng(seed)
    model.fix(0, int(rng.integers(0, COLUMNS)))
    offers: list[tuple[int, int, float]] = []
    for request in range(12):
        column = int(rng.integers(0, COLUMNS))
        way = int(rng.integers(0, 3))
        if way == 0:
            offers.append((request, column, 1.0))
        elif way == 1:
            x = rng.dirichlet(np.ones(COLUMNS)) * 0.8
            offers += [(request, j, float(x[j])) for j in range(COLUMNS)]
        else:
            offers.append((request, column, 1e-12))
    draft = Draft(model)
    slots = np.array([model.ledger.slot(request) for request, _, _ in offers], dtype=np.int32)
    columns, x = np.array([c for _, c, _ in offers], dtype=np.int32), np.array([v for _, _, v in offers])
    split = draft.round(slots, columns, x, 1 - 1e-6, 1e-9)
    expected, left = {0: int(model.fixed(0) or 0)}, counts - use[:, 0, model.fixed(0)]
    ones = [(r, c) for r, c, v in offers if v == 1.0 and r]
    if not (sum((use[:, r, c] for r, c in ones), np.zeros(3)) <= left).all():
        ones.sort(key=lambda each: -worth[each])
    rest = sorted((-v, -worth[r, c], r, c) for r, c, v in offers if 1e-9 < v < 1.0 and r)
    for r, c in [*ones, *((r, c) for _, _, r, c in rest)]:
        if r not in expected and (use[:, r, c] <= left).all():
            expected[r] = c
            left = left - use[:, r, c]
    assert taken(model, draft) == expected
    assert split == len({r for _, _, r, _ in rest})
    np.testing.assert_allclose(draft.left, left)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_fits_is_what_is_left_of_every_row(seed: int) -> None:
    model = random_model(seed)
    use, worth, counts = usage_of(model)
    draft = Draft(model)
    left = np.minimum(counts, np.random.default_rng(seed).integers(0, 5, 3))
    draft.left[:] = left
    slots = np.array([model.ledger.slot(request) for request in range(12)], dtype=np.int32)
    expected = [np.flatnonzero((use[:, request] <= left[:, None]).all(axis=0)).tolist() for request in range(12)]
    assert [each.tolist() for each in draft.fitting(slots)] == expected
    found, columns = draft.candidates(slots, lambda: False)
    by_slot = dict(zip(found.tolist(), [set(each.tolist()) for each in columns], strict=True))
    for slot, fits in zip(slots.tolist(), expected, strict=True):
        assert set(fits) <= by_slot.get(slot, set())
    draft.fill()
    chosen = taken(model, draft)
    left = left - sum((use[:, r, c] for r, c in chosen.items()), np.zeros(3))
    assert (left >= 0).all()
    for request in set(range(12)) - chosen.keys():
        assert not ((use[:, request] <= left[:, None]).all(axis=0) & (worth[request] > 0)).any()


@pytest.mark.parametrize("seed", SEEDS)
def test_repair_lets_those_go_that_are_worth_least_until_all_rows_hold(seed: int) -> None:
    model = random_model(seed)
    use, worth, counts = usage_of(model)
    model.fix(3, 1)
    rng = np.random.default_rng(seed)
    draft = Draft(model)
    chosen = {request: int(rng.integers(0, COLUMNS)) for request in range(12) if request != 3}
    draft.take_all(
        np.array([model.ledger.slot(request) for request in chosen], dtype=np.int32),
        np.array(list(chosen.values()), dtype=np.int32),
    )
    chosen[3] = 1
    while True:
        used = sum((use[:, r, c] for r, c in chosen.items()), np.zeros(3))
        guilty = [r for r, c in chosen.items() if r != 3 and (use[used > counts, r, c] > 0).any()]
        if not guilty:
            break
        del chosen[min(guilty, key=lambda r: worth[r, chosen[r]])]
    draft.repair()
    assert taken(model, draft) == chosen
    np.testing.assert_allclose(draft.left, counts - used)
    assert draft.holds() == bool((used <= counts).all())
    assert draft.value() == pytest.approx(-sum(worth[r, c] for r, c in chosen.items()))


def test_what_has_to_be_is_taken_and_what_contradicts_itself_is_said() -> None:
    model = Model("max")
    model.add_resources("r", 4)
    usage = {"r": [1, 2, 3]}
    model.add_request("fixed", [1.0, 1.0, 1.0], usage, integer=True)
    model.fix("fixed", 2)
    model.add_request("least", [1.0, 1.0, 1.0], usage, integer=True, lower=[1.0, 0.0, 0.0], upper=[1.0, 1.0, 1.0])
    model.add_request("free", [9.0, 9.0, 9.0], usage, integer=True)
    draft = Draft(model)
    column = {name: int(draft.column[model.ledger.slot(name)]) for name in ("fixed", "least", "free")}
    assert column == {"fixed": 2, "least": 0, "free": IDLE}
    assert (draft.left.tolist(), draft.conflict, draft.holds()) == ([0.0], [], True)
    model.add_request("two", [1.0, 1.0], {"r": [1, 1]}, integer=True, lower=[0.4, 0.4], upper=[1.0, 1.0])
    plan = Session(model).solve_integer()
    assert plan.status is IntegerStatus.PRIMAL_INFEASIBLE
    assert "two" in plan.conflict
    assert not plan.is_feasible


def test_too_much_that_has_to_be_is_no_plan_and_says_what_is_short() -> None:
    model = Model("max")
    model.add_resources("r", 4)
    model.add_resources("s", 9)
    for name in ("a", "b"):
        model.add_request(name, [1.0], {"r": [3], "s": [1]}, integer=True)
        model.fix(name, 0)
    session = Session(model)
    plan = session.solve_integer()
    assert plan.status is IntegerStatus.PRIMAL_INFEASIBLE
    assert (set(plan.conflict), plan.short) == ({"a", "b"}, ("r",))
    assert np.isnan(plan.objective)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_plan_before_is_kept_where_it_is_worth_more_and_filled_up(seed: int) -> None:
    model = random_model(seed)
    session = Session(model)
    solution = session.solve()
    best = session.solve_integer("exact")
    shim = RoundingShim()
    plain = shim(model, solution)
    again = shim(model, solution, best)
    assert again.objective >= max(plain.objective, best.objective) - 1e-9
    assert again.kept_previous == (best.objective > plain.objective + 1e-9)
    assert not plain.kept_previous
    nothing = rounded(RoundingShim(time_limit_s=0.0), model, solution, None)
    assert nothing[0].holds()
    model.remove_request(0)
    with pytest.raises(StaleSolutionError, match="edited"):
        shim(model, solution)
    later = session.solve()
    kept = shim(model, later, best)
    lost = float(usage_of(random_model(seed))[1][0, best.column(0)]) if best.column(0) is not None else 0.0
    assert kept.objective >= best.objective - lost - 1e-9


def test_shares_of_many_requests_are_those_of_each() -> None:
    model = Model("max")
    model.add_resources("r", 10.0)
    for request in range(6):
        costs = [1.0 + request, 2.0, 0.5]
        if request % 2:
            model.add_request(request, costs, {"r": [1.0, 2.0, 1.0]}, limit=1.5)
        else:
            model.add_request(request, costs, {"r": [2.0, 1.0, 1.0]}, integer=True)
    plan = Session(model).solve_integer()
    order = [5, 0, 3, 2, 1, 4]
    offsets, columns, values = plan.shares_of(order)
    for at, request in enumerate(order):
        mine = slice(offsets[at], offsets[at + 1])
        found = {int(c): float(v) for c, v in zip(columns[mine], values[mine], strict=True) if v != 0.0}
        assert found == plan.shares(request)
        if request % 2:
            assert 0.0 < sum(found.values()) <= 1.5 + 1e-9
            with pytest.raises(EditNotAllowedError, match="continuous"):
                plan.column(request)
        else:
            assert found == ({} if plan.column(request) is None else {plan.column(request): 1.0})
    expected = [IDLE if request % 2 or plan.column(request) is None else plan.column(request) for request in order]
    assert plan.columns_of(order).tolist() == expected
    assert sum(bool(plan.shares(request)) for request in order) >= 5
    for call in (plan.columns_of, plan.shares_of):
        with pytest.raises(UnknownHandleError, match="'nobody'"):
            call([0, "nobody"])
    key, value = plan.shares_of_slots(np.arange(6) != model.ledger.slot(3))
    assert 3 not in {request for request in range(6) if model.ledger.slot(request) in set((key >> 32).tolist())}
    assert len(key) == len(value) < len(plan.share_key)


def test_requests_of_one_pattern_are_asked_for_once_and_the_clock_between_two_lots_of_patterns() -> None:
    """70 patterns of 5 requests each, of 1 to 5 units; patterns are looked at in lots of 64."""
    model = Model("max")
    model.add_resources("r", 400)
    size = {}
    for kind in range(70):
        template = model.add_template({"r": [1.0 + kind % 5]})
        names = [f"{kind}-{each}" for each in range(5)]
        model.add_requests(names, [[1.0]] * 5, template=template, integer=True)
        size |= {model.ledger.slot(name): (kind, 1 + kind % 5) for name in names}
    draft = Draft(model)
    idle = np.array(list(size), dtype=np.int32)
    for left, stops, kinds in ((3.0, False, 70), (5.0, False, 70), (0.5, False, 70), (3.0, True, 64)):
        draft.left[:] = left
        asked: list[bool] = []

        def stop(stops: bool = stops, asked: list[bool] = asked) -> bool:
            asked.append(stops)
            return stops

        slots, columns = draft.candidates(idle, stop)
        assert slots.tolist() == [slot for slot, (kind, units) in size.items() if kind < kinds and units <= left]
        assert all(each.tolist() == [0] for each in columns)
        assert asked == [stops]
    draft.left[:] = 400.0
    draft.fill(lambda: True)
    assert (draft.column == IDLE).all(), "no time"
    draft.fill()
    assert draft.holds()
    assert draft.left.tolist() == [1.0]
    assert (draft.column == 0).sum() == 70 + 70 + 63, "the smallest first: 70 of one unit, 70 of two, 63 of three"
