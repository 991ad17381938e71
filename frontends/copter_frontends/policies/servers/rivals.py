"""Other schemes, in the same classes and loops: first fit, best fit, dot product, FGD, Protean's scores, CvxCluster's
prices, and HiGHS on the whole integer program of a round.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy.sparse as sp

from copter_frontends.policies.servers.board import Floats, Ints
from copter_frontends.policies.servers.errors import ServerError
from copter_frontends.policies.servers.fleet import Fleet
from copter_frontends.policies.servers.place_kernels import place_by_score, place_first
from copter_frontends.policies.servers.plan import PlacementPlan
from copter_frontends.policies.servers.policy import PlacementBase
from copter_frontends.policies.servers.price_kernels import place_by_prices
from copter_frontends.policies.servers.score_kernels import BEST_FIT, DOT_PRODUCT, FRAGMENTATION, PROTEAN
from copter_frontends.policies.servers.state_kernels import room
from copter_frontends.policy_kit.stage_clock import StageClock

RULES = {"best-fit": BEST_FIT, "dot-product": DOT_PRODUCT, "fgd": FRAGMENTATION, "protean": PROTEAN}
Order = Literal["arrival", "worth"]


def by_worth(fleet: Fleet, tasks: Ints) -> Ints:
    """Return tasks in order of worth per share of the servers, the largest first among equals."""
    whole = np.maximum(fleet.capacity[fleet.board.kind].sum(axis=0), 1)
    need = np.column_stack((fleet.shapes.need, fleet.shapes.gpus * fleet.shapes.milli))
    size = np.maximum((need / whole).max(axis=1), 1e-300)
    shape = fleet.jobs.shape[tasks]
    return tasks[np.lexsort((tasks, -size[shape], -(fleet.shapes.worth / size)[shape]))]


class ByRule(PlacementBase):
    """Each task in turn on the server that a rule likes best.

    Parameters
    ----------
    fleet : Fleet
    rule : str
        A key of RULES, or ``first-fit``.
    order : {"arrival", "worth"}
        In which order tasks are taken: by arrival, or by worth per share of the servers.
    """

    def __init__(self, fleet: Fleet, rule: str, order: Order = "worth") -> None:
        super().__init__(fleet)
        self.rule, self.order = rule, order

    def plan(self, waiting: Ints) -> PlacementPlan:
        """Start waiting tasks and return what was done."""
        clock, fleet = StageClock(), self.fleet
        tasks, refused = self.possible(waiting)
        fleet.reserve(2 * len(tasks))
        order = tasks if self.order == "arrival" else by_worth(fleet, tasks)
        if self.rule == "first-fit":
            place_first(fleet.board, fleet.shapes, fleet.jobs, order, fleet.mark)
        else:
            prices = np.zeros(fleet.capacity.shape[1])
            place_by_score(
                RULES[self.rule], fleet.board, fleet.shapes, prices, fleet.capacity, fleet.jobs, order, fleet.mark
            )
        clock.end("shim")
        return self.done(tasks, refused, -1, clock)


class CvxCluster(PlacementBase):
    """The method of CvxCluster, written anew from its paper: prices of every server from a relaxation, then greedy.

    The relaxation has a share of every waiting shape on every server with room (grouped by equal free amounts, which
    changes nothing in it), and is solved from nothing each round by HiGHS's interior point method. Tasks are taken by
    worth per share of the servers, and each goes to the server with room where its needs cost least at the prices.
    """

    def plan(self, waiting: Ints) -> PlacementPlan:
        """Start waiting tasks and return what was done."""
        clock, fleet = StageClock(), self.fleet
        tasks, refused = self.possible(waiting)
        fleet.reserve(2 * len(tasks))
        home = fleet.board.state.copy()
        price = self._prices(np.bincount(fleet.jobs.shape[tasks], minlength=len(fleet.names)))
        clock.end("solve")
        per_server = np.where((home >= 0)[:, None], price[home], 0.0)
        place_by_prices(fleet.board, fleet.shapes, fleet.jobs, per_server, by_worth(fleet, tasks), fleet.mark)
        clock.end("shim")
        return self.done(tasks, refused, -1, clock)

    def _prices(self, asked: Ints) -> Floats:
        """Return the price of every dimension on every class of servers."""
        from scipy.optimize import linprog

        fleet, board = self.fleet, self.fleet.board
        states = np.flatnonzero(board.state_count[: board.made[0]] > 0)
        dims = fleet.capacity.shape[1]
        price = np.zeros((len(board.state_kind), dims))
        program = relaxation(fleet, asked, states)
        if program is None:
            return price
        cost, rows, upper, _ = program
        found = linprog(-cost, A_ub=rows, b_ub=upper, bounds=(0, None), method="highs-ipm")
        if found.status != 0:
            raise ServerError(f"CvxCluster's relaxation was not solved: {found.message}")
        price[states] = np.maximum(-found.ineqlin.marginals[len(asked) :].reshape(len(states), dims), 0.0)
        return price


def relaxation(
    fleet: Fleet, asked: Ints, states: Ints, whole: bool = False
) -> tuple[Floats, sp.csr_array, Floats, tuple[Ints, Ints]] | None:
    """Return (worths, rows, upper bounds, (shape, class) of every column) of the round's relaxation; None if nothing
    fits. Rows are the shapes', then each class's dimensions with the GPUs last.

    Parameters
    ----------
    whole : bool
        Whether `states` are single servers rather than classes.
    """
    board, shapes, dims = fleet.board, fleet.shapes, fleet.capacity.shape[1]
    shape, place = [], []
    for at, state in enumerate(states.tolist()):
        kind, free, gpu = (
            board.kind if whole else board.state_kind,
            board.free if whole else board.state_free,
            (board.gpu if whole else board.state_gpu),
        )
        for k in np.flatnonzero((asked > 0) & shapes.allowed[:, kind[state]]).tolist():
            if room(shapes.need[k], shapes.gpus[k], shapes.milli[k], free[state], gpu[state]) > 0:
                shape.append(k)
                place.append(at)
    if not shape:
        return None
    own, on = np.array(shape, dtype=np.int64), np.array(place, dtype=np.int64)
    need = np.column_stack((shapes.need, shapes.gpus * shapes.milli)).astype(np.float64)
    columns, n = np.arange(len(own)), len(asked)
    row = np.concatenate((own, (n + on[:, None] * dims + np.arange(dims)).ravel()))
    value = np.concatenate((np.ones(len(own)), need[own].ravel()))
    rows = sp.csr_array(
        (value, (row, np.concatenate((columns, np.repeat(columns, dims))))), shape=(n + len(states) * dims, len(own))
    )
    if whole:
        free = np.column_stack((board.free[states], board.gpu[states].sum(axis=1)))
    else:
        free = np.column_stack((board.state_free[states], board.state_gpu[states].sum(axis=1)))
        free = free * board.state_count[states, None]
    return (
        shapes.worth[own].astype(np.float64),
        rows,
        np.concatenate((asked, free.ravel())).astype(np.float64),
        (own, on),
    )


class Milp(PlacementBase):
    """HiGHS on the whole integer program of the round, from nothing: as many tasks of every shape on every server.

    Raises
    ------
    ServerError
        From `plan`, for parts of GPUs or groups, which this program does not hold.
    """

    def __init__(self, fleet: Fleet, time_limit_s: float = 60.0) -> None:
        super().__init__(fleet)
        self.time_limit_s = time_limit_s
        if (fleet.shapes.milli[fleet.shapes.gpus > 0] < 1000).any():
            raise ServerError("the MILP does not hold parts of GPUs: take another scheme")

    def plan(self, waiting: Ints) -> PlacementPlan:
        """Start waiting tasks and return what was done."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        clock, fleet = StageClock(), self.fleet
        tasks, refused = self.possible(waiting)
        if (fleet.jobs.group[tasks] >= 0).any():
            raise ServerError("the MILP does not hold groups with anti-affinity: take another scheme")
        fleet.reserve(2 * len(tasks))
        asked = np.bincount(fleet.jobs.shape[tasks], minlength=len(fleet.names))
        servers = np.flatnonzero(fleet.board.state >= 0)
        program = relaxation(fleet, asked, servers, whole=True)
        bound = 0
        if program is not None:
            cost, rows, upper, (own, on) = program
            found = milp(
                -cost,
                constraints=LinearConstraint(rows, -np.inf, upper),
                bounds=Bounds(0, np.inf),
                integrality=np.ones(len(cost)),
                options={"time_limit": self.time_limit_s, "mip_rel_gap": 1e-3},
            )
            bound = int(np.floor(-found.mip_dual_bound + 1e-6)) if found.mip_dual_bound is not None else -1
            clock.end("solve")
            if found.x is not None:
                self._start(tasks, own, servers[on], np.rint(found.x).astype(np.int64))
        clock.end("shim")
        return self.done(tasks, refused, bound, clock)

    def _start(self, tasks: Ints, shape: Ints, server: Ints, count: Ints) -> None:
        """Start as many tasks of each shape on each server as the program says."""
        fleet = self.fleet
        queues = {k: tasks[fleet.jobs.shape[tasks] == k].tolist()[::-1] for k in np.unique(shape).tolist()}
        chosen = [
            (queues[k].pop(), s)
            for k, s, n in zip(shape.tolist(), server.tolist(), count.tolist(), strict=True)
            for _ in range(n)
        ]
        for task, at in chosen:
            fleet.start(task, at)
