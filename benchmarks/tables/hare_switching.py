"""Hare's table 3: average task switching time by model, measured by the executors' simulation.

python benchmarks/tables/hare_switching.py
"""

from __future__ import annotations

import argparse
import json

import numpy as np

from copter_frontends.policies.hare import HareInstance, HareScheduler
from copter_frontends.policies.hare.models import MODELS
from copter_frontends.policies.hare.switching import SCHEMES
from copter_papers.hare.executor import execute
from copter_papers.hare.workload import TESTBED, PaperWorkload

JOBS = 40


def main() -> None:
    """Parse, run, print."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--max-tasks", type=int, default=1_000_000)
    command.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    arguments = command.parse_args()
    instance = HareInstance.of(PaperWorkload(JOBS).make(arguments.seed), TESTBED)
    planned = HareScheduler(max_tasks=arguments.max_tasks).schedule(instance).schedule
    model = np.array([job.model for job in instance.jobs])
    done = {scheme: execute(planned, scheme) for scheme in SCHEMES}
    rows = {}
    print(f"{'ms a switch':>14} " + " ".join(f"{s:>10} (paper)" for s in SCHEMES) + "   hits")
    for name, known in MODELS.items():
        here = model == name
        count = done["hare"].switches[here].sum()
        if not count:
            continue
        means = [1e3 * e.switch_s[here].sum() / max(e.switches[here].sum(), 1) for e in done.values()]
        paper = (known.default_ms, known.pipeswitch_ms, known.hare_ms)
        rows[name] = dict(zip(SCHEMES, means, strict=True))
        cells = " ".join(f"{mine:9.2f} ({theirs:7.2f})" for mine, theirs in zip(means, paper, strict=True))
        print(f"{name:>14} {cells}   {100 * done['hare'].hits[here].sum() / count:.0f}%")
    worth = {scheme: e.schedule.objective / planned.objective for scheme, e in done.items()}
    print("sum w C over that without switches: " + ", ".join(f"{s} {v:.3f}" for s, v in worth.items()))
    if arguments.json:
        print(json.dumps({"switch_ms": rows, "objective_ratio": worth}))


if __name__ == "__main__":
    main()
