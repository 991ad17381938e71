"""Thesis 3.5.4 (Figure 3.1, right): every job rigid, heterogeneous, 64 GPUs: Sia against Gavel, paper and measured.

python benchmarks/tables/rigid_only.py [--workloads 5] [--keep FILE] [--json]

Jobs have the batch and GPUs of the workload file. The thesis has Sia's average JCT "about 25%" below Gavel's, as it
is then "a max-sum-goodput policy": p = 1. Its usual p = -0.5 and p = 1 are both run, with what the public simulator
knows of a job before it has run (nothing) and with its throughputs known, as Gavel has them; and both under the
thesis's own semantics. Ratios are to Gavel of the same semantics. A figure is its mean over the workloads, with the
least and the most.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import loads
from runs import RunStore, Setting, data_directory, figures_of, mean, run_name, show, sia_policy
from spreads import mean_and_range, ratio_and_range
from sweeps import ORACLE_GROWTH, limited

from copter_frontends.vocabulary.semantics import SIA_ARTIFACT, SIA_THESIS

CLUSTER = "sia-het"
THESIS = 0.75
FIGURES = ("avg_jct_h", "p99_jct_h", "makespan_h", "gpu_hours_per_job", "contention", "restarts_per_job")
KNOWN = replace(SIA_ARTIFACT, profiling="oracle", growth=ORACLE_GROWTH)
ROWS = {
    "sia, p = -0.5": (SIA_ARTIFACT, -0.5),
    "sia, p = 1": (SIA_ARTIFACT, 1.0),
    "sia, p = -0.5, throughputs known": (KNOWN, -0.5),
    "sia, p = 1, throughputs known": (KNOWN, 1.0),
    "sia, p = -0.5, thesis": (SIA_THESIS, -0.5),
    "sia, p = 1, thesis": (SIA_THESIS, 1.0),
}
GAVELS = {"gavel": SIA_ARTIFACT, "gavel, thesis": SIA_THESIS}
ORDER = (
    "gavel",
    *(row for row in ROWS if "thesis" not in row),
    "gavel, thesis",
    *(row for row in ROWS if "thesis" in row),
)


def run(row: str, path: Path, store: RunStore, jobs: int | None = None) -> dict[str, Any]:
    """One row on one workload, or on its first so many jobs."""
    if row in GAVELS:
        setting = Setting("gavel", CLUSTER, path, GAVELS[row], jobs=jobs)
        return store.figures(run_name(setting), lambda: figures_of(setting))
    semantics, power = ROWS[row]
    setting = Setting("sia", CLUSTER, path, semantics, jobs=jobs, change=limited("rigid"))
    return store.figures(
        run_name(setting, f"rigid, {row}"), lambda: figures_of(setting, sia_policy(setting, power=power))
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run Gavel and Sia's rows, and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", type=int, default=5, help="philly workloads to average over (default 5)")
    parser.add_argument("--jobs", type=int, help="only the first so many jobs of each")
    parser.add_argument("--keep", metavar="FILE", help="keep the figures of each run here, and do not run it again")
    parser.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    asked = parser.parse_args(arguments)
    if asked.workloads < 1 or (asked.jobs is not None and asked.jobs < 1):
        parser.error("--workloads and --jobs must be 1 or more")
    paths = sorted((data_directory() / "traces" / "sia" / "philly").glob("workload-*.csv"))[: asked.workloads]
    store = RunStore(asked.keep)
    found = {row: [run(row, path, store, asked.jobs) for path in paths] for row in ORDER}
    each = {row: {name: [one[name] for one in runs] for name in FIGURES} for row, runs in found.items()}
    base = {row: each["gavel, thesis" if "thesis" in row else "gavel"]["avg_jct_h"] for row in ORDER}
    table = [
        [
            row,
            *(mean_and_range(values) for values in figures.values()),
            f"{1.0 if row in GAVELS else THESIS:g} / {ratio_and_range(figures['avg_jct_h'], base[row])}",
        ]
        for row, figures in each.items()
    ]
    show(f"Thesis 3.5.4: rigid jobs, {len(paths)} workloads", ["policy", *FIGURES, "JCT ratio, paper / here"], table)
    loads.say()
    if asked.json:
        rows = {row: {name: mean(runs, name) for name in FIGURES} for row, runs in found.items()}
        print(json.dumps({"rows": rows, "each": each}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
