"""Measurements in memory; the time of an observation is proportional to the records that it affects (HP7, HP10)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from copter_frontends.policies.hops.database import ANY_SERVER, MOST_WEIGHT
from copter_frontends.policies.hops.server_speeds import Server, ServerSpeeds

LayerKey = tuple[str, str, bool, int]  # job or application, GPU type, spread, GPUs (or servers, if spread)
Profile = Callable[[str, str, int], float | None]  # (job, GPU type, GPUs) -> throughput per GPU on an average server
MOVED = 1e-2  # a record's relative change since its last report, from which its job's estimates are updated
SPEED_MOVED = 2e-2  # relative change of a server's speed from which it is reported: less than half a bin
MOST_GROUPS = 512  # most server groups whose members are cached as sets


class Records:
    """Per-GPU throughputs by job, configuration and server, and the servers' speeds relative to their type.

    Parameters
    ----------
    profile : callable
        Function that returns the throughput of a job's profile.

    Attributes
    ----------
    changed : dict of str to int
        Job (or application) -> number of the last reported change of its records.
    speeds_changed : int
        Number of the last reported change of a server's speed.
    changes : int
        Number of changes so far.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        # server -> [observations, rate per GPU, rate per GPU as last reported]
        self._layers: dict[LayerKey, dict[str, list[float]]] = {}
        self._of_job: dict[str, set[LayerKey]] = {}
        self._on: dict[Server, set[str]] = {}  # jobs with their own record on each server
        self._fit = ServerSpeeds()
        self._speeds: dict[Server, float] = {}  # speeds as last reported
        self._members: dict[int, tuple[Sequence[str], frozenset[str]]] = {}
        self._mean_speeds: dict[tuple[str, int], float] = {}
        self.changed: dict[str, int] = {}
        self.speeds_changed = 0
        self.changes = 0

    def load(self, rows: Iterable[tuple[str, str, str, bool, int, int, float]]) -> None:
        """Replace everything by a database's contents."""
        self._layers.clear()
        self._of_job.clear()
        self._on.clear()
        self.changed.clear()
        self._fit = ServerSpeeds()
        for job, kind, server, spread, count, observations, per_gpu in rows:
            layer = self._layer((job, kind, spread, count))
            layer[server] = [float(observations), per_gpu, per_gpu]
        for key, layer in self._layers.items():
            self._note(key, layer, layer)
        self._speeds = self._fit.settle()
        self._speeds_moved()

    def _speeds_moved(self) -> None:
        """Note that all estimates may have changed."""
        self.changes += 1
        self.speeds_changed = self.changes
        self._mean_speeds.clear()

    def moved(self, job: str) -> None:
        """Note that a job's estimates have changed."""
        self.changes += 1
        self.changed[job] = self.changes

    def add(self, job: str, kind: str, servers: Sequence[str], gpus: int, per_gpu: float) -> None:
        """Record an observation in the form that :meth:`.ThroughputDatabase.record` writes."""
        spread = len(servers) > 1
        key = (job, kind, spread, len(servers) if spread else gpus)
        layer = self._layer(key)
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
        self._note(key, layer, servers)
        if told:
            self.moved(job)

    def settle(self) -> None:
        """Fit the servers' speeds again after new observations, and report significant changes."""
        moved = []
        for server, speed in self._fit.settle().items():
            known = self._speeds.get(server, 1.0)
            if abs(speed - known) > SPEED_MOVED * known:
                self._speeds[server] = speed
                moved.append(server)
        if moved:
            self._speeds_moved()
        for server in moved:
            for job in self._on[server]:
                self.moved(job)

    def forget(self, job: str) -> None:
        """Drop a job's records."""
        for key in self._of_job.pop(job, ()):
            for server in self._layers.pop(key):
                jobs = self._on.get((key[1], server))
                if jobs is not None:
                    jobs.discard(job)
            self._fit.forget(key)
        self.changed.pop(job, None)

    def jobs_on(self, servers: Iterable[Server]) -> set[str]:
        """Return jobs (or applications) with own records on one of the servers."""
        return set().union(*(self._on.get(server, ()) for server in servers))

    def on_server(self, job: str, kind: str, server: str, gpus: int, nodes: int) -> float | None:
        """Return per-GPU throughput on a server; None without a record."""
        entry = self._layers.get(_key(job, kind, gpus, nodes), {}).get(server)
        return None if entry is None else entry[1]

    def on_average(self, job: str, kind: str, gpus: int, nodes: int) -> float | None:
        """Return per-GPU throughput on an average server of the type, from records on some servers; None without a
        record.
        """
        done = speed = 0.0
        for server, (count, per_gpu, _) in self._layers.get(_key(job, kind, gpus, nodes), {}).items():
            if server != ANY_SERVER:
                weight = min(count, MOST_WEIGHT)
                done += weight * per_gpu
                speed += weight * self.speed(kind, server)
        return done / speed if speed > 0.0 else None

    def mean_on(self, job: str, kind: str, servers: Sequence[str], gpus: int, nodes: int) -> float | None:
        """Return the mean of the servers' own records, over servers with one; None without any."""
        layer = self._layers.get(_key(job, kind, gpus, nodes))
        if not layer:
            return None
        members = self._as_set(servers)
        found = [entry[1] for server, entry in layer.items() if server in members]
        return sum(found) / len(found) if found else None

    def speed(self, kind: str, server: str) -> float:
        """Return a server's reported speed relative to its type (HP9); 1 without observations."""
        return self._speeds.get((kind, server), 1.0)

    def mean_speed(self, kind: str, servers: Sequence[str]) -> float:
        """Return the mean of servers' speeds, cached until one changes."""
        key = (kind, id(servers))
        result = self._mean_speeds.get(key)
        if result is None:
            self._as_set(servers)  # keeps the sequence alive, so that its id stays unique
            result = self._mean_speeds[key] = float(np.mean([self.speed(kind, server) for server in servers]))
        return result

    # Inside -------------------------------------------------------------------------------------------------------

    def _as_set(self, servers: Sequence[str]) -> frozenset[str]:
        """Return a group's servers as a set; the sequence is stored so that its id stays unique."""
        known = self._members.get(id(servers))
        if known is None:
            if len(self._members) >= MOST_GROUPS:
                self._members.clear()
                self._mean_speeds.clear()
            known = self._members[id(servers)] = (servers, frozenset(servers))
        return known[1]

    def _layer(self, key: LayerKey) -> dict[str, list[float]]:
        """Return a configuration's records, created on first use."""
        known = self._layers.get(key)
        if known is None:
            known = self._layers[key] = {}
            self._of_job.setdefault(key[0], set()).add(key)
        return known

    def _note(self, key: LayerKey, layer: dict[str, list[float]], servers: Iterable[str]) -> None:
        """Pass a configuration's throughput on servers to the fit of speeds; spread configurations are ignored."""
        job, kind, spread, gpus = key
        profile = None if spread else self._profile(job, kind, gpus)
        for server in servers:
            if server == ANY_SERVER:
                continue
            self._on.setdefault((kind, server), set()).add(job)
            if not spread:
                count, per_gpu, _ = layer[server]
                self._fit.observe(key, kind, gpus, server, min(count, MOST_WEIGHT), per_gpu, profile)


def _key(job: str, kind: str, gpus: int, nodes: int) -> LayerKey:
    """Return the key of a configuration's records: by servers if spread, otherwise by GPUs."""
    return (job, kind, nodes > 1, nodes if nodes > 1 else gpus)
