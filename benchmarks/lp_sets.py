"""LP test sets through copter, a process a problem, every answer judged; one line a problem.

python benchmarks/lp_sets.py [--set netlib,infeasible,...] [--only afiro,sc50a] [--time-limit 60] [--json]

`memory x` is how far the solve raised the peak of resident memory, over the bytes of the matrix's values and indices.
The verdict is `ok`, `WRONG` (an untrue status, objective, residual or ray), `unsolved` (an honest status without the
answer), or `skipped` (what no linear program can hold). The exit code is 1 if any is wrong or unsolved.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from lp_problems import SETS, LpProblem, data_folder, problems_of

WORKER = Path(__file__).with_name("lp_worker.py")
GRACE_S = 30.0  # past the time limit, for reading the file and for what does not look at the clock
HEADER = (
    f"{'problem':<17} {'rows':>6} {'cols':>6} {'nnz':>7} {'status':<17} {'objective':>19} {'error':>8} "
    f"{'primal':>8} {'dual':>8} {'gap':>8} {'seconds':>8} {'HiGHS s':>8} {'memory x':>8}  verdict"
)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--set", default=",".join(SETS), help=f"some of {','.join(SETS)} (default: all)")
    found.add_argument("--only", default="", help="names of problems")
    found.add_argument("--time-limit", type=float, default=60.0, help="seconds a problem and solver (default 60)")
    found.add_argument("--tolerance", type=float, default=1e-6)
    found.add_argument("--no-highs", action="store_true", help="leave HiGHS out")
    found.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    return found


def chosen(command: argparse.ArgumentParser, arguments: argparse.Namespace) -> list[LpProblem]:
    """The problems that were asked for; the parser's error where there are none."""
    sets = [name for name in arguments.set.split(",") if name]
    unknown = [name for name in sets if name not in SETS]
    if unknown:
        command.error(f"unknown set {unknown[0]!r}: some of {', '.join(SETS)}")
    if arguments.time_limit <= 0 or arguments.tolerance <= 0:
        command.error("--time-limit and --tolerance must be > 0")
    only = {name for name in arguments.only.split(",") if name}
    problems = [problem for name in sets for problem in problems_of(name) if not only or problem.name in only]
    missing = only - {problem.name for problem in problems}
    if missing:
        command.error(f"no problem {sorted(missing)[0]!r} in {', '.join(sets)} under {data_folder()}")
    if not problems:
        command.error(f"no problems under {data_folder()}: set COPTER_DATA to the folder of the test sets")
    return problems


def ask(problem: LpProblem, time_limit_s: float, tolerance: float, highs: bool) -> dict[str, Any]:
    """What the worker finds; a status of its own where it does not come back."""
    question = {
        "path": str(problem.path),
        "integer": problem.integer,
        "time_limit_s": time_limit_s,
        "tolerance": tolerance,
        "highs": highs,
    }
    root = str(WORKER.parents[1])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((root, os.environ.get("PYTHONPATH", "")))}
    try:
        done = subprocess.run(
            [sys.executable, str(WORKER)],
            input=json.dumps(question),
            capture_output=True,
            text=True,
            timeout=time_limit_s * (2 if highs else 1) + GRACE_S,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"status": "no answer", "faults": ["the time limit was not kept"]}
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"status": "crashed", "faults": [f"exit code {done.returncode}: {last}"]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def relative_error(problem: LpProblem, found: dict[str, Any]) -> float | None:
    """|objective - reference| / max(1, |reference|); of an integer problem, how far it is from the best one known."""
    if problem.objective is None or found.get("objective") is None:
        return None
    return abs(float(found["objective"]) - problem.objective) / max(1.0, abs(problem.objective))


def verdict(problem: LpProblem, found: dict[str, Any], error: float | None, tolerance: float) -> str:
    """ok, WRONG, unsolved or skipped, by the rules of the module's docstring."""
    status = found["status"]
    if status == "unreadable":
        return "skipped" if "cannot be part of a linear program" in found["faults"][0] else "WRONG"
    if status in ("crashed", "no answer") or found["faults"]:
        return "WRONG"
    if problem.integer:
        return integer_verdict(problem, found)
    if status == problem.status:
        return "ok" if error is None or error <= tolerance else "WRONG"
    return "WRONG" if status in ("optimal", "primal_infeasible", "dual_infeasible") else "unsolved"


def integer_verdict(problem: LpProblem, found: dict[str, Any]) -> str:
    """A point that holds and a bound that the best value known does not contradict are right, whatever the gap."""
    if problem.objective is None:
        return "WRONG" if found["objective"] is not None else "ok" if found["status"] == problem.status else "unsolved"
    bound = found.get("bound")
    contradicts = bound is not None and bound > problem.objective + 1e-5 * abs(problem.objective)
    if found["status"] == "primal_infeasible" or contradicts:
        return "WRONG"
    return "unsolved" if found["objective"] is None else "ok"


def line(problem: LpProblem, found: dict[str, Any], error: float | None, judgement: str) -> str:
    """One line of the table."""

    def cell(name: str, form: str, width: int) -> str:
        value = found.get(name)
        return f"{'-' if value is None else format(value, form):>{width}}"

    label = problem.name + (" (int)" if problem.integer else "")
    sizes = f"{cell('rows', 'd', 6)} {cell('cols', 'd', 6)} {cell('nnz', 'd', 7)}"
    residuals = f"{cell('primal', '.1e', 8)} {cell('dual', '.1e', 8)} {cell('gap', '.1e', 8)}"
    times = f"{cell('seconds', '.2f', 8)} {cell('highs_seconds', '.2f', 8)} {cell('memory_x', '.1f', 8)}"
    off = "-" if error is None else format(error, ".1e")
    objective = cell("objective", ".11e", 19)
    shown = f"{label:<17} {sizes} {found['status']:<17} {objective} {off:>8} {residuals} {times}  {judgement}"
    return shown + (f": {found['faults'][0]}" if found["faults"] else "")


def main() -> None:
    """Run the problems one after the other."""
    command = parser()
    arguments = command.parse_args()
    results = []
    print(HEADER, flush=True)
    for problem in chosen(command, arguments):
        found = ask(problem, arguments.time_limit, arguments.tolerance, not arguments.no_highs)
        error = relative_error(problem, found)
        judgement = verdict(problem, found, error, arguments.tolerance)
        print(line(problem, found, error, judgement), flush=True)
        results.append({"set": problem.set, "name": problem.name, "error": error, "verdict": judgement, **found})
    counts = Counter(result["verdict"] for result in results)
    seconds = sum(result.get("seconds") or 0.0 for result in results)
    highs = sum(result.get("highs_seconds") or 0.0 for result in results)
    summary = ", ".join(f"{counts[kind]} {kind}" for kind in ("ok", "WRONG", "unsolved", "skipped") if counts[kind])
    print(f"{len(results)} problems: {summary}; copter {seconds:.1f} s, HiGHS {highs:.1f} s", flush=True)
    if arguments.json:
        print(json.dumps({"problems": results, "counts": dict(counts), "seconds": seconds, "highs_seconds": highs}))
    sys.exit(1 if counts["WRONG"] or counts["unsolved"] else 0)


if __name__ == "__main__":
    main()
