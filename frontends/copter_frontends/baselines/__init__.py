"""The papers' opponents: schedulers to compare with."""

from copter_frontends.baselines.fifo import FifoPolicy

__all__ = ["FifoPolicy"]
