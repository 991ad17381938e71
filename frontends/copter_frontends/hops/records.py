"""What was measured, in memory: an observation is taken in at the cost of the records that it touches (HP7, HP24)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from copter_frontends.hops.database import ANY_SERVER, MOST_WEIGHT

LayerKey = tuple[str, str, bool, int]  # job or application, GPU type, spread, GPUs (or servers, if spread)
MOVED = 1e-3  # relative change of a record since it was last told of, from which its job's estimates are made again
SPEED_MOVED = 2e-2  # the same of a server's speed, less than half a bin
MOST_GROUPS = 512  # server groups whose members are kept as sets


class Records:
    """Per-GPU throughputs by job, configuration and server, and how fast servers are relative to their type.

    Attributes
    ----------
    changed : dict of str to int
        Job (or application) to the number of the change that last moved its records.
    speeds_changed : int
        Number of the change that last moved a server's speed.
    changes : int
        Changes so far.
    """

    def __init__(self) -> None:
        self._layers: dict[LayerKey, dict[str, list[float]]] = {}  # server: [observations, per GPU, per GPU as told]
        self._sums: dict[tuple[str, str], list[float]] = {}  # (type, server): weighted ratios, weights
        self._speeds: dict[tuple[str, str], float] = {}
        self._members: dict[int, tuple[Sequence[str], frozenset[str]]] = {}
        self._mean_speeds: dict[tuple[str, int], float] = {}
        self.changed: dict[str, int] = {}
        self.speeds_changed = 0
        self.changes = 0

    def load(self, rows: Iterable[tuple[str, str, str, bool, int, int, float]]) -> None:
        """Replace everything by what a database holds."""
        self._layers.clear()
        self._sums.clear()
        for job, kind, server, spread, count, observations, per_gpu in rows:
            layer = self._layers.setdefault((job, kind, spread, count), {})
            layer[server] = [float(observations), per_gpu, per_gpu]
        for key in self._layers:
            self._count(key, +1.0)
        self._speeds = {server: ratio / weight for server, (ratio, weight) in self._sums.items() if weight > 0}
        self.speeds_moved()

    def speeds_moved(self) -> None:
        """Say that all estimates may have changed."""
        self.changes += 1
        self.speeds_changed = self.changes
        self._mean_speeds.clear()

    def moved(self, job: str) -> None:
        """Say that a job's estimates have changed."""
        self.changes += 1
        self.changed[job] = self.changes

    def add(self, job: str, kind: str, servers: Sequence[str], gpus: int, per_gpu: float) -> None:
        """Take in an observation, as :meth:`.ThroughputDatabase.record` writes it."""
        spread = len(servers) > 1
        key = (job, kind, spread, len(servers) if spread else gpus)
        layer = self._layers.setdefault(key, {})
        self._count(key, -1.0)
        told = False
        for server in (*servers, ANY_SERVER):
            entry = layer.get(server)
            if entry is None:
                layer[server] = [1.0, per_gpu, per_gpu]
                told = True
                continue
            entry[1] += (per_gpu - entry[1]) / min(entry[0] + 1, MOST_WEIGHT)
            entry[0] += 1
            if abs(entry[1] - entry[2]) > MOVED * entry[2]:
                entry[2], told = entry[1], True
        self._count(key, +1.0)
        if told:
            self.moved(job)
        if not spread:
            self._tell_speeds(kind, layer)

    def on_server(self, job: str, kind: str, server: str, gpus: int, nodes: int) -> float | None:
        """Per-GPU throughput on a server (ANY_SERVER: on the type); None without a record."""
        entry = self._layers.get((job, kind, nodes > 1, nodes if nodes > 1 else gpus), {}).get(server)
        return None if entry is None else entry[1]

    def mean_on(self, job: str, kind: str, servers: Sequence[str], gpus: int, nodes: int) -> float | None:
        """Mean of the servers' own records, over those that have one; None if none has."""
        layer = self._layers.get((job, kind, nodes > 1, nodes if nodes > 1 else gpus))
        if not layer:
            return None
        members = self._as_set(servers)
        found = [entry[1] for server, entry in layer.items() if server in members]
        return sum(found) / len(found) if found else None

    def speed(self, kind: str, server: str) -> float:
        """How fast a server has been relative to its type, over all jobs with records in both; 1 without any."""
        return self._speeds.get((kind, server), 1.0)

    def mean_speed(self, kind: str, servers: Sequence[str]) -> float:
        """The mean of servers' speeds, kept until one changes."""
        self._as_set(servers)
        key = (kind, id(servers))
        if key not in self._mean_speeds:
            self._mean_speeds[key] = float(np.mean([self.speed(kind, server) for server in servers]))
        return self._mean_speeds[key]

    # Inside -------------------------------------------------------------------------------------------------------

    def _as_set(self, servers: Sequence[str]) -> frozenset[str]:
        """A group's servers as a set; the sequence is kept with it, so that its id stays its own."""
        known = self._members.get(id(servers))
        if known is None:
            if len(self._members) >= MOST_GROUPS:
                self._members.clear()
                self._mean_speeds.clear()
            known = self._members[id(servers)] = (servers, frozenset(servers))
        return known[1]

    def _count(self, key: LayerKey, sign: float) -> None:
        """Add what one configuration of one job says of its servers' speeds, or take it back."""
        _, kind, spread, _ = key
        layer = self._layers[key]
        average = layer.get(ANY_SERVER)
        if spread or average is None:
            return
        for server, entry in layer.items():
            if server != ANY_SERVER:
                sums = self._sums.setdefault((kind, server), [0.0, 0.0])
                sums[0] += sign * entry[0] * entry[1] / average[1]
                sums[1] += sign * entry[0]

    def _tell_speeds(self, kind: str, layer: dict[str, list[float]]) -> None:
        moved = False
        for server in layer:
            if server == ANY_SERVER:
                continue
            ratio, weight = self._sums[kind, server]
            speed, known = ratio / weight, self._speeds.get((kind, server), 1.0)
            if abs(speed - known) > SPEED_MOVED * known:
                self._speeds[kind, server] = speed
                moved = True
        if moved:
            self.speeds_moved()
