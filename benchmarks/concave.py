"""Rounds with concave worths: copter's session beside Clarabel, both to a gap of 1e-6.

Usage::

    python benchmarks/concave.py --jobs 1000 10000 --alpha 1 2 --rounds 20 --page docs/results/concave.md

Each job has one option for each of seven GPU types and the worth of its throughput; every round one job of a hundred
leaves and another comes. Clarabel gets the program through its own arrays, in two ways: a new solver each round, and
one solver whose numbers are updated in place (the pattern stays, because a job takes the place of another), which
saves it the symbolic factorisation. Objectives are compared with Clarabel's at 1e-8, by its first and last round.
DeDe's method (`concave_dede.py`) has a table of its own, by how near it comes and when; `--only` measures one of them.
Times are processor time of the solve; copter's edits are a column of their own. Losses stand on the page as well.
"""

from __future__ import annotations

import argparse
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import clarabel
import numpy as np
import scipy.sparse as sp
from concave_dede import DeDe
from numpy.typing import NDArray

import copter
from copter.problem.figures import short

Floats = NDArray[np.float64]
T = TypeVar("T")
TYPES = 7
CHURN = 100  # one job of so many leaves in a round
GAP, EXACT = 1e-6, 1e-8
PEER_ROUNDS = 5  # warm rounds in which Clarabel is timed
WITHIN = (1e-2, 1e-3, GAP)  # distances from the optimum at which DeDe is timed
RHOS = (0.3, 1.0, 3.0, 10.0, 30.0)  # penalties of DeDe that are tried
LIMIT_S = 5.0  # after which DeDe's round ends
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
DEDE = """
## DeDe

Made by `python benchmarks/concave.py --only dede --page docs/results/concave.md`: logarithms, the same jobs and churn,
medians over {rounds} warm rounds in milliseconds of processor time. DeDe's method, written anew (Xu et al., OSDI 2025;
`benchmarks/concave_dede.py`): GPU types and jobs alternate, each half exact and compiled, from the last round's point;
jobs that come start at the last prices. It runs until its point, made feasible, is **within** that much of Clarabel's
optimum at 1e-8 (relative difference), at most {limit:g} seconds a round; **missed** counts the rounds that were not.
It gives no bound, and so cannot tell when it is near: here it is told after every step, at no cost. **rho**: the
penalty of {rhos} that was quickest in these very rounds. **Most**: its longest round; **steps**: of a median round;
**share**: its lowest objective, of the optimum. copter and Clarabel are asked for the same gap, and prove it; edits
count for copter and DeDe. Clarabel's time is its better way's, of five rounds. **Ratio**: DeDe's time over copter's:
below one copter loses. **Cold**: the first solve; DeDe's from equal shares, with its quickest penalty there in
brackets. All run on one core; DeDe's subproblems could run on many.

| jobs | within | rho | DeDe | most | steps | share | missed | copter | Clarabel | ratio | cold: DeDe | cold: copter \
| cold: Clarabel | measured |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
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


def timed(call: Callable[[], T]) -> tuple[float, T]:
    """Return (seconds of processor time, result)."""
    started = time.process_time()
    result = call()
    return time.process_time() - started, result


class Own:
    """copter's model and session of the jobs, to a gap."""

    def __init__(self, drawn: Jobs, tolerance: float) -> None:
        self.drawn, self.model = drawn, copter.Model(sense="max")
        for at, count in enumerate(drawn.counts.tolist()):
            self.model.add_resource(at, count)
        self.template = self.model.add_template({at: np.eye(TYPES)[at] for at in range(TYPES)})
        self.names, self.made = list(range(len(drawn.weights))), 0
        self.add(np.arange(len(drawn.weights)))
        self.session = copter.Session(self.model, settings=copter.Settings(tolerance=tolerance))

    def add(self, which: NDArray[np.int64]) -> None:
        """Add requests for the jobs in these places."""
        new = list(range(self.made, self.made + len(which)))
        self.model.add_requests(
            new,
            np.zeros((len(which), TYPES)),
            template=self.template,
            worths=self.drawn.worths(which),
            rates=self.drawn.rates[which],
        )
        self.made += len(which)
        for at, name in zip(which.tolist(), new, strict=True):
            self.names[at] = name

    def edit(self, which: NDArray[np.int64]) -> None:
        """Replace the requests of the jobs in these places."""
        with self.model.batch():
            self.model.remove_requests([self.names[at] for at in which.tolist()])
            self.add(which)

    def solve(self) -> tuple[float, copter.Solution]:
        """Return (seconds, the solution)."""
        seconds, solution = timed(self.session.solve)
        if solution.status is not copter.Status.OPTIMAL:
            raise SystemExit(f"a round ended {solution.status.value}")
        return seconds, solution


def row(jobs: int, alpha: float, rounds: int, seed: int, most_peer: int) -> str:
    """Measure one row of the page."""
    load = load_now()
    drawn, rng = Jobs.drawn(jobs, alpha, seed), np.random.default_rng(seed + 1)
    own = Own(drawn, GAP)
    cold, first = own.solve()
    peer = jobs <= most_peer
    cone, exact = Cone(drawn, GAP), Cone(drawn, EXACT)
    apart, peer_cold, solver = [], float("nan"), None
    if peer:
        apart.append(difference(first.objective, exact.cold()[0]))
        _, peer_cold, solver = cone.cold()
    edits, solves, gaps, fresh, updates = [], [], [], [], []
    for number in range(rounds):
        which = drawn.replace(rng)
        edits.append(timed(lambda which=which: own.edit(which))[0])  # type: ignore[misc]
        seconds, solution = own.solve()
        solves.append(seconds)
        gaps.append(solution.gap)
        if peer:
            fresh.append(cone.cold()[1])
            updates.append(cone.updated(solver)[1])
        if peer and number == rounds - 1:
            apart.append(difference(solution.objective, exact.cold()[0]))
    spent = float(np.median(edits) + np.median(solves))
    best = min(float(np.median(fresh)), float(np.median(updates))) if peer else float("nan")
    figures = [np.median(edits), np.median(solves), np.max(solves)]
    figures += [np.median(fresh), np.median(updates)] if peer else [np.nan, np.nan]
    cells = [short(1e3 * each) if np.isfinite(each) else "-" for each in figures]
    cells += [f"{best / spent:.0f}" if peer else "-", f"{1e3 * cold:.0f}", f"{1e3 * peer_cold:.0f}" if peer else "-"]
    cells += [f"{max(gaps):.1e}", f"{max(apart):.1e}" if apart else "-"]
    name = "log" if alpha == 1.0 else f"power({alpha:g})"
    return f"| {name} | {jobs:,} | " + " | ".join(cells) + f" | {measured(load)} |"


@dataclass
class Tried:
    """DeDe with one penalty, run in every round until it is within `within` of the optimum."""

    method: DeDe
    within: float
    seconds: list[float]
    steps: list[int]
    shares: list[float]
    misses: int = 0

    def change(self, jobs: Jobs, which: NDArray[np.int64]) -> float:
        """Put the new jobs in the places of others; returns the seconds."""
        return timed(lambda: self.method.replace(which, jobs.rates[which], jobs.weights[which]))[0]

    def reach(self, optimum: float, before: float) -> None:
        """Take steps until the feasible point is near enough to the optimum, or the time is over.

        The time is that of the edits `before`, of the steps and of one repair; that DeDe looks after every step whether
        it is near costs it nothing.
        """
        spent, steps = 0.0, 0
        while spent < LIMIT_S:
            spent += timed(self.method.step)[0]
            steps += 1
            repair, (objective, _) = timed(self.method.feasible)
            if difference(objective, optimum) <= self.within:
                break
        else:
            self.misses += 1
        self.seconds.append(before + spent + repair)
        self.steps.append(steps)
        self.shares.append(objective / optimum)


def dede_rows(jobs: int, rounds: int, seed: int) -> list[str]:
    """Measure DeDe, copter and Clarabel on the same rounds of logarithms, to each of some distances."""
    load = load_now()
    drawn, rng = Jobs.drawn(jobs, 1.0, seed), np.random.default_rng(seed + 1)
    DeDe(drawn.rates[:2], drawn.weights[:2], drawn.counts, 1.0).step()  # compiled
    exact = Cone(drawn, EXACT)
    owns = {within: Own(drawn, within) for within in WITHIN}
    cones = {within: Cone(drawn, within) for within in WITHIN}
    tried = {
        within: [Tried(DeDe(drawn.rates, drawn.weights, drawn.counts, rho), within, [], [], []) for rho in RHOS]
        for within in WITHIN
    }
    spent: dict[float, list[float]] = {within: [] for within in WITHIN}
    peers: dict[float, list[tuple[float, float]]] = {within: [] for within in WITHIN}
    solvers = {}
    for number in range(rounds + 1):
        which = drawn.replace(rng) if number else np.zeros(0, dtype=np.int64)
        optimum = exact.cold()[0]
        for within in WITHIN:
            own, cone = owns[within], cones[within]
            edit = timed(lambda own=own, which=which: own.edit(which))[0] if number else 0.0  # type: ignore[misc]
            spent[within].append(edit + own.solve()[0])
            if not number:
                _, seconds, solvers[within] = cone.cold()
                peers[within].append((seconds, seconds))
            elif number <= PEER_ROUNDS:
                peers[within].append((cone.cold()[1], cone.updated(solvers[within])[1]))
            for each in tried[within]:
                each.reach(optimum, each.change(drawn, which) if number else 0.0)
    lines = []
    for within in WITHIN:
        best = min(tried[within], key=lambda each: (each.misses, float(np.median(each.seconds[1:]))))
        first = min(tried[within], key=lambda each: (each.shares[0] < 1.0 - 2.0 * within, each.seconds[0]))
        warm, own_warm = float(np.median(best.seconds[1:])), float(np.median(spent[within][1:]))
        peer_warm = float(np.median(peers[within][1:], axis=0).min())
        cells = [f"{best.method.rho:g}", short(1e3 * warm), short(1e3 * max(best.seconds[1:]))]
        cells += [f"{np.median(best.steps[1:]):.0f}", f"{100.0 * min(best.shares[1:]):.4f}%", f"{best.misses}"]
        cells += [short(1e3 * own_warm), short(1e3 * peer_warm), short(warm / own_warm, 2)]
        cells += [f"{short(1e3 * first.seconds[0])} ({first.method.rho:g})"]
        cells += [short(1e3 * each) for each in (spent[within][0], peers[within][0][0])]
        lines.append(f"| {jobs:,} | {within:g} | " + " | ".join(cells) + f" | {measured(load)} |")
    return lines


def load_now() -> str:
    """The load of the machine."""
    return Path("/proc/loadavg").read_text().split()[0]


def measured(load: str) -> str:
    """The last cell of a row: the commit, the date, the load of the machine before the row."""
    return f"{commit()}, {time.strftime('%Y-%m-%d')}, {load}"


def difference(a: float, b: float) -> float:
    """Relative difference of two objectives."""
    return abs(a - b) / (1.0 + abs(b))


def commit() -> str:
    """The commit that is measured."""
    return subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    ).stdout.strip()


def write(page: Path, rounds: int, new: list[str]) -> None:
    """Write the page with new rows; other rows of it stay."""
    old = page.read_text().splitlines() if page.exists() else []
    rows = {key(line): line for line in old if line.startswith("| ") and " | measured |" not in line}
    for line in new:
        rows[key(line)] = line
    tables = "".join(f"{line}\n" for line in rows.values() if not of_dede(line)), [*filter(of_dede, rows.values())]
    text = PAGE.format(rounds=rounds) + tables[0]
    if tables[1]:
        text += DEDE.format(rounds=rounds, limit=LIMIT_S, rhos=", ".join(f"{rho:g}" for rho in RHOS))
        text += "\n".join(tables[1]) + "\n"
    page.write_text(text)


def key(line: str) -> tuple[str, str]:
    """The first two cells of a row, which no other row has."""
    first, second = line.split("|")[1:3]
    return first.strip(), second.strip()


def of_dede(line: str) -> bool:
    """Whether a row is of the second table, which starts with numbers."""
    return key(line)[0][0].isdigit()


def main() -> None:
    """Measure the rows, and print them or write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--alpha", type=float, nargs="+", default=[1.0, 2.0], help="1 is log")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most-peer", type=int, default=10_000, help="jobs up to which Clarabel and DeDe are run")
    parser.add_argument("--only", choices=("clarabel", "dede"), help="measure one table; the other's rows stay")
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    made: list[Callable[[], list[str]]] = []
    if given.only != "dede":
        made += [
            lambda alpha=alpha, jobs=jobs: [row(jobs, alpha, given.rounds, given.seed, given.most_peer)]  # type: ignore[misc]
            for alpha in given.alpha
            for jobs in given.jobs
        ]
    if given.only != "clarabel" and 1.0 in given.alpha:
        sizes = [jobs for jobs in given.jobs if jobs <= given.most_peer]
        made += [lambda jobs=jobs: dede_rows(jobs, given.rounds, given.seed) for jobs in sizes]  # type: ignore[misc]
    for make in made:
        lines = make()
        print("\n".join(lines), flush=True)
        if given.page is not None:
            write(given.page, given.rounds, lines)


if __name__ == "__main__":
    main()
