"""Commands of the Hops paper's figures, run on tiny sizes: what they compute, not what they print."""

from __future__ import annotations

import argparse
import json
import math
import runpy
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "tables"))

import hops_estimator
import hops_queued
import hops_runs
from hops_curves import Curves, reference_gpu_s
from hops_figures import lead
from hops_predictions import RUNS, narrowing

from copter_frontends.vocabulary.named_clusters import named_cluster
from copter_papers.hops.workload import MODELS, hops_jobs, iteration_source, iteration_times

TABLES = Path(__file__).resolve().parents[2] / "benchmarks" / "tables"
TINY = ["--jobs", "10", "--seeds", "2", "--scale", "0.05", "--json"]


def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], script: str, *options: str) -> Any:
    """The object that a command prints last."""
    monkeypatch.setattr(sys, "argv", [script, *options])
    runpy.run_path(str(TABLES / script), run_name="__main__")
    return json.loads(capsys.readouterr().out.splitlines()[-1])


# Figures --------------------------------------------------------------------------------------------------------------


def test_figure_11_adds_up_to_the_work(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(monkeypatch, capsys, "hops_figures.py", "11", *TINY)
    source = iteration_source(named_cluster("hops-64"))
    for runs in found.values():
        for seed, (round_s, throughput) in enumerate(runs):
            jobs, _ = hops_jobs(10, 60.0, seed, 0.05)
            assert sum(throughput) * round_s == pytest.approx(sum(reference_gpu_s(jobs, source).values()))
            assert min(throughput) >= 0.0
            # 16 GPUs at 0.89 of a Titan XP, 32 of them, 16 at 2.2 times: no plan does more.
            assert max(throughput) < 16 * 0.9 + 32 + 16 * 2.6


def test_figure_9_has_every_job_of_every_seed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = printed(monkeypatch, capsys, "hops_figures.py", "9", *TINY)
    assert set(found) == {"hops", "sia", "gavel"}
    for runs in found.values():
        assert [len(jct_h) for jct_h, _ in runs] == [10, 10]
        assert [len(latency) for _, latency in runs] == [10, 10]
        assert all(min(jct_h) > 0 and min(latency) >= 0 for jct_h, latency in runs)
        assert runs[0] != runs[1]


def test_figure_14_sets_the_plan_beside_the_papers_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--jobs", "20", "--seeds", "1", "--scale", "0.3", "--samples", "1", "--json")
    found = printed(monkeypatch, capsys, "hops_figures.py", "14", *options)
    ((plan_s, gap),) = found["plans"]
    assert len(plan_s) >= len(gap) > 0
    assert min(gap) >= 0.0
    ((sample,),) = found["sampled"]
    assert 0.0 <= sample["true_gap"] <= 0.01
    assert sample["plan_gap"] in gap


def test_runs_narrow_the_error_and_loads_narrow_it_sooner() -> None:
    unsteady = next(name for name, model in MODELS.items() if model.unsteady)
    alone, with_loading = narrowing(unsteady, 0, False), narrowing(unsteady, 0, True)
    assert alone[0] == with_loading[0] > 0.05
    assert alone[-1] < 0.02
    assert with_loading[RUNS.index(20)] < 0.5 * alone[RUNS.index(20)]


def test_a_lead_is_taken_seed_by_seed(capsys: pytest.CaptureFixture[str]) -> None:
    def curves(*jct_h: float) -> Curves:
        return Curves(list(jct_h), [], [], 60.0, [4.0, 4.0, 2.0, 0.0], [], [])

    lead({"hops": [curves(1.0), curves(2.0)], "sia": [curves(2.0), curves(2.0)]}, lambda c: c.jct_h[0], "JCT")
    assert capsys.readouterr().out.strip() == "sia's JCT over hops's, by seed: 1.5 (1 to 2)"
    assert curves(1.0).busy == pytest.approx(4.0), "four fifths of the work are done in two rounds"
    assert curves(1.0).by_half_hour() == [2.5]


# Sweeps and profiling -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sweep", ["priorities", "fragments", "arrivals", "fairness"])
def test_sweeps_have_a_row_for_each_value(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], sweep: str
) -> None:
    options = ["--cluster", "hops-64", *TINY, "--queues", "lr,sjf", "--rates", "60,600"]
    found = printed(monkeypatch, capsys, "hops_sweeps.py", "--sweep", sweep, *options)[sweep]
    names = {"priorities": ("queue", 2), "fragments": ("fill", 4), "arrivals": ("jobs_per_hour", 6)}
    name, many = names.get(sweep, ("lambda", 5))
    assert len(found) == many
    assert len({(row[name], row["scheduler"]) for row in found}) == many
    for row in found:
        assert len(row["jct_h"]) == 2
        assert all(0 < jct <= makespan for jct, makespan in zip(row["jct_h"], row["makespan_h"], strict=True))
        assert all(0 <= gpus < 64 for gpus in row["fragments"])


def test_profiling_takes_the_time_and_gpus_of_its_iterations() -> None:
    cluster = named_cluster("hops-64")
    source = iteration_source(cluster)
    jobs, sets = hops_jobs(12, 60.0, 1, 0.05)
    free, first, each = (
        hops_runs.run(name, cluster, source, jobs, sets) for name in ("hops", "hops-profiling", "hops-profiling-each")
    )
    assert free.profiling_h == 0.0

    def gpu_hours(names: list[str]) -> float:
        rounds = 0
        for name in names:
            for kinds in (("gtx1080ti",), ("titanxp",), ("rtx3090-w780", "rtx3090-yk8100")):
                slowest = max(iteration_times(MODELS[name], kind).seconds(1, 1) for kind in kinds)
                rounds += math.ceil((30.0 + hops_runs.PROFILED_ITERATIONS * slowest) / 60.0)
        return rounds / 60.0

    assert each.profiling_h == pytest.approx(gpu_hours([job.application for job in jobs]))
    assert first.profiling_h == pytest.approx(gpu_hours(sorted({job.application for job in jobs})))
    assert min(each.wait_h, first.wait_h) > free.wait_h


# The estimator's table ------------------------------------------------------------------------------------------------

ROWS = "placement,local_bsz,step_time,sync_time\n"


def profile(folder: Path, network_s: float) -> None:
    """Steps of a job of 1 s whose backward pass is two thirds: 0.1 s more on one server, `network_s` on several."""
    folder.mkdir(parents=True)
    rows = [("1", 1.0), ("2", 1.1), ("11", 1.2), ("22", 1.0 + network_s), ("222", 1.0 + network_s)]
    text = "".join(f"{placement},8,{step},{step - 1.0}\n" for placement, step in rows)
    (folder / "placements-dgx-ext.csv").write_text(ROWS + text)


def test_the_estimators_errors_are_those_of_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for i, model in enumerate(hops_estimator.MODELS):
        profile(tmp_path / model, 0.2 if i else 0.5)
    found = printed(monkeypatch, capsys, "hops_estimator.py", "--profiles", str(tmp_path), "--seeds", "2", "--json")
    first, *others = hops_estimator.MODELS
    for model in others:  # (2) has the same time between servers, however many they are
        assert found[model]["errors"][0]["theory"] == pytest.approx(0.0, abs=1e-9)
        assert found[model]["errors"][0]["within_5"] == 1.0
    errors = found[first]["errors"]
    assert len(errors) == 2
    assert errors[0]["placements"] == 2
    assert errors[0]["theory"] == pytest.approx(1.5 / 1.2 - 1.0)
    assert errors[0]["half_run"] == pytest.approx(0.5 * errors[0]["half_run_unseen"])
    rows = found[first]["configurations"]["samples_per_s"]
    assert rows["22"] == pytest.approx([8 * 4 / 1.2, 8 * 4 / 1.5])
    assert rows["222"] == pytest.approx([8 * 6 / 1.2, 8 * 6 / 1.5])
    assert found["by_gpu_type"]["dgx-ext"][first] == pytest.approx(0.25)


def test_communication_is_what_gives_the_measured_step() -> None:
    for step_s in np.linspace(1.0, 2.0, 9).tolist():
        communication = hops_estimator.communication_s(step_s, 1.0)
        back = max(2 / 3 + 0.2 * communication, communication)
        assert 1 / 3 + back == pytest.approx(step_s)


def test_options_are_three_seeds_where_none_are_asked_for() -> None:
    assert hops_runs.options(None, 1, 1.0).parse_args([]).seeds == 3
    assert isinstance(hops_runs.seeded(argparse.Namespace(seed=4, seeds=2, jobs=1, jobs_per_hour=1.0, scale=1.0)), list)


# Queues ---------------------------------------------------------------------------------------------------------------


def test_behind_hops_queue_the_window_has_the_longest_waits_for_their_age() -> None:
    cluster = named_cluster("hops-64")
    source = iteration_source(cluster)
    jobs, sets = hops_jobs(40, 60.0, 0, 0.05)
    policy = hops_runs.make_policy("gavel-queued", cluster, source, sets)
    assert isinstance(policy, hops_queued.QueuedGavel)
    for job in jobs:
        policy.add_job(replace(job, submit_s=0.0))
    order = hops_queued.LatencyOrder(cluster, policy.throughputs, sets)
    least = {job.id: job.requested_gpus for job in jobs}
    found = order.window(policy, 600.0, least)
    age_s = {job_id: order.age_s(job) for job_id, job in policy.jobs.items()}
    assert found == sorted(age_s, key=lambda job_id: age_s[job_id])[: len(found)]  # all wait alike: the shortest first
    total = np.cumsum([least[job_id] for job_id in found])
    assert total[-1] >= cluster.gpus > total[-2]
    policy.plan(600.0)
    assert set(policy.held) <= set(found)
    order.window(policy, 1200.0, least)
    assert {order._wait_s[job_id] for job_id in policy.held} == {600.0}
    assert {order._wait_s[job_id] for job_id in policy.jobs if job_id not in policy.held} == {1200.0}
    for name in ("sia-queued", "gavel-queued"):
        outcome = hops_runs.run(name, cluster, source, jobs, sets)
        assert outcome.makespan_h > 0
