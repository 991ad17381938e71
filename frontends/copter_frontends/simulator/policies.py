"""The policies that the command line knows by name; their modules are imported when one is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from copter_frontends.policy_names import BASELINE_NAMES, HARE_SCHEMES, RIGID_NAMES
from copter_frontends.semantics import DEFAULT, Semantics

if TYPE_CHECKING:
    from copter_frontends.goodput import GoodputModel
    from copter_frontends.goodput.profiled import ProfiledApplication
    from copter_frontends.vocabulary import Cluster, Job, SchedulingPolicy


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """How to make a policy.

    Attributes
    ----------
    make : callable (cluster, goodput model, mode, threads) -> SchedulingPolicy
        With its paper's round length; None threads are all there are.
    has_lp : bool
        Whether each round is a linear programme, which another solver can be given too.
    takes_semantics : bool
        Whether `make` takes the semantics and the profiles (or None) too, after the others.
    takes_weights : bool
        Whether `make` takes the jobs' weights (by id) too, after the others.
    rigid : bool
        Whether the policy is for jobs that keep the batch size they are tuned to, where a workload gives one.
    capped : bool
        Whether a workload's batch size caps what the policy expects of a job, as in Sia's public simulator.
    type_blind : bool
        Whether the policy's jobs, too, do not tell GPU types apart where they learn of themselves.
    """

    make: Callable[..., SchedulingPolicy]
    has_lp: bool
    takes_semantics: bool = False
    takes_weights: bool = False
    rigid: bool = False
    capped: bool = True
    type_blind: bool = False

    def under(self, semantics: Semantics) -> Semantics:
        """The semantics as they are for the policy: the public simulator runs a type-blind one in a loop of its own."""
        if not self.type_blind or semantics.training == "exact":
            return semantics
        return replace(semantics, type_blind=True, charge="type_and_shape", pin_restoring=False)

    def take(self, jobs: Iterable[Job]) -> list[Job]:
        """The jobs as the policy's paper has them: for a rigid one a workload's batch size is fixed, and no cap."""
        if not self.rigid:
            return list(jobs) if self.capped else [replace(job, max_batch_size=None) for job in jobs]
        return [replace(job, batch_size=job.batch_size or job.max_batch_size) for job in jobs]

    def build(
        self,
        cluster: Cluster,
        goodput_model: GoodputModel,
        mode: str = "full",
        threads: int | None = None,
        semantics: Semantics = DEFAULT,
        profiles: Mapping[str, ProfiledApplication] | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> SchedulingPolicy:
        """Make the policy, with as much of this as it takes."""
        if self.takes_weights:
            return self.make(cluster, goodput_model, mode, threads, weights or {})
        if self.takes_semantics:
            return self.make(cluster, goodput_model, mode, threads, semantics, profiles)
        return self.make(cluster, goodput_model, mode, threads)


def _make_sia(
    cluster: Cluster,
    goodput_model: GoodputModel,
    mode: str,
    threads: int | None,
    semantics: Semantics,
    profiles: Mapping[str, ProfiledApplication] | None,
) -> SchedulingPolicy:
    from copter import Settings

    sia: Any = import_module("copter_frontends.sia")
    policy: SchedulingPolicy = sia.SiaPolicy(
        cluster, mode=mode, settings=Settings(threads=threads or 0), semantics=semantics, profiles=profiles
    )
    return policy


def _make_hadar(cluster: Cluster, goodput_model: GoodputModel, mode: str, threads: int | None) -> SchedulingPolicy:
    from copter import Settings
    from copter_frontends.hadar import HadarPolicy

    return HadarPolicy(cluster, settings=Settings(threads=threads or 0))


def _make_hops(cluster: Cluster, goodput_model: GoodputModel, mode: str, threads: int | None) -> SchedulingPolicy:
    from copter import Settings
    from copter_frontends.hops import HopsPolicy, ModelledThroughputs

    return HopsPolicy(cluster, ModelledThroughputs(cluster, goodput_model), settings=Settings(threads=threads or 0))


def _make_fifo(cluster: Cluster, goodput_model: GoodputModel, mode: str, threads: int | None) -> SchedulingPolicy:
    from copter_frontends.baselines import FifoPolicy

    return FifoPolicy(cluster, can_run=runs_on(cluster, goodput_model))


def _make_hare(
    cluster: Cluster, goodput_model: GoodputModel, mode: str, threads: int | None, weights: Mapping[str, float]
) -> SchedulingPolicy:
    policy: Any = import_module("copter_frontends.hare.policy")
    made: SchedulingPolicy = policy.HarePolicy(cluster, goodput_model, threads=threads or 0, weights=weights)
    return made


def _hare_opponent(scheme: str) -> PolicyEntry:
    def make(
        cluster: Cluster, goodput_model: GoodputModel, mode: str, threads: int | None, weights: Mapping[str, float]
    ) -> SchedulingPolicy:
        from copter_frontends.hare.opponent_policy import OpponentPolicy

        return OpponentPolicy(cluster, scheme, goodput_model, weights=weights)

    return PolicyEntry(make, has_lp=False, takes_weights=True)


def _make_chronus(cluster: Cluster, goodput_model: GoodputModel, mode: str, threads: int | None) -> SchedulingPolicy:
    from copter_frontends.baselines.throughputs import GoodputThroughputs
    from copter_frontends.chronus import ChronusPolicy
    from copter_frontends.chronus.drawn_rewards import DrawnRewards

    rates = GoodputThroughputs(cluster, goodput_model)
    return ChronusPolicy(cluster, rates, DrawnRewards(cluster, rates))


def _baseline(name: str) -> PolicyEntry:
    """An entry whose policy the baselines' own registry makes."""

    def make(
        cluster: Cluster,
        goodput_model: GoodputModel,
        mode: str,
        threads: int | None,
        semantics: Semantics,
        profiles: Mapping[str, ProfiledApplication] | None,
    ) -> SchedulingPolicy:
        from copter_frontends.baselines.registry import (
            BASELINES,
            OBJECTIVES,
            gavel_of_the_artifact,
            pollux_of_the_artifact,
            shockwave_of_the_artifact,
        )

        if name == "pollux" and semantics.training == "agent":
            return pollux_of_the_artifact(cluster, semantics, profiles)
        if name == "shockwave" and semantics.training == "agent":
            return shockwave_of_the_artifact(cluster, goodput_model)
        if name in OBJECTIVES and semantics.training == "agent" and profiles is not None:
            return gavel_of_the_artifact(cluster, profiles, OBJECTIVES[name], threads)
        return BASELINES[name](cluster, goodput_model, mode, threads)

    pollux = name == "pollux"
    rigid = name in RIGID_NAMES
    return PolicyEntry(make, has_lp=False, takes_semantics=True, rigid=rigid, capped=not pollux, type_blind=pollux)


POLICIES: dict[str, PolicyEntry] = {
    "sia": PolicyEntry(_make_sia, has_lp=True, takes_semantics=True),
    "hadar": PolicyEntry(_make_hadar, has_lp=True),
    "hops": PolicyEntry(_make_hops, has_lp=True),
    "hare": PolicyEntry(_make_hare, has_lp=False, takes_weights=True),
    **{name: _hare_opponent(scheme) for name, scheme in HARE_SCHEMES.items()},
    "chronus": PolicyEntry(_make_chronus, has_lp=False, rigid=True),
    "fifo": PolicyEntry(_make_fifo, has_lp=False, rigid=True),
    **{name: _baseline(name) for name in BASELINE_NAMES},
}
"""Policies by the name that the command line has for them."""


def runs_on(cluster: Cluster, goodput_model: GoodputModel) -> Callable[[Job, str, int], bool]:
    """Make the test whether a job runs at all on so many GPUs of a type, on as few nodes as can be."""
    from copter_frontends.baselines.base import RunsWith
    from copter_frontends.baselines.throughputs import GoodputThroughputs

    return RunsWith(GoodputThroughputs(cluster, goodput_model))
