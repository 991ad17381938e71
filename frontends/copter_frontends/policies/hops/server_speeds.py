"""Server speeds relative to their type, from the throughput of many jobs on several servers (HP9)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Server = tuple[str, str]  # GPU type, server

ERROR = -1  # type number of the profiles' errors, which are unknowns like servers

PROFILE_WEIGHT = 0.15  # weight of a profile relative to an observation (HP9)
AVERAGE_WEIGHT = 0.04  # weight of the prior that a server is average, relative to an observation (HP9)
ERROR_WEIGHT = 1e-6  # weight of the prior that profiles have no error, nearly zero
PRECISION = 1e-8  # relative residual at which conjugate gradients end


class ServerSpeeds:
    """Speeds fitted to all observations: log rate = level of the job's configuration + log speed (HP9).

    A job observed on a single server gives information only through its profile. A profile is assumed correct for an
    average server, up to an error common to all profiles of one GPU type and number of GPUs; the error is fitted like
    the speed of one more server.
    """

    def __init__(self) -> None:
        self._layers: dict[Hashable, int] = {}
        self._servers: dict[Server, int] = {}
        self._errors: dict[tuple[str, int], int] = {}  # number of each error among the servers
        self._types: dict[str, int] = {}
        self._entries: dict[tuple[int, int], int] = {}  # (layer, server) -> index of the entry
        self._layer = _Column(np.int64)
        self._server = _Column(np.int64)
        self._weight = _Column(np.float64)
        self._rate = _Column(np.float64)  # logarithms of the rates
        self._type = _Column(np.int64)  # type of each server; -1 for an error
        self._log_speed = np.zeros(0)
        self._n_layers = self._gone = 0
        self._stale = False

    def observe(
        self, layer: Hashable, kind: str, gpus: int, server: str, weight: float, per_gpu: float, profile: float | None
    ) -> None:
        """Record a configuration's throughput on a server.

        Parameters
        ----------
        layer : hashable
            The job (or application), GPU type and number of GPUs.
        kind : str
            GPU type.
        gpus : int
        server : str
        weight : float
            Number of observations in the mean rate.
        per_gpu : float
            Samples per second, > 0.
        profile : float or None
            Samples per second on an average server by the job's profile; None without one.
        """
        at = self._layers.get(layer)
        if at is None:
            at = self._layers[layer] = self._n_layers
            self._n_layers += 1
        where = self._servers.get((kind, server))
        if where is None:
            where = self._servers[kind, server] = self._type.append(self._types.setdefault(kind, len(self._types)))
        self._write(at, where, weight, per_gpu)
        if profile is not None and profile > 0.0:
            error = self._errors.get((kind, gpus))
            if error is None:
                error = self._errors[kind, gpus] = self._type.append(ERROR)
            self._write(at, error, PROFILE_WEIGHT, profile)
        self._stale = True

    def forget(self, layer: Hashable) -> None:
        """Delete the observations of a configuration."""
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
        """Fit the speeds of all observed servers again if needed; each type's geometric mean is 1."""
        if not self._stale:
            return {}
        self._stale = False
        self._log_speed = self._fitted()
        return {server: float(np.exp(self._log_speed[at])) for server, at in self._servers.items()}

    # Inside -------------------------------------------------------------------------------------------------------

    def _write(self, layer: int, server: int, weight: float, per_gpu: float) -> None:
        """Set the mean rate of a layer on a server."""
        entry = self._entries.get((layer, server))
        if entry is None:
            entry = self._entries[layer, server] = self._layer.append(layer)
            self._server.append(server)
            self._weight.append(0.0)
            self._rate.append(0.0)
        self._weight.values[entry], self._rate.values[entry] = weight, np.log(per_gpu)

    def _fitted(self) -> Floats:
        """Return speeds by weighted least squares from the last ones; each type's mean logarithm is zero."""
        layer, server, weight, rate = (
            column.values for column in (self._layer, self._server, self._weight, self._rate)
        )
        layers, kind = self._n_layers, self._type.values
        servers = len(kind)
        total = np.bincount(layer, weight, layers)
        whole = np.where(total > 0.0, total, 1.0)
        mean = np.bincount(layer, weight * rate, layers) / whole
        target = np.bincount(server, weight * (rate - mean[layer]), servers)
        own = np.where(kind == ERROR, ERROR_WEIGHT, AVERAGE_WEIGHT)

        def apply(values: Floats) -> Floats:
            """Apply the normal equations, with the configurations' levels eliminated."""
            values = values.ravel()
            shared = np.bincount(layer, weight * values[server], layers) / whole
            return np.bincount(server, weight * (values[server] - shared[layer]), servers) + own * values

        diagonal = np.bincount(server, weight * (1.0 - weight / whole[layer]), servers) + own
        size = (servers, servers)
        found, _ = cg(
            LinearOperator(size, matvec=apply, dtype=np.float64),
            target,
            x0=np.concatenate([self._log_speed, np.zeros(servers - len(self._log_speed))]),
            rtol=PRECISION,
            maxiter=500,
            M=LinearOperator(size, matvec=lambda values: values.ravel() / diagonal, dtype=np.float64),
        )
        real = kind != ERROR
        counts = np.bincount(kind[real])
        means = np.bincount(kind[real], found[real]) / counts
        found[real] -= means[kind[real]]
        return np.asarray(found)

    def _compact(self) -> None:
        """Drop deleted layers and entries."""
        alive = np.fromiter(self._layers.values(), dtype=np.int64, count=len(self._layers))
        place = np.full(self._n_layers, -1, dtype=np.int64)
        place[alive] = np.arange(len(alive))
        kept = np.flatnonzero(place[self._layer.values] >= 0)
        self._layers = dict(zip(self._layers, range(len(alive)), strict=True))
        self._n_layers = len(alive)
        for column in (self._layer, self._server, self._weight, self._rate):
            column.keep(kept)
        self._layer.values[:] = place[self._layer.values]
        pairs = zip(self._layer.values.tolist(), self._server.values.tolist(), strict=True)
        self._entries = {pair: at for at, pair in enumerate(pairs)}
        self._gone = 0


class _Column:
    """A growing array of numbers of one type."""

    def __init__(self, dtype: type) -> None:
        self._room: NDArray[Any] = np.zeros(64, dtype=dtype)
        self._size = 0

    @property
    def values(self) -> NDArray[Any]:
        """Return a view of all values."""
        return self._room[: self._size]

    def append(self, value: float) -> int:
        """Append a value; returns its index."""
        if self._size == len(self._room):
            self._room = np.concatenate([self._room, np.zeros_like(self._room)])
        self._room[self._size] = value
        self._size += 1
        return self._size - 1

    def keep(self, which: Ints) -> None:
        """Keep only these values, in this order."""
        kept = self._room[which]
        self._size = len(kept)
        self._room = np.concatenate([kept, np.zeros(64, dtype=kept.dtype)])
