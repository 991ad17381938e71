"""A round of Hadar's policy step by step: who is asked for what, in which mode, with how much of the time."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from copter import Settings
from copter.runtime.errors import InternalError, SettingsError
from copter_frontends.policies.hadar import AverageJct, EffectiveThroughput, HadarPolicy, ThroughputEstimator
from copter_frontends.policies.hadar.formulation import MOST_COLUMNS
from copter_frontends.policies.hadar.horizon import Horizon
from copter_frontends.policies.hadar.online import OnlineRule
from copter_frontends.policies.hadar.shim import HadarShim
from copter_frontends.policy_kit import ThroughputTable
from copter_frontends.vocabulary import Cluster, Job, PlanStatus

RATES = {f"j{i}": {"fast": 8.0 + i, "slow": 4.0} for i in range(6)}
MODES = ("lp", "online", "lp_posted", "horizon")


def policy_of(jobs: int = 6, **options: Any) -> HadarPolicy:
    """Jobs of three GPUs each on eight."""
    source = ThroughputTable(RATES, dict.fromkeys(RATES, 1e5))
    policy = HadarPolicy(Cluster.of({"fast": (1, 4), "slow": (1, 4)}), source, **options)
    for i in range(jobs):
        policy.add_job(Job(f"j{i}", "any", requested_gpus=3))
    return policy


class Asked:
    """Writes down the seconds that a program or a shim is given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, policy: HadarPolicy) -> None:
        self.solve_s: list[float | None] = []
        self.shim_s: list[float] = []
        for program in (policy.formulation, policy.ahead):
            monkeypatch.setattr(program, "solve", self._solving(program.solve))
        shim = policy.shim

        def rounding(formulation: Any, shares: Any, prices: Any, bound: float, time_limit_s: float) -> Any:
            self.shim_s.append(time_limit_s)
            return shim(formulation, shares, prices, bound, time_limit_s)

        policy.shim = rounding  # type: ignore[assignment]

    def _solving(self, solve: Any) -> Any:
        def asked(deadline_s: float | None = None) -> Any:
            self.solve_s.append(deadline_s)
            return solve(deadline_s=deadline_s)

        return asked


@pytest.mark.parametrize("mode", MODES)
def test_the_lp_has_four_fifths_of_the_time_and_the_shim_the_rest(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = policy_of(mode=mode)
    asked = Asked(monkeypatch, policy)
    policy.plan(0.0, 20.0)
    policy.plan(360.0)
    if mode == "online":
        assert not asked.solve_s
        assert not asked.shim_s, "it is whole by itself"
    else:
        assert asked.solve_s == pytest.approx([16.0, 48.0])
        assert asked.shim_s == pytest.approx([4.0, 12.0])


@pytest.mark.parametrize("mode", MODES)
def test_the_online_algorithm_runs_where_it_is_needed_or_asked_for(mode: str) -> None:
    policy = policy_of(mode=mode)
    policy.plan(0.0)
    assert (policy.last_online is not None) == (mode in ("online", "lp_posted"))
    assert (policy.formulation.posted is not None) == (mode == "lp_posted")
    asked = policy_of(mode=mode, compare_prices=True)
    asked.plan(0.0)
    assert (asked.last_online is not None) == (mode != "horizon")
    assert (asked.formulation.posted is not None) == (mode == "lp_posted"), "to compare prices is not to charge them"


def test_an_observer_of_the_online_mode_sees_the_lp_and_the_plan_is_as_without_it() -> None:
    seen: list[object] = []
    plain, watched = policy_of(mode="online"), policy_of(mode="online")
    watched.observers.append(lambda: seen.append(watched.last_solution))
    first, second = plain.plan(0.0), watched.plan(0.0)
    assert plain.last_solution is None
    assert [each is not None for each in seen] == [True]
    assert dict(first.allocations) == dict(second.allocations)
    assert set(first.timings) == {"edit", "solve", "observe", "shim", "place"}
    assert first.timings["solve"] == 0.0
    assert first.fractional_jobs == 0
    assert first.status is PlanStatus.FEASIBLE, "no LP, no proof"
    np.testing.assert_allclose(list(first.prices.values()), list(plain.last_online.prices.values()))  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", MODES)
def test_the_seconds_of_edits_are_those_since_the_last_plan(mode: str) -> None:
    policy = policy_of(mode=mode)
    policy.edit_clock.seconds = 1000.0
    plan = policy.plan(0.0)
    assert plan.timings["edit"] >= 1000.0
    assert policy.last_lp_s >= 1000.0
    assert set(plan.timings) == {"edit", "solve", "observe", "shim", "place"}
    assert policy.plan(360.0).timings["edit"] < 900.0


@pytest.mark.parametrize("mode", MODES)
def test_the_model_is_that_of_the_mode(mode: str) -> None:
    policy = policy_of(mode=mode)
    policy.plan(0.0)
    of_ahead = policy.model is policy.ahead.model
    assert of_ahead == (mode == "horizon")
    assert of_ahead or policy.model is policy.formulation.model


@pytest.mark.parametrize("mode", ["lp", "horizon"])
def test_a_plan_without_a_gap_is_optimal_where_the_lp_was_solved(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = policy_of(1, mode=mode)
    assert policy.plan(0.0).status is PlanStatus.OPTIMAL
    monkeypatch.setattr("copter_frontends.policies.hadar.policy.Status", SimpleNamespace(OPTIMAL=None))
    assert policy.plan(360.0).status is PlanStatus.FEASIBLE


def test_what_is_given_is_used_and_else_what_the_page_says() -> None:
    settings, shim, rule, horizon = Settings(threads=1), HadarShim(core_jobs=3), OnlineRule(), Horizon()
    utility, estimator = EffectiveThroughput(), ThroughputEstimator(1.5)
    given = policy_of(
        settings=settings, shim=shim, rule=rule, horizon=horizon, utility=utility, estimator=estimator, round_s=60.0
    )
    assert given.ahead.session.settings == settings
    assert given.formulation.session.settings == replace(settings, basis_columns=MOST_COLUMNS)
    assert (given.shim, given.rule, given.estimator) == (shim, rule, estimator)
    assert given.formulation.utility is utility
    assert given.ahead.horizon is horizon
    plain = policy_of()
    assert (plain.mode, plain.round_s, plain.restart_s, plain.spread_cost) == ("lp", 360.0, 10.0, 0.05)
    assert plain.compare_prices is False
    assert isinstance(plain.formulation.utility, AverageJct)
    assert plain.formulation.session.settings == replace(Settings(), basis_columns=MOST_COLUMNS)


@pytest.mark.parametrize(
    "options", [{"spread_cost": 0.0}, {"restart_s": 0.0}, {"spread_cost": 0.99, "restart_s": 999.0}]
)
def test_settings_at_their_ends_are_taken(options: dict[str, float]) -> None:
    policy = policy_of(**options)
    assert {name: getattr(policy, name) for name in options} == options


@pytest.mark.parametrize("options", [{"spread_cost": 1.5}, {"spread_cost": -0.1}, {"restart_s": np.inf}])
def test_settings_beyond_their_ends_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(SettingsError, match="spread_cost"):
        policy_of(**options)


def test_an_id_that_comes_again_starts_and_does_not_move() -> None:
    policy = policy_of(1)
    first = policy.plan(0.0)
    policy.remove_job("j0")
    policy.add_resources("fast", 4)
    policy.remove_resources("fast", 4, ["fast-0"])
    policy.add_job(Job("j0", "any", requested_gpus=3))
    plan = policy.plan(360.0)
    assert plan.allocations["j0"] != first.allocations["j0"]
    assert (plan.start, plan.move, plan.stop) == (("j0",), (), ())


def test_capacity_that_changes_changes_the_lp_by_as_much() -> None:
    policy = policy_of()
    policy.plan(0.0)
    policy.add_resources("slow", 8)
    assert policy.formulation.capacity.tolist() == [4, 12]
    policy.remove_resources("slow", 4)
    assert policy.formulation.capacity.tolist() == [4, 8]
    assert policy.plan(360.0).prices.keys() == {"fast", "slow"}
    assert policy.servers.capacity().tolist() == [4, 8]


def test_prices_without_an_lp_or_the_online_algorithm_are_an_error() -> None:
    with pytest.raises(InternalError):
        policy_of()._prices_and_bound(None, None)
