"""A concave program by linear programs in which worths are the least of their tangents (Kelley 1960; W15).

Slow and sure: for programs on which Newton's method stalls, because worths, rates or limits differ too much in size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.methods.worth.program import Part
from copter.methods.worth.requests import KINDS
from copter.methods.worth.solve import Answer, Newton
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Solution, Status
from copter.problem.worth import LOG, PIECES, POWER
from copter.runtime.settings import Settings

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_REQUESTS = 300  # of a program: 200 requests take a second, 1,000 more than a minute
MOST_ROUNDS = 100  # linear programs of a solve
FIRST = (1e-3, 1e-2, 0.1, 0.5, 1.0)  # where the first tangents touch, as shares of the largest total
LOWER = 0.1  # the next tangent's total over the lowest one's, where the point has nothing and that is worth -inf
ENOUGH = 0.01  # share of the gap that is wanted, spread over the requests, below which no tangent is added
SURE = 1e-10  # relative tolerance of the linear programs


class Tangents:
    """The linear program over the columns of the requests with columns, and a variable for the worth of each.

    Parameters
    ----------
    parts : dict
        See :class:`copter.methods.worth.program.WorthProgram`.
    lower, upper : ndarray (rows,)
    """

    def __init__(self, parts: Part, lower: Floats, upper: Floats) -> None:
        alive = np.flatnonzero(parts["count"] > 0)
        count = parts["count"][alive].astype(np.int64)
        first = np.append(0, np.cumsum(count))
        self.owner = np.repeat(np.arange(len(alive)), count)
        self.columns = np.repeat(parts["start"][alive] - first[:-1], count) + np.arange(first[-1])
        entries = np.diff(parts["entry"])[self.columns].astype(np.int64)
        until = np.cumsum(entries)
        entry = np.repeat(parts["entry"][self.columns] - (until - entries), entries) + np.arange(int(entries.sum()))
        n, m = len(self.columns), len(lower)
        usage = sp.csc_array((parts["value"][entry], parts["row"][entry], np.append(0, until)), shape=(m, n))
        sums = sp.csr_array((np.ones(n), (self.owner, np.arange(n))), shape=(len(alive), n))
        limit = parts["limit"][alive]
        self.matrix = sp.vstack((usage, sums), format="csr")
        self.row_lower = np.concatenate((lower, np.where(parts["idle"][alive] > 0, 0.0, limit)))
        self.row_upper = np.concatenate((upper, limit))
        self.cost, self.rate, self.limit = parts["cost"][self.columns], parts["rate"][self.columns], limit
        self.kind, self.curve = parts["kind"][alive], parts["curve"][alive]
        self.curved = np.flatnonzero((self.kind != KINDS[None]) & (self.kind != KINDS[PIECES]))
        self.worthy = np.flatnonzero(self.kind != KINDS[None])
        largest = limit * np.maximum.reduceat(np.append(self.rate, 0.0), first[:-1]) if len(alive) else limit
        self.lowest = np.where(largest > 0.0, largest, 1.0)
        self.request, self.slope, self.value = np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)
        for share in FIRST:
            self.touch(self.curved, share * self.lowest[self.curved])
        for at in np.flatnonzero(self.kind == KINDS[PIECES]).tolist():
            begin, pieces = int(parts["piece"][alive[at]]), int(parts["n_pieces"][alive[at]])
            slopes = parts["slopes"][begin : begin + pieces]
            ends = np.append(0.0, np.cumsum(parts["lengths"][begin : begin + pieces - 1]))
            worths = self.curve[at, 0] + np.append(0.0, np.cumsum(slopes[:-1] * np.diff(ends)))
            self._add(np.full(pieces, at), slopes, worths - slopes * ends)

    def _add(self, request: Ints, slope: Floats, value: Floats) -> None:
        self.request = np.concatenate((self.request, request))
        self.slope, self.value = np.concatenate((self.slope, slope)), np.concatenate((self.value, value))

    def touch(self, requests: Ints, z: Floats) -> None:
        """Add the tangents of these requests' worths at totals z > 0."""
        slope, worth = self.slopes(requests, z), self.worths(requests, z)
        good = np.isfinite(slope) & np.isfinite(worth)
        self._add(requests[good], slope[good], (worth - slope * z)[good])
        self.lowest[requests] = np.minimum(self.lowest[requests], z)

    def worths(self, requests: Ints, z: Floats) -> Floats:
        """Return u(z) of requests whose worth is curved."""
        kind, (a, floor, alpha) = self.kind[requests], self.curve[requests].T
        with np.errstate(all="ignore"):
            powers = a * (z + floor) ** (1.0 - alpha) / (1.0 - alpha)
            logs = a * np.log(z + floor)
            worth = np.where(kind == KINDS[POWER], powers, a * z - 0.5 * alpha * z * z)
            found: Floats = np.where(kind == KINDS[LOG], logs, worth)
        return found

    def slopes(self, requests: Ints, z: Floats) -> Floats:
        """Return u'(z) of requests whose worth is curved."""
        kind, (a, floor, alpha) = self.kind[requests], self.curve[requests].T
        with np.errstate(all="ignore"):
            steep = a * (z + floor) ** -alpha
        found: Floats = np.where((kind == KINDS[LOG]) | (kind == KINDS[POWER]), steep, a - alpha * z)
        return found

    def program(self) -> LinearProgram:
        """Return the linear program, a minimisation; its columns are those of the requests, then the worths."""
        n, worths, cuts = len(self.columns), len(self.worthy), len(self.request)
        number = np.full(len(self.kind), -1)
        number[self.worthy] = np.arange(worths)
        size = np.maximum(1.0, np.abs(self.slope))  # residuals of steep tangents count by their totals
        own = sp.csr_array((self.slope / size, (np.arange(cuts), self.request)), shape=(cuts, len(self.kind)))
        totals = sp.csr_array((self.rate, (self.owner, np.arange(n))), shape=(len(self.kind), n))
        above = sp.csr_array((1.0 / size, (np.arange(cuts), number[self.request])), shape=(cuts, worths))
        whole = sp.block_array(
            [[self.matrix, sp.csr_array((self.matrix.shape[0], worths))], [-(own @ totals), above]], format="csc"
        )
        return LinearProgram(
            c=-np.concatenate((self.cost, np.ones(worths))),
            A=whole,
            row_lower=np.concatenate((self.row_lower, np.full(cuts, -np.inf))),
            row_upper=np.concatenate((self.row_upper, self.value / size)),
            col_lower=np.concatenate((np.zeros(n), np.full(worths, -np.inf))),
            col_upper=np.concatenate((np.maximum(self.limit, 0.0)[self.owner], np.full(worths, np.inf))),
        )


def by_tangents(
    newton: Newton, best: Answer, settings: Settings, solve: Callable[[LinearProgram, Settings], Solution]
) -> Answer:
    """Return the answer of linear programs with more and more tangents, or `best` if they do not come to an optimum.

    Programs of many requests are not tried.

    Parameters
    ----------
    newton : Newton
        It judges the points and the prices.
    best : Answer
        Where Newton's method has come.
    settings : Settings
    solve : callable
        Solves a linear program.
    """
    passes, m = newton.program.passes, len(newton.upper)
    if np.count_nonzero(newton.program.parts["count"]) > MOST_REQUESTS:
        return best
    tangents = Tangents(newton.program.parts, newton.lower, newton.upper)
    for _ in range(MOST_ROUNDS):
        left = settings.time_limit_s - newton.watch.elapsed_s
        if newton.watch() or left <= 0.0:
            break
        found = solve(tangents.program(), replace(settings, tolerance=SURE, time_limit_s=left, method="auto"))
        if (
            found.status not in (Status.OPTIMAL, Status.NUMERICAL_ERROR)
            or not np.isfinite(np.append(found.x, found.y)).all()
        ):
            break  # a point that is nearly right is judged like any other
        x = np.zeros(len(passes.x))
        x[tangents.columns] = np.maximum(found.x[: len(tangents.columns)], 0.0)
        newton.keep(point=True)
        passes.take(x)
        answer = newton.judged(newton.clipped(-found.y[:m]), best.mu)
        if answer.gap <= newton.tolerance and newton.holds(answer):
            return newton.closed(answer, "optimal")
        totals = tangents.rate * found.x[: len(tangents.columns)]
        z = np.bincount(tangents.owner, totals, len(tangents.kind)).astype(np.float64)
        at = tangents.curved
        over = np.zeros(len(tangents.kind))
        over[tangents.worthy] = found.x[len(tangents.columns) :]
        worth = tangents.worths(at, z[at])
        wanted = ENOUGH * newton.tolerance * (1.0 + 2.0 * abs(newton.size)) / max(len(at), 1)
        poor = at[~(over[at] - worth <= wanted)]
        if not len(poor):
            break
        touching = np.where(z[poor] > LOWER * tangents.lowest[poor], z[poor], LOWER * tangents.lowest[poor])
        tangents.touch(poor, touching)
    newton.respond(best.y, best.mu)
    return newton.closed(newton.judged(best.y, best.mu), best.ended)
