"""Thesis 3.5.8: what profiling each job before it runs costs on a cluster of 3 GPU types, and on one of 20.

python benchmarks/tables/sia_types.py [--workloads 1] [--jobs N] [--types 3,20] [--json]

A cluster has one node of four GPUs a type. Types beyond the three that were measured (T4, RTX, A100) are copies of them
with names of their own: Sia takes them for types of their own, and profiles every job on each. Each run is made twice,
under the thesis's semantics and with the same knowledge for nothing; the rows say by how much JCT and GPU hours differ.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

sys.path.insert(0, str(Path(__file__).parent))
import loads
from figure_command import spread, whole
from runs import Setting, data_directory, jobs_of, profiles_of, show

from copter_frontends.goodput import GoodputModel
from copter_frontends.goodput.applications import ALL_APPLICATIONS
from copter_frontends.goodput.profiled import ProfiledApplication
from copter_frontends.policies.sia import SiaPolicy
from copter_frontends.policies.sia.objective import objective_of
from copter_frontends.simulator import Simulation
from copter_frontends.vocabulary import Cluster, configurations_of
from copter_frontends.vocabulary.semantics import SIA_THESIS, Semantics

MEASURED = ("t4", "rtx", "a100")
GPUS_PER_NODE = 4
PAPER = "with 20 types bootstrapping adds less than 5% overhead to a job's execution, some 0.1 GPU hours a job"
Each = TypeVar("Each")


def copies(count: int) -> dict[str, str]:
    """So many GPU types: the name of each, and the measured type of which it is a copy."""
    return {f"{MEASURED[k % 3]}-{k // 3}" if k >= 3 else MEASURED[k]: MEASURED[k % 3] for k in range(count)}


def copied(of: Mapping[str, Each], kinds: Mapping[str, str]) -> dict[str, Each]:
    """What is known by measured type, by the names of its copies."""
    return {name: of[kind] for name, kind in kinds.items() if kind in of}


def run(path: Path, count: int, semantics: Semantics, jobs: int | None) -> dict[str, float]:
    """JCT and GPU hours a job of one workload on so many types."""
    kinds = copies(count)
    setting = Setting("sia", "sia-het", path, semantics, jobs=jobs)
    cluster = Cluster.of(dict.fromkeys(kinds, (1, GPUS_PER_NODE)))
    applications = {
        name: replace(application, gpus=copied(application.gpus, kinds))
        for name, application in ALL_APPLICATIONS.items()
        if application.pipeline is None
    }
    measured = profiles_of(setting)
    profiles: dict[str, ProfiledApplication] = {
        name: replace(each, application=applications[name], steps=copied(each.steps, kinds))
        for name, each in (measured or {}).items()
        if name in applications
    }
    model = GoodputModel(configurations_of(cluster), applications)
    policy = SiaPolicy(
        cluster, model, objective=objective_of(semantics), semantics=semantics, profiles=profiles or None
    )
    drawn = jobs_of(setting)
    loads.note(cluster, drawn, model)
    simulation = Simulation(
        cluster, drawn, policy, model, policy.round_s, semantics=semantics, profiles=profiles or None
    )
    summary = simulation.run().summary()
    return {"jct_h": float(summary["avg_jct_h"]), "gpu_h": float(summary["gpu_hours_per_job"])}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both ways on each number of types and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", type=whole, default=1, help="to average over, the first so many (default 1)")
    parser.add_argument("--jobs", type=whole, help="only the first so many jobs of each")
    parser.add_argument("--types", default="3,20", help="numbers of GPU types (default 3,20)")
    parser.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    asked = parser.parse_args(arguments)
    counts = [int(count) for count in asked.types.split(",")]
    if min(counts) < len(MEASURED):
        parser.error(f"--types {asked.types}: each must be {len(MEASURED)} or more")
    paths = sorted((data_directory() / "traces" / "sia" / "saturn").glob("workload-*.csv"))[: asked.workloads]
    free = replace(SIA_THESIS, profiling_s=0.0)
    found: list[dict[str, Any]] = []
    for count in counts:
        both = [[run(path, count, semantics, asked.jobs) for path in paths] for semantics in (free, SIA_THESIS)]
        more = [
            {name: 100.0 * (paid[name] / unpaid[name] - 1.0) for name in paid}
            for unpaid, paid in zip(*both, strict=True)
        ]
        charged = SIA_THESIS.profiling_s * count / 3600.0
        found.append({"types": count, "free": both[0], "profiled": both[1], "more": more, "charged_h": charged})
    rows = [
        [
            str(each["types"]),
            *(spread([one[name] for one in each["profiled"]]) for name in ("jct_h", "gpu_h")),
            f"{each['charged_h']:.3g}",
            spread([100.0 * each["charged_h"] / one["gpu_h"] for one in each["profiled"]], "%"),
            *(spread([one[name] for one in each["more"]], "%") for name in ("jct_h", "gpu_h")),
        ]
        for each in found
    ]
    heads = ["GPU types", "JCT h", "GPU hours a job", "profiling, GPU h a job", "of its GPU hours"]
    title = f"Profiling on several GPU types, saturn, {len(paths)} workloads, semantics {SIA_THESIS.name}"
    show(title, [*heads, "JCT over unprofiled", "GPU hours over it"], rows)
    loads.say()
    print(f"\nThe paper: {PAPER}.")
    if asked.json:
        print(json.dumps({"rows": found}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
