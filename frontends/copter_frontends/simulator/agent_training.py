"""Training as in the public Sia simulator: measured steps, an agent that fits and tunes, whole seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from copter_frontends.goodput.job_agent import FitCache, JobAgent, Memory, noise_of
from copter_frontends.goodput.pipeline import pipeline_step_s
from copter_frontends.goodput.profiled import ProfiledApplication
from copter_frontends.simulator.job_table import Ints, JobTable
from copter_frontends.vocabulary import Allocation, Configuration
from copter_frontends.vocabulary.semantics import Semantics

ORACLE_NODES, ORACLE_GPUS = 16, 64  # nodes and GPUs up to which a job's oracle has profiles


class AgentTraining:
    """Jobs that train with an agent each (a :class:`~copter_frontends.simulator.training.Training`).

    Progress counts scale-invariant iterations, epoch by epoch. While epoch and batch stay the same, the rate is
    constant: the batch's gain divided by the time of its step with accumulation, divided by the slowdown. The batch is
    chosen anew when an allocation begins and at the end of each epoch and each round. The end of an epoch, and so of a
    job, is rounded to a whole second.

    Parameters
    ----------
    table : JobTable
    profiles : mapping of str to ProfiledApplication
    semantics : Semantics
    """

    def __init__(self, table: JobTable, profiles: Mapping[str, ProfiledApplication], semantics: Semantics) -> None:
        self._table, self._profiles, self._semantics = table, profiles, semantics
        self._fits = FitCache()
        self._agents: dict[int, JobAgent] = {}
        self._where: dict[int, tuple[str, tuple[int, ...]]] = {}
        self._seeds: dict[tuple[str, str], list[Any]] = {}
        self._memories: dict[str, Memory] = {}
        self._profiling = semantics.profiling == "bootstrap"
        for row, job in enumerate(table.jobs):
            if job.work_samples is None:
                application = profiles[job.application]
                table.work_samples[row] = float(application.epoch_ends[-1]) * application.init_batch_size

    def arrive(self, row: int) -> Mapping[str, Any]:
        """Make the job's agent, with the steps that were profiled in advance or that earlier jobs have measured."""
        job = self._table.jobs[row]
        application = self._profiles[job.application]
        most = application.max_batch_size
        if self._semantics.batch_limit == "both" and job.max_batch_size is not None:
            most = min(most, job.max_batch_size)
        agent = self._agents[row] = JobAgent(application, self._fits, most, job.batch_size, self._semantics.type_blind)
        if (memory := self._memory(row)) is not None:
            agent.remember(memory)
            agent.seed_noise()
            return self.news(row)
        profiled = {"oracle": (ORACLE_NODES, ORACLE_GPUS), "bootstrap": (1, self._semantics.profiled_gpus)}
        places = profiled.get(self._semantics.profiling)
        if places is not None:
            for kind, steps in application.steps.items():
                key = (job.application, kind)
                if key not in self._seeds:
                    self._seeds[key] = steps.observations(*places)
                agent.seed(kind, self._seeds[key])
            agent.seed_noise()
        if self._profiling:
            each_s = self._semantics.profiling_s * sum(self._semantics.profiling_runs)
            self._table.gpu_seconds[row] += each_s * len(application.steps)
        return self.news(row)

    def _memory(self, row: int) -> Memory | None:
        """Return what earlier jobs of the job's application have measured, if it may be used and there is any."""
        return self._memories.get(self._table.jobs[row].application) if self._semantics.deja_vu else None

    def profiled_on(self, row: int) -> Sequence[str]:
        """Return the GPU types on which a new job is profiled; none if its steps are known, as those of hybrid-parallel
        jobs are, or those that earlier jobs have measured.
        """
        application = self._profiles[self._table.jobs[row].application]
        known = application.application.pipeline is not None or self._memory(row) is not None
        return [] if known else list(application.steps)

    def begin_all(self, rows: Ints, allocations: Sequence[Allocation]) -> None:
        """Choose the batches for the new allocations."""
        for row, allocation in zip(rows.tolist(), allocations, strict=True):
            placement = used_of(allocation, self._table.jobs[row].gpus)
            self._where[row] = (allocation.gpu_type, placement)
            self._agents[row].tune(allocation.gpu_type, placement)

    def halt_all(self, rows: Ints) -> None:
        """Note that the jobs have no GPUs any more."""
        for row in rows.tolist():
            self._where.pop(row, None)

    def leave(self, row: int) -> None:
        """Drop the job's agent; the next job of its application may know what it has measured."""
        self._where.pop(row, None)
        agent = self._agents.pop(row, None)
        if agent is not None and self._semantics.deja_vu:
            agent.teach(self._memories.setdefault(self._table.jobs[row].application, Memory()))

    def fall_back(self, row: int) -> None:
        """Return the job to the end of its last complete epoch."""
        application = self._agents[row].application
        epoch = min(int(self._table.phase[row]), application.epochs)
        done = float(application.epoch_ends[epoch - 1]) if epoch else 0.0
        self._table.progress[row] = done * application.init_batch_size / float(self._table.work_samples[row])

    def news(self, row: int) -> Mapping[str, Any]:
        """Return the job's progress and its agent's hints."""
        hints = self._agents[row].hints()
        told: dict[str, Any] = {"progress": min(1.0, float(self._table.progress[row]))}
        return told if hints is None else {**told, "hints": hints}

    def news_of(self, rows: Ints) -> list[dict[str, Any]]:
        """Return :meth:`news` of each of the jobs."""
        return [dict(self.news(row)) for row in rows.tolist()]

    def progress_of(self, rows: Ints) -> None:
        """Return None: there are hints too."""

    def advance(self, running: Ints, begin_s: float, end_s: float) -> tuple[Ints, Ints]:
        """Train the running jobs from `begin_s` to `end_s`, one by one."""
        changed: list[int] = []
        completed: list[int] = []
        for row in running.tolist():
            clock = max(begin_s, float(self._table.resume_s[row]))
            if clock >= end_s:
                continue
            (completed if self._train(row, clock, end_s) else changed).append(row)
        return np.array(changed, dtype=np.int64), np.array(completed, dtype=np.int64)

    def _train(self, row: int, clock: float, end_s: float) -> bool:
        """Train one job; returns whether it completed."""
        table, agent = self._table, self._agents[row]
        kind, placement = self._where[row]
        application = agent.application
        work = float(table.work_samples[row]) / application.init_batch_size
        done = float(table.progress[row]) * work
        while clock < end_s:
            epoch = int(table.phase[row])
            rate = self._rate(agent, kind, placement, min(epoch, application.epochs - 1))
            goal = min(float(application.epoch_ends[epoch]), work) if epoch < application.epochs else work
            if done + rate * (end_s - clock) < goal:
                done += rate * (end_s - clock)
                clock = end_s
            else:
                clock += round((goal - done) / rate)
                done = goal
                table.phase[row] += 1
                if goal >= work:
                    table.completion_s[row], table.progress[row] = clock, 1.0
                    return True
            agent.tune(kind, placement)
        table.progress[row] = done / work
        return False

    def _rate(self, agent: JobAgent, kind: str, placement: Sequence[int], epoch: int) -> float:
        """Return scale-invariant iterations per second at the current batch; the agent observes the step (G14)."""
        application, pipeline = agent.application, agent.application.application.pipeline
        replicas = sum(placement) // (1 if pipeline is None else pipeline.stages[kind])
        batch = replicas * agent.local * (agent.accumulation + 1)
        noise = noise_of(application, batch, epoch)
        first = application.init_batch_size
        gain = batch / first * (noise + first) / (noise + batch)
        if pipeline is not None:  # one step processes all micro-batches
            place = Configuration(len(placement), sum(placement), kind)
            step_s, sync_s = pipeline_step_s(application.application, place)
            agent.observe(kind, placement, step_s, sync_s, noise)
            return gain / step_s / application.application.slowdown
        step_s, sync_s = application.steps[kind].step(placement, agent.local)
        agent.observe(kind, placement, step_s, sync_s, noise)
        return gain / (step_s + (step_s - sync_s) * agent.accumulation) / application.application.slowdown


def used_of(allocation: Allocation, gpus: int | None) -> tuple[int, ...]:
    """Return the GPUs on each node that a job trains on: all of them, or its fixed number."""
    left, used = gpus or allocation.gpus, []
    for _, held in allocation.nodes:
        used.append(min(held, left))
        left -= used[-1]
    return tuple(count for count in used if count)
