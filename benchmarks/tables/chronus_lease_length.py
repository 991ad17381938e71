"""wDMR and best-effort JCT of Chronus by the length of the SLO lease (Fig. 7(a): 15 to 30 minutes is best).

python benchmarks/tables/chronus_lease_length.py --share 0.1 --days 2
"""

from __future__ import annotations

from chronus_runs import ROUND_S, cluster_of, finish, make_policy, options, relabel, run, say, show, workload_of

from copter_frontends.chronus.workload import table_source


def main() -> None:
    """Run Chronus at every length."""
    command = options(__doc__, "chronus")
    command.add_argument("--minutes", default="5,10,15,20,30,60")
    asked = command.parse_args()
    cluster, work = cluster_of(asked), workload_of(asked, "mix2")
    source, found = table_source(cluster), []
    for minutes in (float(each) for each in asked.minutes.split(",")):
        say(f"leases of {minutes:g} min ...")
        policy = make_policy("chronus", cluster, source, work, lease_s=60.0 * minutes, round_s=ROUND_S)
        found.append(relabel(run("chronus", cluster, work, policy, source), f"{minutes:g} min"))
    show(f"lease lengths: {len(work.jobs)} jobs, {cluster.gpus} GPUs", found)
    finish(asked, {"lease_length": found})


if __name__ == "__main__":
    main()
