"""The closed list of classes and functions that a saved run may contain.

Instances are made without calling code of the class: an empty instance gets its attributes from the file.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from types import ModuleType
from typing import Any

from copter import Status
from copter_frontends.simulator.errors import SimulationError

FUNCTIONS = {"copter_frontends.policy_kit.can_run:anywhere"}
"""Functions that a policy keeps as attributes."""

METHODS = {
    "copter_papers.opponents.pollux.learned_speedups:LearnedSpeedups.runs",
    "copter_frontends.policies.hare.gang_policy:GangPolicy._runs",
}
"""Methods of objects of the run that a policy keeps as attributes."""

SETTINGS = ("copter.runtime.settings:Settings", "copter.settings:Settings")
"""Names under which files before this one have the engine's settings as an object; today they are plain values."""

_ENGINE = {f"{Status.__module__}:{Status.__name__}": Status}
_NAME = re.compile(r"(copter_(?:frontends|papers|serve)(?:\.[a-z][a-z0-9_]*)+):([A-Za-z_][A-Za-z0-9_]*)")
_COMMAND_LINES = ("copter_frontends.cli", "copter_serve.commands")
_COMMANDS = ("copter_frontends.cli.options", "copter_frontends.cli.saving")
"""The modules of the command line with classes that a run's note may contain; importing others could have side
effects.
"""


def name_of(kind: type) -> str:
    """Return the name of a class in a file."""
    return f"{kind.__module__}:{kind.__qualname__}"


class SavedClasses:
    """Finds classes by name: the frontends', a few of the engine's, and the caller's.

    Parameters
    ----------
    more : iterable of type
        The caller's own classes, such as those of a policy.
    """

    def __init__(self, more: Iterable[type] = ()) -> None:
        self._more = _ENGINE | {name_of(kind): kind for kind in more}

    def of(self, name: str) -> type:
        """Return the class of this name; raises SimulationError for a class outside the list."""
        if name in self._more:
            return self._more[name]
        match = _NAME.fullmatch(name)
        if match is None or (match[1].startswith(_COMMAND_LINES) and match[1] not in _COMMANDS):
            raise SimulationError(
                f"{name} is no class of copter's frontends; name classes of your own: load_run(path, [MyPolicy])"
            )
        kind = vars(_module(match[1])).get(match[2])
        if not isinstance(kind, type) or kind.__module__ != match[1] or issubclass(kind, BaseException):
            raise SimulationError(f"{name} is no class that a run is made of")
        return kind

    def require(self, kind: type) -> str:
        """Return the name of a class in the list; raises SimulationError for others."""
        name = name_of(kind)
        if self.of(name) is not kind:
            raise SimulationError(f"{name} is not the class that its module has under this name")
        return name


def function_of(name: str) -> Callable[..., Any]:
    """Return the function of this name; raises SimulationError for a function outside the list."""
    if name not in FUNCTIONS:
        raise SimulationError(f"{name} is no function that a run keeps")
    module, _, own = name.partition(":")
    result: Callable[..., Any] = vars(_module(module))[own]
    return result


def method_of(owner: object, name: str) -> Callable[..., Any]:
    """Return the method of an object of the run; raises SimulationError for a method outside the list."""
    if not any(f"{name_of(kind)}.{name}" in METHODS for kind in type(owner).__mro__):
        raise SimulationError(f"{name_of(type(owner))}.{name} is no method that a run keeps")
    result: Callable[..., Any] = getattr(type(owner), name).__get__(owner)
    return result


def _module(name: str) -> ModuleType:
    """Return a module of the frontends."""
    if name not in sys.modules:
        try:
            import_module(name)
        except ImportError as error:
            raise SimulationError(f"{name} cannot be imported: {error}") from error
    return sys.modules[name]
