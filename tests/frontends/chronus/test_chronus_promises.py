"""What Chronus promises it keeps, on nodes and jobs of awkward sizes; all forms of its program have one optimum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from chronus_instances import NO_LIMIT_S, SOFT, STRICT, highs_optimum
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plan_checks import check_plan

from copter_frontends.policies.chronus import ChronusPolicy, LeaseFormulation, LeaseShim, Standing, StepReward
from copter_frontends.policies.chronus.compact import compact_form, per_deadline_form
from copter_frontends.policies.chronus.options import Ints, Options
from copter_frontends.policies.chronus.packing import Parcel, pack
from copter_frontends.policies.chronus.rounding import round_up
from copter_frontends.policy_kit import GoodputThroughputs, NodeInventory
from copter_frontends.simulator import Simulation
from copter_frontends.vocabulary import Allocation, Cluster, InvalidJobError, Job, Plan
from copter_papers.chronus.workload import table_source

LEASE_S = 1200.0
NODES = st.sampled_from([3, 5, 6, 8, 12])
GPUS = st.sampled_from([1, 1, 2, 3, 7, 33])
TIGHT = LeaseFormulation(gap=1e-6, max_passes=400)


class Watched(ChronusPolicy):
    """Checks every plan, and every lease that is held, against the cluster."""

    def __init__(self, cluster: Cluster, *arguments: Any, **knobs: Any) -> None:
        super().__init__(cluster, *arguments, **knobs)
        self.cluster = cluster

    def plan(self, now_s: float, deadline_s: float = 60.0) -> Plan:
        plan = super().plan(now_s, deadline_s)
        check_plan(plan, self.cluster)
        held: dict[int, int] = {}
        for record in self.book.records.values():
            for lease in record.leases.tolist():
                if lease >= self.grid.lease_at(now_s):
                    held[lease] = held.get(lease, 0) + record.modes[record.mode].taken
        assert max(held.values(), default=0) <= self.cluster.gpus
        return plan


@st.composite
def workloads(draw: st.DrawFn) -> tuple[Cluster, list[Job], Mapping[str, StepReward]]:
    """Up to 14 jobs of awkward sizes; every other deadline is the very end of a lease."""
    per_node, nodes = draw(NODES), draw(st.integers(1, 4))
    cluster = Cluster.of({"v100": (nodes, per_node)})
    jobs, rewards, submit_s = [], {}, 0.0
    for number in range(draw(st.integers(1, 14))):
        gpus = draw(GPUS.filter(lambda gpus: gpus <= nodes * per_node))
        duration_s = draw(st.one_of(st.just(1.0), st.floats(60.0, 9000.0), st.sampled_from([1170.0, 2340.0])))
        submit_s += draw(st.sampled_from([0.0, 0.0, 300.0, 733.0]))
        job = Job(f"job-{number}", "alexnet", submit_s, duration_s * gpus, requested_gpus=gpus)
        jobs.append(job)
        first_s = duration_s * draw(st.floats(1.2, 2.0))
        if draw(st.booleans()):
            first_s = (np.floor((submit_s + first_s) / LEASE_S) + draw(st.integers(1, 3))) * LEASE_S - submit_s
        kind = draw(st.sampled_from(["strict", "soft", "soft", "best effort"]))
        if kind != "best effort":
            rewards[job.id] = StepReward.strict(first_s) if kind == "strict" else StepReward.soft(first_s)
    return cluster, jobs, rewards


@given(workloads(), st.sampled_from(["adaptive", "now", "late"]))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_guaranteed_job_misses_its_deadline_and_capacity_is_never_broken(
    work: tuple[Cluster, list[Job], Mapping[str, StepReward]], first_lease: str
) -> None:
    cluster, jobs, rewards = work
    source = table_source(cluster)
    policy = Watched(cluster, GoodputThroughputs(cluster, source), rewards, first_lease=first_lease)
    result = Simulation(cluster, jobs, policy, source, policy.round_s).run()
    jct_s = dict(zip(result.jobs["id"].tolist(), result.jobs["jct_s"].tolist(), strict=True))
    assert set(jct_s) == {job.id for job in jobs}
    assert not [notice for notice in policy.notices if notice.standing is Standing.DEMOTED]
    for notice in policy.notices:
        if notice.standing is Standing.GUARANTEED:
            assert jct_s[notice.job_id] <= rewards[notice.job_id].steps[notice.step][0] + 1e-3


@given(NODES, st.integers(1, 8), st.lists(st.sampled_from([1, 3, 7, 33]), min_size=1, max_size=40))
@settings(max_examples=150, deadline=None)
def test_awkward_jobs_that_fit_when_rounded_up_consolidate(per_node: int, nodes: int, sizes: list[int]) -> None:
    """Proposition 1 (C17): by number is enough, with nothing to spare."""
    parcels, left = [], per_node * nodes
    for gpus in sizes:
        taken = round_up(gpus, per_node)
        if taken <= left:
            left -= taken
            parcels.append(Parcel(f"job-{len(parcels)}", "v100", gpus, taken))
    placed = pack(NodeInventory(Cluster.of({"v100": (nodes, per_node)})), parcels)
    assert [len(placed[p.job_id].nodes) for p in parcels] == [-(-p.gpus // per_node) for p in parcels]
    assert all(isinstance(held, Allocation) for held in placed.values())


@st.composite
def lease_programs(draw: st.DrawFn) -> tuple[Options, Ints]:
    """Up to 6 jobs and 6 leases; some leases short of GPUs, some that can never be full."""
    horizon, kinds = draw(st.integers(1, 6)), draw(st.integers(1, 2))
    rows: list[tuple[int, int, int, int, int, int, int, float]] = []
    must = []
    jobs = draw(st.integers(1, 6))
    for job in range(jobs):
        steps = STRICT if draw(st.booleans()) else SOFT
        gpus, need, first = draw(st.sampled_from([1, 3, 7])), draw(st.integers(1, 4)), draw(st.integers(1, 5))
        before = len(rows)
        for kind in range(kinds):
            for step, (factor, value) in enumerate(steps):
                last = min(int(first * factor), horizon)
                if need + kind <= last:
                    rows.append((job, kind, kind, gpus, need + kind, last, step, value - 1.0))
        must.append(len(rows) > before and draw(st.integers(0, 4)) == 0)
    free = st.lists(st.integers(0, 15), min_size=horizon, max_size=horizon)
    capacity = np.array([draw(free) for _ in range(kinds)], dtype=np.int64)
    return Options.of(rows, must), capacity


@given(lease_programs())
@settings(max_examples=60, deadline=None)
def test_all_forms_have_the_optimum_of_the_form_by_deadlines(program: tuple[Options, Ints]) -> None:
    """Compact (with and without variable upper bounds) = per deadline = what HiGHS says; the bound is above it."""
    options, capacity = program
    values = [highs_optimum(per_deadline_form(options, capacity))]
    values += [highs_optimum(compact_form(options, capacity, vub=vub)) for vub in (True, False)]
    if values[0] is None:
        assert values == [None, None, None]
        return
    assert values == pytest.approx([values[0]] * 3, abs=1e-6)
    found = TIGHT.solve(options, capacity, time_limit_s=NO_LIMIT_S)
    draft = LeaseShim()(options, capacity, found)
    assert found.bound >= values[0] - 1e-6
    assert draft.reward <= found.bound + 1e-6
    assert (draft.free >= 0).all()


@given(lease_programs())
@settings(max_examples=40, deadline=None)
def test_the_decomposition_reaches_the_lp_whatever_leases_are_scarce(program: tuple[Options, Ints]) -> None:
    options, capacity = program
    free = Options(
        **{name: getattr(options, name) for name in Options.__slots__ if name != "must"},
        must=np.zeros(options.jobs, dtype=bool),
    )
    lp = highs_optimum(per_deadline_form(free, capacity, whole=False))
    found = TIGHT.solve(free, capacity, time_limit_s=NO_LIMIT_S)
    assert found.bound == pytest.approx(lp, rel=2e-5, abs=1e-3)
    assert found.value == pytest.approx(lp, rel=2e-5, abs=1e-3)


# Bad input, word for word ---------------------------------------------------------------------------------------------


def slo_policy() -> ChronusPolicy:
    cluster = Cluster.of({"v100": (2, 8)})
    policy = ChronusPolicy(cluster, GoodputThroughputs(cluster, table_source(cluster)))
    policy.set_reward("kept", StepReward.strict(4 * LEASE_S))
    policy.add_job(Job("kept", "alexnet", 0.0, 8 * 2000.0, requested_gpus=8))
    policy.plan(0.0)
    policy.plan(LEASE_S)
    return policy


@pytest.mark.parametrize(
    ("reward_s", "work", "gpus", "message"),
    [
        (
            600.0,
            8000.0,
            8,
            "job 'bad': its last deadline, at 600 s, is over at 1200 s; give a later one, or no reward",
        ),
        (9000.0, 8000.0, 17, "job 'bad': its 17 GPUs fit on no GPU type that can run it (v100: 16)"),
        (9000.0, 0.0, 8, "work_samples"),
    ],
)
def test_a_bad_job_is_refused_in_so_many_words_and_changes_nothing(
    reward_s: float, work: float, gpus: int, message: str
) -> None:
    policy, twin = slo_policy(), slo_policy()
    policy.set_reward("bad", StepReward.strict(reward_s))
    with pytest.raises(InvalidJobError) as caught:
        policy.add_job(Job("bad", "alexnet", 0.0, work, requested_gpus=gpus))
    assert message in str(caught.value)
    assert policy.plan(1500.0).allocations == twin.plan(1500.0).allocations
    assert policy.book.records.keys() == twin.book.records.keys() == {"kept"}
    assert policy.notices == twin.notices


def test_rising_rewards_are_refused_in_so_many_words() -> None:
    with pytest.raises(InvalidJobError) as caught:
        StepReward(((3600.0, 50.0), (7200.0, 60.0)))
    assert str(caught.value) == "the reward rises from 50 at 3600 s to 60 at 7200 s: it may only fall"


def test_a_lost_node_and_a_cancelled_job_leave_other_promises_alone() -> None:
    policy = slo_policy()
    for name in ("gone", "other"):
        policy.set_reward(name, StepReward.strict(20 * LEASE_S))
        policy.add_job(Job(name, "alexnet", LEASE_S, 8 * 2000.0, requested_gpus=8))
    policy.plan(2 * LEASE_S)
    promised = {job: record.promised for job, record in policy.book.records.items()}
    assert set(promised.values()) == {0}
    policy.remove_job("gone")
    policy.plan(2 * LEASE_S + 300.0)
    ((node, _),) = policy.held["other"].nodes if "other" in policy.held else policy.held["kept"].nodes
    policy.remove_resources("v100", 8, [node])
    policy.plan(3 * LEASE_S)
    told = {notice.job_id: notice for notice in policy.notices if notice.standing is Standing.DEMOTED}
    kept = {job: record.promised for job, record in policy.book.records.items()}
    assert kept == {job: step for job, step in promised.items() if job != "gone" and job not in told}
    assert "other" in kept
    assert all(notice.reason == "its leases cannot be had any more" for notice in told.values())
