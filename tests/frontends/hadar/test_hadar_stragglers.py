"""Stragglers: a job that runs well below its rate leaves its servers for others of the type (papers/hadar.md, H21)."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from copter_frontends.policies.hadar import HadarPolicy, Unmeasured
from copter_frontends.policy_kit import GoodputThroughputs, ThroughputTable
from copter_frontends.simulator import Simulation
from copter_frontends.simulator.saved_run import load_run, save_run
from copter_frontends.simulator.table_source import TableApplication, TableSource
from copter_frontends.vocabulary import Allocation, Cluster, InvalidJobError, Job, configurations_of

MODES = ["lp", "online", "lp_posted", "horizon"]
FAST = {"fast": 4.0, "slow": 1.0}


def policy_of(fast: int = 2, work: float = 1e5, jobs: int = 1, gpus: int = 4, **options: object) -> HadarPolicy:
    """Jobs of four GPUs and rates 4 and 1, on servers of four GPUs: some fast ones, and a slow one."""
    rows = {f"j{i}": FAST for i in range(jobs)}
    source = ThroughputTable(rows, dict.fromkeys(rows, work))
    where = Cluster.of({"fast": (fast, 4), "slow": (1, 4)})
    policy = HadarPolicy(where, source, **options)  # type: ignore[arg-type]
    for name in rows:
        policy.add_job(Job(name, "any", requested_gpus=gpus))
    return policy


def nodes(policy: HadarPolicy, now_s: float, job: str = "j0") -> tuple[str, ...]:
    return tuple(node for node, _ in policy.plan(now_s).allocations[job].nodes)


@pytest.mark.parametrize("told", ["rates", "observed"])
@pytest.mark.parametrize("mode", MODES)
def test_a_job_told_a_low_rate_goes_to_another_server_of_the_type(mode: str, told: str) -> None:
    policy = policy_of(mode=mode)
    assert nodes(policy, 0.0) == ("fast-0",)
    policy.update_job("j0", **{told: {"fast": 1.2} if told == "rates" else 1.2})
    assert nodes(policy, 360.0) == ("fast-1",)
    assert policy.book.rates[0].tolist() == [4.0, 1.0], "the server was slow, not the type"
    policy.update_job("j0", observed=4.0)
    assert nodes(policy, 720.0) == ("fast-1",), "and it stays where it is fast"


@pytest.mark.parametrize("mode", MODES)
def test_a_low_rate_on_the_other_servers_too_is_the_types(mode: str) -> None:
    policy = policy_of(mode=mode)
    policy.plan(0.0)
    policy.update_job("j0", observed=0.4)
    assert nodes(policy, 360.0) == ("fast-1",)
    policy.update_job("j0", observed=0.4)
    assert nodes(policy, 720.0) == ("slow-0",), "now 1.0 is more than 0.4"
    assert policy.book.rates[0].tolist() == [0.4, 1.0]


def test_without_another_server_a_low_rate_is_the_types() -> None:
    policy = policy_of(fast=1)
    policy.plan(0.0)
    policy.update_job("j0", observed=0.9)
    assert policy.book.rates[0].tolist() == [0.9, 1.0]
    assert nodes(policy, 360.0) == ("slow-0",)


@pytest.mark.parametrize(("told", "where"), [(3.2, "fast-0"), (3.1, "fast-1")])
def test_a_fifth_below_the_rate_is_where_a_straggler_begins(told: float, where: str) -> None:
    policy = policy_of()
    policy.plan(0.0)
    policy.update_job("j0", observed=told)
    assert nodes(policy, 360.0) == (where,)
    assert policy.book.rates[0, 0] == (told if where == "fast-0" else 4.0)


@pytest.mark.parametrize(("work", "where"), [(4 * 349.9, "fast-1"), (4 * 350.1, "fast-0")])
def test_it_moves_only_where_it_ends_in_an_earlier_round(work: float, where: str) -> None:
    """At 2 per second two rounds are needed; at 4 one, if the work is done in the 350 s that a restart leaves."""
    policy = policy_of(work=work)
    policy.plan(0.0)
    policy.update_job("j0", observed=2.0)
    assert nodes(policy, 360.0) == (where,)


def test_it_waits_for_a_server_that_is_taken_and_is_valued_as_it_runs_meanwhile() -> None:
    policy = policy_of(jobs=2)
    plan = policy.plan(0.0)
    assert {name: each.gpu_type for name, each in plan.allocations.items()} == {"j0": "fast", "j1": "fast"}
    slow = plan.allocations["j0"].nodes
    policy.update_job("j0", observed=1.2)
    assert policy.plan(360.0).allocations["j0"].nodes == slow
    assert policy.book.rates[0, 0] == 1.2
    policy.remove_job("j1")
    after = policy.plan(720.0).allocations["j0"].nodes
    assert after != slow
    assert after[0][0].startswith("fast")
    assert policy.book.rates[0, 0] == 4.0


def test_two_stragglers_do_not_count_on_the_same_server() -> None:
    policy = policy_of(fast=3, jobs=2)
    plan = policy.plan(0.0)
    before = {name: each.nodes for name, each in plan.allocations.items()}
    for name in ("j0", "j1"):
        policy.update_job(name, observed=1.2)
    after = {name: each.nodes for name, each in policy.plan(360.0).allocations.items()}
    assert after["j0"] == (("fast-2", 4),)
    assert after["j1"] == before["j1"]
    assert policy.book.rates[policy.book.row("j1"), 0] == 1.2


def test_a_freed_slow_server_is_for_jobs_that_were_not_seen_to_be_slow_on_it() -> None:
    policy = policy_of(jobs=2)
    policy.remove_job("j1")
    (slow,) = nodes(policy, 0.0)
    policy.update_job("j0", observed=1.2)
    policy.add_job(Job("j1", "any", requested_gpus=4))
    plan = policy.plan(360.0)
    assert {name: each.gpu_type for name, each in plan.allocations.items()} == {"j0": "fast", "j1": "fast"}
    assert plan.allocations["j1"].nodes == ((slow, 4),)


def test_a_pinned_straggler_stays_and_a_mixtures_rate_is_its_slowest_types() -> None:
    policy = policy_of()
    here = Allocation("fast", 4, (("fast-0", 4),))
    policy.pin("j0", here)
    policy.plan(0.0)
    policy.update_job("j0", observed=1.2)
    assert policy.plan(360.0).allocations["j0"] == here
    policy.pin("j0", Allocation("slow", 4, (("fast-0", 2), ("slow-0", 2)), (("fast", 2), ("slow", 2))))
    policy.plan(720.0)
    policy.update_job("j0", observed=0.38)
    assert policy.stragglers.found["j0"].gpu_type == "fast", "of the mixture nothing is noted"
    assert policy.book.rates[0, 1] == pytest.approx(0.38 / 0.95), "spread tasks lose 5% that is not the type's"


def test_what_is_no_rate_is_refused_and_nothing_is_noted() -> None:
    policy = policy_of()
    with pytest.raises(InvalidJobError, match="it has no GPUs"):
        policy.update_job("j0", observed=1.0)
    policy.plan(0.0)
    for wrong in (-1.0, math.inf):
        with pytest.raises(InvalidJobError, match="must be finite and >= 0"):
            policy.update_job("j0", observed=wrong)
    assert policy.stragglers.found == {}
    policy.update_job("j0", observed=1.0)
    policy.remove_job("j0")
    assert policy.stragglers.found == {}


def test_a_guessed_rate_makes_no_straggler() -> None:
    source = ThroughputTable({"j0": FAST}, {"j0": 1e5})
    policy = HadarPolicy(Cluster.of({"fast": (2, 4), "slow": (1, 4)}), Unmeasured(source))
    assert policy.learns
    assert not policy_of().learns
    policy.add_job(Job("j0", "any", requested_gpus=4))
    kind = policy.plan(0.0).allocations["j0"].gpu_type
    policy.update_job("j0", observed=1e-3)
    assert policy.stragglers.found == {}
    assert policy.book.rates[0, policy.servers.types.index(kind)] == 1e-3


def test_a_run_with_a_straggler_goes_on_from_a_file_as_it_would_have(tmp_path: Path) -> None:
    cluster = Cluster.of({"fast": (2, 4), "slow": (1, 4)})
    facts = TableApplication("m", {"fast": 1.0, "slow": 0.3}, {"fast": 4, "slow": 4})
    source = TableSource(configurations_of(cluster), {"m": facts})
    policy = HadarPolicy(cluster, GoodputThroughputs(cluster, source))
    run = Simulation(cluster, [Job("j", "m", work_samples=1e5, requested_gpus=4)], policy, source, 360.0)
    run.run(rounds=2)
    policy.update_job("j", observed=1.0)
    run.run(rounds=1)
    save_run(run, tmp_path / "run.copter")
    again = load_run(tmp_path / "run.copter")
    assert isinstance(again.policy, HadarPolicy)
    assert again.policy.stragglers.found == policy.stragglers.found
    assert set(policy.stragglers.found) == {"j"}
    assert again.run().jobs["jct_s"].tolist() == run.run().jobs["jct_s"].tolist()
