"""Converts Slurm's jobs and nodes to a view of the cluster: `squeue --json` and `sinfo --json`, or REST's lists.

Partitions become queues. Partitions that share nodes share one pool; each may use as much as its own nodes have. What
decides about a start are the nodes' rooms.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from copter_serve.queues import Quota, QuotaTree
from copter_serve.queues.quota_tree import Share
from copter_serve.views.documents import parse_json, read_text
from copter_serve.views.slurm_jobs import FLAVOR, GPU, HOLDING, Asked, asked, hold_of, limit_of, ways_of
from copter_serve.views.slurm_nodes import Cluster, Machine, cpus_of, read_cluster, shards_of
from copter_serve.views.slurm_text import errors_of, expanded, gres, kinds, number, numbers, text, tres, words
from copter_serve.views.starts import WHOLE, Node
from copter_serve.views.view import ClusterView, ViewError, WatchedJob

MOST_TASKS = 1000  # most waiting tasks of one array that are listed
UNSEEN = [
    "limits of accounts, users and QOS, licenses and reservations that are not yet a job's reason to wait",
    "plugins, sockets and switches, and nodes that Slurm keeps for jobs of higher priority",
]


def slurm_view(queue_path: str, info_path: str) -> ClusterView:
    """Return the view of a cluster from the two files; ViewError if they describe no cluster."""
    found = parse_json(queue_path, read_text(queue_path))
    if not isinstance(found, dict) or not isinstance(found.get("jobs"), list):
        raise ViewError(f"{queue_path}: has no list 'jobs'; give what `squeue --json` prints")
    info = parse_json(info_path, read_text(info_path))
    for path, document in ((queue_path, found), (info_path, info)):
        if wrong := errors_of(document):
            raise ViewError(f"{path}: Slurm says in it: {wrong}; run the command again once slurmctld answers")
    view = view_of(found["jobs"], read_cluster(info_path, info))
    view.read_s = min(_written(queue_path), _written(info_path))
    return view


def _written(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return math.nan


def view_of(jobs: list[Any], cluster: Cluster) -> ClusterView:
    """Return the view of a list of jobs on a cluster."""
    skipped: list[str] = []
    known: list[tuple[Any, Asked]] = []
    for at, each in enumerate(jobs):
        try:
            job = asked(each)
        except ViewError as error:
            name = each.get("job_id") if isinstance(each, dict) else None
            skipped.append(f"Slurm job {name or f'number {at}'}: {error}: left out")
            _lost(each, cluster, skipped)
            continue
        if job is not None:
            known.append((each, job))
    _occupy(known, cluster)
    tree = _tree(cluster)
    counts_memory = _counts_memory(known, cluster)
    view = ClusterView("slurm", tree, [], {name: each.node for name, each in cluster.machines.items()}, skipped=skipped)
    view.not_modelled = _unseen(cluster, counts_memory, any(job.shares for _, job in known))
    if any(job.holds and not job.on for _, job in known):
        view.not_modelled.append("where jobs run that do not tell their nodes: their room is taken from each node")
    running = Counter(job.array for _, job in known if job.holds and job.array)
    seen_s = max((max(job.came_s, job.looked_s, job.started_s if job.holds else 0.0) for _, job in known), default=0.0)
    for document, job in known:
        names = [name for name in job.partitions if name in tree.queues]
        if not names:
            skipped.append(
                f"Slurm job {job.id}: partition {document.get('partition')!r} is not among the partitions: left out"
            )
            continue
        if job.holds:
            took = _shares(job.taken)
            view.jobs.append(
                WatchedJob(
                    job.id,
                    names[0],
                    job.priority,
                    (took,),
                    True,
                    job.came_s,
                    job.started_s if job.started_s else math.nan,
                    pod={},
                    limit_s=limit_of(document),
                )
            )
            # a node may have been taken out of the partition of a job on it
            inside = (
                sum(name in cluster.partitions[names[0]].nodes for name in job.on) / max(len(job.on), 1)
                if job.on
                else 1.0
            )
            quotas = tree.queues[names[0]].quotas
            tree.use(names[0], {share: amount * inside for share, amount in took.items() if share in quotas})
            continue
        held, unclear = hold_of(document, job, [cluster.partitions[name] for name in names], seen_s)
        try:
            ways = ways_of(document, job, [cluster.partitions[name] for name in names], cluster, counts_memory)
        except ViewError as error:
            ways, unclear = (), unclear or str(error)
        option = _shares(job.wanted)
        one = WatchedJob(
            job.id,
            names[0],
            job.priority,
            (option,),
            False,
            job.came_s,
            held=held,
            pod={name: amount / max(job.nodes, 1.0) for (_, name), amount in option.items()},
            ways=ways,
            unclear=unclear,
            limit_s=limit_of(document),
        )
        view.jobs += _tasks(document, one, job, running, skipped)
    return view


def _shares(amounts: Mapping[str, float]) -> dict[Share, float]:
    return {(FLAVOR, name): amount for name, amount in amounts.items() if name in ("cpu", GPU)}


def _unseen(cluster: Cluster, counts_memory: bool, shares: bool) -> list[str]:
    found = list(UNSEEN)
    if not cluster.has_partitions:
        found.append("states and limits of partitions, which a list of nodes does not have")
    if not cluster.has_memory:
        found.append("memory of nodes, which is not in the documents")
    elif not counts_memory:
        found.append("memory, which this cluster does not count")
    if any("account" in (each.allowed | each.denied) for each in cluster.partitions.values()):
        found.append("which account is below which: AllowAccounts and DenyAccounts go by name")
    if shares or any(each.shares for each in cluster.partitions.values()):
        found.append("CPUs that jobs share (OverSubscribe)")
    if cluster.sums_only:
        found.append("usage of single nodes by jobs that are hidden: `sinfo -N --json` tells it")
    return found


def _tasks(document: Any, job: WatchedJob, about: Asked, running: Counter[str], skipped: list[str]) -> list[WatchedJob]:
    """Return the jobs of a document: one, or each waiting task of an array, of which a limit may hold some back.

    Tasks that run count against the limit, too.
    """
    told, _, limit = text(document.get("array_task_string")).strip("[]").partition("%")
    tasks = numbers(told.strip("[]"), MOST_TASKS)
    if len(tasks) == MOST_TASKS or "..." in told:
        skipped.append(f"Slurm job {job.id}: only {len(tasks)} waiting tasks of its array are read")
    most = int(number(document.get("array_max_tasks")) or (int(limit) if limit.isdecimal() else 0)) or math.inf
    found: list[WatchedJob] = []
    for task in tasks or [""]:
        runs = running[about.array] if about.array else len(found)
        held = job.held or ("" if runs < most else "JobArrayTaskLimit")
        if about.array and not job.held:
            running[about.array] += 1
        found.append(replace(job, id=f"{job.id}_{task}" if task else job.id, held=held))
    return found


def _tree(cluster: Cluster) -> QuotaTree:
    nodes_of = {name: each.nodes & cluster.machines.keys() for name, each in cluster.partitions.items()}
    has: dict[str, dict[Share, float]] = {}
    for name, machine in cluster.machines.items():
        node = machine.node
        has[name] = {
            (FLAVOR, resource): (node.total.get(resource, 0.0) - node.free.get(resource, 0.0))
            if node.closed
            else node.total.get(resource, 0.0)
            for resource in ("cpu", GPU)
        }
    # a cluster without GPUs does not count them
    shares = [
        share
        for share in ((FLAVOR, "cpu"), (FLAVOR, GPU))
        if share[1] == "cpu" or any(machine.node.total.get(GPU) for machine in cluster.machines.values())
    ]
    tree = QuotaTree()
    for pool in _pools(nodes_of):
        every = set().union(*(nodes_of[name] for name in pool))
        tree.add_cohort(pool[0], {share: Quota(sum(has[node][share] for node in every)) for share in shares})
        for name in pool:
            most = {share: sum(has[node][share] for node in nodes_of[name]) for share in shares}
            tree.add_queue(name, {share: Quota(0.0, amount) for share, amount in most.items()}, pool[0])
    return tree.settle()


def _pools(nodes_of: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the partitions in groups of those that share nodes."""
    pools: list[tuple[list[str], set[str]]] = []
    for name in sorted(nodes_of):
        joined = [pool for pool in pools if pool[1] & nodes_of[name]]
        names = [each for pool in joined for each in pool[0]]
        pools = [pool for pool in pools if pool not in joined]
        pools.append(([*names, name], set(nodes_of[name]).union(*(pool[1] for pool in joined))))
    return [names for names, _ in pools]


# What runs ------------------------------------------------------------------------------------------------------------


def _occupy(known: list[tuple[Any, Asked]], cluster: Cluster) -> None:
    """Lower the nodes' rooms by the jobs that hold them, or by what the nodes tell of themselves if that is more."""
    sums: dict[str, dict[str, float]] = {name: {} for name in cluster.machines}
    shards: Counter[str] = Counter()
    for document, job in known:
        if not job.holds:
            continue
        names = [name for name in job.on if name in cluster.machines]
        if not job.on:
            # somewhere in its partition: no node there surely has this room
            for partition in job.partitions:
                for name in cluster.partitions[partition].nodes if partition in cluster.partitions else ():
                    node = cluster.machines[name].node
                    if not node.closed:
                        for resource, amount in _also_of(partition, job.taken, node).items():
                            node.free[resource] = node.free.get(resource, 0.0) - amount
                            node.maybe[resource] = node.maybe.get(resource, 0.0) + amount
            continue
        per = _per_node(document, job)
        for name in names:
            machine = cluster.machines[name]
            machine.node.users |= {job.user}
            alone = job.alone or (WHOLE if _is_exclusive(job, cluster) else "")
            if alone:
                machine.node.owner = alone if machine.node.owner in ("", alone) else WHOLE
            held: Mapping[str, float] = per[name]
            for partition in job.partitions:
                held = _also_of(partition, held, machine.node)
            for resource, amount in held.items():
                sums[name][resource] = sums[name].get(resource, 0.0) + amount
            shards[name] += per[name].get("gres/shard", 0.0) > 0.0
    for name, machine in cluster.machines.items():
        _lower(machine, sums[name], shards[name])


def _also_of(partition: str, taken: Mapping[str, float], node: Node) -> Mapping[str, float]:
    """Add what a job takes of the CPUs that a node leaves to its partition."""
    room = cpus_of(partition)
    return {**taken, room: taken.get("cpu", 0.0)} if room in node.total else taken


def _is_exclusive(job: Asked, cluster: Cluster) -> bool:
    return any(cluster.partitions[name].exclusive for name in job.partitions if name in cluster.partitions)


def _lower(machine: Machine, taken: Mapping[str, float], shard_jobs: int) -> None:
    node = machine.node
    used = dict(machine.used)
    hidden = max(0.0, used.get("cpu", 0.0) - taken.get("cpu", 0.0))
    for resource in node.total:
        if resource.startswith("cpu/"):
            # jobs that are hidden may be of this partition
            node.free[resource] -= hidden
            node.maybe[resource] = hidden
    for resource, amount in taken.items():
        used[resource] = max(used.get(resource, 0.0), amount)
    types = [name for name in node.total if name.startswith(GPU + ":")]
    untyped = used.get(GPU, 0.0) - sum(used.get(name, 0.0) for name in types)
    for name in types:
        # GPUs of no told type may be of any
        used[name] = min(node.total[name], used.get(name, 0.0) + max(0.0, untyped))
        if untyped > 0.0 and len(types) > 1:
            node.maybe[name] = node.maybe.get(name, 0.0) + untyped
    for resource in {*node.total, *used}:
        node.free[resource] = max(0.0, node.free.get(resource, 0.0) - used.get(resource, 0.0))
    per = shards_of(node.total)
    if per > 0.0:
        count = int(node.total[GPU])
        whole = min(count, int(used.get(GPU, 0.0)))
        parts = min(count - whole, max(shard_jobs, 1 if used.get("gres/shard", 0.0) > 0.0 else 0))
        if used.get("gres/shard", 0.0) > shard_jobs * per:
            parts = count - whole  # jobs that are hidden
        node.devices, node.device, node.device_memory = (
            ((0.0,) * (whole + parts) + (1.0,) * (count - whole - parts),),
            GPU,
            per,
        )
        node.maybe[GPU] = node.maybe.get(GPU, 0.0) + parts


def _per_node(document: Any, job: Asked) -> dict[str, dict[str, float]]:
    """Return what a job holds on each of its nodes; what is not told in pieces is dealt out evenly, rounded up."""
    count = len(job.on)
    even = {
        resource: amount if count == 1 else _share(amount, count, resource) for resource, amount in job.taken.items()
    }
    found = {name: dict(even) for name in job.on}
    detail = document.get("gres_detail")
    if isinstance(detail, list) and len(detail) == count:
        for name, each in zip(job.on, detail, strict=True):
            told = kinds(gres("gres_detail", each))
            if told:
                for resource in [resource for resource in found[name] if resource.startswith("gres/")]:
                    if resource.partition(":")[0] in told:
                        del found[name][resource]
                found[name] |= told
    for name, memory, cpus in _allocations(document):
        if name in found:
            if memory is not None:
                found[name]["mem"] = memory
            if cpus and "cpu" in job.taken:
                found[name]["cpu"] = max(cpus, 0.0)
    return found


def _share(amount: float, count: int, resource: str) -> float:
    return amount / count if resource == "mem" else float(math.ceil(amount / count - 1e-9))


def _allocations(document: Any) -> list[tuple[str, float | None, float | None]]:
    """Return (node, memory, CPUs) of a running job, as the releases write them."""
    resources = document.get("job_resources")
    if not isinstance(resources, dict):
        return []
    nodes = resources.get("nodes")
    if isinstance(nodes, dict):
        listed = nodes.get("allocation") or []
    else:
        listed = resources.get("allocated_nodes") or []
        listed = list(listed.values()) if isinstance(listed, dict) else listed
    found = []
    for each in listed if isinstance(listed, list) else []:
        if isinstance(each, dict):
            name = str(each.get("name") or each.get("nodename") or "")
            memory, cpus = each.get("memory"), each.get("cpus")
            inner = memory if isinstance(memory, dict) else {"allocated": each.get("memory_allocated", memory)}
            count = number(cpus.get("count")) if isinstance(cpus, dict) else None
            found.append((name, number(inner.get("allocated")), count))
    return found


def _lost(document: Any, cluster: Cluster, skipped: list[str]) -> None:
    """Take the nodes of a job that cannot be read out of account: what it holds there is not known."""
    if not isinstance(document, dict) or not set(words(document.get("job_state"))) & (HOLDING | {"SUSPENDED"}):
        return
    try:
        names = expanded(text(document.get("nodes")))
    except ViewError:
        names = list(cluster.machines)
    for name in names:
        if name in cluster.machines and not cluster.machines[name].node.closed:
            cluster.machines[name].node.unclear = f"job {document.get('job_id')} on it cannot be read"
    if names:
        skipped.append(f"Slurm: {len(names)} nodes are left out, as a job on them cannot be read")


def _counts_memory(known: list[tuple[Any, Asked]], cluster: Cluster) -> bool:
    """Whether the cluster gives memory to jobs: nodes on which jobs run would tell of it."""
    for document, job in known:
        if job.holds and any(memory for _, memory, _ in _allocations(document)):
            return cluster.has_memory
        if job.holds and not job.suspended and tres("", document.get("tres_alloc_str")).get("mem"):
            told = [cluster.machines[name].used.get("mem") for name in job.on if name in cluster.machines]
            if (
                told
                and all(each == 0.0 for each in told)
                and any(cluster.machines[name].used.get("cpu") for name in job.on if name in cluster.machines)
            ):
                return False
    return cluster.has_memory
