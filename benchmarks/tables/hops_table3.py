"""Table 3 of the Hops paper: 25 jobs on 64 GPUs, Hops compared with Sia and Gavel.

    python benchmarks/tables/hops_table3.py --seeds 3

25 tasks of Table 2 arrive within 2.5 hours. The paper's trace is not public: jobs are drawn, several times.
"""

from __future__ import annotations

from hops_runs import compared, finish, over_seeds, show

from copter_frontends.vocabulary.named_clusters import named_cluster
from copter_papers.hops.workload import iteration_source

NAN = float("nan")
PAPER = {
    "hops": (9.51, 3.2, 0.95, 0.37, 0.15, NAN),
    "sia": (11.68, 4.41, 1.47, 1.03, 5.89, NAN),
    "gavel": (14.46, 5.92, 2.11, 1.31, 3.36, NAN),
}


def main() -> None:
    """Run the schedulers over some seeds."""
    asked = compared(__doc__, 25, 10.0).parse_args()
    cluster = named_cluster("hops-64")
    outcomes = over_seeds(asked, cluster, iteration_source(cluster))
    finish(asked, {"table3": show(f"{asked.jobs} jobs on 64 GPUs", outcomes, PAPER)})


if __name__ == "__main__":
    main()
