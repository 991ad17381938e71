"""A short fidelity check: two workloads of the public simulator, Sia and Gavel, within the distances of papers/sia.md.

Gavel runs to the end, and Sia on philly_2. On saturn_2 Sia runs for its first hours (four of them, of both, by `make
check-long`): jobs that the public simulator had finished by then. The whole tables are
`benchmarks/tables/sia_reference.py` and `gavel_reference.py`.
"""

from __future__ import annotations

import csv
import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ks_2samp

from copter import Settings
from copter_frontends.goodput import GoodputModel
from copter_frontends.goodput.measured import read_profiles
from copter_frontends.policies.registry.policies import POLICIES
from copter_frontends.simulator import Simulation, SimulationResult
from copter_frontends.vocabulary import configurations_of
from copter_frontends.vocabulary.semantics import SIA_ARTIFACT
from copter_papers.sia.workload import reference_workload

DATA = Path(os.environ.get("COPTER_DATA", "../shared/data"))
SIA = [
    ("saturn_2", 2, 0.025, 0.05),
    pytest.param("philly_2", 4, 0.025, 0.05, marks=pytest.mark.long),
    pytest.param("saturn_2", 4, 0.02, 0.05, marks=pytest.mark.long),
]

pytestmark = pytest.mark.skipif(
    not ((DATA / "reference_results").is_dir() and (DATA / "traces" / "sia").is_dir()),
    reason=f"no reference results and workloads in {DATA}: set COPTER_DATA to the data folder",
)


def simulated(policy_name: str, name: str, hours: float | None) -> SimulationResult:
    """One of the public simulator's workloads, under its semantics."""
    workload, profiles = reference_workload(name), read_profiles(DATA / "profiles" / "sia")
    cluster, entry = workload.cluster, POLICIES[policy_name]
    model = GoodputModel(configurations_of(cluster))
    policy = entry.build(cluster, model, settings=Settings(threads=1), semantics=SIA_ARTIFACT, profiles=profiles)
    jobs = entry.in_form(workload.read(DATA).jobs)
    run = Simulation(cluster, jobs, policy, model, policy.round_s, semantics=SIA_ARTIFACT, profiles=profiles)
    return run.run(hours=hours)


def published(policy_name: str, name: str) -> dict[str, dict[str, float]]:
    """What the public simulator wrote of each job, seconds."""
    path = DATA / "reference_results" / f"jobs_{policy_name}_{name}.csv.gz"
    with gzip.open(path, "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    kept = ("submission_time", "completion_time", "jct", "gpu_seconds", "gpu_seconds_roundbased", "restarts")
    return {row["name"]: {column: float(row[column]) for column in kept} for row in rows}


@pytest.mark.parametrize(("name", "jct", "makespan"), [("philly_2", 0.015, 0.02), ("saturn_2", 0.045, 0.025)])
def test_gavel_is_as_near_the_public_simulator_as_the_table_says(name: str, jct: float, makespan: float) -> None:
    theirs, ours = published("gavel", name), simulated("gavel", name, None).jobs
    assert set(ours["id"]) == set(theirs)
    mean_s = float(np.mean([row["jct"] for row in theirs.values()]))
    assert float(np.mean(ours["jct_s"].astype(float))) == pytest.approx(mean_s, rel=jct)
    last_s = max(row["completion_time"] for row in theirs.values())
    assert float(ours["completion_s"].astype(float).max()) == pytest.approx(last_s, rel=makespan)


@pytest.mark.long
def test_sia_is_as_near_on_a_whole_workload_as_the_table_says() -> None:
    """Average and p99 of JCT, makespan, GPU hours, restarts, and how the JCTs are distributed."""
    theirs, run = published("sia", "philly_2"), simulated("sia", "philly_2", None)
    assert set(run.jobs["id"]) == set(theirs)
    column = {name: np.array([row[name] for row in theirs.values()]) for name in next(iter(theirs.values()))}
    expected = {
        "avg_jct_h": (column["jct"].mean() / 3600.0, 0.05),
        "p99_jct_h": (np.percentile(column["jct"], 99) / 3600.0, 0.055),
        "makespan_h": ((column["completion_time"].max() - column["submission_time"].min()) / 3600.0, 0.05),
        "gpu_hours_per_job": (column["gpu_seconds_roundbased"].mean() / 3600.0, 0.025),
        "restarts_per_job": (column["restarts"].mean(), 0.145),
    }
    summary = run.summary()
    for name, (figure, within) in expected.items():
        assert summary[name] == pytest.approx(figure, rel=within), name
    apart = float(ks_2samp(run.jobs["jct_s"].astype(float), column["jct"]).statistic)
    assert apart < 0.13, "chance gives two samples of 160 jobs up to 0.15"


@pytest.mark.parametrize(("name", "hours", "jct", "gpu_hours"), SIA)
def test_sia_is_as_near_in_its_first_hours(name: str, hours: int, jct: float, gpu_hours: float) -> None:
    theirs, ours = published("sia", name), simulated("sia", name, hours).jobs
    done = {job: row for job, row in theirs.items() if row["completion_time"] <= hours * 3600}
    mine = {
        str(job): (float(jct_s), float(gpu_s))
        for job, jct_s, gpu_s in zip(ours["id"], ours["jct_s"], ours["gpu_seconds"], strict=True)
    }
    both = [job for job in done if np.isfinite(mine[job][0])]
    assert len(both) >= 0.97 * len(done) > 25
    finished = sum(bool(end_s <= hours * 3600) for end_s in ours["completion_s"].astype(float))
    assert finished == pytest.approx(len(done), rel=0.03)
    jct_s = [float(np.mean([mine[job][0] for job in both])), float(np.mean([done[job]["jct"] for job in both]))]
    assert jct_s[0] == pytest.approx(jct_s[1], rel=jct)
    gpu_s = [sum(mine[job][1] for job in both), sum(done[job]["gpu_seconds"] for job in both)]
    assert gpu_s[0] == pytest.approx(gpu_s[1], rel=gpu_hours)
