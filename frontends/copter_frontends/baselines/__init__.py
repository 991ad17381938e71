"""Baselines: the schedulers that the papers compare with."""

from copter_frontends.baselines.fifo import FifoPolicy

__all__ = ["FifoPolicy"]
