"""Makes Sia's formulation for a cluster, and a new one when the cluster outgrows its configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from copter import Settings
from copter.runtime.errors import SettingsError
from copter_frontends.goodput.profiled import ProfiledApplication, fitted_profiles
from copter_frontends.policies.sia.estimator import HintedGoodput
from copter_frontends.policies.sia.formulation import PRIORITY_FACTOR, SiaFormulation
from copter_frontends.policies.sia.objective import SiaObjective
from copter_frontends.policies.sia.shared_rows import check_quotas, placement_rows, quota_rows
from copter_frontends.simulator.goodput_source import GoodputSource, same_model_for
from copter_frontends.vocabulary import Allocation, Cluster, Configuration, configurations_of
from copter_frontends.vocabulary.semantics import Semantics

CAPPED_GPUS = 64  # most GPUs of a job in capped mode, as in the public simulator


class FormulationBuilder:
    """Makes formulations for clusters.

    Parameters
    ----------
    mode, objective, settings, semantics, profiles
        See :class:`.SiaPolicy`.
    quotas : mapping of tenant to int
        Most GPUs, of all types together, of each tenant's jobs.
    priority_factor : float
        See :class:`.SiaPolicy`.
    goodput : GoodputSource
        Any goodput model; it is converted to the formulation's configurations.
    """

    def __init__(
        self,
        mode: Literal["full", "capped"],
        goodput: GoodputSource,
        objective: SiaObjective,
        settings: Settings,
        semantics: Semantics,
        profiles: Mapping[str, ProfiledApplication] | None,
        quotas: Mapping[str, int] | None = None,
        priority_factor: float = PRIORITY_FACTOR,
    ) -> None:
        if not 1 <= priority_factor < float("inf"):
            raise SettingsError(f"priority_factor is {priority_factor}, must be finite and >= 1")
        self.quotas, self.priority_factor = check_quotas(quotas or {}), priority_factor
        self.most_gpus = None if mode == "full" else CAPPED_GPUS
        self.goodput, self.objective, self.settings = goodput, objective, settings
        self.semantics, self.profiles = semantics, profiles

    def configurations(self, cluster: Cluster) -> Sequence[Configuration]:
        """Return the configurations of a job in a cluster."""
        return configurations_of(cluster, self.most_gpus)

    def build(self, cluster: Cluster, former: Sequence[Configuration] = ()) -> SiaFormulation:
        """Return a formulation without jobs over the cluster's configurations and former ones that may return."""
        configurations = [*self.configurations(cluster)]
        there = {(each.gpu_type, each.gpus) for each in configurations}
        configurations += [each for each in former if (each.gpu_type, each.gpus) not in there]
        place = {name: at for at, name in enumerate(cluster.types)}
        configurations.sort(key=lambda each: (place[each.gpu_type], each.gpus))
        capacity = {name: cluster.capacity(name) for name in cluster.types}
        per_node = {name: kind.gpus_per_node for name, kind in cluster.types.items()}
        return SiaFormulation(
            configurations,
            capacity,
            same_model_for(self.goodput, configurations),
            self.objective,
            self.settings,
            self.semantics,
            self._estimator(cluster, configurations),
            [*placement_rows(configurations, capacity, per_node), *quota_rows(configurations, self.quotas)],
            self.priority_factor,
        )

    def rebuild(
        self, old: SiaFormulation, cluster: Cluster, held: Mapping[str, Allocation], pins: Mapping[str, Allocation]
    ) -> SiaFormulation:
        """Return a formulation for a changed cluster with the old jobs, their allocations and pins."""
        result = self.build(cluster, old.configurations)
        for job_id, state in old.jobs.items():
            result.add_job(state.job, may_wait=True)
            result.update_job(job_id, state.progress, int(old.jobs.numbers["restarts"][state.row]), state.hints)
            if job_id in held:
                result.place(job_id, result.column_for(job_id, held[job_id]))
            if job_id in pins:
                result.pin(job_id, result.column_for(job_id, pins[job_id]))
        return result

    def outgrown(self, formulation: SiaFormulation, cluster: Cluster, gpu_type: str) -> bool:
        """Whether a GPU type now has configurations that the formulation lacks."""
        return any(
            each.gpu_type == gpu_type and (gpu_type, each.gpus) not in formulation.column_of
            for each in self.configurations(cluster)
        )

    def _estimator(self, cluster: Cluster, configurations: Sequence[Configuration]) -> HintedGoodput | None:
        """Return the estimator of goodput from hints; None if the policy knows goodput exactly."""
        if self.semantics.training == "exact":
            return None
        if self.profiles is None:
            self.profiles = fitted_profiles(self.goodput.applications)
        per_node = {name: kind.gpus_per_node for name, kind in cluster.types.items()}
        return HintedGoodput(configurations, per_node, self.profiles, self.semantics)
