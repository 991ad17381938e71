"""Programs solved again through the doors of other tools: fresh, kept, and HiGHS in both ways, as a page.

    python benchmarks/resolve_doors.py [--only PyPSA] [--rounds 12] [--page docs/results/doors.md]

Each series is what a door (SciPy, CVXPY, Pyomo, linopy, PyPSA) hands to its solver when a user's numbers move. The same
programs then go, in turns, to `copter.solve` (fresh), to the door's live program (kept), to a new `highspy.Highs`
(HiGHS fresh) and to one that is told what has changed (HiGHS warm). All are charged their processor time, without the
first program of the series, which has nothing to start from. A page that exists keeps its rows of the other series.
"""

from __future__ import annotations

import argparse
import datetime
import logging
import os
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads spin after a call, on the account of what follows

import cvxpy as cp
import energy_series
import linopy
import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pypsa
import scipy.sparse as sp
import xarray as xr
from pyomo.contrib.solver.common.factory import SolverFactory

import copter
import copter.interop.linopy
import copter.interop.pyomo
from copter import LinearProgram
from copter.highs.exchange import to_highs
from copter.interop.cvxpy import COPTER
from copter.interop.live_program import LiveProgram
from copter.interop.scipy_linprog import linprog

BUSES, HORIZON, OVERLAP = 20, 48, 24  # of the power system; hours
CAPACITIES = 40
ROOT = Path(__file__).parent.parent
AGREE = 1e-5  # relative difference of objectives above which a series is not printed

Series = Callable[[int], None]


@contextmanager
def recorded() -> Iterator[list[LinearProgram]]:
    """The programs that doors hand to their live programs meanwhile."""
    seen: list[LinearProgram] = []
    real = LiveProgram.solve

    def solve(self: LiveProgram, lp: LinearProgram, settings: Any = None) -> Any:
        seen.append(lp)
        return real(self, lp, settings)

    LiveProgram.solve = solve  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        LiveProgram.solve = real  # type: ignore[method-assign]


# The series -----------------------------------------------------------------------------------------------------------


def scipys(rows: int, columns: int, density: float, moved: float, rounds: int) -> None:
    """Knapsacks by SciPy's linprog; every side moves by up to this share."""
    rng = np.random.default_rng(0)
    A = sp.random_array((rows, columns), density=density, rng=rng, format="csc")
    A.data = rng.uniform(0.5, 2.0, A.nnz)
    c = -rng.uniform(1.0, 2.0, columns) * np.asarray(A.sum(axis=0)).ravel()
    b = 0.3 * np.asarray(A.sum(axis=1)).ravel()
    result = None
    for _ in range(rounds):
        result = linprog(c, A, b, bounds=(0, 1), x0=result)
        b = b * (1.0 + moved * rng.uniform(-1.0, 1.0, rows))


def cvxpys(rows: int, columns: int, entries: int, kind: str, share: float, rounds: int) -> None:
    """An allocation by CVXPY; a share of its costs, sides or coefficients moves by up to a tenth."""
    rng = np.random.default_rng(0)
    row = np.argsort(rng.random((columns, rows)), axis=1)[:, :entries].ravel()
    A = sp.csr_array(
        (rng.uniform(0.5, 2.0, columns * entries), (row, np.repeat(np.arange(columns), entries))), shape=(rows, columns)
    )
    gain, x = rng.uniform(1.0, 2.0, columns) * entries, cp.Variable(columns, bounds=[0.0, 1.0])
    capacity = np.full(rows, 0.3 * A.nnz / rows)
    p = cp.Parameter(columns if kind == "c" else rows, value=gain if kind == "c" else capacity)
    objective = cp.Maximize((p if kind == "c" else gain) @ x)
    problem = cp.Problem(objective, [A @ x <= (capacity if kind == "c" else p)])
    for _ in range(rounds):
        problem.solve(solver=COPTER())
        values = p.value.copy()
        at = rng.choice(len(values), max(1, int(share * len(values))), replace=False)
        values[at] *= rng.uniform(0.9, 1.1, len(at))
        p.value = values


def linopys(rounds: int) -> None:
    """Units over a day by linopy's persistent solver: each update moves every load and the fuel's prices."""
    rng, hours, units = np.random.default_rng(0), pd.RangeIndex(96, name="hour"), pd.RangeIndex(60, name="unit")
    price = rng.uniform(20.0, 80.0, len(units))
    load = 0.4 * len(units) * (60 + 20 * np.sin(2 * np.pi * np.arange(len(hours)) / 24))
    model = linopy.Model()
    p = model.add_variables(lower=0, upper=100, coords=[hours, units], name="p")
    model.add_constraints(p.sum("unit") >= load, name="load")
    step = p.isel(hour=slice(1, None)) - p.shift(hour=1).isel(hour=slice(1, None))
    model.add_constraints(step <= 25, name="up")
    model.add_constraints(step >= -25, name="down")
    model.add_objective((p * xr.DataArray(price, coords=[units])).sum())
    solver = copter.interop.linopy.Copter.from_model(model, io_api="direct", track_updates=True)
    for _ in range(rounds):
        solver.solve(model, assign=True)
        model.constraints["load"].update(rhs=load * rng.uniform(0.95, 1.05, len(hours)))
        fuel = xr.DataArray(price * rng.uniform(0.95, 1.05, len(units)), coords=[units])
        model.objective.expression = (p * fuel).sum()


def pyomos(rounds: int) -> None:
    """A transport of goods by Pyomo, whose capacities all move."""
    rng = np.random.default_rng(0)
    model = pyo.ConcreteModel()
    model.s, model.d = pyo.RangeSet(CAPACITIES), pyo.RangeSet(30)
    model.x = pyo.Var(model.s, model.d, bounds=(0, None))
    model.capacity = pyo.Param(model.s, initialize=100.0, mutable=True)
    cost = {(i, j): float(rng.uniform(1, 9)) for i in model.s for j in model.d}
    model.send = pyo.Constraint(model.s, rule=lambda m, i: sum(m.x[i, j] for j in m.d) <= m.capacity[i])
    model.get = pyo.Constraint(model.d, rule=lambda m, j: sum(m.x[i, j] for i in m.s) >= 90.0)
    model.cost = pyo.Objective(expr=sum(cost[i, j] * model.x[i, j] for i in model.s for j in model.d))
    solver = SolverFactory("copter")
    for _ in range(rounds):
        solver.solve(model)
        for i in model.s:
            model.capacity[i] = float(rng.uniform(80, 120))


def network_of(hours: int) -> Any:
    """A power system with storage, weather and loads of so many hours."""
    rng, hour = np.random.default_rng(1), np.arange(hours)
    network = pypsa.Network()
    network.set_snapshots(pd.RangeIndex(hours))
    for bus in range(BUSES):
        load = 60 + 30 * np.sin(2 * np.pi * (hour - 8 + rng.uniform(-2, 2)) / 24) + rng.normal(0, 4, hours)
        sun = np.clip(np.sin(2 * np.pi * (hour - 6) / 24), 0.0, 1.0) * rng.uniform(0.4, 1.0, hours)
        wind = np.clip(0.4 + 0.05 * np.cumsum(rng.normal(0, 1, hours)), 0.02, 1.0)
        at = {"bus": f"b{bus}"}
        network.add("Bus", f"b{bus}")
        network.add("Load", f"load{bus}", p_set=load, **at)
        network.add("Generator", f"gas{bus}", p_nom=120.0, marginal_cost=float(rng.uniform(40, 80)), **at)
        network.add("Generator", f"sun{bus}", p_nom=60.0, marginal_cost=0.1, p_max_pu=sun, **at)
        network.add("Generator", f"wind{bus}", p_nom=80.0, marginal_cost=0.2, p_max_pu=wind, **at)
        network.add("Generator", f"shed{bus}", p_nom=1e3, marginal_cost=3e3, **at)
        network.add("StorageUnit", f"store{bus}", p_nom=20.0, max_hours=6.0, efficiency_store=0.95, **at)
    for bus in range(BUSES):
        network.add("Link", f"l{bus}", bus0=f"b{bus}", bus1=f"b{(bus + 1) % BUSES}", p_nom=40.0, p_min_pu=-1.0)
    return network


def windows(rounds: int, **solver: Any) -> None:
    """PyPSA's rolling horizon over so many windows of one length."""
    network = network_of((HORIZON - OVERLAP) * rounds + OVERLAP)
    sets = {"horizon": HORIZON, "overlap": OVERLAP, "snapshots": network.snapshots[: (HORIZON - OVERLAP) * rounds]}
    network.optimize.optimize_with_rolling_horizon(**sets, include_objective_constant=False, **solver)


def hourly(step: int, rounds: int) -> None:
    """PyPSA's windows of one length that move on by so many hours, each from the storage of the last."""
    network = network_of(HORIZON + step * rounds)
    hours = network.snapshots
    for first in range(0, step * rounds, step):
        network.optimize(hours[first : first + HORIZON], solver_name="copter", include_objective_constant=False)
        left = network.storage_units_t.state_of_charge.loc[hours[first + step - 1]]
        network.storage_units["state_of_charge_initial"] = left


def prices(rounds: int) -> None:
    """One day of the power system by PyPSA again and again, the price of every gas unit moved."""
    network, rng = network_of(HORIZON), np.random.default_rng(2)
    for _ in range(rounds):
        network.optimize(solver_name="copter", include_objective_constant=False)
        network.generators.marginal_cost *= rng.uniform(0.95, 1.05, len(network.generators))


SERIES: dict[str, Series] = {
    "SciPy, 200 x 20,000, 2% full, all sides by up to 5%": lambda r: scipys(200, 20_000, 0.02, 0.05, r),
    "SciPy, 200 x 20,000, 2% full, all sides by up to 0.1%": lambda r: scipys(200, 20_000, 0.02, 0.001, r),
    "SciPy, 200 x 20,000, 20% full, all sides by up to 5%": lambda r: scipys(200, 20_000, 0.2, 0.05, r),
    "CVXPY, 50 x 33,000, 1% of the costs": lambda r: cvxpys(50, 33_000, 3, "c", 0.01, r),
    "CVXPY, 100 x 2,000, half full, all sides": lambda r: cvxpys(100, 2_000, 50, "b", 1.0, r),
    "CVXPY, 1,000 x 20,000, 1% of the sides": lambda r: cvxpys(1_000, 20_000, 5, "b", 0.01, r),
    "linopy, 60 units, 96 hours, all loads and prices": linopys,
    "linopy, rolling dispatch, windows of 48 hours, 24 on": energy_series.linopy_rolling,
    "linopy, lot sizes relaxed, all sides by up to 20%": lambda r: energy_series.linopy_lots("sides", r),
    "linopy, lot sizes relaxed, all costs by up to 20%": lambda r: energy_series.linopy_lots("costs", r),
    "Pyomo, 70 x 1,200, 40 capacities": pyomos,
    "Pyomo, rolling dispatch, windows of 48 hours, 24 on": energy_series.pyomo_rolling,
    "Pyomo, a week's dispatch, loads and wind by up to 2%": lambda r: energy_series.pyomo_overlays(0.02, 0.0, r),
    "Pyomo, a week's dispatch, loads and wind by up to 30%": lambda r: energy_series.pyomo_overlays(0.3, 0.0, r),
    "Pyomo, a week's dispatch, prices by up to 20%": lambda r: energy_series.pyomo_overlays(0.0, 0.2, r),
    "PyPSA, 20 buses, windows of 48 hours, 24 kept": lambda r: windows(r, solver_name="copter"),
    "PyPSA, 20 buses, windows of 48 hours, 1 hour on": lambda r: hourly(1, r),
    "PyPSA, 20 buses, windows of 48 hours, 3 hours on": lambda r: hourly(3, r),
    "PyPSA, 20 buses, 48 hours, all prices": prices,
}

# Solving --------------------------------------------------------------------------------------------------------------


class Warm:
    """HiGHS that is told what has changed."""

    def __init__(self) -> None:
        self._highs: Any = None
        self._before: LinearProgram | None = None

    def solve(self, lp: LinearProgram) -> float:
        """The optimum."""
        before, self._before = self._before, lp
        if before is None or before.shape != lp.shape or not np.array_equal(before.A.data, lp.A.data):
            self._highs = to_highs(lp)
        else:
            m, n = lp.shape
            rows, columns = np.arange(m, dtype=np.int32), np.arange(n, dtype=np.int32)
            self._highs.changeColsCost(n, columns, lp.c)
            self._highs.changeColsBounds(n, columns, lp.col_lower, lp.col_upper)
            self._highs.changeRowsBounds(m, rows, lp.row_lower, lp.row_upper)
        self._highs.run()
        return float(self._highs.getInfo().objective_function_value)


def highs_afresh(lp: LinearProgram) -> float:
    """HiGHS's optimum from nothing."""
    highs = to_highs(lp)
    highs.run()
    return float(highs.getInfo().objective_function_value)


def measure(series: list[LinearProgram]) -> dict[str, float]:
    """Processor time of each way over a series, without its first program."""
    live, warm = LiveProgram(), Warm()
    kept = 0

    def by_door(lp: LinearProgram) -> float:
        nonlocal kept
        answer = live.solve(lp)
        kept += answer.warm
        return answer.objective

    ways: dict[str, Callable[[LinearProgram], float]] = {
        "fresh": lambda lp: copter.solve(lp).objective,
        "kept": by_door,
        "highs": highs_afresh,
        "highs_warm": warm.solve,
    }
    spent = dict.fromkeys(ways, 0.0)
    for step, lp in enumerate(series):
        objectives = {}
        for name, way in ways.items():
            started = time.process_time()
            objectives[name] = way(lp)
            spent[name] += (time.process_time() - started) * (step > 0)
        low, high = min(objectives.values()), max(objectives.values())
        if high - low > AGREE * (1.0 + abs(high)):
            raise SystemExit(f"the ways disagree: {objectives}")
    return {**spent, "warm": kept / max(1, len(series) - 1)}


def whole_pypsa(rounds: int) -> tuple[float, float]:
    """Processor time of PyPSA's rolling horizon as a whole: (copter, HiGHS)."""
    found = []
    for solver in ({"solver_name": "copter"}, {"solver_name": "highs", "output_flag": False, "io_api": "direct"}):
        started = time.process_time()
        windows(rounds, **solver)
        found.append(time.process_time() - started)
    return found[0], found[1]


def row(name: str, found: dict[str, float], rounds: int, made: str) -> str:
    """A line of the page."""
    ms = 1e3 / (rounds - 1)
    figures = [f"{found[way] * ms:.1f}" for way in ("fresh", "kept", "highs", "highs_warm")]
    pairs = (("kept", "fresh"), ("fresh", "highs"), ("kept", "highs_warm"))
    ratios = [f"{found[own] / found[other]:.2f}" for own, other in pairs]
    return f"| {name} | {' | '.join(figures)} | {' | '.join(ratios)} | {found['warm']:.0%} | {made} |"


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--only", default="", help="series whose names contain this, in any case")
    parser.add_argument("--page", type=Path, help="file to write")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    rows = rows_of(arguments.page)
    made = f"{commit()}, {datetime.date.today()}, {arguments.rounds}"
    for name, series in SERIES.items():
        if arguments.only.lower() not in name.lower():
            continue
        with recorded() as programs:
            series(arguments.rounds)
        longest = [lp for lp in programs if lp.shape == programs[0].shape]  # a last window may be shorter
        rows[name] = row(name, measure(longest), len(longest), made)
        print(rows[name], flush=True)
        write(arguments.page, rows)
    if arguments.only.lower() in WHOLE.lower():
        own, highs = whole_pypsa(arguments.rounds)
        rows[WHOLE] = f"| {WHOLE} | | {1e3 * own / arguments.rounds:.1f} | {1e3 * highs / arguments.rounds:.1f} | | "
        rows[WHOLE] += f"| | | | {made} |"
        print(rows[WHOLE])
        write(arguments.page, rows)


def commit() -> str:
    """The commit that is measured."""
    git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    return git.stdout.strip()


def rows_of(page: Path | None) -> dict[str, str]:
    """Rows of a page by their series."""
    if page is None or not page.exists():
        return {}
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return {line.split(" | ")[0].removeprefix("| "): line for line in lines[1:]}


def write(page: Path | None, rows: dict[str, str]) -> None:
    """The page with these rows, in the order of the series."""
    if page is not None:
        table = "\n".join(rows[name] for name in (*SERIES, WHOLE) if name in rows)
        page.write_text(PAGE.format(table=table), encoding="utf-8")


WHOLE = "PyPSA, the windows as a whole: models built by linopy, answers put back"

PAGE = """# Solved again through the doors

Made by `python benchmarks/resolve_doors.py --page docs/results/doors.md`, row by row (`--only`): the last column is the
commit, the date and the number of programs. Rows differ in the load of the machine: compare within a row.

Processor time of the solver for one program, mean of a series without its first program. **Fresh** is
`copter.solve`; **kept** is what the door does ([interop.md](../howto/interop.md)), tries that failed included; **HiGHS
warm** is a `highspy.Highs` that is told what has changed and starts from its last basis. Ratios below 1 are gains; of
two solvers they are of two that both begin with nothing, or of two that both keep what they found. No commercial solver
was run.

| series | fresh, ms | kept, ms | HiGHS fresh, ms | HiGHS warm, ms | kept / fresh | fresh / HiGHS fresh | kept / HiGHS warm | solves from what was kept | measured |
|---|---|---|---|---|---|---|---|---|---|
{table}
"""  # noqa: E501

if __name__ == "__main__":
    main()
