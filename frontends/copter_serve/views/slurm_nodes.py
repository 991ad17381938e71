"""Slurm's nodes and partitions, from what `sinfo --json` prints, or from lists of nodes as REST and 22.05 have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from copter_serve.views.documents import part
from copter_serve.views.slurm_text import expanded, gres, kinds, number, numbers, text, words
from copter_serve.views.starts import Node
from copter_serve.views.view import ViewError

# states in which a node takes jobs, and those that say nothing about it
OPEN = {"IDLE", "MIXED", "ALLOCATED"}
HARMLESS = {"PLANNED", "CLOUD", "RESUME", "UNDRAIN", "DYNAMIC_NORM", "DYNAMIC_FUTURE", "DYNAMIC", "INVALID_REG_CLEAR"}
# states in which it is not known whether jobs start: Slurm waits for the node, or wakes it
UNCLEAR = {
    "COMPLETING",
    "POWERED_DOWN",
    "POWER_DOWN",
    "POWERING_UP",
    "POWER_UP",
    "POWER_SAVING",
    "REBOOT_REQUESTED",
    "REBOOT",
    "REBOOT_CANCELED",
}
UNSET = 2.0**32 - 2  # limits from this on stand for none
FLAGS = {
    "*": "NOT_RESPONDING",
    "~": "POWERED_DOWN",
    "#": "POWERING_UP",
    "%": "POWERING_DOWN",
    "$": "MAINTENANCE",
    "@": "REBOOT_ISSUED",
    "^": "REBOOT_ISSUED",
    "!": "POWER_DOWN",
    "-": "PLANNED",
}


@dataclass(slots=True)
class Partition:
    """A partition.

    Attributes
    ----------
    name : str
    nodes : set of str
    closed : str
        Why its jobs do not start; empty if they do.
    max_nodes, min_nodes, max_minutes : float
        Limits of one job.
    max_cpus : float
        Most CPUs of one node that all jobs of the partition together may use.
    by_socket : bool
        Whether it limits the CPUs of a socket, too.
    max_memory, max_memory_cpu : float
        Most memory of one job on a node, and for each of its CPUs, in MiB.
    exclusive : bool
        Whether each job has its nodes alone.
    shares : bool
        Whether jobs may share CPUs.
    allowed, denied : dict of str to frozenset of str
        Accounts, QOS and groups; none in `allowed` for all.
    """

    name: str
    nodes: set[str] = field(default_factory=set)
    closed: str = ""
    max_nodes: float = math.inf
    min_nodes: float = 0.0
    max_minutes: float = math.inf
    max_cpus: float = math.inf
    by_socket: bool = False
    max_memory: float = math.inf
    max_memory_cpu: float = math.inf
    exclusive: bool = False
    shares: bool = False
    allowed: dict[str, frozenset[str]] = field(default_factory=dict)
    denied: dict[str, frozenset[str]] = field(default_factory=dict)


@dataclass(slots=True)
class Machine:
    """What a view needs of a node beside its room."""

    node: Node
    features: frozenset[str] = frozenset()
    sockets: float = math.inf
    cores: float = math.inf
    threads: float = 1.0
    disk: float = math.inf
    used: dict[str, float] = field(default_factory=dict)  # as the node itself tells, exactly
    state: str = ""


@dataclass(slots=True)
class Cluster:
    """All nodes and partitions."""

    machines: dict[str, Machine] = field(default_factory=dict)
    partitions: dict[str, Partition] = field(default_factory=dict)
    sums_only: bool = False  # whether usage is told for groups of nodes
    has_memory: bool = False
    has_partitions: bool = False
    reach: dict[Any, frozenset[str]] = field(default_factory=dict)  # sets of nodes that jobs' rules admit


def read_cluster(path: str, found: Any) -> Cluster:
    """Return the nodes and partitions of a document; ViewError if it has neither `sinfo` nor `nodes`."""
    cluster = Cluster()
    lists = {
        name: found[name]
        for name in ("sinfo", "nodes", "partitions")
        if isinstance(found, dict) and isinstance(found.get(name), list)
    }
    if "sinfo" in lists:
        for at, each in enumerate(lists["sinfo"]):
            _entry(f"{path}: sinfo[{at}]", each, cluster)
    elif "nodes" in lists:
        for at, each in enumerate(lists["nodes"]):
            _node(f"{path}: nodes[{at}]", each, cluster)
    else:
        raise ViewError(f"{path}: has no list 'sinfo' or 'nodes'; give what `sinfo --json` prints")
    for at, each in enumerate(lists.get("partitions", [])):
        name = part({"at": each}, "at", "name")
        if isinstance(name, str):
            cluster.has_partitions = True
            _limits(f"{path}: partitions[{at}]", each, cluster.partitions.setdefault(name, Partition(name)))
    cluster.has_memory = any("mem" in each.node.total for each in cluster.machines.values())
    for partition in cluster.partitions.values():
        _share_of(partition, cluster)
    return cluster


def cpus_of(partition: str) -> str:
    """Return the name of the room that a partition's jobs have together in a node's CPUs (MaxCPUsPerNode)."""
    return f"cpu/{partition}"


def _share_of(partition: Partition, cluster: Cluster) -> None:
    """Give each node of a partition with such a limit the room that it leaves to the partition's jobs."""
    if math.isinf(partition.max_cpus):
        return
    for name in partition.nodes & cluster.machines.keys():
        node, room = cluster.machines[name].node, cpus_of(partition.name)
        node.total[room] = node.free[room] = partition.max_cpus
        if "cpu" in node.step:
            node.step[room] = node.step["cpu"]


def states_of(value: Any, flags: Any = None) -> set[str]:
    """Return the states of a node in capitals, with flags that old releases write apart or as a sign."""
    found: set[str] = set()
    for each in words(
        [each for one in (value, flags) if one is not None for each in (one if isinstance(one, list) else [one])]
    ):
        name = each.upper()
        while name and name[-1] in FLAGS:
            found.add(FLAGS[name[-1]])
            name = name[:-1]
        found |= set(name.split("+"))
    return {{"MAINT": "MAINTENANCE", "ALLOC": "ALLOCATED", "MIX": "MIXED"}.get(name, name) for name in found if name}


def _entry(where: str, each: Any, cluster: Cluster) -> None:
    """Read an entry of sinfo: equal nodes of one partition."""
    at = {"at": each}
    name, listed = part(at, "at", "partition", "name"), part(at, "at", "nodes", "nodes")
    if not isinstance(name, str) or not isinstance(listed, list):
        raise ViewError(f"{where}: partition.name or nodes.nodes is missing")
    cluster.has_partitions = True
    partition = cluster.partitions.setdefault(name, Partition(name))
    _limits(where, part(at, "at", "partition"), partition)
    names = [name for each in listed for name in expanded(str(each))]
    partition.nodes.update(names)
    low, high = (number(part(at, "at", "cpus", which)) for which in ("minimum", "maximum"))
    least, most = (number(part(at, "at", "memory", which)) for which in ("minimum", "maximum"))
    total: dict[str, float] = {"cpu": (low or high or 0.0)}
    reserved = numbers(text(part(at, "at", "resource_spec", "cpus")))
    total["cpu"] = max(0.0, total["cpu"] - len(reserved))
    if least or most:
        total["mem"] = max(0.0, (least or most or 0.0) - (number(part(at, "at", "resource_spec", "memory")) or 0.0))
    total |= kinds(gres(f"{where}.gres.total", part(at, "at", "gres", "total")))
    maybe = {"cpu": max(0.0, (high or 0.0) - (low or high or 0.0))} | (
        {"mem": (most or 0.0) - (least or most or 0.0)} if "mem" in total else {}
    )
    used: dict[str, float] = {}
    if len(names) == 1:
        for resource, field_name in (("cpu", "cpus"), ("mem", "memory")):
            taken = number(part(at, "at", field_name, "allocated"))
            if taken is not None:
                used[resource] = taken
        used |= kinds(gres(f"{where}.gres.used", part(at, "at", "gres", "used")))
    elif len(names) > 1:
        cluster.sums_only = True
    features = part(at, "at", "features", "active") or part(at, "at", "features", "total")
    for node in names:
        machine = Machine(
            Node(
                node, dict(total), dict(total), {resource: amount for resource, amount in maybe.items() if amount > 0.0}
            ),
            frozenset(words(features)),
            number(part(at, "at", "sockets", "minimum")) or math.inf,
            number(part(at, "at", "cores", "minimum")) or math.inf,
            number(part(at, "at", "threads", "minimum")) or 1.0,
            _or_inf(number(part(at, "at", "disk", "minimum"))),
            dict(used),
        )
        _put(machine, states_of(part(at, "at", "node", "state")), text(part(at, "at", "reservation")), cluster)


def _node(where: str, each: Any, cluster: Cluster) -> None:
    """Read a node of a list of nodes."""
    name = part({"at": each}, "at", "name")
    if not isinstance(name, str) or not name:
        raise ViewError(f"{where}: name is missing")
    cpus = number(each.get("effective_cpus")) or number(each.get("cpus")) or 0.0
    total: dict[str, float] = {"cpu": cpus}
    memory = number(each.get("real_memory"))
    if memory:
        total["mem"] = max(0.0, memory - (number(each.get("specialized_memory")) or 0.0))
    total |= kinds(gres(f"{where}.gres", each.get("gres")))
    used = {
        resource: taken
        for resource, taken in (("cpu", number(each.get("alloc_cpus"))), ("mem", number(each.get("alloc_memory"))))
        if taken is not None
    }
    used |= kinds(gres(f"{where}.gres_used", each.get("gres_used")))
    drained = gres(f"{where}.gres_drained", each.get("gres_drained"))
    for resource, count in kinds({key: value for key, value in drained.items() if value}).items():
        total[resource] = max(0.0, total.get(resource, 0.0) - count)
    features = words(each.get("active_features")) or words(each.get("features"))
    machine = Machine(
        Node(name, dict(total), dict(total)),
        frozenset(features),
        number(each.get("sockets")) or math.inf,
        number(each.get("cores")) or math.inf,
        number(each.get("threads")) or 1.0,
        _or_inf(number(each.get("temporary_disk"))),
        used,
    )
    if text(each.get("gpu_spec")) or number(each.get("res_cores_per_gpu")):
        machine.node.unclear = "it keeps cores for jobs with GPUs (RestrictedCoresPerGPU)"
    owner, label = text(each.get("owner")), text(each.get("mcs_label"))
    if owner:
        machine.node.owner = owner
    _put(machine, states_of(each.get("state"), each.get("state_flags")), text(each.get("reservation")), cluster)
    if label and not machine.node.unclear:
        machine.node.unclear = f"it has the MCS label {label}"
    for partition in words(each.get("partitions")):
        cluster.partitions.setdefault(partition, Partition(partition)).nodes.add(name)


def _or_inf(value: float | None) -> float:
    return math.inf if value is None else value


def _put(machine: Machine, states: set[str], reservation: str, cluster: Cluster) -> None:
    node = machine.node
    closing = sorted(states - OPEN - HARMLESS - UNCLEAR)
    if closing or not states & OPEN:
        node.closed = f"it is {' '.join(closing) or 'in no state that is told'}"
    elif reservation:
        node.closed = f"it is reserved by {reservation}"
    elif states & UNCLEAR and not node.unclear:
        node.unclear = f"it is {' '.join(sorted(states & UNCLEAR))}"
    machine.state = next((name for name in ("ALLOCATED", "MIXED", "IDLE") if name in states), "")
    if machine.state == "ALLOCATED":
        machine.used["cpu"] = max(machine.used.get("cpu", 0.0), node.total["cpu"])
    if machine.threads > 1.0 and node.total["cpu"] % machine.threads == 0.0:
        node.step["cpu"] = machine.threads
    before = cluster.machines.get(node.name)
    if before is None:
        cluster.machines[node.name] = machine
        return
    # a node of several partitions is told once for each: what closes it or takes from it counts
    before.node.closed = before.node.closed or node.closed
    before.node.unclear = before.node.unclear or node.unclear
    for resource, taken in machine.used.items():
        before.used[resource] = max(before.used.get(resource, 0.0), taken)


def _limits(where: str, each: Any, partition: Partition) -> None:
    """Read a partition's state and limits, in the form of sinfo or in the flat one of old REST versions."""
    at = {"at": each}
    states = states_of(part(at, "at", "partition", "state") or part(at, "at", "state"))
    if states - {"UP", "DRAIN", "UNKNOWN"}:
        partition.closed = f"partition {partition.name} is {' '.join(sorted(states))}"

    def limit(*paths: tuple[str, ...]) -> float:
        return next((value for path in paths if (value := number(part(at, "at", *path)))), math.inf)

    partition.max_nodes = limit(("maximums", "nodes"), ("max_nodes_per_job",))
    partition.min_nodes = (
        number(part(at, "at", "minimums", "nodes")) or number(part(at, "at", "min_nodes_per_job")) or 0.0
    )
    partition.max_minutes = limit(("maximums", "time"), ("max_time_limit",))
    most = limit(("maximums", "cpus_per_node"), ("maximum_cpus_per_node",), ("max_cpus_per_node",))
    partition.max_cpus = most if most < UNSET else math.inf
    partition.by_socket = limit(("maximums", "cpus_per_socket"), ("max_cpus_per_socket",)) < UNSET
    partition.max_memory = limit(("maximums", "partition_memory_per_node"))
    partition.max_memory_cpu = limit(("maximums", "partition_memory_per_cpu"))
    shares = number(part(at, "at", "maximums", "oversubscribe", "jobs"))
    if shares is None:
        shares = number(part(at, "at", "maximums", "shares"))
    partition.exclusive = shares == 0.0
    flags = words(part(at, "at", "maximums", "oversubscribe", "flags"))
    partition.shares = (shares or 1.0) > 1.0 or any(flag.lower() == "force" for flag in flags)
    for key, single, allow, deny in (
        ("account", "accounts", "allowed_accounts", "denied_accounts"),
        ("qos", "qos", "allowed_qos", "denied_qos"),
        ("group", "groups", "allowed_groups", "denied_groups"),
    ):
        allowed = words(part(at, "at", single, "allowed") or part(at, "at", allow))
        denied = words(part(at, "at", single, "deny") or part(at, "at", deny))
        if key != "group":  # accounts and QOS are the same in capitals
            allowed, denied = [each.lower() for each in allowed], [each.lower() for each in denied]
        if allowed and not {"all", "ALL"} & set(allowed):
            partition.allowed[key] = frozenset(allowed)
        if denied and not allowed:
            partition.denied[key] = frozenset(denied)


def shards_of(total: Mapping[str, float]) -> float:
    """Return the shards of one GPU; 0 without shards."""
    return total.get("gres/shard", 0.0) / (total.get("gres/gpu", 0.0) or 1.0)
