"""Saving of a command's run, with the data that a resumed run needs."""

from __future__ import annotations

from dataclasses import dataclass

from copter_frontends.cli.options import SimulateOptions
from copter_frontends.cli.output import InputError
from copter_frontends.goodput import GoodputModel
from copter_frontends.simulator import Simulation, SimulationError, save_run
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


@dataclass(frozen=True, slots=True)
class RunNote:
    """Options, inputs and jobs of a saved run."""

    asked: SimulateOptions
    workload: Workload
    inputs: RunInputs


class Saver:
    """Saves a run to the file of ``--save`` every few rounds and at the end; without a file it does nothing."""

    def __init__(self, simulation: Simulation, note: RunNote) -> None:
        self._simulation, self._path, self._every = simulation, note.asked.save, note.asked.save_every
        self._since = 0
        if self._path is not None:
            simulation.note = note

    def after_round(self) -> None:
        """Save the run if it is due."""
        self._since += 1
        if self._every is not None and self._since >= self._every:
            self.at_end()

    def at_end(self) -> None:
        """Save the run to the file now, if there is one; raises InputError if it cannot be saved."""
        if self._path is None:
            return
        try:
            save_run(self._simulation, self._path)
        except SimulationError as error:
            raise InputError(str(error)) from error
        self._since = 0
