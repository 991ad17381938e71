"""Weighted deadline-miss rate and best-effort JCT of all schedulers on SLO, MIX1 and MIX2 (Fig. 9(a) and (b)).

python benchmarks/tables/chronus_mixes.py                          # P_*: the Philly trace, 120 nodes, 14 days: hours
python benchmarks/tables/chronus_mixes.py --trace helios           # H_*: 96 nodes, jobs made up in its numbers
python benchmarks/tables/chronus_mixes.py --share 0.1 --days 3     # a tenth of nodes and jobs, three days: minutes
"""

from __future__ import annotations

from collections.abc import Iterator

from chronus_runs import Outcome, cluster_of, finish, make_policy, options, run, show, sweep, workload_of

from copter_papers.chronus.workload import table_source

PAPER = {
    "slo": ["bars without figures: Chronus lowest, GENIE before 3Sigma and EDF, Yarn-CS last (Fig. 9(a))"],
    "mix1": ["bars without figures: EDF and 3Sigma about as Chronus (Fig. 9(a))"],
    "mix2": [
        "Chronus 5.0% on H_MIX2 (5.1); wDMR up to 14.7x, best-effort JCT up to 19.9x less than the others' (abstract)"
    ],
}


def main() -> None:
    """Run every scheduler on every mix."""
    command = options(__doc__)
    command.add_argument("--mixes", default="slo,mix1,mix2")
    asked = command.parse_args()
    cluster = cluster_of(asked)
    source = table_source(cluster)
    tables = {}
    for mix in asked.mixes.split(","):

        def runs(seed: int, mix: str = mix) -> Iterator[tuple[str, Outcome]]:
            work = workload_of(asked, mix, seed)
            for name in asked.schedulers.split(","):
                yield name, run(name, cluster, work, make_policy(name, cluster, source, work), source)

        tables[mix] = sweep(asked, mix, runs)
        show(f"{asked.trace}, {mix}: {asked.days:g} days on {cluster.gpus} GPUs", tables[mix], PAPER[mix])
    finish(asked, tables)


if __name__ == "__main__":
    main()
