"""A discrete-time simulator of round-based cluster schedulers."""

from copter_frontends.simulator.cluster_events import ClusterEvent, random_failures
from copter_frontends.simulator.errors import SimulationError
from copter_frontends.simulator.event_file import read_events
from copter_frontends.simulator.goodput_source import ApplicationFacts, GoodputSource
from copter_frontends.simulator.result import SimulationResult, SkippedJob
from copter_frontends.simulator.round_record import RoundRecord
from copter_frontends.simulator.saved_run import load_run, save_run
from copter_frontends.simulator.simulation import Simulation

__all__ = [
    "ApplicationFacts",
    "ClusterEvent",
    "GoodputSource",
    "RoundRecord",
    "Simulation",
    "SimulationError",
    "SimulationResult",
    "SkippedJob",
    "load_run",
    "random_failures",
    "read_events",
    "save_run",
]
