"""Placement of jobs' GPUs on nodes with few moves; ``servers``: of containers and virtual machines on servers."""

from copter_frontends.placement.errors import PlacementError
from copter_frontends.placement.placer import Placer

__all__ = ["PlacementError", "Placer"]
