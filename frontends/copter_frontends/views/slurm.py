"""Slurm's `squeue --json` and `sinfo --json` as a view of the cluster.

Partitions are queues. Partitions that share nodes share one pool, in which each may use what its own nodes have.
"""

from __future__ import annotations

import math
import re
from typing import Any

from copter_frontends.queues import Quota, QuotaTree
from copter_frontends.queues.quota_tree import Share
from copter_frontends.views.documents import parse_json, part, read_text
from copter_frontends.views.view import ClusterView, ViewError, WatchedJob

FLAVOR = "slurm"
GPU = "gres/gpu"
LOST = ("DOWN", "DRAIN", "FAIL", "MAINT", "UNKNOWN", "POWERED_DOWN", "NOT_RESPONDING")
HOLDS = ("JobHeldAdmin", "JobHeldUser", "Dependency", "BeginTime")
COUNT = re.compile(r"^gpu(?::([^:(]+))?:(\d+)")


def slurm_view(queue_path: str, info_path: str) -> ClusterView:
    """The view that the two files give; ViewError for what says nothing of a cluster."""
    jobs, info = (_listed(path, name) for path, name in ((queue_path, "jobs"), (info_path, "sinfo")))
    view = ClusterView("slurm", _tree(info_path, info), [])
    for at, each in enumerate(jobs):
        try:
            job = _job(each, view.tree)
        except ViewError as error:
            view.skipped.append(f"Slurm job {part({'at': each}, 'at', 'job_id') or f'number {at}'}: {error}: left out")
            continue
        if job is not None:
            if job.running:
                view.tree.use(job.queue, job.options[0])
            view.jobs.append(job)
    return view


def _listed(path: str, name: str) -> list[Any]:
    found = parse_json(path, read_text(path))
    if not isinstance(found, dict) or not isinstance(found.get(name), list):
        command = "squeue" if name == "jobs" else "sinfo"
        raise ViewError(f"{path}: has no list {name!r}; give what `{command} --json` prints")
    return list(found[name])


def number(value: Any) -> float | None:
    """A number as Slurm's versions write it: plain, or with whether it is set."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set", True) and not value.get("infinite", False) else None
    return None if isinstance(value, bool) or not isinstance(value, int | float) else float(value)


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
        nodes_of[partition].update(map(str, nodes))
        cpus = number(part({"at": each}, "at", "cpus", "maximum")) or 0.0
        found = [COUNT.match(gres) for gres in str(part({"at": each}, "at", "gres", "total") or "").split(",")]
        gpus = float(sum(int(match[2]) for match in found if match))
        for node in map(str, nodes):
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
    """Partitions, those together that share nodes."""
    pools: list[list[str]] = []
    for name in sorted(nodes_of):
        joined = [pool for pool in pools if any(nodes_of[name] & nodes_of[each] for each in pool)]
        pools = [pool for pool in pools if pool not in joined] + [[*(each for pool in joined for each in pool), name]]
    return pools


def _job(document: Any, tree: QuotaTree) -> WatchedJob | None:
    if not isinstance(document, dict):
        raise ViewError("is no object")
    state = document.get("job_state")
    state = state[0] if isinstance(state, list) and state else state
    if not isinstance(state, str):
        raise ViewError("job_state is missing")
    if state not in ("RUNNING", "PENDING", "COMPLETING", "CONFIGURING", "SUSPENDED"):
        return None
    number_of_it, came = document.get("job_id"), number(document.get("submit_time"))
    if number_of_it is None or came is None:
        raise ViewError(f"{'job_id' if number_of_it is None else 'submit_time'} is missing")
    names = [name for name in str(document.get("partition") or "").split(",") if name in tree.queues]
    if not names:
        raise ViewError(f"partition {document.get('partition')!r} is not in sinfo")
    running = state in ("RUNNING", "COMPLETING", "CONFIGURING")
    asked = document.get("tres_alloc_str" if running else "tres_req_str") or document.get("tres_req_str")
    if not isinstance(asked, str):
        raise ViewError("tres_req_str is missing")
    needs = dict(each.split("=", 1) for each in asked.split(",") if "=" in each)
    try:
        amounts = {(FLAVOR, name): float(needs[name]) for name in ("cpu", GPU) if name in needs}
    except ValueError:
        raise ViewError(f"tres_req_str {asked!r} has a count that is no number") from None
    reason = str(document.get("state_reason") or "")
    held = f"{reason}" if reason in HOLDS else ("suspended" if state == "SUSPENDED" else "")
    started = number(document.get("start_time")) if running else None
    return WatchedJob(
        str(number_of_it), names[0], int(number(document.get("priority")) or 0), (amounts,), running, came,
        math.nan if started is None else started, held,
        {name: amount / (number(document.get("node_count")) or 1.0) for (_, name), amount in amounts.items()},
    )  # fmt: skip
