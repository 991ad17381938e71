"""EDF, 3Sigma and GENIE: the conformance suite, and their rules; the example and the tables run."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from conformance import PolicyConformance
from printed_tables import tables_of
from test_chronus_policy import HOUR_S, RATES, job_of

from copter.runtime.errors import SettingsError
from copter_frontends.cli import cli
from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.baselines.srtf import SrtfPolicy
from copter_frontends.policies.chronus import ChronusPolicy, StepReward
from copter_frontends.policy_kit import GoodputThroughputs, ThroughputTable
from copter_frontends.policy_kit.deadlines import DrawnRewards
from copter_frontends.vocabulary import Cluster, Job, SchedulingPolicy, TraceError, configurations_of
from copter_papers.opponents.edf import EdfPolicy
from copter_papers.opponents.genie import GeniePolicy
from copter_papers.opponents.three_sigma import ThreeSigmaPolicy

ROOT = Path(__file__).resolve().parents[2]
REWARDS = {f"job-{i}": StepReward.strict((1 + i % 7) * HOUR_S) for i in range(0, 60, 2)}


def rates_of(cluster: Cluster) -> GoodputThroughputs:
    return GoodputThroughputs(cluster, GoodputModel(configurations_of(cluster)))


class TestEdf(PolicyConformance):
    examples = 6

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        return EdfPolicy(cluster, rates_of(cluster), REWARDS)


class TestGenie(PolicyConformance):
    examples = 6

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        return GeniePolicy(cluster, rates_of(cluster), REWARDS)


class TestThreeSigma(PolicyConformance):
    examples = 6

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        return ThreeSigmaPolicy(cluster, rates_of(cluster), REWARDS)


def test_edf_stops_best_effort_but_no_slo_job() -> None:
    rewards = {"slo": StepReward.strict(9 * HOUR_S), "urgent": StepReward.strict(2 * HOUR_S)}
    policy = EdfPolicy(Cluster.of({"v100": (1, 8)}), RATES, rewards)
    policy.add_job(job_of("free", 1.0))
    assert set(policy.plan(0.0).allocations) == {"free"}
    policy.add_job(job_of("slo", 1.0))
    assert set(policy.plan(60.0).allocations) == {"slo"}
    policy.add_job(job_of("urgent", 1.0))
    assert set(policy.plan(120.0).allocations) == {"slo"}


def test_a_policy_with_deadlines_puts_a_job_on_the_fastest_type_with_room() -> None:
    cluster = Cluster.of({"k80": (4, 8), "a100": (1, 8)})  # most free GPUs are slow
    rates = ThroughputTable({"bert": {"k80": 1.0, "a100": 20.0}}, {"bert": 3600.0})
    rewards = {"one": StepReward.strict(HOUR_S), "two": StepReward.strict(2 * HOUR_S)}
    for policy in (
        EdfPolicy(cluster, rates, rewards),
        GeniePolicy(cluster, rates, rewards),
        ThreeSigmaPolicy(cluster, rates, rewards),
        SrtfPolicy(cluster, rates),
    ):
        for name in ("one", "two"):
            policy.add_job(Job(name, "bert", 0.0, requested_gpus=8, work_samples=3600.0))
        held = {job: each.gpu_type for job, each in policy.plan(0.0).allocations.items()}
        assert held["one"] == "a100"
        if not isinstance(policy, GeniePolicy):  # which gives both half of the fast GPUs
            assert held["two"] == "k80"
    policy = EdfPolicy(cluster, rates, rewards)
    policy.add_job(Job("two", "bert", 0.0, requested_gpus=8, work_samples=3600.0))
    assert policy.plan(0.0).allocations["two"].gpu_type == "a100"
    policy.add_job(Job("one", "bert", 0.0, requested_gpus=8, work_samples=3600.0))
    held = {job: each.gpu_type for job, each in policy.plan(60.0).allocations.items()}
    assert held == {"one": "k80", "two": "a100"}  # a running job with a deadline is not stopped for another
    policy.remove_job("two")
    assert policy.plan(120.0).allocations["one"].gpu_type == "a100"


def test_genie_gives_as_few_gpus_as_meet_the_deadline() -> None:
    rewards = {"easy": StepReward.strict(9 * HOUR_S), "tight": StepReward.strict(1.1 * HOUR_S)}
    policy = GeniePolicy(Cluster.of({"v100": (2, 8)}), RATES, rewards)
    for name in ("easy", "tight"):
        policy.add_job(job_of(name, 1.0))
    gpus = {job: held.gpus for job, held in policy.plan(0.0).allocations.items()}
    assert gpus == {"easy": 4, "tight": 8}


def test_genie_stops_no_slo_job_unless_it_may() -> None:
    rewards = {"slo": StepReward.strict(9 * HOUR_S), "urgent": StepReward.strict(1.5 * HOUR_S)}
    for preempts in (False, True):
        policy = GeniePolicy(Cluster.of({"v100": (1, 8)}), RATES, rewards, preempts=preempts)
        policy.add_job(job_of("free", 1.0))
        assert set(policy.plan(0.0).allocations) == {"free"}
        policy.add_job(job_of("slo", 2.0))
        assert set(policy.plan(60.0).allocations) == {"slo"}
        policy.add_job(job_of("urgent", 1.0))
        assert ("urgent" in policy.plan(120.0).allocations) is preempts
        assert ("slo" in policy.plan(180.0).allocations) is not preempts


def test_drawn_deadlines_are_the_same_for_every_policy_and_none_for_short_jobs() -> None:
    cluster = Cluster.of({"v100": (1, 8)})
    rewards = DrawnRewards(cluster, RATES, seed=3)
    jobs = [job_of(f"job-{i}", 0.2 + 0.05 * i) for i in range(60)]
    drawn = {job.id: rewards(job) for job in jobs}
    assert drawn == {job.id: rewards(job) for job in reversed(jobs)}
    assert not any(drawn[f"job-{i}"] for i in range(2))
    steps = {len(reward.steps) for reward in drawn.values() if reward is not None}
    assert steps == {1, 4}
    policies = [
        ChronusPolicy(cluster, RATES, rewards),
        EdfPolicy(cluster, RATES, rewards),
        GeniePolicy(cluster, RATES, rewards),
        ThreeSigmaPolicy(cluster, RATES, rewards),
    ]
    for policy in policies:
        for job in jobs[10:]:
            policy.add_job(job)
        assert policy.rewards == {job.id: drawn[job.id] for job in jobs[10:] if drawn[job.id] is not None}
    with pytest.raises(TraceError, match="mix is 'mix3'"):
        DrawnRewards(cluster, RATES, "mix3")


def test_deadlines_show_in_the_summary_of_a_comparison() -> None:
    command = ["compare", "--policies", "chronus,fifo", "--gpus", "56", "--jobs", "120", "--hours", "12", "--json"]
    found = CliRunner().invoke(cli, [*command, "--threads", "1"])
    assert found.exit_code == 0, found.output
    policies = json.loads(found.stdout.splitlines()[-1])["policies"]
    assert [each["policy"] for each in policies] == ["chronus", "fifo"]
    chronus, fifo = (each["deadlines"] for each in policies)
    assert chronus["jobs"] > 10
    assert fifo["jobs"] > 10
    assert 0.0 <= chronus["weighted_miss_rate"] < fifo["weighted_miss_rate"] <= 1.0
    wrong = CliRunner().invoke(cli, ["simulate", "chronus", "--gpus", "56", "--round-s", "7"])
    assert wrong.exit_code == 2
    assert "whole multiple of the best-effort lease" in wrong.output


def test_three_sigma_starts_what_can_still_end_in_time() -> None:
    rewards = {"can": StepReward.strict(2 * HOUR_S), "cannot": StepReward.strict(0.5 * HOUR_S)}
    policy = ThreeSigmaPolicy(Cluster.of({"v100": (1, 8)}), RATES, rewards)
    for name in ("cannot", "can"):
        policy.add_job(job_of(name, 1.0))
    assert set(policy.plan(0.0).allocations) == {"can"}
    with pytest.raises(SettingsError, match="must be positive"):
        ThreeSigmaPolicy(Cluster.of({"v100": (1, 8)}), RATES, sigma=0.0)


@pytest.mark.parametrize("table", ["mixes", "lease_length", "noise", "density", "placement"])
def test_the_tables_run_on_made_up_jobs(table: str) -> None:
    command = [sys.executable, f"benchmarks/tables/chronus_{table}.py", "--trace", "synthetic", "--share", "0.02"]
    extra = {
        "mixes": ["--mixes", "mix2"],
        "lease_length": ["--minutes", "20"],
        "noise": ["--noises", "0.2"],
        "density": ["--densities", "1.6", "--schedulers", "chronus,edf"],
        "placement": ["--hostile-shares", "0.3"],
    }[table]
    path = {"PYTHONPATH": f"{ROOT}:{ROOT / 'frontends'}:{ROOT / 'benchmarks'}"}
    done = subprocess.run([*command, "--days", "0.15", *extra], cwd=ROOT, env=path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    printed = tables_of(done.stdout)
    assert printed
    for title, rows in printed.items():
        assert rows, title
        for name, cells in rows.items():
            missed_percent, *_, promised, demoted, late, ended, _ = cells  # the best-effort JCT may be missing
            assert 0 <= missed_percent <= 100, (title, name)
            assert promised >= demoted >= 0, (title, name)
            assert 0 <= late <= ended, (title, name)
            assert ended > 0, (title, name)


def test_the_example_plans_near_its_bound() -> None:
    found = runpy.run_path(str(ROOT / "frontends" / "examples" / "chronus_at_scale.py"))["run"](400, 2, 0, 3)
    assert len(found["cycles"]) == 2
    for cycle in found["cycles"]:
        assert cycle["jobs"] > 20
        assert 0 < cycle["reward"] <= cycle["bound"] * (1 + 1e-9)
        assert cycle["gap"] < 0.05
