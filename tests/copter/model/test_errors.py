"""Every wrong edit: the error's type, the id in its message, and a model that is as it was, to the last bit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import copter
from copter import (
    CopterError,
    DimensionError,
    DuplicateHandleError,
    EditNotAllowedError,
    InvalidDataError,
    LinearProgram,
    Model,
    Session,
    Settings,
    SettingsError,
    StaleSolutionError,
    Status,
    UnknownHandleError,
    solve,
)
from copter.runtime.settings import Internals

NAN, INF = np.nan, np.inf


def some_model() -> Model:
    """Two resources, a shared pattern, one request of its own pattern, one fixed, one that cannot be fixed."""
    model = Model()
    model.add_resources("a100", 8)
    model.add_resources("v100", 4)
    template = model.add_template({"a100": [1, 2, 0], "v100": [0, 0, 1]})
    model.add_request("shared", [1.0, 1.5, 0.7], template=template)
    model.add_request("own", [1.0, 2.0], {"a100": [1, 3]}, scale=2.0, offset=0.1)
    model.add_request("held", [1.0, 1.5, 0.7], template=template)
    model.fix("held", 1)
    model.add_request("free", [0.5], {"v100": [1]}, limit=INF, upper=2.0)
    model.rescale_cost("shared", 1.1, 0.0, {2: 9.0})
    return model


def snapshot(model: Model) -> tuple[Any, ...]:
    """All that the model holds."""
    lp = model.to_linear_program()
    arrays = (lp.c, lp.A.indptr, lp.A.indices, lp.A.data, lp.row_lower, lp.row_upper, lp.col_lower, lp.col_upper)
    kept = tuple(array.tobytes() for array in (*arrays, lp.integrality))
    matrix = model.ledger.matrix
    counted = (matrix.n_slots, matrix.n_columns, len(matrix.templates), [t.users for t in matrix.templates])
    fixed = [model.fixed(request) for request in model.requests]
    return (*kept, model.version, model.requests, model.resources, counted, fixed, lp.sense, lp.offset)


Edit = Callable[[Model], object]
USAGE = {"a100": [1.0, 2.0]}
OTHER = Model()
OTHER.add_resources("a100", 1)
FOREIGN = OTHER.add_template({"a100": [1.0, 1.0]})

WRONG: dict[str, tuple[Edit, type[CopterError], str]] = {
    # resources
    "negative units": (lambda m: m.add_resources("a100", -1), InvalidDataError, "a100"),
    "NaN units": (lambda m: m.add_resources("new", NAN), InvalidDataError, "new"),
    "infinite units": (lambda m: m.add_resources("new", INF), InvalidDataError, "new"),
    "units that are no number": (lambda m: m.add_resources("new", "many"), InvalidDataError, "new"),
    "units beyond all numbers": (lambda _: add_beyond_all_numbers(), InvalidDataError, "big"),
    "remove unknown resource": (lambda m: m.remove_resources("h100", 1), UnknownHandleError, "h100"),
    "remove more than there is": (lambda m: m.remove_resources("v100", 5), InvalidDataError, "v100"),
    "remove negative": (lambda m: m.remove_resources("v100", -1), InvalidDataError, "v100"),
    "remove NaN": (lambda m: m.remove_resources("v100", NAN), InvalidDataError, "v100"),
    "remove what fixed requests use": (lambda m: m.remove_resources("a100", 7), EditNotAllowedError, "a100"),
    "drop unknown resource": (lambda m: m.drop_resource("h100"), UnknownHandleError, "h100"),
    "count of unknown resource": (lambda m: m.count("h100"), UnknownHandleError, "h100"),
    # templates
    "usage of unknown resource": (lambda m: m.add_template({"h100": [1]}), UnknownHandleError, "h100"),
    "NaN in usage": (lambda m: m.add_template({"a100": [1, NAN]}), InvalidDataError, "usage"),
    "infinite usage": (lambda m: m.add_template({"a100": [INF]}), InvalidDataError, "usage"),
    "usage of two lengths": (lambda m: m.add_template({"a100": [1], "v100": [1, 2]}), DimensionError, "usage"),
    "usage without columns": (lambda m: m.add_template({"a100": []}), DimensionError, "usage"),
    "usage without resources": (lambda m: m.add_template({}), DimensionError, "usage"),
    "usage in a matrix": (lambda m: m.add_template({"a100": [[1, 2]]}), DimensionError, "a100"),
    "usage of words": (lambda m: m.add_template({"a100": ["x"]}), InvalidDataError, "a100"),
    "usage of no known sort": (lambda m: m.add_template([1, 2]), InvalidDataError, "usage"),
    "sparse usage without ids": (lambda m: m.add_template(sp.eye_array(2)), DimensionError, "usage"),
    "sparse usage, ids too few": (lambda m: m.add_template(sp.eye_array(2), ["a100"]), DimensionError, "usage"),
    "sparse usage, unknown id": (lambda m: m.add_template(sp.eye_array(1), ["h100"]), UnknownHandleError, "h100"),
    "sparse NaN": (lambda m: m.add_template(sp.coo_array([[NAN]]), ["a100"]), InvalidDataError, "usage"),
    "drop template in use": (
        lambda m: m.drop_template(next(iter(m.ledger.matrix.templates))),
        EditNotAllowedError,
        "2 req",
    ),
    "drop foreign template": (lambda m: m.drop_template(FOREIGN), UnknownHandleError, "template"),
    # adding requests
    "added twice": (lambda m: m.add_request("own", [1, 2], USAGE), DuplicateHandleError, "own"),
    "NaN cost": (lambda m: m.add_request("r", [1, NAN], USAGE), InvalidDataError, "'r': cost of column 1"),
    "infinite cost": (lambda m: m.add_request("r", [-INF, 1], USAGE), InvalidDataError, "'r': cost of column 0"),
    "short cost": (lambda m: m.add_request("r", [1], USAGE), DimensionError, "'r': cost"),
    "scalar cost": (lambda m: m.add_request("r", 1.0, USAGE), DimensionError, "'r': cost"),
    "cost of words": (lambda m: m.add_request("r", ["a", "b"], USAGE), InvalidDataError, "'r': cost"),
    "NaN scale": (lambda m: m.add_request("r", [1, 2], USAGE, scale=NAN), InvalidDataError, "'r': scale"),
    "infinite offset": (lambda m: m.add_request("r", [1, 2], USAGE, offset=INF), InvalidDataError, "'r': offset"),
    "NaN limit": (lambda m: m.add_request("r", [1, 2], USAGE, limit=NAN), InvalidDataError, "'r': limit"),
    "negative limit": (lambda m: m.add_request("r", [1, 2], USAGE, limit=-1), InvalidDataError, "'r': limit"),
    "limit of words": (lambda m: m.add_request("r", [1, 2], USAGE, limit="x"), InvalidDataError, "'r': limit"),
    "limit without finite lower bounds": (
        lambda m: m.add_request("r", [1, 2], USAGE, lower=-INF),
        InvalidDataError,
        "'r': a limit needs finite lower bounds",
    ),
    "lower bounds above the limit": (lambda m: m.add_request("r", [1, 2], USAGE, lower=0.6), InvalidDataError, "'r'"),
    "crossed bounds": (
        lambda m: m.add_request("r", [1, 2], USAGE, lower=[0, 2], upper=1.0),
        InvalidDataError,
        "'r', column 1",
    ),
    "NaN lower": (lambda m: m.add_request("r", [1, 2], USAGE, lower=NAN), InvalidDataError, "'r': lower"),
    "NaN upper": (lambda m: m.add_request("r", [1, 2], USAGE, upper=[1, NAN]), InvalidDataError, "'r': upper"),
    "upper of -inf": (lambda m: m.add_request("r", [1, 2], USAGE, upper=-INF), InvalidDataError, "'r': upper"),
    "lower of inf": (lambda m: m.add_request("r", [1, 2], USAGE, lower=INF), InvalidDataError, "'r': lower"),
    "bounds of the wrong shape": (lambda m: m.add_request("r", [1, 2], USAGE, upper=[1]), DimensionError, "'r': upper"),
    "neither usage nor template": (lambda m: m.add_request("r", [1, 2]), InvalidDataError, "'r'"),
    "both usage and template": (
        lambda m: m.add_request("r", [1, 2], USAGE, template=FOREIGN),
        InvalidDataError,
        "'r'",
    ),
    "template of another model": (
        lambda m: m.add_request("r", [1, 2], template=FOREIGN),
        UnknownHandleError,
        "'r': the template is not of this model",
    ),
    "template of another sort": (lambda m: m.add_request("r", [1, 2], template="x"), UnknownHandleError, "'r'"),  # type: ignore[arg-type]
    "request's unknown resource": (lambda m: m.add_request("r", [1], {"h100": [1]}), UnknownHandleError, "'r'.*h100"),
    "request's NaN usage": (lambda m: m.add_request("r", [1], {"a100": [NAN]}), InvalidDataError, "'r'.*usage"),
    # changing requests
    "remove unknown request": (lambda m: m.remove_request("ghost"), UnknownHandleError, "ghost"),
    "update unknown request": (lambda m: m.update_cost("ghost", [1]), UnknownHandleError, "ghost"),
    "update with NaN": (lambda m: m.update_cost("own", [NAN, 1]), InvalidDataError, "'own': cost of column 0"),
    "update with wrong shape": (lambda m: m.update_cost("own", [1, 2, 3]), DimensionError, "'own': cost"),
    "update with NaN scale": (lambda m: m.update_cost("own", [1, 2], scale=NAN), InvalidDataError, "'own': scale"),
    "rescale unknown request": (lambda m: m.rescale_cost("ghost", 1.0), UnknownHandleError, "ghost"),
    "rescale by NaN": (lambda m: m.rescale_cost("own", NAN), InvalidDataError, "'own': scale"),
    "rescale to infinity": (lambda m: m.rescale_cost("own", 1.0, INF), InvalidDataError, "'own': offset"),
    "exception beyond the columns": (lambda m: m.rescale_cost("own", 1, 0, {2: 1.0}), DimensionError, "'own'.*2"),
    "exception of -1": (lambda m: m.rescale_cost("own", 1, 0, {-1: 1.0}), DimensionError, "'own'.*-1"),
    "exception of half a column": (lambda m: m.rescale_cost("own", 1, 0, {0.5: 1.0}), DimensionError, "'own'"),  # type: ignore[dict-item]
    "exception of NaN": (lambda m: m.rescale_cost("own", 1, 0, {1: NAN}), InvalidDataError, "'own': cost of column 1"),
    "cost of unknown request": (lambda m: m.cost("ghost"), UnknownHandleError, "ghost"),
    # fixing
    "fix unknown request": (lambda m: m.fix("ghost", 0), UnknownHandleError, "ghost"),
    "fix beyond the columns": (lambda m: m.fix("own", 2), DimensionError, "'own'.*2"),
    "fix on half a column": (lambda m: m.fix("own", 0.5), DimensionError, "'own'"),  # type: ignore[arg-type]
    "fix what cannot be": (lambda m: m.fix("free", 0), EditNotAllowedError, "'free'"),
    "unfix unknown request": (lambda m: m.unfix("ghost"), UnknownHandleError, "ghost"),
    "fixed of unknown request": (lambda m: m.fixed("ghost"), UnknownHandleError, "ghost"),
}


def add_beyond_all_numbers() -> None:
    """Units that sum to infinity, on a model of their own."""
    huge = Model()
    huge.add_resources("big", 1.7e308)
    before = snapshot(huge)
    try:
        huge.add_resources("big", 1.7e308)
    finally:
        assert snapshot(huge) == before


@pytest.mark.parametrize("name", WRONG)
def test_wrong_edit(name: str) -> None:
    edit, error, message = WRONG[name]
    model = some_model()
    before = snapshot(model)
    with pytest.raises(error, match=message):
        edit(model)
    assert snapshot(model) == before
    assert Session(model).solve().status is Status.OPTIMAL


def test_removed_twice() -> None:
    model = some_model()
    model.remove_request("own")
    model.drop_resource("v100")
    before = snapshot(model)
    with pytest.raises(UnknownHandleError, match="own"):
        model.remove_request("own")
    with pytest.raises(UnknownHandleError, match="v100"):
        model.drop_resource("v100")
    assert snapshot(model) == before


def test_removed_requests_do_not_count_as_fixed() -> None:
    model = some_model()
    assert model.fixed_usage("a100") == 2.0
    model.remove_request("own")
    assert model.fixed_usage("a100") == 2.0
    model.remove_request("held")
    assert model.fixed_usage("a100") == 0.0
    model.remove_resources("a100", 8)
    assert model.count("a100") == 0.0


def test_a_removed_id_can_be_added_again() -> None:
    model = some_model()
    model.remove_request("own")
    assert "own" not in model
    model.add_request("own", [3.0], {"v100": [1]})
    np.testing.assert_array_equal(model.cost("own"), [3.0])


def test_templates_are_dropped_once_free() -> None:
    model = Model()
    model.add_resources("a", 1)
    template = model.add_template({"a": [1]})
    model.add_request("r", [1], template=template)
    model.remove_request("r")
    model.drop_template(template)
    with pytest.raises(UnknownHandleError, match="template"):
        model.drop_template(template)
    with pytest.raises(UnknownHandleError, match="template"):
        model.add_request("r", [1], template=template)
    assert not model.ledger.matrix.templates


def test_the_callers_arrays_are_copied() -> None:
    model = Model()
    model.add_resources("a", 5)
    cost, usage, upper = np.array([1.0, 2.0]), np.array([1.0, 2.0]), np.array([1.0, 0.5])
    model.add_request("r", cost, {"a": usage}, upper=upper)
    before = snapshot(model)
    cost[:], usage[:], upper[:] = 9.0, 9.0, 9.0
    assert snapshot(model) == before


@pytest.mark.parametrize("sense", ["biggest", None, 1])
def test_sense_of_a_model(sense: Any) -> None:
    with pytest.raises(InvalidDataError, match="sense"):
        Model(sense)


@pytest.mark.parametrize("offset", [NAN, INF, "x", None])
def test_offset_of_a_model(offset: Any) -> None:
    with pytest.raises(InvalidDataError, match="offset"):
        Model(offset=offset)


# Solutions --------------------------------------------------------------------------------------------------------


def test_stale_solution() -> None:
    model = some_model()
    solution = Session(model).solve()
    values = solution.of("own")
    model.remove_request("own")
    with pytest.raises(StaleSolutionError, match="own"):
        solution.of("own")
    model.add_request("own", [1.0, 2.0], {"a100": [1, 3]})
    with pytest.raises(StaleSolutionError, match="own"):
        solution.of("own")
    for what in ("x", "y", "reduced_costs"):
        with pytest.raises(StaleSolutionError, match="solve again"):
            getattr(solution, what)
    np.testing.assert_array_equal(solution.columns_of("own")[1], values[solution.columns_of("own")[0]])


def test_a_solution_does_not_follow_later_edits() -> None:
    model = some_model()
    solution = Session(model).solve()
    before = solution.of("own"), solution.of("shared"), solution.price("a100"), solution.objective
    model.fix("own", 0)
    model.update_cost("shared", [0.0, 0.0, 9.0])
    after = solution.of("own"), solution.of("shared"), solution.price("a100"), solution.objective
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old, new)


def test_dense_values_once_read_stay() -> None:
    model = some_model()
    solution = Session(model).solve()
    x = solution.x
    model.remove_request("own")
    np.testing.assert_array_equal(solution.x, x)


def test_unknown_to_a_solution() -> None:
    model = some_model()
    solution = Session(model).solve()
    model.add_request("late", [1], {"a100": [1]})
    model.add_resources("h100", 2)
    with pytest.raises(UnknownHandleError, match="late"):
        solution.of("late")
    with pytest.raises(UnknownHandleError, match="h100"):
        solution.price("h100")
    dense = solve(LinearProgram([1.0], [[1.0]], row_lower=[1.0]))
    with pytest.raises(UnknownHandleError, match="use x and y"):
        dense.of("late")
    with pytest.raises(UnknownHandleError, match="use x and y"):
        dense.price("late")


# Programs and settings --------------------------------------------------------------------------------------------

A = [[1.0, 1.0]]


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"c": [1, NAN], "A": A}, InvalidDataError, r"c\[1\]"),
        ({"c": [1, INF], "A": A}, InvalidDataError, r"c\[1\]"),
        ({"c": ["x", 1], "A": A}, InvalidDataError, "c is not"),
        ({"c": [1, 1], "A": [[1, NAN]]}, InvalidDataError, "A has an entry"),
        ({"c": [1, 1], "A": [["x", 1]]}, InvalidDataError, "A is not"),
        ({"c": [1, 1], "A": [[[1, 1]]]}, DimensionError, "A has 3"),
        ({"c": [1], "A": A}, DimensionError, "A has 2 columns, c has 1"),
        ({"c": [[1, 1]], "A": A}, DimensionError, "A has 2 columns, c has 1"),
        ({"c": [1, 1], "A": A, "row_lower": [1, 2]}, DimensionError, "row_lower"),
        ({"c": [1, 1], "A": A, "row_lower": [INF]}, InvalidDataError, r"row_lower\[0\]"),
        ({"c": [1, 1], "A": A, "row_upper": [-INF]}, InvalidDataError, r"row_upper\[0\]"),
        ({"c": [1, 1], "A": A, "row_upper": [NAN]}, InvalidDataError, r"row_upper\[0\]"),
        ({"c": [1, 1], "A": A, "col_lower": [0, INF]}, InvalidDataError, r"col_lower\[1\]"),
        ({"c": [1, 1], "A": A, "col_upper": [-INF, 0]}, InvalidDataError, r"col_upper\[0\]"),
        ({"c": [1, 1], "A": A, "row_lower": [2], "row_upper": [1]}, InvalidDataError, "row 0"),
        ({"c": [1, 1], "A": A, "col_lower": [0, 2], "col_upper": [9, 1]}, InvalidDataError, "column 1"),
        ({"c": [1, 1], "A": A, "integrality": [1]}, DimensionError, "integrality"),
        ({"c": [1, 1], "A": A, "sense": "most"}, InvalidDataError, "sense"),
        ({"c": [1, 1], "A": A, "offset": NAN}, InvalidDataError, "offset"),
    ],
)
def test_wrong_program(values: dict[str, Any], error: type[CopterError], message: str) -> None:
    with pytest.raises(error, match=message):
        LinearProgram(**values)


def test_a_program_is_frozen_and_its_own() -> None:
    c, a = np.array([1.0, 2.0]), sp.csc_array(np.array([[1.0, 2.0]]))
    lp = LinearProgram(c, a)
    c[0], a.data[0] = 9.0, 9.0
    assert lp.c[0] == 1.0
    assert lp.A[0, 0] == 1.0
    with pytest.raises(ValueError):
        lp.c[0] = 3.0
    with pytest.raises(AttributeError):
        lp.c = c  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tolerance", 0.0), ("tolerance", -1.0), ("tolerance", NAN), ("tolerance", INF), ("absolute_tolerance", 0.0),
        ("warm_sigma", 0.0), ("warm_sigma", INF), ("max_proximal_steps", 0),
        ("descent_sweeps", -1), ("interior_rows", -1), ("threads", -1),
        ("sigma_growth", 0.5), ("sigma_growth", NAN), ("time_limit_s", 0.0),
        ("time_limit_s", NAN),
    ],
)  # fmt: skip
def test_wrong_setting(name: str, value: float) -> None:
    with pytest.raises(SettingsError, match=name):
        Settings(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_pricing_passes", 0), ("max_interior_iterations", 0), ("hand_over_s", -1.0), ("purify", "yes")],
)
def test_wrong_internals(name: str, value: Any) -> None:
    with pytest.raises(SettingsError, match=name):
        Internals(**{name: value})
    with pytest.raises(SettingsError, match="internals is 3, must be left out"):
        Settings(internals=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("deadline", [0.0, -1.0, NAN, "soon", [1.0]])
def test_wrong_deadline(deadline: Any) -> None:
    with pytest.raises(SettingsError, match="deadline_s"):
        Session(some_model()).solve(deadline_s=deadline)
    with pytest.raises(SettingsError, match="deadline_s"):
        Session(some_model()).solve_integer("dive", deadline_s=deadline)


def test_settings_names_are_the_knobs() -> None:
    assert {*Settings.names(), "internals"} == set(Settings.__dataclass_fields__)


def test_a_session_is_used_by_one_thread_at_a_time() -> None:
    session, inside, outside = Session(some_model()), threading.Event(), threading.Event()

    def wait(*_: object) -> None:
        inside.set()
        assert outside.wait(10)

    worker = threading.Thread(target=lambda: session.solve(callback=wait))
    worker.start()
    assert inside.wait(10)
    with pytest.raises(EditNotAllowedError, match="another thread"):
        session.solve()
    with pytest.raises(EditNotAllowedError, match="another thread"):
        session.reset()
    outside.set()
    worker.join(10)
    assert session.solve().status is Status.OPTIMAL


def test_every_error_is_a_copter_error() -> None:
    errors = [getattr(copter, name) for name in copter.__all__ if name.endswith("Error")]
    assert len(errors) == 10
    assert all(issubclass(error, CopterError) for error in errors)
    assert str(UnknownHandleError("plain words")) == "plain words"


def test_settings_of_an_earlier_version_are_read_without_those_that_are_gone() -> None:
    saved = {"tolerance": 1e-5, "dense_rows": 20, "purify_rows": 3}
    assert copter.Settings.saved(saved) == copter.Settings(tolerance=1e-5)
    assert copter.Settings.saved({"price_reach": 0.25}) == copter.Settings(trust_radius=0.25)
    plain = copter.Settings(threads=2, internals=Internals(purify=False, hand_over_s=3.0))
    assert copter.Settings.saved(plain.plain()) == plain
    with pytest.raises(TypeError, match="mood"):
        copter.Settings.saved({"mood": 1})
