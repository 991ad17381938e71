"""Models with concave worths without copter: their numbers, their values, and Clarabel's optimum at 1e-8."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, log

import clarabel
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter import worth
from copter.problem.worth import Worth

Floats = NDArray[np.float64]
EXACT = 1e-8


@dataclass(frozen=True)
class Curve:
    """A worth by its formula: "log" (weight, floor), "power" (alpha, weight, floor), "quadratic" (slope, curvature),
    "points" ((z, worth), ...), "lines" ((slope, value at zero), ...).
    """

    kind: str
    numbers: tuple[float, ...] | tuple[tuple[float, float], ...]

    def made(self) -> Worth:
        """Return the same by copter's makers."""
        if self.kind == "points":
            return worth.piecewise(self.numbers)  # type: ignore[arg-type]
        if self.kind == "lines":
            return worth.minimum(self.numbers)  # type: ignore[arg-type]
        return getattr(worth, self.kind)(*self.numbers)  # type: ignore[no-any-return]

    def lines(self) -> Floats:
        """Return (slope, value at zero) of the lines whose least is the worth."""
        table = np.array(self.numbers)
        if self.kind == "lines":
            return table
        slopes = np.diff(table[:, 1]) / np.diff(table[:, 0])
        return np.c_[slopes, table[:-1, 1] - slopes * table[:-1, 0]]

    def value(self, z: float) -> float:
        """Return the worth of a total."""
        numbers = self.numbers
        if self.kind in ("points", "lines"):
            slopes, values = self.lines().T
            return float((slopes * z + values).min())
        if self.kind == "quadratic":
            return numbers[0] * z - 0.5 * numbers[1] * z * z  # type: ignore[operator]
        base = z + numbers[-1]  # type: ignore[operator]
        if self.kind == "log":
            return numbers[0] * log(base) if base > 0.0 else -inf  # type: ignore[operator]
        alpha, weight, _ = numbers
        if base <= 0.0:
            return 0.0 if alpha < 1.0 else -inf  # type: ignore[operator]
        return weight * base ** (1.0 - alpha) / (1.0 - alpha)  # type: ignore[operator]


@dataclass
class Job:
    """A request: cost (n,), usage (rows, n), its limit, whether it must take all of it, its worth and rates."""

    cost: Floats
    usage: Floats
    limit: float
    exact: bool
    curve: Curve | None
    rates: Floats | None


@dataclass
class Book:
    """A model's numbers: counts (rows,), jobs by name, a constant."""

    counts: Floats
    jobs: dict[int, Job] = field(default_factory=dict)
    offset: float = 0.0

    def value(self, x: dict[int, Floats]) -> float:
        """Return what a point is worth."""
        total = self.offset
        for name, job in self.jobs.items():
            total += float(job.cost @ x[name])
            total += 0.0 if job.curve is None else job.curve.value(float(job.rates @ x[name]))
        return total

    def violation(self, x: dict[int, Floats]) -> float:
        """Return by how much a point breaks a row, a limit or a bound, relative to what the row allows."""
        used = sum((job.usage @ x[name] for name, job in self.jobs.items()), np.zeros(len(self.counts)))
        worst = float(((used - self.counts) / (1.0 + self.counts)).max(initial=0.0))
        for name, job in self.jobs.items():
            over = float(x[name].sum()) - job.limit
            worst = max(worst, (abs(over) if job.exact else over) / (1.0 + job.limit), -float(x[name].min()))
        return worst

    def starved(self) -> list[int]:
        """Return the jobs that their worth values at -inf whatever they are given."""
        found = []
        for name, job in self.jobs.items():
            if job.curve is not None and job.curve.value(0.0) == -inf:
                closed = ((job.usage > 0.0) & (self.counts <= 0.0)[:, None]).any(axis=0)
                if job.limit <= 0.0 or not (job.rates * ~closed).any():  # type: ignore[operator]
                    found.append(name)
        return found

    def mended(self, x: dict[int, Floats]) -> dict[int, Floats]:
        """Return a point made to keep to rows and limits by less of each column, to the last digit but two."""
        x = {name: np.maximum(part, 0.0) for name, part in x.items()}
        used = sum((job.usage @ x[name] for name, job in self.jobs.items()), np.zeros(len(self.counts)))
        share = np.minimum(self.counts / np.where(used > 0.0, used, np.inf), 1.0)
        share[used <= self.counts] = 1.0
        found = {}
        for name, job in self.jobs.items():
            part = x[name] * np.where(job.usage > 0.0, share[:, None], 1.0).min(axis=0, initial=1.0)
            found[name] = part * min(1.0, job.limit / max(float(part.sum()), 1e-300)) * (1.0 - 1e-14)
        return found

    def optimum(self, tolerance: float = EXACT) -> tuple[str, dict[int, Floats]]:
        """Return (Clarabel's status, its point)."""
        return Cone(self).solved(tolerance)


class Cone:
    """A book as Clarabel's program, min q'x + x'Px/2, Ax + s = b, s in cones: shares, then totals, then worths."""

    def __init__(self, book: Book) -> None:
        self.book, self.q, self.p = book, [], []
        self.rows: dict[str, list[tuple[dict[int, float], float]]] = {"zero": [], "positive": []}
        self.cones: list[tuple[object, list[tuple[dict[int, float], float]]]] = []
        self.of: dict[int, list[int]] = {}
        used: list[dict[int, float]] = [{} for _ in book.counts]
        for name, job in book.jobs.items():
            mine = self.of[name] = [self.variable(-cost) for cost in job.cost.tolist()]
            for at, value in enumerate(mine):
                self.rows["positive"].append(({value: -1.0}, 0.0))
                for row in np.flatnonzero(job.usage[:, at]).tolist():
                    used[row][value] = float(job.usage[row, at])
            self.rows["zero" if job.exact else "positive"].append((dict.fromkeys(mine, 1.0), job.limit))
            if job.curve is not None:
                z = self.variable(0.0)
                self.rows["zero"].append(({**dict(zip(mine, job.rates.tolist(), strict=True)), z: -1.0}, 0.0))  # type: ignore[union-attr]
                self.add(job.curve, z)
        self.rows["positive"] += list(zip(used, book.counts.tolist(), strict=True))

    def variable(self, cost: float, curvature: float = 0.0) -> int:
        """Return a new variable's number."""
        self.q.append(cost)
        self.p.append(curvature)
        return len(self.q) - 1

    def add(self, curve: Curve, z: int) -> None:
        """Add a worth of the total z."""
        numbers = curve.numbers
        if curve.kind == "quadratic":
            self.q[z], self.p[z] = -numbers[0], numbers[1]  # type: ignore[operator]
        elif curve.kind in ("points", "lines"):
            t = self.variable(-1.0)
            self.rows["positive"] += [({t: 1.0, z: -slope}, value) for slope, value in curve.lines().tolist()]
        elif curve.kind == "log":
            weight, floor = numbers
            t = self.variable(-weight)  # type: ignore[operator]
            self.cones.append((clarabel.ExponentialConeT(), [({t: -1.0}, 0.0), ({}, 1.0), ({z: -1.0}, floor)]))  # type: ignore[list-item]
        else:
            alpha, weight, floor = numbers
            t = self.variable(-weight / (1.0 - alpha))  # type: ignore[operator]
            base, own = ({z: -1.0}, floor), ({t: -1.0}, 0.0)
            if alpha < 1.0:  # type: ignore[operator]
                self.cones.append((clarabel.PowerConeT(1.0 - alpha), [base, ({}, 1.0), own]))  # type: ignore[operator, list-item]
            else:
                self.cones.append((clarabel.PowerConeT(1.0 / alpha), [own, base, ({}, 1.0)]))  # type: ignore[operator, list-item]

    def solved(self, tolerance: float) -> tuple[str, dict[int, Floats]]:
        """Return (status, point)."""
        kinds = [clarabel.ZeroConeT(len(self.rows["zero"])), clarabel.NonnegativeConeT(len(self.rows["positive"]))]
        kinds = [kind for kind, rows in zip(kinds, self.rows.values(), strict=True) if rows]
        every = [*self.rows["zero"], *self.rows["positive"], *(row for _, rows in self.cones for row in rows)]
        entries = [(at, column, value) for at, (row, _) in enumerate(every) for column, value in row.items()]
        at, columns, values = zip(*entries, strict=True)
        matrix = sp.csc_matrix((values, (at, columns)), shape=(len(every), len(self.q)))
        settings = clarabel.DefaultSettings()
        settings.verbose, settings.max_iter = False, 400
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
        curvature = sp.csc_matrix(sp.diags(self.p))
        sides = np.array([side for _, side in every])
        kinds += [kind for kind, _ in self.cones]  # type: ignore[misc]
        found = clarabel.DefaultSolver(curvature, np.array(self.q), matrix, sides, kinds, settings).solve()
        return str(found.status), {name: np.array(found.x)[mine] for name, mine in self.of.items()}
