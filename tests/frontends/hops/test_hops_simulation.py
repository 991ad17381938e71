"""Hops in the simulator, its example, and the tables' schedulers beside it."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
from printed_tables import tables_of

from copter_frontends.policies.hops import HopsPolicy, ModelledThroughputs
from copter_frontends.simulator import Simulation
from copter_frontends.simulator.fairness import fragmentation_gpus
from copter_frontends.vocabulary import TraceError
from copter_frontends.vocabulary.named_clusters import named_cluster
from copter_papers.hops.workload import hops_jobs, iteration_source

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("priority", ["lr", "srtf"])
def test_all_jobs_end(priority: str) -> None:
    cluster = named_cluster("hops-64")
    source = iteration_source(cluster)
    jobs, _ = hops_jobs(30, 60.0, seed=1, scale=0.1)
    policy = HopsPolicy(cluster, ModelledThroughputs(cluster, source), priority=priority)  # type: ignore[arg-type]
    result = Simulation(cluster, jobs, policy, source, policy.round_s).run()
    assert not result.skipped
    assert result.summary()["jobs_completed"] == 30
    assert (fragmentation_gpus(result.rounds) or 0.0) < 8.0
    recent = policy.standings.queue.recent_ratio(policy.standings.queue._ended[-1][0], hours=24.0)
    assert len(policy.standings.queue._ended) >= 29  # the policy is not told of what ends in the last round
    waited_s = result.jobs["first_start_s"].astype(float) - result.jobs["submit_s"].astype(float)
    assert recent is not None
    assert (recent > 0.0) == bool((waited_s > 0).any())


def test_workloads_are_seeded_and_checked() -> None:
    assert hops_jobs(20, seed=3) == hops_jobs(20, seed=3)
    jobs, sets = hops_jobs(50, seed=4)
    assert all(job.requested_gpus in sets[job.id].sizes for job in jobs)
    with pytest.raises(TraceError, match="jobs_per_hour"):
        hops_jobs(5, 0.0)


def test_the_example_runs_within_its_gap() -> None:
    example = runpy.run_path(str(ROOT / "frontends" / "examples" / "hops_at_scale.py"))
    found = example["run"](512, 1, 0, False, 1, 60)
    assert found["running"] > 0
    assert 0.0 <= found["gap"]["max"] <= 0.1
    assert found["used"] <= 1.0


def test_the_example_learns() -> None:
    example = runpy.run_path(str(ROOT / "frontends" / "examples" / "hops_at_scale.py"))
    found = example["run"](512, 3, 0, False, 1, 60, True)
    assert found["groups"] > 7, "servers of three speeds are told apart"
    assert 0.0 <= found["gap"]["max"] <= 0.1


def test_the_tables_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "tables"))
    monkeypatch.setattr(sys, "argv", ["hops_table3.py", "--jobs", "8", "--scale", "0.02", "--seeds", "1"])
    runpy.run_path(str(ROOT / "benchmarks" / "tables" / "hops_table3.py"), run_name="__main__")
    ((rows),) = tables_of(capsys.readouterr().out).values()
    names = ("hops", "hops-told", "sia", "sia-told", "sia-queued", "gavel", "gavel-told", "gavel-queued")
    assert set(rows) == {*names, "(paper)"}
    for name in names:
        makespan_h, jct_h, wait_h, ratio, fragments, fairness = rows[name]
        assert 0 < jct_h <= makespan_h, name
        assert 0 <= wait_h < jct_h, name
        assert 0 <= fragments < 64, name
        assert ratio > 0, name
        assert fairness > 0, name
