"""wDMR and best-effort JCT of all schedulers by job density, 80% to 160% (Fig. 9(c) to (f)).

python benchmarks/tables/chronus_density.py --share 0.1 --days 2
"""

from __future__ import annotations

from chronus_runs import cluster_of, finish, make_policy, options, run, say, show, workload_of

from copter_frontends.chronus.workload import table_source, with_density


def main() -> None:
    """Run every scheduler at every density."""
    command = options(__doc__)
    command.add_argument("--densities", default="0.8,1.0,1.2,1.4,1.6")
    asked = command.parse_args()
    cluster, base = cluster_of(asked), workload_of(asked, "mix2")
    source, tables = table_source(cluster), {}
    for density in (float(each) for each in asked.densities.split(",")):
        work = with_density(base, density, asked.seed)
        found = []
        for name in asked.schedulers.split(","):
            say(f"density {density:g}: {name} ...")
            found.append(run(name, cluster, work, make_policy(name, cluster, source, work), source))
        show(f"density {100 * density:.0f}%: {len(work.jobs)} jobs, {cluster.gpus} GPUs", found)
        tables[f"{density:g}"] = found
    finish(asked, tables)


if __name__ == "__main__":
    main()
