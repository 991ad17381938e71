"""The service's what-if, the reasons of jobs that wait, and its history."""

from __future__ import annotations

from typing import Any

import pytest
from served import TYPES, Served
from test_scheduler import job

from copter_frontends.replay.what_if.change import WhatIfError
from copter_frontends.replay.what_if.round import values_of
from copter_serve.service.cluster_record import ClusterRecord
from copter_serve.service.cluster_state import ClusterState
from copter_serve.service.delta import Delta
from copter_serve.service.plan_book import PlanBook
from copter_serve.service.policy_names import POLICY_NAMES
from copter_serve.service.problems import Problem
from copter_serve.service.round_history import MOST_POINTS, RoundHistory
from copter_serve.service.scheduler import Scheduler
from copter_serve.service.waiting import MOST_WAITING, waiting_document


def full(policy: str, jobs: int = 12) -> Scheduler:
    """A scheduler of a cluster of 32 GPUs with more jobs than it holds, after a plan."""
    scheduler = Scheduler(ClusterState(ClusterRecord.read({"types": TYPES, "policy": policy})), {}, 0)
    told = {"add_jobs": [job(policy, f"team{k % 3}/job{k}") for k in range(jobs)]}
    scheduler.take(scheduler.state.resolve(Delta.read(told), 1.0))
    scheduler.plan(1.0)
    return scheduler


def test_a_job_that_comes_starts_or_waits() -> None:
    told = full("allocation", jobs=2).what_if("add job probe 4", 61.0)
    assert told["starts"] == ["probe"]
    told = full("sia", jobs=2).what_if("add job probe 4 bert", 61.0)
    assert told["starts"] == ["probe"]
    with pytest.raises(Problem, match="application"):
        full("sia", jobs=2).what_if("add job probe 4", 61.0)


def header_without_times(plan: dict[str, Any]) -> dict[str, Any]:
    left_out = {"round_s", "timings"}
    return {**plan, "header": {name: value for name, value in plan["header"].items() if name not in left_out}}


@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_asking_leaves_the_scheduler_bit_identical(policy: str) -> None:
    asked, silent = full(policy), full(policy)
    before = values_of(asked)
    told = asked.what_if("add 8 a100, remove 4 t4, remove job team0/job0", 61.0)
    assert len(told["waiting"]) == len(told["objective"]) == 2
    assert values_of(asked) == before
    for text in ("add 8 h100", "remove 64 a100", "quota team0 4", "remove job nobody", "nonsense", "add 3 a100"):
        with pytest.raises((WhatIfError, Problem)):
            asked.what_if(text, 61.0)
    assert values_of(asked) == before
    assert header_without_times(asked.plan(61.0)) == header_without_times(silent.plan(61.0))


def test_more_gpus_start_the_jobs_that_wait() -> None:
    scheduler = full("allocation")
    told = scheduler.what_if("add 16 a100", 61.0)
    waiting = {name for name in scheduler.state.jobs if name not in scheduler._sent}
    assert set(told["starts"]) == waiting != set()
    assert told["waiting"] == [len(waiting), 0]
    low, high = told["lp_change"]
    assert 0 < low <= high
    assert told["plan_change"][0] <= told["objective"][1] - told["objective"][0] <= told["plan_change"][1]
    assert "would start" in told["text"]


def test_what_waits_says_for_what() -> None:
    state = ClusterState(ClusterRecord.read({"types": TYPES, "policy": "allocation"}))
    rates = {"a100": {"8": 3.0}}
    jobs = [{"id": f"{team}/job", "throughputs": rates} for team in ("vision", "speech", "late")]
    jobs.append({"id": "huge", "throughputs": {"a100": {"64": 1.0}}})
    state.apply(state.resolve(Delta.read({"add_jobs": jobs}), 1.0))
    book = PlanBook()
    given = {"gpu_type": "a100", "gpus": 8, "nodes": {"a100-0": 8}}
    header = {"version": 1, "sequence": 1, "computed_s": 1.0, "prices": {"a100": 0.3125}, "skipped": {}}
    other = {**given, "nodes": {"a100-1": 8}}
    book.take({"header": header, "set": {"vision/job": given, "speech/job": other}, "stop": []}, state)
    told = waiting_document(state, book)
    assert (told["count"], list(told["jobs"])) == (2, ["late/job", "huge"])
    late = told["jobs"]["late/job"]
    assert late["reason"].startswith("waits for 8 more a100; price 0.312; would fit if ")
    assert late["reason"].endswith(" lent 8")
    assert (late["short"], late["gpu_type"], late["lender"] in ("vision", "speech")) == (8, "a100", True)
    assert told["jobs"]["huge"]["reason"] == "fits nowhere: needs 64 a100 of 16"
    state.apply(state.resolve(Delta.read({"add_jobs": [{"id": "small", "gpus": 2}]}), 2.0))
    assert waiting_document(state, book)["jobs"]["small"]["reason"] == "2 t4 are free: the next plan decides"
    many = [{"id": f"job{k}", "gpus": 16} for k in range(MOST_WAITING + 50)]
    state.apply(state.resolve(Delta.read({"add_jobs": many}), 3.0))
    told = waiting_document(state, book)
    assert (told["count"], len(told["jobs"])) == (MOST_WAITING + 53, MOST_WAITING)
    last = waiting_document(state, book, f"JOB{MOST_WAITING + 49}")  # too late to be sent without a search
    assert (last["count"], last["found"], list(last["jobs"])) == (MOST_WAITING + 53, 1, [f"job{MOST_WAITING + 49}"])
    assert last["jobs"][f"job{MOST_WAITING + 49}"]["starts_in_s"] is None
    named = waiting_document(state, book, "job")
    assert (named["found"], len(named["jobs"])) == (MOST_WAITING + 51, MOST_WAITING)
    assert list(waiting_document(state, book, "fits nowhere")["jobs"]) == ["huge"]
    assert waiting_document(state, book, "nobody")["found"] == 0


def test_the_history_is_bounded_and_keeps_all_of_the_time() -> None:
    history, plans = RoundHistory(), 10_000
    for k in range(plans):
        history.take({"computed_s": 60.0 * k, "round_s": 9.0 if k == 4321 else 1.0, "jobs": 10, "running": 4,
                      "used": {"a100": 8}, "capacity": {"a100": 16}})  # fmt: skip
        assert len(history.points) <= MOST_POINTS
    told = history.document()
    rows = [dict(zip(told["fields"], point, strict=True)) for point in told["points"]]
    assert len(rows) >= MOST_POINTS // 2
    assert (rows[0]["from_s"], rows[-1]["to_s"]) == (0.0, 60.0 * (plans - 1))
    assert sum(row["plans"] for row in rows) == plans
    assert max(row["slowest_round_s"] for row in rows) == 9.0
    assert sum(row["plans"] * row["mean_round_s"] for row in rows) == pytest.approx(plans + 8.0)
    assert {(row["used"], row["capacity"], row["waiting"]) for row in rows} == {(8, 16, 6)}


def test_over_http(service: Served) -> None:
    service.make("asked")
    jobs = [{"id": f"ml/job{k}", "throughputs": {"a100": {"8": 5.0}}} for k in range(5)]
    told = service.delta({"add_jobs": jobs}, "asked")
    plan = service.plan("asked", told["sequence"])
    root = "/v1/clusters/asked"
    status, found, _ = service.ask("GET", f"{root}/what-if?change=add+16+a100")
    assert status == 200
    assert len(found["starts"]) == 2
    assert found["lp_change"][0] > 0
    assert service.ask("GET", f"{root}/plan")[1]["allocations"] == plan["allocations"]
    status, found, _ = service.ask("GET", f"{root}/waiting")
    assert (status, found["count"]) == (200, 3)
    assert all(each["reason"].startswith("waits for 8 more a100") for each in found["jobs"].values())
    status, found, _ = service.ask("GET", f"{root}/history")
    assert (status, len(found["points"]) >= 1) == (200, True)
    for change, code, words in (("add+16+h100", 422, "no GPU type 'h100'"), ("", 422, "is not one of"),
                                ("add+3+a100", 422, "whole nodes"), ("remove+job+x", 409, "no job 'x'"),
                                ("quota+ml+4", 422, "no quotas"), ("a" * 5000, 422, "at most 4000")):  # fmt: skip
        status, found, _ = service.ask("GET", f"{root}/what-if?change={change}")
        assert (status, words in found["detail"]) == (code, True), found


def test_a_quote_over_http(service: Served) -> None:
    service.make("promising", policy="chronus")
    root, job = "/v1/clusters/promising", {"id": "ml/new", "application": "bert", "work": 1000.0}
    service.plan("promising", service.delta({"add_jobs": [{**job, "id": "ml/old"}]}, "promising")["sequence"])
    status, found, _ = service.ask("POST", f"{root}/quote", {**job, "deadlines": [[7200.0, 10.0]]})
    assert (status, found["standing"]) == (200, "guaranteed")
    assert found["quotes"]
    assert service.ask("GET", f"{root}/jobs")[1]["jobs"] == ["ml/old"]
    status, found, _ = service.ask("POST", f"{root}/quote", {**job, "id": "ml/old"})
    assert (status, "ml/old" in found["detail"]) == (409, True), found
    service.make("asked-too")
    assert service.ask("POST", "/v1/clusters/asked-too/quote", job)[0] == 404
