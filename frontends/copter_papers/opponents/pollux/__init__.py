"""Pollux (Qiao et al., OSDI '21): a genetic algorithm over jobs and nodes chooses the jobs' GPU counts."""

from copter_papers.opponents.pollux.genetic import GeneticSearch, Problem
from copter_papers.opponents.pollux.learned_speedups import LearnedSpeedups
from copter_papers.opponents.pollux.pareto_search import ParetoSearch, TypeBlindProblem
from copter_papers.opponents.pollux.policy import PolluxPolicy
from copter_papers.opponents.pollux.type_blind_policy import TypeBlindPollux
from copter_papers.opponents.pollux.virtual_nodes import VirtualNodes

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
