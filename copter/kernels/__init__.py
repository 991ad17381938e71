"""One in-place pass each: no allocation, no printing, no stopping test; the GIL is released in every one."""

from copter.processor import with_levels

__path__ = with_levels(__name__, __path__)
