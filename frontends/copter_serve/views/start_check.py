"""Checks starts against a view, from the beginning and by code of its own: nothing is named before it has passed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from copter_serve.queues.quota_tree import Node as QuotaNode
from copter_serve.queues.quota_tree import QuotaTree, Share
from copter_serve.views.starts import WHOLE, Node, Pods, Start
from copter_serve.views.view import ClusterView

ALLOWANCE = Fraction(1, 10**8)  # relative allowance for rounding of the documents' numbers


def fault(view: ClusterView, starts: Sequence[Start]) -> str:
    """Return why the starts cannot all happen; empty if they can.

    Sums are exact fractions, so that order and rounding decide nothing.
    """
    jobs = {job.id: job for job in view.jobs if not job.running}
    on: dict[str, list[tuple[str, str, Pods]]] = {}
    started: set[str] = set()
    for start in starts:
        job = jobs.get(start.job)
        if (
            job is None
            or job.held
            or job.unclear
            or start.way not in job.ways
            or start.way.unclear
            or start.job in started
        ):
            return f"{start.job} is no job that may start so"
        started.add(start.job)
        if len(start.places) != len(start.way.pods):
            return f"{start.job}: pods without nodes"
        seen: list[str] = []
        for pods, names in zip(start.way.pods, start.places, strict=True):
            if len(names) != pods.count:
                return f"{start.job}: {len(names)} of {pods.count} pods have a node"
            seen += names
            for name in names:
                if name not in view.nodes or (pods.nodes is not None and name not in pods.nodes):
                    return f"{start.job}: {name} is no node for it"
                on.setdefault(name, []).append((start.job, start.way.user, pods))
        for pods, names in zip(start.way.pods, start.places, strict=True):
            if pods.apart and any(seen.count(name) > 1 for name in names):
                return f"{start.job}: two of its parts on one node"
        if start.way.stages and not _chosen(start):
            return f"{start.job}: amounts that no choice of flavors comes to"
    for start in starts:
        if jobs[start.job].after and jobs[start.job].after not in started:
            return f"{start.job} starts before {jobs[start.job].after}"
    for name, placed in on.items():
        why = _node_fault(view.nodes[name], placed)
        if why:
            return why
    return _limit_fault(view, starts) or _quota_fault(view.tree, starts)


def _over(used: Fraction, room: float) -> bool:
    return not math.isinf(room) and used > Fraction(room) + ALLOWANCE * (1 + abs(Fraction(room)))


def _node_fault(node: Node, on: Sequence[tuple[str, str, Pods]]) -> str:
    if node.closed or node.unclear:
        return f"{node.name}: {node.closed or node.unclear}"
    jobs, users = {job for job, _, _ in on}, {user for _, user, _ in on}
    if node.owner and (node.owner == WHOLE or users != {node.owner}):
        return f"{node.name} is left to {node.owner}"
    for job, user, pods in on:
        if pods.alone == WHOLE and (len(jobs) > 1 or node.users):
            return f"{job} is not alone on {node.name}"
        if pods.alone not in ("", WHOLE) and (users | node.users) != {user}:
            return f"{job} is not alone with its user's jobs on {node.name}"
    for resource in {name for _, _, pods in on for name in (*pods.need, *pods.untouched)}:
        takers = [pods for *_, pods in on if resource in pods.untouched or pods.need.get(resource, 0.0) > 0.0]
        if any(resource in pods.untouched for pods in takers) and (
            len(takers) > 1 or node.free.get(resource, 0.0) < node.total.get(resource, 0.0)
        ):
            return f"{node.name}: {resource} is not untouched"
        if resource == node.device and node.devices:
            continue
        used, step = Fraction(0), Fraction(node.step.get(resource, 0.0))
        for *_, pods in on:
            need = Fraction(pods.need.get(resource, 0.0))
            used += math.ceil(need / step - ALLOWANCE) * step if step else need
        if used > 0 and _over(used, node.free.get(resource, 0.0)):
            return f"{node.name}: {float(used):g} of {resource}, and {node.free.get(resource, 0.0):g} are free"
    if any(pods.devices and not node.devices for _, _, pods in on):
        return f"{node.name}: its GPUs are not shared"
    for world in node.devices:
        if not _packs(node, world, on):
            return f"{node.name}: its GPUs {list(world)} do not hold what is placed"
    return ""


def _packs(node: Node, world: Sequence[float], on: Sequence[tuple[str, str, Pods]]) -> bool:
    """Whether GPUs hold whole and shared parts: parts are tried on every GPU, the largest first."""
    whole = sum(int(pods.need.get(node.device, 0.0)) for _, _, pods in on)
    groups = sorted(((pods.part_on(node), pods.devices) for *_, pods in on if pods.devices), reverse=True)
    free = [Fraction(each) for each in world]
    if sum(1 for each in free if each >= 1 - ALLOWANCE) < whole or any(part > 1.0 + 1e-9 for part, _ in groups):
        return False

    def fits(at: int) -> bool:
        if at == len(groups):
            return sum(1 for each in free if each >= 1 - ALLOWANCE) >= whole
        part, count = Fraction(groups[at][0]), groups[at][1]
        return over(at, part, count, 0)

    def over(at: int, part: Fraction, count: int, first: int) -> bool:
        if count == 0:
            return fits(at + 1)
        tried: set[Fraction] = set()
        for device in range(first, len(free)):
            if free[device] + ALLOWANCE >= part and (count > 1 or free[device] not in tried):
                tried.add(free[device])
                free[device] -= part
                good = over(at, part, count - 1, device + 1)
                free[device] += part
                if good:
                    return True
        return False

    return fits(0)


def _chosen(start: Start) -> bool:
    """Whether the amounts are a sum of one choice from each stage."""
    sums: set[tuple[tuple[Share, Fraction], ...]] = {()}
    for stage in start.way.stages:
        more: set[tuple[tuple[Share, Fraction], ...]] = set()
        for amounts in stage:
            for each in sums:
                total = dict(each)
                for share, amount in amounts.items():
                    total[share] = total.get(share, Fraction(0)) + Fraction(amount)
                more.add(tuple(sorted(total.items())))
        sums = more
    wanted = {share: Fraction(amount) for share, amount in start.amounts.items()}
    return any(
        dict(each).keys() == wanted.keys()
        and all(abs(amount - wanted[share]) <= ALLOWANCE * (1 + amount) for share, amount in each)
        for each in sums
    )


def _limit_fault(view: ClusterView, starts: Sequence[Start]) -> str:
    for name, left in view.limits.items():
        used = sum((Fraction(start.way.counts.get(name, 0.0)) for start in starts), Fraction(0))
        if used > 0 and _over(used, left):
            return f"{name}: {float(used):g}, and {left:g} are left"
    return ""


def _quota_fault(tree: QuotaTree, starts: Sequence[Start]) -> str:
    """Sum usage up the tree anew and compare it with each node's quota; what was over before may not grow."""
    asked: dict[tuple[str, Share], Fraction] = {}
    for start in starts:
        for share, amount in start.amounts.items():
            if amount > 0.0:
                place = start.way.queue, share
                asked[place] = asked.get(place, Fraction(0)) + Fraction(amount)
    for share in sorted({share for _, share in asked}):
        own = {
            name: Fraction(node.used.get(share, 0.0)) + asked.get((name, share), Fraction(0))
            for name, node in tree.queues.items()
        }
        touched = {name for name, each in asked if each == share}
        for name in touched:
            if share not in tree.queues[name].quotas:
                return f"{name} has no quota of {' '.join(share)}"
        alone = [name for name in touched if tree.queues[name].parent is None]
        for name in alone:
            why = _of_node(tree.queues[name], share, own[name], True)[1]
            if why:
                return why
        for root in {tree.root(name) for name in touched.difference(alone)}:
            why = _summed(tree, root, share, own, touched)[1]
            if why:
                return why
    return ""


def _summed(
    tree: QuotaTree, cohort: str, share: Share, own: dict[str, Fraction], touched: set[str]
) -> tuple[Fraction, str, bool]:
    """Return the usage that a cohort passes up, a fault in it, and whether a start adds to what it passes."""
    used, grown = Fraction(0), False
    for child in tree.members(cohort):
        if child.is_queue:
            passed, why, more = _of_node(child, share, own[child.name], child.name in touched)
        else:
            passed, why, more = _summed(tree, child.name, share, own, touched)
        if why:
            return passed, why, more
        used, grown = used + passed, grown or more
    return _of_node(tree.cohorts[cohort], share, used, grown)


def _of_node(node: QuotaNode, share: Share, used: Fraction, grown: bool) -> tuple[Fraction, str, bool]:
    quota = node.quotas.get(share)
    has = node.subtree.get(share, 0.0)
    most = has if node.parent is None else has + (math.inf if quota is None else quota.borrowing)
    if grown and _over(used, most):
        return used, f"{node.name}: {float(used):g} of {' '.join(share)}, and {most:g} are allowed", grown
    lending = math.inf if quota is None else quota.lending
    kept = Fraction(0) if math.isinf(lending) else max(Fraction(0), Fraction(has) - Fraction(lending))
    passed = max(Fraction(0), used - kept)
    return passed, "", grown and passed > 0
