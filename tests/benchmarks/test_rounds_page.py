"""The page of whole rounds: rows of the command's own figures, and rows that are kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import whole_rounds

FIGURES: dict[str, Any] = {stage: {"p50": 0.001, "p99": 0.002} for stage in whole_rounds.STAGES}
FIGURES |= {"load": {"all": 1.59}, "jobs_without_gpus": {"p50": 1200.0, "max": 2400.0}, "utilisation": 0.987}
FIGURES |= {"rounds": 1440, "rounds_with_lp": 1000, "rounds_proven_without_lp": 400}


def test_a_row_has_the_command_s_figures_and_other_rows_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "rounds.md"
    kept = "| hops | 10,000 | 1.61 | as it was |", "| sia | 10,000 | 1.02 | too |"
    page.write_text("\n".join(("# Whole rounds", "", *kept, "| sia | 10,000 | 1.61 | old |", "")))
    monkeypatch.setattr(whole_rounds, "measured", lambda *_: FIGURES | {"variables": {"p50": 4e6}})
    options = ["--only", "sia", "--gpus", "10000", "--load", "1.6", "--page", str(page)]
    monkeypatch.setattr(sys, "argv", ["whole_rounds.py", *options])
    whole_rounds.main()
    rows = [line for line in page.read_text().splitlines() if line.startswith(("| sia", "| hops"))]
    own = "| sia | 10,000 | 1.59 | 9-15 | 1440 | 1,200 / 2,400 | 99% | 1,000 solved, 400 proven without, 40 not due | "
    assert rows[0] == kept[1]
    assert rows[1].startswith(own + "4,000,000 | 1 / 2 | 15 / 30 | 1 / 2 | 1 / 2 | 1 / 2 | 1 / 2 | ")
    assert rows[2:] == [kept[0]]
    monkeypatch.setattr(
        whole_rounds, "measured", lambda *_: FIGURES | {"variables": None, "jobs_without_gpus": {"p50": 0, "max": 0}}
    )
    whole_rounds.main()
    assert "| no job in any round |" in page.read_text()


def test_a_row_s_times_are_processor_time() -> None:
    """The command runs with the processor's clock in the place of the wall's, before the policies are imported."""
    code = whole_rounds.BY_PROCESSOR.rpartition(";")[0]
    code += (
        "; from copter_frontends.vocabulary import stage_clock; print(stage_clock.perf_counter is time.process_time)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_an_unknown_scheduler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["whole_rounds.py", "--only", "slurm"])
    with pytest.raises(SystemExit, match="slurm"):
        whole_rounds.main()
