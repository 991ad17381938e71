"""The commands: stdout is one JSON object, a bound only if it is certified, times that are none refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from copter import Model, Session, SnapshotError


def copter(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command."""
    command = [sys.executable, "-m", "copter_frontends.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("round_s", ["nan", "1e-9", "inf", "0"])
def test_rounds_that_are_no_time_are_refused(round_s: str) -> None:
    done = copter("simulate", "--round-s", round_s)
    assert done.returncode == 2
    assert "--round-s" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("shim", ["rounding", "dive", "exact"])
def test_stdout_is_one_json_object(tmp_path: Path, shim: str) -> None:
    path = tmp_path / "t.mps"
    rows = "".join(f" L r{i}\n" for i in range(3))
    columns = "".join(f" x{j} c {-3 - j % 5} r{j % 3} {2 + j % 4}\n" for j in range(12))
    bounds = "".join(f" UP B x{j} 3\n" for j in range(12))
    path.write_text(
        f"NAME t\nROWS\n N c\n{rows}COLUMNS\n M 'MARKER' 'INTORG'\n{columns} N 'MARKER' 'INTEND'\nRHS\n"
        f" RHS r0 7 r1 8\n RHS r2 9\nBOUNDS\n{bounds}ENDATA\n"
    )
    done = copter("solve", str(path), "--integer", "--shim", shim, "--json", "--time-limit", "60")
    assert done.returncode == 0
    assert json.loads(done.stdout)["status"] in ("optimal", "feasible")


def test_a_bound_that_is_not_certified_is_null_and_said_so(tmp_path: Path) -> None:
    """min 0.3 x, x free, by rows 0.1 x >= 1 and 0.2 x >= 2: the reduced cost is never exactly zero."""
    path = tmp_path / "t.mps"
    path.write_text(
        "NAME t\nROWS\n N c\n G a\nCOLUMNS\n x c 0.3 a 0.1\n y c 0.7 a 0.3\nRHS\n RHS a 1\n"
        "BOUNDS\n FR B x\n FR B y\nENDATA\n"
    )
    found = json.loads(copter("solve", str(path), "--json").stdout)
    if found["bound"] is None:
        assert "none certified" in copter("solve", str(path)).stdout
    lp = tmp_path / "u.mps"
    lp.write_text("NAME t\nROWS\n N c\n G a\nCOLUMNS\n x c 1 a 1\nRHS\n RHS a 1\nBOUNDS\n UP B x 9\nENDATA\n")
    found = json.loads(copter("solve", str(lp), "--json").stdout)
    assert found["bound"] == pytest.approx(1.0)


def test_a_second_journal_does_not_end_the_first(tmp_path: Path) -> None:
    model = Model()
    first = Session(model, journal=tmp_path / "one")
    with pytest.raises(SnapshotError, match="one already"):
        Session(model, journal=tmp_path / "two")
    model.add_resources("g", 1)
    first.journal(None)
    assert Session.load(tmp_path / "one").model.count("g") == 1


INTERRUPTED = """
import os, signal, sys
import copter_frontends.command as command

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "copter_frontends.cli":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
command.main()
"""


def test_ctrl_c_while_the_command_loads_is_one_line() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, "--help"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "copter: interrupted\n")


@pytest.mark.parametrize("option", ["--gpus", "--jobs"])
def test_counts_beyond_all_memory_are_refused(option: str) -> None:
    done = copter("simulate", "sia", option, "99999999999999")
    assert done.returncode == 2
    assert option in done.stderr
    assert "not in the range" in done.stderr
