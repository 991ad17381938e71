"""One seeded sequence of edits, recorded on a tape and replayed through copter and its peers, every answer judged."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from families import Instance, make_family
from families.protocol import Outcome, SolverOptions

from copter.runtime.errors import SnapshotError
from copter.storage.tape import recorded
from copter_frontends.replay.peers import HIGHS_WAYS, MILP_WAY, PEERS
from copter_frontends.replay.runs import Asked, Run, run_copter, run_peer

WARM_UP = 3  # rounds after the cold one that are not counted; the peers' ways are tried in them
BUDGET = 2.0  # time limits of one solve that a peer has for the whole tape of a product
COMPARABLE = 2.0  # tolerances by which a peer's points may be off
NEARLY_BEST = 1.25  # the second-best way goes on too if it is within this of the best in the warm-up
WAYS = {
    "highs": HIGHS_WAYS,
    "highs-milp": (MILP_WAY,),
    "glop": PEERS["glop"][1],
    "pdlp": PEERS["pdlp"][1],
    "soplex": PEERS["soplex"][1],
}
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Options:
    """What to run; see rounds.py --help."""

    family: str = "sia"
    instance: Instance = field(default_factory=lambda: Instance(10_000))
    rounds: int = 20
    peers: tuple[str, ...] = ()
    time_limit_s: float = 120.0  # of one solve of a peer
    solver: SolverOptions = field(default_factory=SolverOptions)
    verbose: bool = False
    judged: int | None = None  # last rounds that are judged part after part; None: the verifier judges every round

    def say(self, run: Run) -> None:
        """A line a round on stderr."""
        for row in run.rows if self.verbose else ():
            stages = " + ".join(f"{each} {1e3 * row[f'{each}_s']:.1f}" for each in ("edit", "solve", "shim"))
            print(
                f"round {row['round'] - WARM_UP - 1}: {run.solver} {1e3 * row['total_s']:.1f} ms = {stages}; "
                f"{row['status']}, gap {row['gap']:.1e}",
                file=sys.stderr,
                flush=True,
            )


class Rounds:
    """One sequence; :meth:`run` gives the object that --json prints.

    Raises
    ------
    ValueError
        No such family, change or scale.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.family = make_family(options.family, options.instance)
        self.outcomes: list[Outcome] = []

    def run(self) -> dict[str, Any]:
        """All rounds: a cold one, three to warm up, then those that count."""
        with tempfile.TemporaryDirectory() as folder:
            tape = Path(folder) / f"{self.options.family}.tape"
            self.record(tape)
            asked = Asked(str(tape), threads=self.options.solver.threads or None)
            asked = replace(asked, peer_time_limit_s=self.options.time_limit_s, judged=self.options.judged is None)
            self.options.say(copter := complete(run_judged(asked), asked))
            peers = {name: self.replayed(name, asked) for name in self.options.peers}
        return self.summary(copter, peers)

    def record(self, tape: Path) -> None:
        """Make the tape."""
        solver, last = self.family.solver(self.options.solver), WARM_UP + self.options.rounds
        with recorded(tape):
            for index in range(last + 1):
                self.family.edit()
                self.outcomes.append(solver.solve())
                if last - index < (self.options.judged or 0):
                    self.family.judged_in_parts(self.outcomes[-1])
                if index < last:
                    self.family.adopt(self.outcomes[-1])
                    self.family.prepare()

    def replayed(self, name: str, asked: Asked) -> dict[str, tuple[Run, str | None]]:
        """A peer's ways, each with why it was not played to the end: all try the warm-up, the best go on."""
        tried = {way: run_peer(way, replace(asked, last=WARM_UP + 1)) for way in WAYS[name]}
        dropped = {way: why_dropped(run, tried, self.options.solver.tolerance) for way, run in tried.items()}
        found = {way: (run if dropped[way] else run_peer(way, asked), dropped[way]) for way, run in tried.items()}
        for run, _ in found.values():
            self.options.say(run)
        return {way: (run, why or run.ended) for way, (run, why) in found.items()}

    def summary(self, copter: Run, peers: dict[str, dict[str, tuple[Run, str | None]]]) -> dict[str, Any]:
        """The object that --json prints."""
        options, instance = self.options, self.options.instance
        own = copter_summary(copter, self.outcomes)
        if options.judged is not None:
            own["verified"] = min(options.judged, len(self.outcomes))  # a wrong answer has ended the run
        plans = [outcome.plan.objective if outcome.plan else np.nan for outcome in self.outcomes]
        ways = {way: way_summary(*found, plans, copter) for several in peers.values() for way, found in several.items()}
        change = instance.change or type(self.family).changes[0]
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
            **self.family.counts,
            **compared(own, ways, peers),
        }


LESS = "; --judge N judges the last N rounds only, part after part, and takes less memory"


def run_judged(asked: Asked) -> Run:
    """copter's replay; ValueError with what takes less memory if it cannot be judged."""
    try:
        return run_copter(asked)
    except SnapshotError as error:
        raise ValueError(f"{error}{LESS}") from error


def complete(run: Run, asked: Asked) -> Run:
    """The run; ValueError with its reason if it ended before its last round."""
    if run.ended is None:
        return run
    less = LESS if asked.judged else ""
    raise ValueError(f"copter's replay ended after {len(run.rows)} rounds: {run.ended}{less}")


def of_tape(tape: str, options: Options) -> dict[str, Any]:
    """What --json prints of the rounds on a tape: the product's own, of which no round is like the others.

    All ways play it to its end, or for `BUDGET` time limits: a few rounds do not tell which one is the best.
    """
    threads, limit = options.solver.threads or None, options.time_limit_s
    asked = Asked(tape, last=WARM_UP + 1 + options.rounds, threads=threads, peer_time_limit_s=limit)
    options.say(copter := complete(run_copter(asked), asked))
    if len(copter.rows) <= WARM_UP + 1:
        raise ValueError(f"{tape} has {len(copter.rows)} rounds: it must have more than {WARM_UP + 1}")
    peers: dict[str, dict[str, tuple[Run, str | None]]] = {}
    for name in options.peers:
        runs = {way: run_peer(way, replace(asked, peer_budget_s=BUDGET * limit)) for way in WAYS[name]}
        peers[name] = {way: (run, None if run.rows else run.ended) for way, run in runs.items()}
        for run in runs.values():
            options.say(run)
    ways = {way: way_summary(*found, [], copter) for several in peers.values() for way, found in several.items()}
    sizes = {"rounds": len(copter.rows) - WARM_UP - 1, "variables": max(row["columns"] for row in copter.rows)}
    return sizes | compared(copter_summary(copter, []), ways, peers)


def compared(
    own: dict[str, Any], ways: dict[str, dict[str, Any]], peers: dict[str, dict[str, tuple[Run, str | None]]]
) -> dict[str, Any]:
    """What --json prints of copter beside its peers."""
    linear = {way: figures for way, figures in ways.items() if way != MILP_WAY}
    counted = {way: figures["p50_s"] for way, figures in linear.items() if figures.get("p50_s") is not None}
    totals = {way: figures["sum_ratio"] for way, figures in linear.items() if figures.get("sum_ratio") is not None}
    best = min(counted, key=lambda way: counted[way]) if counted else None
    best_by_sum = min(totals, key=lambda way: totals[way]) if totals else None
    cold = [figures["cold_s"] for figures in linear.values() if figures["cold_ended"]]
    return {
        "copter": own,
        "peers": ways,
        "peers_peak_rss_mb": {
            name: most([row["peak_rss_mb"] for run, _ in several.values() for row in run.rows])
            for name, several in peers.items()
        },
        "best_peer": best,
        "best_peer_p50_s": None if best is None else counted[best],
        "best_peer_cold_s": min(cold, default=None),
        "best_peer_by_sum": best_by_sum,
        "sum_ratio_to_best_peer": None if best_by_sum is None else totals[best_by_sum],
        "ratio_to_best_peer": None if best is None else counted[best] / own["p50_s"],
        "cold_ratio_to_best_peer": min(cold) / own["cold_s"] if cold else None,
        "lp_ratio_to_best_peer": None if best is None else counted[best] / own["lp_p50_s"],
        "cold_lp_ratio_to_best_peer": min(cold) / own["cold_lp_s"] if cold else None,
        "objective_rel_diff_max": most([figures["objective_rel_diff_max"] for figures in linear.values()]),
    }


def tried_s(run: Run) -> float:
    """Mean seconds of a way's warm-up rounds; infinite if one did not end, in the cold round or after it."""
    rows = run.rows[1:]
    return float(np.mean([row["total_s"] for row in rows])) if rows and all(row["optimal"] for row in rows) else np.inf


def unusable(run: Run, tolerance: float) -> str | None:
    """Why a way has no answers that compare; None if it has."""
    off = most([row["relative_residual"] for row in run.rows])
    if off is not None and off > COMPARABLE * tolerance:
        return f"its points are off by {off:.0e}, above the tolerance"
    if run.ended is None and not run.rows[-1]["optimal"]:
        return f"{run.rows[-1]['status']} after {run.rows[-1]['total_s']:.2g} s"
    return run.ended


def why_dropped(run: Run, tried: dict[str, Run], tolerance: float) -> str | None:
    """Why a way does not go on after the warm-up; None if it does."""
    if MILP_WAY in tried:
        return None
    if (why := unusable(run, tolerance)) is not None:
        return why
    ranked = sorted(tried_s(each) for each in tried.values() if unusable(each, tolerance) is None)
    near = tried_s(run) <= min(NEARLY_BEST * ranked[0], ranked[min(1, len(ranked) - 1)])
    return None if near else "slower than the best in the warm-up"


# Summing up -----------------------------------------------------------------------------------------------------------


def median(values: list[Any]) -> float | None:
    """The median of what is a number, None of nothing."""
    known = [value for value in values if value is not None and value == value]
    return float(np.median(known)) if known else None


def most(values: list[Any]) -> float | None:
    """The largest of what is a number, None of nothing."""
    return max((value for value in values if value is not None and value == value), default=None)


def spread(rows: list[Row]) -> dict[str, float]:
    """p50, p99 and max of rounds, in seconds; medians of their stages."""
    total = [row["total_s"] for row in rows]
    found = {"p50_s": np.median(total), "p99_s": np.percentile(total, 99), "max_s": max(total)}
    found |= {f"{stage}_p50_s": np.median([row[f"{stage}_s"] for row in rows]) for stage in ("edit", "solve")}
    return {name: float(value) for name, value in found.items()}


def worst(rows: list[Row]) -> dict[str, float | None]:
    """Largest gap that was proven, and largest residuals."""
    names = {"gap_max": "gap", "residual_max": "residual", "relative_residual_max": "relative_residual"}
    return {name: most([row[key] for row in rows]) for name, key in names.items()}


def copter_summary(run: Run, outcomes: list[Outcome]) -> dict[str, Any]:
    """Copter's part; a round's processor time is that of its solve and its shim."""
    cold, counted = run.rows[0], run.rows[WARM_UP + 1 :]
    processor = [row["processor_s"] for row in counted]
    plans = [outcome.plan for outcome in outcomes[WARM_UP + 1 :] if outcome.plan is not None]
    return {
        **spread(counted),
        "processor_p50_s": median(processor),
        "processor_p99_s": float(np.percentile(processor, 99)),
        "cold_s": cold["total_s"],
        "cold_processor_s": cold["processor_s"],
        "cold_lp_s": cold["edit_s"] + cold["solve_s"],
        "lp_p50_s": median([row["edit_s"] + row["solve_s"] for row in counted]),
        "shim_p50_s": median([row["shim_s"] for row in counted]),
        "passes_p50": median([outcome.passes for outcome in outcomes[WARM_UP + 1 :]]),
        "newton_p50": median([outcome.iterations for outcome in outcomes[WARM_UP + 1 :]]),
        **worst(run.rows),
        "verified": sum(row.get("verified") is True for row in run.rows),
        "integer_gap_max": most([plan.gap for plan in plans]),
        "fractional_max": most([plan.fractional for plan in plans]),
        "not_optimal": sum(row["status"] != "optimal" for row in counted),
        "peak_rss_mb": most([row["peak_rss_mb"] for row in run.rows]),
    }


def sum_ratio(run: Run, copter: Run) -> float | None:
    """A way's edits and LPs over copter's, by their sums over the counted rounds that it answered; None without any."""
    own = {row["round"]: row["edit_s"] + row["solve_s"] for row in copter.rows[WARM_UP + 1 :]}
    both = [(row["total_s"], own[row["round"]]) for row in run.rows if row["optimal"] and row["round"] in own]
    return sum(theirs for theirs, _ in both) / sum(ours for _, ours in both) if both else None


def way_summary(run: Run, dropped: str | None, plans: list[float], copter: Run) -> dict[str, Any]:
    """A way's part; rounds that hit the time limit count with the time they took."""
    counted, linear = run.rows[WARM_UP + 1 :], run.solver != MILP_WAY
    found: dict[str, Any] = {
        "cold_s": run.rows[0]["total_s"] if run.rows else None,
        "cold_ended": bool(run.rows and run.rows[0]["optimal"]),
        "trial_s": [row["total_s"] for row in run.rows[1 : WARM_UP + 1]],
        "dropped": dropped,
        "objective_rel_diff_max": most([row["difference"] for row in run.rows if row["optimal"] and linear]),
        "value_over_plan_p50": median([row["objective"] / plans[row["round"]] for row in run.rows if plans]),
        "sum_ratio": None if dropped else sum_ratio(run, copter),
        **worst(run.rows if linear else []),
    }
    return found | (spread(counted) | {"time_limit_hit": sum(not row["optimal"] for row in counted)} if counted else {})
