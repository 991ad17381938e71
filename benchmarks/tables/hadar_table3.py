"""Table III of the Hadar paper: ten jobs on 8 GPUs of four types.

    python benchmarks/tables/hadar_table3.py

The paper does not name the jobs: ten are drawn as in section IV, with at most two GPUs, for several seeds. Rates of
the T4 and the K520 are not in Gavel's table; they are taken as 0.45 of a V100's and 0.6 of a K80's.
"""

from __future__ import annotations

from hadar_runs import compare, finish, options, over_seeds, run

from copter_frontends.simulator.table_source import TableApplication, TableSource
from copter_frontends.vocabulary import Cluster, Job, configurations_of
from copter_papers.hadar.workload import STEPS_PER_S, hadar_jobs

JCT_H = {"hadar": 2.21, "gavel": 4.97, "tiresias": 5.52}
MAKESPAN_H = {"hadar": 12.4, "gavel": 18.6, "tiresias": 24.92}
COUNTS = {"v100": 2, "t4": 2, "k80": 2, "k520": 2}  # nodes of one GPU each


def source_of(cluster: Cluster, spread_cost: float) -> TableSource:
    """Rates of the five models on the four types; every job of several GPUs is on as many nodes, so none is spread."""
    applications = {}
    for name, rates in STEPS_PER_S.items():
        per_gpu = {"v100": rates["v100"], "t4": 0.45 * rates["v100"], "k80": rates["k80"], "k520": 0.6 * rates["k80"]}
        applications[name] = TableApplication(name, per_gpu, dict.fromkeys(COUNTS, 1), spread_cost=spread_cost)
    return TableSource(configurations_of(cluster), applications)


def ten_jobs(seed: int, scale: float) -> list[Job]:
    """Ten jobs of at most two GPUs, so that every one fits on any one type, as Gavel and Tiresias need."""
    drawn = hadar_jobs(10, "static", seed=seed, scale=scale)
    return [
        Job(job.id, job.application, 0.0, work_samples=job.work_samples, requested_gpus=min(job.requested_gpus, 2))
        for job in drawn
    ]


def main() -> None:
    """Run the schedulers over some seeds and print measured next to the paper's figures."""
    command = options(__doc__, "hadar,gavel,tiresias")
    command.set_defaults(scale=0.1, seeds=10)
    asked = command.parse_args()
    cluster = Cluster.of({kind: (count, 1) for kind, count in COUNTS.items()})
    source = source_of(cluster, asked.spread_cost)
    outcomes = {
        objective: over_seeds(
            asked,
            lambda seed: ten_jobs(seed, asked.scale),
            lambda name, jobs, objective=objective: run(name, objective, cluster, source, jobs),  # type: ignore[misc]
        )
        for objective in ("jct", "makespan")
    }
    tables = {
        "jct": compare("average JCT", outcomes["jct"], lambda o: float(o.jct_h.mean()), relative(JCT_H)),
        "makespan": compare("makespan", outcomes["makespan"], lambda o: o.makespan_h, relative(MAKESPAN_H)),
    }
    finish(asked, tables)


def relative(hours: dict[str, float]) -> dict[str, float]:
    """The paper's simulated hours as multiples of Hadar's."""
    return {name: value / hours["hadar"] for name, value in hours.items()}


if __name__ == "__main__":
    main()
