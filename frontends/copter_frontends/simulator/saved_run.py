"""A run saved in one file, from which it can continue. The file is written completely or not at all, and contains
data only.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from copter import CopterError, __version__
from copter.storage.encoding import Reader, encode
from copter.storage.files import read_file, require_writable, write_atomically
from copter.storage.sealing import Seal
from copter_frontends.simulator.errors import SimulationError
from copter_frontends.simulator.rebuilt_objects import Rebuilder
from copter_frontends.simulator.saved_classes import SavedClasses
from copter_frontends.simulator.saved_objects import Flattener
from copter_frontends.simulator.simulation import Simulation

RUN = Seal(b"\x89COPTERR", 7, "a saved run of copter")
PICKLES = {b"copter-run-1\n": "copter 0.1.0 (format 1)", b"copter-run-3\n": "copter 0.1.0 (format 3)"}
"""First bytes of files in older formats, which were pickles, and the versions that wrote them."""


def save_run(simulation: Simulation, path: str | Path, classes: Iterable[type] = ()) -> None:
    """Write a run between two rounds; an old file at `path` stays until the new one is complete.

    Parameters
    ----------
    simulation : Simulation
    path : path
        A link is followed.
    classes : iterable of type, optional
        Classes of your own policy, goodput model or note, which the file may contain besides copter's.

    Raises
    ------
    SimulationError
        If something in the run cannot be written (a function, a class that is not named), or the file cannot.
    """
    try:
        payload = encode({"copter": __version__, "run": Flattener(SavedClasses(classes)).flatten(simulation)})
    except CopterError as error:
        raise SimulationError(f"the run cannot be saved: {type(simulation.policy).__name__}: {error}") from error
    try:
        write_atomically(path, RUN.close(payload))
    except CopterError as error:
        raise SimulationError(f"the run cannot be saved: {error}") from error


def require_savable(path: str | Path) -> None:
    """Raise SimulationError unless a run can be written here; called before the work starts."""
    try:
        require_writable(path)
    except CopterError as error:
        raise SimulationError(str(error)) from error


def load_run(path: str | Path, classes: Iterable[type] = ()) -> Simulation:
    """Read a run that :func:`save_run` wrote.

    The file contains data only, and none of it is executed: objects of copter's classes and of `classes` are filled
    with values. The checksum detects damage, not forgery.

    Parameters
    ----------
    path : path
    classes : iterable of type, optional
        The classes given to :func:`save_run`.

    Raises
    ------
    SimulationError
        If the file cannot be read, is not a saved run, or another version of copter wrote it.
    """
    try:
        data = read_file(path)
        for magic, version in PICKLES.items():
            if data.startswith(magic):
                raise SimulationError(
                    f"{path}: saved by {version}, as a pickle, which copter {__version__} does not read: run it again"
                )
        values: Any = Reader(RUN.open(data, str(path)), str(path)).whole()
    except SimulationError:
        raise
    except CopterError as error:
        raise SimulationError(str(error)) from error
    try:
        if values["copter"] != __version__:
            raise SimulationError(f"saved by copter {values['copter']}, this is {__version__}: run it again")
        if "tables" not in values["run"]:
            raise SimulationError("saved by an earlier state of this version, without tables: run it again")
        result: Any = Rebuilder(values["run"], SavedClasses(classes), len(data)).rebuild()
    except Exception as error:  # a forged file can cause any error
        raise SimulationError(f"{path}: cannot be read: {error}") from error
    if type(result) is not Simulation:
        raise SimulationError(f"{path}: does not hold a run")
    return result
