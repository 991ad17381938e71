"""Slow, plain twins of the kernels, one loop a definition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from copter.methods.proximal.groups import Groups
from copter.methods.proximal.working_set import WorkingSet

Floats = NDArray[np.float64]


@dataclass
class Group:
    """One block of a small problem."""

    cost: Floats
    lower: Floats
    upper: Floats
    limit: float
    usage: Floats  # rows x columns
    center: Floats


@dataclass
class Flat:
    """The groups as the kernels take them."""

    start: NDArray[np.int32]
    limit: Floats
    cost: Floats
    lower: Floats
    upper: Floats
    entry_start: NDArray[np.int32]
    row: NDArray[np.int32]
    coefficient: Floats
    center: Floats

    @property
    def columns(self) -> Groups:
        """The record that the kernels read."""
        return Groups(
            self.start, self.limit, self.cost, self.lower, self.upper, self.entry_start, self.row, self.coefficient
        )


def flat(groups: list[Group]) -> Flat:
    """Flatten groups; entries that are zero are left out."""
    sizes = [len(group.cost) for group in groups]
    usage = np.hstack([group.usage for group in groups])
    rows, coefficients, starts = [], [], [0]
    for column in usage.T:
        at = np.flatnonzero(column)
        rows.append(at)
        coefficients.append(column[at])
        starts.append(starts[-1] + len(at))

    def joined(name: str) -> Floats:
        return np.concatenate([getattr(group, name) for group in groups]).astype(np.float64)

    return Flat(
        start=np.cumsum([0, *sizes]).astype(np.int32),
        limit=np.array([group.limit for group in groups]),
        cost=joined("cost"),
        lower=joined("lower"),
        upper=joined("upper"),
        entry_start=np.array(starts, dtype=np.int32),
        row=np.concatenate(rows).astype(np.int32),
        coefficient=np.concatenate(coefficients).astype(np.float64),
        center=joined("center"),
    )


def working_set(problem: Flat, x: Floats) -> WorkingSet:
    """A working set over the flat arrays, without a matrix behind it."""
    ws = WorkingSet()
    sizes = np.diff(problem.start)
    slot = np.repeat(np.arange(len(sizes)), sizes)
    ws.key = slot << 32 | np.concatenate([np.arange(size) for size in sizes])
    ws.x = x.copy()
    ws.allocate()
    ws.limit[:], ws.cost[:], ws.lower[:], ws.upper[:] = problem.limit, problem.cost, problem.lower, problem.upper
    ws.entry_start, ws.row, ws.coefficient = problem.entry_start, problem.row, problem.coefficient
    return ws


def projected(group: Group, y: Floats, sigma: float) -> tuple[Floats, float]:
    """argmin of the proximal Lagrangian over one block, and its value: bisection on the limit's multiplier."""
    reduced = group.cost - group.usage.T @ y
    target = group.center - sigma * reduced

    def at(multiplier: float) -> Floats:
        return np.clip(target - multiplier, group.lower, group.upper)

    x = at(0.0)
    if x.sum() > group.limit:
        highest = float(np.max(target - group.lower))
        x = at(brentq(lambda mu: at(mu).sum() - group.limit, 0.0, highest + 1.0, xtol=1e-15, rtol=1e-15))
    return x, float(reduced @ x + ((x - group.center) ** 2).sum() / (2.0 * sigma))


def augmented_lagrangian(
    x: Floats, usage: Floats, cost: Floats, center: Floats, sigma: float, y: Floats, penalty: Floats,
    row_lower: Floats, row_upper: Floats,
) -> float:  # fmt: skip
    """The function that coordinate descent goes down (equation A10), slacks minimised out."""
    activity = usage @ x
    slack = np.clip(activity - y / penalty, row_lower, row_upper)
    gap = activity - slack
    proximal = ((x - center) ** 2).sum() / (2.0 * sigma)
    return float(cost @ x + proximal - y @ gap + (penalty * gap**2).sum() / 2.0)
