"""Jobs tuned for rigid schedulers: by hand, against the simulator, and against public workloads (B38)."""

from __future__ import annotations

import csv
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from copter.runtime.errors import InvalidDataError, SettingsError
from copter_frontends.goodput import APPLICATIONS, GoodputModel
from copter_frontends.goodput.measured import read_profiles
from copter_frontends.goodput.profiled import ProfiledApplication, fitted_profiles
from copter_frontends.policies.baselines import FifoPolicy
from copter_frontends.simulator import Simulation
from copter_frontends.simulator.tuned_jobs import JobTuner, tuned_jobs
from copter_frontends.vocabulary import Cluster, InvalidClusterError, InvalidJobError, Job, configurations_of
from copter_frontends.vocabulary.named_clusters import named_cluster
from copter_frontends.vocabulary.semantics import SIA_ARTIFACT

DATA = Path(os.environ.get("COPTER_DATA", "../shared/data"))
HOM = named_cluster("sia-hom")


class Steps:
    """1 s for each of 64 samples, and `sync_s` more for every GPU beyond the first; over two nodes nothing runs."""

    min_local, max_local, one_gpu_rate = 1, 1024, 1.0

    def __init__(self, sync_s: float) -> None:
        self.sync_s = sync_s

    def observations(self, nodes: int, gpus: int) -> list[tuple[int, int, int, float, float]]:
        return []

    def most_local(self, placement: tuple[int, ...]) -> int:
        return self.max_local

    def most_local_of(self, gpus: int) -> int | None:
        return None

    def step(self, placement: tuple[int, ...], local: int) -> tuple[float, float]:
        if len(placement) > 1:
            raise InvalidDataError("not measured")
        sync = self.sync_s * (sum(placement) - 1)
        return local / 64 + sync, sync


def one_batch(sync_s: float) -> dict[str, ProfiledApplication]:
    """An application of 1,000 iterations at 64 samples; larger batches are worth nothing more."""
    facts = replace(APPLICATIONS["cifar10"], init_batch_size=64, max_batch_size=66, slowdown=2.0)
    gradients = np.array([[[1.0, 0.0]]])
    return {"x": ProfiledApplication(facts, np.array([1000.0]), np.array([64.0]), gradients, {"a": Steps(sync_s)})}


def test_combinations_are_those_between_half_and_four_fifths_of_ideal_speedup():
    # 1,000 steps of 1 s on one GPU; 1/n + (n - 1) / 12 s on n: efficiency 0.86, 0.67 at 2 and 3, 0.5 at 4.
    tuner = JobTuner(Cluster.of({"a": (1, 8)}), profiles=one_batch(1 / 12), gpu_counts=(2, 3, 4, 8))
    (found,) = tuner.choices(Job("j", "x"))
    assert (found.gpus, found.batch_size) == (3, 64)
    assert found.training_s == pytest.approx(1000 * (22 / 64 + 2 / 12), rel=2e-3)  # 64 samples on 3 GPUs: 22 on one
    assert found.efficiency == pytest.approx(1000 / found.training_s / 3)
    tuned = tuner.tune(Job("j", "x", requested_gpus=7, max_batch_size=9))
    assert (tuned.requested_gpus, tuned.batch_size, tuned.max_batch_size) == (3, 64, None)


def test_where_none_is_in_the_band_it_is_one_gpu_with_its_best_batch():
    tuner = JobTuner(Cluster.of({"a": (1, 8)}), profiles=one_batch(10.0))
    (found,) = tuner.choices(Job("j", "x"))
    assert (found.gpus, found.batch_size, found.efficiency) == (1, 64, 1.0)
    assert JobTuner(Cluster.of({"a": (1, 2)}), profiles=one_batch(1 / 12)).choices(Job("j", "x"))[0].gpus == 1


def test_what_was_not_measured_what_takes_too_long_and_what_the_job_cannot_have_is_left_out():
    profiles = one_batch(1 / 12)
    split = JobTuner(Cluster.of({"a": (4, 2)}), profiles=profiles, gpu_counts=(3,))
    assert split.choices(Job("j", "x"))[0].gpus == 1
    hasty = JobTuner(Cluster.of({"a": (1, 8)}), profiles=profiles, gpu_counts=(3,), longest_s=400.0)
    assert hasty.choices(Job("j", "x"))[0].gpus == 1
    wide = JobTuner(Cluster.of({"a": (1, 8)}), profiles=profiles, gpu_counts=(3,))
    assert wide.choices(Job("j", "x", max_gpus=2))[0].gpus == 1
    assert wide.choices(Job("j", "x", work_samples=64.0 * 500))[0].training_s == pytest.approx(255, rel=1e-2)


def test_the_time_is_the_simulators():
    tuner = JobTuner(HOM, profiles=fitted_profiles())
    job = tuner.tune(Job("j", "bert"))
    expected = next(t for t in tuner.choices(job) if t.gpus == job.requested_gpus)
    model = GoodputModel(configurations_of(HOM))
    result = Simulation(HOM, [job], FifoPolicy(HOM), model, 60.0, semantics=SIA_ARTIFACT).run()
    facts = APPLICATIONS["bert"]
    alone_s = expected.training_s * facts.slowdown + facts.restart_s
    assert float(result.jobs["jct_s"][0]) == pytest.approx(alone_s, abs=2.0)


def test_a_seed_and_an_id_give_one_combination_whatever_the_others_are():
    jobs = [Job(f"job-{i}", "cifar10") for i in range(16)]
    found = tuned_jobs(jobs, HOM)
    assert tuned_jobs(jobs[::-1], HOM)[::-1] == found
    assert tuned_jobs(jobs, HOM, seed=1) != found
    assert len({job.requested_gpus for job in found}) > 1
    assert max(job.requested_gpus for job in tuned_jobs(jobs, HOM, most_gpus=8)) <= 8


def test_bad_input_is_one_clear_error():
    with pytest.raises(InvalidClusterError, match=r"t4, rtx, a100: say on which"):
        JobTuner(named_cluster("sia-het"))
    with pytest.raises(InvalidClusterError, match="no node of it"):
        JobTuner(Cluster.of({"t4": (0, 4), "rtx": (1, 8)}), "t4")
    for wrong in ({"most_gpus": 0}, {"seed": -1}, {"band": (0.8, 0.5)}, {"longest_s": 0.0}, {"gpu_counts": (1, 2)}):
        with pytest.raises(SettingsError, match=next(iter(wrong))):
            JobTuner(HOM, **wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidJobError, match="gpt is hybrid-parallel and has no batch to tune"):
        tuned_jobs([Job("j", "gpt")], HOM)
    with pytest.raises(InvalidJobError, match="fixed to 4"):
        tuned_jobs([Job("j", "bert", gpus=4)], HOM)
    with pytest.raises(InvalidJobError, match=r"not measured on 'm60'"):
        tuned_jobs([Job("j", "bert")], Cluster.of({"m60": (1, 4)}))
    profiles = {"x": SimpleNamespace(**{**vars(one_batch(1.0)["x"]), "batches": np.array([])})}
    with pytest.raises(InvalidJobError, match="no measured batch"):
        tuned_jobs([Job("j", "x")], Cluster.of({"a": (1, 4)}), profiles=profiles)  # type: ignore[arg-type]


def published(folder: Path, application: str) -> set[tuple[int, int]]:
    """(GPUs, batch) of an application in all workloads of a folder."""
    found = set()
    for path in folder.glob("workload-*.csv"):
        with path.open(newline="") as file:
            found |= {
                (int(row["num_replicas"]), int(row["batch_size"]))
                for row in csv.DictReader(file)
                if row["application"] == application
            }
    return found


def test_on_t4_it_gives_the_combinations_of_polluxs_public_workloads():
    pollux, sia = DATA / "traces" / "pollux_osdi21" / "workloads", DATA / "traces" / "sia" / "saturn"
    if not (pollux.is_dir() and sia.is_dir()):
        pytest.skip(f"no workloads in {DATA}: set COPTER_DATA to the data folder")
    profiles = read_profiles(DATA / "profiles" / "sia")
    tuner = JobTuner(HOM, profiles=profiles)
    for name in ("bert", "deepspeech2", "imagenet"):
        found = {(t.gpus, t.batch_size) for t in tuner.choices(Job("j", name))}
        extra = {(16, 640)} if name == "deepspeech2" else set()  # at 0.52 here, at 0.49 there
        assert found == published(pollux, name) | extra
    rtx = JobTuner(named_cluster("sia-het"), "rtx", 16, profiles=profiles, gpu_counts=range(2, 15, 2))
    found = {(t.gpus, t.batch_size) for t in rtx.choices(Job("j", "imagenet"))}
    assert found == published(sia, "imagenet")
