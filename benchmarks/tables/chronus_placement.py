"""Round-up on and off, and three placements of best-effort jobs, by the share of odd job sizes (Fig. 8).

python benchmarks/tables/chronus_placement.py --share 0.1 --days 2
"""

from __future__ import annotations

from chronus_runs import cluster_of, finish, make_policy, options, relabel, run, say, show, workload_of

from copter_frontends.chronus.workload import table_source


def main() -> None:
    """Run Chronus with each switch at each share of odd sizes (synthetic jobs: the trace has hardly any)."""
    command = options(__doc__, "chronus")
    command.add_argument("--hostile-shares", default="0.05,0.2,0.4")
    command.set_defaults(trace="synthetic")
    asked = command.parse_args()
    cluster = cluster_of(asked)
    source, tables = table_source(cluster), {}
    for share in (float(each) for each in asked.hostile_shares.split(",")):
        asked.hostile = share
        work = workload_of(asked, "mix2")
        found = []
        for round_up in (True, False):
            for style in ("local_search", "quasi", "consolidate") if round_up else ("local_search",):
                label = f"{'round up' if round_up else 'as asked'}, {style}"
                say(f"{share:g}: {label} ...")
                policy = make_policy("chronus", cluster, source, work, round_up=round_up, style=style)
                found.append(relabel(run("chronus", cluster, work, policy, source), label))
        show(f"share of odd sizes {share:g}: {len(work.jobs)} jobs, {cluster.gpus} GPUs", found)
        tables[f"{share:g}"] = found
    finish(asked, tables)


if __name__ == "__main__":
    main()
