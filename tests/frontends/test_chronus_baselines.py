"""EDF, 3Sigma and GENIE: the conformance suite, and their rules; the example and the tables run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conformance import PolicyConformance
from test_chronus_policy import HOUR_S, RATES, job_of

from copter.errors import SettingsError
from copter_frontends.baselines.edf import EdfPolicy
from copter_frontends.baselines.genie import GeniePolicy
from copter_frontends.baselines.three_sigma import ThreeSigmaPolicy
from copter_frontends.baselines.throughputs import GoodputThroughputs
from copter_frontends.chronus import StepReward
from copter_frontends.goodput import GoodputModel
from copter_frontends.vocabulary import Cluster, SchedulingPolicy, configurations_of

ROOT = Path(__file__).parents[2]
REWARDS = {f"job-{i}": StepReward.strict((1 + i % 7) * HOUR_S) for i in range(0, 60, 2)}


def rates_of(cluster: Cluster) -> GoodputThroughputs:
    return GoodputThroughputs(cluster, GoodputModel(configurations_of(cluster)))


class TestEdf(PolicyConformance):
    examples = 6

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        return EdfPolicy(cluster, REWARDS)


class TestGenie(PolicyConformance):
    examples = 6

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        return GeniePolicy(cluster, rates_of(cluster), REWARDS)


class TestThreeSigma(PolicyConformance):
    examples = 6
    objective_comparable = False  # the programme is of waiting jobs only, and of starting times

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        return ThreeSigmaPolicy(cluster, rates_of(cluster), REWARDS)

    def test_planning_twice_without_news_never_gets_worse(self) -> None:
        """Its objective is of the jobs that wait: what runs must go on."""
        policy = self.with_jobs(10)
        first, second = self.plan(policy), self.plan(policy)
        slo = [job for job in first.allocations if job in REWARDS]
        assert slo
        assert all(second.allocations.get(job) == first.allocations[job] for job in slo)


def test_edf_stops_best_effort_but_no_slo_job() -> None:
    rewards = {"slo": StepReward.strict(9 * HOUR_S), "urgent": StepReward.strict(2 * HOUR_S)}
    policy = EdfPolicy(Cluster.of({"v100": (1, 8)}), rewards)
    policy.add_job(job_of("free", 1.0))
    assert set(policy.plan(0.0).allocations) == {"free"}
    policy.add_job(job_of("slo", 1.0))
    assert set(policy.plan(60.0).allocations) == {"slo"}
    policy.add_job(job_of("urgent", 1.0))
    assert set(policy.plan(120.0).allocations) == {"slo"}


def test_genie_gives_as_few_gpus_as_meet_the_deadline() -> None:
    rewards = {"easy": StepReward.strict(9 * HOUR_S), "tight": StepReward.strict(1.1 * HOUR_S)}
    policy = GeniePolicy(Cluster.of({"v100": (2, 8)}), RATES, rewards)
    for name in ("easy", "tight"):
        policy.add_job(job_of(name, 1.0))
    gpus = {job: held.gpus for job, held in policy.plan(0.0).allocations.items()}
    assert gpus == {"easy": 4, "tight": 8}


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
    done = subprocess.run([*command, "--days", "0.3", *extra], cwd=ROOT, env=path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "wDMR" in done.stdout


def test_the_example_plans_near_its_bound() -> None:
    command = [sys.executable, "frontends/examples/chronus_at_scale.py", "--gpus", "400", "--cycles", "2"]
    path = {"PYTHONPATH": f"{ROOT}:{ROOT / 'frontends'}"}
    done = subprocess.run(command, cwd=ROOT, env=path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "medians" in done.stdout
