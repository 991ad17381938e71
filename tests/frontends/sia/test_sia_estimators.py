"""Any goodput estimator (thesis 3.3.4): models of others, jobs that bring their own, applications from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from copter_frontends.goodput import ALL_APPLICATIONS, GoodputModel
from copter_frontends.goodput.application_files import read_applications
from copter_frontends.policies.sia import SiaPolicy
from copter_frontends.simulator import Simulation
from copter_frontends.simulator.table_source import TableApplication, TableSource
from copter_frontends.vocabulary import (
    BatchInference,
    Cluster,
    Configuration,
    FrontendError,
    GoodputTable,
    InvalidJobError,
    Job,
    LatencyInference,
    configurations_of,
)
from copter_frontends.vocabulary.semantics import SIA_ARTIFACT
from tests.frontends.command_line import run_json
from tests.frontends.fake_goodput import FakeApplication, FakeGoodput

HET = {"t4": (6, 4), "rtx": (3, 8), "a100": (2, 8)}


def cluster() -> Cluster:
    return Cluster.of(HET)


class OnlyOldGpus(GoodputModel):
    """A model in which one type is ten times what it is."""

    calls = 0

    def job_row(self, job: Job, progress: float) -> NDArray[np.float64]:
        OnlyOldGpus.calls += 1
        on_t4 = np.array([10.0 if c.gpu_type == "t4" else 0.1 for c in self.configurations])
        return np.asarray(super().job_row(job, progress) * on_t4)


class Scaled(GoodputModel):
    """A model with more to it than its applications, which its ``over`` hands on."""

    def __init__(self, configurations: Sequence[Configuration], applications: Mapping[str, object], by: float) -> None:
        super().__init__(configurations, applications)  # type: ignore[arg-type]
        self.by = by

    def over(self, configurations: Sequence[Configuration]) -> Scaled:
        return Scaled(configurations, self.applications, self.by)

    def job_row(self, job: Job, progress: float) -> NDArray[np.float64]:
        return np.asarray(super().job_row(job, progress) * self.by)


def test_a_subclass_of_the_model_decides() -> None:
    job = Job("j", "bert", max_gpus=4)
    usual = SiaPolicy(cluster())
    usual.add_job(job)
    assert usual.plan(0.0).allocations["j"].gpu_type == "a100"
    OnlyOldGpus.calls = 0
    told = SiaPolicy(cluster(), OnlyOldGpus(configurations_of(cluster())))
    told.add_job(job)
    assert told.plan(0.0).allocations["j"].gpu_type == "t4"
    assert OnlyOldGpus.calls > 0


def test_a_model_with_state_of_its_own_keeps_it() -> None:
    policy = SiaPolicy(cluster(), Scaled(configurations_of(cluster()), ALL_APPLICATIONS, 3.0))
    assert isinstance(policy.formulation.goodput, Scaled)
    assert policy.formulation.goodput.by == 3.0
    policy.add_resources("a100", 8)
    assert isinstance(policy.formulation.goodput, Scaled)


def test_a_model_that_is_no_goodput_model_does() -> None:
    small = Cluster.of({"t4": (2, 4), "a100": (1, 4)})
    fake = FakeGoodput(configurations_of(small), {"fake": FakeApplication()})
    policy = SiaPolicy(small, fake)  # type: ignore[arg-type]
    policy.add_job(Job("j", "fake"))
    policy.add_job(Job("r", "fake", gpus=2))
    run_ = Simulation(small, [Job("j", "fake", max_gpus=4), Job("r", "fake", gpus=2)], SiaPolicy(small, fake), fake)
    for _ in range(200):
        if run_.finished:
            break
        run_.step()
    assert run_.finished
    tables = {"net": TableApplication("net", {"t4": 5.0, "a100": 1.0}, {"t4": 4, "a100": 4})}
    told = SiaPolicy(small, TableSource(configurations_of(small), tables))
    told.add_job(Job("n", "net", max_gpus=4))
    assert told.plan(0.0).allocations["n"].gpu_type == "t4"


def test_a_job_brings_a_table_and_ends_when_it_says() -> None:
    places = configurations_of(cluster())
    table = {("rtx", 2): 7.0, ("rtx", 4): 9.0}
    job = Job("own", "cifar10", work_samples=9.0 * 600, goodput=table)
    run_ = Simulation(cluster(), [job], SiaPolicy(cluster()), GoodputModel(places))
    run_.step()
    held = run_._occupancy.allocations["own"]
    assert (held.gpu_type, held.gpus) == ("rtx", 4)
    while not run_.finished:
        run_.step()
    # 600 s of work at 9 a second, after the 50 s that a start of cifar10 takes
    assert run_.result().jobs["jct_s"][0] == pytest.approx(650.0)


def test_a_job_brings_a_callable_that_changes_as_it_trains() -> None:
    asked: list[float] = []

    def goodput(place: Configuration, progress: float) -> float:
        asked.append(progress)
        better = "t4" if progress < 0.5 else "a100"
        return (10.0 if place.gpu_type == better else 1.0) * place.gpus**0.5

    run_ = Simulation(
        cluster(),
        [Job("own", "ncf", work_samples=20_000.0, goodput=goodput, max_gpus=4)],
        SiaPolicy(cluster()),
        GoodputModel(configurations_of(cluster())),
    )
    types = []
    while not run_.finished:
        run_.step()
        if "own" in run_._occupancy.allocations:
            types.append(run_._occupancy.allocations["own"].gpu_type)
    assert types[0] == "t4"
    assert types[-1] == "a100"
    assert all(0.0 < each < 1.0 for each in asked)


def test_batch_inference_is_as_fast_as_its_gpus_together() -> None:
    rule = BatchInference({"t4": 10.0, "a100": 40.0})
    assert rule(Configuration(2, 8, "t4"), 0.3) == 80.0
    assert rule(Configuration(1, 4, "rtx"), 0.3) == 0.0
    policy = SiaPolicy(cluster())
    policy.add_job(Job("scan", "ncf", work_samples=1e6, goodput=rule))
    assert policy.plan(0.0).allocations["scan"].gpu_type == "a100"


def test_inference_runs_only_where_its_latency_is_kept() -> None:
    measured = {("t4", 1): 0.2, ("t4", 4): 0.06, ("rtx", 1): 0.09, ("a100", 2): 0.03, ("a100", 1): 0.05}
    policy = SiaPolicy(cluster())
    policy.add_job(Job("serve", "ncf", work_samples=3600.0, goodput=LatencyInference(measured, 0.055)))
    held = policy.plan(0.0).allocations["serve"]
    assert held.gpu_type == "a100"
    assert held.gpus in (1, 2)
    with pytest.raises(InvalidJobError, match="fits nowhere"):
        policy.add_job(Job("never", "ncf", work_samples=1.0, goodput=LatencyInference(measured, 0.01)))


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"goodput": {("t4", 0): 1.0}}, "key"),
        ({"goodput": {("t4", 1): -1.0}}, "finite and >= 0"),
        ({"goodput": 3.0}, "must be a callable"),
        ({"goodput": {("t4", 1): 1.0}, "work_samples": None}, "needs work_samples"),
    ],
)
def test_a_goodput_that_cannot_be_is_refused(wrong: dict[str, object], complaint: str) -> None:
    with pytest.raises(InvalidJobError, match=complaint):
        Job("j", "ncf", **{"work_samples": 1.0, **wrong})  # type: ignore[arg-type]


def test_a_callable_that_returns_nonsense_is_refused_and_changes_nothing() -> None:
    policy = SiaPolicy(cluster())
    with pytest.raises(InvalidJobError, match="its own goodput of"):
        policy.add_job(Job("j", "ncf", work_samples=1.0, goodput=lambda place, progress: float("nan")))
    assert not policy.formulation.jobs
    assert policy.plan(0.0).allocations == {}


def test_a_job_with_agents_cannot_bring_its_own() -> None:
    job = Job("own", "ncf", work_samples=1.0, goodput=GoodputTable({("t4", 1): 1.0}))
    run_ = Simulation(
        cluster(),
        [job],
        SiaPolicy(cluster(), semantics=SIA_ARTIFACT),
        GoodputModel(configurations_of(cluster())),
        semantics=SIA_ARTIFACT,
    )
    assert [each.id for each in run_.skipped] == ["own"]
    assert "training='exact'" in run_.skipped[0].reason


# Applications and GPU types from a file ----------------------------------------------------------------------------

H100 = """
gpu_types:
  - {name: h100, like: a100, speed: 2.0, speeds: {bert: 4.0}, memory: 2}
applications:
  - name: tiny
    init_batch_size: 8
    max_batch_size: 64
    work_samples: 1.0e5
    noise_scale: [10, 100]
    restart_s: 20
    gpus:
      h100: {alpha_c: 0.01, beta_c: 0.001, alpha_n: 0.01, beta_n: 0.001, alpha_r: 0.01, beta_r: 0.001, gamma: 2,
             min_local_batch_size: 1, max_local_batch_size: 32}
"""


def test_a_file_adds_gpu_types_and_applications(tmp_path: Path) -> None:
    path = tmp_path / "more.yaml"
    path.write_text(H100)
    known = read_applications(path)
    assert {*known} == {*ALL_APPLICATIONS, "tiny"}
    old, new = ALL_APPLICATIONS["bert"].gpus["a100"], known["bert"].gpus["h100"]
    assert new.parameters.beta_c == pytest.approx(old.parameters.beta_c / 4)
    assert new.parameters.beta_n == old.parameters.beta_n
    assert new.max_local_batch_size == 2 * old.max_local_batch_size
    assert known["cifar10"].gpus["h100"].parameters.alpha_c == pytest.approx(
        ALL_APPLICATIONS["cifar10"].gpus["a100"].parameters.alpha_c / 2
    )
    assert known["gpt"].pipeline is not None
    assert known["gpt"].pipeline.stages["h100"] == 2
    there = Cluster.of({"h100": (1, 8), "t4": (1, 4)})
    policy = SiaPolicy(there, GoodputModel(configurations_of(there), known))
    for name in ("tiny", "bert"):
        policy.add_job(Job(name, name, max_gpus=4))
    plan = policy.plan(0.0)
    assert {held.gpu_type for held in plan.allocations.values()} == {"h100"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("gpu_types: 3", "must be a list"),
        ("gpu_types: [{name: h100, like: b200, speed: 2}]", "no GPU type is called 'b200'"),
        ("gpu_types: [{name: t4, like: a100, speed: 2}]", "already"),
        ("gpu_types: [{name: h100, like: a100, speed: 0}]", "speed"),
        ("gpu_types: [{name: h100, like: a100}]", "lacks speed"),
        ("gpu_types: [{name: h100, like: a100, speed: 2, speeds: {x: 1}}]", "speeds"),
        ("applications: [{name: tiny}]", "lacks init_batch_size"),
        (H100.replace("gamma: 2", "gamma: 20"), "applications.0."),
        (H100.replace("name: tiny", "name: bert"), "already"),
        (H100.replace("[10, 100]", "[10]"), "noise_scale"),
        ("other: 1", "unknown field other"),
    ],
)
def test_a_file_that_is_wrong_is_refused_by_name(text: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    with pytest.raises((FrontendError, ValueError), match=complaint) as raised:
        read_applications(path)
    assert "wrong.yaml" in str(raised.value)


def test_the_command_line_takes_the_file_and_hares_testbed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, there = tmp_path / "more.yaml", tmp_path / "cluster.yaml"
    path.write_text(H100)
    there.write_text("types:\n  - {name: h100, gpus_per_node: 4, nodes: 2}\n")
    given = ["simulate", "sia", "--cluster", str(there), "--jobs", "20", "--rounds", "2", "--warmup-rounds", "600"]
    code, _, complaint = run_json(capsys, *given)
    assert code == 2
    assert "h100" in complaint
    code, summary, complaint = run_json(capsys, *given, "--applications", str(path))
    assert code == 0, complaint
    assert summary["jobs_skipped"] == 0
    code, summary, complaint = run_json(capsys, "simulate", "sia", "--cluster", "hare-15", "--rounds", "4")
    assert code == 0, complaint
    assert summary["utilisation"] > 0.5  # type: ignore[operator]
