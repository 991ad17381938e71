"""The code cites only equations that the documents number, and the stubs name only what the extensions have."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STUBS = sorted((ROOT / "copter").rglob("*.pyi"))


def test_cited_equations_exist() -> None:
    documents = "".join((ROOT / "docs" / name).read_text() for name in ("formulation.md", "algorithm.md"))
    numbered = set(re.findall(r"\\tag\{([AF]\d+)\}", documents)) | set(re.findall(r"\*\*([AF]\d+)\.\*\*", documents))
    sources = [path for path in (ROOT / "copter").rglob("*.py*") if path.suffix in (".py", ".pyx", ".pxd")]
    cited = {number for path in sources for number in re.findall(r"\b([AF]\d{1,2})\b", path.read_text())}
    assert len(cited) >= 15
    assert cited <= numbered
    assert numbered == {f"F{i}" for i in range(1, 11)} | {f"A{i}" for i in range(1, 12)}


def test_every_extension_has_a_stub() -> None:
    assert [path.with_suffix(".pyx") for path in STUBS] == sorted((ROOT / "copter").rglob("*.pyx"))


@pytest.mark.parametrize("stub", STUBS, ids=lambda path: path.stem)
def test_stub_names_what_the_extension_has(stub: Path) -> None:
    module = importlib.import_module(".".join(stub.relative_to(ROOT).with_suffix("").parts))
    declared = {node.name: node for node in ast.parse(stub.read_text()).body if hasattr(node, "name")}
    public = {name for name in vars(module) if not name.startswith("_")} - {"np"}
    assert set(declared) == public
    for name, node in declared.items():
        if isinstance(node, ast.ClassDef):
            members = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
            members |= {item.target.id for item in node.body if isinstance(item, ast.AnnAssign)}
            assert members - {"__init__"} == {member for member in vars(getattr(module, name)) if member[0] != "_"}
