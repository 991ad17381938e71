"""Workloads of the ablation that are made here: programs and models for which one of the solver's tools was written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from copter import LinearProgram, Model

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.adversary.structures import FIGURES, Tinker, structured
from tests.copter.random_programs import random_program

Edits = Iterator[Callable[[], object]]
Edited = Callable[[], tuple[Model, Edits]]
Made = tuple[list[LinearProgram], list[Edited]]
SEEDS = (46, 47, 131, 194, 200, 305, 375, 463)  # of programs with figures from 1e-9 to 1e12 that need every tool
SIZES_APART = (20, 32)
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


def shapes(_: int) -> Made:
    """Programs that are long, or dense, in one direction."""
    return [with_dense_columns(), covering()], []


def figures(_: int) -> Made:
    """Programs with figures of all sizes."""
    apart = [random_program("sizes_apart", seed, most=15) for seed in SIZES_APART]
    return [*(structured(seed, 15)[2] for seed in SEEDS), *apart], []


def few_columns(seed: int) -> tuple[Model, Edits]:
    """A model of some hundred columns, solved once."""
    rng, model = np.random.default_rng(seed), Model()
    requests, columns, rows = int(rng.integers(80, 200)), int(rng.integers(3, 8)), int(rng.integers(4, 20))
    for row in range(rows):
        model.add_resources(row, requests * columns / rows * 0.2 + 1.0)
    for request in range(requests):
        row = rng.integers(0, rows, columns)
        usage = {int(r): np.where(row == r, rng.integers(1, 4, columns), 0.0) for r in np.unique(row)}
        model.add_request(request, rng.uniform(1.0, 5.0, columns), usage)
    return model, iter([lambda: None])


def tinkered(seed: int) -> tuple[Model, Edits]:
    """A small model under edits of every kind, among them those that make it infeasible or unbounded."""
    rng = np.random.default_rng(seed)
    tinker = Tinker(rng, str(rng.choice(list(FIGURES))), int(rng.integers(1, 5)))

    def edit() -> Any:
        return [tinker.step() for _ in range(EDITS)]

    return tinker.model, iter([edit] * ROUNDS)


MADE: dict[str, Callable[[int], Made]] = {
    "made": shapes,
    "figures": figures,
    "few-columns": lambda count: ([], [partial(few_columns, seed) for seed in range(count)]),
    "edits": lambda count: ([], [partial(tinkered, seed) for seed in range(1, count)]),
}
