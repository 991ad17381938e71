"""The same sequence of edited LPs through copter and its peers, round by round, in one process.

python benchmarks/rounds.py --family sia --scale 10000 --churn 0.01 --rounds 100 --seed 0 --peers highs --json
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from dataclasses import dataclass, field

import numpy as np
from sia_rounds import SiaRounds

from copter import Session, Settings, Solution
from copter.shims import IntegerPlan

WARM_UP = 3  # rounds after the cold one that are not counted
CHECKED_EVERY_ROUND = 15_000_000  # columns above which only the last round is judged by the checker


@dataclass
class Rounds:
    """Figures of the counted rounds."""

    round_s: list[float] = field(default_factory=list)
    edit_s: list[float] = field(default_factory=list)
    solve_s: list[float] = field(default_factory=list)
    shim_s: list[float] = field(default_factory=list)
    passes: list[int] = field(default_factory=list)
    newton: list[int] = field(default_factory=list)
    gap: list[float] = field(default_factory=list)
    residual: list[float] = field(default_factory=list)
    integer_gap: list[float] = field(default_factory=list)
    fractional: list[int] = field(default_factory=list)
    peer_s: list[float] = field(default_factory=list)
    difference: list[float] = field(default_factory=list)
    cold_s: float = 0.0
    not_optimal: int = 0


def judge(family: SiaRounds, solution: Solution, plan: IntegerPlan) -> tuple[float, float]:
    """Recompute gap and largest violation with NumPy from costs, usage and prices alone; check the integer plan."""
    model = family.model
    price = np.array([solution.price(k) for k in model.resources])
    capacity = np.array([model.count(k) for k in model.resources])
    usage = family.gpus * price[family.kind]
    bound = float(capacity @ price)
    objective, integer, activity, whole = 0.0, 0.0, np.zeros(len(capacity)), np.zeros(len(capacity))
    worst = max(0.0, float(-price.min()))
    for job, columns, x in solution.by_request():
        value = model.cost(job)
        bound += max(0.0, float((value - usage).max()))
        objective += float(value[columns] @ x)
        np.add.at(activity, family.kind[columns], family.gpus[columns] * x)
        worst = max(worst, float(x.sum()) - 1.0, float(-x.min(initial=0.0)), float(x.max(initial=0.0)) - 1.0)
        chosen = plan.column(job)
        if chosen is not None:
            integer += float(value[chosen])
            whole[family.kind[chosen]] += family.gpus[chosen]
    worst = max(worst, float((activity - capacity).max()))
    if np.any(whole > capacity):
        raise SystemExit(f"the integer plan over-commits a resource: {whole} of {capacity}")
    if abs(integer - plan.objective) > 1e-9 * (1 + abs(integer)) or integer > bound + 1e-6 * (1 + abs(bound)):
        raise SystemExit(f"the integer plan's value {plan.objective} is not {integer}, or above the bound {bound}")
    return abs(bound - objective) / (1.0 + abs(bound) + abs(objective)), worst


def run(arguments: argparse.Namespace) -> dict[str, object]:
    """Run the sequence and return its figures."""
    family = SiaRounds(arguments.scale, arguments.mode, arguments.churn, arguments.seed)
    session = Session(family.model, Settings(threads=arguments.threads))
    figures = Rounds()
    peer = Peer(family, arguments.peer_time_limit) if "highs" in arguments.peers else None
    for index in range(-WARM_UP - 1, arguments.rounds):
        started = time.perf_counter()
        family.edit()
        edited = time.perf_counter()
        plan = session.solve_integer()
        ended = time.perf_counter()
        solution = session.last_solution
        assert solution is not None
        total = ended - started
        if index == -WARM_UP - 1:
            figures.cold_s = total
        if index >= 0:
            figures.round_s.append(total)
            figures.edit_s.append(edited - started)
            figures.solve_s.append(solution.solve_time_s)
            figures.shim_s.append(ended - edited - solution.solve_time_s)
            figures.passes.append(solution.pricing_passes)
            figures.newton.append(solution.iterations)
            figures.fractional.append(plan.fractional_requests)
            figures.integer_gap.append(plan.gap)
            figures.not_optimal += solution.status.value != "optimal"
        if family.model.n_columns <= CHECKED_EVERY_ROUND or index == arguments.rounds - 1:
            gap, worst = judge(family, solution, plan)
            figures.gap.append(gap)
            figures.residual.append(worst)
        if peer is not None:
            peer.round(index, solution, figures)
        if arguments.verbose:
            print(
                f"round {index}: {1e3 * total:.1f} ms = edit {1e3 * (edited - started):.1f} + solve "
                f"{1e3 * solution.solve_time_s:.1f} + shim {1e3 * (ended - edited - solution.solve_time_s):.1f}; "
                f"{solution.status.value}, passes {solution.pricing_passes}, proximal {solution.proximal_steps}, "
                f"newton {solution.iterations}, working {solution.working_columns}, gap {solution.gap:.1e}, "
                f"integer {plan.gap:.1e}",
                file=sys.stderr,
                flush=True,
            )
        family.adopt(plan)
        family.prepare()
    return summary(arguments, family, figures, peer)


class Peer:
    """HiGHS on the same sequence: interior point cold once, then warm from its own basis."""

    def __init__(self, family: SiaRounds, time_limit_s: float) -> None:
        from copter.interop.highs import HighsMirror

        self.mirror = HighsMirror(family.model)
        self.time_limit_s = time_limit_s
        self.cold_s: float | None = None
        self.cold_ended = False
        self.late = 0

    def round(self, index: int, solution: Solution, figures: Rounds) -> None:
        """Solve the round's LP and write down time and difference."""
        edit_s = self.mirror.update()
        if self.cold_s is None:
            found = self.mirror.run(self.time_limit_s, solver="ipm")
            self.cold_s, self.cold_ended = edit_s + found.solve_s, found.optimal
            if not found.optimal:
                self.mirror.start_from(solution)
                found = self.mirror.run(self.time_limit_s, solver="simplex")
        else:
            found = self.mirror.run(self.time_limit_s, solver="simplex")
            if index >= 0:
                figures.peer_s.append(edit_s + found.solve_s)
        if found.optimal:
            figures.difference.append(abs(found.objective - solution.objective) / (1 + abs(found.objective)))
        elif index >= 0:
            self.late += 1


def spread(values: list[float]) -> dict[str, float]:
    """p50, p99 and max."""
    return {
        "p50_s": float(np.median(values)),
        "p99_s": float(np.percentile(values, 99)),
        "max_s": float(np.max(values)),
    }


def summary(arguments: argparse.Namespace, family: SiaRounds, figures: Rounds, peer: Peer | None) -> dict[str, object]:
    """The object that --json prints."""
    copter = {
        **spread(figures.round_s),
        "cold_s": figures.cold_s,
        "edit_p50_s": float(np.median(figures.edit_s)),
        "solve_p50_s": float(np.median(figures.solve_s)),
        "shim_p50_s": float(np.median(figures.shim_s)),
        "passes_p50": float(np.median(figures.passes)),
        "newton_p50": float(np.median(figures.newton)),
        "gap_max": max(figures.gap),
        "residual_max": max(figures.residual),
        "integer_gap_max": max(figures.integer_gap),
        "fractional_max": max(figures.fractional),
        "not_optimal": figures.not_optimal,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
    }
    result: dict[str, object] = {
        "family": arguments.family,
        "mode": arguments.mode,
        "scale": arguments.scale,
        "churn": arguments.churn,
        "seed": arguments.seed,
        "rounds": arguments.rounds,
        "jobs": len(family.jobs),
        "variables": family.model.n_columns,
        "nonzeros": 2 * family.model.n_columns,
        "copter": copter,
        "peers": {},
        "ratio_to_best_peer": None,
        "objective_rel_diff_max": max(figures.difference, default=None),
    }
    if peer is not None and figures.peer_s:
        warm = spread(figures.peer_s)
        result["peers"] = {
            "highs_warm": {**warm, "time_limit_hit": peer.late},
            "highs_cold": {"s": peer.cold_s, "ended": peer.cold_ended},
        }
        best = min(warm["p50_s"], peer.cold_s if peer.cold_ended and peer.cold_s else np.inf)
        result["ratio_to_best_peer"] = best / copter["p50_s"]
    return result


def main() -> None:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", choices=["sia"], default="sia")
    parser.add_argument("--mode", choices=["full", "capped"], default="full")
    parser.add_argument("--scale", type=int, default=10_000, help="GPUs (default 10000)")
    parser.add_argument("--churn", type=float, default=0.01, help="share of jobs replaced a round (default 0.01)")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=0, help="0: all processors")
    parser.add_argument("--peers", type=lambda text: text.split(","), default=[], help="highs")
    parser.add_argument("--peer-time-limit", type=float, default=120.0, help="seconds of one solve of a peer")
    parser.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    parser.add_argument("--verbose", action="store_true", help="a line a round on stderr")
    arguments = parser.parse_args()
    if arguments.rounds < 1 or arguments.scale < 8 * 7 or not 0 <= arguments.churn <= 1:
        parser.error("rounds must be >= 1, scale >= 56 and churn from 0 to 1")
    result = run(arguments)
    print(json.dumps(result) if arguments.json else json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
