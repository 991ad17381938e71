"""Tiny models of which every plan is known, edited over rounds: no bound beats the best plan, and none is missed."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np

from copter import Model, PrivateRows, Session
from copter.shims.checked import require_feasible

ROUNDS = 3
MOST_PLANS = 30_000
GENEROUS_S = 20.0  # far more than a tiny model needs
TINY_S = 1e-3
AGREES = 1e-6  # relative: HiGHS's tolerance, by which its bound may be above the optimum

INF = np.inf


def request_of(rng: np.random.Generator, name: int, model: Model) -> None:
    """Add a request of one of several kinds: counts with own rows, a set-up with a quantity, one option."""
    kind = rng.choice(["counts", "set-up", "option", "partition"])
    n = int(rng.integers(1, 4))
    cost = rng.integers(-6, 13, n).astype(float)
    usage = {k: rng.integers(0, 4, n).astype(float) for k in range(2)}
    if kind == "counts":
        rows = [rng.integers(-2, 4, n) for _ in range(int(rng.integers(0, 3)))]
        lower = [float(rng.integers(-2, 3)) for _ in rows]
        upper = [low + float(rng.choice([0.0, 1.0, 4.0, INF])) for low in lower]
        model.add_request(
            name, cost, usage, limit=float(rng.choice([2.0, 3.0, INF])), upper=rng.integers(1, 4, n).astype(float),
            integer=True, private_rows=PrivateRows(rows, lower, upper) if rows else None,
        )  # fmt: skip
    elif kind == "set-up":  # a dear set-up opens a cheap quantity: the LP is far from any plan
        most = float(rng.integers(2, 5))
        need = float(rng.integers(1, int(most) + 1))
        model.add_request(
            name, [float(rng.integers(1, 4)), float(rng.integers(20, 60)), 9.0 + float(rng.integers(0, 9))],
            {0: [1.0, 1.0, 0.0], 1: [float(rng.integers(0, 2)), 0.0, 0.0]}, limit=INF, upper=[most, 1.0, need],
            integer=True, private_rows=PrivateRows([[1.0, -most, 0.0], [1.0, 0.0, 1.0]], [-INF, need], [0.0, INF]),
        )  # fmt: skip
    elif kind == "option":
        model.add_request(name, cost, usage, integer=True)
    else:
        model.add_request(name, cost, usage, at_least=1.0, integer=True)


def best_of(model: Model) -> tuple[float | None, int]:
    """Return the best objective of all plans, None without a plan; and how many points there are, 0 for too many."""
    lp = model.to_linear_program()
    low, high = np.ceil(lp.col_lower).astype(int), np.floor(lp.col_upper)
    if not np.isfinite(high).all():
        return None, 0
    sizes = (high - low + 1).astype(float)
    if (sizes <= 0).any() or sizes.prod() > MOST_PLANS:
        return None, int((sizes <= 0).any())
    points = np.array(list(product(*(range(a, int(b) + 1) for a, b in zip(low, high, strict=True)))), dtype=float)
    points = points.reshape(int(sizes.prod()), lp.shape[1])
    sums = points @ lp.A.T.toarray()  # small whole numbers: exact
    holds = ((sums >= lp.row_lower) & (sums <= lp.row_upper)).all(axis=1)
    if not holds.any():
        return None, len(points)
    values = points[holds] @ lp.c + lp.offset
    return float(values.min() if lp.sense == "min" else values.max()), len(points)


def edit(rng: np.random.Generator, model: Model, fresh: int) -> None:
    """Change costs, counts or bounds, and replace a request now and then."""
    name = model.requests[int(rng.integers(len(model.requests)))]
    kind = rng.choice(["cost", "count", "least", "replace", "bounds"])
    if kind == "cost":
        model.update_cost(name, rng.integers(-6, 13, len(model.cost(name))).astype(float))
    elif kind in ("count", "least"):
        at, count = int(rng.integers(2)), float(rng.integers(0, 9))
        model.set_count(at, count, lower=-INF if kind == "count" else float(rng.integers(0, int(count) + 1)))
    elif kind == "replace":
        model.remove_request(name)
        request_of(rng, fresh, model)
    elif model.limit(name) != 1.0:
        model.update_bounds(name, upper=rng.integers(1, 4, len(model.cost(name))).astype(float))


def trial(seed: int, folder: Path) -> str | None:
    """A session of a few rounds, each compared with all plans of its model."""
    rng = np.random.default_rng(seed)
    model = Model(sense=str(rng.choice(["min", "max"])), offset=float(rng.integers(-3, 4)))  # type: ignore[arg-type]
    for k in range(2):
        count = float(rng.integers(0, 9))
        model.set_count(k, count, lower=float(rng.choice([-INF, -INF, 0.0, count, rng.integers(0, int(count) + 1)])))
    for name in range(int(rng.integers(1, 4))):
        request_of(rng, name, model)
    session = Session(model)
    for at in range(ROUNDS):
        best, points = best_of(model)
        if points:
            deadline_s = GENEROUS_S if rng.random() < 0.9 else TINY_S
            fault = fault_of(model, session, best, deadline_s, str(rng.choice(["rounding", "rounding", "exact"])))
            if fault is not None:
                return f"round {at}: {fault}"
        for turn in range(int(rng.integers(1, 4))):
            edit(rng, model, 100 * (at + 1) + turn)
    return None


def fault_of(model: Model, session: Session, best: float | None, deadline_s: float, shim: str) -> str | None:
    """Return what is wrong with the plan of a round, None if nothing is."""
    plan = session.solve_integer(shim, deadline_s=deadline_s, gap=1e-9)  # type: ignore[arg-type]
    status = plan.status.value
    sign = 1.0 if model.sense == "min" else -1.0
    if best is None:
        if plan.is_feasible:
            return f"a plan of {plan.objective:.12g} where there is none"
        return None if status != "none_found" or deadline_s == TINY_S else "no proof that there is no plan"
    room = AGREES * (1.0 + abs(best))
    if sign * (plan.bound - best) > (0.0 if plan.bound_is_certified else room):
        return f"a false bound {plan.bound:.17g} by {plan.bound_by}, the best plan has {best:.12g}"
    if plan.is_feasible:
        require_feasible(model, plan)
        if sign * (best - plan.objective) > 1e-9 * (1.0 + abs(best)):
            return f"a plan of {plan.objective:.12g} beats the best, {best:.12g}"
        if status == "optimal" and abs(plan.objective - best) > room:
            return f"{plan.objective:.12g} is called optimal, {best:.12g} is"
    elif status in ("primal_infeasible", "dual_infeasible"):
        return f"{status}, and there is a plan of {best:.12g}"
    if deadline_s == GENEROUS_S and not (plan.is_feasible and abs(plan.objective - best) <= room):
        return f"{status} {plan.objective:.12g} in {deadline_s:g} s, the best plan has {best:.12g}: {plan.why}"
    return None
