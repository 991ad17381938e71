"""Families of models whose plans are compared with HiGHS's: each makes a model, and changes it from round to round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from copter import Model, PrivateRows

Floats = npt.NDArray[np.float64]

ZONES = ("east", "west", "north")
TYPES = ("h100", "a100", "l40s", "l4")
PLACES = [(zone, kind) for zone in ZONES for kind in TYPES]
GPUS = {"7b": (1, 1, 1, 1), "70b": (2, 4, 8, 0), "405b": (8, 16, 0, 0)}
RATE = {"7b": (40.0, 25.0, 14.0, 6.0), "70b": (18.0, 16.0, 14.0, 0.0), "405b": (9.0, 8.0, 0.0, 0.0)}
HOURLY, WATTS = (4.0, 2.2, 1.1, 0.5), (0.7, 0.4, 0.3, 0.07)
LOAD_GB = {"7b": 15.0, "70b": 140.0, "405b": 800.0}
WORTH = {"gold": 6.0, "silver": 2.0, "batch": 0.5}


class Family(ABC):
    """A model that changes: :meth:`churn` edits a share of its requests.

    Attributes
    ----------
    model : Model
    """

    def __init__(self, sense: str, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.model = Model(sense)  # type: ignore[arg-type]
        self.next = 0

    @abstractmethod
    def add(self) -> None:
        """Add one request."""

    @abstractmethod
    def change(self, request: object) -> None:
        """Change one request."""

    def churn(self, share: float) -> None:
        """Replace one request by a new one, and change a share of the others."""
        own = [request for request in self.model.requests if isinstance(request, int)]
        if len(own) > 1 and self.replaces:
            self.model.remove_request(own[int(self.rng.integers(len(own)))])
            self.add()
        own = [request for request in self.model.requests if isinstance(request, int)]
        for at in self.rng.choice(len(own), max(1, round(share * len(own))), replace=False).tolist():
            self.change(own[at])

    replaces = True


class Replicas(Family):
    """Replicas of language models over 12 places: whole counts, two private rows each, an equation for the power."""

    def __init__(self, size: int, seed: int, load_gb: float = 4000.0) -> None:
        super().__init__("min", seed)
        for place in PLACES:
            self.model.add_resource(place, int(size * (0.5, 0.8, 1.0, 0.6)[TYPES.index(place[1])]))
        for zone in ZONES:
            self.model.add_resource(("load", zone), load_gb * size / 30.0)
        power = 2.2 * size
        self.model.set_count("power", power, lower=power)
        self.model.add_request("unused power", [0.0], {"power": [1.0]}, limit=np.inf)
        self.shapes = {model: self.shape(model) for model in GPUS}
        self.kind: dict[int, tuple[str, str]] = {}
        for _ in range(size):
            self.add()

    def shape(self, model: str) -> object:
        """Return the template of a language model: columns kept and new by place, and requests that are not served."""
        n = len(PLACES)
        usage: dict[object, list[float]] = {}
        for at, (zone, kind) in enumerate(PLACES):
            row = [0.0] * (2 * n + 1)
            row[at] = row[n + at] = float(GPUS[model][TYPES.index(kind)])
            usage[zone, kind] = row
        for zone in ZONES:
            usage["load", zone] = [0.0] * n + [LOAD_GB[model] if z == zone else 0.0 for z, _ in PLACES] + [0.0]
        watts = [GPUS[model][TYPES.index(kind)] * WATTS[TYPES.index(kind)] for _, kind in PLACES]
        usage["power"] = [*watts, *watts, 0.0]
        rates = [RATE[model][TYPES.index(kind)] for _, kind in PLACES]
        rows = [[*rates, *rates, 1.0], [1.0] * (2 * n) + [0.0]]
        return self.model.add_template(usage, private_rows=PrivateRows(rows, [0.0, 0.0], [np.inf, np.inf]))

    def add(self) -> None:
        """Add a deployment that has some replicas already."""
        name, self.next = self.next, self.next + 1
        model = str(self.rng.choice(list(GPUS), p=[0.6, 0.3, 0.1]))
        tier = str(self.rng.choice(list(WORTH)))
        self.kind[name] = model, tier
        gpus = np.array([GPUS[model][TYPES.index(kind)] for _, kind in PLACES], dtype=float)
        hourly = gpus * np.array([HOURLY[TYPES.index(kind)] for _, kind in PLACES])
        able = np.where(np.array([RATE[model][TYPES.index(kind)] for _, kind in PLACES]) > 0, 8.0, 0.0)
        have = np.where(self.rng.random(len(PLACES)) < 0.2, np.minimum(self.rng.integers(1, 3, len(PLACES)), able), 0.0)
        cost = np.concatenate([hourly, hourly + 0.2 * LOAD_GB[model] / 100.0, [WORTH[tier]]])
        self.model.add_request(
            name, cost, template=self.shapes[model], limit=np.inf, upper=np.concatenate([have, able, [np.inf]]),  # type: ignore[arg-type]
            integer=True, row_lower=[self.demand(model), 2.0 if tier == "gold" else 0.0],
        )  # fmt: skip

    def demand(self, model: str) -> float:
        """Draw the requests/s of a deployment."""
        return float(np.ceil(self.rng.gamma(2.0, {"7b": 40.0, "70b": 20.0, "405b": 8.0}[model])))

    def change(self, request: object) -> None:
        """Let a deployment's demand drift."""
        name = int(request)  # type: ignore[call-overload]
        self.model.update_row_bounds([name], lower=np.array([self.demand(self.kind[name][0])]), row=0)


class Knapsacks(Family):
    """Knapsacks in several dimensions; each request takes a few of its items, which exclude one another in part."""

    items, dimensions = 8, 6

    def __init__(self, size: int, seed: int) -> None:
        super().__init__("max", seed)
        for d in range(self.dimensions):
            self.model.add_resource(("unit", d), int(size * 9))
        for _ in range(size):
            self.add()

    def add(self) -> None:
        """Add a request: one private row of weights, one of the first half's items, at most three items in all."""
        name, self.next = self.next, self.next + 1
        use = self.rng.integers(1, 12, (self.dimensions, self.items)).astype(float)
        weight = self.rng.integers(3, 10, self.items).astype(float)
        half = (np.arange(self.items) < self.items // 2).astype(float)
        self.model.add_request(
            name, use.mean(axis=0) * 10.0 + self.rng.integers(0, 30, self.items),
            {("unit", d): use[d] for d in range(self.dimensions)}, limit=3.0, upper=1.0, integer=True,
            private_rows=PrivateRows([weight, half], [-np.inf, -np.inf], [14.0, 1.0]),
        )  # fmt: skip

    def change(self, request: object) -> None:
        """Change a request's values."""
        cost = self.model.cost(request)  # type: ignore[arg-type]
        self.model.update_cost(request, np.maximum(1.0, np.round(cost * self.rng.uniform(0.8, 1.25, len(cost)))))  # type: ignore[arg-type]


class Assignment(Family):
    """Tasks of which each goes to exactly one agent; each agent has a capacity and gets a given number of tasks."""

    replaces = True

    def __init__(self, size: int, seed: int) -> None:
        super().__init__("min", seed)
        self.agents = max(4, size // 12)
        for agent in range(self.agents):
            least, more = divmod(size, self.agents)
            count = least + (agent < more)
            self.model.add_resource(("hours", agent), 15.0 * size / self.agents)
            self.model.set_count(("tasks", agent), count, lower=count)
        usage: dict[object, Floats] = {("tasks", agent): np.eye(self.agents)[agent] for agent in range(self.agents)}
        self.count = usage
        for _ in range(size):
            self.add()

    def add(self) -> None:
        """Add a task."""
        name, self.next = self.next, self.next + 1
        hours = self.rng.integers(5, 25, self.agents).astype(float)
        usage = self.count | {("hours", agent): np.eye(self.agents)[agent] * hours for agent in range(self.agents)}
        cost = 50.0 - hours + self.rng.integers(0, 20, self.agents)
        self.model.add_request(name, cost, usage, at_least=1.0, integer=True)

    def change(self, request: object) -> None:
        """Change a task's costs."""
        cost = self.model.cost(request)  # type: ignore[arg-type]
        self.model.update_cost(request, np.maximum(1.0, np.round(cost * self.rng.uniform(0.8, 1.25, len(cost)))))  # type: ignore[arg-type]


class LotSizing(Family):
    """Items made in lots over 12 periods: make, set-up (whole) and stock by period; set-ups and lots share machines."""

    periods = 12

    def __init__(self, size: int, seed: int) -> None:
        super().__init__("min", seed)
        for period in range(self.periods):
            self.model.add_resource(("machine", period), 75.0 * size)
        for _ in range(size):
            self.add()

    def add(self) -> None:
        """Add an item: stock balance and lot only after a set-up, by period; lacking units are bought dearly."""
        name, self.next, t = self.next, self.next + 1, self.periods
        demand = self.demand()
        eye, zero = np.eye(t), np.zeros((t, t))
        most = 400.0
        balance = np.hstack([eye, zero, np.eye(t, k=-1) - eye, eye])  # make + stock before - stock + bought = demand
        setup = np.hstack([eye, -most * eye, zero, zero])
        hours = self.rng.uniform(0.5, 1.0)
        start = float(self.rng.integers(15, 40))
        usage = {("machine", p): np.concatenate([hours * eye[p], start * eye[p], np.zeros(2 * t)]) for p in range(t)}
        cost = np.concatenate([
            np.full(t, 0.1), np.full(t, float(self.rng.integers(150, 500))), np.full(t, self.rng.uniform(0.5, 2.0)),
            np.full(t, 60.0),
        ])  # fmt: skip
        self.model.add_request(
            name, cost, usage, limit=np.inf, upper=np.concatenate([np.full(t, most), np.ones(t), np.full(2 * t, 1e4)]),
            integer=np.repeat([False, True, False, False], t),
            private_rows=PrivateRows(np.vstack([balance, setup]), [*demand, *[-np.inf] * t], [*demand, *[0.0] * t]),
        )  # fmt: skip

    def demand(self) -> Floats:
        """Draw the demand of every period."""
        return np.where(self.rng.random(self.periods) < 0.8, self.rng.integers(20, 150, self.periods), 0).astype(float)

    def change(self, request: object) -> None:
        """Draw one period's demand again."""
        at, new = int(self.rng.integers(self.periods)), float(self.rng.integers(0, 150))
        self.model.update_row_bounds([request], lower=np.array([new]), upper=np.array([new]), row=at)  # type: ignore[list-item]


class Units(Family):
    """Unit commitment over 24 hours: on, started (whole) and power by hour and unit; demand and reserve by hour."""

    hours = 24

    def __init__(self, size: int, seed: int) -> None:
        super().__init__("min", seed)
        shape = 0.65 + 0.25 * np.sin((np.arange(self.hours) - 8.0) / 24.0 * 2.0 * np.pi)
        for hour in range(self.hours):
            need = float(np.round(size * 100.0 * shape[hour]))
            self.model.set_count(("demand", hour), np.inf, lower=need)
            self.model.set_count(("reserve", hour), np.inf, lower=1.08 * need)
        t = self.hours
        usage = {("demand", hour): np.eye(t)[hour] for hour in range(t)}
        usage |= {("reserve", hour): np.eye(t)[hour] for hour in range(t)}
        self.model.add_request("cut off", np.full(t, 500.0), usage, limit=np.inf)
        for _ in range(size):
            self.add()

    replaces = False

    def add(self) -> None:
        """Add a unit: least and most power while on, starts, and at least four hours on after a start."""
        name, self.next, t = self.next, self.next + 1, self.hours
        most = float(self.rng.integers(50, 250))
        least = round(most * self.rng.uniform(0.3, 0.6))
        eye, zero = np.eye(t), np.zeros((t, t))
        after = np.eye(t) - np.eye(t, k=-1)
        after[0] = 0.0  # every unit may be on in the first hour
        recent = np.tril(np.ones((t, t))) - np.tril(np.ones((t, t)), -4)
        rows = np.vstack([
            np.hstack([-most * eye, zero, eye]), np.hstack([-least * eye, zero, eye]), np.hstack([after, -eye, zero]),
            np.hstack([-eye, recent, zero]),
        ])  # fmt: skip
        lower = np.concatenate([np.full(t, -np.inf), np.zeros(t), np.full(2 * t, -np.inf)])
        upper = np.concatenate([np.zeros(t), np.full(t, np.inf), np.zeros(2 * t)])
        usage = {("demand", h): np.concatenate([np.zeros(2 * t), eye[h]]) for h in range(t)}
        usage |= {("reserve", h): np.concatenate([most * eye[h], np.zeros(2 * t)]) for h in range(t)}
        price = self.rng.uniform(10.0, 40.0)
        cost = np.concatenate([
            np.full(t, most * self.rng.uniform(1.0, 4.0)), np.full(t, most * self.rng.uniform(2.0, 12.0)),
            np.full(t, price),
        ])  # fmt: skip
        self.model.add_request(
            name, cost, usage, limit=np.inf, upper=np.concatenate([np.ones(2 * t), np.full(t, most)]),
            integer=np.repeat([True, True, False], t), private_rows=PrivateRows(rows, lower, upper),
        )  # fmt: skip

    def change(self, request: object) -> None:
        """Change the price of a unit's power, and the demand of an hour."""
        cost = self.model.cost(request)  # type: ignore[arg-type]
        self.model.update_cost(request, np.concatenate([cost[:-24], cost[-24:] * self.rng.uniform(0.9, 1.1)]))  # type: ignore[arg-type]


class Bins(Family):
    """Bin packing: each bin is a request of which items it takes and whether it is used; every item goes somewhere."""

    def __init__(self, size: int, seed: int) -> None:
        super().__init__("min", seed)
        self.weights = self.rng.integers(20, 70, size).astype(float)
        for item in range(size):
            self.model.set_count(("item", item), 1.0, lower=1.0)
        self.usage = {("item", item): np.eye(size + 1)[item] for item in range(size)}
        for _ in range(int(self.weights.sum() / 100.0 * 1.25) + 1):
            self.add()

    replaces = False

    def rows(self) -> PrivateRows:
        """Return the row of a bin: the weights fit if it is used."""
        return PrivateRows([[*self.weights, -100.0]], [-np.inf], [0.0])

    def add(self) -> None:
        """Add a bin."""
        name, self.next = self.next, self.next + 1
        n = len(self.weights)
        cost = np.append(np.zeros(n), float(self.rng.integers(90, 110)))
        self.model.add_request(name, cost, self.usage, limit=np.inf, upper=1.0, integer=True, private_rows=self.rows())

    def change(self, request: object) -> None:
        """Change the price of a bin."""
        cost = self.model.cost(request)  # type: ignore[arg-type]
        cost[-1] = float(self.rng.integers(90, 110))
        self.model.update_cost(request, cost)  # type: ignore[arg-type]


class Crews(Family):
    """Set partition: each crew flies one of its duties or none; every flight is flown once, or cancelled dearly."""

    duties = 40

    def __init__(self, size: int, seed: int) -> None:
        super().__init__("min", seed)
        self.flights = 4 * size
        for flight in range(self.flights):
            self.model.set_count(("flight", flight), 1.0, lower=1.0)
        for flight in range(self.flights):
            self.model.add_request(("cancel", flight), [300.0], {("flight", flight): [1.0]}, integer=True)
        for _ in range(size):
            self.add()

    def add(self) -> None:
        """Add a crew with duties of three to five flights that follow one another."""
        name, self.next = self.next, self.next + 1
        usage: dict[object, Floats] = {}
        cost = np.zeros(self.duties)
        for duty in range(self.duties):
            at = int(self.rng.integers(self.flights))
            for _ in range(int(self.rng.integers(3, 6))):
                usage.setdefault(("flight", at % self.flights), np.zeros(self.duties))[duty] = 1.0
                step = int(self.rng.integers(1, 6))
                cost[duty] += 20.0 + 8.0 * step
                at += step
        self.model.add_request(name, np.round(cost * self.rng.uniform(0.9, 1.1)), usage, integer=True)

    def change(self, request: object) -> None:
        """Change the costs of a crew's duties."""
        cost = self.model.cost(request)  # type: ignore[arg-type]
        self.model.update_cost(request, np.round(cost * self.rng.uniform(0.9, 1.1, len(cost))))  # type: ignore[arg-type]


FAMILIES: dict[str, Callable[[int], Family]] = {
    "replicas-30": lambda seed: Replicas(30, seed),
    "replicas-60": lambda seed: Replicas(60, seed),
    "replicas-200": lambda seed: Replicas(200, seed),
    "replicas-400": lambda seed: Replicas(400, seed),
    "knapsacks-150": lambda seed: Knapsacks(150, seed),
    "knapsacks-1000": lambda seed: Knapsacks(1000, seed),
    "assignment-120": lambda seed: Assignment(120, seed),
    "assignment-400": lambda seed: Assignment(400, seed),
    "lots-20": lambda seed: LotSizing(20, seed),
    "lots-80": lambda seed: LotSizing(80, seed),
    "units-20": lambda seed: Units(20, seed),
    "units-100": lambda seed: Units(100, seed),
    "bins-40": lambda seed: Bins(40, seed),
    "bins-100": lambda seed: Bins(100, seed),
    "crews-40": lambda seed: Crews(40, seed),
    "crews-150": lambda seed: Crews(150, seed),
}
