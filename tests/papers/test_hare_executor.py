"""Switching and the executors."""

import numpy as np
import pytest

from copter_frontends.policies.hare import Chunks, HareInstance, HareJob, HareScheduler, faults, schedule_in_order
from copter_frontends.policies.hare.models import FAMILIES, MODELS
from copter_frontends.policies.hare.switching import SCHEMES, switch_cost
from copter_frontends.vocabulary import InvalidJobError
from copter_papers.hare.executor import execute
from copter_papers.hare.workload import TESTBED, PaperWorkload

TABLE_3 = {
    "vgg19": (3288.94, 4.01, 2.77, 1.82),
    "resnet50": (5961.16, 4.75, 2.04, 3.71),
    "inceptionv3": (7807.43, 5.03, 2.46, 1.43),
    "bert_base": (9016.99, 12.57, 5.03, 1.13),
    "transformer": (5257.17, 10.34, 5.79, 1.36),
    "deepspeech": (5125.64, 8.91, 4.27, 1.25),
    "fastgcn": (5327.24, 2.86, 1.83, 4.53),
    "graphsage": (5213.54, 2.42, 0.96, 3.36),
}
"""The paper's Table 3: ms of a switch with Default, PipeSwitch and Hare; percent of Hare's switching in its time."""


@pytest.mark.parametrize("name", TABLE_3)
def test_the_executor_gives_table_3s_switching_where_every_other_task_hits(name: str) -> None:
    """Two tasks of one job, then two of another, and so on: the first switch to each misses, the second one hits."""
    default_ms, pipeswitch_ms, hare_ms, hare_percent = TABLE_3[name]
    train_s = MODELS[name].train_s("v100")
    jobs = [HareJob(f"j{i}", 2, 1, {"v100": train_s}, model=name) for i in range(2)]
    instance = HareInstance.of(jobs, {"v100": 1})
    schedule = schedule_in_order(instance, Chunks.of(instance), np.array([0, 2, 1, 3]))
    wanted_ms = {"default": default_ms, "pipeswitch": pipeswitch_ms, "hare": hare_ms}
    for scheme in SCHEMES:
        done = execute(schedule, scheme)
        assert done.switches.sum() == 4
        if scheme == "hare":
            assert done.hits.sum() == 2
        assert 1e3 * done.switch_s.sum() / 4 == pytest.approx(wanted_ms[scheme])
        assert done.schedule.makespan_s == pytest.approx(4 * (train_s + 1e-3 * wanted_ms[scheme]))
    assert 100 * hare_ms * 1e-3 / (hare_ms * 1e-3 + train_s) == pytest.approx(hare_percent, abs=0.005)
    cost = switch_cost(name, "hare")
    assert 0 < cost.hit_s < cost.miss_s < switch_cost(name, "pipeswitch").miss_s


def test_every_model_is_of_table_3_and_of_a_family() -> None:
    assert set(MODELS) == set(TABLE_3)
    assert sorted(name for names in FAMILIES.values() for name in names) == sorted(TABLE_3)


def two_jobs(memory_first: str = "resnet50") -> HareInstance:
    jobs = [HareJob(f"j{i}", 4, 1, {"v100": 1.0}, model=memory_first) for i in range(2)]
    return HareInstance.of(jobs, {"v100": 1})


def test_models_are_kept_while_they_fit() -> None:
    instance = two_jobs()
    order = np.array([0, 4, 1, 5, 2, 6, 3, 7])
    schedule = schedule_in_order(instance, Chunks.of(instance), order)
    roomy, tight = execute(schedule), execute(schedule, memory_of={"v100": 800.0})
    assert roomy.switches.tolist() == [4, 4]
    assert roomy.hits.tolist() == [3, 3]
    assert tight.hits.tolist() == [0, 0]
    cost = switch_cost("resnet50", "hare")
    assert roomy.switch_s.sum() == pytest.approx(2 * cost.miss_s + 6 * cost.hit_s)
    assert roomy.schedule.makespan_s == pytest.approx(8.0 + roomy.switch_s.sum())
    assert tight.switch_s.sum() == pytest.approx(8 * cost.miss_s)


def test_tasks_of_one_job_need_no_switch_between_them() -> None:
    instance = two_jobs()
    schedule = schedule_in_order(instance, Chunks.of(instance), np.arange(8))
    assert execute(schedule).switches.tolist() == [1, 1]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_is_carried_out_is_feasible_and_later(scheme) -> None:
    instance = HareInstance.of(PaperWorkload(20).make(1), TESTBED)
    planned = HareScheduler(max_tasks=20_000).schedule(instance).schedule
    done = execute(planned, scheme)
    assert faults(done.schedule, 1e-7) == []
    assert (done.schedule.completion_s >= planned.completion_s - 1e-6).all()
    if scheme == "hare":
        assert done.schedule.objective <= 1.05 * planned.objective
        assert done.hits.sum() > 0


def test_a_switch_costs_by_both_models() -> None:
    """HR34: half of a hit is the cleaning after the model before, half the readiness of the one that comes."""
    jobs = [HareJob(name, 2, 1, {"v100": 1.0}, model=name) for name in ("bert_base", "graphsage")]
    instance = HareInstance.of(jobs, {"v100": 1})
    done = execute(schedule_in_order(instance, Chunks.of(instance), np.array([0, 2, 1, 3])), "default")
    large, small = (switch_cost(name, "default").hit_s for name in ("bert_base", "graphsage"))
    assert done.switch_s.tolist() == pytest.approx([large + 0.5 * (large + small), 2 * 0.5 * (large + small)])


def test_bad_models_and_schemes() -> None:
    instance = two_jobs("gpt")
    schedule = schedule_in_order(instance, Chunks.of(instance), np.arange(8))
    with pytest.raises(InvalidJobError, match="no model is named 'gpt'"):
        execute(schedule)
    with pytest.raises(InvalidJobError, match="scheme is 'best'"):
        switch_cost("vgg19", "best")  # type: ignore[arg-type]
    with pytest.raises(InvalidJobError, match="no speed is known for 'tpu'"):
        MODELS["vgg19"].train_s("tpu")
    with pytest.raises(InvalidJobError, match="network"):
        MODELS["vgg19"].sync_s(0.0)
    with pytest.raises(InvalidJobError, match="shares"):
        PaperWorkload(3, shares={"cv": 0.5}).make(0)
