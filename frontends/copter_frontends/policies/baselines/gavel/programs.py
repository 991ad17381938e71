"""Gavel's programs on copter's differential model (docs/papers/baselines.md, B4-B7a).

x_mj is the fraction of time that job m spends on GPU type j. The programs are kept between rounds: edits affect
changed jobs only, and each solve starts from the last one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter import MaxMin, Model, PrivateRows, Session, Settings, Solution, worth

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Request:
    """A job in a program: its value per unit of time on each type, (types,), its number of GPUs, and its weight."""

    value: Floats
    gpus: int
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Shares:
    """Fractions of time by job, (types,) each; the objective, a certified bound, prices by type."""

    x: Mapping[str, Floats]
    objective: float
    bound: float
    prices: Mapping[str, float]


class Program(ABC):
    """A model with one request per job and one column per GPU type on which the job has a value."""

    def __init__(self, capacity: Mapping[str, float], settings: Settings | None = None) -> None:
        self.types = tuple(capacity)
        self.model = Model(sense="max")
        for kind, gpus in capacity.items():
            self.model.add_resource(("gpus", kind), gpus)
        self.session = Session(self.model, settings)
        self.requests: dict[str, Request] = {}

    def edit(self, capacity: Mapping[str, float], requests: Mapping[str, Request]) -> None:
        """Edit the model to this capacity and these jobs."""
        for kind, gpus in capacity.items():
            before = self.model.count(("gpus", kind))
            if gpus > before:
                self.model.add_resource(("gpus", kind), gpus - before)
            elif gpus < before:
                self.model.remove_units(("gpus", kind), before - gpus)
        for job_id in [j for j, known in self.requests.items() if not _same(known, requests.get(j))]:
            self._remove(job_id)
            del self.requests[job_id]
        for job_id, request in requests.items():
            if job_id not in self.requests:
                self._add(job_id, request)
                self.requests[job_id] = request

    @abstractmethod
    def _add(self, job_id: str, request: Request) -> None:
        """Add a job's columns to the model."""

    def _remove(self, job_id: str) -> None:
        self.model.remove_request(job_id)

    def _usage(self, request: Request, per_column: Floats) -> dict[object, list[float]]:
        """Return the GPUs of each type that a unit of each column uses."""
        columns = np.flatnonzero(request.value > 0)
        gpus = request.gpus * per_column
        return {
            ("gpus", kind): [float(gpus[at]) if column == k else 0.0 for at, column in enumerate(columns)]
            for k, kind in enumerate(self.types)
            if k in columns
        }

    def _prices(self, solution: Solution) -> dict[str, float]:
        return {kind: solution.price(("gpus", kind)) for kind in self.types}

    def _table(self, solution: Solution) -> tuple[Floats, Floats]:
        """Return (values of the columns, values of a unit of time), (jobs, types) each, in the requests' order."""
        worth = np.array([request.value for request in self.requests.values()]).reshape(-1, len(self.types))
        x = np.zeros(worth.shape)
        x[worth > 0] = solution.values_of(list(self.requests))[1]
        return x, worth


class SumProgram(Program):
    """max sum_mj value_mj x_mj; sum_j x_mj <= time_m; sum_m gpus_m x_mj <= GPUs_j; x >= 0 (B4)."""

    def _add(self, job_id: str, request: Request) -> None:
        value = request.value[request.value > 0]
        self.model.add_request(job_id, value, usage=self._usage(request, np.ones(len(value))))

    def solve(self, time: Mapping[str, float] | None = None) -> Shares:
        """Solve with at most `time[m]` of each job's time; missing jobs get 1."""
        with self.model.batch():
            for job_id in self.requests:
                left = 1.0 if time is None else min(max(time[job_id], 0.0), 1.0)
                if self.model.limit(job_id) != left:
                    self.model.update_limit(job_id, left)
        solution = self.session.solve()
        x = dict(zip(self.requests, np.clip(self._table(solution)[0], 0.0, 1.0), strict=True))
        return Shares(x, solution.objective, solution.bound, self._prices(solution))


class LogProgram(Program):
    """max sum_m weight_m log(sum_j value_mj x_mj) under the same limits, by concave worths (B7a)."""

    def _add(self, job_id: str, request: Request) -> None:
        value = request.value[request.value > 0]
        own = worth.log(request.weight)
        self.model.add_request(job_id, 0.0, self._usage(request, np.ones(len(value))), worth=own, rates=value)

    def solve(self) -> Shares:
        """Maximise the sum of the logarithms."""
        solution = self.session.solve()
        x = dict(zip(self.requests, np.clip(self._table(solution)[0], 0.0, 1.0), strict=True))
        return Shares(x, solution.objective, solution.bound, self._prices(solution))


class LevelProgram(Program):
    """max_x of the level t that all jobs reach, sum_j value_mj x_mj >= asked_m(t), under the same limits (B5).

    Columns are u_mj = value_mj x_mj, so that a job's total is their sum and its time a row of its own.
    """

    def _add(self, job_id: str, request: Request) -> None:
        value = request.value[request.value > 0]
        time = PrivateRows([1.0 / value], upper=1.0) if len(value) else None
        usage = self._usage(request, 1.0 / value)
        self.model.add_request(job_id, np.ones(len(value)), usage, limit=value.sum(), private_rows=time)

    def highest(self) -> float:
        """Return an upper bound on the level: the least of the rates that each job could have alone."""
        return float(min((request.value.max() for request in self.requests.values()), default=0.0))

    def solve(self) -> Shares:
        """Maximise the level that every job reaches."""
        return self.rise(lambda level: np.full(len(self.requests), level), self.highest())

    def rise(self, asked: Callable[[float], Floats], highest: float) -> Shares:
        """Return the shares at the highest level, at most `highest`, at which all jobs have what they ask for.

        The objective is the least value of a job, the bound the level.
        """
        if highest <= 0.0:
            prices = dict.fromkeys(self.types, 0.0)
            return Shares({j: np.zeros(len(self.types)) for j in self.requests}, 0.0, 0.0, prices)
        fair = MaxMin(self.session, list(self.requests), asked, highest)
        fair.run(most_levels=1)
        solution = fair.solution
        total, worth = self._table(solution)
        x = dict(zip(self.requests, np.divide(total, worth, out=np.zeros_like(total), where=worth > 0), strict=True))
        return Shares(x, float(total.sum(axis=1).min()), fair.bound, self._prices(solution))


def _same(one: Request, two: Request | None) -> bool:
    return (
        two is not None
        and (one.gpus, one.weight) == (two.gpus, two.weight)
        and bool(np.array_equal(one.value, two.value))
    )
