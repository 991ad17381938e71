"""Finish-time fairness and makespan on 60 GPUs, each under its own objective (the Hadar paper's Figures 5 and 6).

python benchmarks/tables/hadar_fairness_makespan.py
"""

from __future__ import annotations

from hadar_runs import compare, finish, options, over_seeds, run

from copter_frontends.vocabulary.named_clusters import named_cluster
from copter_papers.hadar.workload import hadar_jobs, table_source

FAIRNESS = {"hadar": 1.0, "gavel": 1.5, "tiresias": 1.8}
MAKESPAN = {"hadar": 1.0, "gavel": 1.5, "tiresias": 2.0}


def main() -> None:
    """Run the schedulers once an objective and print measured next to the paper's figures."""
    asked = options(__doc__, "hadar,gavel,tiresias").parse_args()
    cluster = named_cluster("hadar-60")
    source = table_source(cluster, spread_cost=asked.spread_cost)
    outcomes = {
        objective: over_seeds(
            asked,
            lambda seed: hadar_jobs(asked.jobs, "static", seed=seed, scale=asked.scale),
            lambda name, jobs, objective=objective: run(name, objective, cluster, source, jobs),  # type: ignore[misc]
        )
        for objective in ("ftf", "makespan")
    }
    title = "average finish-time fairness, JCT over that on 1/n of the cluster"
    tables = {
        "ftf": compare(title, outcomes["ftf"], lambda o: float(o.ftf.mean()), FAIRNESS, unit="ratio"),
        "worst_ftf": compare("worst of the same", outcomes["ftf"], lambda o: float(o.ftf.max()), {}, unit="ratio"),
        "makespan": compare("makespan", outcomes["makespan"], lambda o: o.makespan_h, MAKESPAN),
    }
    finish(asked, tables)


if __name__ == "__main__":
    main()
