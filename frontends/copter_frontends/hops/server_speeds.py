"""How fast servers are relative to their type, from what many jobs did on several of them (HP26)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Server = tuple[str, str]  # GPU type, server

PROFILE_WEIGHT = 0.15  # of a profile, in observations: it is of other servers, and knows neither links nor neighbours
AVERAGE_WEIGHT = 0.04  # with which every server is taken to be average, in observations
CORRECTIONS = 3  # times that the profiles' errors are found anew
PRECISION = 1e-4  # of the logarithms of speeds
NO_PROFILE = np.nan


class ServerSpeeds:
    """Speeds that explain best what all jobs did: log rate = level of the job's configuration + log speed (HP26).

    A job that was seen on one server only says something through its profile, which is right for an average server but
    for an error that all profiles of a GPU type and a number of GPUs share.
    """

    def __init__(self) -> None:
        self._layers: dict[Hashable, int] = {}
        self._servers: dict[Server, int] = {}
        self._types: dict[str, int] = {}
        self._classes: dict[tuple[str, int], int] = {}
        self._entries: dict[tuple[int, int], int] = {}  # (layer, server) to its place
        self._layer = _Column(np.int64)
        self._server = _Column(np.int64)
        self._weight = _Column(np.float64)
        self._rate = _Column(np.float64)  # logarithm
        self._profile = _Column(np.float64)  # of each layer, logarithm of the rate by its profile
        self._class = _Column(np.int64)  # of each layer
        self._type = _Column(np.int64)  # of each server
        self._log_speed = np.zeros(0)
        self._gone = 0
        self._stale = False

    def observe(
        self, layer: Hashable, kind: str, gpus: int, server: str, weight: float, per_gpu: float, profile: float | None
    ) -> None:
        """Say what a configuration of a job has done on a server.

        Parameters
        ----------
        layer : hashable
            The job (or application), GPU type and number of GPUs.
        kind : str
            GPU type.
        gpus : int
        server : str
        weight : float
            Observations that the rate is the mean of.
        per_gpu : float
            Samples per second, > 0.
        profile : float or None
            The same by the job's profile, for an average server; None without one.
        """
        at = self._layers.get(layer)
        known = np.log(profile) if profile is not None and profile > 0.0 else NO_PROFILE
        if at is None:
            at = self._layers[layer] = self._profile.append(known)
            self._class.append(self._classes.setdefault((kind, gpus), len(self._classes)))
        else:
            self._profile[at] = known
        where = self._servers.get((kind, server))
        if where is None:
            where = self._servers[kind, server] = self._type.append(self._types.setdefault(kind, len(self._types)))
        entry = self._entries.get((at, where))
        if entry is None:
            entry = self._entries[at, where] = self._layer.append(at)
            self._server.append(where)
            self._weight.append(0.0)
            self._rate.append(0.0)
        self._weight[entry], self._rate[entry] = weight, np.log(per_gpu)
        self._stale = True

    def forget(self, layer: Hashable) -> None:
        """Drop what a configuration of a job has done."""
        at = self._layers.pop(layer, None)
        if at is None:
            return
        entries = np.flatnonzero(self._layer.values == at)
        self._weight.values[entries] = 0.0
        for entry in entries.tolist():
            del self._entries[at, int(self._server.values[entry])]
        self._gone += len(entries)
        self._stale = True
        if 2 * self._gone > len(self._layer.values):
            self._compact()

    def settle(self) -> dict[Server, float]:
        """Find the speeds anew if there is news: those of all servers that were seen, the geometric mean a type 1."""
        if not self._stale:
            return {}
        self._stale = False
        speeds = self._log_speed
        speeds = np.concatenate([speeds, np.zeros(len(self._servers) - len(speeds))])
        for _ in range(CORRECTIONS):
            before, speeds = speeds, self._fitted(speeds)
            if np.abs(speeds - before).max(initial=0.0) <= PRECISION:
                break
        self._log_speed = speeds
        return dict(zip(self._servers, np.exp(speeds).tolist(), strict=True))

    # Inside -------------------------------------------------------------------------------------------------------

    def _fitted(self, speeds: Floats) -> Floats:
        """Speeds by weighted least squares, with the profiles' common errors as these speeds have them."""
        layer, server, weight, rate = (
            column.values for column in (self._layer, self._server, self._weight, self._rate)
        )
        layers, servers = len(self._profile.values), len(self._servers)
        total: Floats = np.bincount(layer, weight, layers).astype(np.float64)
        seen = total > 0.0
        level = np.zeros(layers)
        level[seen] = np.bincount(layer, weight * (rate - speeds[server]), layers)[seen] / total[seen]
        profile, extra = self._corrected(level, total)
        whole = np.where(seen, total + extra, 1.0)
        mean = (np.bincount(layer, weight * rate, layers) + extra * profile) / whole
        target = np.bincount(server, weight * (rate - mean[layer]), servers)

        def apply(values: Floats) -> Floats:
            """The normal equations, the levels of the configurations taken out."""
            values = values.ravel()
            shared = np.bincount(layer, weight * values[server], layers) / whole
            return np.bincount(server, weight * (values[server] - shared[layer]), servers) + AVERAGE_WEIGHT * values

        diagonal = np.bincount(server, weight * (1.0 - weight / whole[layer]), servers) + AVERAGE_WEIGHT
        size = (servers, servers)
        found, _ = cg(
            LinearOperator(size, matvec=apply, dtype=np.float64),
            target,
            x0=speeds,
            rtol=1e-2 * PRECISION,
            maxiter=200,
            M=LinearOperator(size, matvec=lambda values: values.ravel() / diagonal, dtype=np.float64),
        )
        kind = self._type.values
        return np.asarray(found - _means(kind, np.ones(servers), found)[kind])

    def _corrected(self, level: Floats, total: Floats) -> tuple[Floats, Floats]:
        """The layers' profiles less the error that those of a class share, and their weights."""
        own, kind = self._profile.values, self._class.values
        known = ~np.isnan(own) & (total > 0.0)
        off = np.where(known, level - np.where(known, own, 0.0), 0.0)
        error = _means(kind, np.where(known, total / (total + PROFILE_WEIGHT), 0.0), off)
        return np.where(known, own + error[kind], 0.0), np.where(known, PROFILE_WEIGHT, 0.0)

    def _compact(self) -> None:
        """Leave out the layers and entries that are gone."""
        alive = np.fromiter(self._layers.values(), dtype=np.int64, count=len(self._layers))
        place = np.full(len(self._profile.values), -1, dtype=np.int64)
        place[alive] = np.arange(len(alive))
        kept = np.flatnonzero(place[self._layer.values] >= 0)
        self._layers = dict(zip(self._layers, range(len(alive)), strict=True))
        self._profile.keep(alive)
        self._class.keep(alive)
        for column in (self._layer, self._server, self._weight, self._rate):
            column.keep(kept)
        self._layer.values[:] = place[self._layer.values]
        pairs = zip(self._layer.values.tolist(), self._server.values.tolist(), strict=True)
        self._entries = {pair: at for at, pair in enumerate(pairs)}
        self._gone = 0


class _Column:
    """Numbers of one type that grow at the end."""

    def __init__(self, dtype: type) -> None:
        self._room: NDArray[Any] = np.zeros(64, dtype=dtype)
        self._size = 0

    @property
    def values(self) -> NDArray[Any]:
        """All of them, a view."""
        return self._room[: self._size]

    def append(self, value: float) -> int:
        """Its place."""
        if self._size == len(self._room):
            self._room = np.concatenate([self._room, np.zeros_like(self._room)])
        self._room[self._size] = value
        self._size += 1
        return self._size - 1

    def __setitem__(self, at: int, value: float) -> None:
        self._room[at] = value

    def keep(self, which: Ints) -> None:
        """Only these, in this order."""
        kept = self._room[which]
        self._size = len(kept)
        self._room = np.concatenate([kept, np.zeros(64, dtype=kept.dtype)])


def _means(group: Ints, weight: Floats, values: Floats) -> Floats:
    """Weighted mean of each group; 0 where it has no weight."""
    total = np.bincount(group, weight)
    return np.bincount(group, weight * values) / np.where(total > 0.0, total, 1.0)
