"""The suite of benchmarks can be run and published from any clone."""

from __future__ import annotations

import json
from pathlib import Path


def test_the_suite_asks_for_no_branch_by_name() -> None:
    """A clone of another branch has no `main`, and asv refuses to start where a named branch is missing."""
    conf = json.loads((Path(__file__).parents[2] / "benchmarks" / "asv.conf.json").read_text(encoding="utf-8"))
    assert conf["branches"] == ["HEAD"]
    assert conf["environment_type"] == "existing"
