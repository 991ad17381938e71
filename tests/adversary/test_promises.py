"""Every promise of SECURITY.md names a test that is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_promise_names_its_test() -> None:
    part = (ROOT / "SECURITY.md").read_text().partition("## What is promised")[2].partition("\n## ")[0]
    rows = [line for line in part.splitlines() if line.startswith("| ") and "---" not in line][1:]
    assert len(rows) >= 15
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", row)
        assert len(named) == 1, row
        path, test = named[0]
        assert f"def {test}(" in (ROOT / path).read_text(), row
