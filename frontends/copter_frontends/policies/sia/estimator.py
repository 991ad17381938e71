"""A scheduler's estimate of a job's goodput from the job's hints (thesis 3.3.2, equation 3.1; S10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from copter_frontends.goodput.hints import TrainingHints
from copter_frontends.goodput.job_agent import noise_of
from copter_frontends.goodput.learned import learned_goodput
from copter_frontends.goodput.pipeline import pipeline_goodput
from copter_frontends.goodput.profiled import ProfiledApplication, profile_of
from copter_frontends.vocabulary import Configuration, Job, configurations_for
from copter_frontends.vocabulary.semantics import Semantics

Floats = NDArray[np.float64]


class HintedGoodput:
    """Estimates goodput rows and a job's next allowed configurations.

    Parameters
    ----------
    configurations : sequence of Configuration
    gpus_per_node : mapping of GPU type to int
        GPUs per node, in the order of the cluster's types.
    profiles : mapping of str to ProfiledApplication
        Profiles, of which only batch limits and one-GPU rates are used.
    semantics : Semantics
    """

    def __init__(
        self,
        configurations: Sequence[Configuration],
        gpus_per_node: Mapping[str, int],
        profiles: Mapping[str, ProfiledApplication],
        semantics: Semantics,
    ) -> None:
        self.semantics, self.profiles = semantics, profiles
        self.types = tuple(gpus_per_node)
        index = {kind: i for i, kind in enumerate(self.types)}
        self.configurations = tuple(configurations)
        self.gpus: NDArray[np.int64] = np.array([c.gpus for c in configurations], dtype=np.int64)
        self.kind: NDArray[np.int64] = np.array([index[c.gpu_type] for c in configurations], dtype=np.int64)
        self.own_nodes: NDArray[np.int64] = np.array([c.nodes for c in configurations], dtype=np.int64)
        self.nodes_on = {kind: -(-self.gpus // per_node) for kind, per_node in gpus_per_node.items()}
        order = [kind for kind in semantics.projection_order if kind in index]
        self.order = (*order, *(kind for kind in self.types if kind not in order))

    def row(self, job: Job, hints: TrainingHints | None) -> Floats:
        """Return estimated goodput in each configuration; 0 if the job cannot run there or may not yet.

        Before the first hint, a job may use only the smallest configuration of each type (the first with its
        `min_gpus`, or its fixed one), each with goodput 1. A hybrid-parallel job's throughput is known beforehand.
        """
        known = profile_of(self.profiles, job)
        if known.application.pipeline is not None:
            return self._pipeline_row(job, known, hints)
        if hints is None:
            result = np.zeros(len(self.gpus))
            result[self._first(job)] = 1.0
            if job.reservation is not None:
                result[self.gpus == job.reservation[1]] = 1.0
            return np.ones(len(self.gpus)) if job.gpus or not job.preemptible else result
        estimate = np.zeros(len(self.gpus))
        if job.gpus is not None:
            most = {kind: max(job.gpus, n) for kind, n in hints.max_gpus.items()}
            hints = replace(hints, max_gpus=most, ran_gpus=None, profiled_only=False)
        for k, kind in enumerate(self.types):
            mine = np.flatnonzero((self.kind == k) & (self.gpus <= self._most(job, hints, kind)))
            if kind in known.steps and len(mine):
                self._fill(estimate, mine, kind, job, hints)
        return estimate

    def _most(self, job: Job, hints: TrainingHints, kind: str) -> int:
        """Return the most GPUs of a type a job may have next, by the growth limit and its batch sizes.

        A job that has only been profiled starts on the smallest configuration (thesis 3.3.1).
        """
        known, growth = self.profiles[job.application], self.semantics.growth
        shared = self.semantics.profiling != "none"
        most = 0
        for other in self.types if shared else (kind,):
            if other not in known.steps:
                continue
            room = known.max_batch_size // known.steps[other].min_local
            doubled = 0 if growth is None or hints.profiled_only else growth * hints.grown(other)
            grown = room if growth is None else max(doubled, self._least(job))
            most = max(most, min(grown, room))
        return most

    def _first(self, job: Job) -> list[int]:
        """Return the smallest configuration of each type with the job's `min_gpus`."""
        return configurations_for(self.configurations, job.min_gpus)

    def _least(self, job: Job) -> int:
        """Return the GPUs exempt from growth limits: the first configurations, the request or the reservation."""
        asked = job.min_gpus if job.preemptible else max(job.requested_gpus, job.min_gpus)
        reserved = 1 if job.reservation is None else job.reservation[1]
        first = configurations_for(self.configurations, asked)
        return max(reserved, *(int(self.gpus[at]) for at in first)) if first else reserved

    def _pipeline_row(self, job: Job, known: ProfiledApplication, hints: TrainingHints | None) -> Floats:
        """Return the row of a hybrid-parallel job, which is profiled beforehand (thesis 3.5.3): G15 at its noise scale
        (S10).

        The growth limit counts GPUs, but always allows one replica of every type.
        """
        cap = min(job.max_batch_size or known.max_batch_size, known.max_batch_size)
        noise = noise_of(known, known.init_batch_size, 0) if hints is None else hints.noise_scale
        row = pipeline_goodput(known.application, self.configurations, cap, np.ones(1), np.array([noise]))
        row[self.gpus < job.min_gpus] = 0.0
        growth = self.semantics.growth
        if growth is None or job.gpus is not None or not job.preemptible:
            return row
        ran = hints is not None and not hints.profiled_only
        most = growth * max(hints.max_gpus.values(), default=0) if hints is not None and ran else 0
        for k in range(len(self.types)):
            mine = np.flatnonzero((self.kind == k) & (row > 0))
            if len(mine):
                row[mine[self.gpus[mine] > max(most, self.gpus[mine[0]])]] = 0.0
        return row

    def _fill(self, estimate: Floats, mine: NDArray[np.int64], kind: str, job: Job, hints: TrainingHints) -> None:
        steps, seen = self.profiles[job.application].steps, hints.parameters
        source = kind
        if kind not in seen:
            if self.semantics.profiling == "none":
                estimate[np.intersect1d(mine, self._first(job))] = self._least_seen(job, hints)
                return
            source = next(other for other in self.order if other in seen)
        own = self._goodput(job, hints, source, mine, self.own_nodes if source == kind else self.nodes_on[source])
        estimate[mine] = own * (steps[kind].one_gpu_rate / steps[source].one_gpu_rate)
        several = hints.several
        if self.semantics.profiling != "bootstrap" or kind in several or not several:
            return
        source = next(other for other in self.order if other in several)
        wide = mine[self.gpus[mine] > 1]
        if len(wide):
            ratio = steps[kind].one_gpu_rate / steps[source].one_gpu_rate
            estimate[wide] = ratio * self._goodput(job, hints, source, wide, self.nodes_on[source])

    def _least_seen(self, job: Job, hints: TrainingHints) -> float:
        """Return the least goodput on observed types, used for unobserved types."""
        least = np.inf
        for k, kind in enumerate(self.types):
            mine = np.flatnonzero((self.kind == k) & (self.gpus <= self._most(job, hints, kind)))
            if kind in hints.parameters and len(mine):
                result = self._goodput(job, hints, kind, mine, self.own_nodes)
                least = min(least, float(result[result > 0].min(initial=np.inf)))
        return least if np.isfinite(least) else 1.0

    def _goodput(
        self, job: Job, hints: TrainingHints, kind: str, mine: NDArray[np.int64], nodes: NDArray[np.int64]
    ) -> Floats:
        known = self.profiles[job.application]
        gpus = self.gpus[mine] if job.gpus is None else np.full(len(mine), job.gpus)
        return learned_goodput(
            job, known, known.steps[kind], hints.parameters[kind], hints.noise_scale, nodes[mine], gpus
        )
