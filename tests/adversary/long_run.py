"""The long run: python -m tests.adversary.long_run [--share 0.1] [--first 0] [--only kill]; what was tried and held.

10,000 linear programs, 2,000 sessions, 3,000 networks, 5,000 damaged files, 1,000 kills, 500 solves at each of six
deadlines, 20,000 calls that are interrupted, 30,000 that a timer ends, 10,000 tapes and 2,000 lies; --share takes a
part of each, --only the campaigns with that in their names.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.adversary.campaigns import CAMPAIGNS, Deadlines, run

SHOWN = 5  # faults of a campaign


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
            for seed, fault in faults[:SHOWN]:
                print(f"{name}, seed {seed}: {fault}", flush=True)
            failed += len(faults)
            table.append(f"| {name} | {tried:,} | {tried - len(faults):,} |")
            print(f"{table[-1]} {time.monotonic() - began:.0f} s", flush=True)
            if isinstance(trial, Deadlines):
                print("", *trial.notes(), "", sep="\n", flush=True)
    print("\n| what | tried | held |\n|---|---|---|", *table, sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
