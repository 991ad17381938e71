"""Converts Slurm's `squeue --json` and `sinfo --json` to a view of the cluster.

Partitions become queues. Partitions that share nodes share one pool; each may use as much as its own nodes have.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

from copter_serve.queues import Quota, QuotaTree
from copter_serve.queues.quota_tree import Share
from copter_serve.views.documents import parse_json, part, read_text
from copter_serve.views.view import ClusterView, ViewError, WatchedJob

FLAVOR = "slurm"
GPU = "gres/gpu"
LOST = ("DOWN", "DRAIN", "FAIL", "MAINT", "UNKNOWN", "POWERED_DOWN", "NOT_RESPONDING")
# beginnings of the reasons for which a job waits although there may be room
HOLDS = (
    "JobHeld", "JobHoldMaxRequeue", "JobArrayTaskLimit", "Dependency", "BeginTime", "Reservation", "Partition", "QOS",
    "Assoc", "Licenses",
)  # fmt: skip
HOLDING = {"RUNNING", "COMPLETING", "CONFIGURING"}  # states of jobs that have their nodes
COUNT = re.compile(r"^(?:gres[/:])?gpu(?::([^:(=]+))?[:=](\d+)")
RANGES = re.compile(r"^([^\[\],]*)\[([\d,-]+)\]([^\[\]]*)$")
MOST_TASKS = 1000  # most waiting tasks of one array that are listed


def slurm_view(queue_path: str, info_path: str) -> ClusterView:
    """Return the view of a cluster from the two files; ViewError if they describe no cluster."""
    jobs, info = (_listed(path, name) for path, name in ((queue_path, "jobs"), (info_path, "sinfo")))
    view = ClusterView("slurm", _tree(info_path, info), [])
    for at, each in enumerate(jobs):
        try:
            job = _job(each, view.tree)
            tasks = [] if job is None else _tasks(each, job)
        except ViewError as error:
            view.skipped.append(f"Slurm job {part({'at': each}, 'at', 'job_id') or f'number {at}'}: {error}: left out")
            continue
        if job is not None and job.running:
            view.tree.use(job.queue, job.options[0])
        if len(tasks) == MOST_TASKS or "..." in str(part({"at": each}, "at", "array_task_string")):
            view.skipped.append(f"Slurm job {each['job_id']}: only {len(tasks)} waiting tasks of its array are read")
        view.jobs += tasks
    return view


def _listed(path: str, name: str) -> list[Any]:
    found = parse_json(path, read_text(path))
    if not isinstance(found, dict) or not isinstance(found.get(name), list):
        command = "squeue" if name == "jobs" else "sinfo"
        raise ViewError(f"{path}: has no list {name!r}; give what `{command} --json` prints")
    return list(found[name])


def number(value: Any) -> float | None:
    """Return a number as Slurm's versions write it: plain, or with a flag that says whether it is set."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set", True) and not value.get("infinite", False) else None
    return None if isinstance(value, bool) or not isinstance(value, int | float) else float(value)


def gpus_in(text: Any) -> float:
    """Return the GPUs of a list of resources, such as "gpu:a100:4(S:0-1)", "gres/gpu=2" or "gres/gpu:2"."""
    found = [COUNT.match(each.strip()) for each in str(text or "").split(",")]
    whole = [float(match[2]) for match in found if match and not match[1]]
    return sum(whole) or sum(float(match[2]) for match in found if match)  # types repeat what the whole has


def expanded(names: str) -> list[str]:
    """Return the names of a host list, such as n[1-3,07]; ViewError for one that cannot be read."""
    found = RANGES.match(names)
    if found is None:
        if "[" in names:
            raise ViewError(f"the host list {names!r} cannot be read: give what `sinfo -N --json` prints")
        return [names]
    return [f"{found[1]}{each}{found[3]}" for each in numbers(found[2])]


def numbers(text: str, most: int = 1_000_000) -> list[str]:
    """Return the numbers of a list such as 1-3,07, padded as given; at most so many."""
    found: list[str] = []
    for each in text.split(","):
        first, _, last = each.partition("-")
        if not (first.isdecimal() and (last or first).isdecimal()):
            continue  # Slurm shortens long lists by "..."
        reach = range(int(first), min(int(last or first), int(first) + most - len(found) - 1) + 1)
        found += [str(number).zfill(len(first)) for number in reach]
    return found[:most]


def _tasks(document: Any, job: WatchedJob) -> list[WatchedJob]:
    """Return the jobs of a document: one, or each waiting task of an array, of which a limit may hold some back."""
    text, _, limit = str(document.get("array_task_string") or "").strip("[]").partition("%")
    tasks = [] if job.running else numbers(text, MOST_TASKS)
    if not tasks:
        return [job]
    most = int(number(document.get("array_max_tasks")) or (int(limit) if limit.isdecimal() else 0)) or len(tasks)
    return [
        replace(job, id=f"{job.id}_{task}", held=job.held or ("" if at < most else "JobArrayTaskLimit"))
        for at, task in enumerate(tasks)
    ]


def _tree(path: str, info: list[Any]) -> QuotaTree:
    nodes_of: dict[str, set[str]] = {}
    has: dict[str, dict[Share, float]] = {}
    for at, each in enumerate(info):
        where = f"{path}: sinfo[{at}]"
        partition = part({"at": each}, "at", "partition", "name")
        nodes = part({"at": each}, "at", "nodes", "nodes")
        if not isinstance(partition, str) or not isinstance(nodes, list):
            raise ViewError(f"{where}: partition.name or nodes.nodes is missing")
        nodes_of.setdefault(partition, set())
        states = part({"at": each}, "at", "node", "state") or []
        if any(str(state).startswith(LOST) for state in (states if isinstance(states, list) else [states])):
            continue
        nodes = [name for each in nodes for name in expanded(str(each))]
        nodes_of[partition].update(nodes)
        cpus = number(part({"at": each}, "at", "cpus", "maximum")) or 0.0
        gpus = gpus_in(part({"at": each}, "at", "gres", "total"))
        for node in nodes:
            has[node] = {(FLAVOR, "cpu"): cpus, (FLAVOR, GPU): gpus}
    shares = [(FLAVOR, "cpu"), (FLAVOR, GPU)]
    tree, left = QuotaTree(), dict(nodes_of)
    for pool in _pools(nodes_of):
        own = {share: sum(has[node][share] for node in set().union(*(left[name] for name in pool))) for share in shares}
        tree.add_cohort(pool[0], {share: Quota(amount) for share, amount in own.items()})
        for name in pool:
            most = {share: sum(has[node][share] for node in left[name]) for share in shares}
            tree.add_queue(name, {share: Quota(0.0, amount) for share, amount in most.items()}, pool[0])
    return tree.settle()


def _pools(nodes_of: dict[str, set[str]]) -> list[list[str]]:
    """Return the partitions in groups of those that share nodes."""
    pools: list[list[str]] = []
    for name in sorted(nodes_of):
        joined = [pool for pool in pools if any(nodes_of[name] & nodes_of[each] for each in pool)]
        pools = [pool for pool in pools if pool not in joined] + [[*(each for pool in joined for each in pool), name]]
    return pools


def _job(document: Any, tree: QuotaTree) -> WatchedJob | None:
    if not isinstance(document, dict):
        raise ViewError("is no object")
    state = document.get("job_state")
    states = set(map(str, state if isinstance(state, list) else [state])) - {"None"}
    if not states:
        raise ViewError("job_state is missing")
    running = bool(states & HOLDING)
    if not running and not states & {"PENDING", "SUSPENDED"}:
        return None
    number_of_it, came = document.get("job_id"), number(document.get("submit_time"))
    if number_of_it is None or came is None:
        raise ViewError(f"{'job_id' if number_of_it is None else 'submit_time'} is missing")
    names = [name for name in str(document.get("partition") or "").split(",") if name in tree.queues]
    if not names:
        raise ViewError(f"partition {document.get('partition')!r} is not in sinfo")
    asked = document.get("tres_alloc_str" if running else "tres_req_str") or document.get("tres_req_str")
    if not isinstance(asked, str):
        raise ViewError("tres_req_str is missing")
    needs = dict(each.split("=", 1) for each in asked.split(",") if "=" in each)
    try:
        amounts = {(FLAVOR, name): float(needs[name]) for name in ("cpu", GPU) if name in needs}
    except ValueError:
        raise ViewError(f"tres_req_str {asked!r} has a count that is no number") from None
    gpus = gpus_in(asked) or _untracked(document, running)
    if gpus and (FLAVOR, GPU) not in amounts:
        amounts[FLAVOR, GPU] = gpus
    reason = str(document.get("state_reason") or "")
    held = reason if reason.startswith(HOLDS) else ("suspended" if "SUSPENDED" in states else "")
    started = number(document.get("start_time")) if running else None
    return WatchedJob(
        str(number_of_it), names[0], int(number(document.get("priority")) or 0), (amounts,), running, came,
        math.nan if started is None else started, held,
        {name: amount / (number(document.get("node_count")) or 1.0) for (_, name), amount in amounts.items()},
    )  # fmt: skip


def _untracked(document: Any, running: bool) -> float:
    """Return a job's GPUs where Slurm's accounting does not track them: from its allocation, or from its request."""
    if running and isinstance(document.get("gres_detail"), list):
        return sum(map(gpus_in, document["gres_detail"]))
    for name, per in (("tres_per_job", None), ("tres_per_node", "node_count"), ("tres_per_task", "tasks")):
        if gpus := gpus_in(document.get(name)):
            return gpus * (1.0 if per is None else number(document.get(per)) or 1.0)
    return 0.0
