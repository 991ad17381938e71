"""The proximal-point method; read solve.py together with docs/method/algorithm.md."""

from copter.runtime.processor import with_levels

__path__ = with_levels(__name__, __path__)
