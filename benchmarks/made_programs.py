"""Workloads of the ablation that are made here: programs and models for which one of the solver's tools was written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter import LinearProgram, Model, PrivateRows

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.adversary.structures import FIGURES, Tinker, structured
from tests.copter.random_programs import random_program

Edits = Iterator[Callable[[], object]]
Edited = Callable[[], tuple[Model, Edits]]
Made = tuple[list[LinearProgram], list[Edited]]
SEEDS = (46, 47, 131, 194, 200, 305, 375, 463)  # of programs with figures from 1e-9 to 1e12 that need every tool
SIZES_APART = (20, 32)
CHAIN = 505  # grows by a tenth a period
EDITS = 13  # of a model between two rounds, a few of which are refused
ROUNDS = 8


def with_dense_columns(rows: int = 3000, dense: int = 2) -> LinearProgram:
    """Short equations in as many columns, and a few columns that are in every equation."""
    rng = np.random.default_rng(0)
    band = sp.diags_array([np.full(rows, 2.0), np.ones(rows - 1)], offsets=[0, -1])  # type: ignore[list-item]
    a = sp.csc_array(sp.hstack((band, sp.csc_array(rng.uniform(0.5, 1.5, (rows, dense))))))
    x = rng.random(rows + dense)
    return LinearProgram(rng.random(rows + dense), a, a @ x, a @ x, col_upper=10.0)


def covering(rows: int = 1500, columns: int = 100) -> LinearProgram:
    """Many inequalities in few columns."""
    rng = np.random.default_rng(0)
    a = (rng.random((rows, columns)) < 0.05).astype(float)
    a[np.arange(rows), rng.integers(0, columns, rows)] = 1.0
    return LinearProgram(rng.uniform(1.0, 2.0, columns), sp.csc_array(a), np.ones(rows))


def mostly_fixed(rows: int = 3000, columns: int = 6000, reports: int = 300) -> LinearProgram:
    """A program of which a search has fixed nineteen of twenty columns, with rows without bounds that only report."""
    rng = np.random.default_rng(0)

    def entries(rows: int, density: float) -> sp.csc_array:
        values = rng.integers(1, 5, int(rows * columns * density)).astype(float)
        place = rng.integers(0, rows, len(values)), rng.integers(0, columns, len(values))
        return sp.csc_array(sp.coo_array((values, place), shape=(rows, columns)))

    a, x = entries(rows, 4.0 / rows), rng.random(columns)
    fixed = rng.random(columns) < 0.95
    x[fixed] = rng.integers(0, 2, np.count_nonzero(fixed))
    upper = np.concatenate((a @ x + rng.random(rows), np.full(reports, np.inf)))
    return LinearProgram(
        rng.uniform(-1.0, 1.0, columns), sp.csc_array(sp.vstack((a, entries(reports, 0.3)))), row_upper=upper,
        col_lower=np.where(fixed, x, 0.0), col_upper=np.where(fixed, x, 2.0),
    )  # fmt: skip


def unlocked(rows: int = 1000, columns: int = 2000) -> LinearProgram:
    """A program with columns that no row keeps from the bound that their cost prefers."""
    lp = mostly_fixed(rows, columns, reports=0)
    return LinearProgram(lp.c, lp.A, lp.row_lower, lp.row_upper, col_upper=2.0)


def shapes(_: int) -> Made:
    """Programs that are long, or dense, in one direction."""
    return [with_dense_columns(), covering()], []


def figures(_: int) -> Made:
    """Programs with figures of all sizes."""
    apart = [random_program("sizes_apart", seed, most=15) for seed in SIZES_APART]
    return [*(structured(seed, 15)[2] for seed in SEEDS), *apart, random_program("chain", CHAIN, most=20)], []


def few_columns(seed: int) -> tuple[Model, Edits]:
    """A model of some hundred columns, solved once."""
    rng, model = np.random.default_rng(seed), Model()
    requests, columns, rows = int(rng.integers(80, 200)), int(rng.integers(3, 8)), int(rng.integers(4, 20))
    for row in range(rows):
        model.add_resource(row, requests * columns / rows * 0.2 + 1.0)
    for request in range(requests):
        model.add_request(request, rng.uniform(1.0, 5.0, columns), usage_of(rng, rows, columns))
    return model, iter([lambda: None])


def moving_bounds(seed: int) -> tuple[Model, Edits]:
    """A model of many columns in which one resource of many, and nothing else, changes between two rounds."""
    rng, model = np.random.default_rng(seed), Model()
    requests, columns, rows, private = ((60, 600, 4, 8), (600, 80, 100, 0))[seed % 2]
    for row in range(rows):
        model.add_resource(row, 1.5 * requests / rows)
    for request in range(requests):
        usage, own = usage_of(rng, rows, columns), own_rows(rng, private, columns)
        model.add_request(request, rng.uniform(1.0, 5.0, columns), usage, private_rows=own)

    def edit(number: int) -> None:
        change = model.add_resource if number % 2 else model.remove_units
        change(int(rng.integers(rows)), 0.3)

    return model, (partial(edit, number) for number in range(12))


def requests_a_row(seed: int) -> tuple[Model, Edits]:
    """A model of two to four requests a row, of which a fiftieth leaves between two rounds for new ones."""
    rng, model = np.random.default_rng(seed), Model()
    sizes = ((300, 10, 100, 0), (200, 16, 100, 0), (400, 10, 110, 0), (200, 8, 60, 2))
    requests, columns, rows, private = sizes[seed % len(sizes)]
    for row in range(rows):
        model.add_resource(row, 1.2 * requests / rows)

    def add(request: int) -> None:
        own = own_rows(rng, private, columns)
        model.add_request(request, rng.uniform(1.0, 5.0, columns), usage_of(rng, rows, columns), private_rows=own)

    return model, replaced(model, add, requests)


def limits_a_row(seed: int) -> tuple[Model, Edits]:
    """A model of few requests a row, each with a limit on several columns; a fiftieth is replaced each round."""
    rng, model = np.random.default_rng(seed), Model(sense="max")
    rows, requests, columns = ((200, 80, 10), (400, 150, 10))[seed % 2]
    for row in range(rows):
        model.add_resource(row, 1.8 * requests / rows + 1.0)

    def add(request: int) -> None:
        row, amount = rng.integers(0, rows, (columns, 2)), rng.uniform(1.0, 2.0, (columns, 2))
        usage = {int(each): np.where(row == each, amount, 0.0).max(axis=1) for each in np.unique(row)}
        model.add_request(request, rng.uniform(1.0, 5.0, columns), usage)

    return model, replaced(model, add, requests)


def replaced(model: Model, add: Callable[[int], None], requests: int) -> Edits:
    """Add so many requests; return edits of which each replaces a fiftieth of them."""
    for request in range(requests):
        add(request)

    def edit(number: int) -> None:
        for request in range(number * requests // 50, (number + 1) * requests // 50):
            model.remove_request(request)
            add(requests + request)

    return (partial(edit, number) for number in range(12))


def usage_of(rng: np.random.Generator, rows: int, columns: int) -> dict[Hashable, NDArray[np.float64]]:
    """A request whose every column uses one to three units of one row."""
    row, amount = rng.integers(0, rows, columns), rng.integers(1, 4, columns)
    return {int(each): np.where(row == each, amount, 0.0) for each in np.unique(row)}


def own_rows(rng: np.random.Generator, rows: int, columns: int) -> PrivateRows | None:
    """Private rows over a third of the columns each."""
    return PrivateRows((rng.random((rows, columns)) < 0.3).astype(float), upper=2.0) if rows else None


def tinkered(seed: int) -> tuple[Model, Edits]:
    """A small model under edits of every kind, among them those that make it infeasible or unbounded."""
    rng = np.random.default_rng(seed)
    tinker = Tinker(rng, str(rng.choice(list(FIGURES))), int(rng.integers(1, 5)))

    def edit() -> Any:
        return [tinker.step() for _ in range(EDITS)]

    return tinker.model, iter([edit] * ROUNDS)


MADE: dict[str, Callable[[int], Made]] = {
    "made": shapes,
    "fixed": lambda _: ([mostly_fixed()], []),
    "unlocked": lambda _: ([unlocked()], []),
    "figures": figures,
    "few-columns": lambda count: ([], [partial(few_columns, seed) for seed in range(count)]),
    "moving-bounds": lambda count: ([], [partial(moving_bounds, seed) for seed in range(count)]),
    "requests-a-row": lambda count: ([], [partial(requests_a_row, seed) for seed in range(count)]),
    "limits-a-row": lambda count: ([], [partial(limits_a_row, seed) for seed in range(count)]),
    "edits": lambda count: ([], [partial(tinkered, seed) for seed in range(1, count)]),
}
