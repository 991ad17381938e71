"""Simulated faults: ``python -m tests.faults.simulate --steps 10000000 --counts FILE``.

A failure prints how to replay it. Counts are added to FILE as the run goes, and a run goes on from where FILE ends.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from tests.faults.service_world import run_world
from tests.faults.shard_world import run_shards

STEPS = 300  # of a world
SHARDS_EVERY = 20  # worlds: one of so many is a session over shards, whose steps take ten times as long
WRITE_EVERY = 200  # worlds
PAGE = Path(__file__).resolve().parents[2] / "docs" / "results" / "simulation.md"


def commit() -> str:
    """Of the checkout."""
    told = os.environ.get("COPTER_COMMIT")  # of a copy that is no checkout
    if told:
        return told
    found = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def run(seed: int, steps: int, counts: Counter[str]) -> None:
    """The world of a seed."""
    if seed % SHARDS_EVERY:
        run_world(seed, steps, counts)
        return
    mine: Counter[str] = Counter()
    try:
        run_shards(seed, steps, mine)
    finally:
        counts.update({f"shards: {what}": count for what, count in mine.items()})
    counts["shards: steps"] += steps


def main() -> int:
    """Run worlds, each from a seed of its own; exit code 1 at the first promise that is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000, help="in all, with those in --counts")
    parser.add_argument("--seed", type=int, default=0, help="of the first world, where --counts is not there yet")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so long")
    parser.add_argument("--counts", type=Path, help="add the counts to this file of JSON")
    parser.add_argument("--go-on", action="store_true", help="after a failure, with the next seed")
    parser.add_argument("--page", action="store_true", help="write docs/results/simulation.md from --counts, and end")
    told = parser.parse_args()
    if told.page:
        PAGE.write_text(page_of(json.loads(told.counts.read_text())))
        return 0
    counts: Counter[str] = Counter()
    first, seed, made_of = told.seed, told.seed, commit()
    if told.counts is not None and told.counts.exists():
        known = json.loads(told.counts.read_text())
        counts, first, seed = Counter(known["counts"]), known["first_seed"], known["next_seed"]
    started = time.perf_counter()
    while counts["steps"] < told.steps and time.perf_counter() - started < told.seconds:
        try:
            run(seed, STEPS, counts)
        except Exception:
            counts["promises broken"] += 1
            traceback.print_exc()
            print(f"seed {seed} at commit {made_of}; replay:")
            print(f"  PYTHONHASHSEED=0 PYTHONPATH=.:frontends python -m tests.faults.simulate --seed {seed} --steps 1")
            if not told.go_on:
                return 1
        counts["worlds"] += 1
        counts["steps"] += STEPS
        seed += 1
        if told.counts is not None and counts["worlds"] % WRITE_EVERY == 0:
            write(told.counts, made_of, first, seed, counts)
    if told.counts is not None:
        write(told.counts, made_of, first, seed, counts)
    print(json.dumps({"commit": made_of, **counts}, indent=1))
    return 1 if counts["promises broken"] else 0


def write(path: Path, made_of: str, first: int, following: int, counts: Counter[str]) -> None:
    """Keep the counts so far."""
    front = {"commit": made_of, "date": time.strftime("%Y-%m-%d"), "first_seed": first, "next_seed": following}
    whole = path.with_suffix(".new")
    whole.write_text(json.dumps({**front, "counts": dict(counts)}, indent=1))
    whole.replace(path)


def page_of(found: dict[str, Any]) -> str:
    """The page of results."""
    counts = dict(found["counts"])
    steps, worlds, broken = counts.pop("steps"), counts.pop("worlds"), counts.pop("promises broken", 0)
    shards = counts.pop("shards: steps", 0)
    rows = "\n".join(f"| {what} | {count:,} |" for what, count in sorted(counts.items()))
    return f"""# Simulated faults

Written by `python -m tests.faults.simulate --counts FILE --page`; `make simulate-faults` makes the counts anew.

The service, its journal and its schedulers run in one process under a simulated clock, disk and network, from one seed
(`tests/faults/`). After every step an oracle of plain dictionaries judges: no acknowledged delta is lost or done twice,
none that was refused is there, the plan in force fits the nodes in whole numbers, nobody else's file is touched. After
each start it compares all that was recovered. A step is one request or one fault.

One world in {SHARDS_EVERY} is a session over shards: its coordinator and shards die inside and between calls; messages
are late, come twice, overtake others and outlive the coordinator that sent them; one that was replaced goes on talking.
After every step the shards' models are compared with what was acknowledged; solves and plans are judged against a
session of one machine, and in fractions.

{steps:,} steps in {worlds:,} worlds from seed {found["first_seed"]} on, {shards:,} of them over shards;
promises broken: {broken}.
Commit {found["commit"]}, {found["date"]}.

| what was done, and which faults were met | times |
|---|---|
{rows}

Not simulated: HTTP and TLS, and Ray itself (real sockets and actors are tested beside this).
"""


if __name__ == "__main__":
    sys.exit(main())
