"""A table's answer on a tiny workload, and its digest: while it stays the same, the full table says what is true.

    python benchmarks/tables/probe.py hadar_jct.py --jobs 12 --seeds 1    # what a table's script prints, without clocks

Python's clocks count their own calls here, a microsecond each, so that a script prints the same on every machine.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import runpy
import subprocess
import sys
import time
import timeit  # noqa: F401  (with numba's timers it keeps the true clock, which is read while functions compile)
from collections.abc import Sequence
from pathlib import Path

import numba.core.event  # noqa: F401

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TICK_S = 1e-6  # between two readings of a clock: far below any limit of time that a script sets
FAILED = "failed: "
ENOUGH_S = 120.0  # a probe takes seconds; one that takes this long has lost its way


def count_clocks() -> None:
    """Let Python's clocks count their calls."""
    ticks = itertools.count(1)

    def tick() -> float:
        return next(ticks) * TICK_S

    time.perf_counter = time.process_time = time.thread_time = tick


def environment() -> dict[str, str]:
    """The variables that a table's script runs with."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent), *sys.path[1:]])}


def digest_of(command: Sequence[str]) -> str:
    """Digest of what a script prints on its probe; "failed: ..." where it ends with an error, which tells nothing."""
    done = subprocess.run(
        [sys.executable, __file__, str(HERE / command[0]), *command[1:]],
        cwd=ROOT,
        env={**environment(), "COLUMNS": "400", "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=ENOUGH_S,
    )
    if done.returncode:
        return f"{FAILED}{(done.stderr.strip() or 'no message').splitlines()[-1]}"
    return hashlib.sha256(done.stdout.encode()).hexdigest()[:16]


def main() -> None:
    """Run the script that the command line names, its clocks counted."""
    script, sys.argv = Path(sys.argv[1]), sys.argv[1:]
    sys.path.insert(0, str(script.parent))
    count_clocks()
    runpy.run_path(str(script if script.is_file() else HERE / script), run_name="__main__")


if __name__ == "__main__":
    main()
