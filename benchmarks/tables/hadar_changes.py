"""Why GPUs change in 30% of an average job's rounds in the Hadar paper (section IV-A, 5) and in fewer here.

    python benchmarks/tables/hadar_changes.py --jobs 120 --scale 0.25 --seeds 3

The share of rounds with a change counted in four ways, with one thing changed at a time: jobs that arrive one by one;
restarts that cost the plans nothing; all GPUs given out anew in every round; the paper's online algorithm.
"""

from __future__ import annotations

import argparse
from typing import Any

import loads
import numpy as np
from figure_command import spread
from hadar_runs import ROUND_S, finish, make_policy, options, say
from hadar_watch import Watched

from copter_frontends.policies.hadar import HadarPolicy
from copter_frontends.simulator import Simulation
from copter_frontends.vocabulary.named_clusters import named_cluster
from copter_papers.hadar.workload import hadar_jobs, table_source

VARIANTS: dict[str, tuple[str, bool]] = {
    "hadar": ("hadar", False),
    "restarts-free": ("hadar-free", False),
    "anew": ("hadar", True),
    "online": ("hadar-online", False),
    "online-anew": ("hadar-online", True),
    "online-printed": ("hadar-printed", False),
}


def watched(asked: argparse.Namespace, name: str, anew: bool, arrivals: str, seed: int) -> Watched:
    """One run."""
    cluster = named_cluster("hadar-60")
    source = table_source(cluster, spread_cost=asked.spread_cost)
    per_hour = asked.jobs_per_hour
    jobs = hadar_jobs(asked.jobs, arrivals, per_hour, seed, asked.scale, sizes=asked.sizes)  # type: ignore[arg-type]
    policy = make_policy(name, "jct", cluster, source)
    assert isinstance(policy, HadarPolicy)
    found = Watched(policy, anew)
    loads.note(cluster, jobs, source)
    Simulation(cluster, jobs, found, source, ROUND_S).run()  # type: ignore[arg-type]
    return found


def main() -> None:
    """Print the shares."""
    command = options(__doc__, ",".join(VARIANTS), sizes=True)
    command.add_argument("--jobs-per-hour", type=float, default=6.0, help="of those that arrive one by one (default 6)")
    command.set_defaults(jobs=120, scale=0.25)
    asked = command.parse_args()
    tables: dict[str, Any] = {}
    for arrivals in ("static", "continuous"):
        print(f"\nshare of rounds in which GPUs change, {arrivals}, {asked.jobs} jobs")
        columns = ("together", "by job", "by job, after its first", "of the cluster")
        print(f"  {'':<18}" + "".join(f"{column:<30}" for column in columns) + "rounds of a job, median")
        for label in asked.schedulers.split(","):
            name, anew = VARIANTS[label]
            say(f"{label}, {arrivals} ...")
            runs = [watched(asked, name, anew, arrivals, asked.seed + each) for each in range(asked.seeds)]
            shares = [each.changed_shares() for each in runs]
            length = [float(np.median([len(job.changed) for job in each.jobs.values()])) for each in runs]
            cells = [spread([each[column] for each in shares]) for column in columns]
            print(f"  {label:<18}" + "".join(f"{cell:<30}" for cell in cells) + spread(length))
            tables[f"{arrivals}, {label}"] = {column: [each[column] for each in shares] for column in columns}
    print("\nThe paper: only 30% of scheduling rounds require a change in allocation for an average job.")
    finish(asked, tables)


if __name__ == "__main__":
    main()
