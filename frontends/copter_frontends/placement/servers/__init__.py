"""Containers and virtual machines on servers, round after round (docs/papers/placement.md)."""

from copter_frontends.placement.servers.checker import faults
from copter_frontends.placement.servers.errors import ServerError
from copter_frontends.placement.servers.fleet import Fleet, ServerType, TaskShape
from copter_frontends.placement.servers.plan import PlacementPlan, PlacementScheme
from copter_frontends.placement.servers.policy import CopterPlacement, ServerWorth
from copter_frontends.placement.servers.schemes import SCHEMES, make_scheme
from copter_frontends.placement.servers.simulation import PlacementResult, simulate_placement
from copter_frontends.placement.servers.traces import read_azure, read_openb
from copter_frontends.placement.servers.workload import Events, Workload, generated

__all__ = [
    "SCHEMES",
    "CopterPlacement",
    "Events",
    "Fleet",
    "PlacementPlan",
    "PlacementResult",
    "PlacementScheme",
    "ServerError",
    "ServerType",
    "ServerWorth",
    "TaskShape",
    "Workload",
    "faults",
    "generated",
    "make_scheme",
    "read_azure",
    "read_openb",
    "simulate_placement",
]
