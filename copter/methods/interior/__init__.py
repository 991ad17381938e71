"""The interior-point method for one linear program."""

from copter.runtime.processor import with_levels

__path__ = with_levels(__name__, __path__)
