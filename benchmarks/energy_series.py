"""Series of linear programs as energy models and reoptimization ask for them, by linopy and by Pyomo.

The week is built once. An overlay moves loads and wind, or prices; a rolling window moves on by a day and starts from
the storage that the last one left. The lot sizing follows the computational competition of the MIP Workshop 2023
(arXiv 2311.14834): one program whose sides, costs and bounds are perturbed; here its linear relaxation.
"""

from __future__ import annotations

from typing import Any

import linopy
import numpy as np
import pandas as pd
import pyomo.environ as pyo
import xarray as xr
from numpy.typing import NDArray
from pyomo.contrib.solver.common.factory import SolverFactory

import copter.interop.linopy

UNITS, STORES, DAY = 20, 4, 24
STORE, POWER, KEPT = 400.0, 60.0, 0.9  # energy and power of a store, and what is left of what is stored
PRODUCTS, PERIODS = 30, 24

Floats = NDArray[np.float64]


class Weather:
    """Loads, wind and prices of many hours."""

    def __init__(self, hours: int) -> None:
        self.rng = np.random.default_rng(4)
        hour = np.arange(hours)
        self.price = np.sort(self.rng.uniform(20.0, 90.0, UNITS))
        self.load = 900.0 + 350.0 * np.sin(2 * np.pi * (hour - 8) / DAY) + self.rng.normal(0.0, 25.0, hours)
        self.wind = 500.0 * np.clip(0.4 + 0.05 * np.cumsum(self.rng.normal(0.0, 1.0, hours)), 0.02, 1.0)

    def moved(self, share: float, values: Floats) -> Floats:
        """Return values, each moved by up to a share."""
        return values * (1.0 + share * self.rng.uniform(-1.0, 1.0, len(values)))


def _pyomo_week(hours: int, weather: Weather) -> Any:
    """The dispatch of units, wind and stores over some hours, its numbers mutable parameters."""
    m = pyo.ConcreteModel()
    m.u, m.s, m.h = pyo.RangeSet(0, UNITS - 1), pyo.RangeSet(0, STORES - 1), pyo.RangeSet(0, hours - 1)
    m.demand = pyo.Param(m.h, initialize=dict(enumerate(weather.load[:hours])), mutable=True)
    m.wind = pyo.Param(m.h, initialize=dict(enumerate(weather.wind[:hours])), mutable=True)
    m.price = pyo.Param(m.u, initialize=dict(enumerate(weather.price)), mutable=True)
    m.first = pyo.Param(m.s, initialize=STORE / 2, mutable=True)
    m.p, m.shed = pyo.Var(m.u, m.h, bounds=(0, 100)), pyo.Var(m.h, bounds=(0, None))
    m.w = pyo.Var(m.h, bounds=(0, None))
    m.put, m.take = pyo.Var(m.s, m.h, bounds=(0, POWER)), pyo.Var(m.s, m.h, bounds=(0, POWER))
    m.level = pyo.Var(m.s, m.h, bounds=(0, STORE))
    m.blows = pyo.Constraint(m.h, rule=lambda m, h: m.w[h] <= m.wind[h])
    m.balance = pyo.Constraint(
        m.h,
        rule=lambda m, h: (
            sum(m.p[u, h] for u in m.u) + m.w[h] + m.shed[h] + sum(m.take[s, h] - m.put[s, h] for s in m.s)
            == m.demand[h]
        ),
    )
    m.keeps = pyo.Constraint(
        *(m.s, m.h),
        rule=lambda m, s, h: (
            m.level[s, h] - (m.level[s, h - 1] if h else 0.0) - KEPT * m.put[s, h] + m.take[s, h]
            == (0.0 if h else m.first[s])
        ),
    )
    m.ramp = pyo.Constraint(
        *(m.u, m.h),
        rule=lambda m, u, h: pyo.inequality(-30.0, m.p[u, h] - m.p[u, h - 1], 30.0) if h else pyo.Constraint.Skip,
    )
    m.cost = pyo.Objective(
        expr=sum(m.price[u] * m.p[u, h] for u in m.u for h in m.h) + 3e3 * sum(m.shed[h] for h in m.h)
    )
    return m


def pyomo_overlays(loads: float, prices: float, rounds: int) -> None:
    """A week by Pyomo, built once; each overlay moves loads and wind, or prices, by up to a share."""
    weather = Weather(7 * DAY)
    model, solver = _pyomo_week(7 * DAY, weather), SolverFactory("copter")
    for _ in range(rounds):
        solver.solve(model)
        for parameter, values, share in (
            (model.demand, weather.load, loads),
            (model.wind, weather.wind, loads),
            (model.price, weather.price, prices),
        ):
            if share:
                parameter.store_values(dict(enumerate(weather.moved(share, values))))


def pyomo_rolling(rounds: int) -> None:
    """Windows of two days by Pyomo that move on by a day, from the storage that the last one left."""
    hours, weather = 2 * DAY, Weather(DAY * (rounds + 2))
    model, solver = _pyomo_week(hours, weather), SolverFactory("copter")
    for day in range(rounds):
        now = slice(DAY * day, DAY * day + hours)
        model.demand.store_values(dict(enumerate(weather.load[now])))
        model.wind.store_values(dict(enumerate(weather.wind[now])))
        solver.solve(model)
        model.first.store_values({s: min(max(model.level[s, DAY - 1].value, 0.0), STORE) for s in range(STORES)})


def linopy_rolling(rounds: int) -> None:
    """The same windows by linopy's persistent solver."""
    hours, weather = 2 * DAY, Weather(DAY * (rounds + 2))
    hour, unit, store = (
        pd.RangeIndex(size, name=name) for name, size in (("hour", hours), ("unit", UNITS), ("store", STORES))
    )
    m = linopy.Model()
    p = m.add_variables(lower=0, upper=100, coords=[hour, unit], name="p")
    w = m.add_variables(lower=0, coords=[hour], name="w")
    shed = m.add_variables(lower=0, coords=[hour], name="shed")
    put, take = (m.add_variables(lower=0, upper=POWER, coords=[hour, store], name=name) for name in ("put", "take"))
    level = m.add_variables(lower=0, upper=STORE, coords=[hour, store], name="level")
    m.add_constraints(w <= weather.wind[:hours], name="blows")
    m.add_constraints(p.sum("unit") + w + shed + (take - put).sum("store") == weather.load[:hours], name="balance")
    begin, later = {"hour": 0}, {"hour": slice(1, None)}
    m.add_constraints(
        level.isel(begin) - KEPT * put.isel(begin) + take.isel(begin) == np.full(STORES, STORE / 2), name="first"
    )
    m.add_constraints(
        level.isel(later) - level.shift(hour=1).isel(later) - KEPT * put.isel(later) + take.isel(later) == 0,
        name="keeps",
    )
    step = p.isel(later) - p.shift(hour=1).isel(later)
    m.add_constraints(step <= 30, name="up")
    m.add_constraints(step >= -30, name="down")
    m.add_objective((p * xr.DataArray(weather.price, coords=[unit])).sum() + 3e3 * shed.sum())
    solver = copter.interop.linopy.Copter.from_model(m, io_api="direct", track_updates=True)
    for day in range(rounds):
        now = slice(DAY * day, DAY * day + hours)
        m.constraints["balance"].update(rhs=weather.load[now])
        m.constraints["blows"].update(rhs=weather.wind[now])
        solver.solve(m, assign=True)
        m.constraints["first"].update(rhs=np.clip(level.solution.values[DAY - 1], 0.0, STORE))


def linopy_lots(kind: str, rounds: int) -> None:
    """Lot sizes of products on one machine, relaxed, by linopy; costs or sides are perturbed by up to a fifth."""
    rng = np.random.default_rng(5)
    period, product = pd.RangeIndex(PERIODS, name="period"), pd.RangeIndex(PRODUCTS, name="product")
    demand = rng.uniform(5.0, 40.0, (PERIODS, PRODUCTS)) * (rng.random((PERIODS, PRODUCTS)) < 0.6)
    cost, big = rng.uniform(1.0, 4.0, PRODUCTS), demand.sum(0)
    m = linopy.Model()
    make, stock = (m.add_variables(lower=0, coords=[period, product], name=name) for name in ("make", "stock"))
    setup = m.add_variables(lower=0, upper=1, coords=[period, product], name="setup")
    m.add_constraints(make.isel(period=0) - stock.isel(period=0) == demand[0], name="first")
    later = {"period": slice(1, None)}
    m.add_constraints(
        make.isel(later) + stock.shift(period=1).isel(later) - stock.isel(later) == demand[1:], name="flow"
    )
    m.add_constraints(make - setup * xr.DataArray(big, coords=[product]) <= 0, name="setups")
    m.add_constraints(make.sum("product") + 6.0 * setup.sum("product") <= 1.35 * demand.sum() / PERIODS, name="room")

    def objective(prices: Floats) -> Any:
        each = xr.DataArray(prices, coords=[product])
        return (make * each).sum() + (stock * (0.2 * each)).sum() + 50.0 * setup.sum()

    m.add_objective(objective(cost))
    solver = copter.interop.linopy.Copter.from_model(m, io_api="direct", track_updates=True)
    for _ in range(rounds):
        solver.solve(m, assign=True)
        if kind == "sides":
            lower = demand * (1.0 - 0.2 * rng.random(demand.shape))
            m.constraints["first"].update(rhs=lower[0])
            m.constraints["flow"].update(rhs=lower[1:])
        else:
            m.objective.expression = objective(cost * rng.uniform(0.8, 1.2, PRODUCTS))
