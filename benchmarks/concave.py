"""Rounds with concave worths: copter's session beside Clarabel, both to a gap of 1e-6.

Usage::

    python benchmarks/concave.py --jobs 1000 10000 --worth log power --rounds 20 --page docs/results/concave.md

Each job has one option for each of seven GPU types and the worth of its throughput; every round one job of a hundred
leaves and another comes. Clarabel gets the program through its own arrays, in two ways: a new solver each round, and
one solver whose numbers are updated in place (the pattern stays, because a job takes the place of another), which
saves it the symbolic factorisation. Objectives are compared with Clarabel's at 1e-8, by its first and last round.
Times are processor time of the solve; copter's edits are a column of their own. Losses stand on the page as well.
"""

from __future__ import annotations

import argparse
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import clarabel
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import copter

Floats = NDArray[np.float64]
TYPES = 7
CHURN = 100  # one job of so many leaves in a round
PAGE = """# Concave worths

Made by `python benchmarks/concave.py --page docs/results/concave.md`, row by row. Each of the jobs has one option for
each of seven GPU types, and the worth of its throughput ([how it is solved](../method/concave_worth.md)); every round
one job of a hundred is replaced. Medians over {rounds} warm rounds, in milliseconds of processor time, to a gap of
1e-6. Clarabel: a **new** solver each round, and one solver whose numbers are **updated**, in the same rounds; an
interior-point method keeps no more. **Ratio**: Clarabel's better way over copter's edits and solve. **Cold**: the first
solve, of copter and of Clarabel; in no ratio. **Apart**: largest relative difference of objectives from Clarabel's at
1e-8. No commercial solver was run. The last column is the commit, the date, and the load of the machine before the row:
figures of a busy machine are too high, mostly for both.

| worth | jobs | edits | solve | most | new | updated | ratio | cold: copter | Clarabel | gap | apart | measured |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
"""


@dataclass
class Jobs:
    """The jobs of a round: rates (jobs, types) and weights; `counts` are the GPUs of each type."""

    rates: Floats
    weights: Floats
    counts: Floats
    alpha: float

    @classmethod
    def drawn(cls, jobs: int, alpha: float, seed: int) -> Jobs:
        """Jobs with rates that are log-normal about a type's speed, for three GPUs to ten jobs."""
        rng = np.random.default_rng(seed)
        counts = jobs * 0.3 / TYPES * rng.uniform(0.5, 1.5, TYPES)
        return cls(drawn_rates(rng, jobs), rng.uniform(0.5, 2.0, jobs), counts, alpha)

    def replace(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Replace some jobs by others; returns which."""
        n = len(self.weights)
        which = rng.choice(n, max(n // CHURN, 1), replace=False)
        self.rates[which] = drawn_rates(rng, len(which))
        self.weights[which] = rng.uniform(0.5, 2.0, len(which))
        return which

    def worths(self, which: NDArray[np.int64]) -> list[copter.worth.Worth]:
        """The worths of some jobs."""
        return [copter.worth.power(self.alpha, weight) for weight in self.weights[which].tolist()]


def drawn_rates(rng: np.random.Generator, jobs: int) -> Floats:
    """Throughputs of jobs on each type."""
    return np.linspace(1.0, 4.0, TYPES) * rng.lognormal(0.0, 0.5, (jobs, TYPES))


class Cone:
    """The jobs as Clarabel's program: variables are shares, then u of each job (and its 1/z for alpha = 2)."""

    def __init__(self, jobs: Jobs, tolerance: float) -> None:
        self.settings = clarabel.DefaultSettings()
        self.settings.verbose = False
        self.settings.tol_gap_abs = self.settings.tol_gap_rel = self.settings.tol_feas = tolerance
        self.jobs = jobs

    def program(self) -> tuple[Floats, sp.csc_matrix, Floats, list[object]]:
        """Return (q, A, b, cones) of min q'x, Ax + s = b, s in cones."""
        jobs, n = self.jobs, len(self.jobs.weights)
        shares, job = n * TYPES, np.repeat(np.arange(n), TYPES)
        every = np.arange(shares)
        one = np.ones(shares)
        limits = [(job, every, one), (n + every % TYPES, every, one), (n + TYPES + every, every, -one)]
        first = n + TYPES + shares
        u = shares + np.arange(n)
        row = first + 3 * np.arange(n)
        b = np.concatenate((np.ones(n), jobs.counts, np.zeros(shares + 3 * n)))
        q = np.zeros(shares + n)
        if jobs.alpha == 1.0:  # (u, 1, z) in the exponential cone: u <= log z
            q[u] = -jobs.weights
            b[row + 1] = 1.0
            cones = [(row, u, -np.ones(n)), (row[job] + 2, every, -jobs.rates.ravel())]
            kinds = [clarabel.ExponentialConeT() for _ in range(n)]
        else:  # 1 / z <= u: (u + z, u - z, 2) in the second-order cone
            q[u] = jobs.weights
            b[row + 2] = 2.0
            cones = [(row, u, -np.ones(n)), (row + 1, u, -np.ones(n))]
            cones += [(row[job], every, -jobs.rates.ravel()), (row[job] + 1, every, jobs.rates.ravel())]
            kinds = [clarabel.SecondOrderConeT(3) for _ in range(n)]
        rows, columns, values = (np.concatenate(each) for each in zip(*limits, *cones, strict=True))
        matrix = sp.csc_matrix((values, (rows, columns)), shape=(len(b), len(q)))
        return q, matrix, b, [clarabel.NonnegativeConeT(first), *kinds]

    def cold(self) -> tuple[float, float, clarabel.DefaultSolver]:
        """Return (objective, seconds, the solver) of a new solver."""
        q, matrix, b, cones = self.program()
        started = time.process_time()
        solver = clarabel.DefaultSolver(sp.csc_matrix((len(q), len(q))), q, matrix, b, cones, self.settings)
        found = solver.solve()
        return -found.obj_val, time.process_time() - started, solver

    def updated(self, solver: clarabel.DefaultSolver) -> tuple[float, float]:
        """Return (objective, seconds) of a solver that is given the new numbers."""
        q, matrix, b, _ = self.program()
        started = time.process_time()
        solver.update(q=q, A=matrix.data, b=b)
        found = solver.solve()
        return -found.obj_val, time.process_time() - started


def timed(call: Callable[[], object]) -> tuple[float, object]:
    """Return (seconds of processor time, result)."""
    started = time.process_time()
    result = call()
    return time.process_time() - started, result


def row(jobs: int, alpha: float, rounds: int, seed: int, most_peer: int) -> str:
    """Measure one row of the page."""
    load = Path("/proc/loadavg").read_text().split()[0]
    drawn, rng = Jobs.drawn(jobs, alpha, seed), np.random.default_rng(seed + 1)
    model = copter.Model(sense="max")
    for at, count in enumerate(drawn.counts.tolist()):
        model.add_resource(at, count)
    template = model.add_template({at: np.eye(TYPES)[at] for at in range(TYPES)})
    everything = np.arange(jobs)
    names = everything.tolist()
    model.add_requests(
        names, np.zeros((jobs, TYPES)), template=template, worths=drawn.worths(everything), rates=drawn.rates
    )
    session, made = copter.Session(model), jobs
    cold, first = timed(session.solve)
    peer = jobs <= most_peer
    cone, exact = Cone(drawn, 1e-6), Cone(drawn, 1e-8)
    apart, peer_cold, solver = [], float("nan"), None
    if peer:
        apart.append(difference(first.objective, exact.cold()[0]))  # type: ignore[attr-defined]
        _, peer_cold, solver = cone.cold()
    edits, solves, gaps, fresh, updates = [], [], [], [], []
    for number in range(rounds):
        which = drawn.replace(rng)

        def edit(which: NDArray[np.int64] = which, made: int = made) -> None:
            with model.batch():
                model.remove_requests([names[at] for at in which.tolist()])
                new = list(range(made, made + len(which)))
                model.add_requests(
                    new,
                    np.zeros((len(which), TYPES)),
                    template=template,
                    worths=drawn.worths(which),
                    rates=drawn.rates[which],
                )
            for at, name in zip(which.tolist(), new, strict=True):
                names[at] = name

        edits.append(timed(edit)[0])
        made += len(which)
        seconds, solution = timed(session.solve)
        if solution.status is not copter.Status.OPTIMAL:  # type: ignore[attr-defined]
            raise SystemExit(f"round {number} ended {solution.status.value}")  # type: ignore[attr-defined]
        solves.append(seconds)
        gaps.append(solution.gap)  # type: ignore[attr-defined]
        if peer:
            fresh.append(cone.cold()[1])
            updates.append(cone.updated(solver)[1])
        if peer and number == rounds - 1:
            apart.append(difference(solution.objective, exact.cold()[0]))  # type: ignore[attr-defined]
    own = float(np.median(edits) + np.median(solves))
    best = min(float(np.median(fresh)), float(np.median(updates))) if peer else float("nan")
    figures = [np.median(edits), np.median(solves), np.max(solves)]
    figures += [np.median(fresh), np.median(updates)] if peer else [np.nan, np.nan]
    cells = [f"{1e3 * each:.3g}" if np.isfinite(each) else "-" for each in figures]
    cells += [f"{best / own:.0f}" if peer else "-", f"{1e3 * cold:.0f}", f"{1e3 * peer_cold:.0f}" if peer else "-"]
    cells += [f"{max(gaps):.1e}", f"{max(apart):.1e}" if apart else "-"]
    name = "log" if alpha == 1.0 else f"power({alpha:g})"
    return f"| {name} | {jobs:,} | " + " | ".join(cells) + f" | {commit()}, {time.strftime('%Y-%m-%d')}, {load} |"


def difference(a: float, b: float) -> float:
    """Relative difference of two objectives."""
    return abs(a - b) / (1.0 + abs(b))


def commit() -> str:
    """The commit that is measured."""
    return subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    ).stdout.strip()


def main() -> None:
    """Measure the rows, and print them or write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--alpha", type=float, nargs="+", default=[1.0, 2.0], help="1 is log")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most-peer", type=int, default=10_000, help="jobs up to which Clarabel is run")
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    rows = []
    for alpha in given.alpha:
        for jobs in given.jobs:
            rows.append(row(jobs, alpha, given.rounds, given.seed, given.most_peer))
            print(rows[-1], flush=True)
    if given.page is not None:
        given.page.write_text(PAGE.format(rounds=given.rounds) + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
