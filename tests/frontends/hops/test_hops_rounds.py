"""When Hops plans all GPUs and when the idle ones, and what its policy is told (docs/papers/hops.md, HP19 to HP23)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from hops_instances import RandomSpeeds

from copter import Settings
from copter.runtime.errors import SettingsError
from copter_frontends.policies.hops import HopsPolicy, LearningRates, RequirementSet, ThroughputEstimator
from copter_frontends.policies.hops.formulation import MOST_COLUMNS, MOST_ROWS
from copter_frontends.policies.hops.offers import OfferRules
from copter_frontends.policies.hops.round_planner import RoundPlanner
from copter_frontends.policies.hops.shim import HopsShim
from copter_frontends.policies.hops.throughputs import ModelledThroughputs
from copter_frontends.vocabulary import Allocation, Cluster, DuplicateJobError, Job, UnknownJobError


def policy_of(sizes: dict[str, list[int]] | None = None, **options: Any) -> HopsPolicy:
    policy = HopsPolicy(Cluster.of({"k": (2, 4), "long": (1, 8)}), RandomSpeeds(), **options)
    for name, each in (sizes or {}).items():
        policy.add_job(Job(name, "any", work_samples=1e4), each)
    return policy


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which kind of plan was made, by round."""
    made: list[str] = []
    for kind in ("whole", "idle"):
        monkeypatch.setattr(RoundPlanner, kind, noting(made, kind, getattr(RoundPlanner, kind)))
    return made


def noting(made: list[str], kind: str, plan: Any) -> Any:
    def noted(self: RoundPlanner, *arguments: Any) -> Any:
        made.append(kind)
        return plan(self, *arguments)

    return noted


def test_all_gpus_are_planned_every_full_round_and_where_the_clock_went_back(planned: list[str]) -> None:
    policy = policy_of({"a": [2]}, full_round_s=300.0)
    for now_s in (60.0, 60.0, 61.0, 359.0, 360.0 - 1e-7, 420.0, 300.0, 599.0, 600.0):
        policy.plan(now_s)
    assert planned == ["whole", "idle", "idle", "idle", "whole", "idle", "whole", "idle", "whole"]


def test_all_gpus_are_planned_when_servers_come_or_go(planned: list[str]) -> None:
    policy = policy_of({"a": [2]})
    policy.plan(0.0)
    policy.add_resources("k", 4)
    policy.plan(60.0)
    policy.plan(120.0)
    policy.remove_resources("k", 4)
    policy.plan(180.0)
    policy.plan(240.0)
    assert planned == ["whole", "whole", "idle", "whole", "idle"]


def test_prices_are_those_of_the_last_whole_plan() -> None:
    policy = policy_of({f"j{i}": [8] for i in range(4)})
    assert set(policy_of().plan(0.0).prices.values()) == {0.0}
    whole = policy.plan(0.0).prices
    assert max(whole.values()) > 0.0
    assert policy.plan(60.0).prices == whole


def test_pinned_jobs_keep_theirs_and_the_rest_is_planned_around_them() -> None:
    policy = policy_of({"a": [4], "b": [4], "c": [8]})
    pinned = Allocation("k", 4, (("k-1", 4),))
    policy.pin("b", pinned)
    for now_s in (0.0, 60.0, 300.0):
        plan = policy.plan(now_s)
        assert plan.allocations["b"] == pinned
        assert plan.allocations["c"].nodes == (("long-0", 8),)
        assert plan.allocations["a"].nodes == (("k-0", 4),)


def test_a_job_that_ends_and_comes_again_starts_anew() -> None:
    policy = policy_of({"a": [4]})
    policy.update_job("a", learning_rates=LearningRates({4: 0.1}), progress=0.5)
    policy.plan(0.0)
    assert policy.learning_rate("a") == 0.1
    policy.remove_job("a")
    assert (policy.jobs, policy.held, policy._chosen) == ({}, {}, {})
    assert not policy.book.requirements
    policy.add_job(Job("a", "any", work_samples=1e4), [2])
    assert policy.learning_rate("a") is None
    assert [each.gpus for each in policy.plan(60.0).allocations.values()] == [2]
    assert policy.learning_rate("a") is None


def test_a_job_that_is_there_is_not_added_again_whatever_it_asks_for() -> None:
    policy = policy_of({"a": [4]})
    with pytest.raises(DuplicateJobError):
        policy.add_job(Job("a", "any", work_samples=1e4), [2])
    assert policy.book.requirements["a"].sizes == (4,)
    assert policy.sizes(policy.jobs["a"]) == (4,)
    policy.update_job("a", requirements=[2, 3])
    assert policy.sizes(policy.jobs["a"]) == (2, 3)
    assert policy.sizes(Job("new", "any", gpus=5)) == (5,)
    assert policy.plan(0.0).allocations["a"].gpus in (2, 3)


def test_sizes_that_are_told_after_servers_changed_are_offers_on_the_new_ones() -> None:
    policy = policy_of({"a": [1]})
    policy.plan(0.0)
    policy.add_resources("long", 8)
    policy.update_job("a", requirements=[16])
    assert policy.plan(300.0).allocations["a"].gpus == 16
    policy.add_resources("long", 8)
    policy.add_job(Job("b", "any", work_samples=1e4), RequirementSet.of([24]))
    assert len(policy.groups.groups) == len(policy.programs.groups.groups)


def test_what_is_given_is_used_and_else_what_the_page_says() -> None:
    settings, rules, shim = Settings(threads=1), OfferRules(scale_by_smallest=True), HopsShim()
    given = policy_of(settings=settings, rules=rules, shim=shim, fairness=0.0, stay_bonus=0.0)
    by_prices = replace(settings, interior_rows=MOST_ROWS, basis_columns=MOST_COLUMNS)
    assert given.formulation.session.settings == given.programs.idle.session.settings == by_prices
    assert given.book.rules is rules
    assert given.shim is shim
    assert (given.fairness, given.programs.stay_bonus) == (0.0, 0.0)
    plain = HopsPolicy(Cluster.of({"t4": (1, 4)}))
    assert isinstance(plain.book.throughputs, ModelledThroughputs)
    assert plain.formulation.session.settings == replace(Settings(), interior_rows=1024, basis_columns=200_000)
    assert (plain.fairness, plain.round_s, plain.full_round_s) == (1.0, 60.0, 300.0)
    assert (plain.programs.stay_bonus, plain.programs.speed_bin) == (0.1, 0.05)
    assert not plain.learns
    assert HopsPolicy(Cluster.of({"t4": (1, 4)}), ThroughputEstimator()).programs.speed_bin == 0.1
    more = policy_of(settings=Settings(interior_rows=5000, basis_columns=10**6)).formulation.session.settings
    assert (more.interior_rows, more.basis_columns) == (5000, 10**6)


def test_nothing_has_a_price_where_nobody_asks() -> None:
    assert policy_of().plan(0.0).prices == {"k": 0.0, "long": 0.0}


@pytest.mark.parametrize("name", ["round_s", "full_round_s", "speed_bin", "fairness", "stay_bonus"])
@pytest.mark.parametrize("value", [-1.0, math.inf, math.nan, 0.0])
def test_settings_beyond_their_ends_are_refused(name: str, value: float) -> None:
    if value == 0.0 and name in ("fairness", "stay_bonus"):
        return
    with pytest.raises(SettingsError, match=name):
        policy_of(**{name: value})


def test_settings_near_their_ends_are_taken() -> None:
    policy = policy_of(round_s=0.5, full_round_s=0.25, speed_bin=0.125)
    assert (policy.round_s, policy.full_round_s) == (0.5, 0.25)


class Drifting(RandomSpeeds):
    """One server, whose speed is seen anew by and by."""

    def __init__(self) -> None:
        super().__init__()
        self.speed = 1.0

    def server_speed(self, gpu_type: str, server: str) -> float:
        return self.speed


def test_groups_that_have_emptied_stay_until_they_are_four_times_as_many(planned: list[str]) -> None:
    speeds = Drifting()
    policy = HopsPolicy(Cluster.of({"long": (1, 8)}), speeds)
    policy.add_job(Job("a", "any", work_samples=1e4), [8])
    sizes = []
    for step in range(6):
        speeds.speed, speeds.version = 1.5**step, step
        before = policy.formulation
        assert policy.plan(60.0 * step).allocations["a"].gpus == 8
        sizes.append((len(policy.groups), policy.formulation is before))
    assert sizes == [(1, True), (2, True), (3, True), (4, True), (1, False), (2, True)]
    assert planned == ["whole", "idle", "idle", "idle", "whole", "idle"]


def test_the_learning_rate_of_an_unknown_job_is_refused() -> None:
    with pytest.raises(UnknownJobError, match="nobody"):
        policy_of().learning_rate("nobody")


# Idle GPUs by the program again (HP23) --------------------------------------------------------------------------------


class Tabled(RandomSpeeds):
    """Rates by job and GPUs on one server; all are too sensitive to be spread, "m" and "n" less than the others."""

    RATES: ClassVar[dict[str, dict[int, float]]] = {"n": {2: 20.0, 3: 29.0}}

    def rate(self, job: Job, gpu_type: str, gpus: int, nodes: int, servers: Sequence[str]) -> float:
        rate = self.RATES.get(job.id, {}).get(gpus, 10.0 * gpus)
        return rate * (1.0 if nodes == 1 else 0.6 if job.id in ("m", "n") else 0.1)


@pytest.mark.parametrize(
    ("repeats", "expected"), [(0, {"a1": 5, "m": 2}), (1, {"a1": 5, "n": 3}), (3, {"a1": 5, "n": 3})]
)
def test_idle_gpus_are_planned_by_the_program_again_where_that_is_asked_for(
    repeats: int, expected: dict[str, int]
) -> None:
    # Of the 3 GPUs that a1 leaves, m takes 2 for 0.5 a GPU, n 2 or 3 for 0.5 or 0.48; all three are worth more.
    policy = HopsPolicy(Cluster.of({"k": (1, 8)}), Tabled(), shim=HopsShim(repeats=repeats, swaps=0))
    for name, sizes in {"a1": [5], "a2": [5], "m": [2], "n": [2, 3]}.items():
        policy.add_job(Job(name, "any", work_samples=1e4), sizes)
    plan = policy.plan(0.0)
    given = {job.replace("a2", "a1"): each.gpus for job, each in plan.allocations.items()}  # the two are alike
    assert given == expected
    assert plan.objective <= plan.bound + 1e-9
