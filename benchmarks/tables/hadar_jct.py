"""Completion times and utilisation on 60 GPUs, static and continuous arrivals (the Hadar paper's Figures 3, 4 and 8).

python benchmarks/tables/hadar_jct.py                              # 480 jobs, static
python benchmarks/tables/hadar_jct.py --arrivals continuous --jobs-per-hour 1.5
"""

from __future__ import annotations

import numpy as np
from hadar_runs import compare, finish, options, over_seeds, run

from copter_frontends.vocabulary.named_clusters import named_cluster
from copter_papers.hadar.workload import hadar_jobs, table_source

PAPER = {
    "static": {
        "average": {"hadar": 1.0, "gavel": 1.8, "tiresias": 2.5, "yarn": 7.0},
        "median": {"hadar": 1.0, "gavel": 2.1, "tiresias": 3.0, "yarn": 15.0},
    },
    "continuous": {"average": {"hadar": 1.0, "gavel": 1.5, "tiresias": 2.3, "yarn": 5.0}, "median": {}},
}


def main() -> None:
    """Run the schedulers and print measured next to the paper's figures."""
    command = options(__doc__, "hadar,hadar-online,hadar-printed,gavel,tiresias,yarn", sizes=True)
    command.add_argument("--arrivals", choices=["static", "continuous"], default="static")
    command.add_argument("--jobs-per-hour", type=float, default=1.5)
    command.add_argument("--power", type=float, default=1.0, help="p of Hadar's AverageJct (default 1)")
    asked = command.parse_args()
    cluster = named_cluster("hadar-60")
    source = table_source(cluster, spread_cost=asked.spread_cost)
    outcomes = over_seeds(
        asked,
        lambda seed: hadar_jobs(asked.jobs, asked.arrivals, asked.jobs_per_hour, seed, asked.scale, asked.sizes),
        lambda name, jobs: run(name, "jct", cluster, source, jobs, power=asked.power),
    )
    paper = PAPER[asked.arrivals]
    tables = {
        "average": compare(
            f"average JCT, {asked.arrivals}", outcomes, lambda o: float(o.jct_h.mean()), paper["average"]
        ),
        "median": compare(
            f"median JCT, {asked.arrivals}", outcomes, lambda o: float(np.median(o.jct_h)), paper["median"]
        ),
        "longest": compare("longest JCT", outcomes, lambda o: float(o.jct_h.max()), {}),
        "utilisation": compare(
            "utilisation while jobs wait (paper: YARN-CS highest, Hadar like it, Gavel and Tiresias lower)",
            outcomes,
            lambda o: o.utilisation,
            {},
            unit="share",
        ),
        "changed": compare(
            "share of a running job's rounds in which its GPUs change (paper: Hadar 0.30)",
            outcomes,
            lambda o: o.changed_share,
            {},
            unit="share",
        ),
    }
    finish(asked, tables)


if __name__ == "__main__":
    main()
