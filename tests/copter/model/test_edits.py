"""Every edit in random order against plain dictionaries; batches that fail; float32 costs; edits of nothing."""

from __future__ import annotations

import copy
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from judge import assert_optimal, is_infeasibility_ray

from copter import (
    EditNotAllowedError,
    Model,
    Session,
    Settings,
    Status,
    UnknownHandleError,
)
from copter.model.matrix import Template
from copter.runtime.errors import InvalidDataError
from copter.testing import sia_like_model
from tests.copter.by_highs import highs
from tests.copter.consistent import require_consistent
from tests.copter.followed_program import assert_program_is_the_models
from tests.copter.plain import EDITS, Floats, Player, bits, innards, small

seeds = st.integers(0, 2**32 - 1)


class Edited(RuleBasedStateMachine):
    """A session whose model is edited in every way; it must always be what a fresh one is."""

    edits = 0  # that were done, over all examples

    def __init__(self) -> None:
        super().__init__()
        self.player = Player()
        self.session = Session(self.player.model)

    @initialize()
    def begin(self) -> None:
        rng = np.random.default_rng(0)
        for edit in (Player.more, Player.more, Player.more, Player.declare, Player.add, Player.add_many):
            edit(self.player, rng)

    @rule(kind=st.sampled_from(EDITS), seed=seeds)
    def edit(self, kind: object, seed: int) -> None:
        before = self.player.model.version
        kind(self.player, np.random.default_rng(seed))  # type: ignore[operator]
        Edited.edits += self.player.model.version - before

    @rule(kind=st.sampled_from(EDITS), seed=seeds)
    def edit_more(self, kind: object, seed: int) -> None:
        self.edit(kind, seed)

    @rule(seed=seeds)
    def fail(self, seed: int) -> None:
        """A batch that ends in an error leaves everything as it was."""
        rng, before, was = np.random.default_rng(seed), innards(self.player.model), self.player.plain
        made, self.player.plain = dict(self.player.made), copy.deepcopy(was)
        with pytest.raises(ZeroDivisionError), self.player.model.batch():  # noqa: PT012
            for _ in range(int(rng.integers(1, 8))):
                self.player.step(rng)
            raise ZeroDivisionError
        self.player.plain, self.player.made = was, made
        assert innards(self.player.model) == before

    @rule()
    def solve(self) -> None:
        fresh, model = self.player.plain.build(), self.player.model
        assert bits(model) == bits(fresh)
        solution, other = self.session.solve(), Session(fresh).solve()
        self.session._iterate.check_consistent(model.ledger.matrix)
        assert_program_is_the_models(self.session)
        require_consistent(model.ledger)
        program = model.to_linear_program()
        if 0 in program.shape:
            assert solution.status is other.status
            return
        status, best, _, _ = highs(program)
        assert solution.status is other.status
        if solution.status is Status.PRIMAL_INFEASIBLE:
            assert "Infeasible" in str(status)
            assert is_infeasibility_ray(program, solution.ray)
            return
        assert solution.status is Status.OPTIMAL
        assert solution.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
        assert other.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
        assert solution.bound >= best - 1e-7 * (1 + abs(best))
        assert_optimal(program, solution.x, solution.y)


def run(examples: int, steps: int) -> None:
    health = [HealthCheck.too_slow, HealthCheck.data_too_large]
    run_state_machine_as_test(
        Edited,
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=health, database=None
        ),
    )


@pytest.mark.slow
def test_edits_in_random_order() -> None:
    run(examples=10, steps=40)


@pytest.mark.long
def test_edits_in_random_order_for_long() -> None:
    Edited.edits = 0
    run(examples=400, steps=60)
    print(f"{Edited.edits:,} edits")
    assert Edited.edits >= 10_000


# Batches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_a_failed_batch_leaves_model_and_session_as_they_were(seed: int) -> None:
    player, rng = Player(), np.random.default_rng(seed)
    for _ in range(80):
        player.step(rng)
    session = Session(player.model)
    first = session.solve()
    before = innards(player.model)
    with pytest.raises(KeyError, match="halfway"), player.model.batch():  # noqa: PT012
        for _ in range(30):
            player.step(rng)
        raise KeyError("halfway")
    assert innards(player.model) == before
    again = session.solve()
    if first.status is Status.OPTIMAL:
        assert (again.pricing_passes, again.iterations, again.restart_reason) == (1, 0, None)
        np.testing.assert_array_equal(again.x, first.x)


def test_a_batch_inside_a_batch_takes_back_its_own_edits_only() -> None:
    model = sia_like_model(5, 8, 2)
    with model.batch():
        model.remove_request("job-1")
        with pytest.raises(UnknownHandleError, match="job-1"), model.batch():  # noqa: PT012
            model.add_resources("type-0", 5)
            model.remove_request("job-2")
            model.remove_request("job-1")
        model.add_resources("type-1", 1)
    assert model.requests == ("job-0", "job-2", "job-3", "job-4")
    assert (model.count("type-0"), model.count("type-1")) == (8, 9)


def test_no_solve_inside_a_batch() -> None:
    model = sia_like_model(5, 8, 2)
    session = Session(model)
    with pytest.raises(EditNotAllowedError, match="in a batch"), model.batch():
        session.solve()
    assert session.solve().status is Status.OPTIMAL


def test_no_edit_inside_a_solve() -> None:
    model = sia_like_model(5, 8, 2)
    before = innards(model)
    with pytest.raises(EditNotAllowedError, match="being solved"):
        Session(model).solve(callback=lambda *_: model.remove_request("job-0"))
    assert innards(model) == before


# Single edits -----------------------------------------------------------------------------------------------------


def test_usage_of_one_request_leaves_the_template_alone() -> None:
    model = small()
    template = model.template_of("p")
    assert template is not None
    model.update_usage("p", {"b": [1, 1, 1]})
    assert (model.template_of("p"), model.template_of("q"), template.users) == (None, template, 1)
    dense = model.to_linear_program().A.toarray()
    np.testing.assert_array_equal(dense[:2, :6], [[0, 0, 0, 1, 2, 0], [1, 1, 1, 0, 0, 1]])
    model.update_usage("p", template=template)
    assert template.users == 2
    assert len(model.ledger.matrix.templates) == 2


def test_usage_of_a_template_is_that_of_all_its_users() -> None:
    model = small()
    model.update_template(model.templates[0], {"b": [5, 0, 6]})
    dense = model.to_linear_program().A.toarray()
    np.testing.assert_array_equal(dense[:2, :6], [[0] * 6, [5, 0, 6, 5, 0, 6]])


def test_limits_bounds_and_integrality() -> None:
    model = small()
    model.update_limit("p", 0.5)
    model.update_bounds("q", lower=[0, 0.1, 0], upper=0.7)
    model.update_bounds("q", upper=0.6)
    model.update_integrality("own", True)
    lp = model.to_linear_program()
    np.testing.assert_array_equal(lp.row_upper, [8, 4, 0.5, 1, 1])
    np.testing.assert_array_equal(lp.col_lower, [0, 0, 0, 0, 0.1, 0, 0, 0])
    np.testing.assert_array_equal(lp.col_upper, [0.5, 0.5, 0.5, 0.6, 0.6, 0.6, 1, 1])
    np.testing.assert_array_equal(lp.integrality, [False] * 6 + [True] * 2)
    assert (model.limit("p"), model.is_integer("own"), model.is_integer("p")) == (0.5, True, False)


def test_costs_of_single_columns_stand_beside_each_other() -> None:
    model = small()
    model.update_column_cost("p", 1, 9.0)
    model.update_column_cost("p", [0, 1], [7.0, 8.0])
    np.testing.assert_array_equal(model.cost("p"), [7, 8, 3])
    model.rescale_cost("p", 2.0)
    np.testing.assert_array_equal(model.cost("p"), [2, 4, 6])
    model.update_costs(["p", "own"], [[1, 1, 1], [5, 5]])
    np.testing.assert_array_equal(model.cost("own"), [5, 5])


def test_a_matrix_of_costs_is_as_many_single_updates(tmp_path: Path) -> None:
    models = [sia_like_model(12, 16, 2) for _ in range(2)]
    model, twin = models
    n, rng = model.templates[0].n_columns, np.random.default_rng(0)
    session = Session(model)
    session.journal(tmp_path / "journal")
    ids = model.requests[::2]
    for each in models:
        each.update_column_cost(ids[0], 1, 5.0)  # forgotten by the update
    costs = rng.normal(size=(len(ids), n))
    given = costs.copy()
    version = model.version
    model.update_costs(ids, costs)
    costs[:] = np.nan  # the caller's own array is copied
    for request, cost in zip(ids, given, strict=True):
        twin.update_cost(request, cost)
        np.testing.assert_array_equal(model.cost(request), cost)
    assert model.version == version + 1
    for name in ("c", "A", "row_upper", "col_upper"):
        one, other = (getattr(each.to_linear_program(), name) for each in models)
        assert (one != other).nnz == 0 if name == "A" else np.array_equal(one, other)
    assert session.solve().objective == Session(twin).solve().objective
    session.journal(None)
    loaded = Session.load(tmp_path / "journal")
    np.testing.assert_array_equal(loaded.model.to_linear_program().c, model.to_linear_program().c)
    before = model.to_linear_program().c

    def fails() -> None:
        with model.batch():
            model.update_costs(ids, given * 2.0)
            model.update_costs([ids[0], ids[0]], given[:2])
            model.remove_request("nobody")

    with pytest.raises(UnknownHandleError):
        fails()
    np.testing.assert_array_equal(model.to_linear_program().c, before)


def test_edits_that_change_nothing_cost_one_pass() -> None:
    model = sia_like_model(40, 64, 3)
    template = model.templates[0]
    session = Session(model)
    first = session.solve().x
    usage = model.to_linear_program().A[:3, : template.n_columns].tocsc()
    for edit in (
        lambda: model.update_cost("job-1", model.cost("job-1")),
        lambda: model.update_template(template, usage, model.resources),
        lambda: model.update_usage("job-2", usage, resources=model.resources),
        lambda: model.update_usage("job-2", template=template),
        lambda: model.update_limit("job-3", 1.0),
        lambda: model.update_bounds("job-3", 0.0, 1.0),
        lambda: model.update_integrality("job-3", False),
        lambda: model.update_column_cost("job-4", 0, model.cost("job-4")[0]),
        lambda: model.rescale_costs(["job-5"], 1.0),
        lambda: (model.fix("job-6", 1), model.unfix("job-6")),
        lambda: (model.add_resources("spare", 3), model.drop_resource("spare")),
        lambda: (model.add_request("new", [1.0], {"type-0": [1]}), model.remove_request("new")),
        lambda: (model.remove_resources("type-1", 2), model.add_resources("type-1", 2)),
    ):
        edit()
        again = session.solve()
        assert (again.pricing_passes, again.iterations, again.restart_reason) == (1, 0, None)
        np.testing.assert_array_equal(again.x, first)


def test_compacting_keeps_the_state() -> None:
    model = sia_like_model(60, 64, 3)
    session = Session(model)
    session.solve_integer()
    model.remove_requests([f"job-{number}" for number in range(0, 40)])
    first = session.solve_integer()
    other = Session(model)
    other.solve()
    before = bits(model)
    session.compact()
    assert bits(model) == before
    assert model.ledger.matrix.n_slots == 20
    again = session.solve()
    assert (again.pricing_passes, again.iterations) == (1, 0)
    session._iterate.check_consistent(model.ledger.matrix)
    require_consistent(model.ledger)
    assert session._plan is not None
    assert [session._plan.column(r) for r in model.requests] == [first.column(r) for r in model.requests]
    assert other.solve().objective == pytest.approx(again.objective, rel=1e-6)
    other._iterate.check_consistent(model.ledger.matrix)
    require_consistent(model.ledger)
    model.add_request("late", model.cost("job-45"), template=model.templates[0])
    assert session.solve().status is Status.OPTIMAL


@pytest.mark.parametrize("seed", range(30))
def test_usage_in_every_form_is_the_same_columns(seed: int) -> None:
    """Vectors by resource and sparse matrices of every layout, against dense algebra; duplicates are summed."""
    rng = np.random.default_rng(seed)
    height, n = int(rng.integers(1, 6)), int(rng.integers(1, 60))
    if seed % 5 == 0:
        height = 50  # columns too long to be sorted by insertion
    dense = np.where(rng.random((height, n)) < 0.6, rng.integers(1, 9, (height, n)), 0).astype(float)
    names = [f"k{i}" for i in rng.permutation(height)]
    model = Model()
    for i in range(height):
        model.add_resources(f"k{i}", 10.0)
    again = [int(name[1:]) for name in names]
    row, column = np.nonzero(dense)
    order = rng.permutation(len(row))
    twice = np.concatenate((order, order[: len(order) // 3]))
    value = np.concatenate((dense[row[order], column[order]], np.ones(len(order) // 3)))
    doubled = sp.coo_array((value, (row[twice], column[twice])), shape=dense.shape)
    unsorted = sp.csc_array(dense[rng.permutation(height)])
    forms: dict[str, tuple[object, Floats]] = {
        "csr": (sp.csr_array(dense), dense), "csc": (sp.csc_array(dense), dense), "coo": (sp.coo_array(dense), dense),
        "lil": (sp.lil_array(dense), dense), "matrix": (sp.csr_matrix(dense), dense),
        "doubled": (doubled, doubled.toarray()), "doubled csr": (raw_csr(doubled), doubled.toarray()),
        "unsorted": (unsorted, unsorted.toarray()),
    }  # fmt: skip
    model.add_request("dict", np.ones(n), {name: dense[i] for i, name in enumerate(names)})
    for form, (matrix, _) in forms.items():
        model.add_request(form, np.ones(n), matrix, resources=names)
    lp = model.to_linear_program()
    assert lp.A.has_canonical_format
    for at, wanted in enumerate([dense, *(wanted for _, wanted in forms.values())]):
        found = lp.A[:height, at * n : (at + 1) * n].toarray()
        np.testing.assert_array_equal(found[again], wanted)


def raw_csr(matrix: sp.coo_array) -> sp.csr_array:
    """By rows, with the entries of a row in any order and those given twice apart."""
    order = np.argsort(matrix.row, kind="stable")
    start = np.concatenate(([0], np.cumsum(np.bincount(matrix.row, minlength=matrix.shape[0]))))
    return sp.csr_array((matrix.data[order], matrix.col[order], start), shape=matrix.shape)


@pytest.mark.parametrize("seed", range(40))
def test_segments_and_rows_of_a_pattern(seed: int) -> None:
    """Runs of columns that use the same rows, one run if there are more than eight; and the distinct rows."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    kinds = [sorted(rng.choice(9000 if seed % 3 else 5, int(rng.integers(0, 4)), replace=False)) for _ in range(3)]
    columns = (
        [kinds[k] for k in np.sort(rng.integers(0, 3, n))]
        if seed % 2
        else [kinds[int(rng.integers(3))] for _ in range(n)]
    )
    start = np.concatenate(([0], np.cumsum([len(c) for c in columns]))).astype(np.int32)
    row = np.array([r for c in columns for r in c], dtype=np.int32)
    runs = [j for j in range(n) if j == 0 or columns[j] != columns[j - 1]] + [n]
    template = Template(start, row, np.ones(len(row)))
    np.testing.assert_array_equal(template.segment_start, runs if len(runs) <= 9 else [0, n])
    np.testing.assert_array_equal(template.rows, np.unique(row))


def test_new_columns_start_at_the_bound_that_their_price_asks_for() -> None:
    """After an edit the first pass takes the best column of a new request in at its upper bound."""
    model = sia_like_model(40, 64, 3)
    session = Session(model, Settings(basis_columns=0))
    session.solve()
    cost = model.cost("job-0")
    best = int(np.argmax(cost))
    model.add_request("rich", cost + 1e3 * (np.arange(len(cost)) == best), template=model.templates[0])
    model.add_request("poor", cost - 1e3, template=model.templates[0])
    model.add_request("own", [1e3, -1e3], {"type-0": [0.5, 0.5]}, limit=np.inf, upper=[2.0, 3.0])
    seen: dict[Hashable, Floats] = {}

    def look(*_: object) -> bool:
        ws = session._iterate.ws
        for request in ("rich", "poor", "own"):
            at = ws.slot_of_column == model.ledger.slot_of[request]
            seen[request] = np.bincount(ws.column[at], weights=ws.x[at], minlength=2)
        return True

    assert session.solve(callback=look).status is Status.INTERRUPTED
    assert (seen["rich"][best], seen["rich"].sum(), seen["poor"].sum()) == (1.0, 1.0, 0.0)
    np.testing.assert_array_equal(seen["own"], [2.0, 0.0])
    solution = session.solve()
    assert_optimal(model.to_linear_program(), solution.x, solution.y)


# Float32 costs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_bounds_hold_for_the_costs_as_given(seed: int) -> None:
    """Costs that float32 cannot hold: the stored ones are solved, the bound is that of the given ones."""
    rng = np.random.default_rng(seed)
    model, exact = Model(cost_dtype="float32"), Model()
    for each in (model, exact):
        each.add_resources("a", 30)
    usage = {"a": rng.integers(1, 6, 12).astype(float)}
    for number in range(30):
        cost = 1e4 + rng.normal(size=12)
        bounds = {"limit": 2.0, "lower": -0.1} if number % 7 == 0 else {}
        for each in (model, exact):
            each.add_request(number, cost, usage, scale=1.0 + number, offset=-1e4 * (1.0 + number), **bounds)
    assert not np.array_equal(model.cost(0), exact.cost(0))
    solution = Session(model).solve()
    assert solution.status is Status.OPTIMAL
    _, stored, _, _ = highs(model.to_linear_program())
    _, best, _, _ = highs(exact.to_linear_program())
    assert solution.objective == pytest.approx(stored, rel=1e-6)
    assert solution.bound_is_certified
    assert solution.bound >= best
    assert solution.bound >= stored
    tight = Session(exact).solve()
    assert solution.bound - tight.bound <= 2 * model.ledger.matrix.rounding_bound() + 1e-5 * abs(best)


def test_float32_keeps_through_edits_and_takes_half_the_room() -> None:
    model = sia_like_model(3, 16, 2)
    model.add_request(
        "narrow", [1.1] * model.templates[0].n_columns, template=model.templates[0], cost_dtype=np.float32
    )
    slab = model.ledger.matrix.slabs[model.ledger.slot_of["narrow"]]
    assert slab.cost.dtype == np.float32
    model.update_cost("narrow", np.linspace(0.1, 0.9, model.templates[0].n_columns))
    slab = model.ledger.matrix.slabs[model.ledger.slot_of["narrow"]]
    assert slab.cost.dtype == np.float32
    np.testing.assert_array_equal(model.cost("narrow"), np.linspace(0.1, 0.9, len(slab.cost)).astype(np.float32))
    solution = Session(model).solve()
    assert_optimal(model.to_linear_program(), solution.x, solution.y)


def test_unbounded_rounding_is_not_certified() -> None:
    model = Model(sense="min", cost_dtype="float32")
    model.add_resources("a", 3)
    model.add_request("r", [0.1, 0.3], {"a": [1, 1]}, limit=np.inf, upper=np.inf)
    solution = Session(model).solve()
    assert solution.status is Status.OPTIMAL
    assert not solution.bound_is_certified


def test_numbers_of_many_requests_that_are_none_are_the_usual_ones() -> None:
    models = [Model("max"), Model("max")]
    rest: dict[str, Any]
    for model, rest in zip(models, ({"scale": None, "offset": None, "integer": None}, {}), strict=True):
        model.add_resources("r", 4.0)
        template = model.add_template({"r": [1.0, 2.0]})
        model.add_requests(["p", "q"], [[1.0, 3.0], [2.0, 2.0]], template=template, **rest)
        model.add_own_requests(["s", "t"], [1, 1], [1.0, 2.0], {"r": [1.0, 1.0]}, integer=rest.get("integer", False))
    assert bits(models[0]) == bits(models[1])
    models[0].rescale_costs(["p", "q"], None, None, [0, -1], None)  # type: ignore[arg-type]
    models[1].rescale_costs(["p", "q"], 1.0, 0.0, [0, -1], [0.0, 0.0])
    assert bits(models[0]) == bits(models[1])
    assert models[1].cost("p").tolist() == [0.0, 3.0]


def test_costs_are_stored_as_the_request_says_or_else_the_model() -> None:
    for of_model, of_request, expected in (
        (np.float64, None, np.float64),
        (np.float64, np.float32, np.float32),
        (np.float32, None, np.float32),
        (np.float32, np.float64, np.float64),
    ):
        model = Model("max", cost_dtype=of_model)
        model.add_resources("r", 4.0)
        template = model.add_template({"r": [1.0]})
        model.add_requests(["many"], [[0.1]], template=template, cost_dtype=of_request)
        model.add_request("one", [0.1], template=template, cost_dtype=of_request)
        assert model.cost("many")[0] == model.cost("one")[0] == float(expected(0.1))


def test_requests_of_one_template_are_checked_as_one_by_one() -> None:
    ids, limits = ["a", "b", "c", "d"], [2.0, 1.0, 2.0, np.inf]
    together, alone = Model(), Model()
    for model in (together, alone):
        model.add_resource("gpu", 9)
    sizes = [model.add_template({"gpu": [1, 2]}) for model in (together, alone)]
    costs, scales = np.arange(8.0).reshape(4, 2), [1.0, -2.0, 3.0, 1.0]
    together.add_requests(ids, costs, template=sizes[0], limit=limits, lower=0.25, upper=1.0, scale=scales)
    for at, request in enumerate(ids):
        alone.add_request(
            request, costs[at], template=sizes[1], limit=limits[at], lower=0.25, upper=1.0, scale=scales[at]
        )
    one, many = alone.to_linear_program(), together.to_linear_program()
    assert np.array_equal(one.c, many.c)
    assert np.array_equal(one.A.toarray(), many.A.toarray())
    assert np.array_equal(one.row_upper, many.row_upper)
    assert np.array_equal(one.col_lower, many.col_lower)
    before = together.version
    for wrong, said in (
        ({"limit": [2.0, 1.0, 0.4, 0.3], "lower": 0.25}, "'g'"),  # the first whose lower bounds exceed the limit
        ({"limit": [2.0, 0.4, 2.0, 0.4], "lower": 0.25}, "'f'"),
        ({"scale": [1.0, 1e300, 1.0, 1e308]}, "'f'"),
    ):
        with pytest.raises(InvalidDataError, match=said):
            together.add_requests(["e", "f", "g", "h"], costs + 1e9, template=sizes[0], **wrong)
    assert together.version == before
    assert together.requests == tuple(ids)
