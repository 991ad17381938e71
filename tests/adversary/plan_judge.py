"""What every plan must be, in rational arithmetic, and random requests and edits of models."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from math import isnan

import numpy as np
import pytest

from copter import EditNotAllowedError, Model
from copter.shims import IntegerPlan


def judged(model: Model, plan: IntegerPlan) -> None:
    """Check every claim of a plan in rational arithmetic against the model as it stands."""
    if not plan.is_feasible:
        assert isnan(plan.objective)
        assert plan.conflict
        return
    lp = model.to_linear_program()
    values: dict[int, Fraction] = {}
    at = 0
    for request in model.requests:
        shares = plan.shares(request)
        if model.is_integer(request):
            assert sorted(shares.values()) in ([], [1.0])
        values |= {at + j: Fraction(value) for j, value in shares.items()}
        at += len(model.cost(request))
        if (fixed := model.fixed(request)) is not None:
            assert shares.get(fixed, 0.0) == min(model.bounds(request)[1][fixed], model.limit(request))
    use = [Fraction(0)] * lp.shape[0]
    size = [Fraction(0)] * lp.shape[0]
    idle = np.setdiff1d(np.arange(lp.shape[1]), list(values))
    assert (lp.col_lower[idle] <= 0).all()
    assert (lp.col_upper[idle] >= 0).all()
    for j, value in values.items():
        assert lp.col_lower[j] <= value <= lp.col_upper[j]
        for e in range(lp.A.indptr[j], lp.A.indptr[j + 1]):
            use[lp.A.indices[e]] += Fraction(lp.A.data[e]) * value
            size[lp.A.indices[e]] += abs(Fraction(lp.A.data[e]) * value)
    whole = bool((lp.A.data == np.rint(lp.A.data)).all()) and all(value.denominator == 1 for value in values.values())
    for i, used in enumerate(use):
        slack = 0 if whole else (size[i] + abs(Fraction(lp.row_upper[i]))) / 2**52
        assert used <= Fraction(lp.row_upper[i]) + slack
    worth = sum((Fraction(lp.c[j]) * v for j, v in values.items()), Fraction(lp.offset))
    assert float(worth) == pytest.approx(plan.objective, rel=1e-12, abs=1e-12)
    if plan.bound_is_certified:
        better = plan.objective <= plan.bound if model.sense == "max" else plan.objective >= plan.bound
        assert better


def added(model: Model, name: Hashable, rng: np.random.Generator, whole_numbers: bool) -> None:
    """A random request: integer or continuous, with bounds of its own or plain ones."""
    n = int(rng.integers(1, 4))
    units = {k: rng.integers(0, 4, n).astype(float) if whole_numbers else rng.uniform(0, 3, n) for k in range(2)}
    integer = bool(rng.random() < 0.7)
    lower, upper = np.zeros(n), np.ones(n)
    kind = rng.random()
    if kind < 0.2:
        lower[int(rng.integers(n))] = 1.0 if integer else rng.uniform(0, 0.5)
    elif kind < 0.35:
        upper[int(rng.integers(n))] = rng.choice([0.0, 0.5, 0.3, 2.0])
    limit = 1.0 if integer else float(rng.choice([0.5, 1.0, 2.0, np.inf]))
    lower *= 1.0 if lower.sum() <= limit else 0.0
    model.add_request(name, rng.uniform(-1, 3, n), units, limit=limit, lower=lower, upper=upper, integer=integer)


def edited(model: Model, edit: tuple[str, int, int], rng: np.random.Generator, whole_numbers: bool) -> None:
    """One edit, if the model allows it."""
    kind, one, other = edit
    names = model.requests
    request = names[one % len(names)] if names else None
    try:
        if kind == "add":
            added(model, f"new {one} {other}", rng, whole_numbers)
        elif kind == "less":
            model.remove_resources(one % 2, min(1 + other % 4, model.count(one % 2)))
        elif kind == "more":
            model.add_resources(one % 2, other % 4)
        elif request is None:
            return
        elif kind == "cost":
            model.update_cost(request, rng.uniform(-1, 3, len(model.cost(request))))
        elif kind == "fix":
            model.fix(request, other % len(model.cost(request)))
        elif kind == "unfix":
            model.unfix(request)
        elif kind == "remove":
            model.remove_request(request)
        elif kind == "bounds":
            model.update_bounds(request, upper=rng.choice([0.4, 1.0, 1.5], len(model.cost(request))))
        elif model.limit(request) == 1.0:
            model.update_integrality(request, not model.is_integer(request))
    except (EditNotAllowedError, ValueError):
        return
