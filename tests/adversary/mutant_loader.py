"""A pytest plugin that imports one module from another file: COPTER_MUTANT=module:file; nothing in the tree changes."""

from __future__ import annotations

import importlib.abc
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


class MutantFinder(importlib.abc.MetaPathFinder):
    """Finds one module in a file of its own."""

    def __init__(self, name: str, path: str) -> None:
        self.name, self.path = name, path

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The mutant's spec, or None for every other module."""
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(fullname, self.path)


if "COPTER_MUTANT" in os.environ:
    module, _, file = os.environ["COPTER_MUTANT"].partition(":")
    if module in sys.modules:
        raise RuntimeError(f"{module} was imported before the mutant could take its place")
    sys.meta_path.insert(0, MutantFinder(module, file))
