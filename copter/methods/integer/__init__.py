"""Integer points of general programs: heuristics around LP relaxations, with a certified bound (method/integer.md)."""

from copter.runtime.processor import with_levels

__path__ = with_levels(__name__, __path__)
