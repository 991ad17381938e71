"""Kinds of jobs: strong-scaling, rigid, hybrid-parallel, not preemptible, reserved, and the growth limit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from copter_frontends.goodput import ALL_APPLICATIONS, GoodputModel, efficiency, throughput
from copter_frontends.goodput.fitted_constants import GPT_MICROBATCHES, GPT_STAGES
from copter_frontends.policies.sia import SiaObjective, SiaPolicy
from copter_frontends.simulator import Simulation
from copter_frontends.vocabulary import Cluster, InvalidJobError, Job, configurations_of
from copter_frontends.vocabulary.semantics import DEFAULT

HET = {"t4": (6, 4), "rtx": (3, 8), "a100": (2, 8)}


def cluster() -> Cluster:
    return Cluster.of(HET)


def simulation(jobs: list[Job], **options: object) -> Simulation:
    policy = SiaPolicy(cluster(), **options)  # type: ignore[arg-type]
    return Simulation(cluster(), jobs, policy, GoodputModel(configurations_of(cluster())))


def test_a_fixed_batch_has_the_throughput_of_that_batch() -> None:
    places = configurations_of(cluster())
    model, application = GoodputModel(places), ALL_APPLICATIONS["cifar10"]
    row = model.job_row(Job("j", "cifar10", batch_size=512), 0.5)
    batches, scales = application.noise_scales_at(0.5125)
    for place, goodput in zip(places, row, strict=True):
        profile = application.gpus[place.gpu_type]
        local = int(np.ceil(512 / place.gpus))
        steps = max(int(np.ceil(local / profile.max_local_batch_size)) - 1, int(place.gpus == 1))
        local = int(np.ceil(local / (steps + 1)))
        if local < profile.min_local_batch_size:
            assert goodput == 0
            continue
        total = local * place.gpus * (steps + 1)
        rate = float(throughput(profile.parameters, place.nodes, place.gpus, local, steps))
        noise = float(np.interp(total, batches, scales))
        assert goodput == pytest.approx(rate * float(efficiency(noise, 128, total)), rel=1e-12)
    assert (row <= model.job_row(Job("j", "cifar10"), 0.5) * 1.02).all()


@pytest.mark.parametrize("gpus", [1, 3, 4, 6, 12])
def test_a_rigid_job_gets_its_count_rounded_up_to_a_configuration(gpus: int) -> None:
    run = simulation([Job("rigid", "cifar10", batch_size=2048, gpus=gpus)])
    for _ in range(5):
        run.step()
    held = run._occupancy.allocations["rigid"]
    sizes = [c.gpus for c in configurations_of(cluster()) if c.gpu_type == held.gpu_type and c.gpus >= gpus]
    assert held.gpus == min(sizes)
    model = GoodputModel(configurations_of(cluster()))
    assert int((model.job_row(Job("rigid", "cifar10", gpus=gpus), 0.0) > 0).sum()) <= len(HET)


def test_a_rigid_job_trains_on_what_it_is_fixed_to_and_not_on_what_it_holds() -> None:
    model = GoodputModel(configurations_of(cluster()))
    rigid = model.job_row(Job("j", "cifar10", gpus=3), 0.5)
    whole = model.job_row(Job("j", "cifar10", gpus=4), 0.5)
    assert ((rigid > 0) == (whole > 0)).all()
    assert (rigid[rigid > 0] < whole[rigid > 0]).all()


def test_a_hybrid_job_gets_multiples_of_its_replica() -> None:
    places = configurations_of(cluster())
    row = GoodputModel(places).job_row(Job("g", "gpt"), 0.2)
    for place, goodput in zip(places, row, strict=True):
        stages = GPT_STAGES.get(place.gpu_type)
        assert (goodput > 0) == (stages is not None and place.gpus % stages == 0)
    run = simulation([Job("g", "gpt", work_samples=4000.0), Job("c", "cifar10")])
    sizes = set()
    for _ in range(30):
        run.step()
        held = run._occupancy.allocations.get("g")
        if held is not None:
            assert held.gpus % GPT_STAGES[held.gpu_type] == 0
            sizes.add((held.gpu_type, held.gpus))
    assert sizes


def test_hybrid_step_time_is_the_pipelines() -> None:
    places = configurations_of(cluster())
    row = GoodputModel(places).job_row(Job("g", "gpt"), 0.0)
    at = next(i for i, c in enumerate(places) if (c.gpu_type, c.gpus) == ("a100", 8))
    application = ALL_APPLICATIONS["gpt"]
    step_s = 3 * (2 - 1 + GPT_MICROBATCHES) * 0.144 + 0.018 + 2 * 0.00183
    batches, scales = application.noise_scales_at(0.0125)
    total = 4 * GPT_MICROBATCHES
    noise = float(np.interp(total, batches, scales))
    assert row[at] == pytest.approx(total / step_s * float(efficiency(noise, 12, total)), rel=1e-6)


def test_a_job_that_may_not_be_preempted_keeps_its_nodes_to_its_end() -> None:
    crowd = [Job(f"c{i}", "cifar10", 60.0 * (i // 4 + 2)) for i in range(60)]
    run = simulation([Job("first", "imagenet", preemptible=False, work_samples=2e8), *crowd])
    run.step()
    held = run._occupancy.allocations["first"]
    for _ in range(15):
        run.step()
        assert run._occupancy.allocations["first"] == held
    lost = run.remove_nodes([node for node, _ in held.nodes][:1])
    assert "first" in lost
    run.step()
    assert run._occupancy.allocations["first"] != held


def test_a_reservation_is_there_from_the_first_round_and_survives_a_crowd() -> None:
    crowd = [Job(f"c{i}", "bert", 0.0) for i in range(80)]
    run = simulation([*crowd, Job("kept", "imagenet", 300.0, reservation=("a100", 8))])
    for _ in range(12):
        record = run.step()
        if record.now_s >= 300.0 + 180.0:  # jobs in a restart of 120 s at most may keep it waiting
            held = run._occupancy.allocations["kept"]
            assert (held.gpu_type, held.gpus) == ("a100", 8)


def test_reservations_that_cannot_be_kept_are_refused() -> None:
    policy = SiaPolicy(cluster())
    policy.add_job(Job("a", "cifar10", reservation=("a100", 16)))
    with pytest.raises(InvalidJobError, match="16 of 16 are reserved"):
        policy.add_job(Job("b", "cifar10", reservation=("a100", 8)))
    with pytest.raises(InvalidJobError, match="no configuration"):
        policy.add_job(Job("c", "cifar10", reservation=("rtx", 5)))
    assert list(policy.formulation.jobs) == ["a"]


def test_the_growth_limit_doubles_at_most() -> None:
    run = simulation([Job("j", "cifar10")], semantics=replace(DEFAULT, growth=2))
    most = 0
    for _ in range(12):
        run.step()
        held = run._occupancy.allocations.get("j")
        if held is not None:
            assert held.gpus <= max(2 * most, 1)
            most = max(most, held.gpus)
    assert most >= 16


@pytest.mark.parametrize("power", [-1.0, -0.5, 0.0, 0.5, 1.0])
def test_every_power_fills_the_cluster_with_all_kinds_of_jobs(power: float) -> None:
    kinds = [
        Job("free", "imagenet"),
        Job("strong", "cifar10", batch_size=1024),
        Job("rigid", "bert", batch_size=96, gpus=2),
        Job("hybrid", "gpt"),
        Job("still", "yolov3", preemptible=False),
    ]
    run = simulation(kinds, objective=SiaObjective(power=power))
    record = run.step()
    assert record.running_jobs == len(kinds)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"batch_size": 0}, "batch_size is 0"),
        ({"batch_size": 64, "max_batch_size": 32}, "above max_batch_size"),
        ({"gpus": 0}, "gpus is 0"),
        ({"gpus": 2, "min_gpus": 4}, "outside min_gpus"),
        ({"reservation": ("t4", 0)}, "reservation"),
    ],
)
def test_impossible_jobs_say_what_is_wrong(fields: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidJobError, match=words):
        Job("j", "cifar10", **fields)  # type: ignore[arg-type]
