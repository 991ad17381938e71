"""Fair policies on concave worths and levels, each beside its published form: the same objective, and both times.

Usage::

    COPTER_DATA=path/to/data python benchmarks/fair_policies.py --rounds 20 --page docs/results/fair_policies.md
    python benchmarks/fair_policies.py --only gavel --rounds 5

Every round one job or demand of a hundred changes. A published form is solved as published, from nothing in every
round: cone programs by Clarabel (also one solver whose numbers are updated, where the pattern stays; the better time
counts), linear programs and Shockwave's window by HiGHS, Sia's values by copter, as its own policy does. Times are
processor time; for HiGHS in another process, wall-clock time. Objectives are compared with Clarabel's at 1e-8.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from math import exp
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import clarabel
import numpy as np
import scipy.sparse as sp
from concave import commit, difference
from numpy.typing import NDArray
from scipy.optimize import linprog

import copter
from copter.problem.figures import short
from copter_frontends.policies.baselines.gavel import GavelObjective, GavelPrograms, JobFacts
from copter_frontends.policies.sia.objective import SiaObjective
from copter_frontends.traffic import NetworkFileError, TrafficFormulation, make_paths
from copter_frontends.traffic.plan import FLOOR
from copter_frontends.traffic.published import data_folder, instances
from copter_papers.opponents.shockwave import WindowJob, plan_window
from copter_papers.opponents.shockwave.true_log import plan_true_log, worth_of

Floats = NDArray[np.float64]
CHURN = 100  # one of so many changes in a round
TYPES = ("a100", "v100", "t4")
INCENTIVE = 1.1  # of Sia
PAGE = """# Fair policies beside their published forms

Made by `python benchmarks/fair_policies.py --page docs/results/fair_policies.md`, row by row (`--only` measures some
rows anew). Every round one job or demand of a hundred changes. The published form is solved from nothing in every
round, as it is published; Clarabel also with its numbers updated in place, where the better time counts. Medians over
the rounds in milliseconds of processor time; **ratio**: the published form's over copter's edits and solve; none where
copter keeps what it found and the published form begins with nothing (Gavel's). **Apart**: largest relative difference
of objectives, for cone programs from Clarabel's at 1e-8; where copter's is better (Shockwave's window, in which HiGHS
stops at its time limit) the difference counts as zero. The last column is the commit, the date, the rounds, and the
load of the machine before the row: figures of a busy machine are too high. No commercial solver was run.

| policy | size | published form | edits | solve | most | published | ratio | cold: copter | cold | apart | measured |
|---|---|---|---|---|---|---|---|---|---|---|---|
"""


@dataclass
class Row:
    """What the rounds of one policy took."""

    policy: str
    size: str
    peer: str
    alike: bool = True  # whether both keep what they found in earlier rounds, or neither does
    edits: list[float] = field(default_factory=list)
    solves: list[float] = field(default_factory=list)
    peers: list[float] = field(default_factory=list)
    apart: list[float] = field(default_factory=list)
    load: str = field(default_factory=lambda: Path("/proc/loadavg").read_text().split()[0])

    def line(self) -> str:
        """The row of the page; the first round is the cold one."""
        edit, solve, peer = (float(np.median(each[1:])) for each in (self.edits, self.solves, self.peers))
        cells = [short(1e3 * each) for each in (edit, solve, max(self.solves[1:]), peer)]
        cells += [
            short(peer / (edit + solve), 2) if self.alike else "-",
            short(1e3 * self.solves[0]),
            short(1e3 * self.peers[0]),
        ]
        cells += [
            f"{max(self.apart, default=float('nan')):.1e}",
            f"{commit()}, {time.strftime('%Y-%m-%d')}, {len(self.solves) - 1}, {self.load}",
        ]
        return " | ".join((self.key, *cells)) + " |"

    @property
    def key(self) -> str:
        """The first cells of the row's line, which no other row has."""
        return f"| {self.policy} | {self.size} | {self.peer}"


def timed(call: Callable[[], object], clock: Callable[[], float] = time.process_time) -> tuple[float, object]:
    """Return (seconds, result)."""
    started = clock()
    result = call()
    return clock() - started, result


class FlowCone:
    """Proportionally fair flows as Clarabel's program: flows of paths, then a logarithm of each pair (TE21)."""

    def __init__(self, form: TrafficFormulation, tolerance: float) -> None:
        self.form, self.settings = form, clarabel.DefaultSettings()
        self.settings.verbose = False
        self.settings.tol_gap_abs = self.settings.tol_gap_rel = self.settings.tol_feas = tolerance
        self.solver: clarabel.DefaultSolver | None = None

    def program(self) -> tuple[Floats, sp.csc_matrix, Floats, list[object]]:
        """Return (q, A, b, cones); all pairs have a demand, so that the pattern stays."""
        paths, demands = self.form.paths, self.form.demands
        p, k, m = paths.n_paths, paths.n_pairs, paths.network.n_arcs
        owner, every = paths.pair_of, np.arange(p)
        on_path = np.repeat(every, np.diff(paths.start))
        row = m + k + p + 3 * np.arange(k)
        parts = [
            (paths.arc, on_path, np.ones(len(paths.arc))), (m + owner, every, np.ones(p)),
            (m + k + every, every, -np.ones(p)), (row, p + np.arange(k), -np.ones(k)),
            (row[owner] + 2, every, -np.ones(p)),
        ]  # fmt: skip
        rows, columns, values = (np.concatenate(each) for each in zip(*parts, strict=True))
        b = np.concatenate((self.form.capacity, demands, np.zeros(p + 3 * k)))
        b[row + 1], b[row + 2] = 1.0, FLOOR * demands
        q = np.concatenate((np.zeros(p), -demands))
        matrix = sp.csc_matrix((values, (rows, columns)), shape=(len(b), len(q)))
        cones = [clarabel.NonnegativeConeT(m + k + p), *(clarabel.ExponentialConeT() for _ in range(k))]
        return q, matrix, b, cones

    def cold(self) -> tuple[float, float]:
        """Return (objective, seconds) of a new solver."""
        q, matrix, b, cones = self.program()
        started = time.process_time()
        self.solver = clarabel.DefaultSolver(sp.csc_matrix((len(q), len(q))), q, matrix, b, cones, self.settings)
        found = self.solver.solve()
        return -found.obj_val, time.process_time() - started

    def updated(self) -> float:
        """Return the seconds of the solver that is there, with the new numbers."""
        q, _, b, _ = self.program()
        assert self.solver is not None
        started = time.process_time()
        self.solver.update(q=q, b=b)
        self.solver.solve()
        return time.process_time() - started


def traffic(rounds: int, model: str, scale: float) -> Row:
    """Proportionally fair flows on GtsCe, all 22,052 pairs."""
    one = next(
        each for each in instances("total") if (each.topology, each.model, each.scale) == ("GtsCe", model, scale)
    )
    paths, rng = make_paths(one.network()), np.random.default_rng(0)
    demands = np.maximum(paths.demands_of(one.demands()), 1e-6)
    form = TrafficFormulation(paths, demands, "proportional")
    form.session = copter.Session(form.model, copter.Settings(tolerance=1e-6))  # as Clarabel's
    cone, exact = FlowCone(form, 1e-6), FlowCone(form, 1e-8)
    row = Row("proportional fair flows", f"GtsCe {model} x{scale:g}, {paths.n_pairs:,} demands", "Clarabel")
    for number in range(rounds + 1):
        if number:
            which = rng.choice(len(demands), len(demands) // CHURN, replace=False)
            demands = demands.copy()
            demands[which] *= rng.uniform(0.5, 2.0, len(which))
        row.edits.append(timed(lambda demands=demands: form.set_demands(demands))[0])  # type: ignore[misc]
        seconds, solution = timed(form.session.solve)
        row.solves.append(seconds)
        if number in (0, rounds):
            row.apart.append(difference(solution.objective, exact.cold()[0]))  # type: ignore[attr-defined]
        if number < 4:
            updated = cone.updated() if number else float("inf")
            row.peers.append(min(cone.cold()[1], updated))
    return row


def some_facts(rng: np.random.Generator) -> JobFacts:
    """A job of Gavel's."""
    rate = np.array([4.0, 2.0, 1.0]) * rng.lognormal(0.0, 0.4, 3)
    return JobFacts(
        rate, int(rng.choice([1, 2, 4])), float(rng.uniform(1e3, 1e5)), 0.0, 0.0, float(rng.uniform(0.5, 2.0))
    )


def by_highs(objective: GavelObjective, jobs: dict[str, JobFacts], counts: Floats) -> tuple[float, float]:
    """Return (level, seconds) of Gavel's own linear program for max-min fairness or makespan (B5)."""
    n, k = len(jobs), len(counts)
    facts = list(jobs.values())
    rate = np.array([each.rate for each in facts])
    if objective is GavelObjective.MAKESPAN:
        need = np.array([each.work_left for each in facts])
    else:
        need = np.array([each.weight / each.gpus for each in facts]) * (rate @ counts) / counts.sum()
    shares, job = np.arange(n * k), np.repeat(np.arange(n), k)
    gpus = np.array([each.gpus for each in facts], dtype=float)
    rows = np.concatenate((shares % k, k + job, k + n + job, k + n + np.arange(n)))
    columns = np.concatenate((shares, shares, shares, np.full(n, n * k)))
    values = np.concatenate((np.repeat(gpus, k), np.ones(n * k), -(rate / need[:, None]).ravel(), np.ones(n)))
    matrix = sp.csr_array((values, (rows, columns)), shape=(k + 2 * n, n * k + 1))
    right = np.concatenate((counts, np.ones(n), np.zeros(n)))
    seconds, found = timed(lambda: linprog(-np.eye(1, n * k + 1, n * k)[0], matrix, right, method="highs"))
    return -found.fun, seconds  # type: ignore[attr-defined]


def log_cone(jobs: dict[str, JobFacts], counts: Floats, tolerance: float) -> tuple[float, float]:
    """Return (sum of weighted logarithms, seconds) by Clarabel."""
    n, k, facts = len(jobs), len(counts), list(jobs.values())
    shares, job = np.arange(n * k), np.repeat(np.arange(n), k)
    rate, gpus = np.array([each.rate for each in facts]), np.array([each.gpus for each in facts], dtype=float)
    weight, first = np.array([each.weight for each in facts]), k + n + n * k
    row = first + 3 * np.arange(n)
    parts = [
        (shares % k, shares, np.repeat(gpus, k)), (k + job, shares, np.ones(n * k)),
        (k + n + shares, shares, -np.ones(n * k)), (row, n * k + np.arange(n), -np.ones(n)),
        (row[job] + 2, shares, -rate.ravel()),
    ]  # fmt: skip
    rows, columns, values = (np.concatenate(each) for each in zip(*parts, strict=True))
    b = np.concatenate((counts, np.ones(n), np.zeros(n * k + 3 * n)))
    b[row + 1] = 1.0
    q = np.concatenate((np.zeros(n * k), -weight))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    cones = [clarabel.NonnegativeConeT(first), *(clarabel.ExponentialConeT() for _ in range(n))]
    matrix = sp.csc_matrix((values, (rows, columns)), shape=(len(b), len(q)))
    solver = clarabel.DefaultSolver(sp.csc_matrix((len(q), len(q))), q, matrix, b, cones, settings)
    seconds, found = timed(solver.solve)
    return -found.obj_val, seconds  # type: ignore[attr-defined]


def gavel(rounds: int, objective: GavelObjective, size: int) -> Row:
    """One of Gavel's objectives; edits are part of the solve, as the policy calls it."""
    rng = np.random.default_rng(0)
    jobs = {str(at): some_facts(rng) for at in range(size)}
    counts = np.array([0.2, 0.3, 0.5]) * size
    capacity = dict(zip(TYPES, counts.astype(int).tolist(), strict=True))
    counts = np.array(list(capacity.values()), dtype=float)
    programs, made = GavelPrograms(objective, capacity), size
    is_log = objective is GavelObjective.PROPORTIONAL_FAIRNESS
    row = Row(f"Gavel, {objective.value.replace('_', ' ')}", f"{size:,} jobs", "Clarabel" if is_log else "HiGHS", False)
    for number in range(rounds + 1):
        if number:
            for name in rng.choice(list(jobs), max(size // CHURN, 1), replace=False).tolist():
                del jobs[name]
                jobs[str(made)] = some_facts(rng)
                made += 1
        seconds, found = timed(lambda: programs.solve(capacity, jobs))
        row.edits.append(0.0)
        row.solves.append(seconds)
        value, seconds = log_cone(jobs, counts, 1e-6) if is_log else by_highs(objective, jobs, counts)
        row.peers.append(seconds)
        best = log_cone(jobs, counts, 1e-8)[0] if is_log else value
        row.apart.append(abs(found.objective - best) / (abs(best) + float(is_log)))  # type: ignore[attr-defined]
    return row


def some_window_job(rng: np.random.Generator) -> WindowJob:
    """A job of Shockwave's window."""
    left, progress = float(rng.uniform(1.0, 60.0)), float(rng.choice([0.0, rng.uniform(0.0, 0.95)]))
    gpus = int(rng.choice([1, 2, 4, 8], p=[0.5, 0.2, 0.2, 0.1]))
    return WindowJob(gpus, progress, (1.0 - progress) / left, left, float(rng.uniform(20.0, 80.0)), 1.0)


def shockwave(rounds: int, size: int, exact: bool) -> Row:
    """Shockwave's window; the published form's lines, or lines at all whole numbers of rounds."""
    rng, gpus = np.random.default_rng(0), int(0.8 * size)
    jobs = [some_window_job(rng) for _ in range(size)]
    peer = "HiGHS, lines at all counts" if exact else "HiGHS, five lines"
    row = Row("Shockwave's window, true log", f"{size} jobs, 20 rounds", peer)
    for number in range(rounds + 1):
        if number:
            jobs[int(rng.integers(size))] = some_window_job(rng)
        row.edits.append(0.0)
        gap, wall = 1e-6 if exact else 1e-3, time.perf_counter
        seconds, own = timed(lambda gap=gap: plan_true_log(jobs, gpus, 20, 0.1, gap, 15.0), wall)  # type: ignore[misc]
        row.solves.append(seconds)
        seconds, peer_plan = timed(lambda gap=gap: plan_window(jobs, gpus, 20, 0.1, gap, 15.0, exact), wall)  # type: ignore[misc]
        row.peers.append(seconds)
        if own is None or peer_plan is None:  # no plan in time
            continue
        theirs = worth_of(jobs, peer_plan.runs, 0.1, peer_plan.fair)  # type: ignore[attr-defined]
        row.apart.append(max(theirs - own.objective, 0.0) / (1.0 + abs(theirs)))  # type: ignore[attr-defined]
    return row


def sia(rounds: int, size: int, power: float) -> Row:
    """Sia's values as alpha-fair worths: plans of whole configurations, by copter both times."""
    rng, sizes = np.random.default_rng(0), np.array([1, 2, 4, 8])
    objective = SiaObjective(power=power, incentive=INCENTIVE, least_value=None)
    floor = exp(-INCENTIVE) if power == 0.0 else INCENTIVE ** (1.0 / power)
    own = copter.worth.log(floor=floor) if power == 0.0 else copter.worth.power(1.0 - power, -power, floor)
    linear, concave = copter.Model(sense="max"), copter.Model(sense="max")
    for model in (linear, concave):
        model.add_resource("gpu", 2.0 * size)

    def add(name: int) -> None:
        goodput = sizes ** rng.uniform(0.3, 0.95) * rng.uniform(1.0, 3.0)
        base = objective.base(str(name), goodput, np.ones(4, dtype=bool), 1)
        linear.add_request(name, objective.values(base, 1.0), {"gpu": sizes}, integer=True)
        concave.add_request(name, 0.0, {"gpu": sizes}, integer=True, worth=own, rates=goodput / goodput.min() - floor)

    for name in range(size):
        add(name)
    published, session, made = copter.Session(linear), copter.Session(concave), size
    row = Row(f"Sia, alpha {1.0 - power:g}", f"{size:,} jobs", "Sia's values")
    for number in range(rounds + 1):
        if number:
            for name in rng.choice(list(linear.requests), max(size // CHURN, 1), replace=False).tolist():
                linear.remove_request(name)
                concave.remove_request(name)
                add(made)
                made += 1
        row.edits.append(0.0)
        seconds, plan = timed(session.solve_integer)
        row.solves.append(seconds)
        seconds, theirs = timed(published.solve_integer)
        row.peers.append(seconds)
        row.apart.append(difference(plan.objective + INCENTIVE * size, theirs.objective))  # type: ignore[attr-defined]
    return row


def rows(rounds: int, only: str) -> Iterator[Row]:
    """Measure the policies whose names contain `only`."""
    made: dict[str, Callable[[], Row]] = {}
    with suppress(NetworkFileError):
        data_folder()
        for model, scale in (("bimodal", 32.0), ("gravity", 64.0), ("poisson-high-intra", 16.0)):
            made[f"traffic {model}"] = lambda model=model, scale=scale: traffic(rounds, model, scale)  # type: ignore[misc]
    for objective in ("proportional_fairness", "max_min_fairness", "makespan"):
        made[f"gavel {objective}"] = lambda objective=objective: gavel(rounds, GavelObjective(objective), 1000)  # type: ignore[misc]
    made["shockwave lines"] = lambda: shockwave(min(rounds, 5), 20, True)
    made["shockwave published"] = lambda: shockwave(min(rounds, 5), 60, False)
    for power in (0.0, -0.5, -1.0):
        made[f"sia {power}"] = lambda power=power: sia(rounds, 500, power)  # type: ignore[misc]
    for name, make in made.items():
        if only in name:
            yield make()


def main() -> None:
    """Measure, print and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", default="", help="part of a policy's name: traffic, gavel, shockwave, sia")
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    kept = given.page.read_text().splitlines() if given.page is not None and given.page.exists() else []
    kept = [line for line in kept if line.startswith("| ")][1:]
    for row in rows(given.rounds, given.only):
        print(row.line(), flush=True)
        kept = [line for line in kept if not line.startswith(f"{row.key} |")] + [row.line()]
        if given.page is not None:
            given.page.write_text(PAGE + "\n".join(kept) + "\n")


if __name__ == "__main__":
    main()
