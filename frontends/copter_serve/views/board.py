"""A copy of the nodes' rooms on which jobs are placed one after the other."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable

from copter_serve.views.starts import WHOLE, Node, Pods, Way, within

PLENTY = ("cpu", "memory", "mem", "pods")  # resources that are not scarce beside the others
FULL = 1.0 - 1e-9  # a GPU of which this part is free is whole


class Board:
    """Rooms of nodes, lowered by what is placed.

    Parameters
    ----------
    nodes : iterable of Node
        They are not changed.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.nodes = {node.name: node for node in nodes if node.is_sure()}
        self.free = {name: dict(node.free) for name, node in self.nodes.items()}
        self.devices = {name: [list(each) for each in node.devices] for name, node in self.nodes.items()}
        self.users = {name: node.users for name, node in self.nodes.items()}
        self.owner = {name: node.owner for name, node in self.nodes.items()}
        # nodes that held such a pod when it was last asked: rooms only become smaller, so no other node holds one
        self._held: dict[Hashable, list[str]] = {}

    def place(self, way: Way) -> tuple[tuple[str, ...], ...] | None:
        """Place all pods of a way; return their nodes, or None, with nothing placed, if one finds no node."""
        order = sorted(range(len(way.pods)), key=lambda at: self._size(way.pods[at]))
        for each in (order, order[::-1]) if len(order) > 1 else (order,):
            found = self._placed(way, each)
            if found is not None:
                return found
        return None

    def _placed(self, way: Way, order: list[int]) -> tuple[tuple[str, ...], ...] | None:
        places: list[tuple[str, ...]] = [()] * len(way.pods)
        used: set[str] = set()
        before: dict[str, tuple[dict[str, float], list[list[float]], frozenset[str], str]] = {}
        for at in order:
            pods, names = way.pods[at], list[str]()
            for name in self._candidates(pods, way, used):
                while (
                    len(names) < pods.count and not (pods.apart and name in used) and self._fits(name, pods, way, used)
                ):
                    if name not in before:
                        devices = [list(world) for world in self.devices[name]]
                        before[name] = dict(self.free[name]), devices, self.users[name], self.owner[name]
                    self._take(name, pods, way.user)
                    names.append(name)
                    used.add(name)
                if len(names) == pods.count:
                    break
            if len(names) < pods.count:
                for name, kept in before.items():
                    self.free[name], self.devices[name], self.users[name], self.owner[name] = kept
                return None
            places[at] = tuple(names)
        return tuple(places)

    def _candidates(self, pods: Pods, way: Way, used: set[str]) -> list[str]:
        """Return the nodes that hold such a pod, those with the least left first."""
        need = tuple(sorted(pods.need.items()))
        key = need, pods.nodes, pods.untouched, pods.alone, pods.portion, pods.portion_memory, pods.devices, way.user
        before = self._held.get(key)
        if before is None:
            before = [name for name in (self.nodes if pods.nodes is None else pods.nodes) if name in self.nodes]
        found = [name for name in before if self._fits(name, pods, way, used)]
        if not used:
            self._held[key] = found
        return sorted(found, key=lambda name: (self._left(name, pods), name))

    @staticmethod
    def _size(pods: Pods) -> tuple[float, float]:
        reach = math.inf if pods.nodes is None else len(pods.nodes)
        return min(reach, 1e9), -sum(pods.need.values())

    def _left(self, name: str, pods: Pods) -> float:
        """Return how much a node has free of the scarcest kind of resource; nodes with little are used first."""
        free, total = self.free[name], self.nodes[name].total
        if self.devices[name]:
            return sum(self.devices[name][0])
        parts = [free.get(each, 0.0) for each in free if each.partition("/")[0] not in PLENTY]
        return sum(parts) + sum(free.get(each, 0.0) / (total.get(each) or 1.0) for each in pods.need) * 1e-3

    def _fits(self, name: str, pods: Pods, way: Way, used: set[str]) -> bool:
        node, free, owner = self.nodes[name], self.free[name], self.owner[name]
        if owner == WHOLE and not (pods.alone == WHOLE and name in used):
            return False
        if owner not in ("", WHOLE) and owner != way.user:
            return False
        if pods.alone and name not in used:
            others = self.users[name] if pods.alone == WHOLE else self.users[name] - {pods.alone}
            if others:
                return False
        for resource in pods.untouched:
            if free.get(resource, 0.0) < node.total.get(resource, 0.0):
                return False
        for resource, amount in pods.need.items():
            shared = resource == node.device and node.devices
            if amount > 0.0 and not shared and not within(node.takes(resource, amount), free.get(resource, 0.0)):
                return False
        if not node.devices:
            return not pods.devices
        return all(_chosen(world, node, pods) is not None for world in self.devices[name])

    def _take(self, name: str, pods: Pods, user: str) -> None:
        node, free = self.nodes[name], self.free[name]
        for resource, amount in pods.need.items():
            if not (resource == node.device and node.devices):
                free[resource] = free.get(resource, 0.0) - node.takes(resource, amount)
        for resource in pods.untouched:
            free[resource] = 0.0
        for world in self.devices[name]:
            for at, part in _chosen(world, node, pods) or ():
                world[at] -= part
        self.users[name] |= {user}
        if pods.alone:
            self.owner[name] = pods.alone


def _chosen(world: list[float], node: Node, pods: Pods) -> list[tuple[int, float]] | None:
    """Return the GPUs that a pod takes, with the part of each; None if there are too few."""
    count = pods.need.get(node.device, 0.0)
    if count != math.floor(count):
        return None
    whole = [at for at, free in enumerate(world) if free >= FULL]
    if len(whole) < count:
        return None
    taken = [(at, 1.0) for at in whole[: int(count)]]
    part, gone = pods.part_on(node) if pods.devices else 0.0, {at for at, _ in taken}
    shared = sorted((free, at) for at, free in enumerate(world) if at not in gone and within(part, free))
    if pods.devices and (part > 1.0 + 1e-9 or len(shared) < pods.devices):
        return None
    return taken + [(at, part) for _, at in shared[: pods.devices]]
