"""Random edits of models whose requests have private rows and least sums, whose resources have two bounds."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter import Model, PrivateRows
from tests.copter.plain import EDITS, SINGLE, Edit, Plain, Player, as_sparse, continued

Floats = NDArray[np.float64]
Rows = tuple[Floats, Floats, Floats]  # matrix, lower, upper


class BlockPlain(Plain):
    """What the edits so far ask for, private rows and lower bounds too."""

    def __init__(self) -> None:
        super().__init__()
        self.lower: dict[Hashable, float] = {}  # of resources
        self.shared_rows: dict[int, Rows] = {}  # of templates

    def rows_of(self, request: Hashable) -> Rows | None:
        """Private rows of a request."""
        note = self.requests[request]
        if note["bounds"] is None:
            return None
        number = note["template"]
        matrix = note["matrix"] if number is None else self.shared_rows[number][0]
        return (matrix, *note["bounds"])

    def build(self) -> Model:
        """A model made afresh."""
        model = Model(offset=0.25)
        for resource, count in self.resources.items():
            model.set_count(resource, count, self.lower.get(resource))
        for request, note in self.requests.items():
            usage, names = as_sparse(self.usage_of(request), len(note["cost"]))
            rows = self.rows_of(request)
            model.add_request(
                request, note["cost"], usage, resources=names, limit=note["limit"], lower=note["lower"],
                at_least=note["least"], upper=note["upper"], integer=note["integer"], scale=note["scale"],
                offset=note["offset"], private_rows=None if rows is None else PrivateRows(*rows),
            )  # fmt: skip
            if note["exceptions"]:
                model.update_column_cost(request, list(note["exceptions"]), list(note["exceptions"].values()))
            if note["fixed"] is not None:
                model.fix(request, note["fixed"])
        return model


class BlockPlayer(Player):
    """Does the edits of :class:`Player`, and those of what requests have of their own."""

    plain: BlockPlain

    def nothing(self) -> Plain:
        return BlockPlain()

    @property
    def single(self) -> tuple[Edit, ...]:
        return OWN

    @property
    def edits(self) -> tuple[Edit, ...]:
        return (*OWN, *EDITS[len(SINGLE) :])

    # Drawing --------------------------------------------------------------------------------------------------------

    def matrix(self, rng: np.random.Generator, rows: int, n: int) -> Floats:
        """Coefficients of private rows; empty rows and rows that depend on each other among them."""
        matrix = np.where(rng.random((rows, n)) < 0.6, rng.integers(-2, 4, (rows, n)), 0).astype(float)
        if rows > 1 and rng.random() < 0.2:
            matrix[-1] = 2.0 * matrix[0]
        return matrix

    def between(self, rng: np.random.Generator, matrix: Floats) -> tuple[Floats, Floats]:
        """Bounds of private rows that a small point is within, most times; ranges, equations and free rows."""
        at = matrix @ np.round(rng.uniform(0.0, 0.2, matrix.shape[1]) * (rng.random() < 0.3), 2)
        kind = rng.integers(5, size=len(at))
        room = np.round(rng.uniform(0.0, 2.0, (2, len(at))), 2)
        lower = np.where((kind == 0) | (kind == 4), -np.inf, np.where(kind == 1, at, at - room[0]))
        upper = np.where((kind == 2) | (kind == 4), np.inf, np.where(kind == 1, at, at + room[1]))
        return lower, upper

    def rows(self, rng: np.random.Generator, n: int) -> Rows:
        """Private rows of n columns, more than these at times."""
        matrix = self.matrix(rng, int(rng.integers(1, 5)), n)
        return (matrix, *self.between(rng, matrix))

    def note(self, rng: np.random.Generator, n: int) -> dict[str, Any]:
        note = super().note(rng, n)
        finite = np.isfinite(note["limit"]) and rng.random() < 0.3
        least = float(np.round(rng.uniform(0.0, 0.5), 2)) if finite else -np.inf
        return note | {"least": least, "bounds": None, "matrix": None}

    def pick_with_rows(self, rng: np.random.Generator) -> list[Hashable]:
        """Some requests with private rows."""
        return [name for name, note in self.plain.requests.items() if note["bounds"] is not None and rng.random() < 0.5]

    # Edits ----------------------------------------------------------------------------------------------------------

    def fewer(self, rng: np.random.Generator) -> None:
        if self.plain.resources:
            name = self.pick(rng, self.plain.resources)
            if self.plain.resources[name] - 5.0 >= self.plain.lower.get(name, -np.inf):
                units = float(rng.integers(0, 5))
                if self.plain.resources[name] - units >= self.model.fixed_usage(name):
                    self.model.remove_resources(name, units)
                    self.plain.resources[name] -= units

    def drop(self, rng: np.random.Generator) -> None:
        super().drop(rng)
        self.plain.lower = {name: low for name, low in self.plain.lower.items() if name in self.plain.resources}

    def counts(self, rng: np.random.Generator) -> None:
        """Other counts of some resources, with lower bounds, equations among them."""
        names = [name for name in self.plain.resources if rng.random() < 0.4]
        if self.model.ledger.matrix.fixed_slots or not names:
            return
        count = rng.integers(4, 40, len(names)).astype(float)
        low = np.where(rng.random(len(names)) < 0.7, -np.inf, np.round(rng.uniform(0.0, 1.0, len(names)), 2))
        low = np.where(rng.random(len(names)) < 0.1, count, low)
        if rng.random() < 0.5:
            self.model.update_counts(names, count, low)
        else:
            with self.model.batch():
                for name, units, least in zip(names, count.tolist(), low.tolist(), strict=True):
                    self.model.set_count(name, units, least)
        self.plain.resources |= dict(zip(names, count.tolist(), strict=True))
        self.plain.lower |= dict(zip(names, low.tolist(), strict=True))

    def declare(self, rng: np.random.Generator) -> None:
        if len(self.made) < 6:
            n = int(rng.integers(1, 7))
            usage, number = self.usage(rng, n), self.next
            rows = self.rows(rng, n) if rng.random() < 0.5 else None
            private = None if rows is None else PrivateRows(*rows)
            self.made[number] = self.model.add_template(*as_sparse(usage, n), private_rows=private)
            self.plain.templates[number], self.plain.sizes[number] = usage, n
            if rows is not None:
                self.plain.shared_rows[number] = rows
            self.next += 1

    def redeclare(self, rng: np.random.Generator) -> None:
        with self.model.batch():  # one step, one record
            self.redeclare_by_parts(rng)

    def redeclare_by_parts(self, rng: np.random.Generator) -> None:
        """Other coefficients of a template in coupling rows, then of one in its private rows."""
        super().redeclare(rng)
        if self.plain.shared_rows.keys() & self.made.keys():
            number = self.pick(rng, sorted(self.plain.shared_rows.keys() & self.made.keys()))
            matrix, *bounds = self.plain.shared_rows[number]
            matrix = self.matrix(rng, *matrix.shape)
            self.model.update_template(self.made[number], private_rows=PrivateRows(matrix, *bounds))
            self.plain.shared_rows[number] = (matrix, bounds[0], bounds[1])

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
            if rng.random() < 0.5:
                note["matrix"], *bounds = self.rows(rng, n)
                note["bounds"] = tuple(bounds)
                source["private_rows"] = PrivateRows(note["matrix"], *bounds)
        else:
            note["template"], source["template"] = number, self.made[number]
            if number in self.plain.shared_rows:
                matrix, *usual = self.plain.shared_rows[number]
                note["bounds"] = tuple(usual)
                if rng.random() < 0.5:
                    note["bounds"] = self.between(rng, matrix)
                    source["row_lower"], source["row_upper"] = note["bounds"]
        keys = ("cost", "limit", "lower", "upper", "integer", "scale", "offset")
        self.model.add_request(name, **{key: note[key] for key in keys}, at_least=note["least"], **source)
        self.plain.requests[name] = note

    def add_many(self, rng: np.random.Generator) -> None:
        names = [name for name in dict.fromkeys(self.name(rng) for _ in range(4)) if name not in self.plain.requests]
        if not self.made or not names:
            return
        number = self.pick(rng, self.made)
        costs = rng.normal(0.5, 1.0, (len(names), self.plain.sizes[number]))
        least = np.where(rng.random(len(names)) < 0.3, 0.25, -np.inf)
        source, bounds = {}, [None] * len(names)
        if number in self.plain.shared_rows:
            each = [self.between(rng, self.plain.shared_rows[number][0]) for _ in names]
            source = {"row_lower": [low for low, _ in each], "row_upper": [high for _, high in each]}
            bounds = each
        self.model.add_requests(names, costs, template=self.made[number], at_least=least, **source)
        for name, cost, low, own in zip(names, costs, least.tolist(), bounds, strict=True):
            self.plain.requests[name] = self.note(rng, 1) | {
                "cost": cost, "scale": 1.0, "offset": 0.0, "limit": 1.0, "lower": 0.0, "upper": np.inf,
                "integer": False, "template": number, "least": low, "bounds": own,
            }  # fmt: skip

    def use(self, rng: np.random.Generator) -> None:
        """Other usage of one request: a pattern of its own with the same private rows, or a template with as many."""
        if not self.plain.requests:
            return
        name = self.pick(rng, self.plain.requests)
        note, rows = self.plain.requests[name], self.plain.rows_of(name)
        n, count = len(note["cost"]), 0 if rows is None else len(rows[0])
        fitting = [
            number
            for number in self.made
            if self.plain.sizes[number] == n
            and (len(self.plain.shared_rows[number][0]) if number in self.plain.shared_rows else 0) == count
        ]
        if fitting and rng.random() < 0.4:
            note["template"], note["usage"], note["matrix"] = self.pick(rng, fitting), None, None
            self.model.update_usage(name, template=self.made[note["template"]])
        else:
            note["template"], note["usage"] = None, self.usage(rng, n)
            note["matrix"] = None if rows is None else rows[0]
            matrix, names = as_sparse(note["usage"], n)
            self.model.update_usage(name, matrix, resources=names)

    def change_columns(self, rng: np.random.Generator, names: list[Hashable], more: dict[str, Any]) -> None:
        if rng.random() < 0.5:
            super().change_columns(rng, names, {"at_least": -np.inf})
            for name in names:
                self.plain.requests[name] |= {"least": -np.inf, "bounds": None, "matrix": None}
            return
        name, n = self.pick(rng, names), int(rng.integers(1, 7))
        note, before = self.plain.requests[name], self.plain.rows_of(name)
        matrix, *bounds = self.rows(rng, n)
        usage, cost, lower = self.usage(rng, n), rng.normal(0.5, 1.0, n), np.round(rng.uniform(-0.2, 0.3, n), 2)
        sparse, resources = as_sparse(usage, n)
        limit = float(rng.choice([np.inf, 0.3 * n + 1.0]))
        self.model.update_columns(
            [name], [n], cost, sparse, resources=resources, limit=limit, lower=lower, upper=lower + 1.0,
            private_rows=PrivateRows(matrix, *bounds), private_sizes=[len(matrix)],
            kept=continued(rng, len(note["cost"]), n),
            kept_rows=continued(rng, 0 if before is None else len(before[0]), len(matrix)),
        )  # fmt: skip
        note |= {
            "cost": cost, "scale": 1.0, "offset": 0.0, "limit": limit, "lower": lower, "upper": lower + 1.0,
            "exceptions": {}, "template": None, "usage": usage, "least": -np.inf, "bounds": tuple(bounds),
            "matrix": matrix,
        }  # fmt: skip

    def coefficients(self, rng: np.random.Generator) -> None:
        """Other coefficients and bounds of one request's private rows."""
        names = self.pick_with_rows(rng)
        if names:
            name = self.pick(rng, names)
            note, rows = self.plain.requests[name], self.plain.rows_of(name)
            assert rows is not None
            matrix = self.matrix(rng, *rows[0].shape)
            bounds = self.between(rng, matrix)
            self.model.update_private_rows(name, PrivateRows(matrix, *bounds))
            usage = self.plain.usage_of(name)
            note |= {"usage": dict(usage), "template": None, "matrix": matrix, "bounds": bounds}

    def row_bounds(self, rng: np.random.Generator) -> None:
        """Other bounds of the private rows of many requests."""
        names = self.pick_with_rows(rng)
        bounds = [self.between(rng, rows[0]) for name in names if (rows := self.plain.rows_of(name)) is not None]
        self.model.update_row_bounds(names, [low for low, _ in bounds], [high for _, high in bounds])
        for name, each in zip(names, bounds, strict=True):
            self.plain.requests[name]["bounds"] = each

    def one_row(self, rng: np.random.Generator) -> None:
        """Another upper bound of the first private row of many requests."""
        names = self.pick_with_rows(rng)
        upper = []
        for name in names:
            low, high = self.plain.requests[name]["bounds"]
            most = max(float(low[0]), 0.0) + float(rng.integers(0, 3))
            upper.append(most)
            self.plain.requests[name]["bounds"] = (low, np.concatenate(([most], high[1:])))
        self.model.update_row_bounds(names, upper=upper, row=0)

    def limits(self, rng: np.random.Generator) -> None:
        """Other limits and least sums of many requests."""
        chosen, limits, least = [], [], []
        for name, note in self.plain.requests.items():
            if note["fixed"] is None and np.isfinite(note["upper"]).all() and rng.random() < 0.5:
                bottom = max(float(np.broadcast_to(note["lower"], len(note["cost"])).sum()), 0.0)
                limits.append(bottom + float(rng.choice([0.5, 1.0, np.inf])))
                least.append(float(rng.choice([-np.inf, 0.0, 0.25])))
                note |= {"limit": limits[-1], "least": least[-1]}
                chosen.append(name)
        self.model.update_limits(chosen, limits, least)

    def limit(self, rng: np.random.Generator) -> None:
        if self.plain.requests:
            name = self.pick(rng, self.plain.requests)
            note = self.plain.requests[name]
            if note["fixed"] is None:
                bottom = max(float(np.broadcast_to(note["lower"], len(note["cost"])).sum()), 0.0, note["least"])
                most = np.inf if np.isfinite(note["upper"]).all() else bottom + 2.0
                note["limit"] = float(rng.choice([bottom + 0.5, bottom + 1.0, most]))
                self.model.update_limit(name, note["limit"])

    def fix(self, rng: np.random.Generator) -> None:
        if self.plain.requests:
            name = self.pick(rng, self.plain.requests)
            note = self.plain.requests[name]
            if self.model.ledger.matrix.is_fixable(self.model.ledger.slot_of[name]):
                note["fixed"] = int(rng.integers(len(note["cost"])))
                self.model.fix(name, note["fixed"])


def own(edit: Edit) -> Edit:
    """The block player's version of an edit."""
    found: Edit = getattr(BlockPlayer, edit.__name__)
    return found


OWN: tuple[Edit, ...] = (
    *(own(edit) for edit in SINGLE), BlockPlayer.counts, BlockPlayer.coefficients, BlockPlayer.row_bounds,
    BlockPlayer.row_bounds, BlockPlayer.one_row, BlockPlayer.limits, BlockPlayer.limits,
)  # type: ignore[assignment]  # fmt: skip
