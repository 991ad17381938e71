"""Other schedulers' documents as views of their clusters, and documents that cannot be."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from kube_cluster import (
    GPU,
    Document,
    FakeApi,
    cluster_queue,
    document,
    group,
    local_queue,
    node,
    pod,
    served,
    sharing_teams,
    two_teams,
    workload,
)  # fmt: skip

from copter_serve.queues import QueueError, QuotaError
from copter_serve.views import ClusterView, ViewError
from copter_serve.views.documents import Api, BlindError, file_documents
from copter_serve.views.kueue import kueue_view, read_api
from copter_serve.views.pod_groups import kai_kinds, pod_group_view, volcano_file
from copter_serve.views.slurm import slurm_view

A100 = ("a100", GPU)


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_kueues_versions_give_the_same_view(version: str) -> None:
    view = kueue_view(two_teams(version))
    assert (view.resource, view.quota(), view.used(), view.skipped) == (GPU, 16.0, 12.0, [])
    assert {job.id: job.running for job in view.jobs} == {"r/big": True, "b/own": False, "b/small": False}
    assert view.tree.available("blue", A100) == 4.0


def test_an_evicted_workload_holds_its_quota_until_it_is_gone() -> None:
    documents = two_teams()
    (big,) = (each for each in documents if each["metadata"]["name"] == "big")
    big["status"]["conditions"].append({"type": "Evicted", "status": "True", "reason": "Preempted"})
    view = kueue_view(documents)
    assert {job.id: job.evicted for job in view.jobs} == {"r/big": True, "b/own": False, "b/small": False}
    assert view.used() == 12.0


def test_an_api_server_gives_what_a_file_gives(tmp_path: Path) -> None:
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": two_teams()}))
    with served(FakeApi(two_teams(), ("v1alpha1", "v1beta1"))) as address:
        by_api = kueue_view(read_api(Api(address)))
    by_file = kueue_view(file_documents(str(path)))
    assert by_api.jobs == by_file.jobs
    assert by_api.quota() == by_file.quota()


def test_flavors_in_the_order_of_the_queue_and_by_node_selector() -> None:
    queue = cluster_queue("red", 8)
    flavors = queue["spec"]["resourceGroups"][0]["flavors"]
    flavors.append({"name": "h100", "resources": [{"name": GPU, "nominalQuota": 4}]})
    labels = [document("ResourceFlavor", name, {"nodeLabels": {"type": name}}) for name in ("a100", "h100")]
    free, chosen = workload("r/free", 2), workload("r/chosen", 2)
    chosen["spec"]["podSets"][0]["template"]["spec"]["nodeSelector"] = {"type": "h100"}
    view = kueue_view([queue, local_queue("r/main", "red"), *labels, free, chosen])
    assert [job.options for job in view.jobs] == [({A100: 2.0}, {("h100", GPU): 2.0}), ({("h100", GPU): 2.0},)]


def test_what_a_workload_waits_for_is_said() -> None:
    gated = workload("r/gated", 1, annotations={"kueue.x-k8s.io/admission-gated-by": "example.com/a"})
    stopped = workload("r/stopped", 1, active=False)
    foreign = workload("r/foreign", 1)
    foreign["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"]["requests"] = {
        "example.com/fpga": 1
    }
    boosted = workload("r/boosted", 1, priority=3, annotations={"kueue.x-k8s.io/priority-boost": "-5"})
    ended = workload("r/ended", 1, status={"conditions": [{"type": "Finished", "status": "True"}]})
    view = kueue_view([cluster_queue("red", 8), local_queue("r/main", "red"), gated, stopped, foreign, boosted, ended])
    assert {job.id: (job.held, job.priority) for job in view.jobs} == {
        "r/gated": ("gated by example.com/a", 0),
        "r/stopped": ("it is not active", 0),
        "r/foreign": ("no flavor of its queue fits it", 0),
        "r/boosted": ("", -2),
    }


def broken(change: Any) -> list[Document]:
    found = two_teams()
    change({each["metadata"]["name"]: each for each in found if each["kind"] in ("ClusterQueue", "Workload")})
    return found


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        (lambda by: by["red"].update(apiVersion="kueue.x-k8s.io/v3"), ViewError, "ClusterQueue red: version 'v3'"),
        (
            lambda by: by["red"]["spec"].pop("cohortName") and _limit(by, "borrowingLimit", 4),
            QuotaError,
            "needs a cohort",
        ),
        (lambda by: _limit(by, "nominalQuota", "-3"), QueueError, "ClusterQueue red.*-3"),
        (lambda by: _limit(by, "lendingLimit", "many"), QueueError, "lendingLimit: 'many' is not a quantity"),
        (lambda by: by["red"]["metadata"].update(name="blue"), QuotaError, "queue 'blue' is described twice"),
    ],
)
def test_queues_that_cannot_be_are_one_line(change: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        kueue_view(broken(change))


def _limit(by: dict[str, Document], name: str, value: Any) -> None:
    by["red"]["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0][name] = value


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda by: by["own"].update(apiVersion="kueue.x-k8s.io/v1alpha9"), "version 'v1alpha9' of kueue.x-k8s.io"),
        (lambda by: by["own"]["metadata"].update(creationTimestamp="soon"), "'soon' is no time"),
        (lambda by: by["own"]["spec"].update(podSets=None), "podSets is missing"),
        (lambda by: by["own"]["spec"].update(queueName="nowhere"), "leads to no ClusterQueue"),
        (
            lambda by: by["own"]["metadata"].update(annotations={"kueue.x-k8s.io/priority-boost": "x"}),
            "no whole number",
        ),
    ],
)
def test_a_workload_that_cannot_be_is_left_out_with_a_line(change: Any, says: str) -> None:
    view = kueue_view(broken(change))
    assert len(view.jobs) == 2
    (line,) = view.skipped
    assert says in line


def test_an_api_server_that_is_not_there_or_answers_nonsense() -> None:
    with pytest.raises(BlindError, match="out of reach"):
        read_api(Api("http://127.0.0.1:9"))
    with served(FakeApi([], ("v7",))) as address, pytest.raises(BlindError, match="served as v7, v7; v1beta2"):
        read_api(Api(address))
    api = FakeApi([])
    api.broken = True
    with served(api) as address, pytest.raises(BlindError, match="answers 503"):
        read_api(Api(address))


# Slurm ----------------------------------------------------------------------------------------------------------------

SINFO: Any = {
    "sinfo": [
        {"partition": {"name": "gpu"}, "nodes": {"nodes": ["n1", "n2"]}, "node": {"state": ["MIXED"]},
         "cpus": {"maximum": 64, "total": 128}, "gres": {"total": "gpu:a100:8(S:0-1)"}},
        {"partition": {"name": "gpu"}, "nodes": {"nodes": ["n3"]}, "node": {"state": ["DOWN"]},
         "cpus": {"maximum": 64, "total": 64}, "gres": {"total": "gpu:a100:8"}},
        {"partition": {"name": "short"}, "nodes": {"nodes": ["n2"]}, "node": {"state": ["IDLE"]},
         "cpus": {"maximum": 64, "total": 64}, "gres": {"total": "gpu:8"}},
    ]
}  # fmt: skip


def slurm_job(number: int, gpus: int, state: str = "PENDING", partition: str = "gpu", **more: Any) -> Document:
    tres = f"cpu=8,mem=64G,node=1,billing=8,gres/gpu={gpus}"
    time = {"set": True, "infinite": False, "number": 1764000000 + number}
    return {
        "job_id": number, "job_state": [state], "partition": partition, "tres_req_str": tres, "submit_time": time,
        "start_time": time, "node_count": {"set": True, "number": 1}, "priority": {"set": True, "number": 10},
    } | more  # fmt: skip


def slurm(tmp_path: Path, jobs: list[Any], info: Any = SINFO) -> ClusterView:
    paths = [str(tmp_path / name) for name in ("squeue.json", "sinfo.json")]
    for path, found in zip(paths, ({"jobs": jobs}, info), strict=True):
        Path(path).write_text(json.dumps(found))
    return slurm_view(*paths)


def test_slurms_partitions_that_share_nodes_share_their_gpus(tmp_path: Path) -> None:
    view = slurm(tmp_path, [slurm_job(1, 6, "RUNNING"), slurm_job(2, 4, partition="short"), slurm_job(3, 1, "FAILED")])
    assert (view.resource, view.quota(), view.used(), view.skipped) == ("gres/gpu", 16.0, 6.0, [])
    assert view.tree.available("short", ("slurm", "gres/gpu")) == 8.0
    assert view.tree.available("gpu", ("slurm", "gres/gpu")) == 10.0
    old = slurm_job(4, 2, job_state="PENDING", submit_time=1764000004, priority=7)
    assert slurm(tmp_path, [old]).jobs[0].priority == 7


@pytest.mark.parametrize("name", ["job_state", "job_id", "submit_time", "tres_req_str", "partition"])
def test_a_slurm_job_with_a_field_missing_is_left_out_with_a_line(tmp_path: Path, name: str) -> None:
    lame = slurm_job(1, 6)
    del lame[name]
    view = slurm(tmp_path, [lame, slurm_job(2, 4)])
    assert [job.id for job in view.jobs] == ["2"]
    assert len(view.skipped) == 1
    assert name in view.skipped[0]


def test_tasks_of_an_array_are_jobs_of_their_own_up_to_their_limit(tmp_path: Path) -> None:
    limit = {"set": True, "infinite": False, "number": 2}
    view = slurm(
        tmp_path,
        [
            slurm_job(1, 1, array_job_id=limit, array_task_string="4-6,9", array_max_tasks=limit),
            slurm_job(2, 1, array_task_string="7%1", array_max_tasks={"set": False, "number": 0}),
            slurm_job(3, 1, "RUNNING", array_task_string=""),
        ],
    )
    limited = "JobArrayTaskLimit"
    assert {job.id: job.held for job in view.jobs} == {
        "1_4": "", "1_5": "", "1_6": limited, "1_9": limited, "2_7": "", "3": "",
    }  # fmt: skip


def test_an_array_of_very_many_tasks_is_cut(tmp_path: Path) -> None:
    jobs = [slurm_job(1, 1, array_task_string="0-4000000"), slurm_job(2, 1, array_task_string="3,...")]
    view = slurm(tmp_path, jobs)
    assert len(view.jobs) == 1001
    assert view.skipped == [
        "Slurm job 1: only 1000 waiting tasks of its array are read",
        "Slurm job 2: only 1 waiting tasks of its array are read",
    ]


@pytest.mark.parametrize(
    ("more", "gpus"),
    [
        ({"tres_req_str": "cpu=8,node=2", "tres_per_node": "gres/gpu:a100:2", "node_count": {"number": 2}}, 4.0),
        ({"tres_req_str": "cpu=8", "tres_per_task": "gres:gpu:1", "tasks": {"set": True, "number": 3}}, 3.0),
        ({"tres_req_str": "cpu=8", "tres_per_task": "cpu=2,gres/gpu:1", "tasks": {"set": True, "number": 3}}, 3.0),
        ({"tres_req_str": "cpu=8", "tres_per_job": "gres/gpu=5"}, 5.0),
        ({"tres_req_str": "cpu=8,gres/gpu:a100=2,gres/gpu:h100=1"}, 3.0),
        ({"tres_req_str": "cpu=8,gres/gpu=2,gres/gpu:a100=2"}, 2.0),
        ({"tres_alloc_str": "cpu=8", "job_state": ["RUNNING"], "gres_detail": ["gpu:a100:2(IDX:0-1)", "gpu:1"]}, 3.0),
        ({"tres_req_str": "cpu=8"}, 0.0),
    ],
)
def test_gpus_that_slurms_accounting_does_not_track(tmp_path: Path, more: Document, gpus: float) -> None:
    job = slurm(tmp_path, [slurm_job(1, 1, **more)]).jobs[0]
    assert job.options[0].get(("slurm", "gres/gpu"), 0.0) == gpus


def test_a_job_that_completes_keeps_its_nodes_and_limits_hold_others(tmp_path: Path) -> None:
    jobs = [
        slurm_job(1, 6, job_state=["CANCELLED", "COMPLETING"]),
        slurm_job(2, 1, state_reason="QOSMaxGRESPerUser"),
        slurm_job(3, 1, state_reason="Priority"),
        slurm_job(4, 1, job_state=["COMPLETED"]),
    ]
    view = slurm(tmp_path, jobs)
    assert view.used() == 6.0
    assert {job.id: job.held for job in view.jobs} == {"1": "", "2": "QOSMaxGRESPerUser", "3": ""}


def test_nodes_in_short_form(tmp_path: Path) -> None:
    each: Any = {"partition": {"name": "gpu"}, "node": {"state": ["IDLE"]}, "cpus": {"maximum": 4}}
    info = {
        "sinfo": [each | {"nodes": {"nodes": ["n[08-10,12]", "m1"]}, "gres": {"total": "tmp:7T,gpu:l40s:4(S:0-1)"}}]
    }
    assert slurm(tmp_path, [], info).quota() == 20.0
    each["nodes"] = {"nodes": ["n[1-2]x[03-04]y"]}
    two = slurm(tmp_path, [], {"sinfo": [each | {"gres": {"total": "gpu:2"}}]})
    assert sorted(two.nodes) == ["n1x03y", "n1x04y", "n2x03y", "n2x04y"]
    each["nodes"] = {"nodes": ["n[1-2"]}
    with pytest.raises(ViewError, match=r"the host list 'n\[1-2' cannot be read: give what `sinfo -N --json`"):
        slurm(tmp_path, [], {"sinfo": [each]})


def test_slurms_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ViewError, match=r"sinfo\[0\]: partition.name or nodes.nodes is missing"):
        slurm(tmp_path, [], {"sinfo": [{}]})
    with pytest.raises(ViewError, match="has no list 'sinfo' or 'nodes'; give what `sinfo --json` prints"):
        slurm(tmp_path, [], {"jobs": []})
    (tmp_path / "sinfo.json").write_text("{")
    with pytest.raises(BlindError, match="is no JSON"):
        slurm_view(str(tmp_path / "squeue.json"), str(tmp_path / "sinfo.json"))


# Volcano and KAI ------------------------------------------------------------------------------------------------------


def volcano(tmp_path: Path, *more: Document, version: str = "v1beta1") -> ClusterView:
    api = f"scheduling.volcano.sh/{version}"
    note = "scheduling.k8s.io/group-name"
    queues = [
        {"kind": "Queue", "apiVersion": api, "metadata": {"name": name}, "spec": spec}
        for name, spec in (
            ("red", {"capability": {GPU: 10}}),
            ("blue", {"guarantee": {"resource": {GPU: 6}}}),
        )
    ]
    found = [*queues, node("n1", 8), node("n2", 8), group("a", "red", api), group("b", "blue", api),
             pod("a-0", "a", 4, "n1", note), pod("a-1", "a", 4, "n2", note), pod("b-0", "b", 6, None, note),
             *more]  # fmt: skip
    path = tmp_path / "volcano.json"
    path.write_text(json.dumps(found))
    return pod_group_view("volcano", volcano_file(str(path)))


def test_volcanos_queues_keep_what_is_guaranteed_and_stay_below_their_capability(tmp_path: Path) -> None:
    view = volcano(tmp_path)
    assert (view.resource, view.quota(), view.used()) == (GPU, 16.0, 8.0)
    assert view.tree.available("red", ("node", GPU)) == 2.0
    assert view.tree.available("blue", ("node", GPU)) == 8.0
    assert {job.id: job.running for job in view.jobs} == {"ns/a": True, "ns/b": False}
    assert {name: node.free[GPU] for name, node in view.nodes.items()} == {"n1": 4.0, "n2": 4.0}


def test_volcanos_bad_documents(tmp_path: Path) -> None:
    with pytest.raises(ViewError, match="Queue of version 'v2'; v1beta1 is read"):
        volcano(tmp_path, version="v2")
    api = "scheduling.volcano.sh/v1beta1"
    with pytest.raises(ViewError, match="queues keep 26 and the cluster has 16"):
        volcano(
            tmp_path,
            {
                "kind": "Queue",
                "apiVersion": api,
                "metadata": {"name": "x"},
                "spec": {"guarantee": {"resource": {GPU: 20}}},
            },
        )
    view = volcano(tmp_path, group("c", "gone", api), group("d", "red", api))
    assert [line.split(": ")[0] for line in view.skipped] == ["PodGroup c", "PodGroup d"]


def test_kais_snapshot_zipped_and_plain() -> None:
    api = "scheduling.run.ai/v2"
    queues = [
        {
            "metadata": {"name": name},
            "spec": {"parentQueue": parent, "resources": {"gpu": {"quota": 4, "limit": limit}}},
        }
        for name, parent, limit in (("lab", None, 12), ("red", "lab", -1), ("blue", "lab", 6))
    ]
    raw = {
        "queues": queues, "nodes": [node("n1", 8), node("n2", 8)],
        "podGroups": [group("a", "red", api), group("b", "blue", api)],
        "pods": [pod("a-0", "a", 8, "n1"), pod("b-0", "b", 4)],
    }  # fmt: skip
    plain = json.dumps({"config": {}, "rawObjects": raw}).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("snapshot.json", plain)
    for data in (plain, packed.getvalue()):
        view = pod_group_view("kai", kai_kinds("here", data))
        assert (view.quota(), view.used()) == (16.0, 8.0)
        assert view.tree.available("blue", ("node", GPU)) == 4.0  # of the lab's 12
    for data, says in ((b"PK\x03\x04", "damaged zip"), (b"{}", "has no rawObjects"), (b"<", "is no JSON")):
        with pytest.raises(ViewError, match=says):
            kai_kinds("here", data)
    with pytest.raises(ViewError, match="there is no Node"):
        pod_group_view("kai", kai_kinds("here", json.dumps({"rawObjects": raw | {"nodes": []}}).encode()))


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_weights_of_fair_sharing(version: str) -> None:
    documents = sharing_teams(version, blue="2500m")
    tree = kueue_view(documents).tree
    assert tree.fair
    assert {name: node.weight for name, node in tree.queues.items()} == {"red": 1.0, "blue": 2.5}
    for each in documents:
        each.pop("status", None)
    assert not kueue_view([each for each in documents if each["kind"] != "Workload"]).tree.fair


@pytest.mark.parametrize(("weight", "told"), [("-1", "must be a number of 0 or more"), ("much", "is not a quantity")])
def test_a_weight_that_cannot_be_read(weight: str, told: str) -> None:
    with pytest.raises(QueueError, match=rf"ClusterQueue red: fairSharing\.weight: '{weight}' {told}"):
        kueue_view(sharing_teams(red=weight))


@pytest.mark.parametrize("kind", ["ClusterQueue", "LocalQueue"])
def test_a_stopped_queue_holds_its_workloads(kind: str) -> None:
    documents = two_teams()
    for each in documents:
        if each["kind"] == kind and each["metadata"]["name"] in ("blue", "main"):
            each["spec"]["stopPolicy"] = "Hold"
    name = "blue" if kind == "ClusterQueue" else "b/main"
    assert {job.held for job in kueue_view(documents).jobs if not job.running} == {f"queue {name} is stopped"}


def test_kais_shares_of_a_gpu_and_limits_that_are_none() -> None:
    def raw(limit: Any, fraction: str = "0.5") -> Any:
        half = pod("a-0", "a", 0, "n1")
        half["metadata"]["annotations"] |= {"gpu-fraction": fraction, "gpu-fraction-num-devices": "2"}
        queue = {"metadata": {"name": "red"}, "spec": {"resources": {"gpu": {"limit": limit}}}}
        return {"queues": [queue], "nodes": [node("n1", 8)], "podGroups": [group("a", "red", "v")], "pods": [half]}

    def view(found: Any) -> ClusterView:
        return pod_group_view("kai", kai_kinds("here", json.dumps({"rawObjects": found}).encode()))

    assert view(raw(-1)).used() == 1.0
    assert view(raw(-1)).nodes["n1"].free[GPU] == 7.0
    assert "annotation gpu-fraction: 'half' is not a quantity" in view(raw(-1, "half")).skipped[0]
    with pytest.raises(ViewError, match=r"Queue red: spec.resources.gpu.limit is '4': it must be a number, -1 for no"):
        view(raw("4"))


def test_pods_that_have_ended_give_their_quota_back() -> None:
    documents = two_teams()
    big = next(each for each in documents if each["metadata"]["name"] == "big")
    big["status"]["admission"]["podSetAssignments"][0]["count"] = 6
    big["status"]["reclaimablePods"] = [{"name": "main", "count": 4}]
    assert kueue_view(documents).used() == 4.0
