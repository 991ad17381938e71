"""Weighted deadline-miss rate and best-effort JCT of all schedulers on SLO, MIX1 and MIX2 (Fig. 9(a) and (b)).

python benchmarks/tables/chronus_mixes.py                          # the Philly trace on 120 nodes, 14 days: hours
python benchmarks/tables/chronus_mixes.py --share 0.1 --days 2     # a tenth of nodes and jobs, two days: minutes
"""

from __future__ import annotations

from chronus_runs import cluster_of, finish, make_policy, options, run, say, show, workload_of

from copter_frontends.chronus.workload import table_source


def main() -> None:
    """Run every scheduler on every mix."""
    command = options(__doc__)
    command.add_argument("--mixes", default="slo,mix1,mix2")
    asked = command.parse_args()
    cluster = cluster_of(asked)
    source = table_source(cluster)
    tables = {}
    for mix in asked.mixes.split(","):
        work = workload_of(asked, mix)
        found = []
        for name in asked.schedulers.split(","):
            say(f"{mix}: {name}, {len(work.jobs)} jobs on {cluster.gpus} GPUs ...")
            found.append(run(name, cluster, work, make_policy(name, cluster, source, work), source))
        show(f"{mix}: {len(work.jobs)} jobs, {len(work.rewards)} with deadlines, {cluster.gpus} GPUs", found)
        tables[mix] = found
    finish(asked, tables)


if __name__ == "__main__":
    main()
