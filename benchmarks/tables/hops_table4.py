"""Table 4 of the Hops paper: 500 jobs, 100 an hour, 512 GPUs, Hops compared with Sia and Gavel (Figures 11, 12 too).

python benchmarks/tables/hops_table4.py                       # whole: some minutes
python benchmarks/tables/hops_table4.py --scale 0.1 --jobs 200 --jobs-per-hour 400
"""

from __future__ import annotations

from hops_runs import compared, finish, over_seeds, show

from copter_frontends.vocabulary.named_clusters import named_cluster
from copter_papers.hops.workload import iteration_source

PAPER = {
    "hops": (10.48, 2.24, 0.87, 3.22, 0.45, 2.15),
    "sia": (12.36, 3.79, 1.68, 78.5, 56.0, 28.27),
    "gavel": (15.42, 4.04, 2.24, 70.43, 18.0, 32.01),
}


def main() -> None:
    """Run the schedulers over some seeds."""
    asked = compared(__doc__, 500, 100.0).parse_args()
    cluster = named_cluster("hops-512")
    outcomes = over_seeds(asked, cluster, iteration_source(cluster))
    finish(asked, {"table4": show(f"{asked.jobs} jobs on 512 GPUs", outcomes, PAPER)})


if __name__ == "__main__":
    main()
