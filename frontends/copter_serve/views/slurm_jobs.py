"""What Slurm's jobs ask for and hold, why they wait, and the ways in which they may start."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from copter_serve.views.slurm_nodes import Cluster, Machine, Partition, cpus_of
from copter_serve.views.slurm_text import Features, expanded, gres, kinds, number, text, tres, words
from copter_serve.views.starts import WHOLE, Pods, Way
from copter_serve.views.view import ViewError

FLAVOR = "slurm"
GPU = "gres/gpu"
HOLDING = {"RUNNING", "COMPLETING", "CONFIGURING", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT"}
GOING = {"REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD", "REQUEUE_FED", "REVOKED", "LAUNCH_FAILED"}
# reasons with which a job starts as soon as there is room; every other one is a hold
READY = {"", "None", "Priority", "Resources"}
MOST_WAYS = 8  # most numbers of nodes that are tried
SHARD = "gres/shard"
UNLIMITED = 2.0**32 - 2  # minutes from this on stand for no limit
UNSET = 32766.0  # numbers of 16 bits from this on stand for nothing


@dataclass(frozen=True, slots=True)
class Asked:
    """A job in numbers.

    Attributes
    ----------
    id : str
    array : str
        Id of its array; empty for none.
    partitions : tuple of str
    holds, suspended : bool
        Whether it holds nodes; whether it is suspended, so that its CPUs are free and the rest is not.
    on : tuple of str
        Its nodes.
    wanted, taken : Mapping of str to float
        Amounts that it asks for, and that it holds; memory in MiB.
    nodes, tasks, cpus : float
    alone : str
        As :class:`~.starts.Pods`.
    shares : bool
        Whether it may share CPUs with others.
    """

    id: str
    array: str
    partitions: tuple[str, ...]
    priority: int
    holds: bool
    suspended: bool
    on: tuple[str, ...]
    came_s: float
    started_s: float
    looked_s: float
    wanted: Mapping[str, float]
    taken: Mapping[str, float]
    nodes: float
    tasks: float
    cpus: float
    alone: str
    user: str
    shares: bool


def asked(document: Any) -> Asked | None:
    """Return a job in numbers; None if it has ended. ViewError if a field that is needed is missing or damaged."""
    if not isinstance(document, dict):
        raise ViewError("is no object")
    states = {each.upper() for each in words(document.get("job_state"))}
    if not states:
        raise ViewError("job_state is missing")
    suspended = "SUSPENDED" in states and bool(text(document.get("nodes")))
    holds = bool(states & HOLDING) or suspended
    if not holds and not states & {"PENDING", "SUSPENDED"}:
        return None
    job, came = document.get("job_id"), number(document.get("submit_time"))
    if job is None or came is None:
        raise ViewError(f"{'job_id' if job is None else 'submit_time'} is missing")
    partitions = tuple(words(document.get("partition")))
    if not partitions:
        raise ViewError("partition is missing")
    request = document.get("tres_req_str")
    told = (document.get("tres_alloc_str") or request) if holds else request
    if not isinstance(told, str):
        raise ViewError("tres_req_str is missing")
    counts = tres("tres_alloc_str" if holds else "tres_req_str", told)
    # of a waiting job node_count is an estimate; what it asks for at least is in its TRES
    listed = (number(document.get("node_count")), counts.get("node"))
    nodes = next((each for each in (listed if holds else listed[::-1]) if each), 1.0)
    tasks = max(number(document.get("tasks")) or 1.0, 1.0)
    cpus = counts.get("cpu") or number(document.get("cpus")) or 0.0
    devices = kinds(
        {name.removeprefix("gres/"): count for name, count in counts.items() if name.startswith("gres/")}, True
    )
    amounts = (
        {"cpu": cpus}
        | ({"mem": counts["mem"]} if "mem" in counts else {})
        | _devices(document, holds, nodes, tasks, devices)
    )
    array = number(document.get("array_job_id"))
    taken = dict(amounts)
    if suspended and "COMPLETING" not in states:
        taken.pop("cpu", None)
    return Asked(
        str(job),
        str(int(array)) if array else "",
        partitions,
        int(number(document.get("priority")) or 0),
        holds,
        suspended,
        tuple(expanded(text(document.get("nodes")))) if holds else (),
        came,
        number(document.get("start_time")) or 0.0,
        number(document.get("last_sched_evaluation")) or 0.0,
        amounts,
        taken if holds else {},
        nodes,
        tasks,
        cpus,
        _alone(document),
        text(document.get("user_name")) or str(number(document.get("user_id")) or ""),
        bool({"shared", "oversubscribe"} & {each.lower() for each in words(document.get("shared"))})
        or document.get("oversubscribe") is True,
    )


def _devices(
    document: Mapping[str, Any], holds: bool, nodes: float, tasks: float, counted: Mapping[str, float]
) -> dict[str, float]:
    """Return the devices of a job, also where Slurm's accounting does not track them."""
    found = dict(counted)
    detail = document.get("gres_detail")
    if holds and isinstance(detail, list) and detail:
        told: dict[str, float] = {}
        for each in detail:
            for name, count in kinds(gres("gres_detail", each)).items():
                told[name] = told.get(name, 0.0) + count
        if told:
            return told
    for key, times in (("tres_per_job", 1.0), ("tres_per_node", nodes), ("tres_per_task", tasks)):
        for name, count in kinds(gres(key, document.get(key))).items():
            found[name] = max(found.get(name, 0.0), count * times)
    return found


def _alone(document: Mapping[str, Any]) -> str:
    """Return whose jobs may be beside a job: `WHOLE` for nobody's, a user for the user's own, empty for all."""
    told = {each.lower() for key in ("exclusive", "shared") for each in words(_kept_none(document.get(key)))}
    resources = document.get("job_resources")
    inner = resources.get("nodes") if isinstance(resources, dict) else None
    if told & {"true", "exclusive", "none!", "yes"} or (isinstance(inner, dict) and inner.get("whole") is True):
        return WHOLE
    return (text(document.get("user_name")) or str(number(document.get("user_id")) or "")) if "user" in told else ""


def _kept_none(value: Any) -> Any:
    """Mark the word "none" of the field `shared`, which says that a job shares its nodes with nobody."""
    listed = value if isinstance(value, list) else [value]
    return ["none!" if each == "none" else each for each in listed if each is not None and each is not False]


def hold_of(document: Mapping[str, Any], job: Asked, partitions: Sequence[Partition], seen_s: float) -> tuple[str, str]:
    """Return why a waiting job may not start even if there is room, and why it is not known whether it may."""
    states = {each.upper() for each in words(document.get("job_state"))}
    reason, description = text(document.get("state_reason")), str(document.get("state_description") or "")
    priority = document.get("priority")
    if states & GOING:
        return " ".join(sorted(states & GOING)), ""
    if "SUSPENDED" in states:
        return "suspended", ""
    if document.get("hold") is True or (priority is not None and number(priority) == 0.0):
        return reason if reason not in READY else "JobHeld", ""
    if reason not in READY:
        return reason, ""
    if text(document.get("dependency")):
        return f"Dependency {document['dependency']}", ""
    eligible = number(document.get("eligible_time")) or 0.0
    if eligible > max(seen_s, job.looked_s):
        return "BeginTime", ""
    closed = [_closed(document, job, partition) for partition in partitions]
    if all(closed):
        return closed[0], ""
    doubts = [_doubt(document, job, partition) for partition, why in zip(partitions, closed, strict=True) if not why]
    return "", _unclear(document, job, description) or (doubts[0] if all(doubts) else "")


def _doubt(document: Mapping[str, Any], job: Asked, partition: Partition) -> str:
    """Return why it is not known whether a partition takes a job; empty if it is."""
    if partition.by_socket:
        return f"{partition.name} limits the CPUs of a socket (MaxCPUsPerSocket)"
    by_cpu = max(
        number(document.get("memory_per_cpu")) or 0.0,
        (number(document.get("memory_per_node")) or 0.0) * job.nodes / max(job.cpus, 1.0),
    )
    if by_cpu > partition.max_memory_cpu:
        return f"it asks for more memory of a CPU than {partition.name} gives, and then gets more CPUs (MaxMemPerCPU)"
    # an account that is below one of these is theirs, too, and Slurm looks at all groups of a user
    for key, name, setting in (
        ("account", text(document.get("account")).lower(), "AllowAccounts"),
        ("group", text(document.get("group_name")), "AllowGroups"),
    ):
        allowed = partition.allowed.get(key)
        if allowed is not None and name not in allowed and not (key == "group" and job.user == "root"):
            return f"{partition.name} does not name its {key} {name or '(not told)'} ({setting})"
    return ""


def _unclear(document: Mapping[str, Any], job: Asked, description: str) -> str:
    def asks(key: str) -> bool:
        value = document.get(key)
        return (
            bool(number(value))
            if isinstance(value, dict | int | float) and not isinstance(value, bool)
            else bool(text(value))
        )

    told = {each.lower() for key in ("exclusive", "shared") for each in words(document.get(key))}
    for sign, why in (
        (description, f"Slurm says {description!r}"),
        (asks("het_job_id"), "it starts with the other parts of its heterogeneous job"),
        (
            asks("licenses") or "license/" in text(document.get("tres_req_str")),
            "it needs licenses, which are not in the documents",
        ),
        (asks("resv_name"), f"it waits for the reservation {document.get('resv_name')}"),
        (asks("burst_buffer") or "bb/" in text(document.get("tres_req_str")), "it needs a burst buffer"),
        (asks("cluster_features") or asks("federation_siblings_viable"), "it may start on another cluster"),
        (bool(set("<>=&|!") & set(text(document.get("extra")))), "it asks for what nodes tell beside their features"),
        (asks("segment_size") and job.nodes > 1, "it asks for blocks of nodes (--segment)"),
        (asks("batch_features"), "it asks for features of its first node"),
        (any(name.partition(":")[0] in (SHARD, "gres/mps") for name in job.wanted), "parts of GPUs are not modelled"),
        (asks("tres_per_socket"), "it asks for devices by socket"),
        (
            any(0.0 < (number(document.get(key)) or 0.0) < UNSET for key in ("core_spec", "thread_spec")),
            "it reserves cores for the system",
        ),
        (asks("network"), "it asks for a network"),
        (asks("deadline"), "it must end before its deadline"),
        (
            0.0 < (number(document.get("tasks_per_tres")) or 0.0) < UNSET
            and job.tasks > (number(document.get("tasks_per_tres")) or 0.0) * job.wanted.get(GPU, 0.0),
            "it deals tasks to GPUs, and does not say how many",
        ),
        (
            UNLIMITED > (number(document.get("minimum_cpus_per_node")) or 0.0) > max(job.cpus, 1.0) / job.nodes,
            "it asks for more CPUs of each node than it takes (--mincpus)",
        ),
        (document.get("reboot") is True, "it asks for nodes to be booted"),
        (document.get("contiguous") is True and job.nodes > 1, "it asks for nodes in a row"),
        (
            any(asks(key) for key in ("minimum_switches", "required_switches")) and job.nodes > 1,
            "it asks for few switches",
        ),
        (any(0.0 < (number(document.get(key)) or 0.0) < UNSET for key in DEALT), "it deals tasks to sockets or cores"),
        (told & {"mcs", "topo"}, "it asks for nodes that no other label or block uses"),
        ("GRES_ENFORCE_BINDING" in words(document.get("flags")), "its devices and CPUs must be on one socket"),
    ):
        if sign:
            return why
    return ""


def limit_of(document: Mapping[str, Any]) -> float:
    """Return the seconds after which Slurm ends a job; infinity for none."""
    minutes = number(document.get("time_limit"))
    return 60.0 * minutes if minutes is not None and 0.0 < minutes < UNLIMITED else math.inf


def _closed(document: Mapping[str, Any], job: Asked, partition: Partition) -> str:
    """Return why a partition does not take a job."""
    if partition.closed:
        return partition.closed
    told = document.get("time_limit")
    minutes = math.inf if isinstance(told, dict) and told.get("infinite") is True else number(told)
    if minutes is not None and minutes > partition.max_minutes:
        return f"PartitionTimeLimit: {minutes:g} minutes, and {partition.name} allows {partition.max_minutes:g}"
    if job.nodes > partition.max_nodes or (
        document.get("max_nodes") and (number(document.get("max_nodes")) or math.inf) < partition.min_nodes
    ):
        return f"PartitionNodeLimit of {partition.name}"
    qos, allowed = text(document.get("qos")).lower(), partition.allowed.get("qos")
    if qos and allowed is not None and qos not in allowed:
        return f"qos {qos} may not use {partition.name}"
    for key in ("account", "qos"):
        if text(document.get(key)).lower() in partition.denied.get(key, ()):
            return f"{key} {document.get(key)} may not use {partition.name}"
    return ""


# Ways -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Demand:
    """Needs of a job: of each node, and in all."""

    node: Mapping[str, float]
    task: Mapping[str, float]
    job: Mapping[str, float]
    per_task_cpus: float
    memory_node: float
    memory_cpu: float
    memory_gpu: float
    memory_all: bool
    cpus_gpu: float
    has_memory: bool


def ways_of(
    document: Mapping[str, Any], job: Asked, partitions: Sequence[Partition], cluster: Cluster, counts_memory: bool
) -> tuple[Way, ...]:
    """Return the ways in which a job may start; ViewError for what is not modelled."""
    demand = _demand(document, job, counts_memory)
    constraint = Features.of(text(document.get("features")))
    needed = tuple(dict.fromkeys(expanded(text(document.get("required_nodes")))))
    excluded = frozenset(expanded(text(document.get("excluded_nodes"))))
    most = number(document.get("max_nodes")) or 0.0
    per_node = number(document.get("tasks_per_node")) or UNSET
    least = max(job.nodes, float(len(needed)), math.ceil(job.tasks / per_node), 1.0)
    counts = [int(least)]
    reach = min(most or job.tasks, job.tasks if not (demand.node and not most) else most or job.tasks)
    counts += [count for count in range(int(least) + 1, int(least) + MOST_WAYS) if count <= reach]
    found: list[Way] = []
    for partition in partitions:
        if _closed(document, job, partition):
            continue
        doubt = _doubt(document, job, partition)
        for alternative in constraint.alternatives:
            names = _reach(document, partition, alternative, excluded, cluster)
            for count in counts:
                if count <= max(partition.max_nodes, least) and count >= partition.min_nodes:
                    ways = _way(partition, job, demand, names, needed, count)
                    found += [replace(way, unclear=doubt) for way in ways] if doubt else ways
    return tuple(found)


DEALT = ("tasks_per_socket", "tasks_per_core", "tasks_per_board")
FIXED = (
    "minimum_cpus_per_node",
    "minimum_tmp_disk_per_node",
    "sockets_per_node",
    "cores_per_socket",
    "threads_per_core",
)


def _reach(
    document: Mapping[str, Any], partition: Partition, alternative: str, excluded: frozenset[str], cluster: Cluster
) -> frozenset[str]:
    """Return the nodes of a partition that satisfy a job; jobs that ask the same share one set."""
    key = partition.name, alternative, excluded, tuple(number(document.get(name)) for name in FIXED)
    if key not in cluster.reach:
        cluster.reach[key] = frozenset(
            name
            for name in partition.nodes & cluster.machines.keys() - excluded
            if _admits(cluster.machines[name], document) and Features.met(alternative, cluster.machines[name].features)
        )
    return cluster.reach[key]


def _admits(machine: Machine, document: Mapping[str, Any]) -> bool:
    """Whether a node's fixed properties satisfy a job."""

    def at_least(key: str, has: float) -> bool:
        return (number(document.get(key)) or 0.0) <= has

    threads = number(document.get("threads_per_core"))
    if threads and machine.threads > threads:
        return False  # it takes more CPUs than it names, and how many is not modelled
    return (
        at_least("minimum_cpus_per_node", machine.node.total.get("cpu", 0.0))
        and at_least("minimum_tmp_disk_per_node", machine.disk)
        and at_least("sockets_per_node", machine.sockets)
        and at_least("cores_per_socket", machine.cores)
        and at_least("threads_per_core", machine.threads)
    )


def _demand(document: Mapping[str, Any], job: Asked, counts_memory: bool) -> _Demand:
    node, task, whole = (
        kinds(gres(key, document.get(key))) for key in ("tres_per_node", "tres_per_task", "tres_per_job")
    )
    named = {name.partition(":")[0] for name in (*node, *task, *whole)}
    whole = whole | {
        name: count
        for name, count in job.wanted.items()
        if name.startswith("gres/") and name.partition(":")[0] not in named
    }
    per = number(document.get("cpus_per_task"))
    by_gpu = gres("memory_per_tres", document.get("memory_per_tres")).get("gpu", 0.0)
    of_gpu = gres("cpus_per_tres", document.get("cpus_per_tres")).get("gpu", 0.0)
    memory_node, memory_cpu = (number(document.get(f"memory_per_{each}")) for each in ("node", "cpu"))
    told = "memory_per_node" in document
    # Slurm gives all memory of a node to a job that asks for none, and then writes 0, or null in old releases
    unset = document.get("memory_per_node")
    everything = (
        told
        and not memory_node
        and not memory_cpu
        and not by_gpu
        and bool(job.wanted.get("mem"))
        and (unset is None or (isinstance(unset, dict) and unset.get("set") is True) or unset == 0)
    )
    if not counts_memory:
        return _Demand(node, task, whole, per or 0.0, 0.0, 0.0, 0.0, False, of_gpu, False)
    return _Demand(
        node, task, whole, per or 0.0, memory_node or 0.0, memory_cpu or 0.0, by_gpu, everything, of_gpu, True
    )


def _way(
    partition: Partition, job: Asked, demand: _Demand, names: frozenset[str], needed: tuple[str, ...], count: int
) -> list[Way]:
    """Return the way that deals a job's tasks evenly to so many nodes; none if the partition's limit forbids it."""
    tasks = max(job.tasks, float(count))
    alone = WHOLE if partition.exclusive else job.alone
    groups: list[tuple[int, dict[str, float]]] = []
    for at in range(count):
        need = _need(job, demand, int(tasks // count + (at < tasks % count)), tasks, at, count)
        if groups and groups[-1][1] == need:
            groups[-1] = groups[-1][0] + 1, need
        else:
            groups.append((1, need))
    if any(need.get("mem", 0.0) > partition.max_memory for _, need in groups):
        return []
    if not math.isinf(partition.max_cpus):
        groups = [(many, need | {cpus_of(partition.name): need["cpu"]}) for many, need in groups]
    untouched = ("mem",) if demand.memory_all else ()
    pods: list[Pods] = []
    pinned = len(needed)
    if pinned and len(groups) == 1:
        pods.append(_pods(pinned, groups[0][1], names & frozenset(needed), count > 1, untouched, alone))
        if count > pinned:
            pods.append(_pods(count - pinned, groups[0][1], names - frozenset(needed), True, untouched, alone))
    elif pinned and pinned < count:
        # parts differ: each named node gets the largest one
        largest = {key: max(need[key] for _, need in groups) for key in groups[0][1]}
        pods.append(_pods(pinned, largest, names & frozenset(needed), True, untouched, alone))
        pods.append(_pods(count - pinned, largest, names - frozenset(needed), True, untouched, alone))
    else:
        reach = names & frozenset(needed) if pinned else names
        pods += [_pods(many, need, reach, count > 1, untouched, alone) for many, need in groups]
    amounts = {"cpu": job.wanted.get("cpu", 0.0)}
    devices = sum(many * need.get(GPU, 0.0) for many, need in groups)
    if devices:
        amounts[GPU] = devices
    loose = None
    if count > 1:
        names = names & frozenset(needed) if pinned == count else names
        kept = {key: value for key, value in demand.node.items() if key != SHARD}
        if kept:
            loose = Pods(count, kept, names, True)
        else:
            per = {key: value / tasks for key, value in amounts.items()}
            loose = Pods(int(tasks), per | {key: value for key, value in demand.task.items() if key != SHARD}, names)
    shares = {(FLAVOR, name): amount for name, amount in amounts.items()}
    return [Way(partition.name, shares, tuple(pods), loose=loose, user=job.user)]


def _pods(
    count: int, need: dict[str, float], names: frozenset[str], apart: bool, untouched: tuple[str, ...], alone: str
) -> Pods:
    need = {name: value for name, value in need.items() if not name.startswith(SHARD + ":")}
    shards = need.pop(SHARD, 0.0)
    return Pods(count, need, names, apart, untouched, alone, portion_memory=shards, devices=1 if shards else 0)


def _need(job: Asked, demand: _Demand, tasks: int, all_tasks: float, at: int, count: int) -> dict[str, float]:
    """Return what one node must have for its part of the tasks."""
    need = dict(demand.node)
    for name, value in demand.task.items():
        need[name] = need.get(name, 0.0) + value * tasks
    for name, value in demand.job.items():
        need[name] = need.get(name, 0.0) + value // count + (at < value % count)
    gpus = need.get(GPU, 0.0)
    cpus = math.ceil(job.cpus * tasks / all_tasks - 1e-9) if count > 1 else job.cpus
    need["cpu"] = max(cpus, demand.per_task_cpus * tasks, demand.cpus_gpu * gpus, 1.0)
    memory = max(demand.memory_node, demand.memory_cpu * need["cpu"], demand.memory_gpu * gpus)
    if memory:
        need["mem"] = memory
    elif demand.has_memory and job.wanted.get("mem") and not demand.memory_all:
        need["mem"] = job.wanted["mem"] / count
    return need
