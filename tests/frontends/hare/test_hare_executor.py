"""Switching and the executors."""

import numpy as np
import pytest

from copter_frontends.hare import Chunks, HareInstance, HareJob, HareScheduler, faults, schedule_in_order
from copter_frontends.hare.executor import execute
from copter_frontends.hare.models import FAMILIES, MODELS
from copter_frontends.hare.switching import SCHEMES, SwitchCost, switch_cost
from copter_frontends.hare.workload import TESTBED, PaperWorkload
from copter_frontends.vocabulary import InvalidJobError


def test_one_hit_in_two_gives_table_3() -> None:
    for name, model in MODELS.items():
        cost = switch_cost(name, "hare")
        assert 0 < cost.hit_s < cost.miss_s < switch_cost(name, "pipeswitch").miss_s
        assert 0.5 * (cost.hit_s + cost.miss_s) == pytest.approx(1e-3 * model.hare_ms)
        assert switch_cost(name, "default") == SwitchCost(1e-3 * model.default_ms, 1e-3 * model.default_ms)
        assert cost.hit_s + cost.miss_s < 2 * 6e-3  # the paper: at most 6 ms


def test_the_shares_of_table_3_come_back() -> None:
    """Hare's switching over switching and training, the paper's percentages (at most 4.53%)."""
    for model in MODELS.values():
        share = 1e-3 * model.hare_ms / (1e-3 * model.hare_ms + model.v100_s)
        assert share == pytest.approx(model.hare_share)
        assert share <= 0.0453 + 1e-12
    assert sum(len(names) for names in FAMILIES.values()) == 8


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
