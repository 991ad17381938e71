"""Cells, for slow connections: each cell solves independently, and prices move shared capacity between them (R5 to
R8).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.methods.solve import solve
from copter.model.model import Model
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Solution, Status
from copter.runtime.errors import InvalidDataError
from copter.runtime.settings import Settings
from copter.session.session import Session

Floats = NDArray[np.float64]
MARKET = "copter: capacity bought and sold"  # id of the request that trades with the other cells

TOLERANCE = 1e-3  # relative gap of all cells together
CLOSER = 0.03  # tolerance of one cell's own solves, as a share of TOLERANCE
SAME = 1e-9  # relative excess of the first shares over the counts that counts as rounding
# The next prices lie at these shares of the way from the prices of the best bound to the master's duals.
TOWARDS = (0.1, 0.3, 1.0)


@dataclass(frozen=True)
class Proposal:
    """A plan that a cell proposes: its worth and its use of the shared resources.

    Attributes
    ----------
    worth : float
        In the signs of the minimisation.
    usage : ndarray (m,)
    """

    worth: float
    usage: Floats


@dataclass(frozen=True)
class Turn:
    """A cell's answer in one round trip.

    Attributes
    ----------
    planned : Proposal
        The cell's optimum with its own capacity.
    prices : ndarray (m,)
        Prices of that plan, at least zero.
    wished : list of Proposal
        The cell's optima if it may trade capacity, one for each of the prices asked.
    bounds : list of float
        For each wish, a lower bound on its cost including the price of the capacity (equation R6).
    """

    planned: Proposal
    prices: Floats
    wished: list[Proposal]
    bounds: list[float]


class Cell:
    """One cell: a session whose model has rows for the shared resources, and a market for them.

    Parameters
    ----------
    model : Model
        Its requests use shared resources and the cell's own. The coordinator sets the counts of the shared ones.
    shared : sequence of ids (m,)
    settings : Settings
    """

    def __init__(self, model: Model, shared: Sequence[Hashable], settings: Settings) -> None:
        refuse_lower_bounds(model, shared)
        self.session, self.shared = Session(model, settings), list(shared)
        self.sign = 1.0 if model.sense == "min" else -1.0
        usage = -sp.eye_array(len(self.shared), format="csc")
        model.add_request(
            MARKET, np.zeros(len(self.shared)), usage, resources=self.shared, limit=np.inf, lower=0.0, upper=0.0
        )

    def turn(self, capacity: Floats, prices: Sequence[Floats], most: Floats) -> Turn:
        """Solve with a capacity, and report the demand at each of several prices, limited by the total capacity.

        Parameters
        ----------
        capacity : ndarray (m,)
            The cell's share of every shared resource.
        prices : sequence of ndarray (m,)
            Prices per unit, as minimised; at least zero.
        most : ndarray (m,)
            Total units of every shared resource.
        """
        model = self.session.model
        nothing = np.zeros(len(capacity))
        with model.batch():
            model.update_counts(self.shared, capacity)
            model.update_bounds(MARKET, nothing, nothing)
        planned = self.solved()
        plan, own = self.proposal(planned, capacity), np.maximum(-self.sign * planned.prices(self.shared), 0.0)
        model.update_bounds(MARKET, -capacity, most - capacity)
        wished, bounds = [], []
        for y in prices:
            model.update_cost(MARKET, self.sign * y)
            solution = self.solved()
            wish = self.proposal(solution, capacity)
            wished.append(Proposal(wish.worth - float(y @ solution.of(MARKET)), wish.usage))
            bounds.append(self.sign * solution.bound + float(y @ capacity))
        return Turn(plan, own, wished, bounds)

    def solved(self) -> Solution:
        """Solve the current model; raises an error if it has no optimum."""
        solution = self.session.solve()
        if solution.status is not Status.OPTIMAL:
            raise InvalidDataError(f"a cell's program ended {solution.status.value}: cells need a plan for any share")
        return solution

    def proposal(self, solution: Solution, capacity: Floats) -> Proposal:
        """Return the worth of a solution and its use of the shared capacity, at most the cell's share after trading."""
        ledger, ws = self.session.model.ledger, self.session._iterate.ws
        bought = solution.of(MARKET)
        ws.gather(ledger.matrix)
        used = ws.activity(ledger.matrix.n_rows)[[ledger.row_of[resource] for resource in self.shared]] + bought
        return Proposal(self.sign * solution.objective, np.clip(used, 0.0, capacity + bought))


@dataclass(frozen=True)
class Trip:
    """The state of all cells after a round trip.

    Attributes
    ----------
    objective, bound : float
        Best plan and best bound of all cells so far, in the sense of the models.
    gap : float
        |objective - bound| / max(1, |objective|).
    sent, received : int
        Bytes sent to the cells and received from them in this round trip.
    """

    objective: float
    bound: float
    gap: float
    sent: int
    received: int


class Cells:
    """Many cells, and the coordinator that moves capacity between them.

    In every round trip each cell gets a capacity and prices. It answers with its optimum for that capacity, which gives
    a plan, and with its optimum if it could trade capacity at the prices, which gives a bound. A small master (equation
    R7) takes the best mixture of all proposals so far: the mixture gives the next capacities, and the master's duals
    the next prices. This is Van Roy's cross decomposition (Mathematical Programming 25, 1983) with a master over both
    kinds of proposals.

    Parameters
    ----------
    models : sequence of Model
        One model per cell, all with the same sense; they are edited.
    counts : mapping of id to float
        The shared resources and their total units over all cells.
    settings : Settings, optional
        Settings of the cells' solves; by default with a tolerance small enough for the goal.
    capacity : sequence of ndarray (m,), optional
        Each cell's share of the counts in the first round trip; equal parts by default.

    Raises
    ------
    InvalidDataError
        If there is no model, the models differ in sense, a shared resource has a lower bound, a count is negative or
        not finite, a cell's first share is missing, or the first shares exceed the counts.
    """

    def __init__(
        self,
        models: Sequence[Model],
        counts: Mapping[Hashable, float],
        settings: Settings | None = None,
        capacity: Sequence[Floats] | None = None,
    ) -> None:
        if not models:
            raise InvalidDataError("there are no cells: give at least one model")
        if len({model.sense for model in models}) != 1:
            raise InvalidDataError("the cells' models must all be maximised, or all minimised")
        settings = settings or Settings(tolerance=CLOSER * TOLERANCE)
        self.shared, self.counts = list(counts), np.array(list(counts.values()), dtype=np.float64)
        for resource, count in counts.items():
            if not 0.0 <= count < np.inf:
                raise InvalidDataError(f"the count of {resource!r} is {count}: give a number of zero or more")
        first = checked_shares(capacity, self.counts, len(models))
        for model in models:
            refuse_lower_bounds(model, self.shared)
        self.cells = [Cell(model, self.shared, settings) for model in models]
        self.sign = self.cells[0].sign
        self.capacity: list[Floats] = first
        self.planned: list[Floats] = list(self.capacity)
        self.prices = [np.zeros(len(self.shared))]
        self.proposals: list[list[Proposal]] = [[] for _ in models]
        self.best, self.bound = np.inf, -np.inf
        self.bound_at = self.prices[0]
        self.trips: list[Trip] = []

    def solve(self, tolerance: float = TOLERANCE, most_trips: int = 100) -> Trip:
        """Make round trips until the certified gap of all cells together is within a tolerance.

        :attr:`trips` holds each trip's figures. With equal first shares, the first trip's objective is that of POP-k.
        """
        while len(self.trips) < most_trips:
            trip = self.trip()
            if trip.gap <= tolerance:
                break
        return self.trips[-1]

    def trip(self) -> Trip:
        """Do one round trip."""
        turns = [
            cell.turn(mine, self.prices, self.counts) for cell, mine in zip(self.cells, self.capacity, strict=True)
        ]
        worth = sum(turn.planned.worth for turn in turns)
        if worth < self.best:
            self.best, self.planned = worth, list(self.capacity)
        asked = len(self.prices)
        for at, y in enumerate(self.prices):
            bound = sum(turn.bounds[at] for turn in turns) - float(y @ self.counts)
            if bound > self.bound:
                self.bound, self.bound_at = bound, y
        for known, turn in zip(self.proposals, turns, strict=True):
            known += [turn.planned, *turn.wished]
        self._next()
        # with two proposals per cell the master's duals mean little, so the cells' own prices are averaged
        if not self.trips:
            self.prices = [np.mean([turn.prices for turn in turns], axis=0)]
        m, k = len(self.shared), len(self.cells)
        objective, outward = self.sign * self.best, self.sign * self.bound
        gap = abs(objective - outward) / max(1.0, abs(objective))
        sent, received = 8 * m * (1 + asked) * k, 8 * (1 + 2 * m + asked * (2 + m)) * k
        self.trips.append(Trip(objective, outward, gap, sent, received))
        return self.trips[-1]

    def finish(self) -> list[Solution]:
        """Return every cell's solution with the capacity of the best plan."""
        return [cell_solution(cell, capacity) for cell, capacity in zip(self.cells, self.planned, strict=True)]

    def _next(self) -> None:
        """Solve the master (equation R7) for the next capacities, and set the next prices on the way to its duals
        (R8).
        """
        sizes = [len(known) for known in self.proposals]
        every = [proposal for known in self.proposals for proposal in known]
        owner = np.repeat(np.arange(len(sizes)), sizes)
        usage = np.array([proposal.usage for proposal in every]).T
        sums = (owner[None, :] == np.arange(len(sizes))[:, None]).astype(np.float64)
        free = np.full(len(self.shared), -np.inf)
        program = LinearProgram(
            np.array([proposal.worth for proposal in every]),
            sp.csc_array(np.vstack((usage, sums))),
            np.concatenate((free, np.ones(len(sizes)))),
            np.concatenate((self.counts, np.ones(len(sizes)))),
        )
        # interior points give duals in the middle of the optimal ones
        found = solve(program, Settings(method="interior"))
        if found.status is not Status.OPTIMAL:
            return  # capacities and prices stay as they are for the next trip
        left = self.counts.copy()
        capacity = []
        for at in range(len(sizes)):
            share = np.clip(usage[:, owner == at] @ found.x[owner == at], 0.0, left)
            capacity.append(share)
            left = left - share
        self.capacity = [share + left / len(sizes) for share in capacity]
        duals = np.maximum(-found.y[: len(self.shared)], 0.0)
        self.prices = [self.bound_at + step * (duals - self.bound_at) for step in TOWARDS]


def cell_solution(cell: Cell, capacity: Floats) -> Solution:
    """Return a cell's optimum for a given capacity."""
    model, nothing = cell.session.model, np.zeros(len(capacity))
    with model.batch():
        model.update_counts(cell.shared, capacity)
        model.update_bounds(MARKET, nothing, nothing)
    return cell.solved()


def refuse_lower_bounds(model: Model, shared: Sequence[Hashable]) -> None:
    """Raise InvalidDataError if a shared resource has a lower bound."""
    for resource in shared:
        if model.lower_count(resource) != -np.inf:
            raise InvalidDataError(f"resource {resource!r} has a lower bound: cells share upper counts only")


def checked_shares(capacity: Sequence[Floats] | None, counts: Floats, cells: int) -> list[Floats]:
    """Return the first shares of the counts, equal by default; raises InvalidDataError if they are invalid."""
    if capacity is None:
        return [counts / cells] * cells
    found = [np.array(each, dtype=np.float64) for each in capacity]
    if len(found) != cells or any(each.shape != counts.shape for each in found):
        raise InvalidDataError(f"capacity must have {cells} shares, one a cell, of {len(counts)} numbers each")
    total = np.sum(found, axis=0)
    if any((each < 0.0).any() for each in found) or not (total <= counts * (1.0 + SAME)).all():
        raise InvalidDataError("the cells' first shares must be zero or more, and no more than the counts together")
    return found
