"""Simulated faults: ``python -m tests.faults.simulate --steps 1000000``; a failure prints how to replay it."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

from tests.faults.service_world import run_world

STEPS = 300  # of a world
PAGE = Path(__file__).resolve().parents[2] / "docs" / "results" / "simulation.md"


def commit() -> str:
    """Of the checkout."""
    found = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def main() -> int:
    """Run worlds, each from a seed of its own; exit code 1 at the first promise that is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first world")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so long")
    parser.add_argument("--counts", type=Path, help="add the counts to this file of JSON")
    parser.add_argument("--go-on", action="store_true", help="after a failure, with the next seed")
    told = parser.parse_args()
    counts: Counter[str] = Counter()
    started, seed, failed = time.perf_counter(), told.seed, 0
    while counts["steps"] < told.steps and time.perf_counter() - started < told.seconds:
        try:
            run_world(seed, STEPS, counts)
        except Exception:
            failed += 1
            traceback.print_exc()
            print(f"seed {seed} at commit {commit()}; replay: python -m tests.faults.simulate --seed {seed} --steps 1")
            if not told.go_on:
                return 1
        counts["worlds"] += 1
        counts["steps"] += STEPS
        seed += 1
    counts["failures"] += failed
    print(json.dumps({"commit": commit(), "first_seed": told.seed, "last_seed": seed - 1, **counts}, indent=1))
    if told.counts is not None:
        told.counts.write_text(
            json.dumps({"commit": commit(), "date": time.strftime("%Y-%m-%d"), "counts": dict(counts)}, indent=1)
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
