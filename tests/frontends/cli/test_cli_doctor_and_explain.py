"""``copter doctor``, ``copter explain``, ``copter --version`` and what ``copter solve`` says meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import copter
from copter.testing import doctor
from copter_frontends import cli
from copter_frontends.cli import pulse


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        cli.main(list(arguments))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--version")
    assert (code, out.strip()) == (0, f"copter, version {copter.__version__}")


def test_the_doctor_finds_this_installation_well(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "doctor")
    assert (code, err) == (0, "")
    for name in ("copter", "numpy", "scipy", "threads", "OpenMP", "instruction set", "reference solve"):
        assert f"ok   {name}" in out
    code, out, _ = run(capsys, "doctor", "--json")
    found = json.loads(out)
    assert found["copter"]["found"].startswith(copter.__version__)
    assert all(each["well"] for each in found.values())


def test_the_doctor_tells_a_wheels_builds_from_one_for_this_machine(tmp_path: Path) -> None:
    room, inside = tmp_path / "levels" / "copter" / "levels", Path("model/matrix/price.so")
    assert doctor.level_of_build(room.parent / inside, room) == ""
    room.mkdir(parents=True)
    assert doctor.level_of_build(room / "x86-64-v4" / inside, room) == "x86-64-v4"
    assert doctor.level_of_build(room.parent / inside, room) == "x86-64-v2"


def test_the_doctor_says_what_is_broken(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "LEAST", {"numpy": (99, 0), "scipy": (1, 13)})
    monkeypatch.setattr(doctor, "of_threads", lambda: 1 / 0)
    code, out, _ = run(capsys, "doctor")
    assert code == 1
    assert "pip install 'numpy>=99.0'" in out
    assert "BAD  threads" in out
    assert "ZeroDivisionError" in out


def test_the_doctor_comes_with_the_engine_alone() -> None:
    done = subprocess.run([sys.executable, "-m", "copter.testing.doctor"], capture_output=True, text=True, check=True)
    assert "ok   reference solve" in done.stdout


def test_the_doctor_names_the_extra_of_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "OPTIONAL", {"highs": ("no-such-package",), "report": ("numpy",)})
    found = doctor.of_optional()
    assert found.well
    assert "numpy" in found.found
    assert "not there: no-such-package (extra highs)" in found.found
    assert "pip install 'copter-lp[highs]'" in found.advice


@pytest.fixture(scope="module")
def saved_run(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("run") / "run.bin")
    arguments = ["simulate", "sia", "--gpus", "64", "--rounds", "3", "--warmup-rounds", "30", "--save", path, "--json"]
    subprocess.run([sys.executable, "-m", "copter_frontends.cli", *arguments], check=True, capture_output=True)
    return path


def test_a_job_is_explained(capsys: pytest.CaptureFixture[str], saved_run: str) -> None:
    from copter_frontends.simulator import load_run

    job = str(load_run(saved_run).policy.model.requests[0])
    code, out, err = run(capsys, "explain", saved_run, job, "--options", "3")
    assert (code, err) == (0, "")
    assert out.startswith(f"{job}: ")
    assert "prices:" in out
    code, out, _ = run(capsys, "explain", saved_run, job, "--json")
    found = json.loads(out)
    assert found["request"] == job
    assert min(option["loss"] for option in found["options"]) == 0.0


def test_bad_requests_for_explanations(capsys: pytest.CaptureFixture[str], saved_run: str, tmp_path: Path) -> None:
    code, out, err = run(capsys, "explain", saved_run, "nobody")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "no job 'nobody'" in err
    (tmp_path / "junk").write_bytes(b"junk")
    for path in (tmp_path / "junk", tmp_path / "none"):
        code, out, err = run(capsys, "explain", str(path), "job")
        assert (code, out, err.count("\n")) == (2, "", 1)


def test_lp_files_are_solved(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    lp = copter.LinearProgram([3, 2], [[1, 1], [1, 3]], row_upper=[4, 8], col_upper=[3, np.inf], sense="max")
    copter.write_lp(lp, tmp_path / "p.lp.gz")
    code, out, err = run(capsys, "solve", str(tmp_path / "p.lp.gz"), "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["objective"] == pytest.approx(11.0, abs=1e-5)
    (tmp_path / "bad.lp").write_text("min\n x^2\nend\n")
    code, out, err = run(capsys, "solve", str(tmp_path / "bad.lp"))
    assert (code, out) == (2, "")
    assert "line 2" in err


def test_a_long_solve_says_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pulse, "SELDOM_S", 0.0)
    rng = np.random.default_rng(0)
    lp = copter.LinearProgram(-rng.uniform(1, 2, 30), rng.uniform(0.1, 1, (10, 30)), None, np.full(10, 3.0))
    copter.write_mps(lp, tmp_path / "p.mps")
    code, out, err = run(capsys, "solve", str(tmp_path / "p.mps"), "--json")
    assert code == 0
    assert json.loads(out)["status"] == "optimal"
    assert "iterations, gap" in err
    assert pulse.Pulse()._due()
