"""A whole round of the simulator is compared with the programs of the same rounds, in the same run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import tapes
from copter.storage.tape import TapeReader
from copter_frontends.replay import runs


def test_what_is_left_of_a_round_is_of_the_run_that_made_the_tape(tmp_path: Path) -> None:
    small = tapes.Tape("hops-64", ("simulate", "hops", "--gpus", "64", "--rounds", "4", "--seed", "1", "--jobs", "700"))
    done = small.run(tmp_path / "t.tape")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    within = tapes.programs_s(tmp_path / "t.tape")
    solves = sum(record.kind == b"ROUN" for record in TapeReader(tmp_path / "t.tape"))
    assert solves
    assert 0.0 < within < figures["all_rounds_s"]
    replayed = {"programs_s": within, "replayed_s": 2.0 * within, "how": "just now"}
    (line,) = [each for each in tapes.whole_rounds(figures | replayed) if each]
    rest = 1e3 * (figures["all_rounds_s"] - within) / figures["rounds"]
    assert f"the rest, {rest:.3g} ms" in line
    assert "2.00 times as long (just now)" in line
    assert tapes.whole_rounds(figures) == tapes.whole_rounds(figures | {"programs_s": within}) == []


def test_a_replay_that_dies_is_told_and_no_time_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = tapes.Tape("hops-64", ("simulate", "hops", "--gpus", "64", "--rounds", "4", "--seed", "1", "--jobs", "700"))
    monkeypatch.setattr(runs, "WORKER", ("-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"))
    assert tapes.whole([small], tmp_path, "tapes.py whole") == 1
    assert "replay ended after 0 rounds: its process was killed" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_a_suite_tells_whose_process_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = tapes.Tape("hops-64", ("simulate", "hops", "--gpus", "64", "--rounds", "4", "--seed", "1", "--jobs", "700"))
    assert small.run(tmp_path / "hops-64.tape").returncode == 0
    monkeypatch.setattr(tapes, "write_page", lambda folder: None)
    monkeypatch.setattr(runs, "WORKER", ("-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"))
    assert tapes.suite([small], tmp_path, 4, 9.0, 9.0, "tapes.py suite", peers=["highs"]) == 1
    out = capsys.readouterr().out
    assert "hops-64: copter: its process was killed" in out
    assert "hops-64: highs_dual_warm: its process was killed" in out


def test_a_suite_that_was_stopped_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = tapes.Tape("hops-64", ("simulate", "hops", "--gpus", "64", "--rounds", "4", "--seed", "1", "--jobs", "700"))
    assert small.run(tmp_path / "hops-64.tape").returncode == 0
    page = tmp_path / "measured.md"
    for name, value in (("PAGE", page), ("TAPES", (small,)), ("commit", lambda: "abc"), ("stream_bytes_per_s", float)):
        monkeypatch.setattr(tapes, name, value)
    monkeypatch.setattr(tapes.measured_picture, "write", lambda page: None)
    asked = ([small], tmp_path, 4, 9.0, 9.0)

    def told(command: str, left: bool) -> str:
        assert tapes.suite(*asked, command, processor=True, peers=["highs"], left=left) == 0
        return capsys.readouterr().out

    assert "hops-64: measured\n" in told("suite", True)
    again = told("suite", True)
    assert "hops-64: measured before" in again
    assert again.splitlines()[-1].startswith("| hops-64 | ")
    assert "hops-64: measured\n" in told("suite", False)
    assert "hops-64: measured\n" in told("suite --budget 3", True)
    monkeypatch.setattr(tapes, "commit", lambda: "abd")
    assert "hops-64: measured\n" in told("suite --budget 3", True)


def test_a_peer_may_be_one_way_of_a_solver() -> None:
    assert tapes.ways_of("highs_dual_warm") == ("highs_dual_warm",)
    assert "highs_ipm_cold" in tapes.ways_of("highs")
