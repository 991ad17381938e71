"""``copter simulate`` on the clusters of the Hops paper: its own jobs, for Hops and every other policy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_line import run_json

from copter_frontends.vocabulary import Job, configurations_of
from copter_frontends.vocabulary.named_clusters import named_cluster
from copter_papers.hops.testbed import HOPS_APPLICATIONS, IterationGoodput, hops_workload
from copter_papers.hops.workload import hops_jobs, iteration_source


@pytest.mark.parametrize("policy", ["hops", "gavel", "hadar", "chronus", "hare", "fifo"])
def test_every_job_of_the_paper_ends(capsys: pytest.CaptureFixture[str], policy: str) -> None:
    code, found, err = run_json(capsys, "simulate", policy, "--cluster", "hops-64", "--jobs", "8", "--seed", "1")
    assert code == 0, err
    assert (found["gpus"], found["jobs_submitted"], found["jobs_completed"]) == (64, 8, 8)
    assert found["finish_time_fairness"]["thesis"]["worst"] > 0


def test_the_larger_cluster_has_500_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    code, found, err = run_json(capsys, "simulate", "hops", "--cluster", "hops-512", "--rounds", "4")
    assert code == 0, err
    assert (found["gpus"], found["jobs_submitted"]) == (512, 500)


def test_whole_plans_after_the_warm_up_are_compared_with_highs(capsys: pytest.CaptureFixture[str]) -> None:
    """Only every fifth round plans all GPUs: rounds of the warm-up must not be counted as programs."""
    pytest.importorskip("highspy")
    arguments = ("--trace", "sample", "--rounds", "20", "--warmup-rounds", "100", "--compare-every", "1")
    code, found, err = run_json(capsys, "simulate", "hops", *arguments, "--compare", "highs")
    assert code == 0, err
    assert found["highs"]["compared_rounds"] == 4
    assert found["highs"]["not_optimal"] == 0
    assert "no round was compared" not in err


@pytest.mark.parametrize(
    ("policy", "arguments", "why"),
    [
        ("chronus", ("--gpus", "16", "--hours", "1"), "a choice of jobs whose value reaches its bound needs none"),
        ("hops", ("--gpus", "16", "--rounds", "3", "--warmup-rounds", "196"), "all GPUs are planned every 300 s"),
        ("sia", ("--gpus", "16", "--rounds", "1", "--warmup-rounds", "0", "--jobs", "1"), "had no columns"),
    ],
)
def test_a_comparison_without_a_round_says_why(
    capsys: pytest.CaptureFixture[str], policy: str, arguments: tuple[str, ...], why: str
) -> None:
    pytest.importorskip("highspy")
    code, found, err = run_json(capsys, "simulate", policy, *arguments, "--compare", "highs")
    assert code == 0, err
    assert found["highs"]["compared_rounds"] == 0
    assert "--compare highs: no round was compared: " in err
    assert why in err


def test_a_saved_run_goes_on(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ("simulate", "hops", "--cluster", "hops-64", "--jobs", "6")
    whole = run_json(capsys, *arguments)[1]
    saved = str(tmp_path / "hops.run")
    run_json(capsys, *arguments, "--rounds", "30", "--save", saved)
    code, found, err = run_json(capsys, "resume", saved, "--to-end")
    assert code == 0, err
    assert found["avg_jct_h"] == whole["avg_jct_h"]


@pytest.mark.parametrize("name", ["hops-64", "hops-512"])
def test_jobs_are_as_fast_as_the_parts_of_their_iterations_say(name: str) -> None:
    cluster = named_cluster(name)
    configurations = configurations_of(cluster)
    model, source = IterationGoodput(configurations, HOPS_APPLICATIONS), iteration_source(cluster)
    for application in HOPS_APPLICATIONS:
        np.testing.assert_allclose(model.row(application, 0.5), source.row(application, 0.5))
        assert model.row(application, 0.0).min() > 0.0
    fixed = model.job_row(Job("a", "vit-food101", gpus=3), 0.0)
    held = np.flatnonzero(fixed)
    assert {configurations[at].gpu_type for at in held} == set(cluster.types)
    assert all(configurations[at].gpus >= 3 for at in held)


def test_jobs_keep_the_ends_of_their_requirement_sets() -> None:
    work = hops_workload("hops-64", None, 3)
    jobs, sets = hops_jobs(62, 12.5, 3)
    assert [(job.id, job.submit_s, job.work_samples) for job in work.jobs] == [
        (job.id, job.submit_s, job.work_samples) for job in jobs
    ]
    assert all(job.min_gpus == sets[job.id].smallest <= job.requested_gpus <= job.max_gpus for job in work.jobs)
    assert {job.max_gpus for job in work.jobs} == {max(sets[job.id].sizes) for job in work.jobs}
    assert not work.sampled
