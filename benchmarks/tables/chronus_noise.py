"""wDMR of Chronus by the error of the profiled runtimes (Fig. 6(d): robust below 40%).

python benchmarks/tables/chronus_noise.py --share 0.1 --days 2
"""

from __future__ import annotations

from chronus_runs import RESTART_S, cluster_of, finish, options, relabel, run, say, show, workload_of

from copter_frontends.chronus import ChronusPolicy
from copter_frontends.chronus.profiled_rates import ProfiledRates
from copter_frontends.chronus.workload import table_source
from copter_frontends.policy_kit import GoodputThroughputs


def main() -> None:
    """Run Chronus at every error."""
    command = options(__doc__, "chronus")
    command.add_argument("--noises", default="0,0.1,0.2,0.4,0.6,0.8")
    asked = command.parse_args()
    cluster, work = cluster_of(asked), workload_of(asked, "mix2")
    source, found = table_source(cluster), []
    for noise in (float(each) for each in asked.noises.split(",")):
        say(f"noise {noise:g} ...")
        rates = ProfiledRates(cluster, GoodputThroughputs(cluster, source), noise, asked.seed)
        policy = ChronusPolicy(cluster, rates, work.rewards, restart_s=RESTART_S)
        found.append(relabel(run("chronus", cluster, work, policy, source), f"noise {noise:g}"))
    show(f"errors of the profiled runtimes: {len(work.jobs)} jobs, {cluster.gpus} GPUs", found)
    finish(asked, {"noise": found})


if __name__ == "__main__":
    main()
