"""Pollux (Qiao et al., OSDI '21): jobs' GPU counts by a genetic algorithm over jobs and nodes."""

from copter_frontends.baselines.pollux.genetic import GeneticSearch, Problem
from copter_frontends.baselines.pollux.policy import PolluxPolicy

__all__ = ["GeneticSearch", "PolluxPolicy", "Problem"]
