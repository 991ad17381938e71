"""Kernels by themselves: one pricing pass, one projection of the working set, one coordinate-descent sweep."""

from __future__ import annotations

import numpy as np

from copter.methods.proximal.groups import Groups
from copter.methods.proximal.project import Projection, project
from copter.runtime.settings import available_threads

from .problems import SIZES, Rounds


class Price:
    """One pass over all costs, by one thread and by all."""

    params = (SIZES, (1, available_threads()))
    param_names = ("requests", "threads")

    def setup(self, requests: int, threads: int) -> None:
        """Prices at the optimum, so that few columns are worth having."""
        rounds = Rounds(requests)
        self.matrix = rounds.model.ledger.matrix
        self.y = np.zeros(self.matrix.n_rows)
        rows = list(rounds.model.ledger.row_of.values())
        solution = rounds.session.solve()
        self.y[rows] = [-solution.price(resource) for resource in rounds.model.resources]
        self.threshold = np.zeros(self.matrix.n_slots)

    def time_price(self, requests: int, threads: int) -> None:
        """The pass."""
        self.matrix.price(self.y, self.threshold, threads)

    def track_bytes_per_second(self, requests: int, threads: int) -> float:
        """Bytes of costs read a second: the stream rate of the machine is the ceiling."""
        from time import perf_counter

        best = np.inf
        for _ in range(20):
            started = perf_counter()
            self.matrix.price(self.y, self.threshold, threads)
            best = min(best, perf_counter() - started)
        return 8.0 * self.matrix.n_columns / best


class Project:
    """Projection of random points onto blocks sum x <= 1, 0 <= x <= 1, of five columns on a row each."""

    params = (1000, 10_000, 100_000)
    param_names = ("columns",)

    def setup(self, columns: int) -> None:
        """Random blocks."""
        rng = np.random.default_rng(0)
        rows, blocks = 7, columns // 5
        groups = Groups(
            np.arange(0, columns + 1, 5, dtype=np.int32),
            np.ones(blocks),
            -rng.random(columns),
            np.zeros(columns),
            np.ones(columns),
            np.arange(columns + 1, dtype=np.int32),
            rng.integers(0, rows, columns).astype(np.int32),
            rng.uniform(1.0, 10.0, columns),
        )
        self.free = np.zeros(columns, dtype=np.uint8)
        out = Projection(np.zeros(columns), self.free, np.zeros(blocks), np.zeros((1, rows)), np.zeros(1))
        self.arguments = groups, np.zeros(columns), 1.0, -0.1 * rng.random(rows), out

    def time_project(self, columns: int) -> None:
        """The projection."""
        project(*self.arguments)

    def track_free_share(self, columns: int) -> float:
        """Share of the columns strictly between their bounds after it."""
        project(*self.arguments)
        return float(self.free.mean())


Price.track_bytes_per_second.unit = "B/s"
Project.track_free_share.unit = "share"
