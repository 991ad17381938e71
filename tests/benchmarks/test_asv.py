"""The suite of benchmarks can be run and published from any clone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_suite_asks_for_no_branch_by_name() -> None:
    """A clone of another branch has no `main`, and asv refuses to start where a named branch is missing."""
    conf = json.loads((ROOT / "benchmarks" / "asv.conf.json").read_text(encoding="utf-8"))
    assert conf["branches"] == ["HEAD"]
    assert conf["environment_type"] == "existing"


def test_setting_a_benchmark_of_highs_up_prints_no_banner() -> None:
    """asv shows what a benchmark prints, and HiGHS's banner for each would hide the figures."""
    pytest.importorskip("highspy", reason="needs copter-lp[highs]")
    suite = ROOT / "benchmarks" / "suite"
    code = "from suite import bench_edits; bench_edits.Highs().setup(50)"
    done = subprocess.run([sys.executable, "-c", code], cwd=suite.parent, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def made(folder: Path, *words: str, says: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a target of the Makefile with an asv that notes how it was called."""
    asv = folder / "bin" / "asv"
    asv.parent.mkdir(exist_ok=True)
    asv.write_text(f"#!/bin/sh\necho \"$*\" >> '{folder / 'calls'}'\nprintf '%s' '{says}'\nexit {code}\n")
    asv.chmod(0o755)
    venv = os.path.relpath(folder, ROOT)
    command = ["make", "--no-print-directory", "-o", f"{venv}/.benchmark", f"VENV={venv}", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.skipif(shutil.which("make") is None or not (ROOT / "Makefile").exists(), reason="needs make, the checkout")
class TestMake:
    def test_a_part_of_the_suite_is_run_with_many_samples_and_published(self, tmp_path: Path) -> None:
        assert made(tmp_path, "bench-suite").returncode == 0
        assert made(tmp_path, "bench-suite", "QUICK=", "BENCH=Copter.time_update_(cost|limit)").returncode == 0
        runs = [line for line in (tmp_path / "calls").read_text().splitlines() if line.startswith("run")]
        assert "--quick" in runs[0]
        assert "--bench" not in runs[0]
        assert "--quick" not in runs[1]
        assert "--bench Copter.time_update_(cost|limit) " in runs[1]
        assert (tmp_path / "calls").read_text().splitlines()[-1] == "publish"

    def test_what_differs_between_two_commits_is_told(self, tmp_path: Path) -> None:
        commits = ("BEFORE=HEAD~1", "AFTER=HEAD")
        done = made(tmp_path, "bench-compare", *commits, says="| + | 14 | 150 |")
        assert (done.returncode, done.stdout) == (0, "| + | 14 | 150 |\n")
        assert (tmp_path / "calls").read_text().split()[-2:] == ["HEAD~1", "HEAD"]
        assert "--factor 1.1" in (tmp_path / "calls").read_text()
        done = made(tmp_path, "bench-compare", *commits)
        assert (done.returncode, done.stdout) == (0, "No benchmark of both differs by more than 10%\n")
        done = made(tmp_path, "bench-compare", *commits, says="Did not find results for commit", code=1)
        assert done.returncode == 2
        assert done.stdout == "Did not find results for commit\n"
        assert made(tmp_path, "bench-compare", *commits, code=1).stdout.strip() == ""

    def test_a_comparison_needs_two_commits(self, tmp_path: Path) -> None:
        done = made(tmp_path, "bench-compare", "BEFORE=HEAD")
        assert done.returncode == 2
        assert "make bench-compare BEFORE=COMMIT AFTER=COMMIT" in done.stderr
        assert not (tmp_path / "calls").exists()
