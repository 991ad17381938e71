"""The papers' opponents: schedulers to compare with."""

from copter_frontends.baselines.fifo import FifoPolicy
from copter_frontends.baselines.throughputs import GoodputThroughputs, Throughputs, ThroughputTable

__all__ = ["FifoPolicy", "GoodputThroughputs", "ThroughputTable", "Throughputs"]
