"""Starting points of the interior-point method: shares of the blocks' limits, or Mehrotra's point (blocks.md, K4)."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.block_interior import BlockInterior
from copter.methods.blocks.program import BlockProgram
from copter.methods.path_following import LEAST_START, SMALL
from copter.problem.sums import inner

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

INSIDE = 0.1  # least distance of a row's starting activity from its bounds, as a share of the row's size
MOST_FREE = 0.01  # largest share of columns with neither a limit nor two bounds; with more, Mehrotra's start is used


class Method(Protocol):
    """Interface: the part of the interior-point method that a start uses."""

    program: BlockProgram
    state: BlockInterior
    bounded_below: Mask
    bounded_above: Mask
    fixed: Mask

    def factorise(self) -> None:
        """Factorise at the current weights."""

    def solve(self, right: Floats, y: Floats) -> None:
        """Solve with the factor."""

    def go_on(self) -> None:
        """Raise if the solve must stop."""


def start(method: Method) -> None:
    """Set the method's state to its starting point."""
    share = shares(method)
    if share is None:
        least_squares_start(method)
    else:
        share_start(method, share)


def shares(method: Method) -> Floats | None:
    """Return an equal share of the block's limit for every column; None if too few blocks have limits.

    It applies to programs with at most one private row per block, whose columns have lower bounds.
    """
    program, n, m = method.program, method.program.n_columns, method.program.n_rows
    counts, rows = np.diff(program.column_start), np.diff(program.private_start)
    if (rows > 1).any() or not np.isfinite(program.lower[:n]).all():
        return None
    limit = np.full(len(counts), np.inf)
    limit[rows == 1] = program.upper[n + m :]
    own = np.diff(program.own_start)
    weight = np.ones(n)
    weight[own == 1] = program.own_value
    room = np.full(n, np.inf)
    summed = int(program.column_start[-1])
    each = np.repeat(limit / (counts + 1.0), counts)
    room[:summed] = np.where((own[:summed] == 1) & (weight[:summed] > 0.0), each / np.abs(weight[:summed]), np.inf)
    room = np.minimum(room, 0.5 * (program.upper[:n] - program.lower[:n]))
    known = np.isfinite(room) & (room > 0.0)
    if (~known & ~method.fixed[:n]).mean() > MOST_FREE or not known.any():
        return None
    return program.lower[:n] + np.where(known, room, np.where(room > 0.0, LEAST_START, np.median(room[known])))


def share_start(method: Method, x: Floats) -> None:
    """Start from columns at their shares, with activities as near as bounds allow and equal complementarity products.

    A coupling row's product is larger, by the root of the number of columns per row, because its price must balance all
    these columns.
    """
    state, program, n = method.state, method.program, method.program.n_columns
    below, above = method.bounded_below, method.bounded_above
    lower, upper = np.where(below, program.lower, 0.0), np.where(above, program.upper, 0.0)
    activity, size = np.empty(state.n_all_rows), np.empty(state.n_all_rows)
    x = np.where(method.fixed[:n], program.lower[:n], x)
    state.product(x, activity)
    np.abs(activity, out=size)
    bound = np.maximum(np.where(below[n:], np.abs(lower[n:]), 0.0), np.where(above[n:], np.abs(upper[n:]), 0.0))
    size = np.maximum(size, bound)
    margin = INSIDE * np.where(size > 0.0, size, LEAST_START)
    margin = np.where(below[n:] & above[n:], np.minimum(margin, 0.25 * (upper - lower)[n:]), margin)
    activity = np.where(below[n:], np.maximum(activity, lower[n:] + margin), activity)
    activity = np.where(above[n:], np.minimum(activity, upper[n:] - margin), activity)
    point = np.concatenate((x, activity))
    point[method.fixed] = program.lower[method.fixed]
    worth = np.abs(program.cost) * np.abs(x - program.lower[:n])
    mu = middle_worth(worth) if (worth > 0.0).any() else LEAST_START
    state.x[:] = point
    product = np.full(len(point), mu)
    product[n : n + program.n_rows] *= max(1.0, n / max(program.n_rows, 1)) ** 0.5
    state.z[:] = np.where(below, product / np.where(below, point - lower, 1.0), 0.0)
    state.v[:] = np.where(above, product / np.where(above, upper - point, 1.0), 0.0)
    state.y[:] = (state.z - state.v)[n:]


def middle_worth(worth: Floats) -> float:
    """Return the worth such that all columns of smaller worth together hold half of the total worth."""
    ordered = np.sort(worth)
    before = np.cumsum(ordered)
    return float(ordered[np.searchsorted(before, 0.5 * before[-1])])


def least_squares_start(method: Method) -> None:
    """Start from Mehrotra's point: the least-squares primal and dual solutions, moved inside (equation I6)."""
    state, program, n = method.state, method.program, method.program.n_columns
    below, above = method.bounded_below, method.bounded_above
    lower, upper = np.where(below, program.lower, 0.0), np.where(above, program.upper, 0.0)
    boxed = below & above
    middle = np.where(boxed, 0.5 * (lower + upper), np.where(below, lower, upper))
    middle[method.fixed] = program.lower[method.fixed]
    weight = np.where(method.fixed, 0.0, np.where(boxed, 0.5, 1.0))
    state.set_weight(weight)
    method.factorise()
    left, usage = np.empty(state.n_all_rows), np.empty(n)
    state.product(middle, left)
    y = np.empty(state.n_all_rows)
    method.go_on()
    method.solve(middle[n:] - left, y)
    state.usage(y, usage)
    x = middle + weight * np.concatenate((usage, -y))
    cost = np.concatenate((program.cost, np.zeros(state.n_all_rows)))
    state.product(weight * cost, left)
    method.go_on()
    method.solve(left, y)
    state.usage(y, usage)
    method.go_on()
    place(method, x, cost - np.concatenate((usage, -y)), y)


def place(method: Method, x: Floats, reduced: Floats, y: Floats) -> None:
    """Move a primal and dual point inside its bounds."""
    state, program = method.state, method.program
    below, above = method.bounded_below, method.bounded_above
    lower, upper = np.where(below, program.lower, 0.0), np.where(above, program.upper, 0.0)
    least = min(float((x - lower)[below].min(initial=0.0)), float((upper - x)[above].min(initial=0.0)))
    up = max(-1.5 * least, 0.0)
    z, v = np.where(below, np.maximum(reduced, 0.0), 0.0), np.where(above, np.maximum(-reduced, 0.0), 0.0)
    one_sided = below ^ above
    wrong = np.where(one_sided, np.where(below, -reduced, reduced), 0.0)
    out = max(1.5 * float(wrong.max(initial=0.0)), 0.0)
    gap_low, gap_high = np.where(below, x - lower + up, 0.0), np.where(above, upper - x + up, 0.0)
    z, v = np.where(below, z + out, 0.0), np.where(above, v + out, 0.0)
    product = inner(gap_low, z) + inner(gap_high, v)
    up += 0.5 * product / max(float(z.sum() + v.sum()), SMALL)
    out += 0.5 * product / max(float(gap_low.sum() + gap_high.sum()), SMALL)
    up, out = max(up, LEAST_START), max(out, LEAST_START)
    boxed = below & above
    margin = np.minimum(up, 0.25 * (upper - lower))
    inside = np.where(boxed, np.clip(x, lower + margin, upper - margin), x)
    inside = np.where(below & ~above, np.maximum(x, lower + up), inside)
    inside = np.where(above & ~below, np.minimum(x, upper - up), inside)
    state.x[:] = np.where(method.fixed, program.lower, inside)
    state.z[:] = np.where(below, z + out, 0.0)
    state.v[:] = np.where(above, v + out, 0.0)
    state.y[:] = y
