"""Every baseline of the registry through the conformance suite."""

from __future__ import annotations

import pytest
from conformance import PolicyConformance

from copter import Settings
from copter_frontends.goodput import GoodputModel
from copter_frontends.goodput.profiled import fitted_profiles
from copter_frontends.policies.registry.baselines import BASELINES
from copter_frontends.policies.registry.names import BASELINE_NAMES
from copter_frontends.vocabulary import Cluster, SchedulingPolicy, configurations_of
from copter_papers.opponents.entries import OPPONENTS
from copter_papers.opponents.pollux import LearnedSpeedups, ParetoSearch, TypeBlindPollux

TOLERANCES = {"shockwave": 2e-3}  # where a search ends
ADAPTIVE = ("pollux", "lp-star", "milp", "pop-16", "pop-16-copter")  # these shrink a job that is too large
SHIMMED = dict.fromkeys(("lp-star", "milp", "pop-16", "pop-16-copter"), 1e-2)  # among ties the shim may lose a little


def test_the_names_are_those_of_the_registry():
    assert {*BASELINES, *OPPONENTS} == set(BASELINE_NAMES)
    assert not BASELINES.keys() & OPPONENTS.keys()


class TestBaselinesConform(PolicyConformance):
    examples = 4

    @pytest.fixture(autouse=True, params=BASELINE_NAMES)
    def _choose_baseline(self, request: pytest.FixtureRequest) -> None:
        self.name: str = request.param
        self.objective_tolerance = {**TOLERANCES, **SHIMMED}.get(self.name, 1e-5)
        self.refuses_large_jobs = self.name not in ADAPTIVE
        self.capacity_restores_program = self.name not in SHIMMED  # these are Sia's

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        make = {**BASELINES, **OPPONENTS}[self.name]
        return make(cluster, GoodputModel(configurations_of(cluster)), "full", Settings(threads=1))


class TestTypeBlindPolluxConforms(PolicyConformance):
    examples = 4
    objective_comparable = False  # each search starts from the last one's front
    capacity_restores_objective = False
    refuses_large_jobs = False

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        # By age a change at the time of submission is worth nothing, and so is a start.
        speedups = LearnedSpeedups(fitted_profiles())
        return TypeBlindPollux(cluster, speedups, search=ParetoSearch(40, 30), restart_factor=0.9)
