"""The dual simplex method for one small program: cheap to start, and ends at a vertex."""

from copter.runtime.processor import with_levels

__path__ = with_levels(__name__, __path__)
