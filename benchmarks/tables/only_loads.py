"""The lines of a table that tell of its jobs' load, without the table's simulations.

    python benchmarks/tables/only_loads.py hops_sweeps.py --sweep arrivals --cluster hops-64

The table's own script draws the jobs and notes their load. What it then simulates are the same jobs, at the same times,
with next to no work, so that a simulation of hours takes seconds; its figures are dropped.
"""

from __future__ import annotations

import io
import runpy
import sys
from collections.abc import Iterable
from contextlib import redirect_stdout, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import loads

from copter_frontends.simulator import Simulation
from copter_frontends.vocabulary import Job

HERE = Path(__file__).resolve().parent
NEXT_TO_NOTHING = 1e-3  # samples, steps or tasks: less than what any job does in a round


def without_work() -> None:
    """Let every simulation have jobs of next to no work."""
    made = Simulation.__init__

    def make(self: Simulation, cluster: Any, jobs: Iterable[Job], *given: Any, **named: Any) -> None:
        made(self, cluster, [replace(job, work_samples=NEXT_TO_NOTHING) for job in jobs], *given, **named)

    Simulation.__init__ = make  # type: ignore[method-assign]


def main() -> None:
    """Run the script that the command line names, and print its lines."""
    sys.argv = [*sys.argv[1:], *(["--keep="] if "--keep" in sys.argv else [])]  # figures without work are not kept
    without_work()
    said = io.StringIO()
    with redirect_stdout(said), suppress(SystemExit):
        runpy.run_path(str(HERE / sys.argv[0]), run_name="__main__")
    print("\n".join(line for line in said.getvalue().splitlines() if line.startswith(loads.BEGINS)))


if __name__ == "__main__":
    main()
