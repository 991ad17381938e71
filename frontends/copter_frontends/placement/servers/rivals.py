"""Other schemes, in the same classes and loops: first fit, best fit, dot product, FGD, Protean's scores, CvxCluster's
prices, and HiGHS on the whole integer program of a round.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from copter.highs.exchange import to_highs
from copter.highs.milp import branch_and_bound
from copter_frontends.placement.servers.board import Floats, Ints
from copter_frontends.placement.servers.errors import ServerError
from copter_frontends.placement.servers.fleet import Fleet
from copter_frontends.placement.servers.pattern_kernels import useful_states
from copter_frontends.placement.servers.place_kernels import place_by_score, place_first
from copter_frontends.placement.servers.plan import PlacementPlan
from copter_frontends.placement.servers.policy import PlacementBase
from copter_frontends.placement.servers.price_kernels import place_by_prices
from copter_frontends.placement.servers.relaxation import relaxation_of
from copter_frontends.placement.servers.rooms import Rooms
from copter_frontends.placement.servers.score_kernels import BEST_FIT, DOT_PRODUCT, FRAGMENTATION, PROTEAN
from copter_frontends.vocabulary.stage_clock import StageClock

RULES = {"best-fit": BEST_FIT, "dot-product": DOT_PRODUCT, "fgd": FRAGMENTATION, "protean": PROTEAN}
Order = Literal["arrival", "worth"]


def by_worth(fleet: Fleet, tasks: Ints) -> Ints:
    """Return tasks in order of worth per share of the servers, the largest first among equals, shape by shape."""
    whole = np.maximum(fleet.capacity[fleet.board.kind].sum(axis=0), 1)
    need = np.column_stack((fleet.shapes.need, fleet.shapes.gpus * fleet.shapes.milli))
    size = np.maximum((need / whole).max(axis=1), 1e-300)
    shape = fleet.jobs.shape[tasks]
    return tasks[np.lexsort((tasks, shape, -size[shape], -(fleet.shapes.worth / size)[shape]))]


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

    The relaxation has a share of every waiting shape on every server with room and is solved from nothing each round by
    HiGHS's interior point method without crossover: prices of a vertex admit less. Tasks are taken by worth per share
    of the servers, and each goes to the server with room where its needs cost least at the prices.

    Parameters
    ----------
    fleet : Fleet
    by_server : bool
        Whether every server has its own columns, as in the paper. By default servers in one state share them, as in
        copter's own program: the relaxation is the same one, and smaller.
    """

    def __init__(self, fleet: Fleet, by_server: bool = False) -> None:
        super().__init__(fleet)
        self.by_server = by_server

    def plan(self, waiting: Ints) -> PlacementPlan:
        """Start waiting tasks and return what was done."""
        clock, fleet = StageClock(), self.fleet
        tasks, refused = self.possible(waiting)
        fleet.reserve(len(tasks))
        board = fleet.board
        asked = np.bincount(fleet.jobs.shape[tasks], minlength=len(fleet.names))
        states = useful_states(board, fleet.shapes, board.state_count, np.flatnonzero(asked))
        number = np.full(len(board.state_kind) + 1, -1, dtype=np.int64)
        number[states] = np.arange(len(states))
        room = number[board.state]
        servers = np.flatnonzero(room >= 0)  # on the others nothing that waits fits
        if len(servers):
            room, count = room[servers], board.state_count[states]
            if self.by_server:
                room, count, states = np.arange(len(servers)), np.ones(len(servers), np.int64), board.state[servers]
            own = Rooms(board.state_kind[states], board.state_free[states], board.state_gpu[states], count, room)
            price = self._prices(own, asked)[room]
            clock.end("solve")
            order = by_worth(fleet, tasks)
            place_by_prices(board, fleet.shapes, fleet.jobs, servers, price, order, fleet.mark)
        clock.end("shim")
        return self.done(tasks, refused, -1, clock)

    def _prices(self, rooms: Rooms, asked: Ints) -> Floats:
        """Return the price of every dimension in each room."""
        own = relaxation_of(rooms, self.fleet.shapes, asked)
        highs = to_highs(own.program)
        for option, value in (("solver", "ipm"), ("run_crossover", "off"), ("threads", 1)):
            highs.setOptionValue(option, value)
        highs.run()
        dual = np.array(highs.getSolution().row_dual)[len(own.waiting) :]
        if not len(dual):
            raise ServerError(f"CvxCluster's relaxation was not solved: {highs.getModelStatus()}")
        found: Floats = np.abs(dual.reshape(len(rooms.kind), -1)) / own.scale
        return found


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
        clock, fleet = StageClock(), self.fleet
        tasks, refused = self.possible(waiting)
        if (fleet.jobs.group[tasks] >= 0).any():
            raise ServerError("the MILP does not hold groups with anti-affinity: take another scheme")
        fleet.reserve(2 * len(tasks))
        asked = np.bincount(fleet.jobs.shape[tasks], minlength=len(fleet.names))
        board = fleet.board
        servers = np.flatnonzero(board.state >= 0)
        rooms = Rooms(
            board.kind[servers], board.free[servers], board.gpu[servers], np.ones(len(servers), np.int64), board.state
        )
        own = relaxation_of(rooms, fleet.shapes, asked, whole=True)
        bound = 0
        if len(own.shape):
            found = branch_and_bound(own.program, self.time_limit_s, 1e-3)
            bound = int(np.floor(-found.bound + 1e-6)) if np.isfinite(found.bound) else -1
            clock.end("solve")
            if found.x is not None:
                self._start(tasks, own.shape, servers[own.room], np.rint(found.x).astype(np.int64))
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
