"""What the Selector's objective and admission are worth (Figs 7(b) and 7(c)).

Without the objective any plan that keeps the constraints will do: each job's last deadline is as good to the scheduler
as its first.

python benchmarks/tables/chronus_selector.py --share 0.05 --days 3
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from chronus_runs import Outcome, cluster_of, finish, make_policy, options, run, show, sweep, workload_of

from copter_frontends.policy_kit.deadlines import StepReward
from copter_papers.chronus.workload import Workload, table_source

PAPER = {
    "slo": ["wDMR of the rejected jobs is very high (Fig. 7(c), bars without figures)"],
    "mix1": ["wDMR of the rejected jobs is very high (Fig. 7(c))"],
    "mix2": [
        "without the objective soft jobs' wDMR is far higher (Fig. 7(b)); that of the rejected is very high (7(c))"
    ],
}


def indifferent(work: Workload) -> Workload:
    """Every job's last deadline is worth what its first one is."""
    rewards = {
        job: StepReward(((reward.last_s, reward.steps[0][1]),), floor=reward.floor)
        for job, reward in work.rewards.items()
    }
    return replace(work, rewards=rewards)


def main() -> None:
    """Run Chronus with and without its objective on every mix."""
    command = options(__doc__, "chronus")
    command.add_argument("--mixes", default="slo,mix1,mix2")
    asked = command.parse_args()
    cluster = cluster_of(asked)
    source, tables = table_source(cluster), {}
    for mix in asked.mixes.split(","):

        def runs(seed: int, mix: str = mix) -> Iterator[tuple[str, Outcome]]:
            work = workload_of(asked, mix, seed)
            cases = {"largest reward": work, "any feasible plan": indifferent(work)}
            for label, believed in cases.items():
                policy = make_policy("chronus", cluster, source, believed)
                yield label, run("chronus", cluster, work, policy, source, believed.rewards)

        tables[mix] = sweep(asked, mix, runs)
        show(f"{asked.trace}, {mix}: {cluster.gpus} GPUs", tables[mix], PAPER[mix], rejected=True)
    finish(asked, tables)


if __name__ == "__main__":
    main()
