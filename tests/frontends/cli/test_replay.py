"""``copter simulate --tape``, ``replay``, ``verify`` and ``tape``."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

from copter import Model, Session, Settings
from copter.storage.tape import TapeReader
from copter.storage.tape.layout import ROUND
from copter_frontends.policies.sia.policy import SOLVE_SHARE
from copter_frontends.replay import runs


def copter_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "copter_frontends.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A tape of a few rounds of Sia, and what the run said."""
    path = tmp_path_factory.mktemp("tape") / "sia.tape"
    done = copter_command(
        "simulate",
        "sia",
        "--gpus",
        "100",
        "--rounds",
        "4",
        "--seed",
        "3",
        "--threads",
        "1",
        "--tape",
        str(path),
        "--json",
    )
    assert done.returncode == 0, done.stderr
    return path, json.loads(done.stdout.splitlines()[-1])


def test_a_plans_deadline_is_the_one_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "t"
    asked = ("--gpus", "64", "--rounds", "1", "--jobs", "2000", "--seed", "1", "--warmup-rounds", "5")
    done = copter_command("simulate", "sia", *asked, "--deadline-s", "5000", "--tape", str(path), "--json")
    assert done.returncode == 0, done.stderr
    marks = [record.value()[-1] for record in TapeReader(path) if record.kind == ROUND]
    assert [mark["deadline_s"] for mark in marks] == [SOLVE_SHARE * 5000]


def small(path: Path) -> None:
    """A tape of two rounds."""
    model = Model()
    model.add_resources("a", 3)
    model.add_request("one", [1.0, 2.0], usage={"a": [1, 2]}, integer=True)
    session = Session(model, Settings(threads=1))
    session.record(path)
    session.solve()
    model.update_cost("one", [3.0, 1.0])
    session.solve_integer()
    session.record(None)


def test_a_simulation_is_replayed_to_the_last_bit_and_verified(simulated: tuple[Path, dict[str, Any]]) -> None:
    path, _ = simulated
    done = copter_command("replay", str(path), "--threads", "1", "--json")
    assert done.returncode == 0, done.stderr
    copters = json.loads(done.stdout.splitlines()[-1])["solvers"][0]
    assert copters["rounds"] == copters["verified"] == copters["identical"] == 4
    assert copters["difference_max"] == 0.0
    assert copter_command("verify", str(path)).stdout.startswith(f"{path}: 4 rounds, 4 accepted, 0 rejected")


def test_a_tape_without_rounds_is_told_before_any_peer_runs(tmp_path: Path) -> None:
    path = tmp_path / "empty.tape"
    session = Session(Model(), Settings(threads=1))
    session.record(path)
    session.record(None)
    done = copter_command("replay", str(path), "--peers", "highs,columns")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"copter: {path}: there is no round that counts\n"
    assert copter_command("verify", str(path)).stdout == f"{path}: 0 rounds, 0 rejected\n"


def test_peers_find_the_same_and_one_that_is_not_there_is_a_row(simulated: tuple[Path, dict[str, Any]]) -> None:
    pytest.importorskip("highspy")
    path, _ = simulated
    done = copter_command(
        "replay", str(path), "--rounds", "1:3", "--peers", "highs,columns,columns-glop,soplex", "--json"
    )
    assert done.returncode == 0, done.stderr
    solvers = {each["solver"]: each for each in json.loads(done.stdout.splitlines()[-1])["solvers"]}
    for name, found in solvers.items():
        if name.startswith("highs"):
            assert found["ended"] is None
            assert [row["round"] for row in found["by_round"]] == [1, 2]
            assert found["verified"] == 2
            assert found["difference_max"] < 1e-5
            assert found["counted"] == found["rounds_of_both"] == 2  # round 0 is the first solve of all
            assert found["cold_s"] > 0
    if solvers["soplex_warm"]["rounds"] == 0:
        assert "not installed" in solvers["soplex_warm"]["ended"]


def test_names_and_figures_are_printed_whole(tmp_path: Path) -> None:
    pytest.importorskip("highspy")
    small(tmp_path / "t")
    done = copter_command("replay", str(tmp_path / "t"), "--peers", "highs")
    assert done.returncode == 0, done.stderr
    assert "…" not in done.stdout
    assert "highs_ipm_cold_no_crossover_1e-6 " in done.stdout


def test_a_peer_that_crashes_or_takes_too_long_or_too_much_is_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(tmp_path / "t")
    asked = runs.Asked(str(tmp_path / "t"), peer_time_limit_s=0.05)
    for code, message in (
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "crashed after 0 rounds (exit code -11)"),
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
            "its process was killed, most likely because the machine has no",
        ),
        (
            "import os, signal; os.write(1, b'{\"round\": 0'); os.kill(os.getpid(), signal.SIGKILL)",
            "its process was killed",
        ),
        ("import time; time.sleep(60)", "no answer within"),
        ("raise MemoryError", "crashed after 0 rounds (exit code 1): MemoryError"),
    ):
        monkeypatch.setattr(runs, "WORKER", ("-c", code))
        monkeypatch.setattr(runs, "LOADING_S", 0.5)
        run = runs.run_peer("glop_warm", asked)
        assert run.rows == []
        assert run.ended is not None
        assert message in run.ended


@pytest.mark.parametrize("command", ["replay", "verify", "tape info"])
def test_a_file_of_no_use_is_one_line_and_exit_code_two(tmp_path: Path, command: str) -> None:
    small(tmp_path / "t")
    whole = (tmp_path / "t").read_bytes()
    for content in (
        b"",
        b"NAME\n",
        whole[:700] + bytes([whole[700] ^ 4]) + whole[701:],
        whole[:8] + b"\x07" + whole[9:],
    ):
        (tmp_path / "x").write_bytes(content)
        done = copter_command(*command.split(), str(tmp_path / "x"))
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert done.stdout == ""
    assert copter_command(*command.split(), str(tmp_path / "none")).returncode == 2


def test_cut_anonymise_info_and_mps(tmp_path: Path) -> None:
    small(tmp_path / "t")
    t, c, a, m = (str(tmp_path / name) for name in ("t", "c", "a", "m.mps"))
    assert copter_command("tape", "cut", t, c, "--rounds", "1:").returncode == 0
    assert copter_command("tape", "anonymise", t, a).returncode == 0
    assert copter_command("tape", "mps", t, m, "--round", "1").returncode == 0
    for path, rounds in ((t, 2), (c, 1), (a, 2)):
        found = json.loads(copter_command("tape", "info", path, "--json").stdout)
        assert (found["rounds"], found["plans"]) == (rounds, 1)
        assert copter_command("verify", path).returncode == 0
        assert copter_command("replay", path).returncode == 0
    assert "ROWS" in Path(m).read_text()
    assert copter_command("tape", "mps", t, m, "--round", "9").returncode == 2


def test_a_tape_that_is_there_already_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("mine")
    done = copter_command("simulate", "sia", "--gpus", "64", "--rounds", "1", "--tape", str(tmp_path / "t"))
    assert done.returncode == 2
    assert "is there already" in done.stderr
    assert (tmp_path / "t").read_text() == "mine"


def test_compare_writes_a_tape_a_policy(tmp_path: Path) -> None:
    done = copter_command(
        "compare",
        "--policies",
        "sia,hadar",
        "--gpus",
        "64",
        "--hours",
        "0.2",
        "--tape",
        str(tmp_path / "x.tape"),
        "--json",
    )
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x-hadar.tape", "x-sia.tape"]


def test_a_replay_is_drawn_and_a_name_that_is_no_picture_is_refused_first(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    small(tmp_path / "t")
    assert copter_command("replay", str(tmp_path / "t"), "--picture", str(tmp_path / "p.svg")).returncode == 0
    drawn = (tmp_path / "p.svg").read_text()
    assert "<svg" in drawn
    for name, message in (("p.txt", "must end in one of"), ("none/p.svg", "--picture:")):
        done = copter_command("replay", str(tmp_path / "t"), "--picture", str(tmp_path / name))
        assert done.returncode == 2
        assert message in done.stderr


@pytest.mark.parametrize("command", ["replay", "verify"])
def test_forty_gigabytes_cut_tapes_and_refused_edits_on_the_command_line(tmp_path: Path, command: str) -> None:
    small(tmp_path / "t")
    whole = (tmp_path / "t").read_bytes()
    (tmp_path / "cut").write_bytes(whole[:-60])
    done = copter_command(command, str(tmp_path / "cut"))
    assert done.returncode == 0
    assert "cut short" in done.stderr
    (tmp_path / "later").write_bytes(
        whole[:8] + b"\x02\x00\x00\x00" + zlib.crc32(whole[:8] + b"\x02\0\0\0").to_bytes(4, "little")
    )
    with open(tmp_path / "t", "ab") as file:
        file.truncate(40 << 30)
    for name, message in (("t", "round 2, byte"), ("later", "has format 2")):
        done = copter_command(command, str(tmp_path / name))
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert message in done.stderr
