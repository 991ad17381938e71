"""What a moved server speed changes in groups and offers, and what is kept of jobs that ended (HP10)."""

from __future__ import annotations

import math
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hops_instances import steady

from copter_frontends.policies.hops import (
    HopsPolicy,
    RequirementSet,
    ThroughputDatabase,
    ThroughputError,
    ThroughputEstimator,
    estimator,
    formulation,
    job_book,
    records,
)
from copter_frontends.policies.hops.job_book import GROUP_MOVED
from copter_frontends.policies.hops.offers import PACKED, SPREAD, OfferRules, Offers
from copter_frontends.policies.hops.records import MOVED, SPEED_MOVED
from copter_frontends.policies.hops.server_groups import ServerGroup, group_servers, in_places_of, regrouped
from copter_frontends.vocabulary import Cluster, InvalidJobError, Job

ROOT = Path(__file__).resolve().parents[3]


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


def test_an_odd_server_goes_to_the_nearest_of_several_bins() -> None:
    speeds = {f"s{i}": (1.0, 1.21, 0.8)[i % 3] for i in range(60)}

    def grouped() -> Any:
        return group_servers({"k": (4, list(speeds))}, lambda _, server: speeds[server], 0.1)

    before = grouped()
    assert [group.bin for group in before.groups] == [2, 0, -2]
    assert before.first.tolist() == [0, 20, 40, 60]
    assert before.groups[0].label == ("k", 4, 2)
    speeds["s0"] = 1.331
    after = regrouped(before, grouped(), lambda _, server: speeds[server])
    assert "s0" in after.groups[0].servers
    assert after.moved_from(before) == [("k", "s0")]
    assert [len(group.servers) for group in after.groups] == [21, 19, 20]
    assert ServerGroup("k", 4, 1.0, ("a",)).bin == 0


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


def test_offers_of_slow_jobs_by_hand() -> None:
    """Half a sample a second on one GPU, 0.8 of it each on two servers: rho is 1.25, and two GPUs may be apart."""

    def rate(gpu_type: str, gpus: int, nodes: int, servers: Any) -> float:
        return 0.5 * gpus * (1.0 if nodes == 1 else 0.8)

    groups = group_servers({"k": (2, ["a", "b"])})
    offers = OfferRules().make(Job("j", "any"), RequirementSet.of([1, 2]), groups, rate)
    assert offers is not None
    assert offers.sensitivity == pytest.approx(1.25)
    assert sorted(zip(offers.kind.tolist(), offers.gpus.tolist(), strict=True)) == [
        (PACKED, 1),
        (PACKED, 2),
        (SPREAD, 2),
    ]
    assert offers.base == 0.5
    found = {(kind, gpus): float(offers.gain[offers.at(kind, 0, gpus)]) for kind, gpus in ((PACKED, 1), (SPREAD, 2))}
    assert found == pytest.approx({(PACKED, 1): 1.0, (SPREAD, 2): 1.6})
    assert offers.at(SPREAD, 0, 1) == -1
    assert offers.at(PACKED, 1, 1) == -1


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


def test_the_expected_age_by_hand() -> None:
    """Sizes 1 and 2 on one type of 2 servers, one GPU does 4 a second: 1e5 samples on 1.5 GPUs."""
    known = ThroughputEstimator()
    known.profile(Job("j", "any"), {"k": steady(4.0)})
    policy = HopsPolicy(Cluster.of({"k": (2, 2)}), known)
    assert policy.book.gpus == 0
    policy.add_job(Job("j", "any", work_samples=1e5), RequirementSet.of([1, 2]))
    assert policy.book.age_s["j"] == pytest.approx(1e5 / (4.0 * 1.5))
    policy.add_job(Job("i", "any", work_samples=1e5), RequirementSet.of([2]))
    assert policy.book.age_s["i"] == pytest.approx(1e5 / (4.0 * 2.0))
    assert policy.book.gpus == 4


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


def test_records_are_means_and_small_moves_are_not_told() -> None:
    known, job = ThroughputEstimator(), Job("j", "bert")
    for rate in (10.0, 12.0, 14.0):
        known.observe(job, "k", {"a": 1}, rate)
    assert known.rate(job, "k", 1, 1, ("a",)) == pytest.approx(12.0)
    version = known.version
    known.observe(job, "k", {"a": 1}, 12.2)
    assert known.rate(job, "k", 1, 1, ("a",)) == pytest.approx(12.05), "it is taken in"
    assert known.version == version, "and not told: less than 1%"
    assert known.changed_since(version) == frozenset()
    for _ in range(200):
        known.observe(job, "k", {"a": 1}, 24.0)
    assert known.rate(job, "k", 1, 1, ("a",)) == pytest.approx(24.0, rel=0.02)
    version = known.version
    known.observe(job, "k", {"a": 1}, 24.0)
    assert known.version == version


def test_the_mean_speed_of_servers_follows_them() -> None:
    known, new, servers = ThroughputEstimator(), Job("n", "new"), ("a", "b")
    known.profile(new, {"k": steady(4.0)})
    for name, fast in (("bert", 2.0), ("vgg", 8.0)):
        for server, rate in (("a", fast), ("c", 1.0)):
            known.observe(Job("j", name), "k", {server: 1}, rate)
        mean = (known.server_speed("k", "a") + 1.0) / 2
        assert known.rate(new, "k", 1, 1, servers) == pytest.approx(4.0 * mean)


def test_jobs_on_a_server_hear_of_what_others_show_of_it() -> None:
    known = ThroughputEstimator()
    known.observe(Job("j", "bert"), "k", {"a": 1}, 3.0)
    version = known.version
    for server, rate in (("a", 6.0), ("b", 3.0)):
        known.observe(Job("i", "vgg"), "k", {server: 1}, rate)
    assert known.server_speed("k", "a") > 1.3
    assert known.changed_since(version) == {"bert", "vgg"}
    assert known.rate(Job("i", "vgg"), "k", 1, 1, ()) == 0.0, "no servers, no rate"


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


@pytest.mark.parametrize("rate", [float("nan"), 0.0, -1.0, math.inf, "fast"])
def test_what_is_no_rate_is_refused_and_no_part_of_the_edit_stays(rate: Any) -> None:
    known = ThroughputEstimator()
    known.profile(Job("j", "any"), {"k": steady(4.0)})
    policy = HopsPolicy(Cluster.of({"k": (2, 2)}), known)
    policy.add_job(Job("j", "any", work_samples=1e5), RequirementSet.of([1]))
    policy.plan(0.0)
    version = known.version
    with pytest.raises(ThroughputError, match="job 'j': observed"):
        policy.update_job("j", requirements=[2], observed=rate)
    assert policy.book.requirements["j"].sizes == (1,)
    assert known.version == version


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


def test_programs_are_written_anew_where_groups_are_mostly_empty() -> None:
    """Six bins of which one has servers left: more than four times as many groups as are needed."""

    class Told(ThroughputEstimator):
        speeds: ClassVar[dict[str, float]] = {}
        told = 0

        @property
        def speeds_version(self) -> int:
            return self.told

        def server_speed(self, gpu_type: str, server: str) -> float:
            return self.speeds.get(server, 1.0)

    known = Told()
    policy = HopsPolicy(Cluster.of({"k": (6, 2)}), known)
    for n in range(6):
        known.speeds[f"k-{n}"] = 1.1 ** (2 * n)
    known.told = 1
    assert not policy.programs.regroup()
    first = policy.model
    assert len(policy.groups) == 6
    known.speeds.clear()
    known.told = 2
    assert policy.programs.regroup(), "all is planned again"
    assert len(policy.groups) == 1
    assert policy.model is not first


def test_offers_slowdowns_and_blocks_of_few_kinds_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_book, "MOST_KEPT", 3)
    monkeypatch.setattr(formulation, "MOST_USAGES", 4)
    known = ThroughputEstimator(by_application=False)
    policy = HopsPolicy(Cluster.of({"k": (8, 2)}), known, round_s=300.0)
    for j in range(12):
        job = Job(f"j{j}", "any", work_samples=1e6)
        known.profile(job, {"k": steady(4.0 + j)})
        policy.add_job(job, RequirementSet.of([1 + j % 4, 5 + j]))
        policy.plan(300.0 * j)
        policy.book.slowdown(job, policy.groups, 0, 4, 4)
        assert len(policy.book._made) <= 3
        assert len(policy.book._slowdowns) <= 3
        assert len(policy.book._terms) <= 3
        assert len(policy.formulation._usages) <= 4
    assert policy.book.offers.keys() == policy.jobs.keys()


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
