"""Round-up on and off, and three placements of best-effort jobs, by the share of odd job sizes (Fig. 8).

python benchmarks/tables/chronus_placement.py --share 0.05 --days 3 [--density 3]
"""

from __future__ import annotations

from collections.abc import Iterator

from chronus_runs import Outcome, cluster_of, finish, make_policy, options, run, show, sweep, workload_of

from copter_papers.chronus.workload import table_source, with_density

PAPER = [
    "round-up lowers wDMR, the less the more odd sizes there are (Fig. 8(a))",
    "local search has the lowest best-effort JCT, and the lowest wDMR too (Fig. 8(b))",
]
CASES = ((True, "local_search"), (True, "quasi"), (True, "consolidate"), (False, "local_search"))


def main() -> None:
    """Run Chronus with each switch at each share of odd sizes (made-up jobs: the Philly trace has hardly any)."""
    command = options(__doc__, "chronus")
    command.add_argument("--hostile-shares", default="0.05,0.2,0.4")
    command.add_argument("--density", type=float, default=1.0, help="times as many jobs (default 1)")
    command.set_defaults(trace="helios")
    asked = command.parse_args()
    cluster = cluster_of(asked)
    source, tables = table_source(cluster), {}
    for share in (float(each) for each in asked.hostile_shares.split(",")):
        asked.hostile = share

        def runs(seed: int) -> Iterator[tuple[str, Outcome]]:
            work = with_density(workload_of(asked, "mix2", seed), asked.density, seed)
            for round_up, style in CASES:
                policy = make_policy("chronus", cluster, source, work, round_up=round_up, style=style)
                label = f"{'round up' if round_up else 'as asked'}, {style}"
                yield label, run("chronus", cluster, work, policy, source)

        tables[f"{share:g}"] = sweep(asked, f"odd sizes {share:g}", runs)
        show(f"share of odd sizes {share:g}: {cluster.gpus} GPUs", tables[f"{share:g}"], PAPER)
    finish(asked, tables)


if __name__ == "__main__":
    main()
