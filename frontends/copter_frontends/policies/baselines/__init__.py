"""Baselines: the schedulers that the papers compare with."""

from copter_frontends.policies.baselines.fifo import FifoPolicy

__all__ = ["FifoPolicy"]
