"""The dual simplex method for one small program: a start that costs next to nothing, and a vertex."""

from copter.processor import with_levels

__path__ = with_levels(__name__, __path__)
