"""The Kueue controller against a small API server: what it writes, what it leaves, and what it says when it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kube_cluster import (
    GROUP,
    FakeApi,
    cluster_queue,
    document,
    local_queue,
    served,
    sharing_teams,
    two_teams,
    workload,
)

pytest.importorskip("kubernetes", reason="the extra `kubernetes`")

from copter_frontends import cli
from copter_serve.kueue_controller.cluster_api import ClusterApi
from copter_serve.kueue_controller.controller import Controller
from copter_serve.kueue_controller.decisions import GATE, decide, rules_of, without_gate
from copter_serve.queues import AdmissionModel, QueueError
from copter_serve.views.documents import BlindError
from copter_serve.views.kueue import BOOST, GATES, kueue_view, read_api

FINAL_FIRST = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
OURS = {"spec": {"controllerName": "copter.io/admission"}}
RESERVED = [{"type": "QuotaReserved", "status": "True", "lastTransitionTime": "2026-11-24T11:00:00Z"}]


@pytest.fixture
def lab() -> Iterator[tuple[FakeApi, str]]:
    """Two teams, and an API server."""
    api = FakeApi(two_teams())
    with served(api) as address:
        yield api, address


def reserved(name: str, gpus: int, queue: str, check: str, **more: Any) -> dict[str, Any]:
    found = workload(name, gpus, admitted=queue, **more)
    found["status"]["conditions"] = RESERVED
    found["status"]["admissionChecks"] = [{"name": check, "state": "Pending", "message": ""}]
    return found


def notes(api: FakeApi, name: str, kind: str = "Workload") -> dict[str, str]:
    return dict(api.find(kind, name)["metadata"].get("annotations") or {})


def test_the_plans_workloads_are_boosted_over_older_ones_and_written_once(lab: tuple[FakeApi, str]) -> None:
    api, address = lab
    api.documents += [workload("b/old", 6), workload("b/young", 2)]
    api.find("Workload", "b/young")["metadata"]["creationTimestamp"] = "2026-11-24T12:00:00Z"
    controller = Controller(ClusterApi(address))
    written = controller.step()
    assert controller.decisions.admitted == {"b/small", "b/young"}
    assert {(each.name, each.value) for each in written if each.what == "boost"} == {("b/small", "1"), ("b/young", "1")}
    assert notes(api, "b/small")[BOOST] == "1"
    assert BOOST not in notes(api, "b/old")
    assert controller.step() == []  # what stands is not written again
    api.documents.remove(api.find("Workload", "b/old"))
    assert {(each.name, each.value) for each in controller.step()} == {("b/young", "0"), ("b/small", "0")}


def test_boosts_of_others_are_left_alone_and_none_reaches_the_next_priority(lab: tuple[FakeApi, str]) -> None:
    api, address = lab
    api.find("Workload", "b/small")["metadata"]["annotations"] = {BOOST: "-7"}
    assert Controller(ClusterApi(address), ["boost"]).step() == []
    api.documents += [workload("b/first", 6, priority=4), workload("b/then", 2, priority=4)]
    assert Controller(ClusterApi(address), ["boost"]).step() == []  # 4 + 1 is b/own's priority


def test_a_gate_opens_at_the_owner_and_other_gates_stay(lab: tuple[FakeApi, str]) -> None:
    api, address = lab
    job = document("Job", "b/job", {}) | {"apiVersion": "batch/v1"}
    job["metadata"]["annotations"] = {GATES: f"example.com/other,{GATE}"}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "controller": True}
    api.documents += [job]
    small = api.find("Workload", "b/small")["metadata"]
    small |= {"annotations": {GATES: GATE}, "ownerReferences": [owner]}
    api.find("Workload", "b/own")["metadata"]["annotations"] = {GATES: GATE}
    (written,) = Controller(ClusterApi(address), ["gates"]).step()
    assert (written.what, written.name, written.value) == ("gate", "b/job", "example.com/other")
    assert notes(api, "b/job", "Job") == {GATES: "example.com/other"}
    assert notes(api, "b/own") == {GATES: GATE}  # it does not fit, and may stop nobody
    assert without_gate(f" {GATE} ") is None


def test_a_gate_opens_for_a_workload_that_kueue_lets_reclaim(lab: tuple[FakeApi, str]) -> None:
    api, address = lab
    api.find("ClusterQueue", "blue")["spec"]["preemption"] = {"reclaimWithinCohort": "Any"}
    api.find("Workload", "b/own")["metadata"]["annotations"] = {GATES: GATE}
    controller = Controller(ClusterApi(address), ["gates"])
    assert [each.name for each in controller.step()] == []  # b/small took 2 of its own 8: it would have to borrow
    api.documents.remove(api.find("Workload", "b/small"))
    assert [each.name for each in controller.step()] == ["b/own"]
    assert controller.decisions.stopping == {"b/own": ["r/big"]}
    assert controller.decisions.value == 8 * 2 - 12 * 1  # units by rank of priority
    assert controller.decisions.bound >= controller.decisions.value
    assert GATES not in notes(api, "b/own")


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_checks_are_active_and_answered(version: str) -> None:
    api = FakeApi([*two_teams(version), document("AdmissionCheck", "copter", OURS["spec"], version)], (version,))
    api.documents += [reserved("b/asks", 2, "blue", "copter", version=version)]
    api.documents += [reserved("b/foreign", 1, "blue", "other", version=version)]
    with served(api) as address:
        controller = Controller(ClusterApi(address), ["checks"])
        assert {each.what for each in controller.step()} == {"check active", "check"}
        assert controller.step() == []
    (active,) = api.find("AdmissionCheck", "copter")["status"]["conditions"]
    assert (active["type"], active["status"]) == ("Active", "True")
    assert api.find("Workload", "b/asks")["status"]["admissionChecks"][0]["state"] == "Ready"
    assert api.find("Workload", "b/foreign")["status"]["admissionChecks"][0]["state"] == "Pending"


def test_a_check_is_sent_back_where_its_quota_goes_to_a_higher_priority() -> None:
    rules = {"withinClusterQueue": "LowerPriority"}
    api = FakeApi(
        [
            cluster_queue("red", 8, preemption=rules), local_queue("r/main", "red"),
            document("AdmissionCheck", "copter", OURS["spec"]), reserved("r/low", 8, "red", "copter"),
            workload("r/high", 8, priority=9),
        ]
    )  # fmt: skip
    with served(api) as address:
        Controller(ClusterApi(address), ["checks"]).step()
    assert api.find("Workload", "r/low")["status"]["admissionChecks"][0]["state"] == "Retry"


def test_worker_clusters_are_nominated_by_what_they_have_free() -> None:
    def worker(nominal: int) -> FakeApi:
        return FakeApi([cluster_queue("red", nominal), local_queue("r/main", "red")])

    check = document("AdmissionCheck", "mk", {"controllerName": f"{GROUP}/multikueue", "parameters": {"name": "all"}})
    manager = FakeApi(
        [
            cluster_queue("red", 100), local_queue("r/main", "red"), check,
            document("MultiKueueConfig", "all", {"clusters": ["east", "west", "lost"]}),
            *(reserved(f"r/{size}", size, "red", "mk") for size in (8, 6, 3, 5)),
        ]
    )  # fmt: skip
    with served(manager) as address, served(worker(8)) as east, served(worker(9)) as west:
        apis = {"east": ClusterApi(east), "west": ClusterApi(west), "lost": ClusterApi("http://127.0.0.1:9")}
        workers = {name: (lambda api=api: kueue_view(read_api(api))) for name, api in apis.items()}
        Controller(ClusterApi(address), ["dispatch"], workers).step()
    found = {
        size: manager.find("Workload", f"r/{size}")["status"].get("nominatedClusterNames") for size in (8, 6, 3, 5)
    }
    placed = {size: clusters[0] for size, clusters in found.items() if clusters}
    assert sum(placed) >= 14  # of the 17 that both have
    for cluster, nominal in (("east", 8), ("west", 9)):
        assert sum(size for size, first in placed.items() if first == cluster) <= nominal
    assert "lost" not in {cluster for clusters in found.values() for cluster in clusters or ()}
    assert found[8] is not None
    assert set(found[8]) == {"east", "west"}


def test_nothing_is_written_in_a_dry_run_or_over_what_another_changed(lab: tuple[FakeApi, str]) -> None:
    api, address = lab
    api.documents += [workload("b/old", 6)]
    dry = Controller(ClusterApi(address), dry=True).step()
    assert [each.name for each in dry] == ["b/small"]
    assert api.patches == []

    class Slow(ClusterApi):
        def patch(self, *given: Any, **more: Any) -> bool:
            api.find("Workload", "b/small")["metadata"]["resourceVersion"] = "77"
            return super().patch(*given, **more)

    (late,) = Controller(Slow(address)).step()
    assert not late.done
    assert api.patches == []


def test_a_cluster_that_cannot_be_read_is_left_as_it_is(lab: tuple[FakeApi, str]) -> None:
    api, address = lab
    controller = Controller(ClusterApi(address))
    api.broken = True
    with pytest.raises(BlindError, match="answers 503"):
        controller.step()
    api.broken = False
    api.find("ClusterQueue", "red")["spec"]["preemption"] = {"withinClusterQueue": "Always"}
    with pytest.raises(QueueError, match="ClusterQueue red: preemption: within is 'Always'"):
        controller.step()
    assert api.patches == []


def test_the_command(capsys: pytest.CaptureFixture[str], lab: tuple[FakeApi, str]) -> None:
    api, address = lab
    api.documents += [workload("b/old", 6)]
    with pytest.raises(SystemExit) as ended:
        cli.main(["kueue-controller", "--address", address, "--steps", "1", "--write", "boost"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == "wrote: boost of b/small: 1\n"
    with pytest.raises(SystemExit) as ended:
        cli.main(["kueue-controller", "--address", "http://127.0.0.1:9", "--steps", "2", "--every", "0.01"])
    assert ended.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "wrote nothing: http://127.0.0.1:9: the API server is out of reach" in line
    with pytest.raises(SystemExit) as ended:
        cli.main(["kueue-controller", "--worker", "east"])
    assert ended.value.code == 2


def test_the_command_says_that_there_is_nothing_to_write(capsys: pytest.CaptureFixture[str]) -> None:
    documents = two_teams()
    with served(FakeApi(documents)) as address:
        for more in (["--dry-run"], ["--write", "all"], []):
            with pytest.raises(SystemExit) as ended:
                cli.main(["kueue-controller", "--address", address, "--steps", "3", "--every", "0.01", *more])
            assert ended.value.code == 0
            told = capsys.readouterr()
            assert told.out == ""
            assert told.err == "copter: nothing to write: 2 workloads waiting, the plan admits 1\n"


@pytest.mark.parametrize(("weight", "stops"), [(1, 2), (3, 3)])
def test_with_fair_sharing_a_borrower_stops_who_has_the_larger_share(weight: int, stops: int) -> None:
    documents = sharing_teams(blue=weight)
    documents += [workload("r/x", 2, admitted="red", priority=5), workload("b/own", 4, admitted="blue")]
    view = kueue_view(documents)
    decisions = decide(view, AdmissionModel(view.tree), rules_of(documents))
    assert decisions.admitted == set()
    assert len(decisions.stopped) == stops
    assert {name.partition("/")[0] for name in decisions.stopped} == {"r"}
    assert decisions.value <= decisions.bound + 1e-6


def test_the_strategies_of_kueues_configuration_decide_who_is_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    documents = [each for each in sharing_teams() if each["kind"] != "Workload"]
    documents += [workload("r/large", 8, admitted="red"), workload("r/small", 4, admitted="red", priority=5)]
    documents += [workload("b/has", 4, admitted="blue"), workload("b/asks", 2)]
    view = kueue_view(documents)
    for strategies, stops in ((("LessThanInitialShare",), {"r/large"}), (FINAL_FIRST, {"r/small"})):
        assert decide(view, AdmissionModel(view.tree), rules_of(documents), strategies).stopped == stops
    with served(FakeApi(documents)) as address:
        given = ["--address", address, "--steps", "1"]
        with pytest.raises(SystemExit) as ended:
            cli.main(["kueue-controller", *given, *(f"--strategy={each}" for each in FINAL_FIRST[::-1])])
    assert ended.value.code == 2
    assert "Kueue accepts LessThanOrEqualToFinalShare, LessThanInitialShare or" in capsys.readouterr().err


def test_a_workload_stops_others_on_a_later_flavor_if_it_cannot_on_the_first() -> None:
    queue = cluster_queue("red", 4, preemption={"withinClusterQueue": "LowerPriority"})
    flavors = queue["spec"]["resourceGroups"][0]["flavors"]
    flavors.append({"name": "h100", "resources": [{"name": flavors[0]["resources"][0]["name"], "nominalQuota": "4"}]})
    high, low = (workload(f"r/{name}", 4, admitted="red", priority=at) for name, at in (("high", 9), ("low", 0)))
    low["status"]["admission"]["podSetAssignments"][0]["flavors"] = dict.fromkeys(
        low["status"]["admission"]["podSetAssignments"][0]["flavors"], "h100"
    )
    documents = [queue, local_queue("r/main", "red"), high, low, workload("r/mid", 4, priority=5)]
    view = kueue_view(documents)
    decisions = decide(view, AdmissionModel(view.tree), rules_of(documents))
    assert decisions.stopping == {"r/mid": ["r/low"]}
    assert decisions.value <= decisions.bound + 1e-6
