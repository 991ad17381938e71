"""Gavel (Narayanan et al., OSDI '20): linear programs for shares of time, and rounds that realise the shares."""

from copter_frontends.policies.baselines.gavel.objectives import GavelObjective, GavelPrograms, JobFacts
from copter_frontends.policies.baselines.gavel.policy import GavelPolicy
from copter_frontends.policies.baselines.gavel.programs import LevelProgram, Request, Shares, SumProgram
from copter_frontends.policies.baselines.gavel.rounds import RoundMechanism

__all__ = [
    "GavelObjective",
    "GavelPolicy",
    "GavelPrograms",
    "JobFacts",
    "LevelProgram",
    "Request",
    "RoundMechanism",
    "Shares",
    "SumProgram",
]
