"""Linear programs and models by structure: figures of all sizes and signs, degenerate, duplicate, parallel, empty."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter import LinearProgram, Model, PrivateRows
from copter.runtime.errors import CopterError

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, "int | tuple[int, int]"], Floats]
INF = np.inf


# Figures --------------------------------------------------------------------------------------------------------------


def small_whole(rng: np.random.Generator, shape: int | tuple[int, int]) -> Floats:
    """Whole numbers from -3 to 5: ties, exact cancellations."""
    return rng.integers(-3, 6, shape).astype(np.float64)


def moderate(rng: np.random.Generator, shape: int | tuple[int, int]) -> Floats:
    """Of the size of one, of both signs."""
    return rng.normal(0.5, 1.5, shape)


def decimals(rng: np.random.Generator, shape: int | tuple[int, int]) -> Floats:
    """Tenths, which no float64 holds."""
    return rng.integers(-20, 40, shape) / 10.0


def apart(rng: np.random.Generator, shape: int | tuple[int, int]) -> Floats:
    """Sizes from 1e-4 to 1e4."""
    return np.asarray(rng.choice([-1.0, 1.0, 1.0], shape) * 10.0 ** rng.uniform(-4, 4, shape))


def huge(rng: np.random.Generator, shape: int | tuple[int, int]) -> Floats:
    """Sizes from 1e-9 to 1e12."""
    return np.asarray(rng.choice([-1.0, 1.0, 1.0], shape) * 10.0 ** rng.uniform(-9, 12, shape))


FIGURES: dict[str, Draw] = {
    "whole": small_whole, "moderate": moderate, "decimal": decimals, "apart": apart, "huge": huge
}  # fmt: skip
MILD = ("whole", "moderate", "decimal")


# Programs -------------------------------------------------------------------------------------------------------------


def sides(rng: np.random.Generator, draw: Draw, at: Floats) -> tuple[Floats, Floats]:
    """Bounds of every kind near some values: none, one, a range, an equation, a range that is empty but for a point."""
    n = len(at)
    kind = rng.integers(0, 6, n)
    away = np.abs(draw(rng, n)) * (rng.random(n) < 0.7)
    lower = np.where(np.isin(kind, (0, 1)), -INF, np.where(kind == 5, at, at - away))
    upper = np.where(np.isin(kind, (0, 2)), INF, np.where(kind == 5, at, at + np.abs(draw(rng, n))))
    return lower, np.maximum(lower, upper)


def plain(rng: np.random.Generator, draw: Draw, m: int, n: int) -> LinearProgram:
    """Bounds around a point, or without regard to any."""
    matrix = draw(rng, (m, n)) * (rng.random((m, n)) < rng.uniform(0.3, 1.0))
    inside = draw(rng, n) * (rng.random(n) < 0.7)
    activity = matrix @ inside if rng.random() < 0.7 else draw(rng, m)
    return LinearProgram(
        draw(rng, n) * (rng.random(n) < 0.8), matrix, *sides(rng, draw, activity), *sides(rng, draw, inside),
        sense=str(rng.choice(["min", "max"])), offset=float(draw(rng, 1)[0]),
    )  # fmt: skip


def boxed(rng: np.random.Generator, draw: Draw, m: int, n: int) -> LinearProgram:
    """Packing: columns from zero to one or more, rows with upper sides."""
    matrix = draw(rng, (m, n)) * (rng.random((m, n)) < 0.6)
    upper = np.where(rng.random(n) < 0.2, INF, np.abs(draw(rng, n)))
    return LinearProgram(draw(rng, n), matrix, -INF, np.abs(draw(rng, m)), 0.0, upper, sense="max")


def degenerate(rng: np.random.Generator, draw: Draw, m: int, n: int) -> LinearProgram:
    """Many rows through one point, many of them with zero sides."""
    lp = plain(rng, draw, m, n)
    right = np.where(rng.random(m) < 0.7, 0.0, np.abs(draw(rng, m)))
    return LinearProgram(lp.c, lp.A, -INF, right, 0.0, np.where(rng.random(n) < 0.5, INF, 1.0), sense=lp.sense)


def duplicate(rng: np.random.Generator, draw: Draw, m: int, n: int) -> LinearProgram:
    """Rows and columns twice, or times a number, some with sides that differ."""
    lp = plain(rng, draw, m, n)
    factor = float(rng.choice([1.0, 1.0, -1.0, 3.0, 0.1]))
    row, column = int(rng.integers(m)), int(rng.integers(n))
    matrix = sp.vstack((lp.A, factor * lp.A.tocsr()[[row]]))
    matrix = sp.hstack((matrix, factor * sp.csc_array(matrix)[:, [column]]))
    low, high = factor * lp.row_lower[row], factor * lp.row_upper[row]
    cost = lp.c[column] * factor * float(rng.choice([1.0, 1.0, 1.1]))
    return LinearProgram(
        np.append(lp.c, cost), matrix, np.append(lp.row_lower, min(low, high)), np.append(lp.row_upper, max(low, high)),
        np.append(lp.col_lower, lp.col_lower[column]), np.append(lp.col_upper, lp.col_upper[column]), sense=lp.sense,
    )  # fmt: skip


def parallel(rng: np.random.Generator, draw: Draw, m: int, n: int) -> LinearProgram:
    """A row again, with a coefficient that differs by 1e-12 to 1e-6 of itself."""
    lp = plain(rng, draw, m, n)
    row = lp.A.tocsr()[[int(rng.integers(m))]]
    row.data = row.data * (1.0 + (rng.random(row.nnz) < 0.5) * 10.0 ** rng.uniform(-12, -6))
    activity = row @ np.clip(np.zeros(n), lp.col_lower, lp.col_upper)
    return LinearProgram(
        lp.c, sp.vstack((lp.A, row)), np.append(lp.row_lower, -INF),
        np.append(lp.row_upper, activity + abs(draw(rng, 1))), lp.col_lower, lp.col_upper, sense=lp.sense,
    )  # fmt: skip


def empty(rng: np.random.Generator, draw: Draw, m: int, n: int) -> LinearProgram:
    """Rows and columns without entries, columns that are fixed, no rows at all."""
    lp = plain(rng, draw, m, n)
    kept = np.outer(rng.random(m) < 0.6, rng.random(n) < 0.7)
    fixed = rng.random(n) < 0.3
    at = np.where(np.isfinite(lp.col_lower), lp.col_lower, 0.0)
    at = np.minimum(at, lp.col_upper)
    rows = 0 if rng.random() < 0.1 else m
    return LinearProgram(
        lp.c, (lp.A.toarray() * kept)[:rows], lp.row_lower[:rows], lp.row_upper[:rows],
        np.where(fixed, at, lp.col_lower), np.where(fixed, at, lp.col_upper), sense=lp.sense,
    )  # fmt: skip


def units(rng: np.random.Generator, draw: Draw, m: int, n: int) -> LinearProgram:
    """A mild program whose rows and columns are counted in units up to ten powers of ten apart."""
    lp = plain(rng, small_whole, m, n)
    row, column = 10.0 ** rng.integers(-5, 6, m), 10.0 ** rng.integers(-5, 6, n)
    return LinearProgram(
        lp.c * column, sp.diags_array(row) @ lp.A @ sp.diags_array(column), lp.row_lower * row, lp.row_upper * row,
        lp.col_lower / column, lp.col_upper / column, sense=lp.sense,
    )  # fmt: skip


STRUCTURES: dict[str, Callable[[np.random.Generator, Draw, int, int], LinearProgram]] = {
    "plain": plain, "boxed": boxed, "degenerate": degenerate, "duplicate": duplicate, "parallel": parallel,
    "empty": empty, "units": units,
}  # fmt: skip


def structured(seed: int, most: int) -> tuple[str, str, LinearProgram]:
    """(structure, figures, program) of up to `most` rows and twice as many columns."""
    rng = np.random.default_rng(seed)
    structure, figures = str(rng.choice(list(STRUCTURES))), str(rng.choice(list(FIGURES)))
    m, n = int(rng.integers(1, most + 1)), int(rng.integers(1, 2 * most + 1))
    return structure, figures, STRUCTURES[structure](rng, FIGURES[figures], m, n)


# Models ---------------------------------------------------------------------------------------------------------------


class Tinker:
    """Random edits of a model, with figures of one kind: every method that edits, every feature of requests.

    Parameters
    ----------
    rng : Generator
    figures : str
        Of `FIGURES`.
    requests : int
        About how many the model has.
    """

    def __init__(self, rng: np.random.Generator, figures: str, requests: int) -> None:
        self.rng, self.draw, self.requests = rng, FIGURES[figures], requests
        self.model = Model(str(rng.choice(["max", "min"])), offset=float(self.draw(rng, 1)[0]))
        self.names = ["a", "b", "c"]
        self.next = self.edits = self.refused = 0
        for name in self.names:
            self.model.add_resources(name, float(np.abs(self.draw(rng, 1))[0]))
        for _ in range(requests):
            with suppress(CopterError):
                self.add()

    def step(self) -> None:
        """One edit; an edit that the model refuses counts as refused."""
        size, rng = len(self.model.requests), self.rng
        kinds = [self.add] * (2 if size < self.requests else 1) + [self.remove] * (2 if size > self.requests else 1)
        kinds += [self.count, self.cost, self.rescale, self.column, self.bounds, self.limit, self.fix, self.use,
                  self.own_rows, self.row_bounds, self.many]  # fmt: skip
        try:
            kinds[int(rng.integers(len(kinds)))]()
            self.edits += 1
        except CopterError:
            self.refused += 1

    def one(self, n: int) -> Floats:
        """n figures."""
        return self.draw(self.rng, n)

    def request(self) -> Hashable:
        """A request of the model; an id that it does not have where there is none."""
        names = list(self.model.requests)
        return names[int(self.rng.integers(len(names)))] if names else "none"

    def size(self, request: Hashable) -> int:
        return len(self.model.cost(request))

    def usage(self, n: int) -> dict[Hashable, Floats]:
        signed = self.rng.random() < 0.3
        return {
            name: (value if signed else np.abs(value)) * (self.rng.random(n) < 0.8)
            for name in self.names
            if self.rng.random() < 0.7
            for value in [self.one(n)]
        }

    def own(self, n: int) -> PrivateRows | None:
        """One or two private rows, rarely."""
        if self.rng.random() < 0.75:
            return None
        k = int(self.rng.integers(1, 3))
        lower, upper = sides(self.rng, self.draw, self.one(k) * (self.rng.random(k) < 0.5))
        return PrivateRows(self.draw(self.rng, (k, n)), lower, upper)

    def boxes(self, n: int) -> dict[str, Any]:
        if self.rng.random() < 0.5:
            return {}
        lower = self.one(n) * (self.rng.random(n) < 0.2)
        return {"lower": lower, "upper": lower + np.where(self.rng.random(n) < 0.3, INF, np.abs(self.one(n)))}

    def sums(self) -> dict[str, float]:
        limit = float(self.rng.choice([1.0, 1.0, INF, abs(self.one(1)[0])]))
        return {"limit": limit, "at_least": limit * 0.5 if self.rng.random() < 0.15 and limit < INF else -INF}

    def add(self) -> None:
        n = int(self.rng.integers(1, 4))
        self.next += 1
        self.model.add_request(
            ("n", self.next), self.one(n), self.usage(n), integer=bool(self.rng.random() < 0.5),
            private_rows=self.own(n), **self.boxes(n), **self.sums(),
        )  # fmt: skip

    def remove(self) -> None:
        self.model.remove_request(self.request())

    def count(self) -> None:
        count = float(np.abs(self.one(1))[0]) if self.rng.random() < 0.9 else float(self.one(1)[0])
        lower = float(self.rng.choice([-INF, -INF, -INF, count, 0.0, 0.5 * count]))
        self.model.set_count(self.names[int(self.rng.integers(3))], count, lower)

    def cost(self) -> None:
        request = self.request()
        self.model.update_cost(request, self.one(self.size(request)))

    def rescale(self) -> None:
        self.model.rescale_cost(self.request(), float(self.one(1)[0]), float(self.one(1)[0]))

    def column(self) -> None:
        request = self.request()
        self.model.update_column_cost(request, int(self.rng.integers(self.size(request))), float(self.one(1)[0]))

    def bounds(self) -> None:
        request = self.request()
        boxes = self.boxes(self.size(request)) or {"lower": 0.0, "upper": INF}
        self.model.update_bounds(request, **boxes)

    def limit(self) -> None:
        self.model.update_limit(self.request(), **self.sums())

    def fix(self) -> None:
        request = self.request()
        if self.model.fixed(request) is None:
            self.model.fix(request, int(self.rng.integers(self.size(request))))
        else:
            self.model.unfix(request)

    def use(self) -> None:
        request = self.request()
        self.model.update_usage(request, self.usage(self.size(request)))

    def own_rows(self) -> None:
        request = self.request()
        rows = self.own(self.size(request))
        if rows is not None:
            self.model.update_private_rows(request, rows)

    def row_bounds(self) -> None:
        self.model.update_row_bounds([self.request()], upper=float(np.abs(self.one(1))[0]), row=0)

    def many(self) -> None:
        """Several edits as one, some of which are taken back with all of them."""
        with self.model.batch():
            for _ in range(int(self.rng.integers(1, 4))):
                self.rescale()
                self.column()
            if self.rng.random() < 0.2:
                self.model.remove_request("there is none")
