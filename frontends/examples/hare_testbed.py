"""The paper's testbed of 15 GPUs with its workload, scheduled by tasks and in the simulator's rounds.

python frontends/examples/hare_testbed.py
"""

from __future__ import annotations

import argparse

import numpy as np

from copter_frontends.policies.baselines import FifoPolicy
from copter_frontends.policies.hare import HareInstance, HareScheduler
from copter_frontends.policies.hare.online import OnlineHare
from copter_frontends.policies.hare.policy import HarePolicy
from copter_frontends.policies.hare.task_policy import HareTaskPolicy
from copter_frontends.policies.hare.task_rates import TaskGoodput
from copter_frontends.policy_kit import GoodputThroughputs, RunsWith
from copter_frontends.simulator import Simulation
from copter_frontends.vocabulary import SchedulingPolicy, configurations_of
from copter_frontends.vocabulary.named_clusters import cluster_from
from copter_papers.hare.applications import HARE_APPLICATIONS, as_jobs
from copter_papers.hare.executor import execute
from copter_papers.hare.opponent_policy import OpponentPolicy
from copter_papers.hare.opponents import OPPONENTS, RULES
from copter_papers.hare.workload import PaperWorkload

ROUND_S = 60.0


def main() -> None:
    """Schedule the workload offline, online and in rounds, and print the JCTs."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--jobs", type=int, default=40)
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--max-tasks", type=int, default=200_000)
    arguments = command.parse_args()
    cluster = cluster_from("hare-15")
    gpus = {kind: cluster.capacity(kind) for kind in cluster.types}
    jobs = PaperWorkload(arguments.jobs).make(arguments.seed)
    instance = HareInstance.of(jobs, gpus)
    planned = HareScheduler(max_tasks=arguments.max_tasks).schedule(instance)
    online = OnlineHare(gpus, max_tasks=arguments.max_tasks, event_s=30.0).run(jobs)
    ends = {
        "Hare, by tasks": execute(planned.schedule).schedule.completion_s,
        "Hare, online": execute(online).schedule.completion_s,
        **{name: scheme(instance).completion_s for name, scheme in OPPONENTS.items()},
    }
    model = TaskGoodput(configurations_of(cluster), HARE_APPLICATIONS)
    weights = {job.id: job.weight for job in jobs}
    policies: dict[str, SchedulingPolicy] = {
        "Hare, by tasks in rounds": HareTaskPolicy(cluster, round_s=ROUND_S, weights=weights),
        "Hare, gangs in rounds": HarePolicy(cluster, model, round_s=ROUND_S, weights=weights),
        **{
            f"{name}, in rounds": OpponentPolicy(cluster, name, model, round_s=ROUND_S, weights=weights)
            for name in RULES
        },
        "FIFO, in rounds": FifoPolicy(cluster, can_run=RunsWith(GoodputThroughputs(cluster, model))),
    }
    at = {job.id: n for n, job in enumerate(jobs)}
    for name, policy in policies.items():
        result = Simulation(cluster, as_jobs(jobs), policy, model, ROUND_S).run()
        ends[name] = np.full(len(jobs), np.nan)
        ends[name][[at[str(job_id)] for job_id in result.jobs["id"]]] = result.jobs["completion_s"]
    print(f"{len(jobs)} jobs on {cluster.gpus} GPUs; the plan is at most {planned.ratio:.2f} times the optimum")
    for name, end in ends.items():
        jct = end - instance.arrival_s
        print(f"{name:>22}: weighted JCT {instance.weight @ jct / 3600:8.1f} h, mean {jct.mean() / 60:7.1f} min")


if __name__ == "__main__":
    main()
