"""Bad input: one clear error, and nothing changes."""

import pytest

from copter.errors import SettingsError
from copter_frontends.hare import HareInstance, HareJob, HareScheduler, Relaxation, RelaxationSolver, TimeGrid
from copter_frontends.vocabulary import DuplicateJobError, InvalidClusterError, InvalidJobError


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"rounds": 0}, "rounds is 0"),
        ({"tasks": 0}, "tasks is 0"),
        ({"train_s": {}}, "names no GPU type"),
        ({"train_s": {"v100": -1.0}}, "train_s\\['v100'\\] is -1"),
        ({"train_s": {"v100": float("nan")}}, "train_s\\['v100'\\] is nan"),
        ({"sync_s": {"v100": -0.5}}, "sync_s\\['v100'\\] is -0.5"),
        ({"weight": 0.0}, "weight is 0"),
        ({"arrival_s": -1.0}, "arrival_s is -1"),
        ({"id": ""}, "the id is empty"),
    ],
)
def test_impossible_jobs(fields, words):
    good = {"id": "j", "rounds": 1, "tasks": 1, "train_s": {"v100": 1.0}}
    HareJob(**good)
    with pytest.raises(InvalidJobError, match=words):
        HareJob(**(good | fields))


def test_a_job_that_no_gpu_can_run():
    job = HareJob("lost", 1, 1, {"tpu": 1.0})
    with pytest.raises(InvalidJobError, match=r"'lost': no GPU can run it.*tpu.*v100"):
        HareInstance.of([job], {"v100": 2, "tpu": 0})


def test_an_arrival_after_the_horizon():
    job = HareJob("late", 1, 1, {"v100": 1.0}, arrival_s=100.0)
    with pytest.raises(InvalidJobError, match="'late': it arrives at 100 s, after the horizon of 50 s"):
        HareInstance.of([job], {"v100": 1}, horizon_s=50.0)
    instance = HareInstance.of([job], {"v100": 1})
    solver = RelaxationSolver()
    early = HareInstance.of([HareJob("early", 1, 1, {"v100": 1.0})], {"v100": 1})
    grid = TimeGrid.geometric(0.0, 50.0)
    solver.solve(early, grid)
    with pytest.raises(InvalidJobError, match="after the horizon"):
        solver.solve(instance, grid)
    assert solver.solve(early, grid).warm
    with pytest.raises(InvalidJobError, match="after the horizon"):
        Relaxation.of(instance, grid)


def test_clusters_and_ids():
    job = HareJob("j", 1, 1, {"v100": 1.0})
    with pytest.raises(InvalidClusterError, match="no GPUs"):
        HareInstance.of([job], {"v100": 0})
    with pytest.raises(InvalidClusterError, match="'v100': the number of GPUs is -1"):
        HareInstance.of([job], {"v100": -1})
    with pytest.raises(DuplicateJobError, match="'j' is there twice"):
        HareInstance.of([job, job], {"v100": 1})


def test_settings():
    with pytest.raises(SettingsError, match="tolerance"):
        RelaxationSolver(tolerance=0.0)
    with pytest.raises(SettingsError, match="threads"):
        RelaxationSolver(threads=-1)
    with pytest.raises(InvalidClusterError, match="growth"):
        TimeGrid.geometric(0.0, 10.0, growth=1.0)
    with pytest.raises(InvalidClusterError, match="not after the start"):
        TimeGrid.geometric(10.0, 10.0)


def test_no_jobs_is_an_empty_schedule():
    found = HareScheduler().schedule(HareInstance.of([], {"v100": 2}))
    assert found.schedule.objective == 0.0
    assert found.ratio == 1.0
