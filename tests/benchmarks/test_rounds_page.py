"""The page of whole rounds: rows of the command's own figures, and rows that are kept."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import whole_rounds

FIGURES: dict[str, Any] = {stage: {"p50": 0.001, "p99": 0.002} for stage in whole_rounds.STAGES}


def test_a_row_has_the_command_s_figures_and_other_rows_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "rounds.md"
    page.write_text("# Whole rounds\n\n| hops | 25,000 | as it was |\n| sia | 10,000 | old |\n")
    monkeypatch.setattr(whole_rounds, "measured", lambda *_: FIGURES | {"variables": {"p50": 4e6}})
    monkeypatch.setattr(whole_rounds, "stream_bytes_per_s", lambda: 8e9)
    monkeypatch.setattr(sys, "argv", ["whole_rounds.py", "--only", "sia", "--gpus", "10000", "--page", str(page)])
    whole_rounds.main()
    rows = [line for line in page.read_text().splitlines() if line.startswith(("| sia", "| hops"))]
    assert rows[0].startswith("| sia | 10,000 | 30 | 4,000,000 | 1 / 2 | 12 / 25 | 1 / 2 | 1 / 2 | 1 / 2 | 1 / 2 | 4 |")
    assert rows[1:] == ["| hops | 25,000 | as it was |"]


def test_an_unknown_scheduler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["whole_rounds.py", "--only", "slurm"])
    with pytest.raises(SystemExit, match="slurm"):
        whole_rounds.main()
