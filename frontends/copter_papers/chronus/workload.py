"""The paper's workloads: a trace's jobs with strict, soft or no deadlines (section 4.1, Table 1; C22)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from copter_frontends.policies.chronus.spread_costs import SPREAD_COST
from copter_frontends.policy_kit.deadlines import MIXES, StepReward, draw_reward
from copter_frontends.simulator.table_source import TableApplication, TableSource
from copter_frontends.simulator.traces import Trace
from copter_frontends.vocabulary import Cluster, Job, TraceError, configurations_of

SMALL_JOBS = {1: 0.7, 2: 0.1, 4: 0.1, 8: 0.08, 16: 0.02}


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs in order of submission, and the rewards of jobs with deadlines."""

    jobs: tuple[Job, ...]
    rewards: Mapping[str, StepReward]

    def miss_values(self, jct_s: Mapping[str, float]) -> list[float]:
        """Return the reward of every SLO job at its completion time; unfinished jobs get their floor."""
        return [reward.at(jct_s.get(job, float("inf"))) for job, reward in self.rewards.items()]


def table_source(cluster: Cluster, restart_s: float = 30.0) -> TableSource:
    """Return models with an iteration per GPU-second, so that a job lasts its duration on its requested GPUs."""
    per_node = {name: kind.gpus_per_node for name, kind in cluster.types.items()}
    speeds = dict.fromkeys(cluster.types, 1.0)
    applications = {
        name: TableApplication(name, speeds, per_node, restart_s=restart_s, spread_cost=cost)
        for name, cost in SPREAD_COST.items()
    }
    return TableSource(configurations_of(cluster), applications)


def trace_workload(
    trace: Trace, mix: str = "mix2", own_deadlines: bool = False, seed: int = 0, most: int | None = None
) -> Workload:
    """Assign a trace's jobs to the classes of a mix: strict deadlines, soft deadlines and best effort.

    Parameters
    ----------
    trace : Trace
        Trace with durations, from :func:`copter_frontends.simulator.traces.read_trace`.
    mix : {"slo", "mix1", "mix2"}
    own_deadlines : bool
        Keep the trace's own deadlines and classes; by default both are drawn as the paper's text says.
    seed : int
    most : int, optional
        Take only this many jobs, the first ones.
    """
    if mix not in MIXES:
        raise TraceError(f"mix is {mix!r}, must be one of {', '.join(MIXES)}")
    names = sorted(SPREAD_COST)
    jobs, rewards = [], {}
    rng = np.random.default_rng(seed)
    for number, line in enumerate(trace.jobs[:most]):
        if line.duration_s is None:
            raise TraceError(f"{trace.path}: job {number} has no duration; give a trace that says how long jobs ran")
        job_id = f"job-{number:05d}"
        model = line.model if line.model in SPREAD_COST else names[int(rng.integers(len(names)))]
        work = line.duration_s * line.gpus
        jobs.append(Job(job_id, str(model), line.submit_s, work_samples=work, requested_gpus=line.gpus))
        drawn = draw_reward(line.duration_s, mix, rng)
        if own_deadlines:
            drawn = StepReward.listed(line.deadlines) if line.deadlines else None
        if drawn is not None:
            rewards[job_id] = drawn
    return Workload(tuple(jobs), rewards)


def synthetic_workload(
    count: int,
    hours: float,
    mix: str = "mix2",
    mean_h: float = 1.5,
    seed: int = 0,
    hostile: float = 0.05,
    sizes: Mapping[int, float] = SMALL_JOBS,
) -> Workload:
    """Generate jobs: Poisson arrivals over `hours`, log-normal durations, mostly one GPU.

    Parameters
    ----------
    count : int
    hours : float
    mix : {"slo", "mix1", "mix2"}
    mean_h : float
        Mean duration in hours.
    seed : int
    hostile : float
        Share of jobs whose number of GPUs does not consolidate without rounding (3, 5, 6 or 12 on nodes of 8).
    sizes : mapping
        Distribution of the other jobs' numbers of GPUs; the shares sum to one.
    """
    if count < 1 or not hours > 0 or not mean_h > 0 or mix not in MIXES:
        raise TraceError(f"count is {count}, hours {hours}, mean_h {mean_h}, mix {mix!r}; the numbers must be positive")
    rng = np.random.default_rng(seed)
    names = sorted(SPREAD_COST)
    submit_s = np.sort(rng.uniform(0.0, hours * 3600.0, count))
    duration_s = np.clip(mean_h * 3600.0 * rng.lognormal(-0.5, 1.0, count), 360.0, 24 * 3600.0)
    gpus = rng.choice(list(sizes), count, p=list(sizes.values()))
    odd = rng.random(count) < hostile
    gpus[odd] = rng.choice([3, 5, 6, 12], int(odd.sum()))
    jobs, rewards = [], {}
    for i in range(count):
        job_id, work = f"job-{i:05d}", float(duration_s[i] * gpus[i])
        jobs.append(Job(job_id, names[i % len(names)], float(submit_s[i]), work, requested_gpus=int(gpus[i])))
        reward = draw_reward(float(duration_s[i]), mix, rng)
        if reward is not None:
            rewards[job_id] = reward
    return Workload(tuple(jobs), rewards)


@dataclass(frozen=True, slots=True)
class TraceNumbers:
    """Published statistics of a trace in Table 1 whose jobs are not public."""

    nodes: int
    days: float
    jobs: int
    short: int


HELIOS = TraceNumbers(nodes=96, days=14.0, jobs=6599, short=5735)
# share of jobs by GPUs; the mean is 3.8 GPUs, in the whole log 3.7
HELIOS_SIZES = {1: 0.5, 2: 0.13, 4: 0.12, 8: 0.2, 16: 0.04, 32: 0.01}
HELIOS_LOAD = 1.0  # requested GPU time divided by available GPU time; assumed, because the paper does not state it


def helios_workload(
    nodes: int, days: float, mix: str = "mix2", seed: int = 0, hostile: float = 0.05, load: float = HELIOS_LOAD
) -> Workload:
    """Generate jobs with the statistics of the paper's H_* workloads, whose log is not public.

    Jobs per node and day are the paper's: 6,599 jobs in 14 days on 96 nodes of 8 GPUs. The mean duration follows from
    the load.

    Parameters
    ----------
    nodes : int
    days : float
    mix : {"slo", "mix1", "mix2"}
    seed : int
    hostile : float
        See :func:`synthetic_workload`.
    load : float
    """
    count = max(round(HELIOS.jobs * nodes / HELIOS.nodes * days / HELIOS.days), 1)
    sizes = {gpus: share for gpus, share in HELIOS_SIZES.items() if gpus <= 8 * nodes}
    sizes = {gpus: share / sum(sizes.values()) for gpus, share in sizes.items()}
    drawn = synthetic_workload(count, 24.0 * days, mix, 4.0, seed, hostile, sizes)
    asked = sum(job.work_samples or 0.0 for job in drawn.jobs) / (nodes * 8 * days * 86400.0)
    return synthetic_workload(count, 24.0 * days, mix, 4.0 * load / asked, seed, hostile, sizes)


def with_density(workload: Workload, density: float, seed: int = 0) -> Workload:
    """Return fewer jobs, drawn at random, or more jobs, with copies of jobs drawn at random (section 5.4)."""
    if not density > 0:
        raise TraceError(f"density is {density}, must be > 0")
    rng = np.random.default_rng(seed)
    jobs, rewards = list(workload.jobs), dict(workload.rewards)
    count = round(len(jobs) * density)
    if count <= len(jobs):
        kept = np.sort(rng.choice(len(jobs), count, replace=False)).tolist()
        jobs = [jobs[at] for at in kept]
        return Workload(tuple(jobs), {job.id: rewards[job.id] for job in jobs if job.id in rewards})
    for at in rng.choice(len(jobs), count - len(jobs)).tolist():
        copy = replace(jobs[at], id=f"{jobs[at].id}-{len(jobs)}")
        if jobs[at].id in rewards:
            rewards[copy.id] = rewards[jobs[at].id]
        jobs.append(copy)
    jobs.sort(key=lambda job: job.submit_s)
    return Workload(tuple(jobs), rewards)


def best_effort(workload: Workload) -> Sequence[Job]:
    """Return the jobs without deadlines."""
    return [job for job in workload.jobs if job.id not in workload.rewards]
