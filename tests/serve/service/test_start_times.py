"""The service's estimates of when waiting jobs start, from a plan, and what a change does to them."""

from __future__ import annotations

from typing import Any

import pytest
from served import TYPES, Served
from test_what_if_served import full

from copter_serve.service.cluster_record import ClusterRecord
from copter_serve.service.cluster_state import ClusterState
from copter_serve.service.delta import Delta
from copter_serve.service.plan_book import PlanBook
from copter_serve.service.start_times import MOST_ESTIMATED, seconds_left, starts_of
from copter_serve.service.waiting import waiting_document


def state_of(*jobs: dict[str, Any]) -> ClusterState:
    """A cluster of 16 a100 and 16 t4 with these jobs."""
    state = ClusterState(ClusterRecord.read({"types": TYPES, "policy": "allocation"}))
    state.apply(state.resolve(Delta.read({"add_jobs": list(jobs)}), 1.0))
    return state


def job(name: str, gpus: int, rate: float, work: float | None, **more: Any) -> dict[str, Any]:
    told = {"id": name, "throughputs": {"a100": {str(gpus): rate}}, **more}
    return told if work is None else {**told, "work": work}


def test_a_waiting_job_starts_when_what_it_needs_is_given_back() -> None:
    state = state_of(
        job("runs", 8, 2.0, 400.0, progress=0.25),  # 300 units left at 2 a second: 150 s
        job("runs/on", 8, 1.0, 1000.0),
        job("wide", 16, 4.0, 40.0),  # at 1000 s
        job("fits", 8, 1.0, 850.0),  # from 150 s to 1000 s: delays nothing
        job("late", 8, 1.0, 851.0),  # would delay the wide one
    )
    assert TYPES["a100"] == {"nodes": 2, "gpus_per_node": 8} or state.capacity()["a100"] == 16
    held = {"runs": {"a100": 8}, "runs/on": {"a100": 8}}
    found = starts_of(state, held)
    assert {name: (each.start_s, each.backfills) for name, each in found.items() if each is not None} == {
        "wide": (1000.0, False),
        "fits": (150.0, True),
        "late": (1010.0, False),
    }


def test_without_work_an_end_is_not_known() -> None:
    state = state_of(job("runs", 16, 2.0, None), job("waits", 8, 1.0, 10.0), {"id": "bare", "gpus": 2})
    assert seconds_left(state.jobs["runs"], "a100", 16) == float("inf")
    assert seconds_left(state.jobs["waits"], "a100", 4) == float("inf")  # no rate for this size
    found = starts_of(state, {"runs": {"a100": 16}})
    assert found["waits"] is None
    assert found["bare"] is not None
    assert (found["bare"].choice.kind, found["bare"].start_s) == ("t4", 0.0)


def test_a_job_that_has_just_gone_gives_back_what_it_had() -> None:
    found = starts_of(state_of(job("waits", 16, 1.0, 10.0)), {"gone": {"a100": 16}})["waits"]
    assert found is not None
    assert found.start_s == 0.0


def test_the_document_says_when_on_what_and_what_it_assumes() -> None:
    state, book = state_of(job("runs", 16, 2.0, 200.0), job("waits", 8, 1.0, 10.0)), PlanBook()
    given = {"gpu_type": "a100", "gpus": 16, "nodes": {"a100-0": 8, "a100-1": 8}}
    header = {"version": 1, "sequence": 1, "computed_s": 1.0, "prices": {}, "skipped": {}}
    book.take({"header": header, "set": {"runs": given}, "stop": []}, state)
    told = waiting_document(state, book)
    waits = told["jobs"]["waits"]
    assert (waits["starts_in_s"], waits["starts_on"], waits["backfills"]) == (
        100.0,
        {"gpu_type": "a100", "gpus": 8},
        False,
    )
    assert "backfill" in told["assumed"]
    many = state_of(*(job(f"job{k}", 8, 1.0, 10.0) for k in range(MOST_ESTIMATED + 20)))
    found = starts_of(many, {})
    assert len(found) == MOST_ESTIMATED
    assert [each.start_s for each in found.values() if each] == [10.0 * (k // 2) for k in range(MOST_ESTIMATED)]


def test_what_if_tells_whose_start_a_change_moves() -> None:
    scheduler = full("allocation")
    known = {"change_jobs": [], "remove_jobs": list(scheduler.state.jobs)}
    known["add_jobs"] = [job(f"team/job{k}", 8, 1.0, 100.0 * (k + 1)) for k in range(6)]
    scheduler.take(scheduler.state.resolve(Delta.read(known), 2.0))
    scheduler.plan(2.0)
    told = scheduler.what_if("add 8 a100", 61.0)
    waits = told["waits"]
    assert waits["sooner"] >= 1
    assert waits["later"] == 0
    assert all(then is None or now < then for then, now in waits["jobs"].values())
    assert {name for name, (_, now) in waits["jobs"].items() if now == 0.0} >= set(told["starts"])
    assert "estimated starts:" in told["text"]
    assert "assumes that running jobs keep" in told["text"]
    none = scheduler.what_if("add 8 t4", 61.0)
    assert none["waits"]["jobs"] == {}
    assert "estimated" not in none["text"]


@pytest.mark.slow
def test_over_http(service: Served) -> None:
    service.make("estimated")
    jobs = [job(f"ml/job{k}", 8, 5.0, 500.0) for k in range(4)]
    told = service.delta({"add_jobs": jobs}, "estimated")
    service.plan("estimated", told["sequence"])
    status, found, _ = service.ask("GET", "/v1/clusters/estimated/waiting")
    assert status == 200
    assert [each["starts_in_s"] for each in found["jobs"].values()] == [100.0, 100.0]
