"""What stands outside squeue and sinfo: partitions, reservations and priorities, from `scontrol show`."""

from __future__ import annotations

import datetime
import math

from copter_serve.slurm_controller.reading import ClusterNow
from copter_serve.views import ViewError
from copter_serve.views.slurm_text import expanded

FORM = "%Y-%m-%dT%H:%M:%S"


def records(text: str) -> list[dict[str, str]]:
    """Return the records that `scontrol show` prints, which blank lines part."""
    found = []
    for block in text.split("\n\n"):
        pairs = (word.partition("=") for word in block.split())
        record = {name: value for name, equals, value in pairs if equals}
        if record:
            found.append(record)
    return found


def _nodes(text: str) -> list[str]:
    parts, depth, last = [], 0, 0
    for at, sign in enumerate(text + ","):
        depth += (sign == "[") - (sign == "]")
        if sign == "," and depth == 0:
            parts.append(text[last:at])
            last = at + 1
    try:
        return [name for each in parts if each and each != "(null)" for name in expanded(each)]
    except ViewError:
        return []


def blocked_nodes(text: str, now_s: float) -> dict[str, float]:
    """Return the seconds until a reservation takes each node; 0 for those in force, none for past ones."""
    found: dict[str, float] = {}
    for each in records(text):
        try:
            begins = datetime.datetime.strptime(each["StartTime"], FORM).timestamp()
            ends = datetime.datetime.strptime(each["EndTime"], FORM).timestamp()
        except (KeyError, ValueError):
            continue
        if ends > now_s:
            for name in _nodes(each.get("Nodes", "")):
                found[name] = min(found.get(name, math.inf), max(0.0, begins - now_s))
    return found


def partitions_of(text: str, cluster: ClusterNow) -> None:
    """Take partitions from the nodes in which nothing can start, and jobs that their partition forbids."""
    for each in records(text):
        name = each.get("PartitionName", "")
        if each.get("State", "UP") not in ("UP",):
            for node in cluster.nodes.values():
                node.partitions = node.partitions - {name}
        most = each.get("MaxNodes", "UNLIMITED")
        for job in cluster.jobs.values():
            if job.waits and job.partition == name and most.isdecimal() and job.node_count > int(most):
                job.beyond = job.beyond or "more nodes than its partition allows"


def weights_of(cluster: ClusterNow, by_priority: bool) -> dict[str, float]:
    """Return each waiting job's weight: with priority/multifactor its priority, relative to the middle one."""
    if not by_priority:
        return {}
    waiting = sorted(job.priority for job in cluster.jobs.values() if job.waits and job.priority > 0.0)
    if not waiting:
        return {}
    middle = waiting[len(waiting) // 2]
    return {
        job.id: 2.0 ** round(math.log2(min(max(job.priority / middle, 1.0 / 64.0), 64.0)))
        for job in cluster.jobs.values()
        if job.waits and job.priority > 0.0
    }
