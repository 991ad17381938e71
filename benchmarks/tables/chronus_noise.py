"""wDMR of Chronus by the error of the profiled runtimes (Fig. 6(d): robust below 40%).

python benchmarks/tables/chronus_noise.py --share 0.05 --days 3
"""

from __future__ import annotations

from collections.abc import Iterator

from chronus_runs import RESTART_S, Outcome, cluster_of, finish, options, run, show, sweep, workload_of

from copter_frontends.policies.chronus import ChronusPolicy
from copter_frontends.policy_kit import GoodputThroughputs
from copter_papers.chronus.profiled_rates import ProfiledRates
from copter_papers.chronus.workload import table_source

PAPER = ["robust where the noise is below 40%"]


def main() -> None:
    """Run Chronus at every error."""
    command = options(__doc__, "chronus")
    command.add_argument("--noises", default="0,0.1,0.2,0.4,0.6,0.8")
    asked = command.parse_args()
    cluster = cluster_of(asked)
    source = table_source(cluster)

    def runs(seed: int) -> Iterator[tuple[str, Outcome]]:
        work = workload_of(asked, "mix2", seed)
        for noise in (float(each) for each in asked.noises.split(",")):
            rates = ProfiledRates(cluster, GoodputThroughputs(cluster, source), noise, seed)
            policy = ChronusPolicy(cluster, rates, work.rewards, restart_s=RESTART_S)
            yield f"noise {noise:g}", run("chronus", cluster, work, policy, source)

    found = sweep(asked, "errors", runs)
    show(f"errors of the profiled runtimes: {cluster.gpus} GPUs", found, PAPER)
    finish(asked, {"noise": found})


if __name__ == "__main__":
    main()
