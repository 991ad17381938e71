"""A run in one file: written atomically, and read back to go on where it stopped."""

from __future__ import annotations

import copyreg
import io
import os
import pickle
import tempfile
from hashlib import blake2b
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from copter_frontends.simulator.errors import SimulationError

if TYPE_CHECKING:
    from copter_frontends.simulator.simulation import Simulation

MAGIC = b"copter-run-3\n"
OLD_MAGIC = b"copter-run-1\n"  # of copter 0.1.0: a pickle without a checksum
DIGEST = 32

# Functions that a run may name, besides classes of copter and its frontends: what objects are rebuilt by.
_FUNCTIONS = {
    ("copter.session.session", "restored"),
    ("copter.session.state", "model_from"),
    ("copter_frontends.policy_kit.can_run", "anywhere"),
    ("copter_frontends.simulator.saved_run", "_read_only"),
}
_METHODS = {
    ("copter_frontends.baselines.pollux.learned_speedups", "LearnedSpeedups", "runs"),
    ("copter_frontends.hare.opponent_policy", "OpponentPolicy", "_runs"),
    ("copter_frontends.hare.policy", "HarePolicy", "_runs"),
}
_FOREIGN = {
    ("builtins", name)
    for name in ("object", "set", "frozenset", "slice", "range", "complex", "bytearray", "dict", "list", "tuple")
} | {
    ("collections", "OrderedDict"),
    ("collections", "defaultdict"),
    ("collections", "deque"),
    ("collections", "Counter"),
    ("copyreg", "_reconstructor"),
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy._core.numeric", "_frombuffer"),
    ("numpy.random._pickle", "__generator_ctor"),
    ("numpy.random._pickle", "__bit_generator_ctor"),
    ("numpy.random._pcg64", "PCG64"),
}
_CLOSED = ("copter.storage.", "copter.integer.branch_and_bound")  # classes here open files or start work when made


def _read_only(items: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(items)


class _Pickler(pickle.Pickler):
    """Pickles read-only mappings too."""

    dispatch_table = copyreg.dispatch_table | {MappingProxyType: lambda proxy: (_read_only, (dict(proxy),))}


class _Unpickler(pickle.Unpickler):
    """Reads what a run is made of, and nothing else: classes of copter, a few of NumPy, rebuilding functions."""

    def find_class(self, module: str, name: str) -> Any:
        """The class or rebuilding function of this name; UnpicklingError for any that a run has no use for."""
        if (module, name) == ("builtins", "getattr"):
            return _method
        if (module, name) in _FUNCTIONS or (module, name) in _FOREIGN:
            return super().find_class(module, name)
        if (
            module.split(".")[0] in ("copter", "copter_frontends")
            and "." not in name
            and not module.startswith(_CLOSED)
        ):
            kind = super().find_class(module, name)
            if isinstance(kind, type) and kind.__module__ == module:
                return kind
        raise pickle.UnpicklingError(f"it names {module}.{name}, which is no part of a run of copter")


def _method(owner: Any, name: str) -> Any:
    """A method that a policy keeps as an attribute; UnpicklingError for any other."""
    kind = type(owner)
    if (kind.__module__, kind.__name__, name) not in _METHODS:
        raise pickle.UnpicklingError(f"it asks {kind.__name__} for {name}, which no run of copter keeps")
    return getattr(owner, name)


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
    target = Path(os.path.realpath(path))  # a link is followed, not replaced
    if target.exists() and not target.is_file():
        raise SimulationError(f"{path}: the run cannot be written: it is no ordinary file")
    body = buffer.getbuffer()
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC)
                file.write(blake2b(body, digest_size=DIGEST).digest())
                file.write(body)
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

    The file is checksummed. It may name only what a run of copter's own policies is made of; a run of a policy from
    elsewhere cannot be read back. The checksum finds damage, not forgery.

    Raises
    ------
    SimulationError
        If the file cannot be read or is not a saved run.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise SimulationError(f"{path}: cannot be read: {error.strerror or error}") from error
    if data.startswith(OLD_MAGIC):
        raise SimulationError(f"{path}: saved by copter 0.1.0, whose runs this version cannot go on with: run it again")
    if data.startswith(b"copter-run-") and not data.startswith(MAGIC):
        raise SimulationError(
            f"{path}: saved by another version of copter, whose runs this one cannot go on with: run it again"
        )
    if not data.startswith(MAGIC):
        raise SimulationError(f"{path}: not a saved run of this version of copter")
    digest, body = data[len(MAGIC) : len(MAGIC) + DIGEST], data[len(MAGIC) + DIGEST :]
    if blake2b(body, digest_size=DIGEST).digest() != digest:
        raise SimulationError(f"{path}: cut short or damaged: its checksum does not hold")
    try:
        result: Any = _Unpickler(io.BytesIO(body)).load()
    except Exception as error:  # whatever a forged file makes of the classes
        raise SimulationError(f"{path}: cannot be read: {error}") from error
    if type(result).__name__ != "Simulation":
        raise SimulationError(f"{path}: does not hold a run")
    simulation: Simulation = result
    return simulation
