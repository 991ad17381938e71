"""What a saved run of a command has beside its simulation."""

from __future__ import annotations

from dataclasses import dataclass

from copter_frontends.cli.options import SimulateOptions
from copter_frontends.goodput import GoodputModel
from copter_frontends.policy_kit import TrainingThroughputs
from copter_frontends.simulator.workload import Workload
from copter_frontends.vocabulary import Cluster


@dataclass(frozen=True, slots=True)
class RunInputs:
    """What a run read from files before its first round, and its report and its continuation use again.

    Attributes
    ----------
    cluster : Cluster
        The cluster at the start.
    model : GoodputModel
        The simulated jobs' goodput.
    profiles : str or None
        Folder of measured profiles.
    """

    cluster: Cluster
    model: GoodputModel
    profiles: str | None

    @property
    def rates(self) -> TrainingThroughputs:
        """The jobs' speeds on the cluster."""
        return TrainingThroughputs(self.cluster, self.model)


@dataclass(frozen=True, slots=True)
class RunNote:
    """Options, inputs and jobs of a saved run."""

    asked: SimulateOptions
    workload: Workload
    inputs: RunInputs
