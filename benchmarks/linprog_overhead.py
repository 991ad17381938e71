"""What copter.interop.scipy_linprog costs over copter.solve, and over SciPy's own linprog.

    python benchmarks/linprog_overhead.py [--repeats 30]

For each size, in processor seconds, the least of the repeats, so that other work on the machine counts little:
``copter.solve``; making a LinearProgram of the arrays (which copter.solve needs too); and ``linprog`` of the same
arrays with ``copter.solve`` in it replaced by the answer that it gives, which leaves what the door itself takes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from unittest import mock

import numpy as np
import scipy.optimize
import scipy.sparse as sp

import copter
from copter.interop import live_program
from copter.interop.scipy_linprog import linprog

SIZES = ((3, 5), (30, 100), (100, 2000), (300, 10_000))


def best(repeats: int, *calls: Callable[[], object]) -> list[float]:
    """Least processor seconds of each call, taken in turns."""
    found = [float("inf")] * len(calls)
    for _ in range(repeats):
        for at, call in enumerate(calls):
            started = time.process_time()
            call()
            found[at] = min(found[at], time.process_time() - started)
    return found


def main() -> None:
    """Measure every size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=30)
    repeats = parser.parse_args().repeats
    for m, n in SIZES:
        rng = np.random.default_rng(0)
        A = sp.random_array((m, n), density=min(1.0, 5.0 / m), rng=rng, format="csc")
        c, b = -rng.uniform(1.0, 2.0, n), np.full(m, 0.2 * A.sum() / m)
        bounds = np.column_stack((np.zeros(n), np.ones(n)))

        def made() -> copter.LinearProgram:
            return copter.LinearProgram(c, A, None, b, bounds[:, 0], bounds[:, 1])  # noqa: B023

        lp = made()
        count = max(3, repeats if n <= 100 else repeats // 5)
        answer = copter.solve(lp)

        def door() -> float:
            with mock.patch.object(live_program, "solve", return_value=answer):  # noqa: B023
                started = time.process_time()
                linprog(c, A, b, bounds=bounds)  # noqa: B023
                return time.process_time() - started

        solve_s, made_s, scipy_s = best(
            count,
            lambda: copter.solve(lp),  # noqa: B023
            made,
            lambda: scipy.optimize.linprog(c, A, b, bounds=bounds),  # noqa: B023
        )
        door_s = min(door() for _ in range(5 * repeats))
        print(
            f"{m:4d} x {n:6d}, {A.nnz:6d} entries: solve {1e3 * solve_s:8.3f} ms; door {1e3 * door_s:6.3f} ms, of that "
            f"making the program {1e3 * made_s:6.3f} ms, left {1e3 * (door_s - made_s):6.3f} ms; "
            f"SciPy's linprog {1e3 * scipy_s:8.3f} ms"
        )


if __name__ == "__main__":
    main()
