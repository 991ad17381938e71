"""Ctrl-C during a run keeps what was simulated; places that cannot be written to are refused before the work starts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from copter import Model, Session, SnapshotError
from copter_frontends.simulator import load_run
from tests.adversary import interrupted

COMMAND = [sys.executable, "-m", "copter_frontends.cli"]


def begun(tmp_path: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A run of many rounds that has saved itself at least once."""
    saved = tmp_path / "saved"
    command = [*COMMAND, *arguments, "--save", str(saved), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 60
        while not saved.exists() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_keeps_its_results(tmp_path: Path, number: signal.Signals, code: int) -> None:
    run = ("simulate", "fifo", "--gpus", "64", "--hours", "24", "--round-s", "1")
    run += ("--save-every", "1", "--out", str(tmp_path / "out"))
    for process in begun(tmp_path, *run):
        process.send_signal(number)
        found = process.communicate(timeout=120)
    out, err = found
    assert process.returncode == code, err
    summary = json.loads(out)
    assert summary["interrupted"] == number.name
    assert f"interrupted after {summary['rounds'] + summary['warmup_rounds']} of" in err
    assert "copter resume" in err
    assert "Traceback" not in err
    assert {"report.html", "rounds.parquet", "jobs.parquet"} <= {each.name for each in (tmp_path / "out").iterdir()}
    assert f"by {number.name} after" in (tmp_path / "out" / "report.html").read_text()
    kept = load_run(tmp_path / "saved")
    assert len(kept.records) == summary["rounds"] + summary["warmup_rounds"]
    further = [*COMMAND, "resume", str(tmp_path / "saved"), "--rounds", str(len(kept.records) + 3), "--json"]
    done = subprocess.run(further, capture_output=True, text=True, timeout=120, check=True)
    summary = json.loads(done.stdout)
    assert summary["interrupted"] is None
    assert summary["rounds"] + summary["warmup_rounds"] == len(kept.records) + 3


def test_a_second_interrupt_ends_at_once(tmp_path: Path) -> None:
    run = ("simulate", "sia", "--gpus", "64", "--hours", "24", "--round-s", "1", "--save-every", "1")
    for process in begun(tmp_path, *run):
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            time.sleep(0.001)
        process.communicate(timeout=60)
    assert process.returncode in (1, 130, -signal.SIGINT)  # 130: the round had ended before the second one came
    assert load_run(tmp_path / "saved").records


@pytest.mark.parametrize("option", ["--save", "--out"])
def test_outputs_are_tried_before_the_work_starts(tmp_path: Path, option: str) -> None:
    """A run that would take hours fails in seconds, without a round."""
    file = tmp_path / "file"
    file.write_text("mine")
    command = [*COMMAND, "simulate", "sia", "--gpus", "10000", "--hours", "1000", option, str(file / "no" / "such")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert option in done.stderr
    assert done.stderr.count("\n") == 1
    assert file.read_text() == "mine"


def test_a_pipe_is_no_place_to_save_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    command = [*COMMAND, "simulate", "sia", "--gpus", "64", "--hours", "1000", "--save", str(tmp_path / "pipe")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "no ordinary file" in done.stderr


def session() -> Session:
    """One of a request."""
    model = Model()
    model.add_resources("g", 4)
    model.add_request("r", [1.0, 3.0], {"g": [1, 2]})
    return Session(model)


def test_sessions_are_saved_through_links(tmp_path: Path) -> None:
    real, link, chain = tmp_path / "folder" / "real", tmp_path / "link", tmp_path / "chain"
    real.parent.mkdir()
    link.symlink_to("folder/real")
    chain.symlink_to(link)
    made = session()
    made.save(chain)  # it leads to nothing yet
    made.model.add_request("s", [2.0], {"g": [1]})
    made.save(chain)
    assert link.is_symlink()
    assert chain.is_symlink()
    for path in (real, link, chain):
        assert set(Session.load(path).model.requests) == {"r", "s"}
    assert [each.name for each in real.parent.iterdir()] == ["real"]


def test_sessions_are_saved_to_ordinary_files_only(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "to_pipe").symlink_to("pipe")
    (tmp_path / "loop").symlink_to("loop")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "to_pipe", tmp_path / "loop", Path("/dev/null"), "a\0b"):
        with pytest.raises(SnapshotError, match="cannot be written"):
            session().save(path)
        with pytest.raises(SnapshotError):
            session().journal(path)
    assert (tmp_path / "pipe").is_fifo()
    assert Path("/dev/null").is_char_device()


def test_a_child_that_hangs_once_is_begun_again_and_one_that_hangs_twice_is_told(tmp_path: Path) -> None:
    def hangs(times: int) -> None:
        before = len(list(tmp_path.iterdir()))
        (tmp_path / str(before)).touch()
        if before < times:
            time.sleep(60.0)

    assert interrupted.in_child(lambda: hangs(1), 1.0) is None
    assert interrupted.in_child(lambda: hangs(9), 0.2) == interrupted.HANGS
    assert interrupted.in_child(lambda: "wrong") == "wrong"
    assert interrupted.in_child(lambda: os.kill(os.getpid(), signal.SIGTERM)) == "the process ended by SIGTERM"
