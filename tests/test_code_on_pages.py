"""The Python blocks of the tutorials, and of pages with a whole example, run as printed, in order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    *sorted((ROOT / "docs" / "start").glob("*.md")),
    *(ROOT / "docs" / page for page in ("method/formulation.md", "papers/hare.md")),
]
NEEDS = {"from_other_tools.md": ("cvxpy", "linopy")}


def blocks_of(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page)], ids=lambda page: page.name)
def test_python_on_the_page_runs(page: Path, tmp_path: Path) -> None:
    for package in NEEDS.get(page.name, ()):
        pytest.importorskip(package)
    code = "import copter\n" + "\n".join(blocks_of(page))
    paths = os.pathsep.join([*(str(ROOT / each) for each in (".", "frontends")), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,  # the first session saves a file
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_there_are_tutorials_with_code() -> None:
    assert sum(len(blocks_of(page)) for page in PAGES) >= 8
