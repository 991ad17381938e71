"""Where copter overtakes HiGHS's best way: every controlled study over sizes, and over churn, on the same sequences.

    python benchmarks/crossover.py --preset quick
    python benchmarks/crossover.py --preset full --families gub,transport --rounds 20

Writes crossover.json and crossover.md into --out (default benchmarks/results).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any

from floor import machine

HERE = Path(__file__).parent
CHURN = 0.01  # of the sweep over sizes
SCALES: dict[str, dict[str, tuple[int, ...]]] = {
    "quick": {
        "sia": (250, 500, 1000, 2500),
        "gub": (200, 1000, 4000, 8000),
        "transport": (300, 1000, 4000, 8000),
        "multicommodity": (100, 250, 600),
    },
    "full": {
        "sia": (250, 500, 1000, 2500, 5000, 10_000),
        "gub": (200, 1000, 4000, 16_000, 64_000, 200_000),
        "transport": (300, 1000, 4000, 16_000, 64_000, 250_000),
        "multicommodity": (100, 250, 600, 1500, 4000),
    },
}
CHURNS = {"quick": (0.001, 0.01, 0.1), "full": (0.001, 0.005, 0.01, 0.05, 0.2)}
# Where churn is swept.
CHURN_SCALE = {"sia": 1000, "gub": 4000, "transport": 4000, "multicommodity": 250}
SOLVERS = {"auto": "", "coordinate_descent": " copter by coordinate descent, as the thesis's solver."}
Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class How:
    """How runs go: counted rounds, seconds of one run, copter's method, and whether times are of the processor."""

    rounds: int
    limit_s: float
    method: str = "auto"
    processor: bool = False


def run_one(family: str, scale: int, churn: float, how: How) -> Result | None:
    """One run of rounds.py in a process of its own; None when it does not end within the limit."""
    limit_s, environment = how.limit_s, dict(os.environ)
    command = [sys.executable, str(HERE / "rounds.py"), "--family", family]
    command += ["--scale", str(scale), "--churn", str(churn), "--method", how.method]
    command += ["--rounds", str(how.rounds), "--peers", "highs", "--json"]
    if how.processor:
        command += ["--threads", "1"]
        environment["COPTER_CLOCK"] = "processor"
    command += ["--time-limit", str(limit_s / 4)]
    command += ["--peer-time-limit", str(limit_s / 12)]  # six ways, each at least twice
    started = time.perf_counter()
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=limit_s, check=True, env=environment)
    except subprocess.TimeoutExpired:
        print(f"{family} {scale} churn {churn}: not ended in {limit_s:.0f} s", file=sys.stderr, flush=True)
        return None
    result: Result = json.loads(done.stdout.strip().splitlines()[-1])
    if how.processor:
        result["copter"]["p50_s"], result["processor"] = result["copter"]["processor_p50_s"], True
    print(
        f"{family} {scale} churn {churn}: copter {1e3 * result['copter']['p50_s']:.1f} ms, HiGHS "
        f"({result['best_peer']}) {1e3 * highs_s(result):.1f} ms ({time.perf_counter() - started:.0f} s)",
        file=sys.stderr,
        flush=True,
    )
    return result


def highs_s(result: Result) -> float:
    """Median round of HiGHS's best way; infinite when none got to one."""
    return float("inf") if result["best_peer_p50_s"] is None else float(result["best_peer_p50_s"])


def ratio(result: Result) -> float:
    """How many times faster than HiGHS's best way copter is (below 1: slower)."""
    return highs_s(result) / float(result["copter"]["p50_s"])


def crossing(results: list[Result]) -> str:
    """The size below which HiGHS wins, in nonzeros, read off a sweep over sizes (log-log between two sizes)."""
    ordered = sorted(results, key=lambda r: r["nonzeros"])
    lost = [i for i, result in enumerate(ordered) if ratio(result) < 1]
    if not lost:
        return f"none: copter wins from {ordered[0]['nonzeros']:.1e}"
    if lost[-1] == len(ordered) - 1:
        return f"above {ordered[-1]['nonzeros']:.1e}: HiGHS wins at the largest size measured"
    before, after = ordered[lost[-1]], ordered[lost[-1] + 1]
    low, high = log(ratio(before)), log(min(ratio(after), 1e6))
    share = -low / (high - low)
    return f"{before['nonzeros'] * (after['nonzeros'] / before['nonzeros']) ** share:.1e}"


def table(results: list[Result]) -> list[str]:
    """Markdown lines: a row a run."""
    lines = [
        "| family | scale | nonzeros | rows | churn | copter round | of it edit / solve / shim | HiGHS "
        "| its best way | ratio | gap | not optimal |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        own = result["copter"]
        parts = " / ".join(f"{1e3 * own[key]:.1f}" for key in ("edit_p50_s", "solve_p50_s", "shim_p50_s"))
        parts = "by the clock only" if result.get("processor") else parts
        lines.append(
            f"| {result['family']} | {result['scale']:,} | {result['nonzeros']:,} | {result['rows']:,} "
            f"| {result['churn']:g} | {1e3 * own['p50_s']:.1f} ms | {parts} | {1e3 * highs_s(result):.1f} ms "
            f"| {result['best_peer']} | {ratio(result):.3g} | {own['gap_max']:.0e} | {own['not_optimal']} |"
        )
    return lines


def markdown(found: dict[str, Any]) -> str:
    """The page: crossings, then both sweeps."""
    lines = ["# Crossover with HiGHS's best way", ""]
    clock = ", processor time" if found.get("processor") else ""
    lines += [
        f"Median round (edit + solve + shim{clock}) on {found['machine']['processor']}, "
        f"{found['machine']['threads']} threads; {found['rounds']} rounds after 3 of warm-up. "
        f"Ratio: HiGHS over copter; below 1, HiGHS wins.{SOLVERS[found.get('method', 'auto')]}",
        "",
        "| family | nonzeros below which HiGHS wins |",
        "|---|---|",
    ]
    for family in found["families"]:
        own = [result for result in found["sizes"] if result["family"] == family]
        lines.append(f"| {family} | {crossing(own) if own else 'not measured'} |")
    lines += [
        "",
        "## Against size",
        "",
        *table(found["sizes"]),
        "",
        "## Against churn",
        "",
        *table(found["churns"]),
        "",
    ]
    return "\n".join(lines)


def sweep(names: list[str], preset: str, how: How) -> dict[str, Any]:
    """All runs; a family stops growing once a size does not end within the limit."""
    found: dict[str, Any] = {
        "machine": machine(),
        "rounds": how.rounds,
        "method": how.method,
        "processor": how.processor,
        "families": names,
        "sizes": [],
        "churns": [],
    }
    for family in names:
        for scale in SCALES[preset][family]:
            result = run_one(family, scale, CHURN, how)
            if result is None:
                break
            found["sizes"].append(result)
        for churn in CHURNS[preset]:
            result = run_one(family, CHURN_SCALE[family], churn, how)
            if result is not None:
                found["churns"].append(result)
    return found


def main() -> None:
    """Parse, sweep, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=list(SCALES), default="quick")
    parser.add_argument("--families", default=",".join(SCALES["quick"]))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of one run")
    parser.add_argument("--method", choices=["auto", "coordinate_descent"], default="auto", help="of copter")
    parser.add_argument(
        "--processor", action="store_true", help="compare processor time, one thread each: on a machine that others use"
    )
    parser.add_argument("--out", type=Path, default=HERE / "results")
    arguments = parser.parse_args()
    names = arguments.families.split(",")
    unknown = [name for name in names if name not in SCALES[arguments.preset]]
    if unknown or arguments.rounds < 1:
        parser.error(f"families are some of {', '.join(SCALES[arguments.preset])}; rounds >= 1")
    found = sweep(
        names, arguments.preset, How(arguments.rounds, arguments.limit, arguments.method, arguments.processor)
    )
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "crossover.json").write_text(json.dumps(found, indent=1))
    (arguments.out / "crossover.md").write_text(markdown(found))
    print(markdown(found))


if __name__ == "__main__":
    main()
