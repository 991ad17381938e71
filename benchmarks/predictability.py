"""How even rounds are, bursts included: p50, p90, p99, max, and how the worst compare with one cold solve.

python benchmarks/predictability.py --scale 10000 --rounds 1000
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from families.bursts import BurstyRounds
from families.protocol import SolverOptions
from families.verdicts import judge_plan
from harness import WARM_UP
from judge import judge

HERE = Path(__file__).parent
MAX_OVER_P90 = 3.0
COLD_RATIO = 3.0
COLD_SOLVES = 6  # of each kind of event that are also solved cold


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """All rounds; every event's round is also solved from nothing, for the first few of each kind."""
    family = BurstyRounds(arguments.scale, arguments.mode, arguments.churn, arguments.seed, arguments.every)
    solver, cold = family.solver(SolverOptions()), family.solver(SolverOptions())
    times: list[float] = []
    kinds: list[str] = []
    ratios: dict[str, list[float]] = {}
    gaps: list[float] = []
    not_optimal = 0
    for index in range(-WARM_UP - 1, arguments.rounds):
        started = time.perf_counter()
        family.edit()
        edit_s = time.perf_counter() - started
        outcome = solver.solve()
        total = time.perf_counter() - started
        if index >= 0:
            times.append(total)
            kinds.append(family.event)
            not_optimal += outcome.status != "optimal"
        if family.event != "plain" or index % arguments.judge_every == 0:
            program = family.program()
            judged = judge(program, *family.point(outcome))
            judge_plan(family, program, outcome, judged.bound)
            gaps.append(judged.gap)
        if family.event != "plain" and len(ratios.get(family.event, [])) < COLD_SOLVES:
            cold.session.reset()
            started = time.perf_counter()
            cold.solve()
            ratios.setdefault(family.event, []).append((total - edit_s) / (time.perf_counter() - started))
        if arguments.verbose and (family.event != "plain" or index < 0):
            print(
                f"round {index} {family.event}: {1e3 * total:.1f} ms, {outcome.passes} passes, "
                f"{outcome.iterations} Newton, {outcome.status}",
                file=sys.stderr,
                flush=True,
            )
        family.adopt(outcome)
        family.prepare()
    return summary(arguments, np.array(times), np.array(kinds), ratios, gaps, not_optimal)


def summary(
    arguments: argparse.Namespace,
    times: np.ndarray,
    kinds: np.ndarray,
    ratios: dict[str, list[float]],
    gaps: list[float],
    not_optimal: int,
) -> dict[str, Any]:
    """The object that is written, bars included."""
    p50, p90, p99 = (float(v) for v in np.percentile(times, [50, 90, 99]))
    worst = float(times.max())
    cold = max((max(found) for found in ratios.values()), default=None)
    return {
        "scale": arguments.scale,
        "mode": arguments.mode,
        "churn": arguments.churn,
        "rounds": len(times),
        "every": arguments.every,
        "p50_s": p50,
        "p90_s": p90,
        "p99_s": p99,
        "max_s": worst,
        "max_over_p90": worst / p90,
        "worst_kind": str(kinds[int(times.argmax())]),
        "by_kind": {
            str(kind): {
                "rounds": int((kinds == kind).sum()),
                "p50_s": float(np.median(times[kinds == kind])),
                "max_s": float(times[kinds == kind].max()),
            }
            for kind in np.unique(kinds)
        },
        "to_cold_max": {kind: max(found) for kind, found in ratios.items()},
        "gap_max": max(gaps),
        "not_optimal": not_optimal,
        "meets_max_over_p90": worst / p90 <= MAX_OVER_P90,
        "meets_cold": cold is None or cold <= COLD_RATIO,
    }


def main() -> None:
    """Parse, run, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=10_000, help="GPUs")
    parser.add_argument("--mode", choices=["full", "capped"], default="full")
    parser.add_argument("--churn", type=float, default=0.01)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--every", type=int, default=25, help="rounds from one event to the next")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--judge-every", type=int, default=50, help="plain rounds from one judged to the next")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    if arguments.rounds < 1 or arguments.scale < 56 or not 0 <= arguments.churn < 1 or arguments.every < 0:
        parser.error("rounds >= 1, scale >= 56, churn from 0 to below 1 and every >= 0")
    found = run(arguments)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "predictability.json").write_text(json.dumps(found, indent=1))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
