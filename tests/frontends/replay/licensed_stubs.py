"""Stubs of gurobipy, cplex and coptpy: the calls that the peers make, over one small program that SciPy solves.

They refuse what the real ones refuse: a removed object, a pending change that was not applied, a wrong length.
"""

from __future__ import annotations

import types
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import linprog

INFINITY = 1e20


class Thing:
    """A row or a column of a stub."""

    def __init__(self, **facts: Any) -> None:
        self.removed = False
        self.__dict__.update(facts)


class Store:
    """A program of objects."""

    def __init__(self) -> None:
        self.rows: list[Thing] = []
        self.columns: list[Thing] = []
        self.entries: dict[tuple[Thing, Thing], float] = {}
        self.sign = 1.0
        self.solves = 0

    def entry(self, row: Thing, column: Thing, value: float) -> None:
        assert not row.removed
        assert not column.removed
        self.entries[row, column] = float(value)

    def remove(self, thing: Thing) -> None:
        thing.removed = True
        self.rows = [each for each in self.rows if each is not thing]
        self.columns = [each for each in self.columns if each is not thing]
        self.entries = {key: value for key, value in self.entries.items() if thing not in key}

    def solve(self) -> tuple[bool, float, list[float], list[float]]:
        """Whether it is optimal, the objective, and the values of columns and of rows' prices."""
        self.solves += 1
        m, n = len(self.rows), len(self.columns)
        at = {id(each): k for k, each in enumerate(self.rows)} | {id(each): k for k, each in enumerate(self.columns)}
        A = np.zeros((m, n))
        for (row, column), value in self.entries.items():
            A[at[id(row)], at[id(column)]] = value
        c = self.sign * np.array([each.obj for each in self.columns])
        sides = [(each.low, each.high) for each in self.rows]
        low, high = np.array(sides).T if m else (np.zeros(0), np.zeros(0))
        low, high = np.where(low <= -INFINITY, -np.inf, low), np.where(high >= INFINITY, np.inf, high)
        equal = low == high
        up, down = np.isfinite(high) & ~equal, np.isfinite(low) & ~equal
        found = linprog(
            c, A_ub=np.vstack((A[up], -A[down])), b_ub=np.concatenate((high[up], -low[down])),
            A_eq=A[equal], b_eq=low[equal], bounds=[(each.lb, each.ub) for each in self.columns],
        )  # fmt: skip
        if found.status:
            return False, np.nan, [], []
        y = np.zeros(m)
        y[equal] = found.eqlin.marginals
        y[up] += found.ineqlin.marginals[: up.sum()]
        y[down] -= found.ineqlin.marginals[up.sum() :]
        return True, self.sign * found.fun, found.x.tolist(), (self.sign * y).tolist()


# Gurobi -------------------------------------------------------------------------------------------------------------


class GurobiRow(Thing):
    """A row with one side."""

    @property
    def low(self) -> float:
        return -np.inf if self.Sense == "<" else self.RHS

    @property
    def high(self) -> float:
        return np.inf if self.Sense == ">" else self.RHS


class GurobiColumn(Thing):
    """A variable, whose attributes have Gurobi's names."""

    obj = property(lambda self: self.Obj)
    lb = property(lambda self: self.LB)
    ub = property(lambda self: self.UB)


class GurobiModel(Store):
    """gurobipy.Model."""

    def __init__(self, env: Any) -> None:
        super().__init__()
        self.parameters: dict[str, Any] = {}
        self.IterCount = self.BarIterCount = 0

    def setParam(self, name: str, value: Any) -> None:
        self.parameters[name] = value

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "ModelSense":
            self.sign = float(value)
        super().__setattr__(name, value)

    def addLConstr(self, line: Any, sense: str, rhs: float) -> GurobiRow:
        assert sense in ("<", ">", "=")
        row = GurobiRow(Sense=sense, RHS=rhs)
        self.rows.append(row)
        for value, column in zip(*line, strict=True):
            self.entry(row, column, value)
        return row

    def addVar(self, lb: float, ub: float, obj: float = 0.0, column: Any = ((), ())) -> GurobiColumn:
        made = GurobiColumn(LB=lb, UB=ub, Obj=obj)
        self.columns.append(made)
        for value, row in zip(*column, strict=True):
            self.entry(row, made, value)
        return made

    def remove(self, things: list[Thing]) -> None:
        for each in things:
            Store.remove(self, each)

    def update(self) -> None:
        """Apply what is pending."""

    def setAttr(self, name: str, things: list[Thing], values: list[float]) -> None:
        for each, value in zip(things, values, strict=True):
            assert not each.removed
            setattr(each, name, value)

    def getAttr(self, name: str, things: list[Thing]) -> list[float]:
        return [self.found[name][id(each)] for each in things]

    def chgCoeff(self, row: Thing, column: Thing, value: float) -> None:
        self.entry(row, column, value)

    def optimize(self) -> None:
        optimal, self.ObjVal, x, y = self.solve()
        self.Status = 2 if optimal else 3
        self.found = {
            "X": {id(each): value for each, value in zip(self.columns, x, strict=False)},
            "Pi": {id(each): value for each, value in zip(self.rows, y, strict=False)},
        }


class GurobiEnv:
    """gurobipy.Env."""

    def __init__(self, empty: bool) -> None:
        assert empty

    def setParam(self, name: str, value: Any) -> None:
        assert name == "OutputFlag"

    def start(self) -> None:
        """Begin."""


gurobipy = types.SimpleNamespace(
    Env=GurobiEnv,
    Model=GurobiModel,
    Column=lambda coeffs, constrs: (coeffs, constrs),
    LinExpr=lambda coeffs, variables: (coeffs, variables),
    GRB=types.SimpleNamespace(OPTIMAL=2, INFINITY=1e100),
)


# COPT ---------------------------------------------------------------------------------------------------------------


class Terms:
    """coptpy.LinExpr and coptpy.Column."""

    def __init__(self) -> None:
        self.pairs: list[tuple[Thing, float]] = []

    def addTerms(self, things: list[Thing], values: list[float]) -> None:
        self.pairs += zip(things, values, strict=True)


class CoptModel(Store):
    """coptpy.Model."""

    names: ClassVar[dict[str, Any]] = {"Obj": "obj", "LB": ("lb", "low"), "UB": ("ub", "high")}
    simplexiter = barrieriter = 0

    def setParam(self, name: str, value: Any) -> None:
        assert name in ("Logging", "LpMethod", "Threads", "TimeLimit")

    def setObjSense(self, sense: int) -> None:
        self.sign = float(sense)

    def addBoundConstr(self, line: Terms, low: float, high: float) -> Thing:
        row = Thing(low=low, high=high)
        self.rows.append(row)
        for column, value in line.pairs:
            self.entry(row, column, value)
        return row

    def addVar(self, lb: float, ub: float, obj: float, column: Terms) -> Thing:
        made = Thing(lb=lb, ub=ub if ub < INFINITY else np.inf, obj=obj)
        self.columns.append(made)
        for row, value in column.pairs:
            self.entry(row, made, value)
        return made

    def remove(self, things: list[Thing]) -> None:
        for each in things:
            Store.remove(self, each)

    def setInfo(self, name: str, things: list[Thing], values: list[float]) -> None:
        for each, value in zip(things, values, strict=True):
            assert not each.removed
            own = self.names[name]
            setattr(each, own if isinstance(own, str) else own[hasattr(each, "low")], value)

    def setCoeff(self, row: Thing, column: Thing, value: float) -> None:
        self.entry(row, column, value)

    def solveLP(self) -> None:
        optimal, self.lpobjval, self.x, self.y = self.solve()
        self.status = 1 if optimal else 2

    def getInfo(self, name: str, things: list[Thing]) -> list[float]:
        kept, values = (self.columns, self.x) if name == "Value" else (self.rows, self.y)
        assert things == kept
        return values


coptpy = types.SimpleNamespace(
    Envr=lambda: types.SimpleNamespace(createModel=lambda name: CoptModel()),
    LinExpr=Terms,
    Column=Terms,
    COPT=types.SimpleNamespace(
        OPTIMAL=1, MAXIMIZE=-1, MINIMIZE=1, INFINITY=1e30,
        Param=types.SimpleNamespace(Logging="Logging", LpMethod="LpMethod", Threads="Threads", TimeLimit="TimeLimit"),
        Info=types.SimpleNamespace(Obj="Obj", LB="LB", UB="UB", Value="Value", Dual="Dual"),
    ),
)  # fmt: skip


# CPLEX --------------------------------------------------------------------------------------------------------------


class CplexRow(Thing):
    """A row by sense, side and range."""

    @property
    def low(self) -> float:
        return -np.inf if self.sense == "L" else self.rhs

    @property
    def high(self) -> float:
        return np.inf if self.sense == "G" else self.rhs + (self.range if self.sense == "R" else 0.0)


class Cplex(Store):
    """cplex.Cplex, which goes by positions."""

    def __init__(self) -> None:
        super().__init__()
        setting = types.SimpleNamespace(set=lambda value: None)
        self.parameters = types.SimpleNamespace(lpmethod=setting, threads=setting, timelimit=setting)
        self.objective = types.SimpleNamespace(
            sense=types.SimpleNamespace(maximize=-1, minimize=1),
            set_sense=lambda sense: setattr(self, "sign", float(sense)),
            set_linear=lambda pairs: self._set(self.columns, "obj", pairs),
        )
        self.variables = types.SimpleNamespace(
            delete=lambda places: self._delete(self.columns, places),
            set_lower_bounds=lambda pairs: self._set(self.columns, "lb", pairs),
            set_upper_bounds=lambda pairs: self._set(self.columns, "ub", pairs),
            add=self._add_columns,
        )
        self.linear_constraints = types.SimpleNamespace(
            delete=lambda places: self._delete(self.rows, places),
            set_senses=lambda pairs: self._set(self.rows, "sense", pairs),
            set_rhs=lambda pairs: self._set(self.rows, "rhs", pairs),
            set_range_values=lambda pairs: self._set(self.rows, "range", pairs),
            set_coefficients=self._coefficients,
            add=self._add_rows,
        )
        self.solution = types.SimpleNamespace(
            progress=types.SimpleNamespace(get_num_iterations=lambda: 0, get_num_barrier_iterations=lambda: 0)
        )
        for name in ("log", "results", "warning", "error"):
            setattr(self, f"set_{name}_stream", lambda stream: None)
        self._solved, self.solve = super().solve, self._solve  # type: ignore[method-assign]

    def _set(self, things: list[Thing], name: str, pairs: list[tuple[int, Any]]) -> None:
        for at, value in pairs:
            setattr(things[at], name, value)

    def _delete(self, things: list[Thing], places: list[int]) -> None:
        for each in [things[at] for at in places]:
            self.remove(each)

    def _coefficients(self, triples: list[tuple[int, int, float]]) -> None:
        for row, column, value in triples:
            self.entry(self.rows[row], self.columns[column], value)

    def _add_rows(self, lin_expr: list[Any], senses: str, rhs: list[float], range_values: list[float]) -> None:
        for line, sense, side, width in zip(lin_expr, senses, rhs, range_values, strict=True):
            row = CplexRow(sense=sense, rhs=side, range=width)
            self.rows.append(row)
            for at, value in zip(line.ind, line.val, strict=True):
                self.entry(row, self.columns[at], value)

    def _add_columns(self, obj: list[float], lb: list[float], ub: list[float], columns: list[Any]) -> None:
        for cost, low, high, line in zip(obj, lb, ub, columns, strict=True):
            made = Thing(obj=cost, lb=low, ub=high if high < INFINITY else np.inf)
            self.columns.append(made)
            for at, value in zip(line.ind, line.val, strict=True):
                self.entry(self.rows[at], made, value)

    def _solve(self) -> None:
        optimal, objective, x, y = self._solved()
        self.solution.get_status = lambda: 1 if optimal else 3
        self.solution.get_values, self.solution.get_dual_values = lambda: x, lambda: y
        self.solution.get_objective_value = lambda: objective


cplex = types.SimpleNamespace(
    Cplex=Cplex, infinity=1e20, SparsePair=lambda ind, val: types.SimpleNamespace(ind=ind, val=val)
)
