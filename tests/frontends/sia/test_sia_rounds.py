"""A round of Sia's policy step by step, and what pins and ends of jobs leave behind."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from copter import Model, Settings
from copter.runtime.errors import InvalidDataError, SettingsError
from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.sia import SiaObjective, SiaPolicy, TimeSharing
from copter_frontends.policies.sia.exact import exact_assignment
from copter_frontends.policies.sia.job_book import IDLE
from copter_frontends.policies.sia.joining import Joining
from copter_frontends.policies.sia.objective import objective_of
from copter_frontends.vocabulary import (
    Allocation,
    CapacityInUseError,
    Cluster,
    FrontendError,
    InvalidClusterError,
    Job,
    PlanStatus,
    UnknownJobError,
)
from copter_frontends.vocabulary.semantics import DEFAULT

EXACT = replace(DEFAULT, shim="exact")


def policy_of(jobs: int = 4, **options: Any) -> SiaPolicy:
    policy = SiaPolicy(Cluster.of({"t4": (2, 4), "a100": (1, 8)}), **options)
    for i in range(jobs):
        policy.add_job(Job(f"j{i}", "cifar10", 60.0 * i))
    return policy


def on(node: str, gpus: int) -> Allocation:
    return Allocation(node.split("-")[0], gpus, ((node, gpus),))


def test_the_lp_has_four_fifths_of_the_time_and_branch_and_bound_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = policy_of(semantics=EXACT)
    solve, solve_s, exact_s = policy.formulation.solve, [], []

    def solving(deadline_s: float | None = None) -> Any:
        solve_s.append(deadline_s)
        return solve(deadline_s)

    def exact(formulation: Any, solution: Any, limit_s: float) -> Any:
        exact_s.append(limit_s)
        return exact_assignment(formulation, solution, limit_s)

    monkeypatch.setattr(policy.formulation, "solve", solving)
    monkeypatch.setattr("copter_frontends.policies.sia.policy.exact_assignment", exact)
    policy.plan(600.0, 20.0)
    policy.plan(660.0)
    assert solve_s == pytest.approx([16.0, 48.0])
    assert exact_s[0] < 20.0 < exact_s[1] < 60.0
    plain = policy_of()
    plain.plan(600.0)
    assert len(exact_s) == 2, "the shim rounds where branch and bound is not asked for"


def test_the_seconds_of_edits_are_those_since_the_last_plan() -> None:
    policy = policy_of()
    policy.edit_clock.seconds = 1000.0
    plan = policy.plan(600.0)
    assert plan.timings["edit"] >= 1000.0
    assert policy.last_lp_s >= 1000.0
    assert set(plan.timings) == {"edit", "solve", "observe", "shim", "place"}
    assert policy.plan(660.0).timings["edit"] < 900.0


def test_a_plan_is_optimal_only_where_the_lp_was_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = policy_of(1)
    assert policy.plan(600.0).status is PlanStatus.OPTIMAL
    monkeypatch.setattr("copter_frontends.policies.sia.policy.Status", SimpleNamespace(OPTIMAL=None))
    assert policy.plan(660.0).status is PlanStatus.FEASIBLE


def test_an_observer_sees_the_solution_of_the_round() -> None:
    policy, seen = policy_of(), []
    policy.observers.append(lambda: seen.append(policy.last_solution))
    plan = policy.plan(600.0)
    assert len(seen) == 1
    assert seen[0].bound == plan.bound
    assert {name: seen[0].price(name) for name in ("t4", "a100")} == plan.prices


def test_what_is_given_is_used_and_else_what_the_page_says() -> None:
    settings, objective = Settings(threads=1), SiaObjective(power=1.0)
    given = policy_of(0, settings=settings, objective=objective, goodput=GoodputModel(()), round_s=30.0)
    assert given.formulation.session.settings == settings
    assert given.formulation.objective is objective
    assert given.round_s == 30.0
    plain = policy_of(0)
    assert plain.formulation.session.settings == Settings()
    assert plain.formulation.objective == objective_of(DEFAULT)
    assert plain.round_s == 60.0
    assert {place.gpus for place in policy_of(0, mode="capped").formulation.configurations} == {1, 2, 4, 8}


@pytest.mark.parametrize("wrong", [{"round_s": 0.0}, {"round_s": -1.0}, {"round_s": np.inf}, {"mode": "half"}])
def test_settings_that_no_round_can_have_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        policy_of(0, **wrong)


# Ends and pins --------------------------------------------------------------------------------------------------------


def test_nothing_is_left_of_a_job_that_ends() -> None:
    policy = SiaPolicy(Cluster.of({"t4": (2, 4)}), time_sharing=TimeSharing(300.0, 0.2))
    reserved = Job("reserved", "cifar10", reservation=("t4", 8))
    for _ in range(2):  # the second would not fit if the first had left its reservation
        policy.add_job(reserved)
        policy.plan(0.0)
        assert policy.held["reserved"].gpus == 8
        policy.remove_job("reserved")
        assert (policy.held, policy.pins, policy._pinned_gpus) == ({}, {}, {})
        assert (policy.reservations.jobs, policy.turns._service) == ({}, {})
    policy.add_job(Job("a", "cifar10"))
    policy.pin("a", on("t4-0", 4))
    policy.remove_job("a")
    policy.add_job(Job("b", "cifar10"))
    policy.pin("b", on("t4-0", 4))
    assert policy.pins == {"b": on("t4-0", 4)}
    with pytest.raises(UnknownJobError):
        policy.remove_job("a")


def test_pins_count_on_their_nodes_and_move_within_their_own_gpus() -> None:
    policy = policy_of(3)
    policy.pin("j0", on("t4-0", 2))
    policy.pin("j1", on("t4-0", 2))
    assert policy._pinned_gpus == {"t4-0": 4}
    with pytest.raises(CapacityInUseError):
        policy.pin("j2", on("t4-0", 1))
    with pytest.raises(CapacityInUseError):
        policy.pin("j0", on("t4-0", 4))
    policy.pin("j1", on("t4-1", 4))
    policy.pin("j0", on("t4-0", 4))
    assert policy._pinned_gpus == {"t4-0": 4, "t4-1": 4}
    policy.pin("j0", on("t4-0", 1))
    policy.pin("j2", on("t4-0", 2))
    assert policy._pinned_gpus == {"t4-0": 3, "t4-1": 4}
    plan = policy.plan(600.0)
    assert {job: plan.allocations[job] for job in policy.pins} == policy.pins
    assert policy.held["j0"] == on("t4-0", 1)
    for job in ("j0", "j1", "j2"):
        policy.pin(job, None)
    assert (policy.pins, policy._pinned_gpus) == ({}, {})
    policy.pin("j2", on("t4-0", 4))
    assert policy.formulation.jobs["j2"].column == policy.formulation.column_of["t4", 4]


@pytest.mark.parametrize(
    "wrong",
    [
        Allocation("t4", 4, (("t4-9", 4),)),
        Allocation("t4", 4, (("a100-0", 4),)),
        Allocation("t4", 8, (("t4-0", 4), ("a100-0", 4))),
    ],
)
def test_a_pin_to_nodes_that_are_not_there_or_of_another_type_is_refused(wrong: Allocation) -> None:
    policy = policy_of(1)
    with pytest.raises(FrontendError):
        policy.pin("j0", wrong)
    assert (policy.pins, policy.held, policy.formulation.jobs["j0"].pinned) == ({}, {}, IDLE)


def test_a_pin_to_no_configuration_or_of_no_job_is_refused() -> None:
    policy = policy_of(1)
    with pytest.raises(InvalidClusterError, match="no configuration"):
        policy.pin("j0", on("t4-0", 3))
    with pytest.raises(UnknownJobError):
        policy.pin("nobody", None)


def test_a_quota_may_be_what_pinned_jobs_have_and_no_less() -> None:
    policy = SiaPolicy(Cluster.of({"t4": (2, 4)}), quotas={"u": 8, "v": 8})
    for name, tenant in (("a", "u"), ("b", "u"), ("c", "v")):
        policy.add_job(Job(name, "cifar10", tenant=tenant))
    policy.pin("a", on("t4-0", 2))
    policy.pin("c", on("t4-1", 4))
    with pytest.raises(CapacityInUseError, match="'u'"):
        policy.set_quota("u", 1)
    policy.set_quota("u", 2)
    assert set(policy.plan(0.0).allocations) == {"a", "c"}
    policy.set_quota("u", 4)
    plan = policy.plan(60.0)
    assert plan.allocations["b"].gpus <= 2
    row = next(row for row in policy.formulation.rows if row.tenant == "u")
    assert [policy.model.count(row.key), policy.formulation.quotas["u"], policy.builder.quotas["u"]] == [4, 4, 4]


def test_quotas_and_servers_go_from_under_a_reservation_which_has_what_is_left() -> None:
    policy = SiaPolicy(Cluster.of({"t4": (2, 4)}), quotas={"u": 8})
    policy.add_job(Job("r", "cifar10", tenant="u", reservation=("t4", 8)))
    assert policy.plan(0.0).allocations["r"].gpus == 8
    policy.set_quota("u", 4)
    assert policy.plan(60.0).allocations["r"].gpus == 4
    policy.set_quota("u", 8)
    assert policy.plan(120.0).allocations["r"].gpus == 8
    policy.remove_resources("t4", 4)
    assert policy.held == {}
    assert policy.formulation.jobs["r"].column == IDLE
    assert policy.plan(180.0).allocations["r"].gpus == 4
    policy.add_resources("t4", 4)
    assert policy.plan(240.0).allocations["r"].gpus == 8


def test_no_servers_added_changes_nothing() -> None:
    policy = policy_of(1)
    form, model = policy.formulation, policy.model
    policy.add_resources("t4", 0)
    assert policy.formulation is form
    assert model.count("t4") == 8
    policy.remove_resources("t4", 4)
    policy.add_resources("t4", 4)
    assert policy.formulation is form
    assert (model.count("t4"), policy.cluster.capacity("t4")) == (8, 8)


# Values ---------------------------------------------------------------------------------------------------------------


def test_one_value_that_is_not_finite_is_enough_to_refuse_and_requests_are_whole() -> None:
    model = Model(sense="max")
    model.add_resources("t4", 4)
    template = model.add_template({"t4": [1.0, 2.0]})
    joining = Joining(model)
    with pytest.raises(InvalidDataError, match="'a': its values are not finite"):
        joining.add("a", template, np.array([1.0, np.nan]))
    joining.add("b", template, np.array([1.0, 2.0]))
    joining.carry_out()
    assert list(model.requests) == ["b"]
    assert model.to_linear_program().integrality.tolist() == [True, True]


def test_types_are_preferred_in_their_order_and_small_sizes_before_large() -> None:
    semantics = replace(DEFAULT, prefer_types=("a100", "t4"), prefer_few=True)
    form = SiaPolicy(Cluster.of({"t4": (2, 4), "a100": (1, 8), "rtx": (1, 4)}), semantics=semantics).formulation
    step = {place: float(form.preference[column]) for place, column in form.column_of.items()}
    largest = max(gpus for _, gpus in step)
    for (kind, gpus), value in step.items():
        assert value == pytest.approx(1e-4 * ({"a100": 2, "t4": 1, "rtx": 0}[kind] - gpus / largest))
    plain = SiaPolicy(Cluster.of({"t4": (2, 4)}), semantics=replace(DEFAULT, prefer_types=("t4",))).formulation
    assert plain.preference.tolist() == [1e-4] * len(plain.gpus)


def test_columns_of_a_power_of_one_are_filled_below_every_offset() -> None:
    form = SiaPolicy(Cluster.of({"t4": (2, 4)})).formulation
    base, offset = np.array([-0.5, np.nan, np.nan]), np.array([1.0, 1.0, -3.0])
    assert form._filled(base.copy(), offset, [1, 1, 1]).tolist() == [-0.5, -2.0, -4.0]
    linear = SiaPolicy(Cluster.of({"t4": (2, 4)}), objective=SiaObjective(power=1.0)).formulation
    assert linear._filled(base, offset, [1, 1, 1]) == pytest.approx([-0.5, -2000.0, -4000.0])
