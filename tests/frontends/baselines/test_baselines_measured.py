"""Rigid jobs: measured throughputs worked by hand, kinds of jobs, and the numbered statements that the code cites."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import copter_frontends
from copter.runtime.errors import InvalidDataError
from copter_frontends.goodput import GoodputModel
from copter_frontends.goodput.profiled import fitted_profiles
from copter_frontends.policies.baselines.srtf import SrtfPolicy
from copter_frontends.policies.registry.baselines import gavel_of_the_artifact
from copter_frontends.policies.registry.policies import POLICIES
from copter_frontends.policy_kit import GoodputThroughputs, ThroughputTable, requested_gpus
from copter_frontends.policy_kit.measured_throughputs import UNMEASURED, MeasuredThroughputs
from copter_frontends.vocabulary import Cluster, Configuration, Job

ROOT = Path(__file__).parents[3]
DATA = Path(os.environ.get("COPTER_DATA", "../shared/data"))


class Steps:
    """10 ms and 1 ms a sample; 5 ms of synchronisation between several GPUs; at most 32 samples a GPU."""

    min_local, max_local = 4, 32

    def step(self, placement: tuple[int, ...], local: int) -> tuple[float, float]:
        if len(placement) > 2:
            raise InvalidDataError("not measured")
        sync = 0.005 if sum(placement) > 1 else 0.0
        return 0.010 + 0.001 * local + sync, sync


def rate(gpus: int, batch: int, kind: str = "a") -> float:
    data_parallel = SimpleNamespace(pipeline=None)
    application = SimpleNamespace(
        application=data_parallel, init_batch_size=16, max_batch_size=4096, steps={"a": Steps()}
    )
    cluster = Cluster.of({"a": (4, 4), "b": (1, 4)})
    throughputs = MeasuredThroughputs(cluster, {"x": application})  # type: ignore[dict-item]
    return throughputs.rate(Job("j", "x", requested_gpus=gpus, batch_size=batch), kind, gpus)


def test_iterations_are_of_the_whole_batch_over_the_gpus():
    assert rate(2, 32) == pytest.approx(1 / (0.010 + 0.016 + 0.005))


def test_what_does_not_fit_a_gpu_is_accumulated_without_synchronising_in_between():
    # 128 samples on 2 GPUs: 64 each, in two steps of 32.
    assert rate(2, 128) == pytest.approx(1 / (0.010 + 0.032 + 0.005 + 0.010 + 0.032))


def test_one_gpu_always_accumulates():
    assert rate(1, 16) == pytest.approx(1 / (2 * (0.010 + 0.008)))


def test_sizes_that_were_not_measured_have_a_small_rate_and_unknown_types_none():
    assert rate(12, 384) == UNMEASURED
    assert rate(8, 16) == UNMEASURED  # 2 samples a GPU, below the least
    assert rate(2, 32, "b") == 0.0


def test_the_artifacts_gavel_follows_every_change():
    policy = gavel_of_the_artifact(Cluster.of({"t4": (2, 4)}), fitted_profiles())
    assert (policy.reset_s, policy.one_queue, policy.round_s) == (None, True, 360.0)
    policy.add_job(Job("j", "cifar10", requested_gpus=4, batch_size=512))
    assert policy.plan(0.0).allocations["j"].gpus == 4


def test_a_rigid_jobs_rate_is_that_of_its_own_batch_and_gpus():
    cluster = Cluster.of({"t4": (2, 4)})
    model = GoodputModel([Configuration(1, 4, "t4")])
    source = GoodputThroughputs(cluster, model)
    free, fixed = Job("j", "cifar10"), Job("k", "cifar10", batch_size=128)
    assert 0 < source.rate(fixed, "t4", 4) < source.rate(free, "t4", 4)
    assert requested_gpus(Job("m", "cifar10", requested_gpus=1, gpus=3)) == 3
    assert source.rate(Job("m", "cifar10", gpus=3), "t4", 3) > 0


def test_a_job_that_may_not_be_preempted_keeps_what_it_has():
    table = ThroughputTable({"long": {"a": 1.0}, "short": {"a": 1.0}})
    policy = SrtfPolicy(Cluster.of({"a": (1, 4)}), table)
    policy.add_job(Job("l", "long", work_samples=1e6, requested_gpus=4, preemptible=False))
    held = policy.plan(0.0).allocations["l"]
    policy.add_job(Job("s", "short", work_samples=1.0, requested_gpus=4))
    plan = policy.plan(60.0)
    assert dict(plan.allocations) == {"l": held}
    assert policy.pins == {}


def test_the_statements_that_are_cited_exist():
    page = (ROOT / "docs" / "papers" / "baselines.md").read_text()
    numbered = {int(n) for n in re.findall(r"^\*\*B(\d+)\b", page, re.MULTILINE)}
    assert numbered == set(range(1, len(numbered) + 1))
    home = Path(copter_frontends.__file__).parents[1]
    frontends = ("policies/baselines", "policy_kit", "simulator")
    folders = [home / "copter_papers" / "opponents", *(home / "copter_frontends" / name for name in frontends)]
    sources = [path.read_text() for folder in folders for path in folder.rglob("*.py")]
    cited = {int(n) for text in sources for n in re.findall(r"\bB(\d+)\b", text)}
    assert len(cited) >= 15
    assert cited <= numbered


def test_gavels_reference_table_on_one_workload():
    if not (DATA / "reference_results").is_dir():
        pytest.skip(f"no reference results in {DATA}: set COPTER_DATA to the data folder")
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "tables" / "gavel_reference.py"), "--only", "philly_3", "--json"],
        env={**os.environ, "COPTER_DATA": str(DATA.resolve()), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["within"]
    assert [row["name"] for row in found["rows"]] == ["philly_3"]
    assert abs(found["rows"][0]["off_avg_jct_h"]) < 0.05


def test_rigid_policies_fix_the_batch_size_that_a_workload_gives():
    jobs = [Job("capped", "bert", max_batch_size=48), Job("fixed", "bert", batch_size=24), Job("free", "bert")]
    assert [job.batch_size for job in POLICIES["gavel"].in_form(jobs)] == [48, 24, None]
    assert POLICIES["sia"].in_form(jobs) == jobs
    taken = POLICIES["pollux"].in_form(jobs)  # it sees no cap (docs/papers/baselines.md)
    assert [(job.batch_size, job.max_batch_size) for job in taken] == [(None, None), (24, None), (None, None)]
