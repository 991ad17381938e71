"""Families that plans were not made for: sites, rolls, time slots, links with charges (`plans.py --unseen`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from plan_families import Assignment, Crews, Family, Floats, Knapsacks, LotSizing, Replicas, Units

from copter import PrivateRows


class Sites(Family):
    """Facility location with capacities: each site is opened or not and serves shares of customers near it."""

    def __init__(self, size: int, seed: int) -> None:
        super().__init__("min", seed)
        self.customers = 3 * size
        self.at = self.rng.random((self.customers, 2))
        self.demand = self.rng.integers(5, 30, self.customers).astype(float)
        for customer in range(self.customers):
            self.model.set_count(("customer", customer), 1.0, lower=1.0)
        usage = {("customer", c): np.eye(self.customers)[c] for c in range(self.customers)}
        self.model.add_request("lost", 20.0 * self.demand, usage, limit=np.inf)
        for _ in range(size):
            self.add()

    def add(self) -> None:
        """Add a site: its capacity, and no share of a customer unless it is open."""
        name, self.next = self.next, self.next + 1
        near = np.sort(np.argsort(np.linalg.norm(self.at - self.rng.random(2), axis=1))[: self.customers // 2])
        n, zero = len(near), np.zeros
        far = np.linalg.norm(self.at[near] - self.at[near].mean(axis=0), axis=1)
        capacity = float(self.rng.integers(150, 400))
        rows = np.vstack([np.append(self.demand[near], -capacity), np.hstack([np.eye(n), -np.ones((n, 1))])])
        usage = {("customer", int(c)): np.append(np.eye(n)[k], 0.0) for k, c in enumerate(near)}
        cost = np.append(self.demand[near] * 5.0 * far, float(self.rng.integers(200, 500)))
        self.model.add_request(
            name, cost, usage, limit=np.inf, upper=1.0, integer=np.append(zero(n, bool), True),
            private_rows=PrivateRows(rows, np.full(n + 1, -np.inf), zero(n + 1)),
        )  # fmt: skip

    def change(self, request: object) -> None:
        """Change what opening a site costs."""
        cost = self.model.cost(request)  # type: ignore[arg-type]
        cost[-1] = float(self.rng.integers(200, 500))
        self.model.update_cost(request, cost)  # type: ignore[arg-type]


class Rolls(Family):
    """Cutting stock: each roll is cut into whole numbers of widths; every width is needed some times."""

    widths = 12

    def __init__(self, size: int, seed: int) -> None:
        super().__init__("min", seed)
        self.width = self.rng.integers(15, 70, self.widths).astype(float)
        need = self.rng.multinomial(3 * size, np.full(self.widths, 1.0 / self.widths)).astype(float)
        for at in range(self.widths):
            self.model.set_count(("width", at), np.inf, lower=need[at])
        self.usage = {("width", at): np.eye(self.widths + 1)[at] for at in range(self.widths)}
        for _ in range(int(self.width @ need / 100.0 * 1.4) + 1):
            self.add()

    replaces = False

    def add(self) -> None:
        """Add a roll of one of three lengths."""
        name, self.next = self.next, self.next + 1
        length = float(self.rng.choice([80.0, 100.0, 140.0]))
        rows = PrivateRows([[*self.width, -length]], [-np.inf], [0.0])
        cost = np.append(np.zeros(self.widths), np.round(length * self.rng.uniform(0.9, 1.1)))
        upper = np.append(np.full(self.widths, 9.0), 1.0)
        self.model.add_request(name, cost, self.usage, limit=np.inf, upper=upper, integer=True, private_rows=rows)

    def change(self, request: object) -> None:
        """Change the price of a roll."""
        cost = self.model.cost(request)  # type: ignore[arg-type]
        cost[-1] = np.round(cost[-1] * self.rng.uniform(0.9, 1.1))
        self.model.update_cost(request, cost)  # type: ignore[arg-type]


class Slots(Family):
    """A job shop in time slots: three operations a job, one after the other, each on a machine for some slots."""

    slots, machines = 24, 4

    def __init__(self, size: int, seed: int) -> None:
        super().__init__("min", seed)
        for machine in range(self.machines):
            for slot in range(self.slots):
                self.model.add_resource((machine, slot), max(1.0, np.round(size / 8.0)))
        for _ in range(size):
            self.add()

    def add(self) -> None:
        """Add a job: when each operation starts, or that the job is not done."""
        name, self.next, t = self.next, self.next + 1, self.slots
        usage: dict[object, Floats] = {}
        rows, start = [], 0
        length = self.rng.integers(1, 4, 3)
        for op, machine in enumerate(self.rng.permutation(self.machines)[:3].tolist()):
            for at in range(t - int(length[op])):
                for busy in range(at, at + int(length[op])):
                    usage.setdefault((machine, busy), np.zeros(3 * t + 1))[op * t + at] = 1.0
            one = np.zeros(3 * t + 1)
            one[op * t : op * t + t - int(length[op])] = one[-1] = 1.0
            rows.append(one)
            start += int(length[op])
        upper = np.minimum(1.0, np.sum(rows, axis=0))
        for op in range(2):
            after = np.zeros(3 * t + 1)
            after[op * t : (op + 1) * t] = np.arange(t) + length[op]
            after[(op + 1) * t : (op + 2) * t] = -np.arange(t, dtype=float)
            rows.append(after)
        weight = float(self.rng.integers(1, 10))
        cost = np.concatenate([np.zeros(2 * t), weight * (np.arange(t) + length[2]), [3.0 * weight * t]])
        self.model.add_request(
            name, cost, usage, limit=np.inf, upper=upper, integer=True,
            private_rows=PrivateRows(rows, [1.0] * 3 + [-np.inf] * 2, [1.0] * 3 + [0.0] * 2),
        )  # fmt: skip

    def change(self, request: object) -> None:
        """Change a job's weight."""
        cost = self.model.cost(request)  # type: ignore[arg-type]
        self.model.update_cost(request, cost * float(self.rng.uniform(0.7, 1.4)))  # type: ignore[arg-type]


class Charges(Family):
    """Flows of many commodities over links that cost something once they are used: paths of each, links as requests."""

    nodes, paths = 14, 5

    def __init__(self, size: int, seed: int) -> None:
        super().__init__("min", seed)
        ring = [(i, (i + 1) % self.nodes) for i in range(self.nodes)]
        pairs = [(i, j) for i in range(self.nodes) for j in range(i + 2, self.nodes) if (i, j) != (0, self.nodes - 1)]
        more = self.rng.choice(len(pairs), self.nodes, replace=False).tolist()
        self.links = ring + [pairs[at] for at in more]
        for link in self.links:
            self.model.set_count(link, 0.0)
        for link in self.links:
            room = float(self.rng.integers(3, 8)) * size
            self.model.add_request(
                ("open", link), [float(self.rng.integers(20, 60)) * size], {link: [-room]}, integer=True
            )
        for _ in range(size):
            self.add()

    def add(self) -> None:
        """Add a commodity: its flow by path, and what is not sent."""
        name, self.next = self.next, self.next + 1
        source, sink = self.rng.choice(self.nodes, 2, replace=False).tolist()
        usage: dict[object, Floats] = {}
        cost = np.full(self.paths + 1, 40.0)
        for path in range(self.paths):
            walk = self.walk(source, sink)
            cost[path] = float(len(walk))
            for link in walk:
                usage.setdefault(link, np.zeros(self.paths + 1))[path] = 1.0
        demand = float(self.rng.integers(2, 20))
        rows = PrivateRows([np.ones(self.paths + 1)], [demand], [demand])
        self.model.add_request(name, cost, usage, limit=np.inf, private_rows=rows)

    def walk(self, source: int, sink: int) -> list[tuple[int, int]]:
        """Return the links of a shortest path for random lengths."""
        length = self.rng.uniform(0.5, 1.5, len(self.links))
        far, before = np.full(self.nodes, np.inf), np.full(self.nodes, -1)
        far[source] = 0.0
        for _ in range(self.nodes):
            for at, (i, j) in enumerate(self.links):
                for a, b in ((i, j), (j, i)):
                    if far[a] + length[at] < far[b]:
                        far[b], before[b] = far[a] + length[at], at
        found = []
        while sink != source:
            found.append(self.links[before[sink]])
            sink = sum(found[-1]) - sink
        return found

    def change(self, request: object) -> None:
        """Draw a commodity's demand again."""
        demand = np.array([float(self.rng.integers(2, 20))])
        self.model.update_row_bounds([request], lower=demand, upper=demand, row=0)  # type: ignore[list-item]


UNSEEN: dict[str, Callable[[int], Family]] = {
    "sites-15": lambda seed: Sites(15, seed),
    "sites-40": lambda seed: Sites(40, seed),
    "rolls-20": lambda seed: Rolls(20, seed),
    "rolls-80": lambda seed: Rolls(80, seed),
    "slots-20": lambda seed: Slots(20, seed),
    "slots-60": lambda seed: Slots(60, seed),
    "charges-40": lambda seed: Charges(40, seed),
    "charges-200": lambda seed: Charges(200, seed),
    "replicas-100": lambda seed: Replicas(100, seed),
    "knapsacks-400": lambda seed: Knapsacks(400, seed),
    "assignment-60": lambda seed: Assignment(60, seed),
    "assignment-200": lambda seed: Assignment(200, seed),
    "lots-10": lambda seed: LotSizing(10, seed),
    "lots-40": lambda seed: LotSizing(40, seed),
    "units-40": lambda seed: Units(40, seed),
    "crews-80": lambda seed: Crews(80, seed),
}
