"""What the policy of Chronus decides, by hand: knobs, which lease is planned, what is set aside, told and passed on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_chronus_policy import HOUR_S, add, job_of, policy_of

from copter.runtime.errors import InvalidDataError, SettingsError
from copter_frontends.policies.chronus import ChronusPolicy, LeaseGrid, Profiler, Standing, StepReward
from copter_frontends.policies.chronus import policy as policy_module
from copter_frontends.policies.chronus.job_book import Notice
from copter_frontends.policies.chronus.local_search import LocalSearch, NodeSpeeds
from copter_frontends.policies.chronus.selector import Selector
from copter_frontends.policies.chronus.spread_costs import SPREAD_COST
from copter_frontends.policy_kit import ThroughputTable
from copter_frontends.vocabulary import Allocation, Cluster, Job

LEASE_S = 1200.0
TWO_TYPES = ThroughputTable({"any": {"v100": 1.0, "a100": 2.0}})


def standings(policy: ChronusPolicy) -> list[tuple[float, str, Standing]]:
    return [(notice.time_s, notice.job_id, notice.standing) for notice in policy.notices]


def best_effort(name: str, hours: float, gpus: int = 8) -> Job:
    return job_of(name, hours, gpus)


def pinned(policy: ChronusPolicy, name: str, gpus: int = 8) -> None:
    """A best-effort job on the GPUs of the first node, which it keeps."""
    policy.add_job(best_effort(name, 9.0, gpus))
    node = policy.nodes.find("v100", gpus, split=False)
    assert node is not None
    policy.pin(name, Allocation("v100", gpus, node))


# Knobs ----------------------------------------------------------------------------------------------------------------


def test_what_is_not_said_is_as_the_page_has_it() -> None:
    """Leases of 20 and 5 minutes, half a minute for a restart, GPUs rounded up, none elastic, Algorithm 1."""
    policy = policy_of()
    assert (policy.grid, policy.round_s) == (LeaseGrid(1200.0, 30.0), 300.0)
    assert (policy.modes.round_up, policy.modes.elastic) == (True, False)
    assert policy.placer.search == LocalSearch(NodeSpeeds(SPREAD_COST))
    assert policy.selector.first_lease == "adaptive"
    assert not policy.lp_each_round
    search, selector = LocalSearch(NodeSpeeds({}), "consolidate"), Selector(LeaseGrid(600.0, 10.0), first_lease="late")
    own = policy_of(placement=search, selector=selector)
    assert own.placer.search is search
    assert own.selector is selector
    assert own.grid is selector.grid
    assert policy_of(first_lease="now").selector.first_lease == "now"
    with pytest.raises(SettingsError, match="'soon'"):
        policy_of(first_lease="soon")


def test_a_best_effort_lease_may_be_as_long_as_the_other_or_any_part_of_it() -> None:
    assert policy_of(lease_s=300.0, round_s=300.0).round_s == 300.0
    policy = policy_of(lease_s=10.0, restart_s=1.0, round_s=0.5)
    for round_s in (10.0, 5.0, 1.0, 0.25):
        policy.round_s = round_s
        assert policy.round_s == round_s
    for wrong in (0.0, -5.0, 20.0, 3.0, 9.999):
        with pytest.raises(SettingsError, match="whole multiple"):
            policy.round_s = wrong
    assert policy.round_s == 0.25


def test_little_work_is_work_and_before_the_first_plan_it_is_0_s() -> None:
    """The deadline is after half a second, and so ahead."""
    policy = policy_of()
    add(policy, Job("short", "any", work_samples=0.5, requested_gpus=1), 0.5 / HOUR_S)
    assert policy.last_admission is not None
    assert (policy.last_admission.job_id, policy.last_admission.standing) == ("short", Standing.WAITING)


@pytest.mark.parametrize("now_s", [float("nan"), float("inf")])
def test_a_plan_for_no_time_is_refused_and_leaves_the_clock_alone(now_s: float) -> None:
    policy = policy_of()
    with pytest.raises(InvalidDataError, match="now_s"):
        policy.plan(now_s)
    add(policy, job_of("job", 0.1), 1.0)
    assert "job" in policy.plan(0.0).allocations


# Leases that are planned ----------------------------------------------------------------------------------------------


def test_the_first_plan_inside_a_lease_gives_the_next_ones() -> None:
    """The job needs one lease; the one that runs began without it, and best effort is no lease."""
    policy = policy_of(1)
    add(policy, job_of("job", 0.1), 2.0)
    add(policy, job_of("tight", 0.3, gpus=4), 2 * LEASE_S / HOUR_S)
    policy.plan(500.0)
    assert policy.book.records["tight"].leases.tolist() == [1]
    assert min(policy.book.records["job"].leases) >= 1
    assert policy.lease.number == 0
    assert not policy.lease.records


@pytest.mark.parametrize("waits", [False, True])
def test_a_job_joins_the_lease_that_begins_where_no_best_effort_job_waits(waits: bool) -> None:
    """A job that has four hours for its one lease, with and without a best-effort job for the same node."""
    policy = policy_of(1)
    add(policy, job_of("slo", 0.3), 4.0)
    if waits:
        policy.add_job(best_effort("waits", 9.0))
    policy.plan(0.0)
    assert policy.book.records["slo"].has_lease(0) is not waits


def test_a_job_joins_where_the_best_effort_jobs_run() -> None:
    """At the first lease one of them waits; at the second it runs, so that nobody does."""
    policy = policy_of(1)
    policy.add_job(best_effort("first", 0.2))
    add(policy, job_of("slo", 0.3), 4.0)
    policy.plan(0.0)
    assert list(policy.held) == ["first"]
    assert not policy.book.records["slo"].has_lease(0)
    policy.plan(LEASE_S)
    assert policy.book.records["slo"].has_lease(1)
    assert list(policy.held) == ["slo"]


@pytest.mark.parametrize(("now_s", "lease"), [(0.0, 1), (500.0, 1)])
def test_pinned_gpus_are_taken_in_the_lease_that_begins_and_in_no_other(now_s: float, lease: int) -> None:
    """The job could have the lease that begins as well, and has the one that ends in time."""
    policy = policy_of(1)
    pinned(policy, "pinned")
    add(policy, job_of("job", 0.3), 2 * LEASE_S / HOUR_S)
    plan = policy.plan(now_s)
    assert policy.book.records["job"].leases.tolist() == [lease]
    assert list(plan.allocations) == ["pinned"]


def test_what_a_job_told_of_its_progress_counts_and_nothing_else() -> None:
    """Of half an hour's work it has told a tenth in its lease; in the next, of 1,170 s, it tells nothing."""
    policy = policy_of(1)
    add(policy, job_of("told", 0.5), 4.0)
    policy.plan(0.0)
    assert policy.book.records["told"].has_lease(0)
    policy.update_job("told", progress=0.1)
    policy.plan(LEASE_S)
    assert policy.book.records["told"].time_done == 0.1
    policy.plan(2 * LEASE_S)
    assert policy.book.records["told"].time_done == pytest.approx(0.1 + 1170.0 / 1800.0)


@pytest.mark.parametrize("more", [False, True])
def test_where_gpus_come_or_go_those_that_wait_are_decided_inside_a_lease(more: bool) -> None:
    """Once: who comes after that waits for the next lease again."""
    policy = policy_of(2)
    policy.plan(0.0)
    add(policy, job_of("hopeless", 1.0, submit_s=10.0), 0.9)
    policy.plan(300.0)
    assert standings(policy) == []
    if more:
        policy.add_resources("v100", 8)
    else:
        policy.remove_resources("v100", 8)
    assert policy.gpus().tolist() == [24 if more else 8]
    policy.plan(600.0)
    assert standings(policy) == [(600.0, "hopeless", Standing.UNGUARANTEED)]
    add(policy, job_of("hopeless too", 1.0, submit_s=610.0), 0.9)
    policy.plan(900.0)
    assert len(policy.notices) == 1
    policy.plan(LEASE_S)
    assert standings(policy)[1:] == [(LEASE_S, "hopeless too", Standing.UNGUARANTEED)]


def test_a_job_that_comes_is_answered_in_the_leases_after_the_one_that_runs() -> None:
    """The only lease that ends in time is the next; time does not go back."""
    policy = policy_of(1)
    policy.plan(2 * LEASE_S)
    policy.plan(0.0)
    add(policy, job_of("job", 0.3, submit_s=2 * LEASE_S), 2 * LEASE_S / HOUR_S)
    assert policy.last_admission is not None
    assert policy.last_admission.leases == (3,)
    add(policy, job_of("no room", 0.3, submit_s=2 * LEASE_S), 2 * LEASE_S / HOUR_S)
    assert (policy.last_admission.standing, policy.last_admission.leases) == (Standing.WAITING, ())


def test_a_job_without_a_reward_is_nobody_s_promise() -> None:
    policy = policy_of(1)
    policy.plan(0.0)
    policy.add_job(best_effort("plain", 1.0))
    assert policy.last_admission is None
    assert not policy.book.records
    assert not policy.notices


def test_promised_jobs_that_wait_for_their_lease_come_after_best_effort_ones() -> None:
    """The promised one is shorter."""
    policy = policy_of(1, first_lease="late")
    add(policy, job_of("promised", 0.3), 4.0)
    policy.add_job(best_effort("plain", 3.0))
    plan = policy.plan(0.0)
    assert policy.book.records["promised"].promised == 0
    assert list(plan.allocations) == ["plain"]
    policy.remove_job("plain")
    assert list(policy.plan(300.0).allocations) == ["promised"]


# Told and passed on ---------------------------------------------------------------------------------------------------


def crowded() -> ChronusPolicy:
    """More jobs than a node has room for, some of which can have the first lease only."""
    policy = policy_of(1)
    for number in range(12):
        name, urgent = f"job-{number}", number < 6
        policy.set_reward(name, StepReward.soft(LEASE_S) if urgent else StepReward.soft((0.7 + 0.2 * number) * HOUR_S))
        policy.add_job(job_of(name, 0.3 if urgent else 0.5 + 0.1 * number, gpus=1 + number % 6))
    return policy


def test_the_linear_program_is_shown_counted_and_priced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan's prices are the first lease's, and its stages take no time by a clock that stands still."""
    monkeypatch.setattr(policy_module, "perf_counter", lambda: 5.0)
    policy, seen = crowded(), list[Any]()
    policy.observers.append(lambda: seen.append(policy.last_solution))
    plan = policy.plan(0.0)
    solution = policy.last_cycle.solution  # type: ignore[union-attr]
    assert solution is not None
    assert solution.prices.price[0, 0] != solution.prices.price[0, 1]
    assert plan.prices == {"v100": solution.prices.price[0, 0]}
    assert plan.timings["select"] == 0.0
    assert len(seen) == 1
    assert seen[0] is not None
    assert seen[0] is policy.last_solution
    assert (policy.edit_log.solves, policy.edit_log.added) == (1, solution.edits.added)
    quiet = policy_of(1)
    assert quiet.plan(0.0).prices == {}
    assert (quiet.edit_log.solves, quiet.last_solution) == (0, None)


def test_only_the_first_type_has_gpus_aside_for_profiles() -> None:
    """As many as it should have, where what is promised leaves it fewer."""
    cluster = Cluster.of({"v100": (3, 8), "a100": (2, 4)})
    assert ChronusPolicy(cluster, TWO_TYPES).aside().tolist() == [0, 0]
    profiler = Profiler(nodes=2)
    policy = ChronusPolicy(cluster, TWO_TYPES, profiler=profiler)
    profiler.target, profiler.gpus = 16, 8
    assert policy.aside().tolist() == [16, 0]
    profiler.target, profiler.gpus = 8, 16
    assert policy.aside().tolist() == [16, 0]


def test_the_profiler_is_on_whole_nodes_of_the_first_type_that_nobody_was_promised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of three nodes of 8 promises have 12 GPUs in one lease; what is promised on the other type does not count."""
    profiler = Profiler(nodes=1)
    policy = ChronusPolicy(Cluster.of({"v100": (3, 8), "a100": (2, 4)}), TWO_TYPES, profiler=profiler)
    steps, step = list[tuple[Any, ...]](), profiler.step
    monkeypatch.setattr(profiler, "step", lambda *what: steps.append(what) or step(*what))
    promised = {(0, 0): 24, (0, 1): 12, (1, 0): 3, (1, 1): 3}
    most = lambda kinds, first: np.array([promised[kind, first] for kind in range(kinds)])  # noqa: E731
    monkeypatch.setattr(policy.book, "most_in_one_lease", most)
    policy.plan(0.0)
    policy.plan(1500.0)
    assert steps == [(0.0, 8, 0), (1500.0, 8, 8)]


def test_a_large_job_s_profile_is_on_two_nodes_and_the_next_job_goes_where_no_job_waits() -> None:
    cluster = Cluster.of({"v100": (4, 8), "a100": (4, 4)})
    policy = ChronusPolicy(cluster, TWO_TYPES, profiler=Profiler())
    policy.add_job(Job("large", "any", work_samples=3600.0, requested_gpus=32))
    policy.add_job(Job("small", "any", work_samples=3600.0, requested_gpus=3))
    assert policy.profiler is not None
    queues = {kind: each.queue for kind, each in policy.profiling.by_type.items()}
    assert {name: probe.gpus for name, probe in queues["v100"].items()} == {"large": 16}
    assert {name: probe.gpus for name, probe in queues["a100"].items()} == {"small": 3}


def test_a_job_waits_for_its_profile_and_runs_nowhere_else() -> None:
    """One is profiled on the one node for that; the other waits beside a node that is free."""
    policy = policy_of(2, profiler=Profiler(nodes=1))
    for name in ("profiled", "waits"):
        policy.add_job(best_effort(name, 1.0))
    assert list(policy.plan(0.0).allocations) == ["profiled"]
    assert sorted(policy.plan(300.0).allocations) == ["profiled", "waits"]


def test_a_reward_is_considered_once_its_job_has_been_profiled() -> None:
    """One that is given before is considered after the profile, one that is given after it at once."""
    policy = policy_of(3, profiler=Profiler(nodes=2))
    for name in ("early", "plain"):
        policy.add_job(best_effort(name, 1.0))
    policy.set_reward("early", StepReward.strict(9 * HOUR_S))
    policy.plan(0.0)
    assert not policy.book.records
    policy.plan(300.0)
    assert list(policy.book.records) == ["early"]
    assert policy.book.records["early"].standing is Standing.GUARANTEED
    policy.set_reward("plain", StepReward.strict(9 * HOUR_S))
    assert policy.book.records["plain"].standing is Standing.GUARANTEED
    assert not [notice for notice in policy.notices if notice.standing is Standing.UNGUARANTEED]


@pytest.mark.parametrize(("deadline_s", "passed"), [(299.0, True), (300.0, True), (301.0, False)])
def test_a_deadline_that_passes_until_the_profile_ends_is_told_so(deadline_s: float, passed: bool) -> None:
    """At the deadline itself it has passed, as for a job that comes then."""
    policy = policy_of(3, profiler=Profiler(nodes=1))
    add(policy, job_of("job", 1.0), deadline_s / HOUR_S)
    policy.plan(0.0)
    policy.plan(300.0)
    text = "its last deadline passed while it waited for its profile"
    told = [Notice(300.0, "job", Standing.UNGUARANTEED, -1, text)]
    assert [notice for notice in policy.notices if notice.reason == text] == (told if passed else [])
    assert ("job" in policy.book.records) is not passed


def test_a_job_that_comes_again_has_the_measured_rate_and_no_reward_of_before() -> None:
    """Its profile said twice as long."""
    policy = policy_of(2, profiler=Profiler(nodes=1))
    add(policy, job_of("job", 1.0), 9.0)
    policy.plan(0.0)
    policy.update_job("job", progress=300.0 / 7200.0)
    policy.plan(300.0)
    assert policy.modes_of(policy.jobs["job"])[0].total_s == pytest.approx(7200.0)
    policy.remove_job("job")
    assert (policy.rewards, policy.book.records, policy.lease.records) == ({}, {}, {})
    policy.add_job(job_of("job", 1.0))
    assert "job" not in policy.profiling.jobs
    assert policy.modes_of(policy.jobs["job"])[0].total_s == pytest.approx(7200.0)


def test_a_job_that_loses_its_gpus_loses_the_lease_that_runs() -> None:
    """Two jobs of one node each; what is left of their leases is for the plan to say."""
    policy = policy_of(2)
    for name in ("one", "two"):
        add(policy, job_of(name, 0.5), 4.0)
    policy.plan(0.0)
    assert set(policy.lease.records) == {"one", "two"}
    ((node, _),) = policy.held["one"].nodes
    policy.remove_resources("v100", 8, [node])
    assert set(policy.lease.records) == {"two"}
    assert [record.has_lease(0) for record in policy.book.records.values()] == [False, True]
    policy.remove_job("two")
    assert policy.lease.records == {}


def test_a_job_that_is_not_profiled_leaves_no_notice_of_a_deadline() -> None:
    policy = policy_of(2, profiler=Profiler(nodes=1))
    policy.add_job(best_effort("plain", 1.0))
    policy.plan(0.0)
    policy.plan(300.0)
    assert policy.notices == []
    assert not policy.book.records
