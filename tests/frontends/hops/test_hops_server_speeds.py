"""How fast servers are, from what jobs did on them; what a moved speed changes; what is kept (HP9, HP10)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hops_instances import steady
from hypothesis import given, settings
from hypothesis import strategies as st

from copter_frontends.policies.hops import (
    ThroughputEstimator,
)
from copter_frontends.policies.hops.server_speeds import AVERAGE_WEIGHT, ERROR_WEIGHT, PROFILE_WEIGHT, ServerSpeeds
from copter_frontends.vocabulary import Job

ROOT = Path(__file__).resolve().parents[3]


# The fit --------------------------------------------------------------------------------------------------------------


def test_two_servers_that_share_jobs_by_hand() -> None:
    """Jobs seen once on each: 2 (1/2) b = sum of half the log ratios, and the average's weight on top."""
    fit = ServerSpeeds()
    for job, fast, slow in (("bert", 12.0, 8.0), ("vgg", 30.0, 10.0)):
        fit.observe((job,), "v100", 1, "a", 1.0, fast, None)
        fit.observe((job,), "v100", 1, "b", 1.0, slow, None)
    found = fit.settle()
    log = 0.5 * (math.log(12 / 8) + math.log(30 / 10)) / (2.0 + AVERAGE_WEIGHT)
    assert found["v100", "a"] == pytest.approx(math.exp(log), rel=1e-6)
    assert found["v100", "b"] == pytest.approx(math.exp(-log), rel=1e-6)
    assert fit.settle() == {}, "nothing is found anew without news"


def test_jobs_of_one_server_each_tell_by_their_profiles() -> None:
    """By job the server's own record over the type's is one; over the profile it is not. All profiles are 30% off."""
    fit = ServerSpeeds()
    for j in range(40):
        server, true = (("a", 0.8), ("b", 1.2))[j % 2]
        fit.observe((j,), "v100", 1, server, 20.0, 0.7 * true * (1 + j), 1.0 + j)
    found = fit.settle()
    share = 20.0 * PROFILE_WEIGHT / (20.0 + PROFILE_WEIGHT) * 20  # what twenty such jobs weigh
    log = 0.5 * math.log(1.2 / 0.8) * share / (share + AVERAGE_WEIGHT)
    assert found["v100", "b"] == pytest.approx(math.exp(log), rel=1e-3)
    assert found["v100", "a"] == pytest.approx(math.exp(-log), rel=1e-3)
    assert found["v100", "b"] / found["v100", "a"] == pytest.approx(1.5, rel=0.01)


def test_types_are_fitted_each_by_itself() -> None:
    """The by-hand case on two types at once, with profiles: each is as it is alone."""

    def seen(kinds: str) -> dict[tuple[str, str], float]:
        fit = ServerSpeeds()
        for kind in kinds:
            for job, fast, slow in (("bert", 12.0, 8.0), ("vgg", 30.0, 10.0)):
                fit.observe((job, kind), kind, 1, "a", 1.0, fast, 11.0)
                fit.observe((job, kind), kind, 1, "b", 1.0, slow, 11.0)
        return fit.settle()

    both = seen("xy")
    assert both == pytest.approx(seen("x") | seen("y"), rel=1e-5)
    assert both["y", "a"] * both["y", "b"] == pytest.approx(1.0)
    assert both["y", "a"] > 1.3


def test_without_profile_or_company_a_server_is_average() -> None:
    fit = ServerSpeeds()
    fit.observe(("x",), "k80", 2, "a", 5.0, 3.0, None)
    assert fit.settle() == {("k80", "a"): pytest.approx(1.0)}


def test_what_is_forgotten_counts_no_more_and_takes_no_room() -> None:
    fit = ServerSpeeds()
    for j in range(100):
        fit.observe((j,), "k", 1, "a", 1.0, 3.0, None)
        fit.observe((j,), "k", 1, "b", 1.0, 1.0, None)
    assert fit.settle()["k", "a"] > 1.7
    for j in range(99):
        fit.forget((j,))
        assert len(fit._layer.values) <= 2 * 2 * (100 - j)
    assert fit.settle()["k", "a"] == pytest.approx(3.0 ** (0.5 / (1.0 + AVERAGE_WEIGHT)), rel=1e-6)
    fit.forget((99,))
    assert fit.settle()["k", "a"] == pytest.approx(1.0)


def test_an_error_that_all_profiles_share_changes_nothing() -> None:
    """Three jobs on one server, one on the other: with profiles that say ten times as much the speeds are the same."""
    found = []
    for error in (1.0, 10.0):
        fit = ServerSpeeds()
        for j, server in enumerate(("a", "a", "a", "b")):
            fit.observe((j,), "v100", 1, server, 4.0, (1.3, 0.7)[server == "b"], error)
        found.append(fit.settle())
    assert found[1] == pytest.approx(found[0], rel=1e-5)
    assert found[0]["v100", "a"] > 1.1


Seen = tuple[int, int, int, float, float]  # job, GPUs, server, weight, rate


def by_least_squares(seen: list[Seen], profiles: dict[int, float]) -> dict[int, float]:
    """Dense twin of (HP9): unknowns are levels, speeds and the errors of profiles by GPUs."""
    levels, servers = sorted({s[:2] for s in seen}), sorted({s[2] for s in seen})
    errors = sorted({gpus for _, gpus in levels})
    places = {key: at for at, key in enumerate([*levels, *servers, *(("error", gpus) for gpus in errors)])}
    rows, right = [], []

    def equation(weight: float, value: float, terms: dict[Any, float]) -> None:
        rows.append(np.zeros(len(places)))
        right.append(weight**0.5 * value)
        for name, sign in terms.items():
            rows[-1][places[name]] = sign * weight**0.5

    for job, gpus, server, weight, rate in seen:
        equation(weight, math.log(rate), {(job, gpus): 1.0, server: 1.0})
    for job, gpus in levels:
        if job in profiles:
            equation(PROFILE_WEIGHT, math.log(profiles[job]), {(job, gpus): 1.0, ("error", gpus): -1.0})
    for server in servers:
        equation(AVERAGE_WEIGHT, 0.0, {server: 1.0})
    for gpus in errors:
        equation(ERROR_WEIGHT, 0.0, {("error", gpus): 1.0})
    found = np.linalg.lstsq(np.array(rows), np.array(right), rcond=None)[0]
    logs = np.array([found[places[server]] for server in servers])
    return dict(zip(servers, (logs - logs.mean()).tolist(), strict=True))


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_the_fit_is_that_of_least_squares_whatever_was_forgotten(seed: int, forget: bool) -> None:
    rng = np.random.default_rng(seed)
    draws = range(int(rng.integers(1, 30)))
    triples = sorted({(int(rng.integers(8)), int(rng.integers(1, 3)), int(rng.integers(5))) for _ in draws})
    seen: list[Seen] = [(*triple, float(rng.integers(1, 50)), float(rng.uniform(0.5, 2.0))) for triple in triples]
    profiles = {job: float(rng.uniform(0.5, 2.0)) for job in range(8) if rng.random() < 0.7}
    fit = ServerSpeeds()
    for job, gpus, server, weight, rate in seen:  # told twice: the second counts
        fit.observe((job, gpus), "t", gpus, str(server), 1.0, 7.0 * rate, profiles.get(job))
        fit.observe((job, gpus), "t", gpus, str(server), weight, rate, profiles.get(job))
    fit.settle()
    if forget:
        gone = {job for job in range(8) if rng.random() < 0.6} - {seen[-1][0]}
        for job in gone:
            fit.forget((job, 1))
            fit.forget((job, 2))
        seen = [each for each in seen if each[0] not in gone]
    job, gpus, server, weight, rate = seen[-1]
    fit.observe((job, gpus), "t", gpus, str(server), weight, rate, profiles.get(job))
    wanted, found = by_least_squares(seen, profiles), fit.settle()
    apart = {server: math.log(found["t", str(server)]) for server in wanted}
    mean = sum(apart.values()) / len(apart)  # servers of forgotten jobs alone count in the type's mean too
    for server, log in wanted.items():
        assert apart[server] - mean == pytest.approx(log, abs=1e-4)


def test_servers_are_told_apart_where_each_job_stays_on_its_own() -> None:
    """Thirty jobs, servers that are truly 0.8 and 1.2, records by job."""
    known = ThroughputEstimator(by_application=False)
    rng = np.random.default_rng(0)
    for j in range(30):
        job, server, speed = Job(f"j{j}", "any", work_samples=1.0), f"s{j % 2}", (0.8, 1.2)[j % 2]
        rate = float(rng.uniform(1.0, 9.0))
        known.profile(job, {"v100": steady(rate)})
        for _ in range(5):
            known.observe(job, "v100", {server: 2}, 2.0 * rate * speed * rng.normal(1.0, 0.02))
    assert known.server_speed("v100", "s1") / known.server_speed("v100", "s0") == pytest.approx(1.5, rel=0.03)
    new = Job("new", "any", work_samples=1.0)
    known.profile(new, {"v100": steady(4.0)})
    slow, fast = (known.rate(new, "v100", 2, 1, (server,)) for server in ("s0", "s1"))
    assert fast / slow == pytest.approx(1.5, rel=0.03)
