"""The service over real HTTP: deltas, plans, streams, explanations, clusters, metrics, the page."""

from __future__ import annotations

import http.client
import json
import re
import time

import pytest
from served import TYPES, Served, read_events

from copter_serve.service.app import Routes
from copter_serve.service.openapi import openapi_document


def test_a_day_of_a_cluster(service: Served) -> None:
    """Jobs come, are measured, are pinned, go; capacity goes and comes."""
    service.make("day")
    told = service.delta({"add_jobs": [{"id": "a", "throughputs": {"a100": {"8": 9, "4": 5}, "t4": {"4": 1}}}]}, "day")
    assert told["sequence"] == 1
    assert service.plan("day", 1)["allocations"]["a"]["gpus"] == 8
    service.delta({"throughputs": {"a": {"a100": {"8": 0, "4": 5}}}}, "day")
    assert service.plan("day", 2)["allocations"]["a"]["gpus"] == 4
    service.delta({"pins": {"a": {"gpu_type": "t4", "nodes": {"t4-2": 4}}}}, "day")
    plan = service.plan("day", 3)
    assert plan["allocations"]["a"] == {"gpu_type": "t4", "gpus": 4, "nodes": {"t4-2": 4}}
    service.delta({"pins": {"a": None}, "set_capacity": {"a100": 0}}, "day")
    assert service.plan("day", 4)["capacity"] == {"a100": 0, "t4": 16}
    told = service.delta({"remove_jobs": ["a"]}, "day")
    status, now, _ = service.ask("GET", "/v1/clusters/day/plan")
    assert status == 200
    assert now["allocations"] == {}  # at once, before the next plan
    service.delta({"set_capacity": {"a100": 32}, "add_jobs": [{"id": "b", "gpus": 8}]}, "day")
    assert service.plan("day", 6)["allocations"]["b"]["gpus"] == 8


def test_a_delta_is_answered_with_the_plan_in_force(service: Served) -> None:
    service.make("force")
    service.delta({"add_jobs": [{"id": "a"}]}, "force")
    before = service.plan("force", 1)
    status, told, _ = service.ask("POST", "/v1/clusters/force/deltas?plan=1", {"add_jobs": [{"id": "b"}]})
    assert status == 200
    assert told["in_force"]["allocations"].keys() >= before["allocations"].keys()
    assert told["plan"]["version"] >= before["version"]


def test_a_delta_sent_twice_is_done_once(service: Served) -> None:
    service.make("twice")
    first = service.delta({"id": "x1", "add_jobs": [{"id": "a"}]}, "twice")
    again = service.delta({"id": "x1", "add_jobs": [{"id": "a"}]}, "twice")
    assert "repeated" not in first
    assert again["repeated"] is True
    assert again["sequence"] == first["sequence"] == 1
    status, told, _ = service.ask("POST", "/v1/clusters/twice/deltas", {"id": "x1", "add_jobs": [{"id": "b"}]})
    assert (status, told["where"]) == (409, "/id")
    assert "another content" in told["detail"]
    assert service.ask("GET", "/v1/clusters/twice/jobs")[1]["jobs"] == ["a"]


def test_etags(service: Served) -> None:
    service.make("tags")
    service.delta({"add_jobs": [{"id": "a"}]}, "tags")
    service.plan("tags", 1)
    status, _, headers = service.ask("GET", "/v1/clusters/tags/plan")
    tag = headers["etag"]
    status, body, _ = service.ask("GET", "/v1/clusters/tags/plan", headers={"If-None-Match": tag})
    assert (status, body) == (304, b"")
    service.delta({"remove_jobs": ["a"]}, "tags")
    status, _, headers = service.ask("GET", "/v1/clusters/tags/plan", headers={"If-None-Match": tag})
    assert status == 200
    assert headers["etag"] != tag


def test_a_plan_is_waited_for(service: Served) -> None:
    service.make()
    told = service.delta({"add_jobs": [{"id": "a", "gpus": 2}]})
    status, plan, _ = service.ask("GET", "/v1/clusters/c/plan?wait=60")
    assert status == 200
    assert plan["sequence"] >= told["sequence"]
    assert plan["allocations"]["a"]["gpus"] == 2
    begun = time.monotonic()
    again = service.ask("GET", "/v1/clusters/c/plan?wait=60")[1]  # nothing is new: answered at once
    assert again["sequence"] >= told["sequence"]
    assert time.monotonic() - begun < 50.0
    service.make("slow", react_s=0.0)
    early = service.ask("GET", "/v1/clusters/slow/plan?wait=0.001")[1]
    assert early["version"] in (0, 1)
    for wrong in ("-1", "61", "nan", "soon", ""):
        status, problem, _ = service.ask("GET", f"/v1/clusters/c/plan?wait={wrong}")
        assert (status, problem["where"]) == (422, "wait")
    assert service.ask("GET", "/v1/clusters/none/plan?wait=1")[0] == 404


def test_why_right_after_the_first_delta_waits_for_the_process_to_begin(service: Served) -> None:
    service.make("soon")
    service.delta({"add_jobs": [{"id": "ns/1", "throughputs": {"a100": {"8": 8.0, "4": 5.0}}}]}, "soon")
    status, why, _ = service.ask("GET", "/v1/clusters/soon/explain/ns/1")
    assert status == 200, why
    assert why["options"]


def test_jobs_their_allocations_and_why(service: Served) -> None:
    service.make("why")
    jobs = [{"id": f"ns/{k}", "throughputs": {"a100": {"8": 8.0, "4": 5.0}}} for k in range(5)]
    told = service.delta({"add_jobs": jobs}, "why")
    plan = service.plan("why", told["sequence"])
    status, listed, _ = service.ask("GET", "/v1/clusters/why/jobs")
    assert listed == {"jobs": [f"ns/{k}" for k in range(5)], "more": False}
    status, listed, _ = service.ask("GET", "/v1/clusters/why/jobs?after=ns/3")
    assert listed["jobs"] == ["ns/4"]
    status, job, _ = service.ask("GET", "/v1/clusters/why/jobs/ns/1")
    assert status == 200
    assert job["throughputs"] == {"a100": {"8": 8.0, "4": 5.0}}
    status, one, _ = service.ask("GET", "/v1/clusters/why/plan/jobs/ns/1")
    assert one["allocation"] == plan["allocations"].get("ns/1")
    status, why, _ = service.ask("GET", "/v1/clusters/why/explain/ns/1")
    assert status == 200, why
    assert why["prices"]["a100"] == pytest.approx(plan["prices"]["a100"])
    assert {option["usage"]["a100"] for option in why["options"]} == {8.0, 4.0}
    for path in ("jobs/nobody", "plan/jobs/nobody", "explain/nobody"):
        status, problem, _ = service.ask("GET", f"/v1/clusters/why/{path}")
        assert (status, problem["status"]) == (404, 404)


def test_what_the_policy_refuses_is_told_and_tried_again(service: Served) -> None:
    service.make("later", policy="fifo")
    told = service.delta({"add_jobs": [{"id": "big", "gpus": 64}]}, "later")
    plan = service.plan("later", told["sequence"])
    assert "fit on no GPU type" in plan["skipped"]["big"]
    told = service.delta({"set_capacity": {"a100": 64}}, "later")
    assert service.plan("later", told["sequence"])["allocations"]["big"]["gpus"] == 64


def test_streams_of_plans_and_of_changes(service: Served) -> None:
    service.make("stream")
    service.plan("stream")
    connections = [http.client.HTTPConnection(service.host, service.port, timeout=60) for _ in range(2)]
    connections[0].request("GET", "/v1/clusters/stream/plan/stream")
    connections[1].request("GET", "/v1/clusters/stream/plan/stream?mode=changes")
    plans, changes = (each.getresponse() for each in connections)
    assert plans.headers["Content-Type"].startswith("text/event-stream")
    ((kind, _, whole),) = read_events(plans, 1)
    assert (kind, whole["allocations"]) == ("plan", {})
    ((kind, _, _),) = read_events(changes, 1)
    assert kind == "plan"
    service.delta({"add_jobs": [{"id": "a"}]}, "stream")
    ((kind, _, whole),) = read_events(plans, 1)
    assert set(whole["allocations"]) == {"a"}
    ((kind, last, told),) = read_events(changes, 1)
    assert (kind, set(told["set"]), told["stop"]) == ("changes", {"a"}, [])
    assert told["used"][told["set"]["a"]["gpu_type"]] == 1
    connections[1].close()
    service.delta({"remove_jobs": ["a"]}, "stream")
    connections[1].request("GET", "/v1/clusters/stream/plan/stream?mode=changes", headers={"Last-Event-ID": last})
    ((kind, _, told),) = read_events(connections[1].getresponse(), 1)
    assert (kind, told["stop"]) == ("changes", ["a"])  # what it missed, and no more
    for each in connections:
        each.close()


def test_clusters_are_made_once_and_taken_away(service: Served) -> None:
    service.make("once")
    assert service.ask("PUT", "/v1/clusters/once", {"types": TYPES, "react_s": 0.0})[0] == 200
    assert service.ask("PUT", "/v1/clusters/once", {"types": TYPES, "react_s": 9.0})[0] == 409
    for name in (".hidden", "a/b", "x" * 65, "%2e%2e", "a b"):
        assert service.ask("PUT", f"/v1/clusters/{name.replace(' ', '%20')}", {"types": TYPES})[0] in (404, 422, 405)
    assert service.ask("GET", "/v1/clusters/once")[1]["capacity"] == {"a100": 16, "t4": 16}
    assert "once" in [each["id"] for each in service.ask("GET", "/v1/clusters")[1]["clusters"]]
    assert service.ask("DELETE", "/v1/clusters/once")[0] == 204
    assert service.ask("GET", "/v1/clusters/once/plan")[0] == 404
    assert not (service.data / "once").exists()
    service.make("once", round_s=30)


def test_health_readiness_and_metrics(service: Served) -> None:
    service.make("seen")
    service.delta({"add_jobs": [{"id": "a"}]}, "seen")
    service.plan("seen", 1)
    service.wait_ready()
    assert service.ask("GET", "/healthz")[1] == {"status": "ok"}
    text = service.ask("GET", "/metrics")[1].decode()
    assert 'copter_gpus{cluster="seen",gpu_type="a100",state="capacity"} 16.0' in text
    assert 'copter_deltas_total{cluster="seen"} 1.0' in text
    assert 'copter_jobs{cluster="seen",state="running"} 1.0' in text
    assert re.search(r'copter_requests_total\{route="post_delta",status="200"\} \d', text)
    assert re.search(r'copter_round_seconds_count\{cluster="seen"\} [1-9]', text)


def test_the_page_is_whole_and_asks_no_other_host(service: Served) -> None:
    """There may be no browser here: what the page needs is there, its script names what the page has."""
    status, page, headers = service.ask("GET", "/")
    assert status == 200
    assert "default-src 'self'" in headers["content-security-policy"]
    text = page.decode()
    for name in re.findall(r'(?:src|href)="([^"]+)"', text):
        assert name.startswith("/static/")
        assert service.ask("GET", name)[0] == 200
    script = service.ask("GET", "/static/page.js")[1].decode()
    ids = set(re.findall(r'id="([^"]+)"', text))
    assert set(re.findall(r'at\("([^"]+)"\)', script)) <= ids
    for part in (text, script, service.ask("GET", "/static/page.css")[1].decode()):
        assert "http://" not in part.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in part
    assert service.ask("GET", "/static/other.js")[0] == 404
    service.make("paged")
    service.delta({"add_jobs": [{"id": "a"}]}, "paged")
    plan = service.plan("paged", 1)
    for field in set(re.findall(r"plan\.(\w+)", script)):
        assert field in plan, field


def test_the_openapi_document_has_every_route(service: Served) -> None:
    document = openapi_document()
    assert service.ask("GET", "/openapi.json")[1] == json.loads(json.dumps(document))
    routes = {
        (re.sub(r":path", "", route.path), method.lower())
        for route in Routes(None, None, None).listed()  # type: ignore[arg-type]
        for method in (route.methods or set()) - {"HEAD"}
    }
    told = {(path, method) for path, operations in document["paths"].items() for method in operations}
    assert told == routes
    names = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
    assert names <= set(document["components"]["schemas"])


def test_a_scheduler_that_dies_is_started_again(service: Served) -> None:
    """The plan stays in force meanwhile, deltas are taken, and the new process goes on from what jobs hold."""
    service.make("dies")
    told = service.delta({"add_jobs": [{"id": f"j{k}", "gpus": 4} for k in range(6)]}, "dies")
    before = service.plan("dies", told["sequence"])
    children = [int(pid) for pid in _children(service.process.pid)]
    killed = [pid for pid in children if _kill_scheduler(pid)]
    assert killed
    told = service.delta({"add_jobs": [{"id": "late"}]}, "dies")
    assert service.ask("GET", "/v1/clusters/dies/plan")[1]["allocations"] == before["allocations"]
    after = service.plan("dies", told["sequence"])
    assert {job: after["allocations"][job] for job in before["allocations"]} == before["allocations"]
    assert service.ask("GET", "/v1/clusters/dies")[1]["scheduler"]["restarts"] >= 1


def _children(pid: int) -> list[str]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return file.read().split()


def _kill_scheduler(pid: int) -> bool:
    import os
    import signal

    with open(f"/proc/{pid}/cmdline", "rb") as file:
        if b"copter_serve.service.worker" not in file.read():
            return False
    os.kill(pid, signal.SIGKILL)
    time.sleep(0.01)
    return True
