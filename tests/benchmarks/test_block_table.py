"""The table of block programs: its rows are runs that rounds.py takes, and it says what is met and what is not."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from block_table import ROWS, Row, chosen, line, main, markdown, met, outlasted
from families import FAMILIES
from rounds import options_of, parser


def test_every_row_is_a_run_that_there_is() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    for row in ROWS:
        command = parser()
        options = options_of(command, command.parse_args(row.command(5, 0, 600.0)[2:]))
        assert options.instance.change in FAMILIES[row.family].kind.changes
        assert options.instance.scale >= FAMILIES[row.family].least
    assert len(chosen("quick", ())) < len(chosen("medium", ())) < len(chosen("full", ())) == len(ROWS)
    assert {row.family for row in chosen("full", ("gub",))} == {"gub"}


def result(ratio: float | None, gap: float = 1e-9, not_optimal: int = 0) -> dict:
    own = {
        "p50_s": 0.01,
        "lp_p50_s": 0.008,
        "gap_max": gap,
        "relative_residual_max": 1e-12,
        "not_optimal": not_optimal,
        "peak_rss_mb": 500,
    }
    peer_s = None if ratio is None else 0.008 * ratio
    found = {"copter": own, "lp_ratio_to_best_peer": ratio, "best_peer_p50_s": peer_s}
    found |= {"ratio_to_best_peer": None if ratio is None else 0.8 * ratio}
    found |= {
        "best_peer": "highs_dual_warm",
        "cold_lp_ratio_to_best_peer": 2.0,
        "tolerance": 1e-6,
        "nonzeros": 2_000_000,
    }
    return found


def test_what_is_met_and_what_is_missed() -> None:
    row, clock = Row("gub", 100, "churn", 3, "quick", 0.01), Row("sia", 100, "churn", 0.02, "quick", seconds=True)
    assert met(row, result(3.5))
    assert not met(row, result(2.5))
    assert not met(row, result(3.5, gap=1e-5))
    assert not met(row, result(3.5, not_optimal=1))
    assert not met(row, result(None))
    assert met(clock, result(None))
    assert "| 2.5 (missed) | 2 | 8.0 ms | 20.0 ms |" in line(row, result(2.5))
    assert "dual_warm | 2 (missed)" in line(row, result(2.5))
    assert "| 21.8 (missed) |" in line(row, result(2.5))
    assert "not done" in line(row, None)
    page = markdown([row, clock], {row.name: result(3.5), clock.name: None}, 5)
    assert "1 of 2 bars are met" in page
    assert all(text.count("|") == 15 for text in page.splitlines() if text.startswith("|"))


def test_one_command_prints_and_writes_the_table(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("highspy")
    rows = (Row("gub", 50, "churn", 0.001, "quick", 0.02), Row("sia", 112, "churn", 60.0, "quick", seconds=True))
    monkeypatch.setattr("block_table.ROWS", rows)
    monkeypatch.setattr(sys, "argv", ["block_table.py", "--rounds", "1", "--out", str(tmp_path)])
    main()
    assert "2 of 2 bars are met" in capsys.readouterr().out
    kept = json.loads((tmp_path / "block_table.json").read_text())
    assert kept[rows[0].name]["result"]["family"] == "gub"
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--reuse"])
    monkeypatch.setattr("block_table.run", None)  # nothing is run again
    main()
    assert (tmp_path / "block_table.md").read_text() == capsys.readouterr().out.removesuffix("\n")


def test_peers_that_do_not_end_leave_a_least_ratio() -> None:
    row, found = Row("multicommodity", 100_000, "limits", 15, "full"), result(None)
    found |= {"best_peer": None, "cold_lp_ratio_to_best_peer": None}
    found["copter"]["cold_lp_s"] = 10.0
    ways = {"one": (60.0, [61.0]), "other": (60.5, [50.0, 60.2]), "not tried": (60.1, [])}
    found["peers"] = {
        name: {"cold_s": cold, "trial_s": trials, "cold_ended": False} for name, (cold, trials) in ways.items()
    }
    assert outlasted(found) == pytest.approx(60.1 / 0.008)
    assert outlasted(found, cold=True) == pytest.approx(6.0)
    assert met(row, found)
    assert "| > 7.51e+03 | - |" in line(row, found)
    assert "| > 6 |" in line(row, found)
    found["peers"]["one"]["cold_ended"] = True
    assert outlasted(found) is None
    assert "- (missed)" in line(row, found)
