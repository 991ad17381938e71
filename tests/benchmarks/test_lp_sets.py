"""LP test sets: the verdicts, the command, and the problems of lp_subset.csv solved and judged."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import lp_sets
import lp_worker
import pytest
from lp_problems import SETS, LpProblem, data_folder, problems_of

HERE = Path(__file__).parent
SCRIPT = HERE.parents[1] / "benchmarks" / "lp_sets.py"
KNOWN = {(problem.set, problem.name): problem for name in SETS for problem in problems_of(name)}
with (HERE / "lp_subset.csv").open(newline="") as listed:
    SUBSET = [(row["set"], row["name"]) for row in csv.DictReader(listed)]

SKIPPED = "a quadratic objective cannot be part of a linear program"

without_data = pytest.mark.skipif(not KNOWN, reason=f"no LP test sets under {data_folder()}: set COPTER_DATA")


@without_data
@pytest.mark.parametrize("key", SUBSET, ids=lambda key: "-".join(key))
def test_a_problem_is_solved_and_judged_right(key):
    if key not in KNOWN:
        pytest.skip(f"{key[1]} is not among the files under {data_folder()}")
    problem = KNOWN[key]
    found = lp_worker.answer(str(problem.path), problem.integer, 60.0, 1e-6, highs=False)
    error = lp_sets.relative_error(problem, found)
    assert lp_sets.verdict(problem, found, error, 1e-6) == "ok", lp_sets.line(problem, found, error, "")


@without_data
def test_the_command_prints_a_line_a_problem_and_a_summary():
    done = subprocess.run(
        [
            sys.executable,
            str(SCRIPT),
            "--set",
            "lp_small_highs,netlib",
            "--only",
            "avgas,afiro",
            "--no-highs",
            "--json",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    assert [row.split()[0] for row in lines[1:3]] == ["avgas", "afiro"]
    assert "2 problems: 2 ok" in lines[3]
    found = json.loads(lines[-1])
    assert found["counts"] == {"ok": 2}
    assert {problem["status"] for problem in found["problems"]} == {"optimal"}
    assert all(problem["error"] <= 1e-6 for problem in found["problems"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--set", "nonsense"), "unknown set 'nonsense'"),
        (("--only", "nobody"), "no problem 'nobody'"),
        (("--time-limit", "0"), "must be > 0"),
    ],
)
def test_bad_arguments_are_said(arguments, message):
    done = subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert message in done.stderr


def problem(status: str, objective: float | None, integer: bool = False) -> LpProblem:
    return LpProblem("netlib", "made-up", Path("made-up.mps"), status, objective, integer)


@pytest.mark.parametrize(
    ("of", "found", "expected"),
    [
        (problem("optimal", 10.0), {"status": "optimal", "objective": 10.000001}, "ok"),
        (problem("optimal", 10.0), {"status": "optimal", "objective": 10.1}, "WRONG"),
        (problem("optimal", 10.0), {"status": "optimal", "objective": 10.0, "faults": ["dual"]}, "WRONG"),
        (problem("optimal", 10.0), {"status": "primal_infeasible", "objective": None}, "WRONG"),
        (problem("optimal", 10.0), {"status": "time_limit", "objective": 3.0}, "unsolved"),
        (problem("optimal", 10.0), {"status": "crashed", "faults": ["exit code 1"]}, "WRONG"),
        (problem("primal_infeasible", None), {"status": "primal_infeasible"}, "ok"),
        (problem("primal_infeasible", None), {"status": "optimal", "objective": 1.0}, "WRONG"),
        (problem("dual_infeasible", None), {"status": "iteration_limit", "objective": 1.0}, "unsolved"),
        (problem("optimal", None), {"status": "unreadable", "faults": [SKIPPED]}, "skipped"),
        (problem("optimal", None), {"status": "unreadable", "faults": ["line 3"]}, "WRONG"),
        (problem("optimal", 10.0, True), {"status": "feasible", "objective": 12.0, "bound": 9.0}, "ok"),
        (problem("optimal", 10.0, True), {"status": "feasible", "objective": 12.0, "bound": 11.0}, "WRONG"),
        (problem("optimal", 10.0, True), {"status": "none_found", "objective": None, "bound": 9.0}, "unsolved"),
    ],
)  # fmt: skip
def test_verdicts(of, found, expected):
    answer = {"faults": []} | found
    error = lp_sets.relative_error(of, answer)
    assert lp_sets.verdict(of, answer, error, 1e-6) == expected


def test_the_objective_constant_is_part_of_the_reference():
    if ("netlib", "e226") not in KNOWN:
        pytest.skip(f"e226 is not among the files under {data_folder()}")
    assert KNOWN["netlib", "e226"].objective == pytest.approx(-11.638929066, rel=1e-9)
