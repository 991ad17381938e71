"""Hare: scheduling of rounds of tasks for least weighted completion time (docs/papers/hare.md)."""

from copter_frontends.policies.hare.checking import faults
from copter_frontends.policies.hare.chunks import Chunks
from copter_frontends.policies.hare.formulation import Relaxation, sufficient_horizon_s
from copter_frontends.policies.hare.grid import TimeGrid
from copter_frontends.policies.hare.instance import HareInstance
from copter_frontends.policies.hare.job import HareJob
from copter_frontends.policies.hare.schedule import HareSchedule
from copter_frontends.policies.hare.scheduler import HareScheduler
from copter_frontends.policies.hare.shim import middle_order, schedule_in_order
from copter_frontends.policies.hare.solver import RelaxationSolution, RelaxationSolver

__all__ = [
    "Chunks",
    "HareInstance",
    "HareJob",
    "HareSchedule",
    "HareScheduler",
    "Relaxation",
    "RelaxationSolution",
    "RelaxationSolver",
    "TimeGrid",
    "faults",
    "middle_order",
    "schedule_in_order",
    "sufficient_horizon_s",
]
