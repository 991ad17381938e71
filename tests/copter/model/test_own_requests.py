"""Many requests, each with a pattern of its own, in one edit: as if they had been added one by one."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from copter import Model, PrivateRows, Session
from copter.runtime.errors import DimensionError, DuplicateHandleError, InvalidDataError, UnknownHandleError
from tests.copter.consistent import require_consistent


def columns(seed: int = 0) -> tuple[np.ndarray, np.ndarray, sp.csc_array, np.ndarray, np.ndarray]:
    """(sizes, costs, usage, limits, leasts) of six requests over five resources."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, 6)
    n = int(sizes.sum())
    usage = sp.random_array((5, n), density=0.5, rng=rng, format="csc")
    return sizes, rng.normal(size=n), usage, rng.uniform(1.0, 2.0, 6), np.where(rng.random(6) < 0.5, 0.25, -np.inf)


def new_model(dtype: type = np.float64) -> Model:
    model = Model(cost_dtype=dtype)
    for resource in "abcde":
        model.add_resources(resource, 3.0)
    return model


def added(model: Model, seed: int = 0) -> None:
    sizes, costs, usage, limits, leasts = columns(seed)
    model.add_own_requests(range(6), sizes, costs, usage, resources=list("abcde"), limit=limits, at_least=leasts)


def one_by_one(dtype: type = np.float64, seed: int = 0) -> Model:
    model = new_model(dtype)
    sizes, costs, usage, limits, leasts = columns(seed)
    first = np.concatenate(([0], np.cumsum(sizes)))
    for k in range(6):
        own = slice(first[k], first[k + 1])
        kept = {"limit": limits[k], "at_least": leasts[k]}
        model.add_request(k, costs[own], usage[:, own], resources=list("abcde"), **kept)
    return model


def require_same(one: Model, other: Model) -> None:
    a, b = one.to_linear_program(), other.to_linear_program()
    assert (a.A != b.A).nnz == 0
    for name in ("c", "row_lower", "row_upper", "col_lower", "col_upper"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(4))
def test_they_are_what_single_edits_make(seed: int, dtype: type) -> None:
    model = new_model(dtype)
    added(model, seed)
    single = one_by_one(dtype, seed)
    require_same(model, single)
    assert model.version == single.version
    require_consistent(model.ledger)
    assert model.ledger.matrix.rounding_bound() == single.ledger.matrix.rounding_bound()
    np.testing.assert_array_equal(model.ledger.matrix.row_scale, single.ledger.matrix.row_scale)


def test_they_are_edited_and_removed_like_others() -> None:
    model, single = new_model(), one_by_one()
    added(model)
    for each in (model, single):
        each.update_limits([2, 4], [1.5, 1.75])
        each.remove_request(3)
        each.drop_resource("c")
        each.add_request("late", [1.0], {"a": [1.0]})
    require_same(model, single)
    require_consistent(model.ledger)


def test_a_failed_batch_takes_them_back() -> None:
    model = new_model()
    before, version = model.to_linear_program(), model.version

    def edits() -> None:
        with model.batch():
            added(model)
            model.add_request(0, [1.0], {"a": [1.0]})

    with pytest.raises(DuplicateHandleError):
        edits()
    assert model.version == version
    assert model.to_linear_program().shape == before.shape
    np.testing.assert_array_equal(model.ledger.matrix.row_scale[:5], 1.0)
    require_consistent(model.ledger)
    added(model)
    require_same(model, one_by_one())


@pytest.mark.parametrize("gone", [[1], [4, 0, "shared", 2], [0, 1, 2, 3, 4, 5, "shared"]])
def test_a_failed_batch_puts_many_back_that_were_taken_out(gone: list[object]) -> None:
    model, twin = new_model(), new_model()
    for each in (model, twin):
        added(each)
        each.add_requests(["shared"], [[1.0]], template=each.add_template({"a": [7.0], "e": [0.1]}))
    scales, version = model.ledger.matrix.row_scale.copy(), model.version

    def edits() -> None:
        with model.batch():
            model.remove_requests(gone)
            model.add_request("new", [1.0], {"b": [1e6]})
            model.remove_request("unknown")

    with pytest.raises(UnknownHandleError):
        edits()
    assert model.version == version
    require_same(model, twin)
    require_consistent(model.ledger)
    np.testing.assert_array_equal(model.ledger.matrix.row_scale, scales)
    serials = [template.serial for template in model.ledger.matrix.templates]
    assert serials == [template.serial for template in twin.ledger.matrix.templates]
    for each in (model, twin):
        each.remove_requests(gone)
    require_same(model, twin)


def test_the_collector_waits_while_many_come_and_go() -> None:
    seen: list[bool] = []

    class Watching(str):
        __slots__ = ()

        def __hash__(self) -> int:
            seen.append(gc.isenabled())
            return super().__hash__()

    model, names = new_model(), [Watching(f"job-{k}") for k in range(60)]
    sizes, costs, usage, _, _ = columns()
    sizes, costs, usage = np.tile(sizes, 10), np.tile(costs, 10), sp.hstack([usage] * 10, format="csc")
    model.add_own_requests(names, sizes, costs, usage, resources=list("abcde"))
    assert not all(seen)
    assert gc.isenabled()
    seen.clear()
    model.remove_requests(names)
    assert not all(seen)
    assert gc.isenabled()


def test_the_journal_has_them(tmp_path: Path) -> None:
    session = Session(new_model())
    session.save(tmp_path / "start")
    session.journal(tmp_path / "journal")
    session.save(tmp_path / "begun")
    added(session.model)
    session.journal(None)
    require_same(Session.load(tmp_path / "begun").model, one_by_one())


def own_rows(seed: int = 0) -> tuple[np.ndarray, list[PrivateRows | None], PrivateRows]:
    """(rows of each request, the rows request by request, the same as one matrix) for the six requests of columns()."""
    rng, sizes = np.random.default_rng(seed + 100), columns(seed)[0]
    counts = rng.integers(0, 4, 6)
    counts[1] = 0
    blocks = [sp.random_array((r, n), density=0.7, rng=rng, format="csc") for r, n in zip(counts, sizes, strict=True)]
    lower = [np.where(rng.random(r) < 0.5, -np.inf, 0.0) for r in counts]
    upper = [rng.uniform(1.0, 2.0, r) for r in counts]
    each = [
        PrivateRows(block, low, high) if len(low) else None
        for block, low, high in zip(blocks, lower, upper, strict=True)
    ]
    return counts, each, PrivateRows(sp.block_diag(blocks), np.concatenate(lower), np.concatenate(upper))


def added_with_rows(model: Model, seed: int = 0) -> None:
    sizes, costs, usage, limits, leasts = columns(seed)
    counts, _, together = own_rows(seed)
    model.add_own_requests(
        range(6), sizes, costs, usage, resources=list("abcde"), limit=limits, at_least=leasts,
        private_rows=together, private_sizes=counts,
    )  # fmt: skip


def one_by_one_with_rows(seed: int = 0) -> Model:
    model = new_model()
    sizes, costs, usage, limits, leasts = columns(seed)
    first = np.concatenate(([0], np.cumsum(sizes)))
    for k, rows in enumerate(own_rows(seed)[1]):
        own = slice(first[k], first[k + 1])
        kept = {"limit": limits[k], "at_least": leasts[k], "private_rows": rows}
        model.add_request(k, costs[own], usage[:, own], resources=list("abcde"), **kept)
    return model


@pytest.mark.parametrize("seed", range(4))
def test_private_rows_of_many_requests_are_what_single_edits_make(seed: int) -> None:
    model = new_model()
    added_with_rows(model, seed)
    single = one_by_one_with_rows(seed)
    require_same(model, single)
    rows = [k for k, each in enumerate(own_rows(seed)[1]) if each is not None]
    for each in (model, single):
        each.update_row_bounds(
            rows, [np.full(len(each.private_rows(k).lower), -np.inf) for k in rows],
            [np.full(len(each.private_rows(k).upper), 1.5) for k in rows],
        )  # fmt: skip
        each.remove_request(rows[0])
        each.drop_resource("b")
    require_same(model, single)
    require_consistent(model.ledger)
    assert Session(model).solve().objective == pytest.approx(Session(single).solve().objective, rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_bounds_and_whole_requests_are_what_single_edits_make(seed: int, tmp_path: Path) -> None:
    sizes, costs, usage, limits, _ = columns(seed)
    rng = np.random.default_rng(seed)
    n, whole = len(costs), rng.random(6) < 0.5
    first = np.concatenate(([0], np.cumsum(sizes)))
    lower = np.where(rng.random(n) < 0.3, -1.0, 0.0)
    upper = np.where(np.repeat(whole, sizes), 1.0, rng.uniform(0.5, 2.0, n))
    session = Session(new_model())
    session.save(tmp_path / "start")
    session.journal(tmp_path / "journal")
    session.save(tmp_path / "begun")
    given = {"limit": limits, "lower": lower, "upper": upper, "integer": whole}
    session.model.add_own_requests(range(6), sizes, costs, usage, resources=list("abcde"), **given)
    session.journal(None)
    single = new_model()
    for k in range(6):
        own = slice(first[k], first[k + 1])
        part = {"limit": limits[k], "lower": lower[own], "upper": upper[own], "integer": bool(whole[k])}
        single.add_request(k, costs[own], usage[:, own], resources=list("abcde"), **part)
    require_same(session.model, single)
    require_same(Session.load(tmp_path / "begun").model, single)
    np.testing.assert_array_equal(session.model.to_linear_program().integrality, single.to_linear_program().integrality)


def test_wrong_bounds_are_named_and_change_nothing() -> None:
    model = new_model()
    sizes, costs, usage, _, _ = columns()
    n = len(costs)
    low = np.zeros(n)
    low[-1] = 3.0
    for given, message in (
        ({"lower": low, "limit": 1.0}, "request 5: lower bounds sum to 3, above the limit 1"),
        ({"lower": -np.inf, "limit": 1.0}, "request 0: a limit needs finite lower bounds"),
        ({"lower": low, "upper": 2.0, "limit": 9.0}, "request 5, column"),
        ({"lower": np.nan}, "lower"),
        ({"upper": np.zeros(n + 1)}, "upper"),
        ({"integer": [True] * 5}, "integer"),
    ):
        with pytest.raises((DimensionError, InvalidDataError), match=message):
            model.add_own_requests(range(6), sizes, costs, usage, resources=list("abcde"), **given)
    assert not model.ledger.slot_of


def test_the_journal_has_private_rows(tmp_path: Path) -> None:
    session = Session(new_model())
    session.save(tmp_path / "start")
    session.journal(tmp_path / "journal")
    session.save(tmp_path / "begun")
    added_with_rows(session.model)
    session.journal(None)
    require_same(Session.load(tmp_path / "begun").model, one_by_one_with_rows())


def test_wrong_private_rows_are_named_and_change_nothing() -> None:
    model = new_model()
    sizes, costs, usage, _, _ = columns()
    n = int(sizes.sum())
    across = sp.csc_array(([1.0, 1.0], ([0, 1], [0, n - 1])), shape=(2, n))
    wrong = [
        ({"private_sizes": 1}, "private_rows is not given"),
        ({"private_rows": PrivateRows(across), "private_sizes": [2, 0, 0, 0, 0, 0]}, "private row 1 .* of request 5"),
        ({"private_rows": PrivateRows(across), "private_sizes": [1, 0, 0, 0, 0, 0]}, "private_sizes sum to 1"),
        ({"private_rows": PrivateRows(across), "private_sizes": [3, -1, 0, 0, 0, 0]}, "request 1: private_sizes has"),
        ({"private_rows": PrivateRows(across, 2.0, 1.0), "private_sizes": [1, 0, 0, 0, 0, 1]}, "lower"),
        ({"private_rows": across, "private_sizes": [1, 0, 0, 0, 0, 1]}, "give PrivateRows"),
    ]
    for given, message in wrong:
        with pytest.raises((DimensionError, InvalidDataError), match=message):
            model.add_own_requests(range(6), sizes, costs, usage, resources=list("abcde"), **given)
    assert not model.ledger.slot_of
    added_with_rows(model)
    require_same(model, one_by_one_with_rows())


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"sizes": [1, 1]}, DimensionError, "sizes has shape"),
        ({"sizes": np.array([1.0] * 6)}, InvalidDataError, "whole number"),
        ({"sizes": [0, 1, 1, 1, 1, 1]}, DimensionError, "request 0: a request needs at least one column"),
        ({"sizes": [1, 1, 1, 1, 1, 1]}, DimensionError, "sizes sum to 6"),
        ({"cost": [1.0]}, DimensionError, "cost has shape"),
        ({"limit": -1.0}, InvalidDataError, "limit"),
        ({"at_least": 9.0}, InvalidDataError, "request 0"),
        ({"resources": list("abcdx")}, UnknownHandleError, "unknown resource 'x'"),
        ({"requests": [0, 1, 2, 3, 4, 4]}, DuplicateHandleError, "different ids"),
    ],
)
def test_what_is_wrong_is_named_and_changes_nothing(change: dict, error: type[Exception], message: str) -> None:
    model = new_model()
    sizes, costs, usage, limits, _ = columns()
    given = {"requests": list(range(6)), "sizes": sizes, "cost": costs, "usage": usage}
    given |= {"resources": list("abcde"), "limit": limits} | change
    positional = [given.pop(name) for name in ("requests", "sizes", "cost", "usage")]
    with pytest.raises(error, match=message):
        model.add_own_requests(*positional, **given)
    assert not model.ledger.slot_of
    added(model)
    require_same(model, one_by_one())


def test_what_is_not_given_is_the_same_however_requests_are_added() -> None:
    models = [Model("max") for _ in range(3)]
    for model in models:
        model.add_resources("r", 4.0)
    for request in ("p", "q"):
        models[0].add_request(request, [1.0, 3.0], {"r": [1.0, 2.0]})
    models[1].add_requests(["p", "q"], [[1.0, 3.0]] * 2, template=models[1].add_template({"r": [1.0, 2.0]}))
    models[2].add_own_requests(["p", "q"], [2, 2], [1.0, 3.0] * 2, {"r": [1.0, 2.0] * 2})
    for model in models:
        for request in ("p", "q"):
            assert (model.limit(request), model.at_least(request)) == (1.0, -np.inf)
            assert [each.tolist() for each in model.bounds(request)] == [[0.0, 0.0], [np.inf, np.inf]]
            assert (model.cost(request).tolist(), model.is_integer(request)) == ([1.0, 3.0], False)
