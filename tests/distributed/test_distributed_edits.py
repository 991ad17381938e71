"""Edits that are wrong change nothing on any shard; plans hold; the interface is that of a session."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest
from both_sides import EXACT, Pair

import copter
import copter_distributed as distributed
from copter.runtime.errors import (
    DimensionError,
    DuplicateHandleError,
    EditNotAllowedError,
    InvalidDataError,
    SettingsError,
    StaleSolutionError,
    UnknownHandleError,
)
from copter.testing import sia_like_model
from copter_distributed.model.model import RoutedModel

LEFT_OUT = {
    "ledger",
    "to_linear_program",
    "template_of",
    "cost_dtype",
    "drop_worth",
    "rates",
    "update_worth",
    "update_worths",
    "worth",
}  # of Model: concave worths are not distributed


def test_the_model_has_the_edits_of_a_model() -> None:
    public = {name for name, _ in inspect.getmembers(copter.Model) if not name.startswith("_")}
    assert public - LEFT_OUT <= {name for name, _ in inspect.getmembers(RoutedModel)}


def test_edits_are_called_as_those_of_a_model() -> None:
    for name, method in inspect.getmembers(copter.Model, inspect.isfunction):
        if not name.startswith("_") and name not in LEFT_OUT | {"add_request", "add_requests"}:
            given = list(inspect.signature(method).parameters)
            assert list(inspect.signature(getattr(RoutedModel, name)).parameters) == given, name


def test_arguments_go_to_the_shard_by_name_too_and_wrong_ones_are_refused_at_once() -> None:
    pair = Pair(3, ("template",))
    for _ in range(4):
        pair.add()
    model, request = pair.many.model, pair.many.model.requests[1]
    template = model.template_of(request)
    model.fix(request=request, column=0)
    assert model.fixed(request) == 0
    model.update_template(template=template, usage={"r0": np.full(template.n_columns, 2.0)})
    with pytest.raises(TypeError, match="column"), model.batch():
        model.fix(request)
        raise AssertionError("the error comes when the batch ends")
    with pytest.raises(TypeError), model.batch():
        model.set_count("r0")
        raise AssertionError("the error comes when the batch ends")


def state(session: distributed.Session) -> object:
    """What the shards and the coordinator hold."""
    shards = session._exchange.transport.shards
    model = session.model
    costs = {request: model.cost(request).tolist() for request in model.requests}
    return costs, model.resources, [model.count(each) for each in model.resources], {
        number: (shard.model.version, shard.model.requests) for number, shard in shards.items()
    }  # fmt: skip


def test_a_batch_that_fails_on_one_shard_happens_on_none() -> None:
    pair = Pair(1, ("plain", "template"))
    for _ in range(9):
        pair.add()
    session, before = pair.many, None
    objective = session.solve().objective
    before = state(session)
    with pytest.raises(InvalidDataError), session.model.batch():
        session.model.add_resources("new", 4.0)
        for job in range(6):
            session.model.add_request(("new", job), [1.0, 2.0], {"new": [1.0, 1.0]})
        session.model.remove_request("job 0")
        session.model.update_cost("job 3", np.full(len(pair.one.model.cost("job 3")), np.nan))
    assert state(session) == before
    assert session.solve().objective == pytest.approx(objective, rel=1e-12)


def test_an_inner_batch_takes_back_its_own_edits_only() -> None:
    session = Pair(2, ("plain",)).many
    with session.model.batch():
        session.model.add_request("kept", [1.0], {"r0": [1.0]})
        with pytest.raises(ZeroDivisionError), session.model.batch():
            session.model.add_request("gone", [1.0], {"r0": [1.0]})
            session.model.add_resources("gone too", 1.0)
            raise ZeroDivisionError
    assert session.model.requests == ("kept",)
    assert "gone too" not in session.model.resources
    assert session.solve().of("kept") == pytest.approx([1.0])


def test_wrong_edits_are_named_and_change_nothing() -> None:
    session = distributed.Session(sia_like_model(6, 64), EXACT, shards=2)
    model, before = session.model, state(session)
    size = len(model.cost("job-1"))
    with pytest.raises(DuplicateHandleError):
        model.add_request("job-1", np.zeros(size), template=model.templates[0])
    with pytest.raises(UnknownHandleError):
        model.remove_request("nobody")
    with pytest.raises(UnknownHandleError):
        model.update_costs(["job-1", "nobody"], np.zeros((2, size)))
    with pytest.raises(DimensionError):
        model.update_cost("job-1", np.zeros(size + 1))
    with pytest.raises(DimensionError):
        model.update_costs(["job-1", "job-2"], np.zeros(2 * size + 1))
    with pytest.raises(DimensionError):
        model.rescale_costs(["job-1", "job-2"], [1.0, 2.0, 3.0])
    with pytest.raises(InvalidDataError):
        model.set_count("type-0", -np.inf)
    with pytest.raises(InvalidDataError):
        model.add_request("x", [1.0, 1.0])
    with pytest.raises(UnknownHandleError):
        model.add_request("x", [1.0], {"nothing": [1.0]})
    with pytest.raises(EditNotAllowedError):
        model.drop_template(model.templates[0])
    with model.batch():
        model.add_resources("type-0", 1.0)
        with pytest.raises(EditNotAllowedError):
            model.cost("job-1")
        model.remove_resources("type-0", 1.0)
    after = state(session)
    assert after[:3] == before[:3]  # type: ignore[index]
    with pytest.raises(InvalidDataError):
        distributed.Session("no model")  # type: ignore[arg-type]
    with pytest.raises(SettingsError):
        distributed.Session(copter.Model(), shards=0)


def test_fixing_and_unfixing() -> None:
    pair = Pair(4, ("plain",))
    for _ in range(12):
        pair.add()
    pair.agree()
    pair.both("fix", "job 2", 1)
    pair.both("fix", "job 7", 0)
    solution = pair.agree()
    assert solution.of("job 2")[1] == pytest.approx(1.0)
    assert pair.many.model.fixed_usage("r0") == pytest.approx(pair.one.model.fixed_usage("r0"))
    pair.both("unfix", "job 2")
    pair.agree()


@pytest.mark.parametrize("shim", [None, "rounding", "dive"])
def test_integer_plans_hold_and_their_bound_counts_all_columns(shim: str | None) -> None:
    model = sia_like_model(40, 128, seed=2)
    session = distributed.Session(model, EXACT, shards=3)
    here = copter.Session(model, EXACT)
    relaxed, whole = here.solve(), here.solve_integer(shim)
    lp = model.to_linear_program()
    size = len(model.cost("job-0"))
    for _ in range(2):
        plan = session.solve_integer(shim)
        x = np.zeros((40, size))
        for at, request in enumerate(model.requests):
            column = plan.column(request)
            if column is not None:
                x[at, column] = 1.0
        assert (lp.A @ x.ravel() <= lp.row_upper + 1e-9).all()
        assert plan.objective == pytest.approx(lp.c @ x.ravel())
        assert plan.bound == pytest.approx(relaxed.bound, rel=1e-8)
        assert plan.bound >= max(plan.objective, whole.objective)
        assert plan.gap <= 5e-3


def test_answers_are_asked_for_by_id() -> None:
    pair = Pair(9)
    for _ in range(15):
        pair.add()
    solution = pair.agree()
    one = pair.one.solve()
    assert solution.price("r0") == pytest.approx(one.price("r0"), abs=1e-6)
    offsets, values = solution.values_of(["job 3", "job 1"])
    assert np.array_equal(values[: offsets[1]], solution.of("job 3"))
    assert solution.x.shape == one.x.shape
    assert {request for request, _, _ in solution.by_request()} == set(pair.one.model.requests)
    with pytest.raises(UnknownHandleError):
        solution.of("nobody")
    here, there = pair.one.model, pair.many.model
    assert there.cost_dtype == here.cost_dtype
    for request in here.requests:
        assert (there.template_of(request) is None) == (here.template_of(request) is None)
        if here.template_of(request) is not None:
            assert there.template_of(request) is pair.templates[0][1]
    one_lp, many_lp = here.to_linear_program(), there.to_linear_program()
    for name in ("c", "row_lower", "row_upper", "col_lower", "col_upper", "integrality"):
        np.testing.assert_array_equal(getattr(one_lp, name), getattr(many_lp, name))
    np.testing.assert_array_equal(one_lp.A.toarray(), many_lp.A.toarray())
    pair.both("remove_request", "job 3")
    with pytest.raises(StaleSolutionError):
        solution.of("job 3")


def test_compaction_changes_places_and_nothing_else(tmp_path: Path) -> None:
    pair = Pair(12, directory=str(tmp_path / "s"), sync="never")
    for _ in range(30):
        pair.add()
    pair.agree()
    pair.both("remove_requests", list(pair.one.model.requests)[1::2])
    before = pair.agree()
    pair.one.compact()
    pair.many.compact()
    assert before.explain(pair.one.model.requests[0]).options
    after = pair.agree()
    assert after.objective == pytest.approx(before.objective, rel=1e-9)
    for _ in range(5):
        pair.edit()
    pair.agree()
    pair.many.save()
    pair.many._exchange.transport.kill(1)  # type: ignore[attr-defined]
    pair.edit()
    pair.agree()


def test_importing_copter_imports_neither_this_nor_ray() -> None:
    import subprocess
    import sys

    code = "import sys, copter, copter_distributed; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    code = "import sys, copter; sys.exit('copter_distributed' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
