"""Rounds of placement: many resources, requests of a few options on a few resources each, beside HiGHS.

Usage::

    python benchmarks/placement.py --resources 100 300 1000 --ratios 2 10 --seconds 60

Each line is one size and kind of edit: the medians of copter's round, of HiGHS's dual simplex from the kept basis (told
the same edits; calls of edits left out on both sides), of HiGHS cold by its faster way, and the ratio of the fastest
peer's time to copter's; ratios below one are losses. A size that exceeds `--seconds` for its rounds is cut short, and
says how many it made. `--page docs/results/many_rows.md` writes the page, row by row: rows of other sizes and kinds
that it has stay.
"""

from __future__ import annotations

import argparse
import datetime
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from copter import LinearProgram, Model, Session

Floats = NDArray[np.float64]

KINDS = ("count", "counts", "costs", "limits", "churn", "failed")

PAGE = """# Many resources

Made by `python benchmarks/placement.py --page docs/results/many_rows.md` on {day}, row by row. Each request has
{options} options on {each} random resources each; one count, 5% of counts, 1% of costs, of limits or of requests change
before a round, or one resource fails. HiGHS's dual simplex keeps its basis, at first that of its faster way. It is told
the same edits (rows and columns of requests that come and go are deleted and added); calls of edits are left out on
both sides. Beyond 1,500 rows copter's first solve is HiGHS's in a process of its own and pivots from there. Times are
medians; **peer / copter** takes HiGHS's warm rounds, or its first solve where that is quicker still; **below one copter
loses**. GLOP, SoPlex and commercial solvers are not run. **Warm / cold** is a warm round over copter's own first
solve. *Apart* is the largest relative difference of objectives. A line ends after its `--seconds` (15; 60 from 10,000
resources on), and then says how many rounds it made. 30,000 resources were not run.

"""
HEAD = (
    "| resources x requests | edit | cold, ms | HiGHS cold, ms | warm, ms | HiGHS warm, ms | peer / copter | "
    "warm / cold | by |\n|---|---|---|---|---|---|---|---|---|"
)


class Rounds:
    """One model and its edits: `options` options a request on `each` resources."""

    def __init__(self, resources: int, requests: int, options: int, each: int, seed: int) -> None:
        self.rng, self.resources, self.options, self.each = np.random.default_rng(seed), resources, options, each
        self.model, self.alive = Model(sense="max"), list(range(requests))
        self.given: dict[int, tuple[Floats, dict[int, list[float]]]] = {}  # worths and usage of each request
        for i in range(resources):
            self.model.add_resource(i, float(self.rng.integers(2, 9)))
        for j in self.alive:
            self.add(j)
        self.made = requests
        self.gone: list[int] = []  # places of the requests that the last edit removed

    def add(self, name: int) -> None:
        """Add a request."""
        used: dict[int, list[float]] = {}
        for option in range(self.options):
            for i in self.rng.integers(0, self.resources, self.each):
                used.setdefault(int(i), [0.0] * self.options)[option] += float(self.rng.integers(1, 4))
        self.given[name] = self.worth(), used
        self.model.add_request(name, *self.given[name])

    def worth(self) -> Floats:
        """Worths of a request's options."""
        return self.rng.integers(5, 50, self.options).astype(float)

    def edit(self, kind: str) -> None:
        """One count, 5% of counts, 1% of costs, of limits, of requests, or one resource that fails or comes back."""
        some = self.rng.choice(len(self.alive), max(len(self.alive) // 100, 1), replace=False)
        if kind in ("count", "counts", "failed"):
            share = max(self.resources // 20, 1) if kind == "counts" else 1
            for i in self.rng.choice(self.resources, share, replace=False):
                self.model.set_count(int(i), 0.0 if kind == "failed" else float(self.rng.integers(2, 9)))
            return
        for at in some:
            if kind == "costs":
                self.model.update_cost(self.alive[at], self.worth())
            elif kind == "limits":
                self.model.update_limit(self.alive[at], float(self.rng.integers(0, 2)))
            else:
                self.model.remove_request(self.alive[at])
        if kind == "churn":
            self.gone = [int(at) for at in some]
            self.alive = [name for at, name in enumerate(self.alive) if at not in set(self.gone)]
            for _ in some:
                self.alive.append(self.made)
                self.add(self.made)
                self.made += 1


class Highs:
    """One HiGHS object that is told what changed."""

    def __init__(self, lp: LinearProgram, limit_s: float, **options: Any) -> None:
        self.solver, self.lp, self.limit_s = highspy.Highs(), lp, limit_s
        self.solver.setOptionValue("output_flag", False)
        self.solver.setOptionValue("threads", 1)
        self.solver.setOptionValue("time_limit", limit_s)
        for name, value in options.items():
            self.solver.setOptionValue(name, value)
        self.solver.passModel(given(lp))

    def replace_requests(self, case: Rounds, gone: list[int]) -> None:
        """Delete rows and columns of the requests at these places, and add those of the case's last ones at the end.

        The program has the resources' rows first; rows and columns of requests are in one order.
        """
        solver, each, rows = self.solver, case.options, case.resources
        solver.setOptionValue("time_limit", solver.getRunTime() + self.limit_s)
        places = np.sort(np.array(gone, dtype=np.int32))
        columns = (places[:, None] * each + np.arange(each)).ravel().astype(np.int32)
        solver.deleteCols(len(columns), columns)
        solver.deleteRows(len(places), rows + places)
        left = solver.getNumCol()
        for place, name in enumerate(range(case.made - len(gone), case.made)):
            worth, used = case.given[name]
            for option in range(each):
                entries = [(i, use[option]) for i, use in used.items() if use[option]]
                index = np.array([i for i, _ in entries], dtype=np.int32)
                solver.addCol(worth[option], 0.0, np.inf, len(index), index, np.array([value for _, value in entries]))
            own = np.arange(left + place * each, left + (place + 1) * each, dtype=np.int32)
            solver.addRow(-np.inf, 1.0, each, own, np.ones(each))

    def follow(self, lp: LinearProgram) -> None:
        """Take over another program's numbers; its time limit is that of the next run alone."""
        self.solver.setOptionValue("time_limit", self.solver.getRunTime() + self.limit_s)
        if lp.A is not self.lp.A and (lp.shape != self.lp.shape or (lp.A != self.lp.A).nnz):
            self.solver.passModel(given(lp))
        else:
            rows = np.flatnonzero((lp.row_upper != self.lp.row_upper) | (lp.row_lower != self.lp.row_lower))
            if len(rows):
                self.solver.changeRowsBounds(len(rows), rows.astype(np.int32), lp.row_lower[rows], lp.row_upper[rows])
            columns = np.flatnonzero(lp.c != self.lp.c)
            if len(columns):
                self.solver.changeColsCost(len(columns), columns.astype(np.int32), lp.c[columns])
            columns = np.flatnonzero((lp.col_upper != self.lp.col_upper) | (lp.col_lower != self.lp.col_lower))
            if len(columns):
                low, high = lp.col_lower[columns], lp.col_upper[columns]
                self.solver.changeColsBounds(len(columns), columns.astype(np.int32), low, high)
        self.lp = lp

    def took(self) -> float:
        """Seconds of a solve; where HiGHS reports an error from its basis, of the one without it; inf if none ends."""
        took, _ = seconds(self.solver.run)
        if self.solver.getModelStatus() == highspy.HighsModelStatus.kNotset:
            self.solver.clearSolver()
            took, _ = seconds(self.solver.run)
        return took if self.solver.getModelStatus() == highspy.HighsModelStatus.kOptimal else np.inf


def given(lp: LinearProgram) -> highspy.HighsLp:
    """The program as HiGHS takes it."""
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = lp.shape
    model.col_cost_, model.col_lower_, model.col_upper_ = lp.c, lp.col_lower, lp.col_upper
    model.row_lower_, model.row_upper_ = lp.row_lower, lp.row_upper
    model.sense_ = highspy.ObjSense.kMaximize if lp.sense == "max" else highspy.ObjSense.kMinimize
    matrix = lp.A.tocsc()
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_, model.a_matrix_.index_, model.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
    return model


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """Time of a call, and its result."""
    begin = time.perf_counter()
    found = call()
    return time.perf_counter() - begin, found


def line(resources: int, requests: int, kind: str, args: argparse.Namespace) -> str:
    """Play the rounds of one size and kind of edit; return its line of the table."""
    case = Rounds(resources, requests, args.options, args.each, args.seed)
    session, lp = Session(case.model), case.model.to_linear_program()
    end = time.perf_counter() + args.seconds
    cold, _ = seconds(session.solve)
    inside = Highs(lp, args.seconds, solver="ipm")
    peer_cold, _ = seconds(inside.solver.run)
    peer = Highs(lp, min(args.seconds, 2.0 * peer_cold))
    took, _ = seconds(peer.solver.run)
    if peer.solver.getModelStatus() == highspy.HighsModelStatus.kOptimal:
        peer_cold = min(peer_cold, took)
    else:  # pivots go on from the basis of interior points and crossover
        peer.solver.setBasis(inside.solver.getBasis())
    peer.limit_s = args.seconds
    ours, theirs, apart, methods = [], [], 0.0, set()
    for k in range(args.rounds + args.warm_up):
        if time.perf_counter() > end:
            break
        case.edit(kind)
        took, solution = seconds(session.solve)
        if kind == "churn":
            peer.replace_requests(case, case.gone)
        else:
            peer.follow(case.model.to_linear_program())
        peer_took = peer.took()
        best = peer.solver.getInfo().objective_function_value
        if peer.solver.getModelStatus() == highspy.HighsModelStatus.kOptimal:
            apart = max(apart, abs(solution.objective - best) / (1.0 + abs(best)))
        if k >= args.warm_up:
            ours.append(took)
            theirs.append(peer_took)
            methods.add(solution.method)
    name = f"| {resources:,} x {requests:,} | {kind} | {1e3 * cold:.1f} | {1e3 * peer_cold:.1f} |"
    if not ours:
        return f"{name} - | - | - | - | out of time |"
    mine, other = float(np.median(ours)), min(float(np.median(theirs)), peer_cold)
    return (
        f"{name} {1e3 * mine:.2f} | {1e3 * float(np.median(theirs)):.2f} | {other / mine:.2f} | {mine / cold:.3f} | "
        f"{', '.join(sorted(methods))}; {len(ours)} rounds, apart {apart:.0e} |"
    )


def rows_of(page: Path) -> dict[tuple[int, int, int], str]:
    """The rows that a page has, by resources, requests and place of the kind of edit."""
    rows = {}
    for row in page.read_text(encoding="utf-8").splitlines() if page.exists() else ():
        found = re.match(r"\| ([\d,]+) x ([\d,]+) \| (\w+) \|", row)
        if found:
            resources, requests = (int(figure.replace(",", "")) for figure in found.groups()[:2])
            rows[resources, requests, KINDS.index(found[3])] = row
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--resources", type=int, nargs="+", default=[100, 300, 400, 500, 1000, 3000, 10000, 30000])
    parser.add_argument("--ratios", type=int, nargs="+", default=[2, 10], help="requests for each resource")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--options", type=int, default=3)
    parser.add_argument("--each", type=int, default=2, help="resources that an option uses")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--warm-up", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=120.0, help="most time for one line")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", type=Path, help="write the rows to this page as well")
    args = parser.parse_args()
    rows = {} if args.page is None else rows_of(args.page)
    print(HEAD)
    for resources in args.resources:
        for ratio in args.ratios:
            for kind in args.kinds:
                row = line(resources, ratio * resources, kind, args)
                rows[resources, ratio * resources, KINDS.index(kind)] = row
                print(row, flush=True)
                if args.page is not None:
                    day = datetime.date.today().isoformat()
                    intro = PAGE.format(day=day, options=args.options, each=args.each)
                    text = "\n".join((HEAD, *(rows[place] for place in sorted(rows))))
                    args.page.write_text(intro + text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
