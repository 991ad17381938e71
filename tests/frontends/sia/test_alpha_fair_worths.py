"""Sia's values as alpha-fair worths: the same plans, at the same objective (S2, S3; W13)."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest

from copter import Model, Session, worth
from copter.problem.worth import Worth
from copter_frontends.policies.sia.objective import SiaObjective

JOBS, GPUS, INCENTIVE = 12, np.array([1, 2, 4, 8]), 1.1


def alpha_fair(power: float) -> tuple[Worth, float]:
    """Return (the worth of a goodput beyond the floor, the floor): nothing is worth -INCENTIVE."""
    if power == 0.0:
        floor = exp(-INCENTIVE)
        return worth.log(floor=floor), floor
    floor = INCENTIVE ** (1.0 / power)
    return worth.power(1.0 - power, -power, floor), floor


@pytest.mark.parametrize("power", [-0.5, -1.0, -2.0, 0.0])
def test_plans_of_alpha_fair_worths_are_sias(power: float) -> None:
    rng = np.random.default_rng(5)
    objective = SiaObjective(power=power, incentive=INCENTIVE, least_value=None)
    own, floor = alpha_fair(power)
    linear, concave = Model(sense="max"), Model(sense="max")
    for model in (linear, concave):
        model.add_resource("gpu", 20.0)
    for job in range(JOBS):
        goodput = GPUS ** rng.uniform(0.3, 0.95) * rng.uniform(1.0, 3.0)
        base = objective.base(str(job), goodput, np.ones(4, dtype=bool), 1)
        linear.add_request(job, objective.values(base, 1.0), {"gpu": GPUS}, integer=True)
        rates = goodput / goodput.min() - floor
        concave.add_request(job, 0.0, {"gpu": GPUS}, integer=True, worth=own, rates=rates)
    published = Session(linear).solve_integer(gap=1e-9, deadline_s=5.0)
    session = Session(concave)
    plan = session.solve_integer(gap=1e-9, deadline_s=5.0)
    assert plan.objective + INCENTIVE * JOBS == pytest.approx(published.objective, rel=1e-6)
    assert plan.bound + INCENTIVE * JOBS >= published.objective - 1e-9
    shares = session.solve()  # parts of configurations: the worth of a mixture is above the mixture of worths
    assert shares.objective >= plan.objective - 1e-5
    assert shares.gap <= 1e-6
