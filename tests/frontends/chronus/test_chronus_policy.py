"""Chronus as a policy: promises, notices, bad input, lost nodes; Proposition 1; runs without failures keep promises."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter.runtime.errors import SettingsError
from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.chronus import (
    ChronusPolicy,
    LeaseGrid,
    Profiler,
    Standing,
    StepReward,
    weighted_miss_rate,
)
from copter_frontends.policies.chronus.packing import Parcel, pack
from copter_frontends.policies.chronus.rounding import friendly_sizes, round_up
from copter_frontends.policy_kit import GoodputThroughputs, NodeInventory, ThroughputTable, TrainingThroughputs
from copter_frontends.policy_kit.deadlines import DrawnRewards
from copter_frontends.simulator import Simulation
from copter_frontends.vocabulary import Cluster, InvalidClusterError, InvalidJobError, Job, configurations_of
from copter_papers.chronus.workload import Workload, synthetic_workload, table_source

HOUR_S = 3600.0
RATES = ThroughputTable({"any": {"v100": 1.0}})


def policy_of(nodes: int = 2, **knobs: object) -> ChronusPolicy:
    return ChronusPolicy(Cluster.of({"v100": (nodes, 8)}), RATES, **knobs)  # type: ignore[arg-type]


def job_of(name: str, hours: float, gpus: int = 8, submit_s: float = 0.0) -> Job:
    return Job(name, "any", submit_s, work_samples=hours * HOUR_S, requested_gpus=gpus)


def add(policy: ChronusPolicy, job: Job, deadline_h: float) -> None:
    policy.set_reward(job.id, StepReward.strict(deadline_h * HOUR_S))
    policy.add_job(job)


# Rewards and leases ---------------------------------------------------------------------------------------------------


def test_rewards_are_steps() -> None:
    soft = StepReward.soft(100.0)
    assert [soft.at(t) for t in (50.0, 100.0, 105.0, 115.0, 149.0, 151.0)] == [100, 100, 80, 50, 20, 1]
    assert weighted_miss_rate([100.0, 1.0]) == pytest.approx(0.5)
    assert weighted_miss_rate([]) == 0.0


@pytest.mark.parametrize(
    ("steps", "floor", "complaint"),
    [
        (((10.0, 50.0), (20.0, 60.0)), 1.0, "rises"),
        (((20.0, 60.0), (10.0, 50.0)), 1.0, "ascending"),
        (((-5.0, 60.0),), 1.0, "must be finite, the time > 0"),
        (((5.0, float("nan")),), 1.0, "must be finite"),
        (((5.0, 60.0),), 60.0, "floor"),
        ((), 1.0, "no deadline"),
    ],
)
def test_wrong_rewards_are_refused(steps: tuple[tuple[float, float], ...], floor: float, complaint: str) -> None:
    with pytest.raises(InvalidJobError, match=complaint):
        StepReward(steps, floor)


def test_leases_are_counted_safely() -> None:
    grid = LeaseGrid(1200.0, 30.0)
    assert grid.needed(1170.0) == 1
    assert grid.needed(1171.0) == 2
    assert grid.ended_by(2399.0) == 1
    assert grid.ended_by(2400.0) == 2
    with pytest.raises(SettingsError, match="longer than a restart"):
        LeaseGrid(60.0, 60.0)
    with pytest.raises(SettingsError, match="whole multiple"):
        policy_of(lease_s=1000.0, round_s=300.0)


# Proposition 1 --------------------------------------------------------------------------------------------------------


@given(st.integers(1, 24), st.integers(1, 6), st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_friendly_jobs_that_fit_by_number_consolidate(per_node: int, nodes: int, rng) -> None:  # type: ignore[no-untyped-def]
    """Proposition 1, for nodes of any size, wherever the jobs were before."""
    inventory, left, parcels = NodeInventory(Cluster.of({"v100": (nodes, per_node)})), nodes * per_node, []
    while left > 0 and len(parcels) < 40:
        gpus = rng.randint(1, nodes * per_node)
        taken = round_up(gpus, per_node)
        if taken <= left:
            parcels.append(Parcel(f"job-{len(parcels)}", "v100", gpus, taken))
            left -= taken
        elif rng.random() < 0.3:
            break
    before = pack(inventory, parcels)
    for again in range(2):  # the second time with half of the jobs where they were
        placed = before
        if again:
            for allocation in before.values():
                inventory.give(allocation)
            kept = [p if rng.random() < 0.5 else None for p in parcels]
            moved = [Parcel(p.job_id, "v100", p.gpus, p.taken, before[p.job_id]) for p in kept if p is not None]
            placed = pack(inventory, moved + [p for p, k in zip(parcels, kept, strict=True) if k is None])
        assert set(placed) == {p.job_id for p in parcels}
        used: dict[str, int] = {}
        for parcel in parcels:
            allocation = placed[parcel.job_id]
            assert allocation.gpus == parcel.gpus == sum(gpus for _, gpus in allocation.nodes)
            assert len(allocation.nodes) == -(-parcel.gpus // per_node)
            for node, gpus in allocation.nodes:
                used[node] = used.get(node, 0) + gpus
        assert all(gpus <= per_node for gpus in used.values())


@given(st.integers(1, 64), st.integers(1, 200))
def test_rounding_up_is_the_least_friendly_size(per_node: int, gpus: int) -> None:
    sizes, taken = friendly_sizes(per_node), round_up(gpus, per_node)
    assert all(large % small == 0 for small, large in pairwise(sizes))
    assert taken >= gpus
    assert taken in sizes or taken % per_node == 0
    assert all(size < gpus for size in sizes if size < taken <= per_node)


def test_powers_of_two_would_not_do_on_nodes_of_six() -> None:
    """The paper's 6 = 4 + 2: three jobs of 4 GPUs number as many as two nodes, but only two of them consolidate."""
    inventory = NodeInventory(Cluster.of({"v100": (2, 6)}))
    placed = pack(inventory, [Parcel(f"job-{i}", "v100", 4, 4) for i in range(3)])
    assert sorted(len(allocation.nodes) for allocation in placed.values()) == [1, 1, 2]
    assert round_up(4, 6) == 6
    with pytest.raises(InvalidClusterError):
        friendly_sizes(0)


# Promises -------------------------------------------------------------------------------------------------------------


def test_a_job_that_can_is_promised_and_one_that_cannot_is_told() -> None:
    policy = policy_of(1)
    add(policy, job_of("fits", 1.0), 1.5)
    add(policy, job_of("hopeless", 1.0), 0.9)
    plan = policy.plan(0.0)
    standing = {notice.job_id: notice.standing for notice in policy.notices}
    assert standing == {"fits": Standing.GUARANTEED, "hopeless": Standing.UNGUARANTEED}
    assert list(plan.allocations) == ["fits"]
    assert plan.objective == pytest.approx(99.0)


def test_a_later_urgent_job_goes_between_leases_and_breaks_no_promise() -> None:
    policy = policy_of(1)
    add(policy, job_of("patient", 1.0), 4.0)
    policy.plan(0.0)
    add(policy, job_of("urgent", 0.6, submit_s=300.0), 1.0)
    policy.plan(300.0)
    assert {n.job_id for n in policy.notices if n.standing is Standing.GUARANTEED} == {"patient", "urgent"}
    both = [set(record.leases.tolist()) for record in policy.book.records.values()]
    assert not (both[0] & both[1])


def test_a_cancelled_job_frees_its_leases_and_leaves_the_others_alone() -> None:
    policy = policy_of(1)
    add(policy, job_of("first", 1.0), 4.0)
    add(policy, job_of("second", 1.0), 4.0)
    policy.plan(0.0)
    running = next(iter(policy.lease.records))
    other = "second" if running == "first" else "first"
    promised = policy.book.records[other].promised
    policy.remove_job(running)
    plan = policy.plan(300.0)
    assert policy.book.records[other].promised == promised
    assert list(plan.allocations) == [other]


@pytest.mark.parametrize("profiled", [False, True])
def test_rewards_go_with_their_jobs(profiled: bool) -> None:
    source = {f"mapped-{k}": StepReward.strict(8 * HOUR_S) for k in range(3)}
    for rewards in (source, lambda job: source.get(job.id)):
        policy = policy_of(4, rewards=rewards, profiler=Profiler() if profiled else None)
        add(policy, job_of("told", 1.0), 8.0)
        policy.add_job(job_of("best-effort", 1.0))
        for name in source:
            policy.add_job(job_of(name, 1.0))
        policy.plan(0.0)
        assert set(policy.rewards) == {"told", *source}
        for name in ("told", "best-effort", *source):
            policy.remove_job(name)
        assert policy.rewards == {}
        assert not policy.book.records
        policy.add_job(job_of("mapped-0", 1.0))  # the source is asked again
        policy.add_job(job_of("told", 1.0))  # what it was told was of the job that has gone
        assert set(policy.rewards) == {"mapped-0"}
        policy.remove_job("mapped-0")
        policy.remove_job("told")


@pytest.mark.parametrize("begins", [False, True])
def test_a_job_whose_work_is_done_but_for_rounding_needs_no_lease(begins: bool) -> None:
    """It keeps its promise, gives its leases to others, and is the first to get what they leave, until it ends."""
    policy = policy_of(1)
    add(policy, job_of("ending", 1.9, gpus=4), 4.0)
    policy.add_job(job_of("best-effort", 0.1, gpus=4))
    policy.plan(0.0)
    add(policy, job_of("other", 1.0, gpus=4), 1.6)
    assert len(policy.book.records["ending"].leases) == 6
    policy.update_job("ending", progress=1.0 - 1e-12)
    now_s = 1200.0 if begins else 300.0
    plan = policy.plan(now_s)
    assert "ending" in plan.allocations
    assert not (policy.book.records["ending"].leases >= policy.grid.lease_at(now_s) + (not begins)).any()
    assert policy.book.records["ending"].promised == 0
    assert not [notice for notice in policy.notices if notice.standing is Standing.DEMOTED]
    policy.plan(4.0 * HOUR_S)  # the deadline itself
    assert "ending" in policy.book.records
    policy.plan(4.0 * HOUR_S + 300.0)
    broken = [(n.job_id, n.reason) for n in policy.notices if n.standing is Standing.DEMOTED and n.job_id == "ending"]
    assert broken == [("ending", "its deadline is over, and it has not ended")]


def test_only_jobs_that_may_have_ended_are_looked_at() -> None:
    policy = policy_of(8)
    for number in range(12):
        add(policy, job_of(f"job-{number}", 1.0), 9.0)
    policy.plan(0.0)
    looked_at: list[str] = []
    ends = policy.book._ends
    policy.book._ends = lambda records: ends([r for r in records if not looked_at.append(r.job.id)])  # type: ignore
    policy.update_progress({f"job-{number}": 0.5 for number in range(10)} | {"job-11": 1.0})
    policy.update_job("job-10", progress=1.0)
    assert [record.job.id for record in policy.book.ending()] == ["job-10", "job-11"]  # in order of arrival
    assert looked_at == ["job-11", "job-10"]
    policy.remove_job("job-10")
    policy.update_job("job-11", progress=0.25)
    assert policy.book.ending() == []
    assert looked_at == ["job-11", "job-10"]


def test_a_job_that_ran_all_of_its_time_and_told_nothing_gets_one_more_lease() -> None:
    """Nothing says that it is done: it may have been slower than believed."""
    policy = policy_of(1)
    add(policy, job_of("silent", 1170.0 / HOUR_S), 4.0)
    assert "silent" in policy.plan(0.0).allocations
    assert "silent" in policy.plan(1200.0).allocations
    assert policy.book.records["silent"].leases.tolist() == [1]
    assert not policy.book.only_ends(policy.book.records["silent"])


def test_a_lost_node_demotes_only_what_cannot_be_kept() -> None:
    policy = policy_of(2)
    add(policy, job_of("tight", 1.0), 1.4)
    add(policy, job_of("slack", 1.0), 8.0)
    add(policy, job_of("tight-too", 1.0), 1.4)
    before = policy.plan(0.0).allocations
    assert {"tight", "tight-too"} <= set(before)
    ((node, _),) = before["tight"].nodes
    policy.remove_resources("v100", 8, [node])
    policy.plan(300.0)
    demoted = [notice.job_id for notice in policy.notices if notice.standing is Standing.DEMOTED]
    assert demoted == ["tight"]
    assert set(policy.book.records) == {"slack", "tight-too"}


def test_a_gpu_type_that_goes_away_under_running_jobs_breaks_only_what_no_other_type_can_keep() -> None:
    table = ThroughputTable({"any": {"v100": 1.0, "a100": 2.0}})
    policy = ChronusPolicy(Cluster.of({"v100": (1, 8), "a100": (1, 8)}), table)
    add(policy, job_of("fast-only", 1.0), 0.9)
    add(policy, job_of("either", 1.0), 6.0)
    add(policy, job_of("other", 1.0), 4.0)
    plan = policy.plan(0.0)
    assert plan.allocations["fast-only"].gpu_type == "a100"
    promised = {name: record.promised for name, record in policy.book.records.items()}
    policy.remove_resources("a100", 8)
    after = policy.plan(300.0)
    assert [n.job_id for n in policy.notices if n.standing is Standing.DEMOTED] == ["fast-only"]
    assert {name: record.promised for name, record in policy.book.records.items()} == {
        name: promised[name] for name in ("either", "other")
    }
    kinds = {policy.nodes.types[record.modes[record.mode].kind] for record in policy.book.records.values()}
    assert kinds == {"v100"}
    assert {held.gpu_type for held in after.allocations.values()} <= {"v100"}


def test_jobs_of_no_work_or_with_past_deadlines_are_refused() -> None:
    table = ThroughputTable({"any": {"v100": 1.0}}, {"idle": 0.0})
    policy = ChronusPolicy(Cluster.of({"v100": (1, 8)}), table)
    with pytest.raises(InvalidJobError, match="must be finite and > 0"):
        policy.add_job(Job("idle", "any", requested_gpus=1))
    policy.plan(2 * HOUR_S)
    policy.set_reward("late", StepReward.strict(HOUR_S))
    with pytest.raises(InvalidJobError, match="is over at"):
        policy.add_job(job_of("late", 0.5))
    with pytest.raises(InvalidJobError, match="fit on no GPU type"):
        policy.add_job(job_of("large", 0.5, gpus=9))
    policy.set_reward("good", StepReward.strict(9 * HOUR_S))
    policy.add_job(job_of("good", 0.5))
    with pytest.raises(InvalidJobError, match="has a reward already"):
        policy.set_reward("good", StepReward.strict(HOUR_S))
    assert set(policy.plan(2 * HOUR_S).allocations) == {"good"}


# Types and ranges -----------------------------------------------------------------------------------------------------


def test_a_job_gets_the_gpu_type_that_meets_its_deadline() -> None:
    table = ThroughputTable({"any": {"v100": 1.0, "a100": 2.0}})
    policy = ChronusPolicy(Cluster.of({"v100": (1, 8), "a100": (1, 8)}), table)
    add(policy, job_of("slow-will-do", 1.0), 3.0)
    add(policy, job_of("fast-only", 1.0), 0.9)
    policy.plan(0.0)
    promised = policy.book.records["fast-only"]
    assert policy.nodes.types[promised.modes[promised.mode].kind] == "a100"
    assert {n.job_id for n in policy.notices if n.standing is Standing.GUARANTEED} == {"slow-will-do", "fast-only"}
    leases = {(r.modes[r.mode].kind, k) for r in policy.book.records.values() for k in r.leases.tolist()}
    assert len(leases) == sum(len(record.leases) for record in policy.book.records.values())


@pytest.mark.parametrize("elastic", [False, True])
def test_an_elastic_job_gets_more_gpus_where_its_deadline_wants_them(elastic: bool) -> None:
    table = ThroughputTable({"any": {"v100": {4: 4.0, 8: 8.0}}})
    policy = ChronusPolicy(Cluster.of({"v100": (1, 8)}), table, elastic=elastic)
    policy.set_reward("job", StepReward.strict(HOUR_S))
    policy.add_job(Job("job", "any", work_samples=4 * 1.5 * HOUR_S, requested_gpus=4, max_gpus=8))
    plan = policy.plan(0.0)
    standing = {notice.job_id: notice.standing for notice in policy.notices}
    assert standing["job"] is (Standing.GUARANTEED if elastic else Standing.UNGUARANTEED)
    assert plan.allocations["job"].gpus == (8 if elastic else 4)


# Runs -----------------------------------------------------------------------------------------------------------------


def simulate(work: Workload, nodes: int, **knobs: object) -> tuple[ChronusPolicy, dict[str, float]]:
    cluster = Cluster.of({"v100": (nodes, 8)})
    source = table_source(cluster)
    policy = ChronusPolicy(cluster, GoodputThroughputs(cluster, source), work.rewards, **knobs)  # type: ignore[arg-type]
    result = Simulation(cluster, work.jobs, policy, source, policy.round_s).run()
    return policy, dict(zip(result.jobs["id"].tolist(), result.jobs["jct_s"].tolist(), strict=True))


@pytest.mark.parametrize(("seed", "first_lease"), [(0, "adaptive"), (1, "late"), (2, "now")])
def test_without_failures_every_promise_is_kept(seed: int, first_lease: str) -> None:
    """An overloaded cluster: not all get promises, but all that are given are kept (capacity the simulator checks)."""
    work = synthetic_workload(50, 5.0, "mix2", 1.6, seed, hostile=0.2)
    policy, jct_s = simulate(work, 2, first_lease=first_lease)
    promised = {n.job_id: n.step for n in policy.notices if n.standing is Standing.GUARANTEED}
    assert not [n for n in policy.notices if n.standing is Standing.DEMOTED]
    assert {Standing.GUARANTEED, Standing.UNGUARANTEED} <= {n.standing for n in policy.notices}
    for job_id, step in promised.items():
        assert jct_s[job_id] <= work.rewards[job_id].steps[step][0] + 1e-3


def test_from_the_first_lease_on_a_job_is_answered_at_once() -> None:
    policy = policy_of(1)
    policy.plan(0.0)
    add(policy, job_of("comes", 1.0, submit_s=10.0), 6.0)
    assert policy.last_admission is not None
    assert policy.last_admission.standing is Standing.GUARANTEED
    assert min(policy.last_admission.leases) >= 1, "the present lease is given already"


def test_a_round_that_begins_late_gives_the_lease_that_runs() -> None:
    """Nobody planned at its beginning; what is left of it is not lost."""
    policy = policy_of(1)
    policy.plan(0.0)
    add(policy, job_of("job", 0.9, submit_s=10.0), 1.4)  # three leases of 1,170 s, in the three that end in time
    assert policy.last_admission is not None
    assert policy.last_admission.leases == (1, 2, 3)
    plan = policy.plan(1500.0)
    assert "job" in plan.allocations
    assert policy.book.records["job"].has_lease(1)


def test_time_that_goes_backwards_breaks_no_promise() -> None:
    policy = policy_of(2)
    add(policy, job_of("first", 1.0), 4.0)
    add(policy, job_of("second", 1.0), 4.0)
    policy.plan(2400.0)
    promised = {name: record.promised for name, record in policy.book.records.items()}
    policy.plan(0.0)
    assert {name: record.promised for name, record in policy.book.records.items()} == promised
    assert not [notice for notice in policy.notices if notice.standing is Standing.DEMOTED]


# What is checked, told and passed on ----------------------------------------------------------------------------------


def test_a_reward_whose_last_deadline_is_over_is_refused_and_the_job_stays_best_effort() -> None:
    policy = policy_of(1)
    policy.add_job(job_of("here", 1.0))
    policy.plan(2 * HOUR_S)
    with pytest.raises(InvalidJobError, match="'here': its last deadline, at 3600 s, is over at 7200 s"):
        policy.set_reward("here", StepReward.strict(HOUR_S))
    assert policy.rewards == {}
    assert not policy.book.records
    policy.set_reward("here", StepReward.strict(9 * HOUR_S))
    assert policy.book.records["here"].standing is Standing.GUARANTEED


def test_a_reward_is_given_once() -> None:
    policy = policy_of(1)
    add(policy, job_of("here", 1.0), 4.0)
    with pytest.raises(InvalidJobError, match="'here' has a reward already"):
        policy.set_reward("here", StepReward.strict(9 * HOUR_S))
    assert policy.rewards["here"].last_s == 4.0 * HOUR_S


def test_a_cancelled_job_leaves_the_profiler_and_its_measured_rates_go() -> None:
    policy = policy_of(2, profiler=Profiler(nodes=1))
    for name in ("runs", "waits"):
        policy.add_job(job_of(name, 1.0))
    policy.plan(0.0)
    assert policy.profiler is not None
    assert (list(policy.profiler.running), list(policy.profiler.queue)) == (["runs"], ["waits"])
    for name in ("runs", "waits"):
        policy.remove_job(name)
        assert name not in policy.profiler
    assert policy.plan(300.0).allocations == {}


def test_half_of_a_plan_s_deadline_is_for_the_lp(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, limits = policy_of(1), list[float]()
    cycle = policy.selector.cycle

    def noted(*arguments: Any) -> Any:
        limits.append(arguments[8])
        return cycle(*arguments)

    monkeypatch.setattr(policy.selector, "cycle", noted)
    policy.plan(0.0, 10.0)
    policy.plan(300.0)
    assert limits == [5.0, 30.0]


@pytest.mark.parametrize("times", [0.1, 0.5, 0.66, 0.67, 1.0, 1.49, 1.51, 3.0, 10.0])
def test_a_profile_is_told_where_it_contradicts_the_declared_rate_by_half(times: float) -> None:
    table = ThroughputTable({"any": {"v100": {1: 1.0}}}, {"any": 6000.0})
    policy = ChronusPolicy(Cluster.of({"v100": (2, 8)}), table, profiler=Profiler())
    policy.add_job(Job("job", "any"))
    policy.plan(0.0)
    policy.update_job("job", progress=300.0 / (6000.0 * times))
    policy.plan(300.0)
    told = [(notice.time_s, notice.standing, notice.step, notice.reason) for notice in policy.notices]
    text = f"its profile contradicts the declared rate: it takes {times:.2g} times as long"
    assert told == ([(300.0, Standing.WAITING, -1, text)] if not 1.0 / 1.5 <= times <= 1.5 else [])


def test_a_profile_that_tells_nothing_is_no_contradiction() -> None:
    """The job has made no progress that it told of."""
    table = ThroughputTable({"any": {"v100": {1: 1.0}}}, {"any": 6000.0})
    policy = ChronusPolicy(Cluster.of({"v100": (2, 8)}), table, profiler=Profiler())
    policy.set_reward("job", StepReward.strict(100_000.0))
    policy.add_job(Job("job", "any"))
    assert not policy.book.records, "it is profiled first"
    policy.plan(0.0)
    policy.plan(300.0)
    assert not [notice for notice in policy.notices if notice.standing is Standing.WAITING]
    assert policy.book.records["job"].standing is Standing.GUARANTEED


def test_the_rates_of_equal_jobs_are_asked_for_once() -> None:
    """More jobs of a kind ask for no more rates; a job of another size does."""
    cluster = Cluster.of({"v100": (8, 8), "a100": (4, 8)})
    asked = 0

    class Counted(TrainingThroughputs):
        def rate(self, job: Job, gpu_type: str, gpus: int, progress: float = 0.0) -> float:
            nonlocal asked
            asked += 1
            return super().rate(job, gpu_type, gpus, progress)

    rates = Counted(cluster, GoodputModel(configurations_of(cluster)))
    policy = ChronusPolicy(cluster, rates, DrawnRewards(cluster, rates, mix="slo"))
    counts = []
    for number in range(12):
        gpus = 2 if number == 11 else 1
        policy.add_job(Job(f"job-{number}", "bert", work_samples=1e7, requested_gpus=gpus, batch_size=96))
        counts.append(asked)
    assert len(policy.book.records) == 12
    assert counts == [2] * 11 + [4]
