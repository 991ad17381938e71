"""The page of proofs: lies are caught, another process repeats the rounds, and recording has a price."""

from __future__ import annotations

import math
from pathlib import Path

import proofs
import pytest

from copter.problem.figures import percent
from copter.runtime.errors import SnapshotError
from copter_frontends.replay import runs, tables
from tests.copter.storage.tape import tapes


def test_lies_are_caught_and_counted_by_kind() -> None:
    rows = proofs.tell_lies(24, seed=5)
    assert sum(row["told"] for row in rows) == sum(row["rejected"] for row in rows) == 24
    assert len({row["lie"] for row in rows}) >= 5


def test_a_tape_is_repeated_by_another_process_and_verified(tmp_path: Path) -> None:
    tapes.every_edit(tmp_path / "t.tape")
    row = proofs.play_again(tmp_path / "t.tape")
    assert row["solves"] == row["identical"] == row["verified"] == 8
    assert row["ended"] is None


def test_what_recording_costs_is_measured_on_the_same_rounds(tmp_path: Path) -> None:
    tapes.every_edit(tmp_path / "t.tape")
    row = proofs.cost(tmp_path / "t.tape", last=6, repeats=1)
    assert row["rounds"] == 6
    assert row["round_ms"] > 0
    assert row["answers_all"] >= row["answers_own"]


def test_the_page_says_how_its_rows_were_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proofs, "FOLDER", tmp_path)
    monkeypatch.setattr(proofs, "PAGE", tmp_path / "proofs.md")
    proofs.keep("lies", [{"lie": "one more", "told": 3, "rejected": 2}], "a command")
    again = {"solves": 2, "columns": 9, "identical": 2, "verified": 1, "gap": 1e-9, "ended": None}
    proofs.keep("again", [{"tape": "hops-1000-1.6", **again}], "another")
    proofs.keep("again", [{"tape": "sia-1000-1.6", **again}], "a third")
    page = (tmp_path / "proofs.md").read_text()
    assert "2 of 3 tapes" in page
    assert page.index("| sia-1000-1.6 | 2 | 9 | 2 | 1 |") < page.index("| hops-1000-1.6 |")
    assert all(f"`{command}`, commit " in page for command in ("a command", "another", "a third"))


def test_a_replay_from_nothing_forgets_the_last_round(tmp_path: Path) -> None:
    tapes.every_edit(tmp_path / "t", private=False)
    warm, cold = (
        runs.run_copter(runs.Asked(str(tmp_path / "t"), settings={"threads": 1}, cold=cold)) for cold in (False, True)
    )
    assert [row["verified"] for row in cold.rows] == [True] * 8
    assert all(row["processor_s"] >= 0.0 for row in cold.rows)
    assert all(row["identical"] for row in warm.rows)
    assert {str(row["why"]) for row in cold.rows} != {str(row["why"]) for row in warm.rows}


def test_the_process_that_is_timed_records_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tapes.every_edit(tmp_path / "t", rounds=3)
    asked, run = [], runs._run

    def watched(solver: str, given: runs.Asked, more: dict[str, object]) -> runs.Run:
        asked.append(more["record"] is not None)
        found = run(solver, given, more)
        for row in found.rows:
            row["solve_s"] = float(asked[-1])
            row["objective"] += float(asked[-1]) * (row["round"] == 1)  # as if a deadline had given another answer
        return found

    monkeypatch.setattr(runs, "_run", watched)
    rows = runs.run_copter(runs.Asked(str(tmp_path / "t"))).rows
    assert asked == [False, True]
    assert [row["solve_s"] for row in rows] == [0.0, 1.0, 0.0], "a round with another answer is the recorded one"
    assert all(row["verified"] for row in rows)


def test_a_gap_that_the_verifier_does_not_prove_is_not_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tapes.every_edit(tmp_path / "t", rounds=2)
    monkeypatch.setattr(runs, "_verdicts", lambda path: [(0, ["point"], []), (1, ["bound", "point"], [])])
    first, second = runs.run_copter(runs.Asked(str(tmp_path / "t"))).rows
    assert first["verified"]
    assert math.isnan(first["gap"])
    assert second["gap"] <= 1e-6
    assert tables.gap_text(first["gap"]) == "not proven"
    assert tables.gap_text(second["gap"]) == percent(second["gap"])


def test_a_judge_that_dies_and_a_recording_that_dies_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tapes.every_edit(tmp_path / "t", rounds=2)
    run = runs._run

    def dies_while_recording(solver: str, given: runs.Asked, more: dict[str, object]) -> runs.Run:
        found = run(solver, given, {"record": None})
        return found if more["record"] is None else runs.Run(solver, found.rows[:1], "was killed, in round 1")

    with monkeypatch.context() as patch:
        patch.setattr(runs, "_run", dies_while_recording)
        assert runs.run_copter(runs.Asked(str(tmp_path / "t"))).ended == (
            "recording for the judge: was killed, in round 1"
        )
    monkeypatch.setattr(runs, "JUDGE", ("-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"))
    with pytest.raises(SnapshotError, match=r"verifier's process was killed, most likely .* no more memory"):
        runs.run_copter(runs.Asked(str(tmp_path / "t")))
