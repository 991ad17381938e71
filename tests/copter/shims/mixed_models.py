"""Models with whole and continuous requests side by side, and their drafts as points of the linear program."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from copter import Model
from copter.problem.linear_program import LinearProgram
from copter.shims import IDLE
from copter.shims.draft import Draft

SEEDS = range(6)
COLUMNS, ROWS, WHOLE, ALL = 3, 3, 6, 10
Floats = np.ndarray


def mixed(seed: int) -> Model:
    """Six integer requests, one of them fixed, and four continuous ones, some with least shares, on three resources."""
    rng = np.random.default_rng(seed)
    model = Model("max")
    for row in range(ROWS):
        model.add_resources(row, int(rng.integers(9, 14)))
    for request in range(ALL):
        usage = {row: rng.integers(0, 5, COLUMNS).astype(float) for row in range(ROWS)}
        costs = rng.uniform(0.5, 5.0, COLUMNS)
        if request < WHOLE:
            model.add_request(request, costs, usage, integer=True)
        else:
            lower = np.where(rng.random(COLUMNS) < 0.4, 0.1, 0.0)
            model.add_request(request, costs, usage, limit=1.5, lower=lower, upper=1.1)
    model.fix(0, 1)
    return model


def every_column(model: Model) -> tuple[Floats, Floats]:
    """(slots, columns) of all requests in order."""
    slots = np.repeat([model.ledger.slot(request) for request in model.requests], COLUMNS).astype(np.int32)
    return slots, np.tile(np.arange(COLUMNS, dtype=np.int32), len(model.requests))


def drawn(model: Model, x: Floats | None = None) -> Draft:
    """A draft that knows every column, with these values of an LP."""
    slots, columns = every_column(model)
    return Draft(model, slots, columns, np.zeros(len(slots)) if x is None else x)


def point(model: Model, draft: Draft) -> Floats:
    """The draft as a point of the model's linear program."""
    assert draft.shares is not None
    x = np.zeros(COLUMNS * len(model.requests))
    at = {model.ledger.slot(request): COLUMNS * place for place, request in enumerate(model.requests)}
    for slot, column in enumerate(draft.column.tolist()):
        if column != IDLE:
            x[at[slot] + column] = 1.0
    for key, value in zip(draft.shares.key.tolist(), draft.share.tolist(), strict=True):
        x[at[key >> 32] + (key & 0xFFFFFFFF)] = value
    return x


def require_right(model: Model, draft: Draft) -> Floats:
    """The draft's value and what it leaves of every row are those of its point, which is returned."""
    lp, x = model.to_linear_program(), point(model, draft)
    assert draft.value() == pytest.approx(-float(lp.c @ x))
    np.testing.assert_allclose(draft.left, lp.row_upper[:ROWS] - lp.A[:ROWS] @ x, atol=1e-9)
    return x


def best_point(lp: LinearProgram, x: Floats | None = None, fixed: Floats | None = None) -> float:
    """The largest value of a maximised program, with some columns fixed."""
    low, high = lp.col_lower.copy(), lp.col_upper.copy()
    if x is not None and fixed is not None:
        low[fixed], high[fixed] = x[fixed], x[fixed]
    found = linprog(-lp.c, lp.A, lp.row_upper, bounds=np.column_stack((low, high)))
    return -float(found.fun)
