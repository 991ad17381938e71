"""A discrete-time simulator of round-based cluster schedulers."""

from copter_frontends.simulator.errors import SimulationError
from copter_frontends.simulator.goodput_source import ApplicationFacts, GoodputSource
from copter_frontends.simulator.result import SimulationResult, SkippedJob
from copter_frontends.simulator.round_record import RoundRecord
from copter_frontends.simulator.simulation import Simulation

__all__ = [
    "ApplicationFacts",
    "GoodputSource",
    "RoundRecord",
    "Simulation",
    "SimulationError",
    "SimulationResult",
    "SkippedJob",
]
