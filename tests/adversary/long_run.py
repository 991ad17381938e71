"""The long run: python -m tests.adversary.long_run [--share 0.1] [--first 0] [--only kill]; what was tried and held.

10,000 linear programs, 2,000 sessions, 5,000 tiny models, 3,000 networks, 5,000 damaged files, 1,000 kills, 500 solves
at each of six deadlines, 20,000 calls that are interrupted, 30,000 that a timer ends, 10,000 tapes, 2,000 lies, 100,000
solves with concave worths and 2,000 recorded rounds; --share takes a part of each, --only the campaigns with that in
their names.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from tests.adversary.campaigns import CAMPAIGNS, Deadlines, run

SHOWN = 3  # faults of a kind, and seeds beside its count
VALUES = re.compile(r"-?\d[\w.+-]*|True|False")


def by_kind(faults: Iterable[tuple[int, str]]) -> dict[str, list[tuple[int, str]]]:
    """Seeds and faults by kind, the commonest first: faults that differ in their values alone are of one kind."""
    kinds: dict[str, list[tuple[int, str]]] = {}
    for seed, fault in faults:
        kinds.setdefault(VALUES.sub("#", fault), []).append((seed, fault))
    return dict(sorted(kinds.items(), key=lambda kind: -len(kind[1])))


def told(name: str, faults: Iterable[tuple[int, str]]) -> None:
    """Print how many faults of each kind there were, the first ones of each in full."""
    for kind, those in by_kind(faults).items():
        seeds = ", ".join(str(seed) for seed, _ in those[:SHOWN]) + (", ..." if len(those) > SHOWN else "")
        print(f"{name}: {len(those)} x {kind} (seeds {seeds})", flush=True)
        for seed, fault in those[:SHOWN]:
            print(f"  seed {seed}: {fault}", flush=True)


def main() -> int:
    """Run all campaigns; 1 if anything did not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", default="", help="part of a campaign's name")
    arguments = parser.parse_args()
    chosen = {name: what for name, what in CAMPAIGNS.items() if arguments.only in name}
    if not chosen:
        parser.error(f"no campaign named {arguments.only!r}: {', '.join(CAMPAIGNS)}")
    table, failed = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for name, (count, make) in chosen.items():
            tried, began = max(1, round(arguments.share * count)), time.monotonic()
            trial = make()
            verdicts = list(enumerate(run(name, tried, Path(folder), arguments.first, trial), arguments.first))
            faults = [(seed, fault) for seed, fault in verdicts if fault is not None]
            told(name, faults)
            failed += len(faults)
            table.append(f"| {name} | {tried:,} | {tried - len(faults):,} |")
            print(f"{table[-1]} {time.monotonic() - began:.0f} s", flush=True)
            if isinstance(trial, Deadlines):
                print("", *trial.notes(), "", sep="\n", flush=True)
    print("\n| what | tried | held |\n|---|---|---|", *table, sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
