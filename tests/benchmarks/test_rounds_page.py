"""The page of whole rounds: rows of the command's own figures, and rows that are kept."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import whole_rounds

FIGURES: dict[str, Any] = {stage: {"p50": 0.001, "p99": 0.002} for stage in whole_rounds.STAGES}
FIGURES |= {"load": {"all": 1.59}, "jobs_without_gpus": {"p50": 1200.0}, "rounds": 30, "rounds_with_lp": 15}


def test_a_row_has_the_command_s_figures_and_other_rows_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "rounds.md"
    kept = "| hops | 25,000 | 0.99 | as it was |", "| sia | 10,000 | 1.02 | too |"
    page.write_text(
        "\n".join(("# Whole rounds", "", *kept, "| sia | 10,000 | 1.61 | old |", "", "## Later", "kept", ""))
    )
    monkeypatch.setattr(whole_rounds, "measured", lambda *_: FIGURES | {"variables": {"p50": 4e6}})
    monkeypatch.setattr(whole_rounds, "stream_bytes_per_s", lambda: 8e9)
    options = ["--only", "sia", "--gpus", "10000", "--load", "1.6", "--page", str(page)]
    monkeypatch.setattr(sys, "argv", ["whole_rounds.py", *options])
    whole_rounds.main()
    assert page.read_text().endswith("\n## Later\nkept\n")
    rows = [line for line in page.read_text().splitlines() if line.startswith(("| sia", "| hops"))]
    own = "| sia | 10,000 | 1.59 | 30 | 1,200 | 50% | 4,000,000 | 1 / 2 | 15 / 30 | 1 / 2 | 1 / 2 | 1 / 2 | 1 / 2 | 4 |"
    assert rows[0] == kept[1]
    assert rows[1].startswith(own)
    assert rows[2:] == [kept[0]]


def test_an_unknown_scheduler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["whole_rounds.py", "--only", "slurm"])
    with pytest.raises(SystemExit, match="slurm"):
        whole_rounds.main()
