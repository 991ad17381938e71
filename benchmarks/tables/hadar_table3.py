"""Table III of the Hadar paper: ten jobs on 8 GPUs of four types.

    python benchmarks/tables/hadar_table3.py

The paper does not name the jobs: ten are drawn as in section IV, with at most two GPUs, for several seeds. Rates of
the T4 and the K520 are not in Gavel's table; they are taken as 0.45 of a V100's and 0.6 of a K80's.
"""

from __future__ import annotations

import numpy as np
from hadar_runs import Outcome, compare, finish, options, run, say

from copter_frontends.hadar.workload import STEPS_PER_S, hadar_jobs
from copter_frontends.simulator.table_source import TableApplication, TableSource
from copter_frontends.vocabulary import Cluster, Job, configurations_of

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


def pooled(name: str, runs: list[Outcome]) -> Outcome:
    """The average of several seeds' outcomes."""
    return Outcome(
        name,
        np.concatenate([r.jct_h for r in runs]),
        np.concatenate([r.ftf for r in runs]),
        float(np.mean([r.makespan_h for r in runs])),
        float(np.mean([r.utilisation for r in runs])),
        float(np.mean([r.changed_share for r in runs])),
        max(r.round_p99_s for r in runs),
        sum(r.skipped for r in runs),
    )


def main() -> None:
    """Run the schedulers over some seeds and print measured next to the paper's figures."""
    command = options(__doc__, "hadar,gavel,tiresias")
    command.add_argument("--draws", type=int, default=10, help="sets of ten jobs (default 10)")
    command.set_defaults(scale=0.1)
    asked = command.parse_args()
    cluster = Cluster.of({kind: (count, 1) for kind, count in COUNTS.items()})
    source = source_of(cluster, asked.spread_cost)
    outcomes: dict[str, list[list[Outcome]]] = {"jct": [], "makespan": []}
    for objective in outcomes:
        for name in asked.schedulers.split(","):
            say(f"{name}, {objective} ...")
            seeds = range(asked.seed, asked.seed + asked.draws)
            outcomes[objective].append(
                [run(name, objective, cluster, source, ten_jobs(seed, asked.scale)) for seed in seeds]
            )
    names = asked.schedulers.split(",")
    jct = [pooled(name, runs) for name, runs in zip(names, outcomes["jct"], strict=True)]
    makespan = [pooled(name, runs) for name, runs in zip(names, outcomes["makespan"], strict=True)]
    tables = {
        "jct": compare("average JCT", jct, lambda o: float(o.jct_h.mean()), relative(JCT_H)),
        "makespan": compare("makespan", makespan, lambda o: o.makespan_h, relative(MAKESPAN_H)),
    }
    finish(asked, tables)


def relative(hours: dict[str, float]) -> dict[str, float]:
    """The paper's simulated hours as multiples of Hadar's."""
    return {name: value / hours["hadar"] for name, value in hours.items()}


if __name__ == "__main__":
    main()
