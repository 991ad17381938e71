"""Waiting over all jobs, by hand, and the bound that ageing gives (docs/papers/baselines.md, B44-B46)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from copter.runtime.errors import SettingsError
from copter_frontends.cli.options import SimulateOptions
from copter_frontends.cli.run import Run
from copter_frontends.cli.simulate import simulate
from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.registry.names import POLICY_NAMES
from copter_frontends.policies.registry.policies import POLICIES
from copter_frontends.policy_kit import RoundPolicy
from copter_frontends.policy_kit.ageing import Ageing
from copter_frontends.policy_kit.choice import Choice
from copter_frontends.report.table import waiting_rows
from copter_frontends.simulator import Simulation, SimulationResult
from copter_frontends.simulator.result import SkippedJob
from copter_frontends.simulator.waiting import waiting_summary, waits_so_far
from copter_frontends.vocabulary import Cluster, Job, configurations_of


class Alone:
    """1,000 s on one GPU of any type."""

    def seconds(self, job: Job, gpu_type: str, gpus: int) -> float:
        return 1000.0 / gpus


class FirstNamed(RoundPolicy):
    """Runs jobs by name, so that a late name starves."""

    def choose(self, now_s: float, deadline_s: float) -> Choice:
        left, wanted = self.room(), dict[str, tuple[str, int]]()
        for job_id in sorted(self.jobs):
            kind = next((kind for kind in left if left[kind] >= 1), None)
            if job_id not in self.pins and kind is not None:
                left[kind] -= 1
                wanted[job_id] = (kind, 1)
        return Choice(wanted)


def by_hand(skipped: tuple[SkippedJob, ...] = ()) -> SimulationResult:
    """Return a run of 4,000 s: done, never run, stopped, running, not arrived."""
    nan = math.nan
    columns: dict[str, Any] = {
        "id": np.array(["done", "never", "stopped", "running", "later"]),
        "submit_s": np.array([0.0, 500.0, 0.0, 0.0, 9000.0]),
        "jct_s": np.array([2000.0, nan, nan, nan, nan]),
        "gpus": np.array([0, 0, 0, 2, 0]),
        "first_start_s": np.array([500.0, nan, 0.0, 1000.0, nan]),
        "last_held_s": np.array([2000.0, nan, 3000.0, 500.0, nan]),
        "queue_s": np.array([500.0, 3500.0, 1000.0, 1000.0, 0.0]),
    }
    record: Any = type("Record", (), {"now_s": 3900.0, "gpus_capacity": {"a": 4}})()
    return SimulationResult(4, 100.0, 0, (record,), columns, skipped)


JOBS = [Job(name, "x") for name in ("done", "never", "stopped", "running", "later", "refused")]


def test_waits_are_of_the_jobs_that_wait_at_the_end() -> None:
    np.testing.assert_array_equal(waits_so_far(by_hand()), [math.nan, 3500.0, 1000.0, math.nan, math.nan])
    found = waiting_summary(by_hand(), JOBS, Alone())
    assert found["jobs"] == 4
    assert (found["never_run"], found["still_waiting"]) == (1, 2)
    assert found["longest_wait_h"] == pytest.approx(3500 / 3600)
    assert found["latency_ratio"] == {"max": 3.5, "mean": pytest.approx((0.5 + 3.5 + 1.0 + 1.0) / 4)}


def test_a_job_given_up_for_want_of_gpus_counts_and_a_refused_one_does_not() -> None:
    given_up = SkippedJob("starved", "the policy gave it no GPUs", 3900.0)
    found = waiting_summary(
        by_hand((given_up, SkippedJob("refused", "fits nowhere"))), [*JOBS, Job("starved", "x")], Alone()
    )
    assert (found["jobs"], found["refused"], found["never_run"], found["still_waiting"]) == (5, 1, 2, 3)
    assert found["latency_ratio"]["max"] == 3.9


def test_a_run_without_rounds_has_no_waits() -> None:
    empty = SimulationResult(4, 100.0, 0, (), by_hand().jobs, ())
    found = waiting_summary(empty, JOBS, Alone())
    assert (found["jobs"], found["never_run"], found["longest_wait_h"]) == (0, 0, 0.0)


def longest_wait_s(simulation: Simulation, hours: float) -> tuple[float, SimulationResult]:
    """Run, and return the longest time that any job went without GPUs, ended or not."""
    last: dict[str, float] = {}
    worst = 0.0

    def look(record: Any) -> None:
        nonlocal worst
        for job in simulation.active:
            if job.id in simulation._occupancy.allocations:
                last[job.id] = simulation.now_s
            worst = max(worst, simulation.now_s - last.get(job.id, job.submit_s))

    ran = simulation.run(hours=hours, on_round=look)
    return worst, ran


def starving(after_s: float | None) -> tuple[float, dict[str, Any]]:
    cluster = Cluster.of({"t4": (1, 2)})
    policy: Any = FirstNamed(cluster, 60.0)
    if after_s is not None:
        policy = Ageing(policy, cluster, after_s)
    jobs = [Job(f"j{k}", "bert", requested_gpus=1) for k in range(6)]
    simulation = Simulation(cluster, jobs, policy, GoodputModel(configurations_of(cluster)), policy.round_s)
    worst, ran = longest_wait_s(simulation, 3.0)
    return worst, waiting_summary(ran, jobs, Alone())


def test_ageing_bounds_the_wait_that_the_policy_leaves_open() -> None:
    worst, told = starving(None)
    assert worst == pytest.approx(3 * 3600.0, abs=121.0)
    assert told["never_run"] == 4
    after, rounds = 1800.0, 60.0
    worst, told = starving(after)
    turn = max(after / 4, 4 * rounds)
    assert told["never_run"] == 0
    assert after <= worst <= after + rounds + 4 * (turn + rounds)  # three jobs may be before it, two GPUs in turn


@pytest.mark.parametrize("policy", ["chronus", "hadar", "hops", "hare-gang", "tiresias"])
def test_ageing_bounds_the_wait_under_the_papers_policies(policy: str) -> None:
    def made(*more: str) -> Simulation:
        arguments = [policy, "--cluster", "sia-hom", "--jobs", "400", "--window-hours", "4", "--hours", "3", *more]
        return Run.read(SimulateOptions.of(**simulate.make_context("simulate", arguments).params)).simulation

    plain, _ = longest_wait_s(made(), 3.0)
    aged, _ = longest_wait_s(made("--ageing", "0.75"), 3.0)
    assert plain > 1.2 * 3600.0
    assert aged < min(plain, 1.5 * 3600.0)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["sia", "hadar", "hops", "chronus", "hare"])
def test_ageing_bounds_the_wait_at_a_load_of_1_6_over_a_day(policy: str) -> None:
    """A turn frees its GPUs for the next: over a day of too much work no job waits for much more than asked."""
    arguments = [policy, "--cluster", "sia-hom", "--load", "1.6", "--hours", "24", "--seed", "5", "--ageing", "2"]
    simulation = Run.read(SimulateOptions.of(**simulate.make_context("simulate", arguments).params)).simulation
    worst, ran = longest_wait_s(simulation, 24.0)
    policy_with_turns: Any = simulation.policy  # a job waits for at most one turn of others beyond its own time
    assert 2.0 * 3600.0 <= worst <= 2.0 * 3600.0 + policy_with_turns.turn_s + 2 * simulation.round_s
    assert sum(record.queued_jobs for record in ran.rounds[-60:]) > 0


def test_turns_survive_lost_nodes_and_removed_jobs() -> None:
    cluster = Cluster.of({"t4": (2, 1)})
    policy = Ageing(FirstNamed(cluster, 60.0), cluster, 100.0)
    for name in "abcd":
        policy.add_job(Job(name, "bert"))
    assert set(policy.plan(0.0).allocations) == {"a", "b"}
    assert set(policy.plan(120.0).allocations) == {"c", "d"}
    assert set(policy.plan(180.0).allocations) == {"c", "d"}
    gone = policy.plan(240.0).allocations["c"].nodes[0][0]
    policy.remove_resources("t4", 1, [gone])
    assert len(policy.plan(241.0).allocations) == 1
    policy.remove_job("d")
    policy.add_resources("t4", 1, ["new"])
    assert len(policy.plan(300.0).allocations) == 2
    with pytest.raises(SettingsError, match="must be more than 0"):
        Ageing(FirstNamed(cluster, 60.0), cluster, 0.0)


def test_every_policy_says_what_it_guarantees() -> None:
    cluster = Cluster.of({"v100": (4, 8)})
    model = GoodputModel(configurations_of(cluster))
    said = {}
    for name in POLICY_NAMES:
        policy = POLICIES[name].build(cluster, model)
        said[name] = policy.waiting_bound
        turns = Ageing(policy, cluster, 6.0 * 3600.0).waiting_bound
        assert turns.startswith("6 h, and a turn")
        assert turns.endswith("once running jobs end") == (name in ("fifo", "yarn-cs"))
    assert {name for name in said if not said[name].startswith("none: ")} == {"yarn-cs", "chronus", "hops"}


def test_the_figures_are_in_the_table() -> None:
    waiting = {"jobs": 9, "never_run": 2, "still_waiting": 3, "longest_wait_h": 6.5, "bound": "none"}
    waiting["latency_ratio"] = {"max": 152.0, "mean": 4.0}
    rows = dict(waiting_rows({"waiting": waiting}))
    assert rows["never run, of the jobs arrived"] == "2 of 9"
    told = dict(waiting_rows({"waiting": waiting | {"refused": 4}}))
    assert told["never run, of the jobs arrived"] == "2 of 9; 4 more refused"
    assert rows["longest wait of a job still waiting"] == "6.50 h (3 wait)"
    assert rows["largest latency ratio of all jobs"] == "152.00"
    assert rows["bound on waiting"] == "none"
