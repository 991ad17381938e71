"""Pollux (Qiao et al., OSDI '21): a genetic algorithm over jobs and nodes chooses the jobs' GPU counts."""

from copter_frontends.baselines.pollux.genetic import GeneticSearch, Problem
from copter_frontends.baselines.pollux.learned_speedups import LearnedSpeedups
from copter_frontends.baselines.pollux.pareto_search import ParetoSearch, TypeBlindProblem
from copter_frontends.baselines.pollux.policy import PolluxPolicy
from copter_frontends.baselines.pollux.type_blind_policy import TypeBlindPollux
from copter_frontends.baselines.pollux.virtual_nodes import VirtualNodes

__all__ = [
    "GeneticSearch",
    "LearnedSpeedups",
    "ParetoSearch",
    "PolluxPolicy",
    "Problem",
    "TypeBlindPollux",
    "TypeBlindProblem",
    "VirtualNodes",
]
