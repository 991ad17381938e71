"""The same random edits for a model on one machine and for one over shards."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

import copter
import copter_distributed as distributed
from copter.model.private_rows import PrivateRows

EXACT = copter.Settings(tolerance=1e-9)
KINDS = ("plain", "template", "bounded", "served", "private", "integer", "single")


class Pair:
    """Two models that are edited alike.

    Parameters
    ----------
    seed : int
    kinds : tuple of str
        Kinds of requests that are drawn.
    sense : {"max", "min"}
    shards, directory, transport
        Of the distributed session.
    """

    def __init__(
        self,
        seed: int,
        kinds: tuple[str, ...] = KINDS,
        sense: str = "max",
        shards: int = 3,
        resources: int = 4,
        **options: Any,
    ) -> None:
        self.rng, self.kinds, self.sign = np.random.default_rng(seed), kinds, 1.0 if sense == "max" else -1.0
        self.one = copter.Session(copter.Model(sense, offset=2.5), EXACT)
        self.many = distributed.Session(copter.Model(sense, offset=2.5), EXACT, shards=shards, **options)
        self.next = 0
        self.resources = [f"r{k}" for k in range(resources)]
        self.templates: list[tuple[Any, Any]] = []
        counts = self.rng.uniform(4.0, 12.0, resources)
        for resource, count in zip(self.resources, counts.tolist(), strict=True):
            self.both("add_resources", resource, count)
        usage = {
            resource: np.round(self.rng.uniform(0.0, 2.0, 6) * (self.rng.random(6) < 0.5), 2)
            for resource in self.resources
        }
        self.templates.append((self.one.model.add_template(usage), self.many.model.add_template(usage)))

    def both(self, method: str, *arguments: Any, **named: Any) -> None:
        """One edit, on both sides."""
        getattr(self.one.model, method)(*arguments, **named)
        getattr(self.many.model, method)(*arguments, **named)

    def any_request(self) -> Hashable:
        """One of those that are there."""
        requests = self.one.model.requests
        return requests[int(self.rng.integers(len(requests)))]

    def cost(self, n: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Worth something, mostly."""
        return self.sign * np.round(self.rng.uniform(-0.2, 2.0, n), 3)

    def usage(self, n: int) -> dict[str, Any]:
        """Of every resource, half of the columns use some."""
        rng = self.rng
        return {resource: np.round(rng.uniform(0.1, 2.0, n), 2) * (rng.random(n) < 0.5) for resource in self.resources}

    def add(self, kind: str | None = None) -> Hashable:
        """A new request on both sides."""
        rng, request = self.rng, f"job {self.next}"
        self.next += 1
        kind = kind or self.kinds[int(rng.integers(len(self.kinds)))]
        n = int(rng.integers(2, 9))
        if kind == "template":
            here, there = self.templates[0]
            cost = self.cost(6)
            named: dict[str, Any] = {"limit": float(rng.integers(1, 3)), "scale": 1.0 + rng.random()}
            self.one.model.add_request(request, cost, template=here, **named)
            self.many.model.add_request(request, cost, template=there, **named)
            return request
        more: dict[str, dict[str, Any]] = {
            "bounded": {"upper": rng.uniform(0.1, 0.6, n), "limit": np.inf if rng.random() < 0.3 else 1.0},
            "served": {"at_least": 0.05, "limit": 1.0},
            "private": {"private_rows": PrivateRows(np.round(rng.uniform(0.0, 1.0, (2, n)), 2), -np.inf, 0.7)},
            "integer": {"integer": True},
            "single": {"cost_dtype": np.float32},
        }
        self.both("add_request", request, self.cost(n), self.usage(n), **more.get(kind, {}))
        return request

    def edit(self) -> None:
        """A random edit on both sides."""
        rng, model = self.rng, self.one.model
        choice = int(rng.integers(11))
        if choice < 3 or len(model.requests) < 4:
            self.add()
            return
        request = self.any_request()
        n = len(model.cost(request))
        if choice == 3:
            self.both("remove_request", request)
        elif choice == 4:
            self.both("update_cost", request, self.cost(n), scale=float(rng.uniform(0.5, 2.0)))
        elif choice == 5:
            ids = list(model.requests)
            self.both("rescale_costs", ids, self.sign * self.sign * rng.uniform(0.8, 1.2, len(ids)))
        elif choice == 6:
            resource = self.resources[int(rng.integers(len(self.resources)))]
            self.both("set_count", resource, float(rng.uniform(4.0, 12.0)))
        elif choice == 7 and model.at_least(request) == -np.inf and np.isfinite(model.limit(request)):
            self.both("update_limit", request, float(rng.uniform(1.0, 2.0)))
        elif choice == 10:
            names = [each for each in model.requests if rng.random() < 0.3] or [request]
            sizes = rng.integers(1, 7, len(names))
            n, more = int(sizes.sum()), {}
            if "private" in self.kinds and rng.random() < 0.5:
                rows = np.repeat(np.eye(len(names)), sizes, axis=1) * np.round(rng.uniform(0.0, 1.0, n), 2)
                more = {"private_rows": PrivateRows(rows, -np.inf, 0.7), "private_sizes": 1}
            kept = np.where(np.arange(n) == np.repeat(np.cumsum(sizes) - sizes, sizes), 0, -1)
            self.both("update_columns", names, sizes, self.cost(n), self.usage(n), kept=kept, **more)
        elif choice == 8 and model.template_of(request) is None:
            self.both("update_usage", request, self.usage(n))
        else:
            self.both("update_column_cost", request, int(rng.integers(n)), float(self.cost(1)[0]))

    def agree(self) -> copter.Solution:
        """Solve both, and compare: status, objective, bound."""
        one, many = self.one.solve(), self.many.solve()
        assert one.status is many.status is copter.Status.OPTIMAL, (one, many)
        scale = 1.0 + abs(one.objective)
        assert abs(one.objective - many.objective) <= 3e-9 * scale
        assert many.gap <= (1e-7 if "single" in self.kinds else EXACT.tolerance)  # single precision hides the rest
        if many.bound_is_certified:
            assert self.sign * (many.bound - one.objective) >= -1e-12 * scale
        feasible(self.one.model, many)
        return many


def feasible(model: copter.Model, solution: copter.Solution) -> None:
    """The values of a distributed solution satisfy the program of the twin on one machine, and give its objective."""
    lp = model.to_linear_program()
    x = np.concatenate([solution.of(request) for request in model.requests])
    activity = lp.A @ x
    assert (activity <= lp.row_upper + 1e-6).all()
    assert (activity >= lp.row_lower - 1e-6).all()
    assert (x >= lp.col_lower - 1e-9).all()
    assert (x <= lp.col_upper + 1e-9).all()
    assert abs(lp.c @ x + lp.offset - solution.objective) <= 1e-8 * (1.0 + abs(solution.objective))
