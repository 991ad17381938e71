"""Docstrings name the parameters that a function or class has, and no others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("copter", "frontends", "benchmarks")
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def named_in(docstring: str) -> set[str]:
    """The names in a docstring's section of parameters."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", docstring, re.DOTALL | re.MULTILINE)
    lines = [line for line in section[1].splitlines() if line and line[0] != " "] if section else []
    return {name.strip().lstrip("*") for line in lines for name in line.split(" : ")[0].split(",")}


def taken_by(definition: Definition) -> set[str]:
    """The names of a definition's parameters; of a class those of its constructor, or its fields."""
    if isinstance(definition, ast.ClassDef):
        made_by = [each for each in definition.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
        if not made_by:
            return {each.target.id for each in definition.body
                    if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)}  # fmt: skip
        definition = made_by[0]
    given = definition.args
    rest = [each for each in (given.vararg, given.kwarg) if each is not None]
    return {each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs, *rest)}


def stale(source: str) -> Iterator[str]:
    """Definitions whose docstring names a parameter that they do not have; keyword dictionaries may hold any name."""
    for each in ast.walk(ast.parse(source)):
        if isinstance(each, Definition):
            known = taken_by(each)
            strangers = named_in(ast.get_docstring(each) or "") - known
            if strangers and known and "**" not in ast.unparse(each).split("):")[0]:
                yield f"{each.name}: {', '.join(sorted(strangers))}"


@pytest.mark.skipif(not (ROOT / "copter").is_dir(), reason="looks at the checkout's own files")
def test_docstrings_name_parameters_that_exist() -> None:
    sources = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    assert sources
    assert [f"{path.relative_to(ROOT)}: {each}" for path in sources for each in stale(path.read_text())] == []


def test_a_name_that_is_gone_is_found() -> None:
    section = "Do.\n\n    Parameters\n    ----------\n    one : int\n    gone : int\n    "
    assert list(stale(f'def act(one):\n    """{section}"""\n')) == ["act: gone"]
    assert list(stale(f'class Act:\n    """{section}"""\n    one: int\n')) == ["Act: gone"]
    assert list(stale(f'def act(one, gone=0):\n    """{section}"""\n')) == []
