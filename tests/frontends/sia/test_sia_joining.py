"""Jobs that come and go between two rounds join and leave the model together."""

from __future__ import annotations

import numpy as np
import pytest

from copter import Model
from copter.runtime.errors import InvalidDataError
from copter_frontends.policies.sia import SiaPolicy
from copter_frontends.policies.sia.joining import Joining
from copter_frontends.vocabulary import Cluster, Job


def test_an_id_that_went_may_come_again_with_other_columns() -> None:
    model = Model(sense="max")
    model.add_resources("t4", 4)
    one, two = model.add_template({"t4": [1.0]}), model.add_template({"t4": [1.0, 2.0]})
    joining = Joining(model)
    for name in ("a", "b"):
        joining.add(name, one, np.array([1.0]))
    joining.carry_out()
    joining.remove("a")
    joining.add("a", two, np.array([3.0, 4.0]))
    joining.add("c", one, np.array([2.0]))
    joining.add("gone", one, np.array([2.0]))
    joining.remove("gone")
    assert list(model.requests) == ["a", "b"]
    assert len(model.cost("a")) == 1
    joining.carry_out()
    assert sorted(model.requests) == ["a", "b", "c"]
    assert model.cost("a").tolist() == [3.0, 4.0]
    assert model.template_of("a") is two
    joining.carry_out()
    assert sorted(model.requests) == ["a", "b", "c"]


def test_values_that_are_not_finite_are_refused_at_once_and_nothing_is_kept() -> None:
    policy = SiaPolicy(Cluster.of({"t4": (1, 4)}))
    policy.add_job(Job("fine", "bert"))
    with pytest.raises(InvalidDataError, match="'heavy': its values are not finite"):
        policy.add_job(Job("heavy", "bert", weight=1e300, priority=200))
    assert list(policy.formulation.jobs) == ["fine"]
    assert set(policy.plan(0.0).allocations) == {"fine"}
    assert list(policy.model.requests) == ["fine"]


def test_the_model_has_all_jobs_whenever_it_is_looked_at() -> None:
    policy = SiaPolicy(Cluster.of({"t4": (2, 4), "a100": (1, 8)}))
    for i, name in enumerate(("bert", "cifar10", "bert", "yolov3")):
        policy.add_job(Job(f"j{i}", name, weight=1.0 + i))
    policy.remove_job("j1")
    model = policy.model
    assert sorted(model.requests) == ["j0", "j2", "j3"]
    assert policy.variables == sum(len(model.cost(job)) for job in model.requests)
    for job, state in policy.formulation.jobs.items():
        np.testing.assert_allclose(policy.formulation.values(job)[state.columns], model.cost(job))
        assert float(np.nanmax(model.cost(job))) == pytest.approx(
            float(policy.formulation.jobs.numbers[state.row]["worth"])
            * float(policy.formulation.objective.values(state.live_base, 1.0).max())
        )
