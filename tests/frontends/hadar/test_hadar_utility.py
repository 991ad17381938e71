"""Hadar's utilities and a round's values (docs/papers/hadar.md, H1 to H6)."""

from __future__ import annotations

import numpy as np
import pytest

from copter.runtime.errors import SettingsError
from copter_frontends.policies.hadar import AverageJct, CompletionUtility, EffectiveThroughput, utility_named
from copter_frontends.policies.hadar.job_book import JobBook
from copter_frontends.policies.hadar.round_values import NO_VALUE, RoundTerms, round_values
from copter_frontends.policies.hadar.utility import UTILITIES, JobStates, Utility
from copter_frontends.vocabulary import Job

TIMES = np.geomspace(10.0, 1e7, 50)[None, :]


def states() -> JobStates:
    column = np.array([[1.0]])
    return JobStates(1e4 * column, 4.0 * column, 600.0 * column, 3600.0 * column, 7200.0 * column)


def book(*rows: tuple[int, float, tuple[float, ...]]) -> JobBook:
    made = JobBook(["a", "b", "c"])
    for i, (gpus, total, rates) in enumerate(rows):
        made.add(Job(f"j{i}", "any", requested_gpus=gpus), gpus, total, np.array(rates))
    return made


def values(made: JobBook, utility: Utility, capacity: tuple[int, ...] = (8, 8, 8), now_s: float = 0.0, **terms: float):  # type: ignore[no-untyped-def]
    known = {"round_s": 100.0, "restart_s": 10.0, "spread_cost": 0.0, **terms}
    return round_values(made, utility, RoundTerms(now_s, capacity=np.array(capacity), **known))


@pytest.mark.parametrize("name", UTILITIES)
def test_utilities_are_never_negative_and_never_rise(name: str) -> None:
    worth = utility_named(name)(TIMES, states())
    assert (worth >= 0).all()
    assert (np.diff(np.broadcast_to(worth, TIMES.shape)) <= 1e-15).all()


def test_effective_throughput_is_iterations_over_lifetime() -> None:
    made = book((2, 1000.0, (10.0, 5.0, 0.0)))
    found = values(made, EffectiveThroughput(), now_s=50.0)
    # On a: 1 round of 100 s, so it ends 150 s after submission; on b: 2 rounds, 250 s.
    assert found.worth[0] == pytest.approx([1000 / 150 / 1, 1000 / 250 / 2, NO_VALUE])


def test_the_average_jct_is_shortest_remaining_rounds_first() -> None:
    made = book((1, 1000.0, (10.0, 5.0, 2.0)), (1, 5000.0, (10.0, 5.0, 2.0)))
    found = values(made, AverageJct())
    assert found.worth == pytest.approx(np.array([[1.0, 1 / 2, 1 / 5], [1 / 5, 1 / 10, 1 / 25]]))
    linear = values(made, AverageJct(horizon_s=1e4))
    assert linear.worth[0, 0] == pytest.approx(1 / (1 + 100 / 1e4))


def test_what_a_job_has_is_worth_a_restart_more() -> None:
    made = book((2, 1000.0, (10.0, 10.0, 0.0)))
    made.held[0] = [0, 2, 0]
    found = values(made, AverageJct())
    assert found.pure[0, :2] == pytest.approx([0.9, 1.0])
    assert found.own[0] == pytest.approx(1.0)


def test_a_mixture_is_worth_what_its_slowest_type_allows_less_the_spread() -> None:
    made = book((2, 1000.0, (10.0, 5.0, 0.0)))
    found = values(made, AverageJct(), restart_s=0.0, spread_cost=0.1)
    assert found.mixed[0, :2] == pytest.approx([0.9, 0.45])
    made.held[0], made.spread[0] = [1, 1, 0], True
    assert values(made, AverageJct(), spread_cost=0.1).own[0] == pytest.approx(0.45)


def test_a_type_with_too_few_gpus_counts_as_the_fastest_mixture_around_it() -> None:
    made = book((4, 1000.0, (10.0, 5.0, 2.0)))
    found = values(made, AverageJct(), capacity=(2, 2, 8), restart_s=0.0)
    # a alone has 2 of 4 GPUs: with b it runs at b's pace; so does b.
    assert found.column[0] == pytest.approx([1 / 2, 1 / 2, 1 / 5])


def test_a_utility_of_ones_own_is_looked_at_beforehand() -> None:
    assert CompletionUtility(lambda t: 1 / t)(TIMES, states()).shape == TIMES.shape
    with pytest.raises(SettingsError, match="rises"):
        CompletionUtility(lambda t: t)
    with pytest.raises(SettingsError, match="must be >= 0"):
        CompletionUtility(lambda t: 1e6 - t)
    with pytest.raises(SettingsError, match="finite"):
        CompletionUtility(lambda t: np.full_like(t, np.nan))
    with pytest.raises(SettingsError, match="unknown utility 'speed'"):
        utility_named("speed")
