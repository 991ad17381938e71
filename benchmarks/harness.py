"""One seeded sequence of edits through copter and its peers, alternating, every answer judged."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from families import Family, make_family
from families.protocol import Floats
from judge import Judged, Point, judge, plan_value
from memory import peak_rss_mb
from peers import RemotePeer
from peers.program import point_of

from copter import Session, Settings, Solution
from copter.shims import IntegerPlan

WARM_UP = 3  # rounds after the cold one that are not counted
CHECKED_EVERY_ROUND = 15_000_000  # columns above which only the last round is judged
PEER_CHECKED = 3_000_000  # columns above which the peers' points are not judged


@dataclass(frozen=True, slots=True)
class Options:
    """What to run; see rounds.py --help."""

    family: str = "sia"
    scale: int = 10_000
    churn: float = 0.01
    rounds: int = 20
    seed: int = 0
    mode: str = "full"
    rows: int | None = None
    peers: tuple[str, ...] = ()
    peer_time_limit_s: float = 120.0
    threads: int = 0
    tolerance: float = 1e-6
    time_limit_s: float = 120.0
    verbose: bool = False


@dataclass
class PeerFigures:
    """Figures of one peer; lists are of the counted rounds."""

    peer: RemotePeer
    cold_s: float = 0.0
    cold_ended: bool = False
    edit_s: list[float] = field(default_factory=list)
    solve_s: list[float] = field(default_factory=list)
    gap: list[float] = field(default_factory=list)
    residual: list[float] = field(default_factory=list)
    difference: list[float] = field(default_factory=list)
    late: int = 0
    given_up: bool = False


@dataclass
class Figures:
    """Figures of copter; lists are of the counted rounds; gaps and residuals of all rounds that were judged."""

    round_s: list[float] = field(default_factory=list)
    edit_s: list[float] = field(default_factory=list)
    solve_s: list[float] = field(default_factory=list)
    shim_s: list[float] = field(default_factory=list)
    passes: list[int] = field(default_factory=list)
    newton: list[int] = field(default_factory=list)
    gap: list[float] = field(default_factory=list)
    residual: list[float] = field(default_factory=list)
    relative_residual: list[float] = field(default_factory=list)
    integer_gap: list[float] = field(default_factory=list)
    fractional: list[int] = field(default_factory=list)
    cold_s: float = 0.0
    not_optimal: int = 0


def sparse_point(family: Family, solution: Solution) -> Point:
    """A solution of copter's in the judge's terms."""
    places, columns, values = [], [], []
    place_of = {request: place for place, request in enumerate(family.requests.tolist())}
    for request, column, x in solution.by_request():
        nonzero = x != 0
        places.append(np.full(int(nonzero.sum()), place_of[request], dtype=np.int64))
        columns.append(column[nonzero])
        values.append(x[nonzero])
    price = np.array([solution.price(row) for row in range(len(family.capacity))])
    return Point(np.concatenate(places), np.concatenate(columns).astype(np.int64), np.concatenate(values), price)


def judge_plan(family: Family, plan: IntegerPlan, judged: Judged) -> None:
    """SystemExit unless the whole plan is feasible, worth what it says, and not above the bound."""
    columns = plan.column_of_slot[[plan.slot_of[request] for request in family.requests.tolist()]]
    value = plan_value(family, columns.astype(np.int64))
    if abs(value - plan.objective) > 1e-9 * (1 + abs(value)) or value > judged.bound + 1e-6 * (1 + abs(judged.bound)):
        raise SystemExit(f"the whole plan says {plan.objective}, is worth {value}; the bound is {judged.bound}")


class Run:
    """One sequence; :meth:`run` gives the object that --json prints."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.family = make_family(
            options.family, options.scale, options.churn, options.seed, options.mode, options.rows
        )
        self.session = Session(
            self.family.model,
            Settings(
                threads=options.threads,
                tolerance=options.tolerance,
                time_limit_s=options.time_limit_s,
                purify=self.family.integer,  # a vertex is of use to the shim alone
            ),
        )
        self.figures = Figures()
        self.peers = [PeerFigures(RemotePeer(name)) for name in options.peers]

    def run(self) -> dict[str, Any]:
        """All rounds: a cold one, three to warm up, then those that count."""
        for index in range(-WARM_UP - 1, self.options.rounds):
            self.round(index)
        found = summary(self)
        for figures in self.peers:
            figures.peer.close()
        return found

    def round(self, index: int) -> None:
        """One round of copter, then of every peer."""
        family, session, figures = self.family, self.session, self.figures
        started = time.perf_counter()
        family.edit()
        edited = time.perf_counter()
        plan = session.solve_integer() if family.integer else None
        solution = session.last_solution if family.integer else session.solve()
        ended = time.perf_counter()
        assert solution is not None
        if index == -WARM_UP - 1:
            figures.cold_s = ended - started
        if index >= 0:
            figures.round_s.append(ended - started)
            figures.edit_s.append(edited - started)
            figures.solve_s.append(solution.solve_time_s)
            figures.shim_s.append(max(0.0, ended - edited - solution.solve_time_s))
            figures.passes.append(solution.pricing_passes)
            figures.newton.append(solution.iterations)
            figures.not_optimal += solution.status.value != "optimal"
            if plan is not None:
                figures.fractional.append(plan.fractional_requests)
                figures.integer_gap.append(plan.gap)
        last = index == self.options.rounds - 1
        if family.model.n_columns <= CHECKED_EVERY_ROUND or last:
            self.judge(solution, plan)
        for peer in self.peers:
            if not peer.given_up:
                self.peer_round(peer, index, solution)
        if self.options.verbose:
            self.say(index, solution, ended - started, edited - started)
        if not last:
            family.adopt(solution if plan is None else plan)
            family.prepare()

    def judge(self, solution: Solution, plan: IntegerPlan | None) -> None:
        """Have copter's answer judged."""
        judged = judge(self.family, sparse_point(self.family, solution))
        if plan is not None:
            judge_plan(self.family, plan, judged)
        self.figures.gap.append(judged.gap)
        self.figures.residual.append(judged.violation)
        self.figures.relative_residual.append(judged.relative_violation)

    def peer_round(self, figures: PeerFigures, index: int, solution: Solution) -> None:
        """The same round by a peer; one whose first solve does not end in time, and cannot be helped, is given up."""
        limit, values = self.options.peer_time_limit_s, self.family.model.n_columns <= PEER_CHECKED
        edit_s, answer = figures.peer.round(self.family, limit, values)
        if index == -WARM_UP - 1:
            figures.cold_s, figures.cold_ended = edit_s + answer.solve_s, answer.optimal
            if not answer.optimal:
                if not figures.peer.can_be_helped:
                    figures.given_up = True
                    return
                answer = figures.peer.start_from(sparse_point(self.family, solution), limit)
        if index >= 0:
            figures.edit_s.append(edit_s)
            figures.solve_s.append(answer.solve_s)
            figures.late += not answer.optimal
        if answer.optimal:
            figures.difference.append(abs(answer.objective - solution.objective) / (1 + abs(answer.objective)))
            point = point_of(self.family, answer)
            if point is not None:
                judged = judge(self.family, point)
                figures.gap.append(judged.gap)
                figures.residual.append(judged.relative_violation)

    def say(self, index: int, solution: Solution, total_s: float, edit_s: float) -> None:
        """One line on stderr."""
        rest = total_s - edit_s - solution.solve_time_s
        print(
            f"round {index}: {1e3 * total_s:.1f} ms = edit {1e3 * edit_s:.1f} + solve "
            f"{1e3 * solution.solve_time_s:.1f} + shim {1e3 * rest:.1f}; {solution.status.value}, "
            f"passes {solution.pricing_passes}, proximal {solution.proximal_steps}, newton {solution.iterations}, "
            f"working {solution.working_columns}, gap {solution.gap:.1e}"
            + "".join(
                f"; {p.peer.name} {1e3 * (p.edit_s[-1] + p.solve_s[-1]):.1f} ms" for p in self.peers if p.solve_s
            ),
            file=sys.stderr,
            flush=True,
        )


# Summing up -----------------------------------------------------------------------------------------------------------


def median(values: list[Any]) -> float | None:
    """The median, None of nothing."""
    return float(np.median(values)) if values else None


def spread(values: list[float] | Floats) -> dict[str, float]:
    """p50, p99 and max, in seconds."""
    return {
        "p50_s": float(np.median(values)),
        "p99_s": float(np.percentile(values, 99)),
        "max_s": float(np.max(values)),
    }


def copter_summary(figures: Figures) -> dict[str, Any]:
    """Copter's part."""
    return {
        **spread(figures.round_s),
        "cold_s": figures.cold_s,
        "edit_p50_s": median(figures.edit_s),
        "solve_p50_s": median(figures.solve_s),
        "shim_p50_s": median(figures.shim_s),
        "passes_p50": median(figures.passes),
        "newton_p50": median(figures.newton),
        "gap_max": max(figures.gap),
        "residual_max": max(figures.residual),
        "relative_residual_max": max(figures.relative_residual),
        "integer_gap_max": max(figures.integer_gap, default=None),
        "fractional_max": max(figures.fractional, default=None),
        "not_optimal": figures.not_optimal,
        "peak_rss_mb": peak_rss_mb(),
    }


def peer_summary(figures: PeerFigures) -> dict[str, Any]:
    """A peer's part; rounds that hit the time limit count with the time they took."""
    found: dict[str, Any] = {
        "cold_s": figures.cold_s,
        "cold_ended": figures.cold_ended,
        "peak_rss_mb": figures.peer.peak_rss_mb(),
    }
    if figures.solve_s:
        total = np.add(figures.edit_s, figures.solve_s)
        found |= {
            **spread(total),
            "edit_p50_s": median(figures.edit_s),
            "solve_p50_s": median(figures.solve_s),
            "time_limit_hit": figures.late,
            "gap_max": max(figures.gap, default=None),
            "relative_residual_max": max(figures.residual, default=None),
            "objective_rel_diff_max": max(figures.difference, default=None),
        }
    return found


def summary(run: Run) -> dict[str, Any]:
    """The object that --json prints."""
    family, options = run.family, asdict(run.options)
    copter, peers = copter_summary(run.figures), {p.peer.name: peer_summary(p) for p in run.peers}
    best = min((p["p50_s"] for p in peers.values() if "p50_s" in p), default=None)
    differences = [p["objective_rel_diff_max"] for p in peers.values() if p.get("objective_rel_diff_max") is not None]
    warm = peers.get("highs_warm")
    if warm is not None:
        peers["highs_cold"] = {"s": warm["cold_s"], "ended": warm["cold_ended"]}
    return {
        **{key: options[key] for key in ("family", "mode", "scale", "churn", "seed", "rounds")},
        "jobs": len(family.requests),
        "rows": len(family.capacity),
        "variables": family.model.n_columns,
        "nonzeros": family.nonzeros + family.model.n_columns,
        "copter": copter,
        "peers": peers,
        "ratio_to_best_peer": None if best is None else best / copter["p50_s"],
        "objective_rel_diff_max": max(differences, default=None),
    }
