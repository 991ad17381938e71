"""Blox's loop with copter's scheduler: the same arguments, its own placement rule."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from copter.runtime.errors import InvalidDataError
from copter_serve.adapters.blox import BloxScheduler

pandas = pytest.importorskip("pandas")


def frame(nodes: dict[int, tuple[str, int]]) -> Any:
    """Blox's frame of GPUs: a row for each."""
    rows = [
        {"GPU_ID": 100 * node + k, "Node_ID": node, "GPU_type": kind, "IN_USE": False, "JOB_IDS": None}
        for node, (kind, gpus) in nodes.items()
        for k in range(gpus)
    ]
    return pandas.DataFrame(rows, columns=["GPU_ID", "Node_ID", "GPU_type", "IN_USE", "JOB_IDS"])


def job(gpus: int, submit: float = 0.0, **more: Any) -> dict[str, Any]:
    return {"num_GPUs": gpus, "submit_time": submit, "is_running": False, "job_priority": 1, **more}


def place(order: list[tuple[int, dict[str, Any]]], gpu_df: Any) -> list[int]:
    """What runs by Blox's rule: in this order, on free GPUs, then on those of the last jobs of the order."""
    for job_id, one in order:
        if one["is_running"]:
            continue
        for last, other in [(None, None), *reversed(order)]:
            if other is not None and other["is_running"]:
                gpu_df.loc[gpu_df["JOB_IDS"] == last, ["JOB_IDS", "IN_USE"]] = None, False
                other["is_running"] = False
            free = gpu_df.index[~gpu_df["IN_USE"].astype(bool)].tolist()[: one["num_GPUs"]]
            if len(free) == one["num_GPUs"] or last == job_id:
                break
        if len(free) < one["num_GPUs"]:
            break
        gpu_df.loc[free, "JOB_IDS"] = job_id
        gpu_df.loc[free, "IN_USE"] = True
        one["is_running"] = True
    return [job_id for job_id, one in order if one["is_running"]]


def test_blox_starts_what_the_plan_has() -> None:
    gpu_df = frame({0: ("v100", 4)})
    jobs = {1: job(4, 1.0), 2: job(2, 2.0), 3: job(2, 3.0)}
    told = BloxScheduler().schedule(jobs, {}, gpu_df)
    assert told["run_all_jobs"] is False
    assert [job_id for job_id, _ in told["job_order"]] == [2, 3, 1]  # two jobs are worth more than one
    assert all(one is jobs[job_id] for job_id, one in told["job_order"])
    assert place(told["job_order"], gpu_df) == [2, 3]


def test_blox_calls_with_its_states() -> None:
    gpu_df = frame({0: ("v100", 4)})
    jobs = SimpleNamespace(active_jobs={1: job(1)})
    told = BloxScheduler(None).schedule(jobs, SimpleNamespace(server_map={}, gpu_df=gpu_df))
    assert [job_id for job_id, _ in told["job_order"]] == [1]


def test_blox_own_cluster_state_has_no_types() -> None:
    """Its frame has a row for each GPU, without a type (blox/cluster_state.py)."""
    columns = ["GPU_ID", "GPU_UUID", "Local_GPU_ID", "Node_ID", "IP_addr", "IN_USE", "JOB_IDS"]
    rows = [[k, f"uuid{k}", k % 4, k // 4, "127.0.0.1", False, None] for k in range(8)]
    gpu_df = pandas.DataFrame(rows, columns=columns)
    jobs = {k: job(gpus, float(k)) for k, gpus in enumerate((8, 4, 2, 2))}
    scheduler = BloxScheduler()
    for _ in range(2):  # the loop calls twice a round
        told = scheduler.schedule(jobs, {}, gpu_df)
    assert place(told["job_order"], gpu_df) == [1, 2, 3]
    again = scheduler.schedule(jobs, {}, gpu_df)
    assert {job_id for job_id, _ in again["job_order"][:3]} == {1, 2, 3}


def test_what_runs_stays_for_an_equal_one() -> None:
    gpu_df = frame({0: ("v100", 4)})
    jobs = {k: job(4, -float(k)) for k in range(3)}
    scheduler = BloxScheduler()
    running = place(scheduler.schedule(jobs, {}, gpu_df)["job_order"], gpu_df)
    for k in range(10, 14):
        jobs[k] = job(4, -float(k))
    order = scheduler.schedule(jobs, {}, gpu_df)["job_order"]
    assert [order[0][0]] == running


def test_weights_and_speeds() -> None:
    gpu_df = frame({0: ("v100", 2), 1: ("k80", 2)})
    jobs = {1: job(2, throughputs={"v100": 4.0, "k80": 1.0}), 2: job(2, throughputs={"v100": 9.0}), 3: job(2)}
    scheduler = BloxScheduler(weight_of=lambda job_id, one: 5.0 if job_id == 3 else 1.0)
    order = [job_id for job_id, _ in scheduler.schedule(jobs, {}, gpu_df)["job_order"]]
    assert set(order[:2]) == {1, 3}


def test_no_gpus_no_jobs_and_bad_frames() -> None:
    scheduler = BloxScheduler()
    assert scheduler.schedule({}, {}, frame({0: ("v100", 1)}))["job_order"] == []
    assert len(scheduler.schedule({1: job(1)}, {}, frame({}))["job_order"]) == 1
    with pytest.raises(InvalidDataError, match="num_GPUs"):
        scheduler.schedule({1: job(0)}, {}, frame({0: ("v100", 1)}))
    with pytest.raises(InvalidDataError, match="Node_ID"):
        scheduler.schedule({1: job(1)}, {}, pandas.DataFrame({"x": [1]}))
