"""The constructor of a policy and its options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from copter import Settings
from copter_frontends.goodput import GoodputModel
from copter_frontends.goodput.profiled import ProfiledApplication
from copter_frontends.policy_kit.deadlines import DeadlineOptions
from copter_frontends.vocabulary import Cluster, Job, SchedulingPolicy
from copter_frontends.vocabulary.semantics import DEFAULT, Semantics


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """How to build a policy.

    Attributes
    ----------
    make : callable (cluster, goodput model, mode, settings) -> SchedulingPolicy
        Makes the policy with its paper's round length; the settings are those of its sessions.
    has_lp : bool
        Whether each round is a linear program, which another solver can solve too.
    takes_semantics : bool
        Whether `make` has the further arguments semantics and profiles (or None).
    takes_options : bool
        Whether `make`'s last argument is a mapping of the policy's own options.
    takes_deadlines : bool
        Whether `make`'s last argument is the command line's options about deadlines (or None).
    takes_weights : bool
        Whether `make` has the jobs' weights (by id) as a further argument.
    takes_profiling : bool
        Whether `make` has the keyword profiling: whether to measure the speeds of jobs first.
    by_tasks : bool
        Whether its jobs run as tasks, on mixed GPU types and in turns, which the simulator must reproduce.
    rigid : bool
        Whether the policy is for jobs with a fixed batch size, if the workload gives one.
    capped : bool
        Whether a workload's batch size limits the batch that the policy expects of a job, as in Sia's public simulator.
    type_blind : bool
        Whether the agents of the policy's jobs also ignore GPU types.
    """

    make: Callable[..., SchedulingPolicy]
    has_lp: bool
    takes_semantics: bool = False
    takes_weights: bool = False
    takes_options: bool = False
    takes_deadlines: bool = False
    takes_profiling: bool = False
    by_tasks: bool = False
    rigid: bool = False
    capped: bool = True
    type_blind: bool = False

    def under(self, semantics: Semantics) -> Semantics:
        """Return the semantics for this policy: the public simulator runs type-blind policies in another loop."""
        if not self.type_blind or semantics.training == "exact":
            return semantics
        return replace(semantics, type_blind=True, charge="type_and_shape", pin_restoring=False)

    def in_form(self, jobs: Iterable[Job]) -> list[Job]:
        """Return the jobs in the form of the policy's paper; a policy for rigid jobs gets fixed batch sizes and no
        cap.
        """
        if self.by_tasks:  # the requested number of tasks, which take turns if there are fewer GPUs
            jobs = [
                replace(job, requested_gpus=max(job.requested_gpus, job.min_gpus), min_gpus=1)
                if job.min_gpus > 1
                else job
                for job in jobs
            ]
        if not self.rigid:
            return list(jobs) if self.capped else [replace(job, max_batch_size=None) for job in jobs]
        return [replace(job, batch_size=job.batch_size or job.max_batch_size) for job in jobs]

    def build(
        self,
        cluster: Cluster,
        goodput_model: GoodputModel,
        mode: str = "full",
        settings: Settings | None = None,
        semantics: Semantics = DEFAULT,
        profiles: Mapping[str, ProfiledApplication] | None = None,
        weights: Mapping[str, float] | None = None,
        options: Mapping[str, Any] | None = None,
        deadlines: DeadlineOptions | None = None,
    ) -> SchedulingPolicy:
        """Build the policy from the arguments that it accepts."""
        settings = settings or Settings()
        if self.takes_deadlines:
            return self.make(cluster, goodput_model, mode, settings, deadlines)
        if self.takes_weights:
            more = {"profiling": deadlines is not None and deadlines.profiling} if self.takes_profiling else {}
            return self.make(cluster, goodput_model, mode, settings, weights or {}, **more)
        further: list[Any] = [semantics, profiles] if self.takes_semantics else []
        further += [options or {}] if self.takes_options else []
        return self.make(cluster, goodput_model, mode, settings, *further)
