"""Gavel (Narayanan et al., OSDI '20): linear programmes over shares of time, and rounds that follow them."""

from copter_frontends.baselines.gavel.objectives import GavelObjective, GavelProgrammes, JobFacts
from copter_frontends.baselines.gavel.policy import GavelPolicy
from copter_frontends.baselines.gavel.programs import LevelProgramme, Request, Shares, SumProgramme
from copter_frontends.baselines.gavel.rounds import RoundMechanism

__all__ = [
    "GavelObjective",
    "GavelPolicy",
    "GavelProgrammes",
    "JobFacts",
    "LevelProgramme",
    "Request",
    "RoundMechanism",
    "Shares",
    "SumProgramme",
]
