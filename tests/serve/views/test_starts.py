"""Which jobs a view names as able to start, and what its bound is, in situations where the sum of what is free lies."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from command_line import run_json
from kube_cluster import GPU, Document, cluster_queue, document, group, local_queue, node, pod, workload

from copter import Settings
from copter_serve.shadow.start_model import StartModel, StartPlan
from copter_serve.shadow.watch import Shadow
from copter_serve.views import ClusterView
from copter_serve.views.kueue import kueue_view
from copter_serve.views.pod_groups import kai_kinds, pod_group_view
from copter_serve.views.slurm import slurm_view, view_of
from copter_serve.views.slurm_nodes import read_cluster
from copter_serve.views.start_check import fault
from copter_serve.views.starts import Start

VOLCANO = "scheduling.volcano.sh/v1beta1"


def planned(view: ClusterView) -> StartPlan:
    return StartModel(view.tree, Settings(threads=1)).plan_of(view)


def named(view: ClusterView) -> tuple[dict[str, list[str]], float]:
    plan = planned(view)
    return {each.job: each.nodes for each in plan.starts}, plan.bound


# Slurm ----------------------------------------------------------------------------------------------------------------


def machine(name: str, gres: str = "gpu:a100:4", features: str = "a100", **more: Any) -> Document:
    return {
        "name": name,
        "cpus": 16,
        "real_memory": 64000,
        "gres": gres,
        "features": features,
        "state": "idle",
        "state_flags": [],
        "partitions": ["all"],
    } | more


def job(number: int, cpus: int = 1, per_node: str = "", **more: Any) -> Document:
    found = {
        "job_id": number,
        "job_state": "PENDING",
        "state_reason": "None",
        "partition": "all",
        "submit_time": 1_764_000_000 + number,
        "tres_req_str": f"cpu={cpus},node=1,billing={cpus}",
        "tres_per_node": per_node,
        "priority": 100 - number,
        "node_count": 1,
        "tasks": 1,
        "user_name": "ann",
    }
    return found | more


def on(number: int, where: str, per_node: str = "", **more: Any) -> Document:
    return job(number, per_node=per_node, **({"job_state": "RUNNING", "nodes": where} | more))


def slurm(jobs: list[Any], nodes: list[Document]) -> ClusterView:
    return view_of(jobs, read_cluster("nodes.json", {"nodes": nodes}))


A, B = machine("n1"), machine("n2", "gpu:t4:4", "t4,slow")
BUSY = on(1, "n1", "gres/gpu:a100:4")


@pytest.mark.parametrize(
    "asks",
    [
        {"per_node": "gpu:a100:8"},
        {"features": "a100", "per_node": "gpu:1"},
        {"per_node": "gpu:a100:1"},
        {"required_nodes": "n1", "per_node": "gpu:1"},
        {"excluded_nodes": "n2", "per_node": "gpu:1"},
        {"features": "t4&a100"},
        {"shared": "none", "required_nodes": "n1"},
        {"cpus": 17},
        {"memory_per_node": 70000},
        {"tres_per_job": "gres/gpu:a100:2"},
        {"minimum_cpus_per_node": 32},
        {"features": "fast|a100", "shared": ["none"]},
    ],
)
def test_a_job_that_no_node_takes_does_not_start(asks: Any) -> None:
    assert named(slurm([BUSY, job(2, **asks)], [A, B])) == ({}, 0.0)


@pytest.mark.parametrize(
    "asks",
    [
        {"per_node": "gpu:t4:4"},
        {"per_node": "gres:gpu:1"},
        {"features": "a100|slow", "per_node": "gpu:2"},
        {"features": "[a100|t4]", "per_node": "gpu:2"},
        {"required_nodes": "n2", "per_node": "gpu:1"},
        {"exclusive": ["true"], "per_node": "gpu:1"},
        {"tres_per_job": "gres/gpu:t4=3"},
        {"state_reason": "Resources", "per_node": "gpu:1"},
    ],
)
def test_a_job_that_one_node_takes_starts_there(asks: Any) -> None:
    assert named(slurm([BUSY, job(2, **asks)], [A, B]))[0] == {"2": ["n2"]}


def test_four_in_pieces_are_not_four() -> None:
    held = [on(1, "n1", "gpu:2"), on(2, "n2", "gpu:2")]
    assert named(slurm([*held, job(3, per_node="gpu:4")], [A, B])) == ({}, 0.0)
    two = job(4, cpus=2, per_node="gpu:2", tres_req_str="cpu=2,node=2", node_count=2, tasks=2)
    assert named(slurm([*held, two], [A, B])) == ({"4": ["n1", "n2"]}, 4.0)


@pytest.mark.parametrize("state", ["SUSPENDED", "COMPLETING", "STOPPED", "RESIZING"])
def test_a_job_that_does_not_run_holds_its_devices(state: str) -> None:
    halted = on(1, "n1", "gpu:a100:4", job_state=[state], tres_alloc_str="cpu=16,node=1,mem=64000M")
    view = slurm([halted, job(2, per_node="gpu:a100:1")], [A])
    assert view.used() == 4.0
    assert named(view) == ({}, 0.0)


def test_a_suspended_job_gives_back_its_processors_only() -> None:
    halted = on(
        1, "n1", job_state=["SUSPENDED"], tres_alloc_str="cpu=16,node=1,mem=64000M", tres_req_str="cpu=16,node=1"
    )
    assert named(slurm([halted, job(2, 16)], [machine("n1", "")]))[0] == {"2": ["n1"]}
    assert named(slurm([halted, job(2, 1, memory_per_node=1)], [machine("n1", "")])) == ({}, 0.0)


@pytest.mark.parametrize(
    ("state", "flags"),
    [
        ("idle", ["DRAIN"]),
        ("mixed", ["DRAIN"]),
        ("down", []),
        ("idle", ["MAINTENANCE"]),
        ("idle", ["NOT_RESPONDING"]),
        (["IDLE", "RESERVED"], None),
        ("idle*", []),
        ("unknown", []),
        (["MIXED", "FAIL"], []),
        (["IDLE", "NEW_WORD"], []),
    ],
)
def test_a_node_that_takes_no_jobs(state: Any, flags: Any) -> None:
    away = machine("n1", state=state, state_flags=flags)
    assert named(slurm([job(2, per_node="gpu:1")], [away])) == ({}, 0.0)


def test_a_node_that_is_asleep_counts_in_the_bound_only() -> None:
    assert named(slurm([job(2, per_node="gpu:1")], [machine("n1", state=["IDLE", "POWERED_DOWN"])])) == ({}, 1.0)


@pytest.mark.parametrize(
    "asks",
    [
        {"state_reason": reason}
        for reason in (
            "ReqNodeNotAvail",
            "BadConstraints",
            "InvalidQOS",
            "Dependency",
            "NewReason",
            "QOSMaxJobsPerUserLimit",
            "job requeued in held state",
        )
    ]
    + [
        {"priority": 0},
        {"hold": True},
        {"dependency": "afterok:7(unfulfilled)"},
        {"job_state": ["PENDING", "REQUEUE_HOLD"]},
        {"eligible_time": 1_900_000_000},
    ],
)
def test_holds(asks: Any) -> None:
    view = slurm([job(2, per_node="gpu:1", **asks)], [A])
    assert named(view) == ({}, 0.0)
    assert view.jobs[0].held


@pytest.mark.parametrize(
    "asks",
    [
        {"licenses": "matlab:1"},
        {"resv_name": "mine"},
        {"het_job_id": {"set": True, "number": 4}},
        {"burst_buffer": "b"},
        {"features": "a100*2"},
        {"core_spec": 2},
        {"reboot": True},
        {"state_description": "Nodes required for job are DOWN"},
        {"extra": "mem>100"},
        {"federation_siblings_viable": "c1,c2"},
        {"tres_req_str": "cpu=1,node=1,license/matlab=1"},
        {"tres_req_str": "cpu=1,node=1,bb/datawarp=10G"},
        {"tasks": 4, "tasks_per_tres": 1},
    ],
)
def test_what_is_not_modelled_is_not_named_and_counts_in_the_bound(asks: Any) -> None:
    view = slurm([job(2, per_node="gpu:1", **asks)], [A])
    assert view.jobs[0].unclear
    assert named(view)[0] == {}
    if "features" not in asks:
        assert named(view)[1] == 1.0


def test_cores_kept_for_jobs_with_gpus_and_blocks_of_nodes_are_not_modelled() -> None:
    for kept in ({"gpu_spec": "0-7"}, {"res_cores_per_gpu": 2}):
        assert named(slurm([job(2, 16, "gpu:1")], [machine("n1", **kept)])) == ({}, 1.0)
    two = {"tres_req_str": "cpu=2,node=2", "node_count": 2, "tasks": 2, "per_node": "gpu:1"}
    assert named(slurm([job(2, 2, **two, segment_size=2)], [A, B])) == ({}, 2.0)
    assert named(slurm([job(2, 2, **two, segment_size=0)], [A, B]))[0]


def test_running_tasks_count_against_the_limit_of_their_array() -> None:
    limit = {"array_job_id": 5, "array_max_tasks": 2}
    tasks = [on(6, "n1", "gpu:1", **limit), job(5, per_node="gpu:1", array_task_string="1-3%2", **limit)]
    assert list(named(slurm(tasks, [A]))[0]) == ["5_1"]
    assert named(slurm([on(7, "n1", "gpu:1", **limit), *tasks], [A])) == ({}, 0.0)


def test_numbers_that_are_none_leave_out_one_job_only() -> None:
    odd = [job(2, tres_req_str=f"cpu=1,{each}") for each in ("gres/gpu=inf", "gres/gpu=-2", "gres/gpu=1.5", "mem=-1")]
    odd += [job(3, tres_req_str="cpu=nan"), job(4, per_node="gpu:-2")]
    view = slurm([*odd, job(9, per_node="gpu:1")], [A])
    assert len(view.skipped) == len(odd)
    assert named(view)[0] == {"9": ["n1"]}


def test_a_cluster_without_devices_counts_processors() -> None:
    view = slurm([job(2, 4)], [machine("n1", ""), machine("n2", "(null)")])
    assert (view.resource, view.quota()) == ("cpu", 32.0)
    assert named(view) == ({"2": ["n1"]}, 4.0)


def test_nodes_tell_of_hidden_jobs() -> None:
    used = machine("n1", gres_used="gpu:a100:3(IDX:0,2-3)", alloc_cpus=10, alloc_memory=60000)
    jobs = [job(2, per_node="gpu:2"), job(3, 7), job(4, memory_per_node=5000), job(5, 6, "gpu:1")]
    assert named(slurm(jobs, [used]))[0] == {"5": ["n1"]}


def test_sinfo_of_several_nodes_and_partitions(tmp_path: Path) -> None:
    def entry(part: str, nodes: list[str], **more: Any) -> Document:
        told = {"name": part, "partition": {"state": [more.pop("state", "UP")]}, "maximums": more.pop("maximums", {})}
        return {
            "partition": told,
            "nodes": {"nodes": nodes},
            "node": {"state": ["IDLE"]},
            "cpus": {"minimum": 16, "maximum": 16},
            "gres": {"total": "gpu:a100:4"},
            "memory": {"minimum": 64000, "maximum": 64000},
            **more,
        }

    info = [
        entry("all", ["n[1-2]"]),
        entry("shut", ["n1"], state="DOWN"),
        entry("old", ["n1"], state="DRAIN"),
        entry("short", ["n1"], maximums={"time": {"set": True, "number": 10}}),
        entry("single", ["n2"], maximums={"oversubscribe": {"jobs": 0}}),
    ]
    view = view_of(
        [
            on(1, "n2", "gpu:1"),
            job(2, partition="shut"),
            job(3, partition="old", per_node="gpu:4"),
            job(4, partition="short", time_limit=60),
            job(5, partition="single"),
            job(6, partition="shut,all", per_node="gpu:3"),
        ],
        read_cluster("sinfo.json", {"sinfo": info}),
    )
    assert named(view)[0] == {"3": ["n1"], "6": ["n2"]}
    assert {each.id for each in view.jobs if each.held} == {"2", "4"}


def test_old_files_say_since_when_the_page_is_blind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(tmp_path / name) for name in ("squeue.json", "nodes.json")]
    for path, found in zip(paths, ({"jobs": [job(2, per_node="gpu:1")]}, {"nodes": [A]}), strict=True):
        Path(path).write_text(json.dumps(found))
    then = time.time() - 3600.0
    os.utime(paths[0], (then, then))
    code, found, error = run_json(capsys, "shadow", "--slurm", *paths)
    assert code == 0
    assert found["blind_since"] == time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(then))
    assert found["now"]["at_s"] == pytest.approx(then)
    assert "blind since" in error
    clock = iter([then + 10.0, then + 3610.0, then + 7210.0])
    with Shadow(lambda: slurm_view(*paths), clock=lambda: next(clock)) as shadow:
        assert shadow.look() is None
        assert str(shadow.look()).startswith("blind since")
        assert shadow.look() is None
    assert shadow.summary()["blind_s"] == 3600.0


def test_the_word_certified_is_for_what_the_model_holds(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from copter_frontends import cli

    paths = [tmp_path / name for name in ("squeue.json", "nodes.json")]
    for path, found in zip(paths, ({"jobs": [BUSY, job(2, per_node="gpu:a100:8")]}, {"nodes": [A]}), strict=True):
        path.write_text(json.dumps(found))
    with pytest.raises(SystemExit):
        cli.main(["shadow", "--slurm", *map(str, paths), "--out", str(tmp_path / "page.html")])
    out = capsys.readouterr().out
    assert "0 more could be started now, at most 0;" in out
    assert "not modelled: states and limits of partitions" in out
    page = (tmp_path / "page.html").read_text()
    for text in (out, page):
        assert "certified" not in text
    assert "Not modelled" in page


def partitioned(rules: Document, jobs: list[Any], *nodes: Document) -> ClusterView:
    found = {"nodes": list(nodes), "partitions": [{"name": "all", "partition": {"state": ["UP"]}, **rules}]}
    return view_of(jobs, read_cluster("nodes.json", found))


AT_MOST_8: Document = {"maximums": {"cpus_per_node": {"set": True, "infinite": False, "number": 8}}}


def test_the_jobs_of_a_partition_share_its_cpus_of_a_node() -> None:
    """MaxCPUsPerNode counts all jobs of the partition, not each one."""
    node = machine("n1", partitions=["all", "other"])
    six = on(1, "n1", tres_req_str="cpu=6,node=1", tres_alloc_str="cpu=6,node=1")
    view = partitioned(AT_MOST_8, [six, job(2, 4), job(3, 2), job(4, 1), job(5, 8, partition="other")], node)
    assert named(view)[0] in ({"3": ["n1"], "5": ["n1"]}, {"4": ["n1"], "5": ["n1"]})
    two = [job(number, 5) for number in (2, 3)]
    assert named(partitioned(AT_MOST_8, two, node))[0] == {"2": ["n1"]}


@pytest.mark.parametrize(
    ("limits", "asks", "bound"),
    [
        ({"time": {"set": True, "number": 60}}, {"time_limit": {"set": False, "infinite": True, "number": 0}}, 0.0),
        ({"partition_memory_per_node": {"set": True, "number": 4000}}, {"memory_per_node": 5000}, 0.0),
        ({"partition_memory_per_cpu": {"set": True, "number": 4000}}, {"memory_per_cpu": 5000}, 1.0),
        ({"partition_memory_per_cpu": {"set": True, "number": 4000}}, {"memory_per_node": 5000}, 1.0),
    ],
)
def test_a_job_above_a_limit_of_its_partition_is_not_named(limits: Document, asks: Document, bound: float) -> None:
    asked = job(2, per_node="gpu:1", **asks)
    assert named(partitioned({"maximums": limits}, [asked], machine("n1"))) == ({}, bound)
    assert named(partitioned({}, [asked], machine("n1")))[0] == {"2": ["n1"]}


def test_cpus_of_jobs_that_are_hidden_may_be_of_the_partition() -> None:
    view = partitioned(AT_MOST_8, [job(2, 4, per_node="gpu:1")], machine("n1", alloc_cpus=6))
    assert named(view) == ({}, 1.0)
    assert named(partitioned(AT_MOST_8, [job(2, 2, per_node="gpu:1")], machine("n1", alloc_cpus=6)))[0]


def test_tasks_of_a_node_are_limited() -> None:
    """--ntasks-per-node: eight tasks of one CPU need four nodes."""
    eight = job(2, 8, tasks=8, tasks_per_node=2)
    assert named(slurm([eight], [A, B])) == ({}, 0.0)
    nodes = [machine(f"n{at}") for at in range(4)]
    assert named(slurm([eight], nodes))[0] == {"2": ["n0", "n1", "n2", "n3"]}


@pytest.mark.parametrize(
    ("rules", "asks", "bound"),
    [
        ({"groups": {"allowed": "physics,chem"}}, {"group_name": "bio"}, 1.0),
        ({"groups": {"allowed": "physics,chem"}}, {}, 1.0),
        ({"accounts": {"allowed": "lab,hpc", "deny": ""}}, {"account": "other"}, 1.0),
        ({"accounts": {"allowed": "lab,hpc", "deny": "lab"}}, {"account": ""}, 1.0),
        ({"accounts": {"allowed": "", "deny": "Lab,hpc"}}, {"account": "lab"}, 0.0),
        ({"qos": {"allowed": "high", "deny": ""}}, {"qos": "normal"}, 0.0),
        ({"qos": {"allowed": "", "deny": "normal"}}, {"qos": "normal"}, 0.0),
    ],
)
def test_a_job_that_its_partition_does_not_name_is_not_named(rules: Document, asks: Document, bound: float) -> None:
    """A user has more groups than the one that is told, and an account is allowed with those below it."""
    view = partitioned(rules, [job(2, per_node="gpu:1", **asks)], machine("n1"))
    assert named(view) == ({}, bound)
    assert bool(view.jobs[0].unclear) == (bound > 0.0)
    assert bool(view.jobs[0].held) == (bound == 0.0)


@pytest.mark.parametrize(
    ("rules", "asks"),
    [
        ({"groups": {"allowed": "physics,chem"}}, {"group_name": "chem"}),
        ({"groups": {"allowed": "physics"}}, {"group_name": "root", "user_name": "root"}),
        ({"groups": {"allowed": "ALL"}, "accounts": {"allowed": "ALL"}, "qos": {"allowed": "ALL"}}, {"account": "lab"}),
        ({"accounts": {"allowed": "Lab", "deny": "lab"}}, {"account": "lab"}),
        ({"accounts": {"allowed": "", "deny": "hpc"}, "qos": {"allowed": "HIGH"}}, {"account": "lab", "qos": "high"}),
    ],
)
def test_a_job_that_its_partition_names_starts(rules: Document, asks: Document) -> None:
    assert named(partitioned(rules, [job(2, per_node="gpu:1", **asks)], machine("n1")))[0] == {"2": ["n1"]}


def test_of_two_partitions_the_one_that_surely_takes_a_job_counts_in_the_plan_and_both_in_the_bound() -> None:
    nodes = [machine("n1", partitions=["all"]), machine("n2", "gpu:a100:2", partitions=["closed"])]
    rules = {"name": "closed", "groups": {"allowed": "physics"}}
    jobs = [job(number, per_node=f"gpu:{gpus}", partition="all,closed") for number, gpus in ((2, 4), (3, 2))]
    view = view_of(jobs, read_cluster("nodes.json", {"nodes": nodes, "partitions": [rules]}))
    assert named(view) == ({"2": ["n1"]}, 6.0)
    assert not any(each.unclear for each in view.jobs)


@pytest.mark.parametrize(
    "asks",
    [
        {"deadline": {"set": True, "infinite": False, "number": 1_764_000_500}},
        {"minimum_cpus_per_node": 4},
        {"tasks": 4, "tasks_per_tres": 2},
        {"partition": "limited"},
    ],
)
def test_what_is_not_modelled_is_not_named(asks: Document) -> None:
    limits = {"name": "limited", "maximums": {"cpus_per_socket": 4}}
    nodes = [machine("n1", partitions=["all", "limited"])]
    view = view_of([job(2, **asks)], read_cluster("nodes.json", {"nodes": nodes, "partitions": [limits]}))
    assert named(view)[0] == {}
    assert view.jobs[0].unclear


# Volcano --------------------------------------------------------------------------------------------------------------


def queue(name: str, state: str = "Open", **spec: Any) -> Document:
    return {
        "kind": "Queue",
        "apiVersion": VOLCANO,
        "metadata": {"name": name},
        "spec": spec,
        "status": {"state": state},
    }


def volcano(*documents: Document) -> ClusterView:
    kinds: dict[str, list[Document]] = {}
    for each in documents:
        kinds.setdefault(each["kind"], []).append(each)
    return pod_group_view("volcano", kinds)


def gang(name: str, least: int, *pods: Document, phase: str = "Inqueue") -> list[Document]:
    found = group(name, "q", VOLCANO)
    return [found | {"spec": {"queue": "q", "minMember": least}, "status": {"phase": phase}}, *pods]


def spec_of(gpus: int, **spec: Any) -> Document:
    found = pod("a-0", "a", gpus)
    found["spec"] |= spec
    return found


def changed(found: Document, **status: Any) -> Document:
    return found | {"status": found["status"] | status}


@pytest.mark.parametrize(
    ("nodes", "spec", "state"),
    [
        ([node("n1", 1), node("n2", 1)], {}, "Open"),
        ([node("n1", 4)], {"nodeSelector": {"gpu": "a100"}}, "Open"),
        ([node("n1", 4)], {}, "Closed"),
        ([node("n1", 4)], {}, "Closing"),
        ([changed(node("n1", 4), conditions=[{"type": "Ready", "status": "Unknown"}])], {}, "Open"),
        ([node("n1", 4) | {"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}}], {}, "Open"),
        ([node("n1", 4) | {"spec": {"unschedulable": True}}], {}, "Open"),
        ([node("n1", 4)], {"overhead": {"cpu": "100"}}, "Open"),
        ([node("n1", 4)], {"schedulingGates": [{"name": "wait"}]}, "Open"),
        (
            [node("n1", 4)],
            {"initContainers": [{"restartPolicy": "Always", "resources": {"requests": {"cpu": 65}}}]},
            "Open",
        ),
        ([changed(node("n1", 4), allocatable={GPU: "4", "cpu": "64", "pods": "0"})], {}, "Open"),
    ],
)
def test_a_pod_that_no_node_takes_does_not_start(nodes: list[Document], spec: Any, state: str) -> None:
    assert named(volcano(*nodes, queue("q", state), *gang("a", 1, spec_of(2, **spec)))) == ({}, 0.0)


def test_the_job_that_fits_is_named_beside_the_one_that_does_not() -> None:
    one = gang("one", 1, phase="Pending")
    one[0]["spec"]["minResources"] = {GPU: "1", "cpu": "1"}
    found = volcano(node("n1", 1), node("n2", 1), queue("q"), *gang("a", 1, spec_of(2)), *one)
    assert named(found) == ({"ns/one": ["n1"]}, 1.0)
    assert any("do not exist yet" in each for each in found.not_modelled)


def test_amounts_of_pods_that_do_not_exist_count_in_the_bound_however_they_are_dealt() -> None:
    """Two pods of one GPU leave two on the larger node; both on it, or by its taint none, would leave one or fewer."""
    later = gang("later", 2, phase="Pending")
    later[0]["spec"]["minResources"] = {GPU: "2", "cpu": "2"}
    found = volcano(node("n1", 3), node("n2", 1), queue("q"), *gang("a", 1, spec_of(2)), *later)
    assert named(found)[1] == 4.0
    tainted = node("n1", 2)
    tainted["spec"] = {"taints": [{"key": "x", "effect": "NoSchedule"}]}
    assert named(volcano(tainted, queue("q"), *later)) == ({}, 2.0)


def test_memory_of_queues_and_nodes() -> None:
    big = changed(node("n1", 8), allocatable={GPU: "8", "cpu": "64", "memory": "64Gi", "pods": "110"})
    runs, waits = pod("b-0", "b", 1, "n1"), pod("a-0", "a", 1)
    for each, amount in ((runs, "16Gi"), (waits, "4Gi")):
        each["spec"]["containers"][0]["resources"]["requests"]["memory"] = amount
    every = [*gang("b", 1, runs), *gang("a", 1, waits)]
    assert named(volcano(big, queue("q", capability={"memory": "16Gi"}), *every)) == ({}, 0.0)
    assert named(volcano(big, queue("q", capability={"memory": "20Gi"}), *every))[0] == {"ns/a": ["n1"]}
    runs["spec"]["containers"][0]["resources"]["requests"]["memory"] = "62Gi"
    assert named(volcano(big, queue("q"), *every)) == ({}, 0.0)


def test_a_gang_starts_as_a_whole_and_more_pods_one_by_one() -> None:
    placed, waits = pod("a-0", "a", 2, "n1"), [pod(f"a-{at}", "a", 2) for at in (1, 2)]
    assert named(volcano(node("n1", 4), queue("q"), *gang("a", 3, placed, *waits))) == ({}, 0.0)
    assert named(volcano(node("n1", 6), queue("q"), *gang("a", 3, placed, *waits)))[0] == {"ns/a": ["n1"]}
    (start,) = planned(volcano(node("n1", 4), queue("q"), *gang("a", 1, placed, *waits))).starts
    assert start.job in ("ns/a-1", "ns/a-2")
    assert named(volcano(node("n1", 9), queue("q"), *gang("a", 4, placed, *waits))) == ({}, 0.0)  # one is missing


def test_devices_under_a_name_of_their_own() -> None:
    own = "nvidia.com/gtx-1080-ti"
    found = changed(node("n1", 0), allocatable={own: "7", "cpu": "64", "pods": "9"})
    asks = pod("a-0", "a", 0)
    asks["spec"]["containers"][0]["resources"]["requests"] = {own: "2"}
    view = volcano(found, queue("q", capability={own: "3"}), *gang("a", 1, asks))
    assert (view.resource, *named(view)) == (own, {"ns/a": ["n1"]}, 2.0)


@pytest.mark.parametrize(
    "spec",
    [
        {"dequeueStrategy": "fifo"},
        {"extendClusters": [{"name": "far", "weight": 1}]},
        {"affinity": {"nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["g"]}}},
    ],
)
def test_a_queue_whose_rules_are_not_modelled_names_nothing(spec: Any) -> None:
    view = volcano(node("n1", 4), queue("q", **spec), *gang("a", 1, spec_of(2)))
    assert named(view) == ({}, 2.0)
    assert "queue q" in view.jobs[0].unclear


def test_nodes_and_pods_that_other_rules_govern() -> None:
    locked = queue("other")
    locked["status"]["reservation"] = {"nodes": ["n1"]}
    assert named(volcano(node("n1", 4), queue("q"), locked, *gang("a", 1, spec_of(2)))) == ({}, 2.0)
    hourly = node("n1", 4)
    hourly["metadata"]["labels"] = {"volcano.sh/revocable-zone": "rz1"}
    assert named(volcano(hourly, queue("q"), *gang("a", 1, spec_of(2)))) == ({}, 2.0)
    assert named(volcano(node("n1", 4), queue("q"), *gang("a", 1, spec_of(2, schedulerName="mine"))))[0] == {}
    own = spec_of(2, schedulerName="volcano")
    own["metadata"]["annotations"] = {"scheduling.volcano.sh/group-name": "a"}
    assert named(volcano(node("n1", 4), queue("q"), *gang("a", 1, own)))[0] == {"ns/a": ["n1"]}
    own["metadata"]["annotations"]["volcano.sh/numa-topology-policy"] = "single-numa-node"
    assert named(volcano(node("n1", 4), queue("q"), *gang("a", 1, own)))[0] == {}


@pytest.mark.parametrize(("label", "starts"), [("web", {}), ("db", {"ns/a": ["n1"]})])
def test_a_placed_pod_keeps_others_away_by_its_own_rule(label: str, starts: Any) -> None:
    rule = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    keeper = pod("k", "k", 0, "n1")
    keeper["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}
    asks = spec_of(2)
    asks["metadata"]["labels"] = {"app": label}
    assert named(volcano(node("n1", 4), queue("q"), keeper, *gang("a", 1, asks)))[0] == starts


def test_a_pod_that_is_resized_in_place_holds_what_it_was_given() -> None:
    def beside(**told: Any) -> ClusterView:
        held = pod("k", "k", 0, "n1")
        held["spec"]["containers"] = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]
        held["status"]["containerStatuses"] = [{"name": "c", **told}]
        asks = spec_of(2)
        asks["spec"]["containers"][0]["resources"]["requests"] |= {"cpu": "32"}
        return volcano(node("n1", 4), queue("q"), held, *gang("a", 1, asks))

    assert named(beside(allocatedResources={"cpu": "60"})) == ({}, 2.0)
    assert named(beside(resources={"requests": {"cpu": "60"}})) == ({}, 2.0)
    assert named(beside(allocatedResources={"cpu": "1"}))[0] == {"ns/a": ["n1"]}


def test_ports_of_a_pod_in_the_nodes_network_are_the_nodes() -> None:
    asks = spec_of(2, hostNetwork=True)
    asks["spec"]["containers"][0]["ports"] = [{"containerPort": 80}]
    assert named(volcano(node("n1", 4), queue("q"), *gang("a", 1, asks)))[0] == {}


# KAI ------------------------------------------------------------------------------------------------------------------


def kai(resources: Any, nodes: list[Document], *pods: Document) -> ClusterView:
    names = dict.fromkeys(each["metadata"]["annotations"]["pod-group-name"] for each in pods)
    raw = {
        "queues": [{"metadata": {"name": "q"}, "spec": {"resources": resources}}],
        "nodes": nodes,
        "pods": list(pods),
        "podGroups": [group(name, "q", "scheduling.run.ai/v2alpha2") for name in names],
    }
    return pod_group_view("kai", kai_kinds("here", json.dumps({"rawObjects": raw}).encode()))


def part(name: str, where: str | None = None, label: str = "", **notes: str) -> Document:
    found = pod(f"{name}-0", name, 0, where)
    found["metadata"]["annotations"] |= {key.replace("_", "-"): value for key, value in notes.items()}
    found["metadata"]["labels"] = {"runai-gpu-group": label} if label else {}
    return found


def memory_node(gpus: int) -> Document:
    found = node("n1", gpus)
    found["metadata"]["labels"] = {"nvidia.com/gpu.memory": "40960"}
    return found


def test_a_gpu_that_is_reserved_for_parts_is_not_free() -> None:
    kept = {
        "kind": "Pod",
        "metadata": {"name": "r", "namespace": "kai-resource-reservation", "labels": {"runai-gpu-group": "g"}},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": {"requests": {GPU: "1"}}}]},
        "status": {"phase": "Running"},
    }
    kept["metadata"]["annotations"] = {"pod-group-name": "none"}
    whole, used = pod("d-0", "d", 2), part("a", "n1", "g", gpu_fraction="0.5")
    assert named(kai({}, [node("n1", 2)], whole, kept)) == ({}, 2.0)
    assert named(kai({}, [node("n1", 2)], pod("d-0", "d", 1), used, kept))[0] == {"ns/d": ["n1"]}


def test_parts_of_more_gpus_than_a_node_has_are_out_of_the_bound() -> None:
    many = part("a", gpu_fraction="0.5", gpu_fraction_num_devices="5")
    assert named(kai({}, [node("n1", 4)], many)) == ({}, 0.0)


def test_a_queue_below_one_that_is_not_told_is_unclear() -> None:
    raw = {
        "queues": [{"metadata": {"name": "q"}, "spec": {"parentQueue": "gone"}}],
        "nodes": [node("n1", 2)],
        "pods": [pod("d-0", "d", 1)],
        "podGroups": [group("d", "q", "scheduling.run.ai/v2alpha2")],
    }
    view = pod_group_view("kai", kai_kinds("here", json.dumps({"rawObjects": raw}).encode()))
    assert named(view) == ({}, 1.0)
    assert "queue gone, above queue q" in view.jobs[0].unclear
    assert any("older ones do not" in each for each in kai({}, [node("n1", 2)], pod("d-0", "d", 1)).not_modelled)


def test_a_pod_of_another_operating_system_is_unclear() -> None:
    assert named(volcano(node("n1", 4), queue("q"), *gang("a", 1, spec_of(2, os={"name": "windows"})))) == ({}, 2.0)
    assert named(volcano(node("n1", 4), queue("q"), *gang("a", 1, spec_of(2, os={"name": "linux"}))))[0]


def test_parts_of_a_gpu_must_fit_one_gpu() -> None:
    half, more = part("a", "n1", gpu_fraction="0.5"), part("b", "n1", gpu_fraction="0.6")
    nearly = part("c", gpu_fraction="0.9")
    assert named(kai({}, [node("n1", 2)], half, more, nearly)) == ({}, 0.0)
    assert named(kai({}, [node("n1", 3)], half, more, nearly))[0] == {"ns/c": ["n1"]}
    assert named(kai({}, [node("n1", 2)], half, more, pod("d-0", "d", 1))) == ({}, 0.0)
    # whether two halves share a GPU is told by their labels; without these, neither is named
    halves = [part(name, "n1", gpu_fraction="0.5") for name in "ab"]
    assert named(kai({}, [node("n1", 2)], *halves, pod("d-0", "d", 1))) == ({}, 1.0)
    shared = [part(name, "n1", "x", gpu_fraction="0.5") for name in "ab"]
    assert named(kai({}, [node("n1", 2)], *shared, pod("d-0", "d", 1))) == ({"ns/d": ["n1"]}, 1.0)


def test_memory_of_a_gpu() -> None:
    used = part("a", "n1", "x", gpu_memory="30000")
    assert named(kai({}, [memory_node(1)], used, part("b", gpu_memory="20000"))) == ({}, 0.0)
    assert named(kai({}, [memory_node(1)], used, part("b", gpu_memory="10000")))[0] == {"ns/b": ["n1"]}
    assert kai({}, [memory_node(1)], used).used() == pytest.approx(30000 / 40900)
    unknown = kai({}, [node("n1", 1)], part("b", gpu_memory="10000"))
    assert named(unknown)[0] == {}
    assert "label nvidia.com/gpu.memory" in unknown.jobs[0].unclear


def test_limits_of_processors_and_quotas_of_jobs_that_are_never_stopped() -> None:
    asks = pod("a-0", "a", 1)
    asks["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "4"
    for limit, starts in ((3000, {}), (4000, {"ns/a": ["n1"]}), (-1, {"ns/a": ["n1"]})):
        assert named(kai({"cpu": {"limit": limit}}, [node("n1", 4)], asks))[0] == starts
    asks["spec"]["priority"] = 125
    for quota, starts in ((0, {}), (1, {"ns/a": ["n1"]})):
        assert named(kai({"gpu": {"quota": quota, "limit": -1}}, [node("n1", 4)], asks))[0] == starts


@pytest.mark.parametrize(("status", "starts"), [("Failed", True), ("Pending", False), ("Succeeded", False)])
def test_a_binding_that_was_given_up_holds_nothing(status: str, starts: bool) -> None:
    raw = {
        "queues": [{"metadata": {"name": "q"}, "spec": {}}],
        "nodes": [node("n1", 4)],
        "pods": [pod("a-0", "a", 3)],
        "podGroups": [group("a", "q", "scheduling.run.ai/v2alpha2")],
        "bindRequests": [
            {
                "metadata": {"name": "b", "namespace": "ns"},
                "spec": {"podName": "a-0", "selectedNode": "n1"},
                "status": {"phase": status, "failedAttempts": 1},
            }
        ],
    }
    view = pod_group_view("kai", kai_kinds("here", json.dumps({"rawObjects": raw}).encode()))
    assert bool(named(view)[0]) is starts
    assert any("queue q does not tell" in line for line in view.not_modelled)


# Kueue ----------------------------------------------------------------------------------------------------------------


def kueue(queue_: Document, *workloads: Document, more: list[Document] | None = None) -> ClusterView:
    return kueue_view([queue_, local_queue("r/main", "red"), *(more or []), *workloads], 1_795_000_000.0)


def with_cpu(found: Document, nominal: str, name: str = "cpu") -> Document:
    (group_,) = found["spec"]["resourceGroups"]
    group_["coveredResources"].append(name)
    group_["flavors"][0]["resources"].append({"name": name, "nominalQuota": nominal})
    return found


def template(found: Document) -> Document:
    return dict(found["spec"]["podSets"][0]["template"]["spec"])


def asking(**spec: Any) -> Document:
    found = workload("r/a", 1)
    found["spec"]["podSets"][0]["template"]["spec"] |= spec
    return found


def test_a_quota_of_pods_and_of_what_pods_take_beside_their_containers() -> None:
    pods = with_cpu(cluster_queue("red", 8), "2", "pods")
    three = workload("r/a", 1)
    three["spec"]["podSets"][0]["count"] = 3
    assert named(kueue(pods, three)) == ({}, 0.0)
    assert list(named(kueue(pods, workload("r/a", 1)))[0]) == ["r/a"]
    sidecar = [{"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}}]
    for spec in ({"overhead": {"cpu": "2"}}, {"initContainers": sidecar}, {"resources": {"requests": {"cpu": "2"}}}):
        assert named(kueue(with_cpu(cluster_queue("red", 8), "1"), asking(**spec))) == ({}, 0.0)
        assert list(named(kueue(with_cpu(cluster_queue("red", 8), "2"), asking(**spec)))[0]) == ["r/a"]


@pytest.mark.parametrize(
    ("status", "starts"),
    [
        ({"requeueState": {"requeueAt": "2027-01-01T00:00:00Z"}}, False),
        ({"requeueState": {"requeueAt": "2026-01-01T00:00:00Z"}}, True),
        ({"conditions": [{"type": "Requeued", "status": "False", "reason": "Backoff"}]}, False),
    ],
)
def test_a_workload_that_is_not_tried(status: Any, starts: bool) -> None:
    assert bool(named(kueue(cluster_queue("red", 8), workload("r/a", 1, status=status)))[0]) is starts


@pytest.mark.parametrize(
    ("spec", "notes", "pods", "status"),
    [
        ({"concurrentAdmissionPolicy": {"migration": {"mode": "TryPreferredFlavors"}}}, {}, {}, {}),
        (
            {
                "queueingStrategy": "StrictFIFO",
                "admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"},
            },
            {},
            {},
            {},
        ),
        ({"admissionChecksStrategy": {"admissionChecks": [{"name": "p"}]}}, {}, {}, {}),
        ({}, {"kueue.x-k8s.io/workload-allowed-resource-flavors": "h100"}, {}, {}),
        ({}, {"kueue.x-k8s.io/workload-slice-replacement-for": "r/old"}, {}, {}),
        ({}, {}, {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}, {}),
        ({}, {}, {}, {"resourceRequests": [{"name": "main", "resources": {GPU: "3"}}]}),
    ],
)
def test_rules_of_kueue_that_are_not_modelled(spec: Any, notes: Any, pods: Any, status: Any) -> None:
    queue_ = cluster_queue("red", 8)
    queue_["spec"] |= spec
    found = asking(**pods)
    found["metadata"]["annotations"] = notes
    found["status"] = status
    assert named(kueue(queue_, found)) == ({}, 1.0)


def test_amounts_that_kueue_counted_alike_change_nothing() -> None:
    same = workload("r/a", 1, status={"resourceRequests": [{"name": "main", "resources": {GPU: "1", "pods": "1"}}]})
    assert named(kueue(cluster_queue("red", 8), same))[0] == {"r/a": []}
    on_hold = [{"type": "QuotaReserved", "status": "False", "reason": "OnHold"}]
    assert named(kueue(cluster_queue("red", 8), workload("r/a", 1, status={"conditions": on_hold}))) == ({}, 0.0)


def test_queues_that_take_nothing() -> None:
    inactive = cluster_queue("red", 8) | {
        "status": {"conditions": [{"type": "Active", "status": "False", "reason": "FlavorNotFound"}]}
    }
    assert named(kueue(inactive, workload("r/a", 1))) == ({}, 0.0)
    lost = [document("ResourceFlavor", "h100", {})]
    assert named(kueue(cluster_queue("red", 8), workload("r/a", 1), more=lost)) == ({}, 0.0)
    foreign = cluster_queue("red", 8, namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "b"}})
    assert named(kueue(foreign, workload("r/a", 1))) == ({}, 0.0)
    checked = kueue(cluster_queue("red", 8, admissionChecks=["prov"]), workload("r/a", 1))
    assert named(checked) == ({}, 1.0)


def test_taints_and_labels_of_flavors() -> None:
    taint = {"key": "x", "value": "y", "effect": "NoSchedule"}
    flavor = [document("ResourceFlavor", "a100", {"nodeTaints": [taint], "nodeLabels": {"gpu": "a100"}})]
    assert named(kueue(cluster_queue("red", 8), workload("r/a", 1), more=flavor)) == ({}, 0.0)
    passes = [{"key": "x", "operator": "Equal", "value": "y"}]
    assert named(kueue(cluster_queue("red", 8), asking(tolerations=passes), more=flavor))[0]
    wrong = asking(tolerations=passes, nodeSelector={"gpu": "t4", "zone": "b"})
    assert named(kueue(cluster_queue("red", 8), wrong, more=flavor)) == ({}, 0.0)


def test_a_workload_may_start_with_fewer_pods() -> None:
    found = workload("r/a", 2)
    found["spec"]["podSets"][0] |= {"count": 5, "minCount": 2}
    plan = planned(kueue(cluster_queue("red", 7), found))
    assert [sum(each.amounts.values()) for each in plan.starts] == [6.0]
    assert named(kueue(cluster_queue("red", 3), found)) == ({}, 0.0)


def test_pods_that_have_ended_are_not_needed_again() -> None:
    """An evicted workload of three pods, of which two have ended, needs the third one only."""
    found = workload("r/a", 4, status={"reclaimablePods": [{"name": "main", "count": 2}]})
    found["spec"]["podSets"][0]["count"] = 3
    plan = planned(kueue(cluster_queue("red", 8), found))
    assert ([sum(each.amounts.values()) for each in plan.starts], plan.bound) == ([4.0], 4.0)


def test_in_strict_order_nothing_passes_the_first() -> None:
    first, second = workload("r/a", 9, priority=5), workload("r/b", 1)
    assert named(kueue(cluster_queue("red", 8), first, second))[0] == {"r/b": []}
    assert named(kueue(cluster_queue("red", 8, queueingStrategy="StrictFIFO"), first, second))[0] == {}


# The check ------------------------------------------------------------------------------------------------------------


def test_the_check_refuses_what_cannot_be() -> None:
    view = slurm([BUSY, job(2, per_node="gpu:t4:3"), job(3, per_node="gpu:t4:3"), job(4, hold=True)], [A, B])
    plan = planned(view)
    (start,) = plan.starts
    assert fault(view, plan.starts) == ""
    other = next(each for each in view.jobs if each.id == "3")
    both = [start, Start("3", other.ways[0], other.ways[0].amounts, (("n2",),))]
    assert "of gres/gpu" in fault(view, both)
    assert fault(view, [Start(start.job, start.way, start.amounts, (("n1",),))]) != ""
    assert fault(view, [Start(start.job, start.way, start.amounts, ((),))]) == "2: 0 of 1 pods have a node"
    held = next(each for each in view.jobs if each.id == "4")
    assert "no job that may start" in fault(view, [Start("4", held.ways[0], held.ways[0].amounts, (("n2",),))])
    assert "no job that may start" in fault(view, [start, start])


def test_the_check_sums_quotas_anew() -> None:
    view = kueue(cluster_queue("red", 2), workload("r/a", 2), workload("r/b", 1))
    a, b = (Start(each.id, each.ways[0], each.ways[0].amounts, ()) for each in view.jobs)
    assert fault(view, [a]) == ""
    assert "red: 3 of a100" in fault(view, [a, b])
    lie = Start("r/a", a.way, {("a100", GPU): 1.0}, ())
    assert "no choice of flavors" in fault(view, [lie])
