"""The load that a table prints of its workloads: the simulator's definition, a line a kind of workload."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "tables"))

import hadar_runs
import loads
from hare_runs import completions
from probe import printed

from copter_frontends.policy_kit.offered_load import offered_load
from copter_frontends.policy_kit.training_throughputs import TrainingThroughputs
from copter_frontends.vocabulary.named_clusters import named_cluster
from copter_papers.hadar.workload import hadar_jobs, table_source
from copter_papers.hare.workload import PaperWorkload

HOUR = 3600.0


@pytest.fixture(autouse=True)
def none_noted(capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Begin with no workload noted before."""
    loads.say()
    capsys.readouterr()
    yield
    loads.say()


def test_it_is_the_simulators_load_of_the_window_in_which_jobs_arrive(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = named_cluster("hadar-60")
    source = table_source(cluster)
    jobs = hadar_jobs(60, "continuous", 20.0, seed=3)
    window = min(job.submit_s for job in jobs), max(job.submit_s for job in jobs)
    capacity = {kind: cluster.capacity(kind) for kind in cluster.types}
    expected = offered_load(jobs, TrainingThroughputs(cluster, source), capacity, *window)
    loads.note(cluster, jobs, source)
    loads.note(cluster, jobs, source)  # another policy's run
    loads.say()
    hours = f"{(window[1] - window[0]) / HOUR:.4g}"
    types = ", ".join(f"{kind} {share:.3g}" for kind, share in expected.by_type.items())
    line = f"load: 60 jobs on 60 GPUs, while jobs arrive ({hours} h): {expected.all:.4g} ({types})\n"
    assert capsys.readouterr().out == line
    loads.say()
    assert capsys.readouterr().out == ""


def test_jobs_that_come_at_once_have_hours_of_the_whole_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    """Twice as long jobs keep the cluster busy for twice the hours; a label takes the place of their number."""
    cluster = named_cluster("hadar-60")
    source = table_source(cluster)
    jobs = hadar_jobs(20, "static", seed=1)
    for label, times in (("as drawn", 1.0), ("longer", 2.0)):
        with loads.labelled(label):
            loads.note(cluster, [replace(job, work_samples=times * (job.work_samples or 0.0)) for job in jobs], source)
    loads.say()
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("load: as drawn on 60 GPUs, all at once: work of ")
    hours = [float(line.split("work of ")[1].split(" h ")[0]) for line in (first, second)]
    assert hours[0] > 0
    assert hours[1] == pytest.approx(2.0 * hours[0], rel=1e-3)


def test_seeds_of_a_workload_share_a_line_and_clusters_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(2):
        completions(PaperWorkload(6), {"v100": 4}, seed)
    completions(PaperWorkload(6), {"v100": 2, "k80": 2}, 0)
    loads.say()
    one, other = capsys.readouterr().out.splitlines()
    assert " to " in one
    assert "(v100 " not in one
    assert "(v100 " in other
    assert ", k80 " in other


def test_a_hadar_table_ends_with_it_and_its_probe_has_no_such_line(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = named_cluster("hadar-60")
    hadar_runs.run("hadar", "jct", cluster, table_source(cluster), hadar_jobs(4, "static", seed=0, scale=0.05))
    hadar_runs.finish(hadar_runs.options(None, "hadar").parse_args([]), {})
    assert capsys.readouterr().out.startswith("load: 4 jobs on 60 GPUs, all at once")
    words = ["hadar_jct.py", *["--jobs", "4", "--seeds", "1", "--scale", "0.05", "--schedulers", "hadar"]]
    told = printed(words)
    assert "hadar" in told
    assert "load:" not in told
