"""Every public call with every argument replaced by something odd: one of copter's errors, or Python's TypeError."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import copter
from copter import CopterError, LinearProgram, Model, Session, Settings

ODD: list[Any] = [
    10**400, -(10**400), 1e308, -1e308, float("nan"), float("inf"), "x", None, b"b", [], {}, [[1], [2, 3]], object(),
    1j,
    True, np.array([1, 2, 3], dtype=object), np.array(["a"]), np.datetime64("2020"), [10**400], {"a": 10**400},
    (1,) * 5,
    -1, 0, 2**63, np.zeros((2, 2, 2)), {"a": float("nan")}, {"a": [1, 2, "x"]}, range(3), np.ma.masked, 1e-320, "nan",
    {1: 2}, {1}, np.float32("inf"), {"cpu": [10**400, 1]},
]  # fmt: skip
GOOD: dict[str, Any] = {
    "request": 0, "resource": "cpu", "requests": [0, 1], "resources": ["cpu", "mem"], "count": 2, "counts": [2, 3],
    "cost": [1.0, 2.0], "costs": [[1.0, 2.0], [1.0, 2.0]], "usage": {"cpu": [1, 1]}, "limits": [1, 1], "column": 0,
}  # fmt: skip
OTHERWISE = {"save", "load", "record", "journal"}  # they make files; tests/copter/storage has them
PROGRAM: dict[str, Any] = {
    "c": [1.0, 2.0], "A": [[1.0, 1.0]], "row_lower": [0.0], "row_upper": [1.0], "col_lower": [0.0, 0.0],
    "col_upper": [1.0, 1.0],
}  # fmt: skip


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that odd arguments name are made in a folder of the test's own."""
    monkeypatch.chdir(tmp_path)


def model() -> Model:
    made = Model(sense="max")
    made.add_resources("cpu", 4)
    made.add_resources("mem", 8)
    for j in range(3):
        made.add_request(j, [1.0, 2.0], {"cpu": [1, 2], "mem": [2, 1]}, integer=True)
    return made


def tried(call: Callable[[], Any], what: str) -> None:
    """Call; fail on an error that says nothing to a user."""
    try:
        call()
    except (CopterError, TypeError):
        pass
    except Exception as error:
        pytest.fail(f"{what}: {type(error).__name__}: {error}")


def arguments(function: Callable[..., Any], odd: str, value: Any, rng: random.Random) -> dict[str, Any]:
    """Good arguments but for one."""
    found = {}
    for each in inspect.signature(function).parameters.values():
        if each.name == "self" or each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            continue
        if each.name == odd:
            found[each.name] = value
        elif each.name in GOOD:
            found[each.name] = GOOD[each.name]
        elif each.default is each.empty:
            found[each.name] = rng.choice(ODD)
    return found


@pytest.mark.parametrize("make", [model, lambda: Session(model())], ids=["Model", "Session"])
@pytest.mark.filterwarnings("ignore")
def test_methods(make: Callable[[], Any]) -> None:
    rng = random.Random(1)
    for name, function in inspect.getmembers(type(make()), inspect.isfunction):
        if name.startswith("_") or name in OTHERWISE:
            continue
        for odd in list(inspect.signature(function).parameters)[1:]:
            for value in ODD:
                given = arguments(function, odd, value, rng)
                call = getattr(make(), name)
                tried(lambda call=call, given=given: call(**given), f"{name}({odd}={value!r})")


@pytest.mark.filterwarnings("ignore")
def test_programs_and_settings() -> None:
    good = LinearProgram(**PROGRAM)
    for value in ODD:
        for name in (*PROGRAM, "sense", "offset", "integrality"):
            given = {**PROGRAM, name: value}
            tried(lambda given=given: copter.solve(LinearProgram(**given)), f"LinearProgram({name}={value!r})")
        for name in Settings.names():
            tried(lambda name=name, value=value: Settings(**{name: value}), f"Settings({name}={value!r})")
        for function in (copter.solve, copter.solve_integer):
            for name in inspect.signature(function).parameters:
                given = {"lp": good, name: value}
                tried(
                    lambda function=function, given=given: function(**given), f"{function.__name__}({name}={value!r})"
                )
        for write in (copter.write_lp, copter.write_mps):
            tried(lambda write=write, value=value: write(value, "/nowhere/t"), f"{write.__name__}({value!r})")
        tried(lambda value=value: copter.certify_with_highs(value, None), f"certify_with_highs({value!r})")  # type: ignore[arg-type]
        tried(lambda value=value: copter.certify_with_highs(good, value), f"certify_with_highs(solution={value!r})")
