"""``copter solve``: the keys of --json, exit codes, one-line errors, the table, infeasible and unbounded programs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import copter
from copter_frontends import cli
from copter_frontends.cli import solving

KEYS = {
    *("status", "objective", "bound", "gap", "primal_residual", "dual_residual", "max_violation"),
    *("iterations", "seconds"),
}
INF = float("inf")
PROBLEM = copter.LinearProgram([3, 2], [[1, 1], [1, 3]], row_upper=[4, 8], col_upper=[3, INF], sense="max", offset=10)
INFEASIBLE = copter.LinearProgram([1, 1], [[1, 1], [1, 1]], row_lower=[3, -INF], row_upper=[INF, 2])
UNBOUNDED = copter.LinearProgram([-1, 0], [[1, -1]], row_upper=[1])


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        cli.main(["solve", *arguments])
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


def file_of(tmp_path: Path, lp: copter.LinearProgram, name: str = "problem.mps.gz") -> str:
    path = tmp_path / name
    copter.write_mps(lp, path)
    return str(path)


def cells_of(out: str) -> dict[str, str]:
    """Cells of the printed table by their label."""
    return dict(re.findall(r"^  (\S.*?)  +(\S.*?) *$", out, re.MULTILINE))


def test_json_is_the_last_line_with_every_key(capsys, tmp_path):
    code, out, err = run(capsys, file_of(tmp_path, PROBLEM), "--json", "--tolerance", "1e-8")
    assert (code, err) == (0, "")
    found = json.loads(out.splitlines()[-1])
    assert set(found) >= KEYS
    assert found["status"] == "optimal"
    assert found["objective"] == pytest.approx(21.0, abs=1e-6)
    assert found["bound"] == pytest.approx(21.0, abs=1e-6)
    assert max(found["gap"], found["primal_residual"], found["dual_residual"]) <= 1e-8
    assert (found["rows"], found["columns"], found["nonzeros"]) == (2, 2, 4)


@pytest.mark.parametrize(("lp", "status"), [(INFEASIBLE, "primal_infeasible"), (UNBOUNDED, "dual_infeasible")])
def test_infeasible_and_unbounded_are_answers(capsys, tmp_path, lp, status):
    code, out, _ = run(capsys, file_of(tmp_path, lp), "--json")
    found = json.loads(out.splitlines()[-1])
    assert (code, found["status"]) == (0, status)
    assert found["objective"] is found["bound"] is found["gap"] is None


def test_the_table(capsys, tmp_path):
    code, out, _ = run(capsys, file_of(tmp_path, PROBLEM))
    assert code == 0
    cells = cells_of(out)
    assert cells["status"] == "optimal"
    assert float(cells["objective"]) == pytest.approx(21.0, abs=1e-4)
    assert float(cells["max violation"]) <= 1e-6
    assert "max, 2 x 2, 4 nonzeros" in out


def test_bad_input_is_one_line_and_exit_code_2(capsys, tmp_path):
    bad = tmp_path / "bad.mps"
    bad.write_text("ROWS\n N C\n Q R\nCOLUMNS\nENDATA\n")
    for arguments, text in (
        ((str(bad),), "bad.mps, line 3: row type 'Q'"),
        ((str(tmp_path / "absent.mps"),), "cannot be read"),
        ((file_of(tmp_path, PROBLEM), "--tolerance", "0"), "tolerance"),
        ((file_of(tmp_path, PROBLEM), "--time-limit", "-1"), "time-limit"),
        ((), "FILE"),
    ):
        code, out, err = run(capsys, *arguments)
        assert (code, out) == (2, "")
        assert text in err
        assert len(err.splitlines()) == 1


def test_what_the_reader_warns_of_is_on_stderr(capsys, tmp_path):
    path = tmp_path / "semi.mps"
    path.write_text("ROWS\n N C\n G R\nCOLUMNS\n X C 1 R 1\nRHS\n B R 2\nBOUNDS\n SC B X 1e30\n LO B X 3\nENDATA\n")
    code, out, err = run(capsys, str(path), "--json")
    assert code == 0
    assert "semi-continuous" in err
    assert json.loads(out.splitlines()[-1])["objective"] == pytest.approx(2.0, abs=1e-5)


def test_a_numerical_error_is_exit_code_1(capsys, tmp_path, monkeypatch):
    from dataclasses import replace

    solved = copter.solve(PROBLEM)
    monkeypatch.setattr(solving, "solve", lambda *_: replace(solved, status=copter.Status.NUMERICAL_ERROR))
    code, out, _ = run(capsys, file_of(tmp_path, PROBLEM), "--json")
    assert (code, json.loads(out)["status"]) == (1, "numerical_error")


def test_help_imports_no_solver():
    code = (
        "import sys\nfrom copter_frontends.cli import main\n"
        "try: main(['solve', '--help'])\nexcept SystemExit as end: assert not end.code\n"
        "assert 'numpy' not in sys.modules and 'copter' not in sys.modules, sorted(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--time-limit" in done.stdout


KNAPSACK = copter.LinearProgram(
    [5, 4, 3], [[2, 3, 1], [4, 1, 2]], row_upper=[5, 11], col_upper=2, integrality=1, sense="max", offset=1
)


@pytest.mark.parametrize("shim", ["rounding", "dive"])
def test_an_integer_point(capsys, tmp_path, shim):
    path = file_of(tmp_path, KNAPSACK)
    code, out, err = run(capsys, path, "--integer", "--shim", shim, "--time-limit", "5", "--json")
    found = json.loads(out.splitlines()[-1])
    assert (code, err) == (0, "")
    assert set(found) >= KEYS
    assert found["status"] in ("feasible", "optimal")
    assert found["objective"] == pytest.approx(14.0 if shim == "dive" else found["objective"])
    assert found["objective"] <= found["bound"] + 1e-9
    assert found["max_violation"] <= 1e-6
    assert found["integer_columns"] == 3


def test_what_is_relaxed_is_said(capsys, tmp_path):
    lp = copter.LinearProgram([-1.0], [[1.0]], row_upper=[0.5], col_upper=[5.0], semicontinuous=[1.0])
    path = file_of(tmp_path, lp)
    code, out, err = run(capsys, path, "--json")
    assert (code, json.loads(out)["objective"], json.loads(out)["relaxed"]) == (0, -0.5, True)
    assert "1 semi-continuous columns are relaxed; --integer keeps them" in err
    assert "1 semi-continuous, relaxed" in run(capsys, path)[1]
    code, out, err = run(capsys, path, "--integer", "--json")
    assert (json.loads(out)["objective"], json.loads(out)["relaxed"]) == (0.0, False)
    assert "are relaxed" not in err


def test_an_integer_point_in_the_table(capsys, tmp_path):
    code, out, _ = run(capsys, file_of(tmp_path, KNAPSACK), "--integer", "--time-limit", "5")
    assert code == 0
    cells = cells_of(out)
    assert "3 integer" in out
    assert float(cells["objective"]) <= 14.0 + 1e-9
    assert float(cells["bound"]) >= 14.0 - 1e-9
    assert cells["found by"]


def test_no_integer_point_is_an_answer(capsys, tmp_path):
    lp = copter.LinearProgram([1.0], [[2.0]], row_lower=1.0, row_upper=1.0, col_upper=5.0, integrality=1)
    code, out, _ = run(capsys, file_of(tmp_path, lp), "--integer", "--time-limit", "2", "--json")
    found = json.loads(out.splitlines()[-1])
    assert (code, found["objective"], found["gap"]) == (0, None, None)
    assert found["status"] in ("primal_infeasible", "none_found")
