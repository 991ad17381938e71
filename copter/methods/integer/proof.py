"""A proof of a mixed-integer program's answer: a small tree of our own, written for ``copter verify``.

docs/method/integer.md, "A proof on request".
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor, inf, nextafter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter.methods.integer.vipr import SUFFIX, certificate
from copter.methods.solve import solve_relaxation
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Status
from copter.runtime.errors import InvalidDataError
from copter.runtime.settings import Settings
from copter.storage.disk import PathLike
from copter.storage.files import write_atomically
from copter.verify.tree import FORMAT, Problem

Floats = NDArray[np.float64]

MOST_NODES = 5_000  # most nodes of a proof's tree
MOST_ENTRIES = 200_000  # most entries of a matrix for which a proof is written
ENOUGH = Fraction(1, 10**6)  # tolerance of a leaf's bound against the point's objective, in units of 1 + |objective|
WHOLE = 1e-6  # a value this close to a whole number counts as whole


def hexes(values: Any) -> list[str]:
    """Return doubles as exact hexadecimal text."""
    return [float(value).hex() for value in values]


def written(lp: LinearProgram) -> dict[str, Any]:
    """Return the program in the form used in a proof file."""
    at = lp.A.tocoo()
    return {
        "format": FORMAT,
        "sense": lp.sense,
        "offset": float(lp.offset).hex(),
        "cost": hexes(lp.c),
        "rows": [hexes(each) for each in zip(lp.row_lower, lp.row_upper, strict=True)],
        "columns": [hexes(each) for each in zip(lp.col_lower, lp.col_upper, strict=True)],
        "whole": [bool(each) for each in lp.integrality],
        "entries": [
            [int(i), int(j), float(v).hex()] for i, j, v in zip(at.coords[0], at.coords[1], at.data, strict=True)
        ],
    }


@dataclass
class Tree:
    """A branching tree, grown until a bound of every leaf proves that the leaf has no point better than the given one,
    up to the tolerance.

    Attributes
    ----------
    stop : callable
        Returns True when time is up.
    nodes : list of dict
        Nodes as they are written to the file; the first is the root.
    why : str
        Why there is no proof; empty if there is one.
    """

    lp: LinearProgram
    x: Floats
    settings: Settings
    most_nodes: int
    stop: Callable[[], bool]
    told: dict[str, Any] = field(default_factory=dict)
    nodes: list[dict[str, Any]] = field(default_factory=list)
    why: str = ""

    def __post_init__(self) -> None:
        self.told = written(self.lp)
        self.problem = Problem(self.told)
        self.value = self.problem.value([Fraction(v) for v in self.x])
        self.bound: Fraction | None = None

    def grow(self) -> None:
        """Branch until there is a proof or a reason why there is none."""
        self.nodes.append({})
        waiting = [(0, self.lp.col_lower.copy(), self.lp.col_upper.copy())]
        while waiting and not self.why:
            at, low, high = waiting.pop()
            leaf, column, k = self.look(low, high)
            if leaf is not None:
                self.nodes[at] = leaf
            elif column < 0:
                self.why = "rounding leaves a leaf without a proof"
            elif len(self.nodes) + 2 > self.most_nodes:
                self.why = f"there is none within {self.most_nodes:,} nodes"
            elif self.stop():
                self.why = f"there is none after {len(self.nodes):,} nodes, when the time was over"
            else:
                self.nodes[at] = {"column": column, "at": k, "down": len(self.nodes), "up": len(self.nodes) + 1}
                below, above = high.copy(), low.copy()
                below[column], above[column] = k, k + 1
                waiting += [(len(self.nodes), low, below), (len(self.nodes) + 1, above, high)]
                self.nodes += [{}, {}]

    def look(self, low: Floats, high: Floats) -> tuple[dict[str, Any] | None, int, int]:
        """Return (leaf, -1, 0) for a proven box, or (None, column, k) to branch on; column -1 if none is available."""
        if np.any(low > high):
            return {"prices": hexes(np.zeros(self.lp.shape[0]))}, -1, 0
        lp = self.lp
        part = LinearProgram(lp.c, lp.A, lp.row_lower, lp.row_upper, low, high, sense=lp.sense, offset=lp.offset)
        found = solve_relaxation(part, self.settings)
        box = [
            (None if a == -inf else Fraction(a), None if b == inf else Fraction(b))
            for a, b in zip(low.tolist(), high.tolist(), strict=True)
        ]
        if found.status is Status.PRIMAL_INFEASIBLE and found.ray is not None:
            ray = hexes(found.ray)
            if self.is_empty(ray, box):
                return {"ray": ray}, -1, 0
        elif found.status is Status.OPTIMAL:
            prices = hexes(found.y)
            least = self.problem.least(prices, box, True)
            if least is not None and least >= self.value - ENOUGH * (1 + abs(self.value)):
                self.bound = least if self.bound is None else min(self.bound, least)
                return {"prices": prices}, -1, 0
        return None, *self.branching(found.x if found.status is Status.OPTIMAL else None, low, high)

    def is_empty(self, ray: list[str], box: Any) -> bool:
        """Whether a ray proves that a box contains no point."""
        value = self.problem.least(ray, box, False)
        return value is not None and value > 0

    def branching(self, x: Floats | None, low: Floats, high: Floats) -> tuple[int, int]:
        """Return the column farthest from a whole number, or the widest one; -1 if all integer columns are fixed."""
        open_ = np.flatnonzero(self.lp.integrality & (low < high))
        if not len(open_):
            return -1, 0
        if x is not None:
            away = np.abs(x[open_] - np.round(x[open_]))
            if away.max() > WHOLE:
                column = int(open_[np.argmax(away)])
                return column, floor(x[column])
        width = np.minimum(high[open_], 1e9) - np.maximum(low[open_], -1e9)
        column = int(open_[np.argmax(width)])
        return column, floor(0.5 * (max(low[column], -1e9) + min(high[column], 1e9)))


def prove(
    lp: LinearProgram,
    x: Floats,
    path: PathLike,
    settings: Settings,
    most_nodes: int | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> str:
    """Write a proof that no integer point is better than x by more than 1e-6 of 1 + |objective|.

    Parameters
    ----------
    lp : LinearProgram
    x : ndarray (n,)
        A point with whole numbers in the integer columns.
    path : path
        Written completely or not at all. A path that ends in ".vipr" gets a certificate in the format VIPR 1.1.
    settings : Settings
        Settings of the relaxations.
    most_nodes : int, optional
        Most nodes of the tree; 5,000 by default.
    stop : callable, optional
        Called before every branching; True ends the search for a proof.

    Returns
    -------
    str
        Empty, or the reason why there is no proof and no file.

    Raises
    ------
    InvalidDataError
        For a program with semi-continuous columns, or one that is too large for a proof.
    """
    if lp.semicontinuous.any():
        raise InvalidDataError("a proof is for whole columns only, and the program has semi-continuous ones")
    if lp.A.nnz > MOST_ENTRIES:
        raise InvalidDataError(f"a proof is for up to {MOST_ENTRIES:,} entries, the matrix has {lp.A.nnz:,}")
    tree = Tree(lp, x, settings, MOST_NODES if most_nodes is None else most_nodes, stop)
    faults, exact = tree.problem.point_faults([Fraction(v) for v in x])
    if faults:
        return f"the point is not exactly one: {faults[0]}"
    certified = os.fsdecode(path).endswith(SUFFIX)
    if certified and not exact:
        return "the point's rows hold to 1e-6, and a certificate needs them to hold exactly"
    tree.grow()
    if tree.why:
        return tree.why
    sign = tree.problem.sign
    bound = tree.value if tree.bound is None else min(tree.bound, tree.value)
    shown = sign * float(bound + tree.problem.offset)
    while sign * Fraction(shown) - tree.problem.offset > bound:
        shown = nextafter(shown, -inf if sign > 0 else inf)
    objective = sign * float(tree.value + tree.problem.offset)
    told = {**tree.told, "x": hexes(x), "objective": objective.hex(), "bound": shown.hex(), "nodes": tree.nodes}
    write_atomically(path, [(certificate(told) if certified else json.dumps(told)).encode()])
    return ""
