"""How fast servers are, from what jobs did on them; what a moved speed changes; what is kept (HP26, HP24)."""

from __future__ import annotations

import math
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter_frontends.hops import (
    DataLoading,
    HopsPolicy,
    IterationTimes,
    Links,
    LoadingState,
    RequirementSet,
    ThroughputDatabase,
    ThroughputEstimator,
    estimator,
    records,
)
from copter_frontends.hops.job_book import GROUP_MOVED
from copter_frontends.hops.offers import Offers
from copter_frontends.hops.records import MOVED, SPEED_MOVED
from copter_frontends.hops.server_groups import group_servers, in_places_of, regrouped
from copter_frontends.hops.server_speeds import AVERAGE_WEIGHT, ERROR_WEIGHT, PROFILE_WEIGHT, ServerSpeeds
from copter_frontends.vocabulary import Cluster, InvalidJobError, Job

ROOT = Path(__file__).resolve().parents[3]


def steady(per_gpu: float) -> IterationTimes:
    """A profile: so many samples per second of one GPU, however many there are."""
    state = LoadingState(0.0, 0.0)
    return IterationTimes(
        0.3 / per_gpu, 0.6 / per_gpu, 0.1 / per_gpu, DataLoading(state, state, 1.0), 0.0, 1.0, Links(1.0, 1.0)
    )


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
    """Dense twin of (HP26): unknowns are levels, speeds and the errors of profiles by GPUs."""
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
    """The audit's case: thirty jobs, servers that are truly 0.8 and 1.2, records by job."""
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


# Groups ---------------------------------------------------------------------------------------------------------------


def test_few_odd_servers_stay_with_the_nearest_bin() -> None:
    speeds = {f"s{i}": 1.0 for i in range(40)}

    def grouped() -> Any:
        return group_servers({"k": (4, list(speeds))}, lambda _, server: speeds[server], 0.1)

    def speed(_: str, server: str) -> float:
        return speeds[server]

    before = grouped()
    speeds |= {"s0": 1.15, "s1": 1.15}
    few = regrouped(before, grouped(), speed)
    assert [group.bin for group in few.groups] == [0]
    assert set(few.groups[0].servers) == set(speeds)
    assert few.groups[0].speed == pytest.approx((38 + 2 * 1.15) / 40)
    assert few.has_columns_of(before)
    speeds |= {"s2": 1.15}  # 3 of 40 are more than 5%
    many = regrouped(few, grouped(), speed)
    assert [(group.bin, len(group.servers)) for group in many.groups] == [(0, 37), (1, 3)]
    assert not many.has_columns_of(few)
    speeds |= {"s2": 1.0, "s0": 1.0, "s1": 1.0}
    empty = regrouped(many, grouped(), speed)
    assert [(group.bin, len(group.servers)) for group in empty.groups] == [(0, 40), (1, 0)]
    assert empty.has_columns_of(many)
    assert not many.has_columns_of(empty), "a bin that fills again has columns of no job"
    assert not in_places_of(before, group_servers({"k": (4, ["s0"])})).has_columns_of(before)


def test_servers_that_moved_and_groups_by_hand() -> None:
    speeds = {"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0}

    def grouped() -> Any:
        return group_servers({"k": (4, ["a", "b"]), "m": (8, ["c", "d"])}, lambda _, server: speeds[server], 0.1)

    before = grouped()
    assert before.servers_by_type == {"k": 2, "m": 2}
    assert before.speeds.tolist() == [1.0, 1.0]
    speeds["b"] = 1.21
    after = in_places_of(before, grouped())
    assert after.moved_from(before) == [("k", "b")]
    assert after.moved_from(after) == []
    assert after.speeds.tolist() == pytest.approx([1.0, 1.0, 1.21])
    assert after.servers_by_type == {"k": 2, "m": 2}
    assert group_servers({"k": (4, ["a"])}).speeds.tolist() == [1.0]
    assert group_servers({"k": (4, ["a"])}).groups[0].bin == 0


# Offers ---------------------------------------------------------------------------------------------------------------


def day(gpus: int, queue: int) -> Any:
    """A day of the example, which learns."""
    return runpy.run_path(str(ROOT / "frontends" / "examples" / "hops_at_scale.py"))["Day"](gpus, 0, 1, queue, True)


def test_offers_follow_the_servers_as_if_made_anew() -> None:
    """After every round a job's gains are those of offers made now, but for what was too little to be told."""
    busy = day(512, 60)
    for _ in range(6):
        busy.round()
        policy = busy.policy
        policy.plan(busy.now_s)  # what was observed in the round is taken in
        assert policy.book.offers.keys() == policy.jobs.keys()
        for name, job in policy.jobs.items():
            known = policy.book.offers[name]
            sizes, rates = policy.book.requirements[name], busy.estimator.rates(job)
            fresh = policy.book.rules.make(job, sizes, policy.groups, rates)
            mine = {
                (k, g, r): v
                for k, g, r, v in zip(known.kind, known.group, known.gpus, known.gain * known.base, strict=True)
                if policy.groups.groups[g].servers
            }
            theirs = fresh.gain * fresh.base
            for k, g, r, v in zip(fresh.kind, fresh.group, fresh.gpus, theirs, strict=True):
                assert mine.get((k, g, r), v) == pytest.approx(v, rel=2 * (MOVED + GROUP_MOVED) + SPEED_MOVED), name


def test_a_server_speed_that_moves_remakes_few_offers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty average servers, one slower: offers of jobs without records are scaled, not made again."""
    known = ThroughputEstimator(by_application=False)
    policy = HopsPolicy(Cluster.of({"v100": (50, 4)}), known, round_s=300.0)
    for j in range(50):
        job = Job(f"j{j}", "any", work_samples=1e7)
        known.profile(job, {"v100": steady(1.0 + j)})
        policy.add_job(job, RequirementSet.of([4]))
    policy.plan(0.0)
    made: list[str] = []
    make = type(policy.book.rules).make

    def counted(self: Any, job: Job, *rest: Any) -> Any:
        made.append(job.id)
        return make(self, job, *rest)

    monkeypatch.setattr(type(policy.book.rules), "make", counted)
    (slow, _), *others = policy.held["j0"].nodes
    assert not others
    for _ in range(20):
        policy.update_job("j0", observed=0.7 * 4.0 * 1.0)
    seen = {f"j{j}" for j in range(45)}
    for name in seen - {"j0"}:
        policy.update_job(name, observed=4.0 * (1.0 + int(name[1:])))
    policy.plan(300.0)
    assert known.server_speed("v100", slow) < 0.85
    made.clear()
    for _ in range(40):
        policy.update_job("j0", observed=0.2 * 4.0 * 1.0)
    policy.plan(600.0)
    assert known.server_speed("v100", slow) < 0.5
    assert "j0" in made
    assert set(made) <= seen
    speed = policy.groups.groups[0].speed
    for name in policy.jobs.keys() - seen:
        offers = policy.book.offers[name]
        assert offers.gain * offers.base == pytest.approx(4.0 * (1.0 + int(name[1:])) * speed, rel=GROUP_MOVED)


def test_scaled_offers_by_hand() -> None:
    """Groups 0 and 2 of rates 4, 6 and 12 become 1.5 and 0.5 times as fast: 6, 9 and 6; the smallest is the base."""
    offers = Offers(
        RequirementSet.of([1, 2]),
        np.zeros(3, dtype=np.int64),
        np.array([0, 0, 2]),
        np.array([1, 2, 1]),
        np.array([1.0, 1.5, 3.0]),
        4.0,
        1.25,
        b"key",
    )
    scaled = offers.scaled(np.array([1.5, 9.0, 0.5]))
    assert scaled.base == pytest.approx(6.0)
    assert scaled.gain == pytest.approx([1.0, 1.5, 1.0])
    assert (scaled.key, scaled.sensitivity) == (b"key", 1.25)
    by_size = replace(offers, base=2.0, gain=np.array([2.0, 3.0, 6.0]))  # scaled by the smallest size, of two GPUs
    assert by_size.scaled(np.array([1.5, 9.0, 0.5])).gain == pytest.approx([2.0, 3.0, 2.0])


def test_a_slower_spread_counts_from_the_fewest_servers_on() -> None:
    """Two GPUs a server: four on two servers is the least; on four servers the job does half as much."""

    class Half(ThroughputEstimator):
        def rate(self, job: Job, gpu_type: str, gpus: int, nodes: int, servers: Any) -> float:
            return 8.0 / nodes

    known = Half()
    policy = HopsPolicy(Cluster.of({"k": (8, 2)}), known)
    known.profile(Job("j", "any"), {"k": steady(4.0)})
    slowdown = policy.book.slowdown
    job = Job("j", "any", work_samples=1e5)
    assert slowdown(job, policy.groups, 0, 4, 2) == 1.0
    assert slowdown(job, policy.groups, 0, 4, 4) == 0.5
    assert slowdown(job, policy.groups, 0, 4, 1) == 1.0
    assert slowdown(job, policy.groups, 0, 2, 2) == 1.0, "two servers are the fewest that spread a job"


def test_a_spread_that_does_not_run_is_worth_nothing() -> None:
    class Never(ThroughputEstimator):
        def rate(self, job: Job, gpu_type: str, gpus: int, nodes: int, servers: Any) -> float:
            return 0.0

    policy = HopsPolicy(Cluster.of({"k": (8, 2)}), Never())
    assert policy.book.slowdown(Job("j", "any"), policy.groups, 0, 4, 4) == 0.0


def test_jobs_without_servers_are_said_in_every_plan_until_these_come_back() -> None:
    known = ThroughputEstimator(by_application=False)
    policy = HopsPolicy(Cluster.of({"k": (2, 2), "m": (2, 2)}), known, round_s=60.0)
    for name, kind in (("x", "k"), ("y", "m")):
        job = Job(name, "any", work_samples=1e7)
        known.profile(job, {kind: steady(4.0)})
        policy.add_job(job, RequirementSet.of([1]))
    assert policy.plan(0.0).skipped == {}
    policy.remove_resources("k", 4)
    why = {"x": "no GPU type that is there now can run it"}
    assert policy.plan(60.0).skipped == why
    assert policy.plan(120.0).skipped == why, "nothing has changed since"
    late = Job("late", "any", work_samples=1e5)
    known.profile(late, {"k": steady(4.0)})
    with pytest.raises(InvalidJobError, match="fits nowhere"):
        policy.add_job(late, RequirementSet.of([1]))
    policy.add_resources("k", 4)
    assert policy.plan(180.0).skipped == {}
    policy.add_job(late, RequirementSet.of([1]))
    assert policy.plan(240.0).allocations["late"].gpu_type == "k"


def test_jobs_that_are_alike_are_looked_at_again_when_servers_go() -> None:
    known = ThroughputEstimator()
    policy = HopsPolicy(Cluster.of({"k": (2, 2), "m": (2, 2)}), known)
    known.profile(Job("j", "bert"), {"k": steady(4.0)})
    policy.add_job(Job("j", "bert", work_samples=1e5), RequirementSet.of([1]))
    policy.remove_resources("k", 4)
    with pytest.raises(InvalidJobError, match="fits nowhere"):
        policy.add_job(Job("i", "bert", work_samples=1e5), RequirementSet.of([1]))


def test_what_others_write_is_read_again() -> None:
    database = ThroughputDatabase()
    mine, other = ThroughputEstimator(database), ThroughputEstimator(database)
    job = Job("j", "bert")
    mine.profile(job, {"k": steady(4.0)})
    assert mine.per_gpu(job, "k", "a", 1, 1) == pytest.approx(4.0)
    other.profile(job, {"k": steady(5.0)})
    assert mine.per_gpu(job, "k", "a", 1, 1) == pytest.approx(5.0)
    for _ in range(100):
        mine.observe(job, "k", {"a": 1}, 6.0)
    mine.observe(job, "k", {"b": 1}, 3.0)
    fast, slow = mine.server_speed("k", "a"), mine.server_speed("k", "b")
    assert mine.per_gpu(job, "k", "c", 1, 1) == pytest.approx((50 * 6.0 + 3.0) / (50 * fast + slow))
    database.forget("bert")
    assert mine.per_gpu(job, "k", "a", 1, 1) == 0.0
    mine._records.forget("bert")  # nothing is left to drop
    assert mine.server_speed("k", "a") == 1.0


def test_spread_records_go_by_servers_and_others_by_gpus() -> None:
    known, job = ThroughputEstimator(), Job("j", "bert")
    known.observe(job, "k", {"a": 1, "b": 1}, 6.0)
    assert known.per_gpu(job, "k", "a", 4, 2) == 3.0
    assert known.per_gpu(job, "k", "a", 2, 1) == 0.0, "two GPUs of one server are another configuration"
    known.observe(job, "k", {"a": 2}, 10.0)
    assert known.per_gpu(job, "k", "a", 2, 1) == 5.0
    assert known.per_gpu(job, "k", "a", 3, 1) == 0.0
    assert known.per_gpu(job, "k", "a", 2, 2) == 3.0


def test_who_was_seen_on_a_server() -> None:
    known = ThroughputEstimator()
    for name, server in (("bert", "a"), ("vgg", "b"), ("vgg", "c")):
        known.observe(Job("j", name), "k", {server: 1}, 3.0)
    assert known.seen_on([("k", "a")]) == {"bert"}
    assert known.seen_on([("k", "a"), ("k", "c"), ("m", "b")]) == {"bert", "vgg"}
    assert known.seen_on([]) == frozenset()
    known._records.forget("vgg")
    assert known.seen_on([("k", "b"), ("k", "c")]) == frozenset()
    known.database.forget("bert")
    assert known.seen_on([("k", "a")]) == frozenset()
    assert known.seen_on([("k", "b")]) == {"vgg"}, "the database still has it"


def test_a_job_without_work_is_refused() -> None:
    class Idle(ThroughputEstimator):
        def work(self, job: Job) -> float:
            return 0.0

    known = Idle()
    known.profile(Job("j", "any"), {"k": steady(4.0)})
    policy = HopsPolicy(Cluster.of({"k": (1, 2)}), known)
    with pytest.raises(InvalidJobError, match="work is 0"):
        policy.add_job(Job("j", "any", work_samples=1.0), RequirementSet.of([1]))


# Memory ---------------------------------------------------------------------------------------------------------------


def test_records_of_jobs_that_ended_long_ago_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimator, "MOST_ENDED", 5)
    known = ThroughputEstimator(by_application=False)
    policy = HopsPolicy(Cluster.of({"v100": (2, 4)}), known, round_s=300.0)
    for j in range(30):
        job = Job(f"j{j}", "any", work_samples=1e5)
        known.profile(job, {"v100": steady(4.0)})
        policy.add_job(job, RequirementSet.of([2]))
        policy.plan(300.0 * j)
        policy.update_job(job.id, observed=8.0)
        policy.remove_job(job.id)
    kept = {row[0] for row in known.database.all_measured()}
    assert kept == {f"j{j}" for j in range(25, 30)}
    assert known.database.theory("j0", "v100") is None
    assert known.database.theory("j29", "v100") is not None
    records = known._records
    assert set(records._of_job) == set(records.changed) == kept
    assert {key for key, _ in known._parts} == kept
    assert len(records._fit._layers) == 5
    assert len(records._fit._layer.values) <= 20
    again = Job("j29", "any", work_samples=1e5)
    policy.add_job(again, RequirementSet.of([2]))  # it comes again under its name: still known
    for j in range(30, 40):
        known.ended(f"j{j}")
    assert known.database.theory("j29", "v100") is not None, "it has not ended"


def test_few_groups_of_servers_are_kept_as_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MOST_GROUPS", 3)
    known, job = ThroughputEstimator(), Job("j", "bert")
    known.observe(job, "k", {"a": 1}, 3.0)
    for n in range(20):
        assert known.rate(job, "k", 1, 1, ("a", f"b{n}")) == 3.0
        assert len(known._records._members) <= 3


def test_records_of_applications_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimator, "MOST_ENDED", 0)
    known = ThroughputEstimator()
    known.observe(Job("j", "bert"), "v100", {"a": 1}, 3.0)
    known.ended("j")
    assert {row[0] for row in known.database.all_measured()} == {"bert"}


def test_usage_blocks_do_not_pile_up() -> None:
    busy = day(512, 60)
    for _ in range(12):
        busy.round(churn=0.2)
        whole = busy.policy.programs.whole
        assert whole.templates <= 5 * (len(whole.wishes) + 64)
        assert len(busy.policy.groups) <= 21 + 14
