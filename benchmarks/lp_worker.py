"""One LP or MILP file in a process of its own: copter's answer judged by the independent checker, then HiGHS's time.

What is asked is one JSON object on stdin (path, integer, time_limit_s, tolerance, highs), what is found one on stdout.
"""

from __future__ import annotations

import json
import math
import sys
import time
import warnings
from typing import Any

import numpy as np
from judge import faults, integer_violation
from judge import judge as check
from memory import fresh_peak_mb, peak_rss_mb

import copter


def main() -> None:
    """Answer one question."""
    found = answer(**json.load(sys.stdin))
    finite = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in found.items()}
    print(json.dumps(finite, allow_nan=False), flush=True)


def answer(path: str, integer: bool, time_limit_s: float, tolerance: float, highs: bool) -> dict[str, Any]:
    """Solve, judge, compare."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lp = copter.read_mps(path)
    except copter.InvalidDataError as error:
        return {"status": "unreadable", "faults": [str(error)]}
    found: dict[str, Any] = {"rows": lp.shape[0], "cols": lp.shape[1], "nnz": int(lp.A.nnz)}
    solved = integer_answer(lp, time_limit_s) if integer else relaxed_answer(lp, time_limit_s, tolerance)
    found.update(solved)
    if highs:
        found.update(highs_answer(path, integer, time_limit_s))
    return found


def relaxed_answer(lp: copter.LinearProgram, time_limit_s: float, tolerance: float) -> dict[str, Any]:
    """The relaxation's status, figures and the faults that the checker finds."""
    settings = copter.Settings(tolerance=tolerance, absolute_tolerance=tolerance, time_limit_s=time_limit_s)
    copter.solve(copter.LinearProgram([1.0, 2.0], [[1.0, 1.0]], row_lower=3.0))  # loads what a solve needs
    resident = fresh_peak_mb()
    started = time.perf_counter()
    solution = copter.solve(lp, settings)
    seconds = time.perf_counter() - started
    found: dict[str, Any] = {
        "status": solution.status.value,
        "seconds": seconds,
        "memory_x": (peak_rss_mb() - resident) * 1024**2 / max(lp.A.data.nbytes + lp.A.indices.nbytes, 1),
        "faults": faults(lp, solution, tolerance),
        "objective": None,
    }
    if solution.status.value not in ("primal_infeasible", "dual_infeasible"):
        judged = check(lp, solution.x, solution.y)
        found["objective"] = judged.objective
        found |= {
            name: getattr(judged, name)
            for name in ("primal", "dual", "gap", "primal_absolute", "dual_absolute", "complementarity", "bound")
        }
    return found


def integer_answer(lp: copter.LinearProgram, time_limit_s: float) -> dict[str, Any]:
    """The integer point, its gap, and the faults that the checker finds."""
    started = time.perf_counter()
    plan = copter.solve_integer(lp, deadline_s=time_limit_s)
    seconds = time.perf_counter() - started
    found: dict[str, Any] = {
        "status": plan.status.value,
        "seconds": seconds,
        "bound": plan.bound,
        "gap": plan.gap,
        "objective": None,
        "faults": [],
    }
    if plan.x is not None:
        judged = check(lp, plan.x, np.zeros(lp.shape[0]))
        found |= {"objective": judged.objective, "primal": judged.primal, "primal_absolute": judged.primal_absolute}
        if judged.primal_absolute > 1e-6 * (1.0 + abs(plan.x).max(initial=0.0)):
            found["faults"].append(f"the point violates a row or bound by {judged.primal_absolute:.1e}")
        if integer_violation(lp, plan.x) > 0.0:
            found["faults"].append(f"the point is off whole numbers by {integer_violation(lp, plan.x):.1e}")
        if abs(judged.objective - plan.objective) > 1e-9 * (1.0 + abs(judged.objective)):
            found["faults"].append(f"the objective is {judged.objective:.10g}, not {plan.objective:.10g}")
    if seconds > 1.1 * time_limit_s + 0.01:
        found["late_s"] = seconds - time_limit_s
    return found


def highs_answer(path: str, integer: bool, time_limit_s: float) -> dict[str, Any]:
    """HiGHS's seconds on the same file, reading left out."""
    try:
        import highspy
    except ImportError:
        return {}
    solver = highspy.Highs()
    solver.silent()
    solver.setOptionValue("time_limit", time_limit_s)
    solver.setOptionValue("solve_relaxation", not integer)
    solver.readModel(path)
    started = time.perf_counter()
    solver.run()
    seconds = time.perf_counter() - started
    status = solver.modelStatusToString(solver.getModelStatus())
    return {
        "highs_seconds": seconds,
        "highs_status": status,
        "highs_objective": float(solver.getInfo().objective_function_value),
    }


if __name__ == "__main__":
    main()
