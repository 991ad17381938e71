"""The Python blocks of docs/howto/interop.md run as printed, each in a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "interop.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
NEEDED = ("linopy", "pypsa", "pyomo", "highspy", "pandas")


def test_the_page_has_blocks() -> None:
    assert len(BLOCKS) >= 4


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_runs_as_printed(block: str, tmp_path: Path) -> None:
    for name in NEEDED:
        if re.search(rf"^(import|from) {name}\b", block, re.MULTILINE) and find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    run = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert run.returncode == 0, run.stderr
    assert "Running HiGHS" not in run.stdout
