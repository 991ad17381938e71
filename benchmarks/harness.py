"""One seeded sequence of edits through copter and its peers, alternating, every answer judged."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from families import Family, Instance, make_family
from families.protocol import Outcome, SolverOptions
from families.verdicts import judge_outcome
from judge import Judged, judge
from memory import fresh_peak_mb, peak_rss_mb
from peers import Answer, Limits, RemotePeer

from copter_frontends.replay.program import Floats, Program

WARM_UP = 3  # rounds after the cold one that are not counted; the peers' ways are tried in them
AS_ARRAYS = 15_000_000  # columns above which peers are not given the program, and only the last round is judged
PEER_CHECKED = 3_000_000  # columns above which the peers' points are not judged
COMPARABLE = 2.0  # tolerances by which a peer's points may be off
NEARLY_BEST = 1.25  # the second-best way goes on too if it is within this of the best in the warm-up


@dataclass(frozen=True, slots=True)
class Options:
    """What to run; see rounds.py --help."""

    family: str = "sia"
    instance: Instance = field(default_factory=lambda: Instance(10_000))
    rounds: int = 20
    peers: tuple[str, ...] = ()
    limits: Limits = field(default_factory=lambda: Limits(120.0))
    solver: SolverOptions = field(default_factory=SolverOptions)
    verbose: bool = False


@dataclass
class Figures:
    """Figures of copter; times are of the counted rounds, gaps and residuals of all rounds that were judged."""

    round_s: list[float] = field(default_factory=list)
    processor_s: list[float] = field(default_factory=list)
    edit_s: list[float] = field(default_factory=list)
    solve_s: list[float] = field(default_factory=list)
    shim_s: list[float] = field(default_factory=list)
    passes: list[int] = field(default_factory=list)
    iterations: list[int] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)
    integer_gap: list[float] = field(default_factory=list)
    fractional: list[int] = field(default_factory=list)
    cold_s: float = 0.0
    cold_processor_s: float = 0.0
    cold_lp_s: float | None = None  # without the shim, as HiGHS's
    peak_rss_mb: float = 0.0
    not_optimal: int = 0

    def note(self, times: tuple[float, float, float], processor_s: float, outcome: Outcome) -> None:
        """Write a counted round down; `times` are of the start, of the end of the edits and of the end."""
        started, edited, ended = times
        self.round_s.append(ended - started)
        self.processor_s.append(processor_s)
        self.edit_s.append(edited - started)
        self.solve_s.append(outcome.solve_s)
        self.shim_s.append(max(0.0, ended - edited - outcome.solve_s))
        self.passes.append(outcome.passes)
        self.iterations.append(outcome.iterations)
        self.not_optimal += outcome.status != "optimal"
        if outcome.plan is not None:
            self.fractional.append(outcome.plan.fractional)
            self.integer_gap.append(outcome.plan.gap)


@dataclass
class WayFigures:
    """Figures of one way of a peer."""

    cold_s: float | None = None
    cold_ended: bool = False
    trial_s: list[float] = field(default_factory=list)
    trial_ended: list[bool] = field(default_factory=list)
    edit_s: list[float] = field(default_factory=list)
    solve_s: list[float] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)
    difference: list[float] = field(default_factory=list)
    value: list[float] = field(default_factory=list)  # of the objective, over copter's plan
    late: int = 0
    status: str = ""
    dropped: str | None = None

    def note(self, index: int, answer: Answer) -> None:
        """Write a round's times down."""
        self.status = answer.status
        if index < -WARM_UP:
            self.cold_s, self.cold_ended = answer.total_s, answer.optimal
        elif index < 0:
            self.trial_s.append(answer.total_s)
            self.trial_ended.append(answer.optimal)
        else:
            self.edit_s.append(answer.edit_s)
            self.solve_s.append(answer.solve_s)
            self.late += not answer.optimal

    @property
    def tried_s(self) -> float:
        """Mean seconds of the warm-up rounds (the cold one where there are no others); infinite if one did not end."""
        if not self.trial_s:
            return self.cold_s if self.cold_s is not None and self.cold_ended else np.inf
        return float(np.mean(self.trial_s)) if all(self.trial_ended) else np.inf


class PeerRun:
    """One peer, and how each of its ways does.

    Parameters
    ----------
    name : str
        As for :func:`peers.make_peer`.
    options : Options
    """

    def __init__(self, name: str, options: Options) -> None:
        self.options, self.remote = options, RemotePeer(name)
        self.integer = name.endswith("milp")
        self.figures = {way: WayFigures() for way in self.remote.ways}

    def round(self, index: int, family: Family, program: Program, outcome: Outcome) -> None:
        """The same round by the peer, in every way that it still has; then it loses those that will not do."""
        if not self.remote.ways:
            return
        values = program.shape[1] <= PEER_CHECKED
        answers, needs_start = self.remote.round(program, self.options.limits, values)
        for answer in answers:
            figures = self.figures[answer.way]
            figures.note(index, answer)
            self.compare(figures, program, answer, outcome)
        if needs_start:
            self.remote.start_from(*family.point(outcome))  # no cold solve found a basis in time
        if index < 0:
            self.select(index)

    def compare(self, figures: WayFigures, program: Program, answer: Answer, outcome: Outcome) -> None:
        """Judge an answer's point, and compare its objective."""
        if outcome.plan is not None and np.isfinite(answer.objective):
            figures.value.append(answer.objective / outcome.plan.objective)
        if not answer.optimal:
            return
        if not self.integer:
            figures.difference.append(abs(answer.objective - outcome.objective) / (1.0 + abs(answer.objective)))
        if answer.x is not None and answer.y is not None and not self.integer:
            figures.judged.append(judge(program, answer.x, answer.y))

    def select(self, index: int) -> None:
        """Drop ways that took over five times as long as the best; then, after the warm-up, all but the best."""
        kept = {way: self.figures[way] for way in self.remote.ways}
        tolerance = self.options.solver.tolerance
        for figures in kept.values():
            worst = max((judged.residual for judged in figures.judged), default=0.0)
            if worst > COMPARABLE * tolerance and not self.integer:
                figures.dropped = f"its points are off by {worst:.0e}, above the tolerance"
            elif figures.trial_ended and not figures.trial_ended[-1] and not self.integer:
                figures.dropped = f"{figures.status} after {figures.trial_s[-1]:.2g} s"
        left = {way: figures for way, figures in kept.items() if figures.dropped is None}
        if index == -1 and left and not self.integer:
            ranked = sorted(left.values(), key=lambda figures: figures.tried_s)
            for place, figures in enumerate(ranked):
                if place > 1 or not figures.tried_s <= NEARLY_BEST * ranked[0].tried_s:
                    figures.dropped = "slower than the best in the warm-up"
        if index == -WARM_UP - 1 and not any(figures.cold_ended for figures in left.values()) and len(left) == 1:
            next(iter(left.values())).dropped = "its first solve did not end in time"
        ways = tuple(way for way, figures in left.items() if figures.dropped is None)
        if ways != self.remote.ways:
            self.remote.keep(ways)


class Run:
    """One sequence; :meth:`run` gives the object that --json prints."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.family = make_family(options.family, options.instance)
        self.solver = self.family.solver(options.solver)
        self.figures = Figures()
        self.peers = [PeerRun(name, options) for name in options.peers]

    def run(self) -> dict[str, Any]:
        """All rounds: a cold one, three to warm up, then those that count."""
        for index in range(-WARM_UP - 1, self.options.rounds):
            self.round(index)
        found = summary(self)
        for peer in self.peers:
            peer.remote.close()
        return found

    def round(self, index: int) -> None:
        """One round of copter, then of every peer."""
        family, figures, last = self.family, self.figures, index == self.options.rounds - 1
        fresh_peak_mb()  # what judge and peers' arrays took is not copter's
        processor, started = time.process_time(), time.perf_counter()
        family.edit()
        edited = time.perf_counter()
        outcome = self.solver.solve()
        ended, processor = time.perf_counter(), time.process_time() - processor
        figures.peak_rss_mb = max(figures.peak_rss_mb, peak_rss_mb())
        if index == -WARM_UP - 1:
            figures.cold_s, figures.cold_processor_s = ended - started, processor
            figures.cold_lp_s = edited - started + outcome.solve_s
        if index >= 0:
            figures.note((started, edited, ended), processor, outcome)
        few = family.counts["variables"] <= AS_ARRAYS
        if self.peers and few:
            program = family.program()
            figures.judged.append(judge_outcome(family, program, outcome))
            for peer in self.peers:
                peer.round(index, family, program, outcome)
        elif few or last:
            figures.judged.append(family.judged_in_parts(outcome))
        if self.options.verbose:
            self.say(index, outcome, (started, edited, ended))
        if not last:
            family.adopt(outcome)
            family.prepare()

    def say(self, index: int, outcome: Outcome, times: tuple[float, float, float]) -> None:
        """One line on stderr."""
        started, edited, ended = times
        gap = f", gap {self.figures.judged[-1].gap:.1e}" if self.figures.judged else ""
        line = (
            f"round {index}: {1e3 * (ended - started):.1f} ms = edit {1e3 * (edited - started):.1f} + solve "
            f"{1e3 * outcome.solve_s:.1f} + shim {1e3 * (ended - edited - outcome.solve_s):.1f}; {outcome.status}, "
            f"passes {outcome.passes}, iterations {outcome.iterations}{gap}"
        )
        for peer in self.peers:
            for way in peer.remote.ways:
                line += f"; {way} {1e3 * last_s(peer.figures[way]):.1f} ms"
        print(line, file=sys.stderr, flush=True)


def last_s(figures: WayFigures) -> float:
    """Seconds of a way's last round."""
    if figures.solve_s:
        return figures.edit_s[-1] + figures.solve_s[-1]
    return figures.trial_s[-1] if figures.trial_s else figures.cold_s or 0.0


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


def worst(judged: list[Judged]) -> dict[str, float | None]:
    """Largest gap and residuals that the judge found."""
    return {
        "gap_max": max((j.gap for j in judged), default=None),
        "residual_max": max((max(j.primal_absolute, j.dual_absolute) for j in judged), default=None),
        "relative_residual_max": max((max(j.primal, j.dual) for j in judged), default=None),
    }


def copter_summary(figures: Figures) -> dict[str, Any]:
    """Copter's part."""
    return {
        **spread(figures.round_s),
        "processor_p50_s": median(figures.processor_s),
        "processor_p99_s": float(np.percentile(figures.processor_s, 99)) if figures.processor_s else None,
        "cold_s": figures.cold_s,
        "cold_processor_s": figures.cold_processor_s,
        "cold_lp_s": figures.cold_lp_s,
        "lp_p50_s": median(np.add(figures.edit_s, figures.solve_s).tolist()),
        "edit_p50_s": median(figures.edit_s),
        "solve_p50_s": median(figures.solve_s),
        "shim_p50_s": median(figures.shim_s),
        "passes_p50": median(figures.passes),
        "newton_p50": median(figures.iterations),
        **worst(figures.judged),
        "integer_gap_max": max(figures.integer_gap, default=None),
        "fractional_max": max(figures.fractional, default=None),
        "not_optimal": figures.not_optimal,
        "peak_rss_mb": figures.peak_rss_mb,
    }


def way_summary(figures: WayFigures) -> dict[str, Any]:
    """A way's part; rounds that hit the time limit count with the time they took."""
    found: dict[str, Any] = {
        "cold_s": figures.cold_s,
        "cold_ended": figures.cold_ended,
        "trial_s": figures.trial_s,
        "dropped": figures.dropped,
        "objective_rel_diff_max": max(figures.difference, default=None),
        "value_over_plan_p50": median(figures.value),
        **worst(figures.judged),
    }
    if figures.solve_s:
        total = np.add(figures.edit_s, figures.solve_s)
        found |= {
            **spread(total),
            "edit_p50_s": median(figures.edit_s),
            "solve_p50_s": median(figures.solve_s),
            "time_limit_hit": figures.late,
        }
    return found


def summary(run: Run) -> dict[str, Any]:
    """The object that --json prints."""
    options, instance = run.options, run.options.instance
    copter = copter_summary(run.figures)
    peers = {way: way_summary(f) for peer in run.peers for way, f in peer.figures.items()}
    memory = {peer.remote.name: peer.remote.peak_rss_mb() for peer in run.peers}
    linear = {way: peers[way] for peer in run.peers if not peer.integer for way in peer.figures}
    counted = {way: figures["p50_s"] for way, figures in linear.items() if "p50_s" in figures}
    best = min(counted, key=lambda way: counted[way]) if counted else None
    cold = [f["cold_s"] for f in linear.values() if f["cold_s"] is not None and f["cold_ended"]]
    differences = [f["objective_rel_diff_max"] for f in linear.values() if f["objective_rel_diff_max"] is not None]
    change = instance.change or type(run.family).changes[0]
    return {
        "family": options.family,
        "mode": instance.mode,
        "scale": instance.scale,
        "change": change,
        "churn": Instance(1, change, instance.amount).churn,
        "seed": instance.seed,
        "rounds": options.rounds,
        "tolerance": options.solver.tolerance,
        "method": options.solver.method,
        **run.family.counts,
        "copter": copter,
        "peers": peers,
        "peers_peak_rss_mb": memory,
        "best_peer": best,
        "best_peer_p50_s": None if best is None else counted[best],
        "best_peer_cold_s": min(cold, default=None),
        "ratio_to_best_peer": None if best is None else counted[best] / copter["p50_s"],
        "cold_ratio_to_best_peer": min(cold) / copter["cold_s"] if cold else None,
        "lp_ratio_to_best_peer": None if best is None else counted[best] / copter["lp_p50_s"],
        "cold_lp_ratio_to_best_peer": min(cold) / copter["cold_lp_s"] if cold else None,
        "objective_rel_diff_max": max(differences, default=None),
    }
