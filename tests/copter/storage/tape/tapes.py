"""Sessions that leave tapes with all that there can be on one."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

import copter
from copter import Model, PrivateRows, Session, Settings

Floats = NDArray[np.float64]
Sense = Literal["max", "min"]


def every_edit(path: Path, seed: int = 0, rounds: int = 8, sense: Sense = "max", private: bool = True) -> list[float]:
    """Record a session with every operation that the ledger has; the objectives of its rounds.

    Where no request has private rows, every third round makes an integer plan.
    """
    rng = np.random.default_rng(seed)
    model = Model(sense, offset=3.0)
    sign = 1.0 if sense == "max" else -1.0
    for name, count in (("a", 40), ("b", 25), ("c", 9.5), ("spare", 3)):
        model.add_resources(name, count)
    shape = model.add_template({"a": [1, 2, 4, 0], "b": [0, 0, 0, 1]})
    other = model.add_template({"a": [1, 1, 1, 1], "spare": [0, 1, 0, 0]})
    rows = PrivateRows(np.array([[1.0, 2.0, 1.0], [0.5, 0.0, -1.0]]), [-np.inf, -2.0], [2.5, 1.0])
    session = Session(model, Settings(threads=1))

    def costs(n: int) -> Floats:
        drawn: Floats = sign * (rng.random(n) + 0.2)
        return drawn

    for k in range(20):
        model.add_request(("first", k), costs(4), template=shape, integer=True)
    session.solve()
    session.record(path)
    found = []
    for r in range(rounds):
        with model.batch():
            model.remove_request(("first", r))
            model.add_request(("own", r), costs(3), usage={"a": [1, 2, 0.1], "c": [0, 0.3, 1]}, limit=1.5, upper=1.0)
            model.add_requests(
                [("many", r, i) for i in range(3)], np.array([costs(4) for _ in range(3)]), template=other
            )
        if r % 2 and private:
            model.add_request(("rows", r), costs(3), usage={"b": [1, 1, 2]}, private_rows=rows, limit=np.inf, upper=3.0)
            model.update_row_bounds([("rows", r)], [-np.inf, -1.0], [2.0, 0.5])
        model.update_cost(("own", r), costs(3))
        model.update_costs([("first", 18), ("first", 19)], np.array([costs(4), costs(4)]))
        model.rescale_cost(("first", 17), 1.0 + 0.1 * r)
        model.rescale_costs([("first", 15), ("first", 16)], [1.0 + r, 2.0], [0.0, 0.1 * sign])
        model.update_column_cost(("first", 14), 2, sign * (1.0 + r))
        model.update_limit(("own", r), 1.0)
        model.update_limits([("many", r, 0), ("many", r, 1)], [0.5, 2.0])
        model.update_bounds(("own", r), upper=[1.0, 0.5, 2.0])
        model.update_usage(("own", r), {"a": [1, 1, 0.2], "c": [0, 0.25, 1]})
        if r:
            names, usage = [("own", r - 1), ("many", r - 1, 2)], {"a": [1, 2, 3, 1, 1, 2], "c": [0, 0, 1, 0, 0.5, 0]}
            model.update_columns(names, [4, 2], costs(6), usage, kept=[0, 2, -1, -1, 1, 3], upper=0.75)
        if r % 2 and r > 2 and private:
            more = {"private_rows": PrivateRows([[1.0, 2.0]], -np.inf, 1.5), "private_sizes": [1], "kept_rows": [1]}
            model.update_columns([("rows", r - 2)], [2], costs(2), {"b": [1, 2]}, kept=[2, 0], **more)
        if r == 2:
            model.update_template(shape, {"a": [1, 2, 3, 0], "b": [0, 0, 0, 1]})
            model.fix(("first", 13), 1)
        if r == 3:
            model.drop_resource("spare")
            model.add_resources("new", 4)
            session.compact()
        if r == 4:
            model.unfix(("first", 13))
            model.update_integrality(("own", r), True)
            session.reset()
        model.update_counts(["a", "b"], [40.0 + r, 25.0])
        if r % 3 == 1 and not private:
            session.solve_integer()
            assert session.last_solution is not None
            found.append(session.last_solution.objective)
        else:
            found.append(session.solve().objective)
    session.record(None)
    return found


def infeasible(path: Path, private: bool = False) -> None:
    """Record a session whose second round has no point."""
    model = Model()
    model.add_resources("a", 10)
    rows = PrivateRows(np.array([[1.0, 1.0]]), 2.0, 5.0) if private else None
    for k in range(4):
        model.add_request(k, [1.0, 2.0], usage={"a": [1, 2]}, lower=1.0, upper=2.0, limit=4.0, private_rows=rows)
    session = Session(model, Settings(threads=1))
    session.record(path)
    model.set_count("a", 20)
    session.solve()
    model.set_count("a", 7)
    assert session.solve().status is copter.Status.PRIMAL_INFEASIBLE
    session.record(None)


def free_columns(path: Path) -> None:
    """Record a session whose columns have no bounds: rows alone keep them."""
    model = Model("min", offset=1.0)
    model.add_resources("even", 3.0, lower=3.0)
    model.add_resources("wide", 10.0, lower=-10.0)
    free = {"limit": np.inf, "lower": -np.inf, "upper": np.inf}
    model.add_request("free", [1.0, 1.0], usage={"even": [1.0, 1.0], "wide": [1.0, -1.0]}, **free)
    model.add_request("boxed", [2.0], usage={"even": [1.0]}, limit=np.inf, lower=-1.0, upper=2.0)
    session = Session(model, Settings(threads=1))
    session.record(path)
    session.solve()
    model.update_cost("boxed", [0.5])
    session.solve()
    session.record(None)


def searched_bound(path: Path) -> tuple[float, float]:
    """Record a plan whose bound a search of all choices has made better: (the LP's bound, the plan's)."""
    model = Model("max")
    model.add_resources("a", 10.0)
    for k, (cost, use) in enumerate(((7.0, 6.0), (5.0, 5.0), (4.5, 5.0))):
        model.add_request(k, [cost], usage={"a": [use]}, integer=True)
    session = Session(model, Settings(threads=1))
    session.record(path)
    plan = session.solve_integer()
    session.record(None)
    assert session.last_solution is not None
    return session.last_solution.bound, plan.bound
