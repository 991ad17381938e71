"""Failures and repairs, capacity that comes and goes, and runs that are saved and resumed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.sia import SiaPolicy
from copter_frontends.simulator import ClusterEvent, Simulation, SimulationError, load_run, random_failures, save_run
from copter_frontends.vocabulary import Cluster, InvalidClusterError, Job, configurations_of
from copter_frontends.vocabulary.semantics import DEFAULT, SIA_ARTIFACT, Semantics

NAMES = ("cifar10", "bert", "deepspeech2", "yolov3")


def cluster() -> Cluster:
    return Cluster.of({"t4": (3, 4), "a100": (2, 8)})


def simulation(semantics: Semantics = DEFAULT, **options: object) -> Simulation:
    jobs = [Job(f"j{i}", NAMES[i % 4], 40.0 * i) for i in range(14)]
    policy = SiaPolicy(cluster(), semantics=semantics)
    model = GoodputModel(configurations_of(cluster()))
    return Simulation(cluster(), jobs, policy, model, semantics=semantics, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("semantics", [DEFAULT, SIA_ARTIFACT], ids=lambda each: each.name)
def test_a_failed_node_takes_jobs_and_their_work_since_the_last_checkpoint(semantics: Semantics) -> None:
    run = simulation(semantics, events=[ClusterEvent(900.0, "fail", "a100", ("a100-0",))])
    for _ in range(15):
        run.step()
    table = run._table
    hit = run._occupancy.jobs_on({"a100-0"})
    before = {job: float(table.progress[run._active[job]]) for job in hit}
    phases = {job: int(table.phase[run._active[job]]) for job in hit}
    assert hit
    record = run.step()
    assert record.gpus_capacity["a100"] == 8
    assert not run._occupancy.jobs_on({"a100-0"})
    for job in hit:
        if job in run._active and run._occupancy.allocations.get(job) is None:
            assert float(table.progress[run._active[job]]) <= before[job]
            assert int(table.phase[run._active[job]]) == phases[job]


def test_a_repaired_node_comes_back_under_its_name_and_is_used() -> None:
    run = simulation(
        events=[ClusterEvent(300.0, "fail", "a100", ("a100-1",)), ClusterEvent(600.0, "repair", "a100", ("a100-1",))]
    )
    capacity = [run.step().gpus_capacity["a100"] for _ in range(14)]
    assert capacity == [16] * 5 + [8] * 5 + [16] * 4
    assert "a100-1" in run.cluster.nodes
    assert run._occupancy.jobs_on({"a100-1"})


def test_capacity_is_added_and_taken_away_at_run_time() -> None:
    run = simulation(
        events=[
            ClusterEvent(120.0, "add", "t4", count=2),
            ClusterEvent(480.0, "remove", "t4", ("t4-3", "t4-4")),
        ]
    )
    capacity = [run.step().gpus_capacity["t4"] for _ in range(10)]
    assert capacity == [12] * 2 + [20] * 6 + [12] * 2


def test_random_failures_are_repaired_and_repeat_for_a_seed() -> None:
    events = random_failures(cluster(), 100.0, 10.0, 1.0, seed=3)
    assert events == random_failures(cluster(), 100.0, 10.0, 1.0, seed=3)
    assert [event.time_s for event in events] == sorted(event.time_s for event in events)
    fails = [event for event in events if event.what == "fail"]
    assert 25 <= len(fails) <= 80  # 5 nodes, about 9 failures each
    assert len(events) == 2 * len(fails)
    assert max(event.time_s for event in fails) <= 100 * 3600
    run = simulation(events=random_failures(cluster(), 2.0, 0.3, 0.1, seed=1))
    result = run.run()
    assert result.summary()["jobs_completed"] == 14


@pytest.mark.parametrize("semantics", [DEFAULT, SIA_ARTIFACT], ids=lambda each: each.name)
def test_a_saved_run_goes_on_as_if_it_had_never_stopped(semantics: Semantics, tmp_path: Path) -> None:
    whole, part = simulation(semantics), simulation(semantics)
    for _ in range(8):
        whole.step()
        part.step()
    save_run(part, tmp_path / "run")
    resumed = load_run(tmp_path / "run")
    for _ in range(10):
        one, other = whole.step(), resumed.step()
        assert (one.now_s, one.gpus_used, one.completed) == (other.now_s, other.gpus_used, other.completed)
        assert one.objective == pytest.approx(other.objective, rel=1e-9)
    for name, column in whole.result().jobs.items():
        np.testing.assert_array_equal(column, resumed.result().jobs[name])
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_what_is_no_saved_run_is_named(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("hello")
    with pytest.raises(SimulationError, match="other is not a saved run"):
        load_run(tmp_path / "other")
    (tmp_path / "old").write_bytes(b"copter-run-1\n" + b"whatever")
    with pytest.raises(SimulationError, match=r"old: saved by copter 0\.1\.0"):
        load_run(tmp_path / "old")
    with pytest.raises(SimulationError, match="cannot be read"):
        load_run(tmp_path / "absent")
    save_run(simulation(), tmp_path / "run")
    cut = (tmp_path / "run").read_bytes()[:-200]
    (tmp_path / "cut").write_bytes(cut)
    with pytest.raises(SimulationError, match="cut short"):
        load_run(tmp_path / "cut")
    with pytest.raises(SimulationError, match="cannot be written"):
        save_run(simulation(), tmp_path / "nowhere" / "run")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"time_s": -1.0, "what": "fail", "gpu_type": "t4", "nodes": ("t4-0",)}, "time_s is -1"),
        ({"time_s": 0.0, "what": "burn", "gpu_type": "t4", "nodes": ("t4-0",)}, "'burn'"),
        ({"time_s": 0.0, "what": "fail", "gpu_type": "t4"}, "names no nodes"),
    ],
)
def test_impossible_events_are_refused(fields: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidClusterError, match=words):
        ClusterEvent(**fields)  # type: ignore[arg-type]


def test_spans_add_up_to_the_gpu_seconds_held() -> None:
    run = simulation()
    for _ in range(40):
        run.step()
    result = run.result()
    held: dict[str, float] = {}
    for span in result.spans:
        assert span.end_s > span.begin_s
        held[span.job] = held.get(span.job, 0.0) + span.gpus * (span.end_s - span.begin_s)
    completion = result.jobs["completion_s"].astype(float)
    rounds = result.jobs["gpu_seconds"].astype(float)
    for job, done_s, seconds in zip(result.jobs["id"].tolist(), completion, rounds, strict=True):
        if np.isnan(done_s):
            assert held.get(job, 0.0) == seconds
        else:  # the GPUs stay held to the round's end, the span ends with the job
            assert 0 < held[job] <= seconds
