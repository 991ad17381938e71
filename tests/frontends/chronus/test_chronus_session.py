"""Chronus's lease program in one session: its edits, its agreement with a fresh one, and answers on arrival."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from chronus_instances import NO_LIMIT_S, lease_problem
from plan_checks import check_plan

from copter.highs import mirror as highs
from copter.runtime.errors import UnknownHandleError
from copter_frontends.policies.chronus import ChronusPolicy, LeaseFormulation, Standing, StepReward
from copter_frontends.policies.chronus.draft import Draft
from copter_frontends.policies.chronus.lease_grid import LeaseGrid
from copter_frontends.policies.chronus.options import Ints, Options
from copter_frontends.policy_kit import GoodputThroughputs
from copter_frontends.policy_kit.highs_comparison import HighsComparison
from copter_frontends.simulator import Simulation, random_failures
from copter_frontends.vocabulary import Cluster, InvalidJobError, Job
from copter_papers.chronus.audited_selector import AuditedSelector
from copter_papers.chronus.workload import synthetic_workload, table_source, with_density

LEASE_S = 1200.0


def one_lease_later(options: Options, had: np.ndarray) -> Options:
    """The options when a lease has passed: jobs that had it need one less; deadlines are one lease nearer."""
    need = options.need - had[options.job]
    last = options.last - 1
    keep = np.flatnonzero((need >= 1) & (need <= last))
    rows = {name: getattr(options, name)[keep] for name in ("job", "mode", "kind", "gpus", "step", "value")}
    return Options(**rows, need=need[keep], last=last[keep], must=options.must)


def solved(formulation: LeaseFormulation, options: Options, capacity: Ints, **knobs: object) -> tuple[float, float]:
    found = formulation.solve(options, capacity, time_limit_s=NO_LIMIT_S, **knobs)  # type: ignore[arg-type]
    return found.value, found.bound


@pytest.mark.parametrize("seed", range(4))
def test_leases_pass_and_jobs_get_on_as_in_a_fresh_session(seed: int) -> None:
    options, capacity = lease_problem(40, 16, 12, seed)
    kept = LeaseFormulation(gap=1e-6, max_passes=400)
    names, session = [f"job-{n}" for n in range(40)], kept.lease_model.session
    for first in range(4):
        found = kept.solve(options, capacity, names=names, first=first, time_limit_s=NO_LIMIT_S)
        fresh = LeaseFormulation(gap=1e-6, max_passes=400).solve(options, capacity, time_limit_s=NO_LIMIT_S)
        assert found.bound == pytest.approx(fresh.bound, rel=1e-4)
        assert found.value == pytest.approx(fresh.value, rel=1e-4)
        assert kept.lease_model.session is session
        leases = {lease for _, lease, _ in kept.lease_model.model.resources}
        assert min(leases, default=first) >= first
        options = one_lease_later(options, found.leases[:, 0] & (found.row >= 0))
        capacity = capacity[:, 1:]


def test_a_pickled_program_goes_on_like_the_original() -> None:
    options, capacity = lease_problem(40, 16, 12, 2)
    kept = LeaseFormulation(gap=1e-6, max_passes=400)
    names = [f"job-{n}" for n in range(40)]
    found = kept.solve(options, capacity, names=names, first=0, time_limit_s=NO_LIMIT_S)
    again = pickle.loads(pickle.dumps(kept))
    assert again.lease_model.session.model is again.lease_model.model
    options = one_lease_later(options, found.leases[:, 0] & (found.row >= 0))
    both = [solved(each, options, capacity[:, 1:], names=names, first=1) for each in (kept, again)]
    assert both[0] == both[1]


def test_a_lease_that_is_over_cannot_be_edited_and_nothing_else_changes() -> None:
    options, capacity = lease_problem(40, 16, 12, 1)
    kept, names = LeaseFormulation(gap=1e-6, max_passes=400), [f"job-{n}" for n in range(40)]
    found = kept.solve(options, capacity, names=names, first=0, time_limit_s=NO_LIMIT_S)
    model = kept.lease_model.model
    over = next(resource for resource in model.resources if resource[1] == 0)
    later = one_lease_later(options, found.leases[:, 0] & (found.row >= 0))
    kept.solve(later, capacity[:, 1:], names=names, first=1, time_limit_s=NO_LIMIT_S)
    version = model.version
    with pytest.raises(UnknownHandleError):
        model.update_counts([over], np.array([8.0]))
    assert model.version == version


def test_jobs_whose_columns_stay_are_not_edited() -> None:
    options, capacity = lease_problem(40, 16, 12, 1)
    kept = LeaseFormulation(gap=1e-6, max_passes=400)
    names = [f"job-{n}" for n in range(40)]
    first = kept.solve(options, capacity, names=names, time_limit_s=NO_LIMIT_S)
    again = kept.solve(options, capacity, first.prices.price, names=names, time_limit_s=NO_LIMIT_S)
    assert first.edits.added == first.edits.requests > 0
    assert again.edits.added == 0
    assert again.edits.removed + again.edits.changed < first.edits.added / 4
    assert again.bound == pytest.approx(first.bound, rel=1e-6)


def test_promises_are_kept_in_every_mixture() -> None:
    options, capacity = lease_problem(20, 12, 8, 3)
    origin = Draft(options, capacity)
    for job in range(20):
        any(origin.place(row) for row in origin.ranked(job))
    promised = replace(options, must=origin.row >= 0)
    found = LeaseFormulation(gap=1e-6, max_passes=400).solve(promised, capacity, origin=origin, time_limit_s=NO_LIMIT_S)
    assert (found.row[promised.must] >= 0).all()
    assert found.value >= origin.reward - 1e-6


def test_a_time_limit_ends_with_the_plan_that_there_was() -> None:
    options, capacity = lease_problem(60, 20, 16, 5)
    origin = Draft(options, capacity)
    for job in range(60):
        any(origin.place(row) for row in origin.ranked(job))
    found = LeaseFormulation().solve(options, capacity, origin=origin, time_limit_s=0.0)
    assert found.value <= found.bound
    assert found.bound >= LeaseFormulation(gap=1e-6).solve(options, capacity, time_limit_s=NO_LIMIT_S).value - 1e-6


def busy_policy(jobs: int = 60, gpus: int = 16, **knobs: object) -> tuple[ChronusPolicy, Cluster]:
    """A policy that has planned for more jobs than fit."""
    cluster = Cluster.of({"v100": (gpus // 8, 8)})
    policy = ChronusPolicy(cluster, GoodputThroughputs(cluster, table_source(cluster)), **knobs)  # type: ignore[arg-type]
    rng = np.random.default_rng(4)
    for number in range(jobs):
        size, duration_s = int(rng.choice([1, 2, 4])), float(rng.uniform(0.5, 3.0)) * 3600.0
        name = f"job-{number}"
        policy.set_reward(name, StepReward.soft(duration_s * float(rng.uniform(1.3, 3.0))))
        policy.add_job(Job(name, "alexnet", 0.0, duration_s * size, requested_gpus=size))
    policy.plan(0.0)
    return policy, cluster


def test_a_job_is_answered_when_it_comes_and_others_make_room_within_their_deadlines() -> None:
    policy, _ = busy_policy(20, 8)
    moved = 0
    for number in range(40):
        before = {name: record.leases.copy() for name, record in policy.book.records.items() if record.promised >= 0}
        name = f"late-{number}"
        policy.set_reward(name, StepReward.strict(3600.0 * (4 + number % 9)))
        policy.add_job(Job(name, "alexnet", 0.0, 3000.0, requested_gpus=1 + number % 3))
        answer = policy.last_admission
        assert answer is not None
        assert answer.job_id == name
        for other, lease, target in answer.moves:
            record = policy.book.records[other]
            assert lease in before[other]
            assert target in record.leases
            assert target < record.job.submit_s + record.reward.steps[record.promised][0] // LEASE_S
            moved += 1
        if answer.standing is Standing.GUARANTEED:
            assert answer.leases == tuple(policy.book.records[name].leases.tolist())
            assert min(answer.leases) >= 1
        else:
            assert answer.moves == ()
            assert all((policy.book.records[other].leases == leases).all() for other, leases in before.items())
    assert moved > 0
    policy.plan(LEASE_S)
    assert not [notice for notice in policy.notices if notice.standing is Standing.DEMOTED]


def test_a_deadline_that_passes_between_submission_and_arrival_is_named() -> None:
    policy, _ = busy_policy(8)
    policy.plan(2 * LEASE_S)
    policy.set_reward("gone", StepReward.strict(600.0))
    with pytest.raises(InvalidJobError, match="'gone': its last deadline"):
        policy.add_job(Job("gone", "alexnet", 0.0, 300.0))
    assert "gone" not in policy.jobs
    assert "gone" not in policy.book.records


def test_highs_solves_the_same_programs() -> None:
    if not highs:
        pytest.skip("HiGHS is not installed")
    policy, _ = busy_policy(80)
    comparison = HighsComparison(policy, every=1)
    for cycle in range(1, 5):
        for number in range(12):
            name = f"more-{cycle}-{number}"
            policy.set_reward(name, StepReward.soft(2.2 * 3600.0))
            policy.add_job(Job(name, "alexnet", cycle * LEASE_S, 3600.0, requested_gpus=1))
        policy.plan(cycle * LEASE_S)
    assert comparison.rounds
    assert comparison.summary()["objective_rel_diff_max"] <= 1e-3
    assert comparison.summary()["not_optimal"] == 0


def test_an_interrupted_plan_of_leases_is_made_again() -> None:
    policy, _ = busy_policy(80)

    def interrupt() -> None:
        raise KeyboardInterrupt

    policy.set_reward("more", StepReward.soft(7200.0))
    policy.add_job(Job("more", "alexnet", 0.0, 3600.0))
    promised = {name for name, record in policy.book.records.items() if record.promised >= 0}
    policy.observers.append(interrupt)

    def run() -> None:
        for cycle in range(1, 30):
            policy.plan(cycle * LEASE_S)

    with pytest.raises(KeyboardInterrupt):
        run()
    policy.observers.clear()
    policy.plan(policy._now_s)
    demoted = {notice.job_id for notice in policy.notices if notice.standing is Standing.DEMOTED}
    assert not demoted & promised


def kept_promises(days: float, density: float, seed: int, failures: bool = False) -> tuple[int, int, int]:
    """(promises, of which broken, of which no plan could have kept) of a simulated cluster of 24 GPUs.

    A density of 1 asks for all of it; with failures a node fails every other day, for three hours.
    """
    cluster = Cluster.of({"v100": (3, 8)})
    full = synthetic_workload(round(days * 24 * 24 / 3.2), days * 24.0, seed=seed)
    work = with_density(full, density, seed)
    source = table_source(cluster)
    selector = AuditedSelector(LeaseGrid(LEASE_S))
    policy = ChronusPolicy(cluster, GoodputThroughputs(cluster, source), work.rewards, selector=selector)
    events = random_failures(cluster, 24.0 * days, 48.0, 3.0, seed) if failures else []
    result = Simulation(cluster, work.jobs, policy, source, policy.round_s, events=events).run()
    jct_s = dict(zip(result.jobs["id"].tolist(), result.jobs["jct_s"].tolist(), strict=True))
    told = [notice for notice in policy.notices if notice.standing is Standing.GUARANTEED]
    demoted = {notice.job_id for notice in policy.notices if notice.standing is Standing.DEMOTED}
    late = [
        n
        for n in told
        if n.job_id not in demoted and not jct_s[n.job_id] <= work.rewards[n.job_id].steps[n.step][0] + 1e-3
    ]
    return len(told), len(late) + len(demoted), sum(broken.forced for broken in selector.audit)


@pytest.mark.parametrize("density", [0.8, 1.6])
def test_no_promise_is_broken_in_a_simulated_day(density: float) -> None:
    told, broken, _ = kept_promises(1.0, density, seed=1)
    assert told > 50
    assert broken == 0


def test_failures_break_only_the_promises_that_they_force() -> None:
    told, broken, forced = kept_promises(1.0, 1.6, seed=3, failures=True)
    assert told > 50
    assert forced > 0
    assert broken == forced


@pytest.mark.long
@pytest.mark.parametrize("seed", [2, 3, 4])
@pytest.mark.parametrize("density", [0.8, 1.0, 1.2, 1.4, 1.6])
def test_no_promise_is_broken_in_ten_simulated_days(density: float, seed: int) -> None:
    told, broken, _ = kept_promises(10.0, density, seed)
    assert told > 500
    assert broken == 0


def test_a_plan_without_time_keeps_what_was_promised() -> None:
    policy, cluster = busy_policy(200, 32)
    promised = {name for name, record in policy.book.records.items() if record.promised >= 0}
    plan = policy.plan(LEASE_S, deadline_s=1e-6)
    check_plan(plan, cluster)
    assert plan.objective <= plan.bound
    assert promised <= set(policy.book.records)
    assert not [notice for notice in policy.notices if notice.standing is Standing.DEMOTED]
