"""A policy of your own in 80 lines: shortest remaining work first, by goodput, on copter's model.

    python frontends/examples/shortest_first.py

Each job's options are the configurations of the cluster. The value of an option is the job's speed-up in it divided by
the job's remaining work, so that nearly finished jobs come first. The LP distributes the GPUs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from copter import Model, Session
from copter_frontends.goodput import APPLICATIONS, GoodputModel
from copter_frontends.placement import Placer
from copter_frontends.simulator import Simulation
from copter_frontends.simulator.traces import generate_day
from copter_frontends.vocabulary import Allocation, Cluster, Job, Plan, SchedulingPolicy, configurations_of
from copter_frontends.vocabulary.named_clusters import scaled_cluster


class ShortestFirst(SchedulingPolicy):
    """A SchedulingPolicy: every round, the simulator reports changes to it and requests a plan."""

    round_s = 60.0

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.placer = cluster.copy(), Placer(cluster)
        self.options = configurations_of(cluster, max_gpus=16)
        self.goodput = GoodputModel(self.options)
        self.jobs: dict[str, Job] = {}
        self.progress: dict[str, float] = {}
        self.previous: dict[str, Allocation] = {}
        self.pinned: set[str] = set()
        self.model = Model(sense="max")
        for kind in cluster.types:
            self.model.add_resource(kind, cluster.capacity(kind))
        self.usage = self.model.add_template(
            {kind: [c.gpus if c.gpu_type == kind else 0 for c in self.options] for kind in cluster.types}
        )
        self.session = Session(self.model)

    def value(self, job: Job) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the value of every option: speed-up divided by remaining work; negative for impossible options."""
        row = self.goodput.row(job.application, self.progress[job.id], job.max_batch_size)
        work = job.work_samples or APPLICATIONS[job.application].work_samples
        hours_left = work * (1.0 - self.progress[job.id]) / row.max() / 3600.0
        return np.where(row > 0, row / row.max() / (0.1 + hours_left), -1.0)

    def add_job(self, job: Job) -> None:
        self.jobs[job.id], self.progress[job.id] = job, 0.0
        self.model.add_request(job.id, self.value(job), template=self.usage, integer=True)

    def update_job(self, job_id: str, **what_changed: Any) -> None:
        if "progress" in what_changed:
            self.progress[job_id] = min(what_changed["progress"], 0.999)
            self.model.update_cost(job_id, self.value(self.jobs[job_id]))

    def remove_job(self, job_id: str) -> None:
        self.model.remove_request(job_id)
        del self.jobs[job_id], self.progress[job_id]
        self.previous.pop(job_id, None)
        self.pinned.discard(job_id)

    def pin(self, job_id: str, allocation: Allocation | None) -> None:
        if allocation is None:
            self.model.unfix(job_id)
            self.pinned.discard(job_id)
        else:
            sizes = [(c.gpu_type, c.gpus) for c in self.options]
            self.model.fix(job_id, sizes.index((allocation.gpu_type, allocation.gpus)))
            self.pinned.add(job_id)

    def add_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        self.cluster.add_whole_nodes(gpu_type, count, nodes)
        self.model.add_resource(gpu_type, count)

    def remove_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        self.cluster.remove_nodes(self.cluster.choose_whole_nodes(gpu_type, count, nodes))
        self.model.remove_units(gpu_type, count)

    def plan(self, now_s: float, deadline_s: float = 60.0) -> Plan:
        chosen = self.session.solve_integer(deadline_s=deadline_s)
        if not chosen:  # what runs goes on
            return Plan(allocations=self.previous, objective=0.0, bound=0.0, gap=0.0)
        columns = {job: chosen.column(job) for job in self.jobs}
        wanted = {job: (self.options[c].gpu_type, self.options[c].gpus) for job, c in columns.items() if c is not None}
        self.previous, _, _ = self.placer.place_what_fits(wanted, self.previous, self.pinned)
        return Plan(allocations=self.previous, objective=chosen.objective, bound=chosen.bound, gap=chosen.gap)


def main() -> None:
    """Simulate the policy for six hours of a synthetic day on 224 GPUs."""
    cluster = scaled_cluster(224)
    policy = ShortestFirst(cluster)
    jobs = generate_day(300, hours=6.0, seed=1)
    result = Simulation(cluster, jobs, policy, GoodputModel(configurations_of(cluster))).run(hours=6.0)
    summary = result.summary()
    print(
        f"{summary['jobs_completed']} of {len(jobs)} jobs done, average JCT {summary['avg_jct_h']:.2f} h, "
        f"utilisation {summary['utilisation']:.0%}, round p99 {1e3 * summary['round_s']['p99']:.0f} ms"
    )


if __name__ == "__main__":
    main()
