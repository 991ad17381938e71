"""All that the families take from copter's frontends, in one place."""

from __future__ import annotations

from copter_frontends.chronus import LeaseGrid, Selector, StepReward
from copter_frontends.chronus.compact import compact_form
from copter_frontends.chronus.job_book import Mode, SloRecord
from copter_frontends.chronus.options import Options
from copter_frontends.chronus.rounding import round_up
from copter_frontends.chronus.selector import Cycle
from copter_frontends.clusters import scaled_cluster
from copter_frontends.hare import HareInstance, Relaxation, RelaxationSolution, RelaxationSolver, TimeGrid
from copter_frontends.hare.formulation import sufficient_horizon_s
from copter_frontends.hare.job import HareJob
from copter_frontends.hare.paper.workload import random_jobs
from copter_frontends.shards import CopterShards, ShardCluster, load_rounds, repair
from copter_frontends.shards.formulation import Relaxed
from copter_frontends.traffic import Paths, demand_matrix, make_paths
from copter_frontends.traffic.published import constants_of, published_network
from copter_frontends.vocabulary import Job

__all__ = [
    "CopterShards",
    "Cycle",
    "HareInstance",
    "HareJob",
    "Job",
    "LeaseGrid",
    "Mode",
    "Options",
    "Paths",
    "Relaxation",
    "RelaxationSolution",
    "RelaxationSolver",
    "Relaxed",
    "Selector",
    "ShardCluster",
    "SloRecord",
    "StepReward",
    "TimeGrid",
    "compact_form",
    "constants_of",
    "demand_matrix",
    "load_rounds",
    "make_paths",
    "published_network",
    "random_jobs",
    "repair",
    "round_up",
    "scaled_cluster",
    "sufficient_horizon_s",
]
