"""A run in one file: written whole or not at all, read back to go on as if it had never stopped."""

from __future__ import annotations

import copyreg
import io
import os
import pickle
import tempfile
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from copter_frontends.simulator.errors import SimulationError

if TYPE_CHECKING:
    from copter_frontends.simulator.simulation import Simulation

MAGIC = b"copter-run-2\n"
EARLIER = {b"copter-run-1\n": "0.1.0"}
"""Headers of runs that earlier versions saved: their policies are pickled under names of modules that have moved."""


def _read_only(items: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(items)


class _Pickler(pickle.Pickler):
    """Pickles read-only mappings too."""

    dispatch_table = copyreg.dispatch_table | {MappingProxyType: lambda proxy: (_read_only, (dict(proxy),))}


def save_run(simulation: Simulation, path: str | Path) -> None:
    """Write a run between two rounds; what was at `path` before stays until the new file is whole.

    Raises
    ------
    SimulationError
        If the policy or the goodput model cannot be written (a function made on the fly), or the file cannot.
    """
    buffer = io.BytesIO()
    try:
        _Pickler(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump(simulation)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise SimulationError(f"the run cannot be saved: {type(simulation.policy).__name__}: {error}") from error
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC)
                file.write(buffer.getbuffer())
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise SimulationError(f"{path}: the run cannot be written: {error.strerror or error}") from error


def load_run(path: str | Path) -> Simulation:
    """Read a run that :func:`save_run` wrote.

    The file is a pickle: read only files that you wrote yourself.

    Raises
    ------
    SimulationError
        If the file cannot be read or is not a saved run.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise SimulationError(f"{path}: cannot be read: {error.strerror or error}") from error
    for header, version in EARLIER.items():
        if data.startswith(header):
            raise SimulationError(f"{path}: saved by copter {version}, whose runs this version cannot go on with")
    if not data.startswith(MAGIC):
        raise SimulationError(f"{path}: not a saved run of this version of copter")
    try:
        result: Any = pickle.loads(data[len(MAGIC) :])
    except (pickle.UnpicklingError, EOFError, AttributeError, ImportError, IndexError) as error:
        raise SimulationError(f"{path}: cut short, damaged or of another version: {error}") from error
    simulation: Simulation = result
    return simulation
