"""wDMR and best-effort JCT of Chronus by the length of the SLO lease (Fig. 7(a): 15 to 30 minutes is best).

python benchmarks/tables/chronus_lease_length.py --share 0.05 --days 3
"""

from __future__ import annotations

from collections.abc import Iterator

from chronus_runs import ROUND_S, Outcome, cluster_of, finish, make_policy, options, run, show, sweep, workload_of

from copter_papers.chronus.workload import table_source

PAPER = ["15 to 30 minutes best, below 10 and above 30 worse; from 15 minutes on the best-effort JCT does not change"]


def main() -> None:
    """Run Chronus at every length."""
    command = options(__doc__, "chronus")
    command.add_argument("--minutes", default="5,10,15,20,30,60")
    asked = command.parse_args()
    cluster = cluster_of(asked)
    source = table_source(cluster)

    def runs(seed: int) -> Iterator[tuple[str, Outcome]]:
        work = workload_of(asked, "mix2", seed)
        for minutes in (float(each) for each in asked.minutes.split(",")):
            policy = make_policy("chronus", cluster, source, work, lease_s=60.0 * minutes, round_s=ROUND_S)
            yield f"{minutes:g} min", run("chronus", cluster, work, policy, source)

    found = sweep(asked, "lease lengths", runs)
    show(f"lease lengths: {cluster.gpus} GPUs", found, PAPER)
    finish(asked, {"lease_length": found})


if __name__ == "__main__":
    main()
