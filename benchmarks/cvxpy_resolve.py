"""A parametrised CVXPY problem solved again and again: copter's session against CVXPY's HiGHS back end.

    python benchmarks/cvxpy_resolve.py [--rounds 5] [--share 0.01] [--json]

Each row is one shape and one kind of parameter (costs, right-hand sides, entries of A). Time is that of
``solve_via_data``, from CVXPY's arrays to a solver's answer; CVXPY's own work of putting parameters into arrays is the
column `compile`. Both solvers see the same sequence, in turns. A loss is printed as it is.
"""

from __future__ import annotations

import argparse
import json
import time
from statistics import median
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.interop.cvxpy import COPTER

Floats = NDArray[np.float64]

SHAPES = {  # rows, columns, entries a column: all near 1e5 entries
    "allocation 50 x 33000": (50, 33_000, 3),
    "allocation 100 x 33000": (100, 33_000, 3),
    "wide 100 x 2000, half full": (100, 2_000, 50),
    "square 1000 x 20000": (1_000, 20_000, 5),
}
KINDS = ("c", "b", "A")


def problem_of(shape: tuple[int, int, int], kind: str, seed: int) -> tuple[cp.Problem, cp.Parameter]:
    """An allocation: the value of what is served, rows of capacity, each variable between zero and one."""
    rows, columns, entries = shape
    rng = np.random.default_rng(seed)
    row = np.argsort(rng.random((columns, rows)), axis=1)[:, :entries].ravel()
    value = rng.uniform(0.5, 2.0, columns * entries)
    A = sp.csr_array((value, (row, np.repeat(np.arange(columns), entries))), shape=(rows, columns))
    gain = rng.uniform(1.0, 2.0, columns) * entries
    capacity = np.full(rows, 0.3 * A.nnz / rows)
    x = cp.Variable(columns, bounds=[0.0, 1.0])
    if kind == "c":
        p = cp.Parameter(columns, value=gain)
        return cp.Problem(cp.Maximize(p @ x), [A @ x <= capacity]), p
    if kind == "b":
        p = cp.Parameter(rows, value=capacity)
        return cp.Problem(cp.Maximize(gain @ x), [A @ x <= p]), p
    coordinates = A.nonzero()
    p = cp.Parameter(A.shape, sparsity=coordinates)
    p.value_sparse = sp.coo_array((A[coordinates], coordinates), shape=A.shape)
    return cp.Problem(cp.Maximize(gain @ x), [p @ x <= capacity]), p


def move(p: cp.Parameter, rng: np.random.Generator, share: float) -> None:
    """Move a share of the parameter's values by up to a tenth."""
    sparse = p.sparse_idx is not None
    values = (p.value_sparse.data if sparse else p.value).copy()
    at = rng.choice(len(values), max(1, int(share * len(values))), replace=False)
    values[at] *= rng.uniform(0.9, 1.1, len(at))
    if sparse:
        p.value_sparse = sp.coo_array((values, p.value_sparse.coords), shape=p.shape)
    else:
        p.value = values


def timed(problem: cp.Problem, solver: Any) -> tuple[float, float, float]:
    """(seconds of the solver's interface, of CVXPY before it, optimum)."""
    started = time.perf_counter()
    data, chain, inverse = problem.get_problem_data(solver, solver_opts={})
    compiled = time.perf_counter()
    raw = chain.solve_via_data(problem, data, warm_start=True, solver_opts={})
    done = time.perf_counter()
    problem.unpack_results(raw, chain, inverse)
    return done - compiled, compiled - started, float(problem.value)


def measure(shape: tuple[int, int, int], kind: str, rounds: int, share: float) -> dict[str, Any]:
    """Medians over the rounds, after two solves of each that are not counted."""
    solvers = {"copter": COPTER(), "highs": cp.HIGHS}
    each = {name: problem_of(shape, kind, 0) for name in solvers}
    rngs = {name: np.random.default_rng(1) for name in solvers}
    seconds: dict[str, list[float]] = {name: [] for name in solvers}
    compiling: dict[str, list[float]] = {name: [] for name in solvers}
    apart, warm = 0.0, 0
    for step in range(rounds + 2):
        values = {}
        for name, solver in solvers.items():
            problem, p = each[name]
            if step:
                move(p, rngs[name], share)
            solve_s, compile_s, values[name] = timed(problem, solver)
            if step >= 2:
                seconds[name].append(solve_s)
                compiling[name].append(compile_s)
        if step >= 2:
            warm += each["copter"][0].solver_stats.extra_stats["warm"]
        apart = max(apart, abs(values["copter"] - values["highs"]) / (1.0 + abs(values["highs"])))
    return {
        "copter_s": median(seconds["copter"]),
        "highs_s": median(seconds["highs"]),
        "ratio": median(seconds["highs"]) / median(seconds["copter"]),
        "compile_s": median(compiling["copter"]),
        "warm": warm,
        "rounds": rounds,
        "apart": apart,
    }


def main() -> None:
    """Measure every shape and kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--share", type=float, default=0.01)
    parser.add_argument("--shapes", default="", help="only shapes whose names contain this")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = []
    for name, shape in SHAPES.items():
        if arguments.shapes not in name:
            continue
        for kind in arguments.kinds.split(","):
            found.append({"shape": name, "moved": kind, **measure(shape, kind, arguments.rounds, arguments.share)})
            if not arguments.json:
                one = found[-1]
                copter_ms, highs_ms, compile_ms = (1e3 * one[key] for key in ("copter_s", "highs_s", "compile_s"))
                print(
                    f"{name:28} {kind}  copter {copter_ms:8.1f} ms  HiGHS {highs_ms:8.1f} ms  x{one['ratio']:.1f}  "
                    f"compile {compile_ms:.1f} ms  warm {one['warm']}/{one['rounds']}  apart {one['apart']:.0e}",
                    flush=True,
                )
    if arguments.json:
        print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
