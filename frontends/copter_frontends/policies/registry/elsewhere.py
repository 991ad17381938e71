"""What packages above this one offer: commands, opponents and testbeds, loaded by name when they are asked for."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


def elsewhere(place: str) -> Any:
    """Return an object of another package.

    Parameters
    ----------
    place : str
        ``"package.module:name"``.
    """
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


class PartlyElsewhere(UserDict[str, Any], Generic[Value]):
    """A mapping some of whose values are places of other packages, loaded when they are asked for.

    A place that holds a mapping has the value under the same key.
    """

    def __getitem__(self, key: str) -> Value:
        found = self.data[key]
        if isinstance(found, str):
            found = elsewhere(found)
            found = found[key] if isinstance(found, Mapping) else found
        result: Value = found
        return result
