"""The suite of benchmarks can be run and published from any clone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


def test_the_suite_asks_for_no_branch_by_name() -> None:
    """A clone of another branch has no `main`, and asv refuses to start where a named branch is missing."""
    conf = json.loads((Path(__file__).parents[2] / "benchmarks" / "asv.conf.json").read_text(encoding="utf-8"))
    assert conf["branches"] == ["HEAD"]
    assert conf["environment_type"] == "existing"


def test_setting_a_benchmark_of_highs_up_prints_no_banner() -> None:
    """asv shows what a benchmark prints, and HiGHS's banner for each would hide the figures."""
    pytest.importorskip("highspy", reason="needs copter-lp[highs]")
    suite = Path(__file__).parents[2] / "benchmarks" / "suite"
    code = "from suite import bench_edits; bench_edits.Highs().setup(50)"
    done = subprocess.run([sys.executable, "-c", code], cwd=suite.parent, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
