"""Values of many jobs, worked out in arrays, against those of every job by itself (papers/sia.md, S2-S4, S6, S9)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from copter_frontends.goodput import APPLICATIONS
from copter_frontends.policies.sia import SiaPolicy, TimeSharing, restart_factor
from copter_frontends.policies.sia.job_book import IDLE
from copter_frontends.policies.sia.objective import objective_of
from copter_frontends.vocabulary import Cluster, Job
from copter_frontends.vocabulary.semantics import DEFAULT, Semantics

ROUNDED = replace(
    DEFAULT,
    decimals=2,
    clip=3000.0,
    prefer_types=("a100",),
    prefer_few=True,
    prefer_stay=True,
    keep_positive=False,
)


@pytest.mark.parametrize("power", [-1.0, -0.5, 0.0, 0.5, 1.0])
@pytest.mark.parametrize(
    "semantics",
    [DEFAULT, ROUNDED, replace(DEFAULT, decimals=1), replace(DEFAULT, clip=0.75)],
    ids=["plain", "rounded", "rounded only", "clipped only"],
)
def test_the_models_values_are_those_of_every_job_by_itself(power: float, semantics: Semantics) -> None:
    objective = replace(objective_of(semantics), power=power)
    cluster = Cluster.of({"t4": (2, 4), "a100": (2, 8)})
    policy = SiaPolicy(cluster, objective=objective, semantics=semantics, time_sharing=TimeSharing(300.0, 0.2))
    rng, form = np.random.default_rng(7), policy.formulation
    for i in range(12):
        weight = float(rng.uniform(0.5, 2.0))
        policy.add_job(Job(f"j{i}", str(rng.choice(list(APPLICATIONS))), 40.0 * i, weight=weight, priority=i % 2))
    clamped = set()
    for now_s in (500.0, 560.0, 620.0, 1500.0, 1560.0, 9000.0):
        policy.plan(now_s)
        for job_id in form.jobs:
            policy.update_job(job_id, progress=min(0.9, now_s / 20_000), restarts=int(rng.integers(0, 6)))
        form.refresh_costs(now_s)
        for job_id, state in form.jobs.items():
            numbers = form.jobs.numbers[state.row]
            factor = 1.0
            if state.column != IDLE:
                factor = restart_factor(now_s - state.job.submit_s, numbers["restarts"], numbers["restart_cost_s"])
            expected = (
                objective.values(state.base, factor, float(numbers["bonus"])) + numbers["tie_scale"] * form.preference
            )
            if state.column != IDLE:
                own = objective.values(state.base, 1.0, float(numbers["bonus"]))[state.column]
                stay = 5 * 1e-4 if semantics.prefer_stay else 0.0
                expected[state.column] = own + numbers["tie_scale"] * (form.preference[state.column] + stay)
            expected *= numbers["worth"]
            runs = np.flatnonzero(~np.isnan(state.base))
            assert form.values(job_id)[runs] == pytest.approx(expected[runs], rel=1e-9, abs=1e-12)
            assert [form.value(job_id, int(c)) for c in runs] == pytest.approx(expected[runs].tolist(), rel=1e-9)
            assert (form.values(job_id)[np.isnan(state.base)] < 0).all()
            offers = objective.values(state.base, factor, float(numbers["bonus"]))
            clamped.add(bool((offers == objective.least_value).any()))
    if semantics == DEFAULT and power < 0:
        assert any(clamped), "some offer is worth the least value"
