"""Placement: which nodes each job's GPUs are on, moving as few jobs as it can."""

from copter_frontends.placement.errors import PlacementError
from copter_frontends.placement.placer import Placer

__all__ = ["PlacementError", "Placer"]
