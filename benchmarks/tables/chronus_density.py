"""wDMR and best-effort JCT of all schedulers by job density, 80% to 160% (Fig. 9(c) to (f)).

python benchmarks/tables/chronus_density.py --share 0.05 --days 3
"""

from __future__ import annotations

from collections.abc import Iterator

from chronus_runs import Outcome, cluster_of, finish, make_policy, options, run, show, sweep, workload_of

from copter_papers.chronus.workload import table_source, with_density

PAPER = ["curves without figures: a higher density raises all, Chronus is lowest at each (5.4)"]


def main() -> None:
    """Run every scheduler at every density."""
    command = options(__doc__)
    command.add_argument("--densities", default="0.8,1.0,1.2,1.4,1.6")
    asked = command.parse_args()
    cluster = cluster_of(asked)
    source, tables = table_source(cluster), {}
    for density in (float(each) for each in asked.densities.split(",")):

        def runs(seed: int, density: float = density) -> Iterator[tuple[str, Outcome]]:
            work = with_density(workload_of(asked, "mix2", seed), density, seed)
            for name in asked.schedulers.split(","):
                yield name, run(name, cluster, work, make_policy(name, cluster, source, work), source)

        tables[f"{density:g}"] = sweep(asked, f"density {density:g}", runs)
        show(f"density {100 * density:.0f}%: {cluster.gpus} GPUs", tables[f"{density:g}"], PAPER)
    finish(asked, tables)


if __name__ == "__main__":
    main()
