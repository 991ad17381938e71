"""The page of the engine's rounds: rows of what rounds.py measured, and rows that are kept."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import engine_rounds
import pytest

OWN = {"p50_s": 0.001, "p99_s": 0.002, "processor_p50_s": 0.003, "processor_p99_s": 0.004, "lp_p50_s": 0.0005}


def test_a_row_has_what_was_measured_and_other_rows_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "engine.md"
    page.write_text("# Rounds\n\n| transport | as it was |\n| sia 10,000 GPUs | old |\n| nothing | of it |\n")
    found: dict[str, Any] = {"copter": OWN, "variables": 5000, "best_peer": "glop", "lp_ratio_to_best_peer": 1.26}
    monkeypatch.setattr(engine_rounds, "measured", lambda row: found)
    monkeypatch.setattr(sys, "argv", ["engine_rounds.py", "--only", "sia 10,000", "--page", str(page)])
    engine_rounds.main()
    rows = [line for line in page.read_text().splitlines() if line.startswith(("| sia", "| transport", "| nothing"))]
    assert [row.split(" | ")[0] for row in rows[:3]] == [f"| sia 10,000 GPUs{more}" for more in ("", ", 5%", ", 0.1%")]
    assert " | 5,000 | 1 / 2 | 3 / 4 | 0.5 | 5 / 10 | glop | 1.26 | " in rows[0]
    assert rows[3:] == ["| transport | as it was |"]


def test_a_row_is_rounds_py_with_its_options() -> None:
    found = engine_rounds.measured(engine_rounds.Row("tiny", "--family gub --scale 20 --rows 8 --rounds 3", "1", True))
    assert found["rounds"] == 3
    assert found["best_peer"] is not None
    assert found["copter"]["verified"] >= 3


def test_a_row_that_no_peer_ends_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    own = OWN | {"lp_p50_s": 0.5}
    found = {"copter": own, "variables": 5, "best_peer": None, "lp_ratio_to_best_peer": None}
    monkeypatch.setattr(engine_rounds, "measured", lambda row: found)
    text = engine_rounds.line(engine_rounds.Row("hard", "--family gub", "15 times", peers=True))
    assert " | 15 times | none within 10 s | - | " in text


def test_an_unknown_row_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["engine_rounds.py", "--only", "slurm"])
    with pytest.raises(SystemExit):
        engine_rounds.main()


def test_a_row_of_several_seeds_has_their_means(monkeypatch: pytest.MonkeyPatch) -> None:
    def replayed(row: engine_rounds.Row, options: list[str]) -> dict[str, Any]:
        assert options[0] == "--seed"
        own = OWN | {"lp_p50_s": 0.001 * (1 + int(options[1]))}
        return {"copter": own, "variables": 5, "best_peer": None, "lp_ratio_to_best_peer": None}

    monkeypatch.setattr(engine_rounds, "replayed", replayed)
    text = engine_rounds.line(engine_rounds.Row("gub", "--family gub", "5", seeds=3))
    assert text.startswith("| gub | `--family gub --seed 0` to `2` | 5 | 1 / 2 | 3 / 4 | 2 | 5 |")
