"""--quiet, --config, shell completion, and messages of what is not installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from copter_frontends import cli

SMALL = ("simulate", "fifo", "--gpus", "64", "--rounds", "5")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        cli.main(list(arguments))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


def test_quiet_prints_nothing(capsys, tmp_path: Path) -> None:
    code, out, err = run(capsys, *SMALL, "--quiet")
    assert (code, out, err) == (0, "", "")
    code, out, _ = run(capsys, *SMALL, "-q", "--json")
    assert code == 0
    assert json.loads(out)["rounds"] == 5
    code, out, err = run(capsys, *SMALL)
    assert code == 0
    assert "fifo" in out
    assert err, "progress, as lines"
    code, out, err = run(capsys, "compare", "--policies", "fifo,srtf", *SMALL[2:], "--quiet")
    assert (code, out, err) == (0, "", "")


def test_quiet_solve(capsys, tmp_path: Path) -> None:
    path = tmp_path / "one.lp"
    path.write_text("max\n obj: x\nsubject to\n c: x <= 4\nend\n")
    assert run(capsys, "solve", str(path), "--quiet") == (0, "", "")
    assert run(capsys, "solve", str(tmp_path / "none.lp"), "--quiet")[0] == 2


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.toml", 'gpus = 64\nrounds = 5\nseed = 3\n"round-s" = 120.0\n'),
        ("run.yaml", "gpus: 64\nrounds: 5\nseed: 3\nround_s: 120\n"),
    ],
)
def test_options_come_from_a_file(name: str, text: str, capsys, tmp_path: Path) -> None:
    if name.endswith("toml") and sys.version_info < (3, 11):
        pytest.skip("TOML is read by the standard library from Python 3.11 on")
    path = tmp_path / name
    path.write_text(text)
    code, out, err = run(capsys, "simulate", "fifo", "--config", str(path), "--json", "-q")
    assert code == 0, err
    found = json.loads(out)
    assert (found["gpus"], found["rounds"], found["seed"]) == (64, 5, 3)
    assert found["simulated_h"] == pytest.approx(5 * 120 / 3600)
    code, out, _ = run(capsys, "simulate", "fifo", "--config", str(path), "--json", "-q", "--seed", "4")
    assert json.loads(out)["seed"] == 4, "the command line wins"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpu: 64\n", "there is no option 'gpu'"),
        ("config: other.yaml\n", "there is no option 'config'"),
        ("gpus: many\n", "'many' is not a valid integer"),
        ("gpus: [64]\n", "gpus must be one value"),
        ("gpus:\n", "gpus must be one value, not None"),
        ("- 64\n", "must hold options by name"),
        ("gpus: [\n", "not valid YAML"),
        ("\x00", "not valid YAML"),
    ],
)
def test_bad_option_files(text: str, message: str, capsys, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(text)
    code, out, err = run(capsys, "simulate", "fifo", "--config", str(path))
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_option_files_that_cannot_be_read(capsys, tmp_path: Path) -> None:
    code, _, err = run(capsys, "simulate", "fifo", "--config", str(tmp_path / "none.yaml"))
    assert code == 2
    assert "cannot be read" in err
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe")
    assert run(capsys, "simulate", "fifo", "--config", str(tmp_path / "bytes.yaml"))[0] == 2
    (tmp_path / "huge.yaml").write_bytes(b"#" * (1 << 21))
    code, _, err = run(capsys, "simulate", "fifo", "--config", str(tmp_path / "huge.yaml"))
    assert code == 2
    assert "longer than" in err


def test_the_shell_completes_commands() -> None:
    environment = {"_COPTER_COMPLETE": "bash_complete", "COMP_WORDS": "copter sim", "COMP_CWORD": "1", "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", "from copter_frontends.cli import main; main()"],
        env={**environment, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "plain,simulate" in done.stdout


@pytest.mark.parametrize(("package", "brought_by"), [("rich", "all")])
def test_a_package_that_is_not_there_is_named(package: str, brought_by: str, tmp_path: Path) -> None:
    path = tmp_path / "one.lp"
    path.write_text("max\n obj: x\nsubject to\n c: x <= 4\nend\n")
    code = f"import sys; sys.modules[{package!r}] = None; from copter_frontends.cli import main; "
    code += f"main(['solve', {str(path)!r}])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": ":".join(sys.path), "PATH": ""},
    )
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert package in done.stderr
    assert f"pip install 'copter-lp[{brought_by}]'" in done.stderr
