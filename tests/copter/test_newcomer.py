"""What a newcomer meets first: displays, lengths, names, errors that say what is wrong, types of the pages' lines."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import copter
from copter.problem.figures import figure, percent, seconds, times
from copter.runtime.settings import Internals

ROOT = Path(__file__).parents[2]


def small() -> copter.Model:
    """Three jobs on two GPUs."""
    model = copter.Model(sense="max")
    model.add_resource("gpu<1>", 2)
    for job in ("a", "b", "c"):
        model.add_request(job, [1.0, 1.5], {"gpu<1>": [1, 2]}, integer=True)
    return model


def test_things_show_what_they_are() -> None:
    model = small()
    session = copter.Session(model)
    assert repr(model) == "<Model max: 3 requests, 6 columns, 1 resource, version 4>"
    assert "not solved yet" in repr(session)
    plan = session.solve_integer()
    assert repr(plan).startswith("<IntegerPlan optimal: objective 2, gap ")
    assert repr(plan).endswith("serves 2 of 3 requests>")
    assert repr(session.solution).startswith("<Solution optimal: objective 2, gap ")
    assert repr(model.add_template({"gpu<1>": [1, 2]})) == "<Template of 2 columns, 2 entries of usage, 0 requests>"
    for each in (model, plan, session.solution):
        page = each._repr_html_()
        assert page.count("<table>") == page.count("</table>") >= 1
        assert "gpu<1>" not in page
    assert "gpu&lt;1&gt;" in model._repr_html_()


def test_lengths_and_loops() -> None:
    model = small()
    assert (len(model), list(model), "b" in model, "d" in model) == (3, ["a", "b", "c"], True, False)
    assert copter.Model(), "an empty model is not false"
    plan = copter.Session(model).solve_integer()
    assert list(plan) == [job for job in model if plan.shares(job)]
    assert len(plan) == 2
    model.add_request("must", [1.0], {"gpu<1>": [5]}, at_least=1.0, integer=True)
    none = copter.Session(model).solve_integer()
    assert (bool(none), len(none), list(none)) == (False, 0, [])
    assert "no plan" in repr(none)
    assert "why" in none._repr_html_()


def test_figures_as_people_write_them() -> None:
    assert [figure(each) for each in (35.8333333, 1234567.8, 2.0)] == ["35.8333", "1,234,568", "2"]
    assert [figure(each) for each in (999999.7, -12345.678, 0.0)] == ["1,000,000", "-12,345.7", "0"]
    assert [seconds(each) for each in (0.0017021, 62.0, 3e-5)] == ["1.7 ms", "62 s", "30 µs"]
    assert [seconds(each) for each in (0.99996, 0.0009999, 4321.0, 2e-8)] == ["1 s", "1 ms", "4,321 s", "0.02 µs"]
    assert [seconds(each) for each in (0.0, None, float("nan"))] == ["0 s", "–", "–"]
    assert [percent(each) for each in (0.0, 1e-9, 0.0123)] == ["0%", "< 0.0001%", "1.2%"]
    assert [percent(each) for each in (0.9999, 25.0, None)] == ["100%", "2,500%", "–"]
    assert [times(each) for each in (0.99996, 1234.5, 13.42, None)] == ["1", "1,234", "13.4", "–"]
    assert percent(float("nan")) == percent(float("inf")) == "unknown"


def test_the_solution_is_asked_for_after_a_solve() -> None:
    session = copter.Session(small())
    with pytest.raises(copter.EditNotAllowedError, match="has not solved"):
        _ = session.solution
    assert session.solve() is session.solution is session.last_solution


def test_former_names_still_work() -> None:
    model = small()
    model.add_resources("gpu<1>", 2)
    model.remove_resources("gpu<1>", 1)
    assert model.count("gpu<1>") == 3.0
    model.drop_resource("gpu<1>")
    assert model.resources == ()


def test_what_calls_return_has_a_public_name() -> None:
    session = copter.Session(small())
    assert type(session.solve_integer()) is copter.IntegerPlan
    assert type(session.solve()) is copter.Solution


@pytest.mark.parametrize("name", copter.__all__)
def test_help_begins_with_a_sentence(name: str) -> None:
    first = (getattr(copter, name).__doc__ or "").strip().partition("\n\n")[0]
    assert re.match(r"[A-Za-z|`]", first)
    assert first.endswith((".", ":")), first
    assert not first.startswith(f"{name}("), first


def test_units_are_added_to_a_resource_that_is_there() -> None:
    model = small()
    model.add_units("gpu<1>", 2)
    model.remove_units("gpu<1>", 1)
    assert model.count("gpu<1>") == 3.0
    for edit in (model.add_units, model.remove_units):
        with pytest.raises(copter.UnknownHandleError, match=r"unknown resource 'gpu'; there are 'gpu<1>'$"):
            edit("gpu", 1)
    with pytest.raises(copter.InvalidDataError, match="cannot add -1"):
        model.add_units("gpu<1>", -1)
    assert (model.count("gpu<1>"), model.resources) == (3.0, ("gpu<1>",))
    with pytest.raises(copter.UnknownHandleError, match="none yet: add_resource adds one"):
        copter.Model().add_units("gpu", 1)


def test_a_table_of_pandas_is_read_row_by_row() -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    model = small()
    table = pandas.DataFrame({"one": [1, 2, 3], "two": [4.0, 5.0, 6.0]})
    model.update_costs(["a", "b", "c"], table)
    assert [model.cost(job).tolist() for job in model] == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
    model.add_requests(pandas.Index(["d", "e", "f"]), table, template=model.add_template({"gpu<1>": [1, 2]}))
    assert model.cost("f").tolist() == [3.0, 6.0]
    with pytest.raises(copter.CopterError):
        model.update_costs(["a", "b"], table)
    assert model.cost("a").tolist() == [1.0, 4.0]


def test_a_table_with_the_ids_in_another_order_is_refused() -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    model = small()
    rows = [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
    swapped = pandas.DataFrame(rows, index=["b", "a", "c"])
    with pytest.raises(copter.InvalidDataError, match=r"in another order.*give costs\.loc\[requests\]"):
        model.update_costs(["a", "b", "c"], swapped)
    assert model.cost("a").tolist() == [1.0, 1.5]
    model.update_costs(["a", "b", "c"], swapped.loc[["a", "b", "c"]])
    assert model.cost("a").tolist() == [2.0, 5.0]
    model.update_costs(["a", "b", "c"], pandas.DataFrame(rows, index=[7, 8, 9]))
    with pytest.raises(copter.InvalidDataError, match="in another order"):
        model.add_requests(
            [1, 0],
            pandas.DataFrame(rows[:2], index=pandas.Index([0, 1], dtype="int64")),
            template=model.add_template({"gpu<1>": [1, 2]}),
        )
    model.add_requests([1, 0], pandas.DataFrame(rows[:2]), template=model.add_template({"gpu<1>": [1, 2]}))
    assert model.cost(1).tolist() == [1.0, 4.0], "an index that pandas made itself says nothing"


def test_series_with_the_ids_in_another_order_are_refused() -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    model = small()
    sizes, ids, other = model.add_template({"gpu<1>": [1, 2]}), ["d", "e"], ["e", "d"]
    before = model.to_linear_program()
    series = pandas.Series([1.0, 2.0], index=other)
    for name in ("limit", "at_least", "scale", "offset", "integer"):
        with pytest.raises(copter.InvalidDataError, match=rf"{name} has the ids.*give {name}\.loc\[requests\]"):
            model.add_requests(ids, [[1.0, 2.0]] * 2, template=sizes, **{name: series})
    rates = pandas.DataFrame([[1.0, 2.0], [3.0, 4.0]], index=other)
    with pytest.raises(copter.InvalidDataError, match="rates has the ids"):
        model.add_requests(ids, [[0.0, 0.0]] * 2, template=sizes, worths=copter.worth.log(), rates=rates)
    edits = [
        lambda each: model.update_limits(["a", "b"], each),
        lambda each: model.update_limits(["a", "b"], 2.0, at_least=each),
        lambda each: model.rescale_costs(["a", "b"], each),
        lambda each: model.rescale_costs(["a", "b"], 1.0, worst=each),
        lambda each: model.add_own_requests(["b2", "a2"], [1, 1], [1.0, 1.0], {"gpu<1>": [1, 1]}, limit=each),
        lambda each: model.update_columns(["a", "b"], [1, 1], [1.0, 1.0], {"gpu<1>": [1, 1]}, limit=each),
    ]
    for edit in edits:
        with pytest.raises(copter.InvalidDataError, match="in another order"):
            edit(pandas.Series([0.5, 0.25], index=["a2", "b2"] if edit is edits[4] else ["b", "a"]))
    model.add_resource("cpu", 4)
    with pytest.raises(copter.InvalidDataError, match=r"give counts\.loc\[resources\]"):
        model.update_counts(["gpu<1>", "cpu"], pandas.Series([1, 2], index=["cpu", "gpu<1>"]))
    model.remove_resource("cpu")
    assert model.to_linear_program().c.tolist() == before.c.tolist()
    assert model.to_linear_program().row_upper.tolist() == before.row_upper.tolist()
    model.update_limits(["a", "b"], pandas.Series([0.5, 0.25], index=["a", "b"]))
    assert (model.limit("a"), model.limit("b")) == (0.5, 0.25)
    model.add_requests(ids, [[0.0, 0.0]] * 2, template=sizes, worths=copter.worth.log(), rates=rates.loc[ids])
    assert model.rates("d").tolist() == [3.0, 4.0]


def test_plans_and_solutions_are_frames() -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    model = small()
    session = copter.Session(model)
    plan = session.solve_integer()
    for each in (plan, session.solve()):
        table = each.to_frame()
        assert isinstance(table, pandas.DataFrame)
        assert list(table.columns) == ["request", "column", "value"]
        assert (table.value > 0).all()
        assert table.groupby("request").value.sum().le(1 + 1e-9).all()
    rows = plan.to_frame().itertuples(index=False)
    assert [(request, {column: value}) for request, column, value in rows] == [(job, plan.shares(job)) for job in plan]
    model.add_request("must", [1.0], {"gpu<1>": [5]}, at_least=1.0, integer=True)
    with pytest.raises(copter.NoPlanError):
        session.solve_integer().to_frame()


def test_an_answer_is_true_if_there_is_one() -> None:
    model = small()
    session = copter.Session(model)
    assert session.solve()
    lp = model.to_linear_program()
    assert copter.solve(lp)
    assert copter.solve_integer(lp)
    model.add_request("must", [1.0], {"gpu<1>": [5]}, at_least=1.0, integer=True)
    lp = model.to_linear_program()
    assert not session.solve()
    assert not copter.solve(lp)
    assert not copter.solve(lp, copter.Settings(method="interior", internals=Internals(presolve=False)))
    assert not copter.solve_integer(lp)


def test_an_infeasible_program_shows_no_figures() -> None:
    model = small()
    model.add_request("must", [1.0], {"gpu<1>": [5]}, at_least=1.0)
    shown = copter.Session(model).solve()
    assert shown.status is copter.Status.PRIMAL_INFEASIBLE
    assert "no point meets all limits (see conflict)" in repr(shown)
    assert "objective" not in repr(shown)
    page = shown._repr_html_()
    assert "no point meets all limits" in page
    assert "objective" not in page


def test_ids_of_another_type_are_told_apart() -> None:
    model = small()
    model.add_request(3, [1.0], {"gpu<1>": [1]})
    model.add_request("4", [1.0], {"gpu<1>": [1]})
    with pytest.raises(copter.UnknownHandleError, match=r"there is 3 \(int\), not '3' \(str\)$"):
        model.update_cost("3", [2.0])
    with pytest.raises(copter.UnknownHandleError, match=r"there is '4' \(str\), not 4 \(int\)$"):
        model.remove_request(4)
    with pytest.raises(copter.UnknownHandleError, match=r"already removed$"):
        model.remove_request("--3")


def test_errors_name_what_is_wrong(tmp_path: Path) -> None:
    model = small()
    with pytest.raises(copter.SettingsError, match="deadline_s is 0"):
        copter.Session(model).solve(deadline_s=0)
    with pytest.raises(copter.DimensionError, match="usage has 2 columns"):
        model.add_request("x", [1.0, 2.0, 3.0], {"gpu<1>": [1, 2]})
    with pytest.raises(copter.InvalidDataError) as raised:
        model.add_request("x", ["1", "2"], {"gpu<1>": [1, 2]})
    assert str(raised.value) == "request 'x': cost is not an array of real numbers: it holds text"
    with pytest.raises(copter.InvalidDataError, match="'x' has neither usage nor template"):
        model.add_request("x", [1.0, 2.0])
    with pytest.raises(copter.InvalidDataError, match="'a' has both usage and template"):
        model.update_usage("a", {"gpu<1>": [1, 2]}, template=model.add_template({"gpu<1>": [1, 2]}))
    model.add_resource("cpu", 4)
    with pytest.raises(copter.DimensionError, match="resource 'cpu' has 1 columns, that of 'gpu<1>' has 2"):
        model.add_request("x", [1.0, 2.0], {"gpu<1>": [1, 2], "cpu": [1]})
    with pytest.raises(copter.CopterError) as raised:
        copter.write_lp(model.to_linear_program(), tmp_path)
    assert str(raised.value).count("cannot be written") == 1


@pytest.mark.slow
def test_the_pages_own_lines_pass_strict_types(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="needs copter-lp[check]")
    for page in ("README.md", "docs/start/first_session.md", "docs/start/llm_serving.md"):
        code = "\n".join(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL))
        (tmp_path / f"{Path(page).stem.lower()}_lines.py").write_text(code)
    files = [each.name for each in tmp_path.glob("*.py")]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "cache", *files],
        env={**os.environ, "MYPYPATH": f"{ROOT}:{ROOT / 'frontends'}"},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "3 source files" in done.stdout
    assert not [line for line in done.stdout.splitlines() if line.split(":")[0] in files]


def test_what_nobody_waits_for_costs_nothing_rather_than_minus_nothing() -> None:
    model = copter.Model(sense="max")
    model.add_resource("gpu", 9)
    model.add_request("job", [1.0], {"gpu": [1]})
    assert str(copter.Session(model).solve().price("gpu")) == "0.0"
