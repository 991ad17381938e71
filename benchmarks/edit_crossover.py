"""Each edit in copter compared with the same edit in highspy, over sizes, and from which size on copter is the faster.

    python benchmarks/edit_crossover.py
    python benchmarks/edit_crossover.py --sizes 50,200,800,2000 --json

The edits are those of the asv suite (suite/bench_edits.py). Times are the least over repeats, so that a busy machine
disturbs them little. Writes edit_crossover.json and .md into --out (default benchmarks/results).
"""

from __future__ import annotations

import argparse
import json
import time
from math import log
from pathlib import Path
from typing import Any

from floor import machine
from suite.bench_edits import Copter, Highs
from suite.problems import SIZES, sia_like

PREFIX = "time_"
ENOUGH_S = 0.3  # spent on one edit at one size
Times = dict[str, list[float]]


def least_s(action: Any, requests: int) -> float:
    """Least seconds of an edit."""
    best, until = float("inf"), time.perf_counter() + ENOUGH_S
    for turn in range(100_000):
        started = time.perf_counter()
        action(requests)
        ended = time.perf_counter()
        best = min(best, ended - started)
        if ended > until and turn >= 2:
            break
    return best


def edits() -> list[str]:
    """The edits that both can do, in the order of the suite."""
    return [name.removeprefix(PREFIX) for name in vars(Copter) if name.startswith(PREFIX) and hasattr(Highs, name)]


def measure(sizes: list[int]) -> tuple[list[int], dict[str, dict[str, Any]]]:
    """Nonzeros of every size, and seconds of every edit by both."""
    nonzeros, names = [], edits()
    found: dict[str, dict[str, Any]] = {name: {"copter_s": [], "highs_s": []} for name in names}
    for size in sizes:
        nonzeros.append(int(sia_like(size).to_linear_program().A.nnz))
        for kind, key in ((Copter, "copter_s"), (Highs, "highs_s")):
            bench: Any = kind()
            bench.setup(size)
            for name in names:
                found[name][key].append(least_s(getattr(bench, PREFIX + name), size))
    for each in found.values():
        each["crossover"] = crossing(nonzeros, each)
    return nonzeros, found


def crossing(nonzeros: list[int], times: Times) -> str:
    """From how many nonzeros on copter is the faster, by a straight line in logarithms between two sizes."""
    ratios = [highs / own for own, highs in zip(times["copter_s"], times["highs_s"], strict=True)]
    slower = [at for at, ratio in enumerate(ratios) if ratio < 1]
    if not slower:
        return f"below {nonzeros[0]:,}: copter at every size"
    if slower[-1] == len(ratios) - 1:
        return f"above {nonzeros[-1]:,}: HiGHS at every size" if len(slower) == len(ratios) else "above the largest"
    at = slower[-1]
    share = -log(ratios[at]) / (log(ratios[at + 1]) - log(ratios[at]))
    return f"{nonzeros[at] * (nonzeros[at + 1] / nonzeros[at]) ** share:,.0f}"


def table(nonzeros: list[int], found: dict[str, dict[str, Any]]) -> str:
    """Markdown: microseconds of copter / HiGHS at every size, and the crossover."""
    heads = [f"{each:,} nonzeros" for each in nonzeros]
    lines = ["| edit, us by copter / HiGHS | " + " | ".join(heads) + " | copter faster from (nonzeros) |"]
    lines.append("|" + "---|" * (len(heads) + 2))
    for name, each in found.items():
        pairs = zip(each["copter_s"], each["highs_s"], strict=True)
        cells = [f"{1e6 * own:,.1f} / {1e6 * highs:,.1f}" for own, highs in pairs]
        lines.append(f"| {name.replace('_', ' ')} | " + " | ".join(cells) + f" | {each['crossover']} |")
    return "\n".join(lines)


def main() -> None:
    """Parse, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="requests")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    try:
        sizes = sorted({int(size) for size in arguments.sizes.split(",")})
    except ValueError:
        parser.error(f"--sizes is {arguments.sizes}, must be whole numbers")
    if sizes[0] < 10:
        parser.error("--sizes: at least 10 requests, so that every edit finds its own")
    nonzeros, found = measure(sizes)
    arguments.out.mkdir(parents=True, exist_ok=True)
    result = {"machine": machine(), "requests": sizes, "nonzeros": nonzeros, "edits": found}
    (arguments.out / "edit_crossover.json").write_text(json.dumps(result, indent=1))
    (arguments.out / "edit_crossover.md").write_text(table(nonzeros, found) + "\n")
    print(json.dumps(result) if arguments.json else table(nonzeros, found))


if __name__ == "__main__":
    main()
