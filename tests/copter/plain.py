"""A model in plain dictionaries, and random edits that are done to it and to the real one alike."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter import Model
from copter.model.matrix import Template
from tests.copter.consistent import require_consistent

Floats = NDArray[np.float64]
Usage = dict[Hashable, Floats]


class Plain:
    """What the edits so far ask for; `build` makes a fresh model of it."""

    def __init__(self) -> None:
        self.resources: dict[Hashable, float] = {}
        self.templates: dict[int, Usage] = {}
        self.requests: dict[Hashable, dict[str, Any]] = {}
        self.sizes: dict[int, int] = {}

    def usage_of(self, request: Hashable) -> Usage:
        """Usage of a request, wherever it is kept."""
        note = self.requests[request]
        return self.templates[note["template"]] if note["template"] is not None else note["usage"]

    def build(self) -> Model:
        """A model made afresh."""
        model = Model(offset=0.25)
        for resource, count in self.resources.items():
            model.add_resources(resource, count)
        for request, note in self.requests.items():
            usage, names = as_sparse(self.usage_of(request), len(note["cost"]))
            model.add_request(
                request, note["cost"], usage, resources=names, limit=note["limit"], lower=note["lower"],
                upper=note["upper"], integer=note["integer"], scale=note["scale"], offset=note["offset"],
            )  # fmt: skip
            if note["exceptions"]:
                model.update_column_cost(request, list(note["exceptions"]), list(note["exceptions"].values()))
            if note["fixed"] is not None:
                model.fix(request, note["fixed"])
        return model


def as_sparse(usage: Usage, n: int) -> tuple[sp.csr_array, list[Hashable]]:
    """A usage as a sparse matrix with the ids of its rows; right for no rows at all."""
    return sp.csr_array(np.array(list(usage.values())).reshape(len(usage), n)), list(usage)


def continued(rng: np.random.Generator, before: int, now: int) -> NDArray[np.int64]:
    """For each new column or row the old one that it continues, or -1: each old one once at most."""
    drawn = np.append(rng.permutation(before), np.full(now, -1))[:now]
    return np.where(rng.random(now) < 0.7, drawn, -1)


class Player:
    """Does the same random edits to a model and to a plain one; every step is one edit or one batch."""

    def __init__(self, model: Model | None = None, plain: Plain | None = None) -> None:
        self.model, self.plain = model or Model(offset=0.25), plain or self.nothing()
        self.made: dict[int, Any] = {}  # number of a template: its handle
        self.next = 0

    def nothing(self) -> Plain:
        """The plain side of an empty model."""
        return Plain()

    # Drawing --------------------------------------------------------------------------------------------------------

    def pick(self, rng: np.random.Generator, some: Any) -> Any:
        """One of some things, in a fixed order."""
        choices = list(some)
        return choices[int(rng.integers(len(choices)))]

    def usage(self, rng: np.random.Generator, n: int) -> Usage:
        """Units of some resources for n columns; zeros among them."""
        names = [name for name in self.plain.resources if rng.random() < 0.6]
        return {name: np.where(rng.random(n) < 0.7, rng.integers(1, 9, n), 0).astype(float) for name in names}

    def name(self, rng: np.random.Generator) -> Hashable:
        """An id, of any sort that can be saved; some come back after they were removed."""
        number = int(rng.integers(60))
        sorts: tuple[Hashable, ...] = (
            f"r{number}",
            number,
            (f"r{number}", number, None),
            b"r%d" % number,
            number + 0.5,
        )
        return sorts[number % 5]

    def note(self, rng: np.random.Generator, n: int) -> dict[str, Any]:
        """Data of a new request."""
        plain = rng.random() < 0.75
        lower = 0.0 if plain else np.round(rng.uniform(-0.2, 0.3, n), 2)
        upper = 1.0 if plain else np.round(rng.uniform(0.3, 2.0, n), 2)
        limit = 1.0 if plain else float(rng.choice([np.inf, 0.3 * n + 1.0]))
        return {
            "cost": rng.normal(0.5, 1.0, n), "scale": float(rng.uniform(0.5, 2.0)), "offset": float(rng.normal() * 0.1),
            "limit": limit, "lower": lower, "upper": upper, "integer": bool(rng.random() < 0.5), "exceptions": {},
            "fixed": None, "template": None, "usage": None,
        }  # fmt: skip

    # Edits ----------------------------------------------------------------------------------------------------------

    def more(self, rng: np.random.Generator) -> None:
        """A new resource, or more of one."""
        name = f"k{int(rng.integers(6))}"
        units = float(rng.integers(4, 40))
        self.model.add_resources(name, units)
        self.plain.resources[name] = self.plain.resources.get(name, 0.0) + units

    def fewer(self, rng: np.random.Generator) -> None:
        if self.plain.resources:
            name = self.pick(rng, self.plain.resources)
            units = float(rng.integers(0, 5))
            if self.plain.resources[name] - units >= self.model.fixed_usage(name):
                self.model.remove_resources(name, units)
                self.plain.resources[name] -= units

    def drop(self, rng: np.random.Generator) -> None:
        if len(self.plain.resources) > 2:
            name = self.pick(rng, self.plain.resources)
            self.model.drop_resource(name)
            del self.plain.resources[name]
            for usage in self.plain.templates.values():
                usage.pop(name, None)
            for note in self.plain.requests.values():
                if note["usage"] is not None:
                    note["usage"].pop(name, None)

    def declare(self, rng: np.random.Generator) -> None:
        """A new template."""
        if len(self.made) < 6:
            n = int(rng.integers(1, 7))
            usage = self.usage(rng, n)
            self.made[self.next] = self.model.add_template(*as_sparse(usage, n))
            self.plain.templates[self.next], self.plain.sizes[self.next] = usage, n
            self.next += 1

    def redeclare(self, rng: np.random.Generator) -> None:
        """Another usage of a template, for all its users."""
        if self.made:
            number = self.pick(rng, self.made)
            usage = self.usage(rng, self.plain.sizes[number])
            self.model.update_template(self.made[number], *as_sparse(usage, self.plain.sizes[number]))
            self.plain.templates[number] = usage

    def undeclare(self, rng: np.random.Generator) -> None:
        idle = [number for number, template in self.made.items() if template.users == 0]
        if idle:
            number = self.pick(rng, idle)
            self.model.drop_template(self.made.pop(number))
            del self.plain.templates[number]

    def add(self, rng: np.random.Generator) -> None:
        name = self.name(rng)
        if name in self.plain.requests:
            return
        number = self.pick(rng, self.made) if self.made and rng.random() < 0.5 else None
        n = int(rng.integers(1, 7)) if number is None else self.plain.sizes[number]
        note = self.note(rng, n)
        source: dict[str, Any] = {}
        if number is None:
            note["usage"] = self.usage(rng, n)
            source["usage"], source["resources"] = as_sparse(note["usage"], n)
        else:
            note["template"], source["template"] = number, self.made[number]
        keys = ("cost", "limit", "lower", "upper", "integer", "scale", "offset")
        self.model.add_request(name, **{key: note[key] for key in keys}, **source)
        self.plain.requests[name] = note

    def add_many(self, rng: np.random.Generator) -> None:
        names = [name for name in dict.fromkeys(self.name(rng) for _ in range(4)) if name not in self.plain.requests]
        if not self.made or not names:
            return
        number = self.pick(rng, self.made)
        costs = rng.normal(0.5, 1.0, (len(names), self.plain.sizes[number]))
        scale = rng.uniform(0.5, 2.0, len(names))
        self.model.add_requests(names, costs, template=self.made[number], scale=scale, offset=0.1)
        for name, cost, factor in zip(names, costs, scale, strict=True):
            self.plain.requests[name] = self.note(rng, 1) | {
                "cost": cost, "scale": float(factor), "offset": 0.1, "limit": 1.0, "lower": 0.0, "upper": np.inf,
                "integer": False, "template": number,
            }  # fmt: skip

    def remove(self, rng: np.random.Generator) -> None:
        if self.plain.requests:
            name = self.pick(rng, self.plain.requests)
            self.model.remove_request(name)
            del self.plain.requests[name]

    def remove_many(self, rng: np.random.Generator) -> None:
        if self.plain.requests:
            names = list(dict.fromkeys(self.pick(rng, self.plain.requests) for _ in range(3)))
            self.model.remove_requests(names)
            for name in names:
                del self.plain.requests[name]

    def cost(self, rng: np.random.Generator) -> None:
        if self.plain.requests:
            name = self.pick(rng, self.plain.requests)
            note = self.plain.requests[name]
            cost = rng.normal(0.5, 1.0, len(note["cost"]))
            note |= {"cost": cost, "scale": 1.0, "offset": 0.0, "exceptions": {}}
            self.model.update_cost(name, cost)

    def cost_many(self, rng: np.random.Generator) -> None:
        """The rows of a matrix as costs of some requests of the same size."""
        if not self.plain.requests:
            return
        n = len(self.plain.requests[self.pick(rng, self.plain.requests)]["cost"])
        names = [name for name, note in self.plain.requests.items() if len(note["cost"]) == n and rng.random() < 0.7]
        costs = rng.normal(0.5, 1.0, (len(names), n))
        self.model.update_costs(names, costs)
        for name, cost in zip(names, costs, strict=True):
            self.plain.requests[name] |= {"cost": cost, "scale": 1.0, "offset": 0.0, "exceptions": {}}

    def column_cost(self, rng: np.random.Generator) -> None:
        if self.plain.requests:
            name = self.pick(rng, self.plain.requests)
            note = self.plain.requests[name]
            column, cost = int(rng.integers(len(note["cost"]))), float(rng.normal())
            note["exceptions"] = note["exceptions"] | {column: cost}
            self.model.update_column_cost(name, column, cost)

    def rescale(self, rng: np.random.Generator) -> None:
        if self.plain.requests:
            name = self.pick(rng, self.plain.requests)
            note = self.plain.requests[name]
            own = {int(j): float(rng.normal()) for j in range(len(note["cost"])) if rng.random() < 0.2}
            note |= {"scale": float(rng.uniform(-0.5, 2.0)), "offset": float(rng.normal() * 0.1), "exceptions": own}
            self.model.rescale_cost(name, note["scale"], note["offset"], own)

    def rescale_many(self, rng: np.random.Generator) -> None:
        names = [name for name in self.plain.requests if rng.random() < 0.5]
        scale = rng.uniform(0.5, 1.5, len(names))
        columns = [int(rng.integers(-1, len(self.plain.requests[name]["cost"]))) for name in names]
        costs = rng.normal(size=len(names))
        self.model.rescale_costs(names, scale, 0.1, columns, costs)
        for name, factor, column, cost in zip(names, scale, columns, costs, strict=True):
            own = {} if column < 0 else {column: float(cost)}
            self.plain.requests[name] |= {"scale": float(factor), "offset": 0.1, "exceptions": own}

    def use(self, rng: np.random.Generator) -> None:
        """Other usage coefficients of one request: its own, or a template's."""
        if not self.plain.requests:
            return
        name = self.pick(rng, self.plain.requests)
        note = self.plain.requests[name]
        n = len(note["cost"])
        fitting = [number for number in self.made if self.plain.sizes[number] == n]
        if fitting and rng.random() < 0.4:
            note["template"], note["usage"] = self.pick(rng, fitting), None
            self.model.update_usage(name, template=self.made[note["template"]])
        else:
            note["template"], note["usage"] = None, self.usage(rng, n)
            matrix, names = as_sparse(note["usage"], n)
            self.model.update_usage(name, matrix, resources=names)

    def columns(self, rng: np.random.Generator) -> None:
        """Other columns of some requests, more or fewer; some of them continue old ones."""
        names = [name for name, note in self.plain.requests.items() if note["fixed"] is None and rng.random() < 0.3]
        if names:
            self.change_columns(rng, names, {})

    def change_columns(self, rng: np.random.Generator, names: list[Hashable], more: dict[str, Any]) -> None:
        """Give requests other columns of a simple kind, with `more` arguments of the edit."""
        sizes = rng.integers(1, 7, len(names)).tolist()
        end = np.cumsum(sizes)
        usages, costs = [self.usage(rng, n) for n in sizes], rng.normal(0.5, 1.0, int(end[-1]))
        each = list(zip(names, usages, sizes, strict=True))
        whole = {k: np.concatenate([own.get(k, np.zeros(n)) for _, own, n in each]) for k in self.plain.resources}
        matrix, resources = as_sparse(whole, int(end[-1]))
        kept = np.concatenate([continued(rng, len(self.plain.requests[name]["cost"]), n) for name, _, n in each])
        self.model.update_columns(names, sizes, costs, matrix, resources=resources, kept=kept, **more)
        for name, usage, cost in zip(names, usages, np.split(costs, end[:-1]), strict=True):
            self.plain.requests[name] |= {
                "cost": cost, "scale": 1.0, "offset": 0.0, "limit": 1.0, "lower": 0.0, "upper": np.inf,
                "exceptions": {}, "template": None, "usage": usage,
            }  # fmt: skip

    def limit(self, rng: np.random.Generator) -> None:
        if self.plain.requests:
            name = self.pick(rng, self.plain.requests)
            note = self.plain.requests[name]
            if note["fixed"] is None:
                least = max(float(np.broadcast_to(note["lower"], len(note["cost"])).sum()), 0.0)
                most = np.inf if np.isfinite(note["upper"]).all() else least + 2.0  # so that there is an optimum
                note["limit"] = float(rng.choice([least + 0.5, least + 1.0, most]))
                self.model.update_limit(name, note["limit"])

    def bounds(self, rng: np.random.Generator) -> None:
        if self.plain.requests:
            name = self.pick(rng, self.plain.requests)
            note = self.plain.requests[name]
            if note["fixed"] is None:
                n = len(note["cost"])
                note["upper"] = np.broadcast_to(note["lower"], n) + rng.choice([0.0, 0.5, 1.0], n)
                if rng.random() < 0.5:
                    note["lower"], note["upper"] = 0.0, 1.5
                self.model.update_bounds(name, note["lower"], note["upper"])

    def integrality(self, rng: np.random.Generator) -> None:
        if self.plain.requests:
            name = self.pick(rng, self.plain.requests)
            self.plain.requests[name]["integer"] = bool(rng.random() < 0.5)
            self.model.update_integrality(name, self.plain.requests[name]["integer"])

    def fix(self, rng: np.random.Generator) -> None:
        if self.plain.requests:
            name = self.pick(rng, self.plain.requests)
            note = self.plain.requests[name]
            if not self.model.ledger.matrix.is_resident(self.model.ledger.slot_of[name]):
                note["fixed"] = int(rng.integers(len(note["cost"])))
                self.model.fix(name, note["fixed"])

    def unfix(self, rng: np.random.Generator) -> None:
        held = [name for name, note in self.plain.requests.items() if note["fixed"] is not None]
        if held:
            name = self.pick(rng, held)
            self.model.unfix(name)
            self.plain.requests[name]["fixed"] = None

    def together(self, rng: np.random.Generator) -> None:
        """A few edits as one batch."""
        with self.model.batch():
            for _ in range(int(rng.integers(2, 6))):
                self.pick(rng, self.single)(self, rng)

    def step(self, rng: np.random.Generator) -> None:
        """One edit of a kind drawn at random, or one batch."""
        self.pick(rng, self.edits)(self, rng)

    @property
    def single(self) -> tuple[Edit, ...]:
        """What it does, but for batches."""
        return SINGLE

    @property
    def edits(self) -> tuple[Edit, ...]:
        """What it does."""
        return EDITS


Edit = Callable[[Player, np.random.Generator], None]
SINGLE: tuple[Edit, ...] = (
    Player.more, Player.fewer, Player.drop, Player.declare, Player.redeclare, Player.undeclare, Player.add, Player.add,
    Player.add, Player.add_many, Player.remove, Player.remove_many, Player.cost, Player.column_cost, Player.rescale,
    Player.rescale_many, Player.cost_many, Player.use, Player.columns, Player.limit, Player.bounds,
    Player.integrality, Player.fix, Player.unfix, Player.unfix,
)  # fmt: skip
EDITS: tuple[Edit, ...] = (*SINGLE, Player.together, Player.together)


def bits(model: Model) -> tuple[Any, ...]:
    """The program that a model stands for, to the last bit, with its ids and version."""
    lp = model.to_linear_program()
    arrays = (lp.c, lp.A.indptr, lp.A.indices, lp.A.data, lp.row_lower, lp.row_upper, lp.col_lower, lp.col_upper)
    fixed = tuple(model.fixed(request) for request in model.requests)
    kept = tuple(array.tobytes() for array in (*arrays, lp.integrality))
    return (*kept, lp.shape, lp.sense, lp.offset, model.requests, model.resources, fixed)


def innards(model: Model) -> tuple[Any, ...]:
    """All that a model is, beyond the program: slots, generations, lists of free ones, templates, users."""
    require_consistent(model.ledger)
    matrix = model.ledger.matrix
    rows = matrix.n_rows
    live = sorted(model.ledger.row_of.values())
    ages = (matrix.generation[: matrix.n_slots], matrix.row_generation[:rows], matrix.row_serial[live])
    return (
        bits(model), model.version, dict(model.ledger.slot_of), dict(model.ledger.row_of), dict(model.ledger.added_at),
        tuple(age.tobytes() for age in ages), matrix.row_scale[live].tobytes(), matrix.n_slots, matrix.n_columns,
        list(matrix.free_slots), list(matrix.free_rows), sorted(matrix.fixed_slots), matrix.next_serial,
        matrix.next_row, [(t.serial, t.shared, t.users, private_bits(t)) for t in matrix.templates],
        [sorted(t.serial for t in users) for users in matrix.lists()],
    )  # fmt: skip


def private_bits(template: Template) -> tuple[bytes, ...]:
    """A template's private rows, to the last bit."""
    return tuple(part.tobytes() for part in template.private or ())


def played(seed: int, steps: int, kind: type[Player] | None = None) -> Player:
    """A model after so many steps of a seed."""
    player, rng = (kind or Player)(), np.random.default_rng(seed)
    for _ in range(steps):
        player.step(rng)
    return player


def small() -> Model:
    """Two resources, a template with two users, one request of its own."""
    model = Model()
    model.add_resources("a", 8)
    model.add_resources("b", 4)
    template = model.add_template({"a": [1, 2, 0], "b": [0, 0, 1]})
    model.add_requests(["p", "q"], [[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]], template=template)
    model.add_request("own", [1.0, 2.0], {"a": [1, 3]})
    return model
