"""Rounds of placement: many resources, requests of a few options on a few resources each, beside other solvers.

Usage::

    python benchmarks/placement.py --resources 100 300 1000 --ratios 2 10 --seconds 60

Each line is one size and kind of edit: the medians of copter's round, of HiGHS, GLOP and SoPlex from their kept bases
(told the same edits; calls of edits left out on both sides), HiGHS cold by its faster way, and the ratio of the fastest
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

import numpy as np
from numpy.typing import NDArray

from copter import Model, Session
from copter_frontends.replay.peers.answer import Limits, Peer
from copter_frontends.replay.peers.glop import GlopPeer
from copter_frontends.replay.peers.highs import WAYS, HighsPeer
from copter_frontends.replay.peers.soplex import SoplexPeer
from copter_frontends.replay.program import Program
from copter_frontends.replay.worker import Programs

Floats = NDArray[np.float64]

WARM = ("highs_dual_warm", "highs_primal_warm")
COLD = ("highs_ipm_cold", "highs_simplex_cold")
KINDS = ("count", "counts", "costs", "limits", "churn", "failed")

PAGE = """# Many resources

Made by `python benchmarks/placement.py --page docs/results/many_rows.md` on {day}, row by row. Each request has
{options} options on {each} random resources each; one count, 5% of counts, 1% of costs, of limits or of requests change
before a round, or one resource fails. HiGHS's simplex methods (dual and primal, the faster) keep their basis, at first
that of its faster cold way; GLOP and SoPlex keep theirs. All are told the same edits by their own calls, which are left
out as copter's are. Beyond 1,500 rows copter's first solve is HiGHS's in a process of its own and pivots from there.
Times are medians; **peer / copter** takes the fastest peer's rounds, or HiGHS's faster cold way where that is quicker
still; **below one copter loses**. *Stopped*: five times as long as HiGHS. Commercial solvers are not run. **Warm /
cold** is a warm round over copter's own first solve. *Apart* is the largest relative difference from HiGHS's optimum.
A line ends after its `--seconds`, and then says how many rounds it made. 30,000 resources were not run.

"""
HEAD = (
    "| resources x requests | edit | cold, ms | HiGHS cold, ms | warm, ms | HiGHS warm, ms | GLOP, ms | SoPlex, ms | "
    "peer / copter | warm / cold | by |\n|---|---|---|---|---|---|---|---|---|---|---|"
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


class Peers:
    """HiGHS in its ways, GLOP and SoPlex, each told the same edits by its own calls.

    In the first round HiGHS's cold ways solve, and its warm ways take over the basis of the faster one, GLOP and SoPlex
    solve from nothing. After it HiGHS's slower cold way is dropped; later one of the others that takes five times as
    long as HiGHS in two rounds.

    Attributes
    ----------
    times : dict of str to list of float
        Seconds of each way's solves, round by round; inf where it was stopped.
    """

    def __init__(self, limit_s: float) -> None:
        self.highs, self.limit_s = HighsPeer({name: WAYS[name] for name in (*WARM, *COLD)}), limit_s
        self.others: dict[str, Peer] = {"glop_warm": GlopPeer(), "soplex_warm": SoplexPeer()}
        self.times: dict[str, list[float]] = {}

    def first(self, program: Program) -> tuple[float, float]:
        """Solve from nothing; returns HiGHS's seconds by its faster way, and its optimum (NaN without one)."""
        found = [each for each in self.highs.round(program, Limits(self.limit_s, 2.0)) if each.optimal]
        if not found:
            return np.inf, np.nan
        best = min(found, key=lambda each: each.solve_s)
        self.highs.keep((*WARM, best.way))
        for name, peer in list(self.others.items()):
            if not peer.round(program, Limits(5.0 * best.solve_s + 0.2))[0].optimal:
                del self.others[name]
        return best.solve_s, best.objective

    def round(self, program: Program, counted: bool) -> float:
        """Follow the round's edits and solve; returns HiGHS's optimum (NaN without one)."""
        answers = self.highs.round(program, Limits(self.limit_s, 2.0))
        best = min((each.solve_s for each in answers if each.optimal), default=self.limit_s)
        optimum = next((each.objective for each in answers if each.optimal), np.nan)
        for name, peer in list(self.others.items()):
            (answer,) = peer.round(program, Limits(5.0 * best + 0.05))
            answers.append(answer)
            if not answer.optimal and np.inf in self.times.get(name, ()):
                del self.others[name]
        for each in answers if counted else ():
            self.times.setdefault(each.way, []).append(each.solve_s if each.optimal else np.inf)
        return optimum

    def median(self, *ways: str) -> float:
        """Least median of these ways, seconds; inf for one that has none."""
        return min((float(np.median(self.times[way])) for way in ways if way in self.times), default=np.inf)


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """Time of a call, and its result."""
    begin = time.perf_counter()
    found = call()
    return time.perf_counter() - begin, found


def line(resources: int, requests: int, kind: str, args: argparse.Namespace) -> str:
    """Play the rounds of one size and kind of edit; return its line of the table."""
    case = Rounds(resources, requests, args.options, args.each, args.seed)
    session, programs, peers = Session(case.model), Programs(), Peers(args.seconds)
    cold, _ = seconds(session.solve)
    peer_cold, _ = peers.first(programs.of(case.model))
    end = time.perf_counter() + args.seconds
    ours, apart, methods = [], 0.0, set()
    for k in range(args.rounds + args.warm_up):
        if time.perf_counter() > end:
            break
        case.edit(kind)
        took, solution = seconds(session.solve)
        optimum = peers.round(programs.of(case.model), k >= args.warm_up)
        if np.isfinite(optimum):
            apart = max(apart, abs(solution.objective - optimum) / (1.0 + abs(optimum)))
        if k >= args.warm_up:
            ours.append(took)
            methods.add(solution.method)
    name = f"| {resources:,} x {requests:,} | {kind} | {1e3 * cold:.1f} | {shown(peer_cold)} |"
    if not ours:
        return f"{name} - | - | - | - | - | - | out of time |"
    mine, warm, glop, soplex = (
        float(np.median(ours)),
        peers.median(*WARM),
        *map(peers.median, ("glop_warm", "soplex_warm")),
    )
    other = min(warm, glop, soplex, peers.median(*COLD), peer_cold)
    return (
        f"{name} {1e3 * mine:.2f} | {shown(warm)} | {shown(glop)} | {shown(soplex)} | {other / mine:.2f} | "
        f"{mine / cold:.3f} | {', '.join(sorted(methods))}; {len(ours)} rounds, apart {apart:.0e} |"
    )


def shown(time_s: float) -> str:
    """A peer's time in ms, or that it was stopped."""
    return f"{1e3 * time_s:.2f}" if np.isfinite(time_s) else "stopped"


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
