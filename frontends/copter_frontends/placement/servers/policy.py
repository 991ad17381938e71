"""The policy: place everything by least stranded worth; where there is no room for all, by prices of shapes (PS1-PS6).

A round with room for all needs no program: the plan is worth all there is. Otherwise the last prices of the shapes give
a bound in whole numbers and a plan, which is improved by exchanges; only if they are too far apart, the program over
patterns is solved again from where it stood: for its bound, and for another plan if that is still too far.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from copter import Settings
from copter_frontends.placement.servers.board import FAILED, UP, Floats, Ints, Waiting
from copter_frontends.placement.servers.errors import ServerError
from copter_frontends.placement.servers.fleet import Fleet
from copter_frontends.placement.servers.migrations import migrate
from copter_frontends.placement.servers.pattern_kernels import (
    beside,
    best_pattern,
    exchange,
    how_many_fit,
    put_patterns,
)
from copter_frontends.placement.servers.place_kernels import first_of_each, place_by_score
from copter_frontends.placement.servers.plan import PlacementPlan
from copter_frontends.placement.servers.program import Chosen, PatternProgram, proven
from copter_frontends.placement.servers.relaxation import knapsack
from copter_frontends.placement.servers.rooms import Rooms, rooms_of
from copter_frontends.placement.servers.score_kernels import STRANDED
from copter_frontends.vocabulary.stage_clock import StageClock

TARGET = 0.005
"""Relative gap at which a round is not improved further."""
SCARCITY = 4.0
"""Power of a dimension's expected use, relative to the most used one's, in the price of what is stranded of it."""
OPENING = 0.2
"""Price of a wholly free server that gets its first task, in worths of a mean server."""
FULL, SLACK = 0.9, 0.85
"""Used share of the scarcest dimension above which no server is kept free, and below which servers are again."""


class PlacementBase:
    """What the schemes share: tasks that can never run, and the order of the others.

    Parameters
    ----------
    fleet : Fleet
    """

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.never = dict(fleet.never)
        self.zones = len(np.unique(fleet.jobs.zone))
        self.held_up: dict[int, str] = {}

    def possible(self, waiting: Ints) -> tuple[Ints, dict[int, str]]:
        """Return the tasks that may run now, and the reasons of those that never will; tasks whose servers are all lost
        or draining are kept for `done`.
        """
        fleet, jobs, refused = self.fleet, self.fleet.jobs, {}
        waiting = fleet.require_waiting(waiting)
        if self.never:
            shape = jobs.shape[waiting]
            never = np.isin(shape, np.fromiter(self.never, dtype=np.int64))
            for task, k in zip(waiting[never].tolist(), shape[never].tolist(), strict=True):
                refused[task] = f"shape {fleet.names[k]!r} is {self.never[k]}"
            waiting = waiting[~never]
        self.held_up = {}
        gone = ~(fleet.fits & (fleet.up > 0)).any(axis=1)
        if gone.any() and (held := gone[jobs.shape[waiting]]).any():
            for task, k in zip(waiting[held].tolist(), jobs.shape[waiting[held]].tolist(), strict=True):
                names = ", ".join(repr(fleet.types[at].name) for at in np.flatnonzero(fleet.fits[k]))
                self.held_up[task] = f"all servers that it fits on are lost or draining: {names}"
            waiting = waiting[~held]
        of = jobs.group[waiting]
        known, size = np.unique(of[of >= 0], return_counts=True)
        places = np.where(jobs.zonal[known] == 1, self.zones, fleet.servers)
        for at in np.flatnonzero(size > jobs.most[known] * places).tolist():
            group = known[at]
            own = np.flatnonzero(jobs.group[waiting] == group)
            room = int(jobs.most[group] * places[at])
            where = f"{places[at]} {'zones' if jobs.zonal[group] else 'servers'}"
            why = f"one of {len(own)} tasks of a group, at most {jobs.most[group]} together; there are {where}"
            worth = fleet.shapes.worth[jobs.shape[waiting[own]]]
            least = own[np.argsort(-worth, kind="stable")[room:]]
            refused |= dict.fromkeys(waiting[least].tolist(), why)
            waiting = np.delete(waiting, least)
        return waiting, refused

    def done(self, tasks: Ints, refused: dict[int, str], bound: int, clock: StageClock) -> PlacementPlan:
        """Return the plan of what has been started among the tasks."""
        jobs = self.fleet.jobs
        runs = jobs.server[tasks] >= 0
        started = tasks[runs]
        worth = int(self.fleet.shapes.worth[jobs.shape[started]].sum())
        held = np.fromiter(self.held_up, dtype=np.int64)
        status = "all" if len(started) == len(tasks) and not len(held) else "feasible"
        left = np.concatenate((tasks[~runs], held))
        return PlacementPlan(started, left, refused, worth, bound, status, clock.seconds, held_up=self.held_up)


@dataclass(frozen=True, slots=True)
class ServerWorth:
    """What one more empty server of a type would be worth.

    Attributes
    ----------
    server : int
        Worth of the tasks that would start on it, beyond their prices elsewhere.
    quarter : tuple of int
        How much of that is lost without a quarter of each dimension (of its GPUs last, if it has some): the largest is
        the dimension that is scarce here.
    """

    server: int
    quarter: tuple[int, ...]


class CopterPlacement(PlacementBase):
    """Places tasks round by round with a proven gap.

    Parameters
    ----------
    fleet : Fleet
    settings : Settings, optional
    opening : float
        Price of a wholly free server that gets its first task, in worths of a mean server; 0 for no price.
    one_by_one : bool
        Whether tasks are taken in the order of their arrival, each at once and for good, as in FGD's setting; then
        there is no program and no bound.
    migrations : float
        Share of the running tasks that may be moved to other servers in a round.
    move_cost : float
        Worth that each move costs.

    Attributes
    ----------
    price : ndarray (shapes,) of int64
        Worth of one more waiting task of each shape; the whole worth while there is room for all.
    """

    def __init__(
        self,
        fleet: Fleet,
        settings: Settings | None = None,
        opening: float = OPENING,
        one_by_one: bool = False,
        migrations: float = 0.0,
        move_cost: float = 0.0,
    ) -> None:
        super().__init__(fleet)
        if not (0.0 <= migrations <= 1.0 and 0.0 <= move_cost < np.inf and 0.0 <= opening < np.inf):
            raise ServerError(
                f"migrations {migrations}, move_cost {move_cost}, opening {opening}: give a share of 0 to 1, and 0 on"
            )
        self.asked = np.zeros(len(fleet.names), dtype=np.int64)
        self.program = PatternProgram(fleet.shapes, settings)
        self.one_by_one = one_by_one
        self.migrations, self.move_cost = migrations, move_cost
        self.price = fleet.shapes.worth.copy()
        self.amounts = self._amounts()
        whole = fleet.capacity[fleet.board.kind].sum(axis=0)
        self.opened = opening * float(self.amounts[:-1] @ whole) / max(fleet.servers, 1)
        self.amounts[-1] = self.opened
        size = fleet.shapes.need @ self.amounts[:-2] + fleet.shapes.gpus * fleet.shapes.milli * self.amounts[-2]
        self.size: Floats = size
        self.by_size = np.argsort(-size, kind="stable").astype(np.int64)
        self.size_rank = np.argsort(self.by_size)
        density = fleet.shapes.worth / np.maximum(size, 1e-300)
        self.rank = np.empty(len(size), dtype=np.int64)
        self.rank[np.lexsort((-size, -density))] = np.arange(len(size))

    def _amounts(self) -> Floats:
        """Return the price of a unit of every dimension that stranding counts with, by how scarce each one is (PS4);
        the last one, of opening a server, is 0 here.
        """
        fleet = self.fleet
        whole = fleet.capacity[fleet.board.kind].sum(axis=0).astype(np.float64)
        needs = np.column_stack((fleet.shapes.need, fleet.shapes.gpus * fleet.shapes.milli))
        asked = (fleet.shapes.share @ needs) / np.maximum(whole, 1.0)
        weight = np.where(whole > 0.0, (asked / max(float(asked.max()), 1e-300)) ** SCARCITY, 0.0)
        return np.append(weight / np.maximum(whole, 1.0), 0.0)

    def plan(self, waiting: Ints) -> PlacementPlan:
        """Start waiting tasks, the most that is found, and return what was done."""
        clock = StageClock()
        tasks, refused = self.possible(waiting)
        if not self.migrations:
            return self._started(tasks, refused, clock)
        fleet, jobs = self.fleet, self.fleet.jobs
        board, there = fleet.board, fleet.board.status == UP
        ranked = tasks if self.one_by_one else tasks[stable_order(self.rank[jobs.shape[tasks]])]
        asked = np.bincount(jobs.shape[tasks], minlength=len(fleet.names))
        free = np.append(board.free[there].sum(axis=0), board.gpu[there].sum())
        bound, price = knapsack(fleet.shapes, asked, free)  # whatever is moved (PS9)
        runs = np.flatnonzero(jobs.server[: fleet.tasks] >= 0)
        budget, moved = int(self.migrations * len(runs)), np.zeros(fleet.tasks, dtype=np.bool_)
        own = ranked[price[jobs.shape[ranked]] > 0]
        if len(own) and not self.one_by_one:  # while there is room for what is moved
            self._keep_free(asked)
            budget = migrate(fleet, self.amounts, own, budget, self.move_cost, moved)
        plan = self._started(tasks[jobs.server[tasks] < 0], refused, clock)
        migrate(fleet, self.amounts, ranked, budget, self.move_cost, moved)
        found = self.done(tasks, refused, bound if plan.bound >= 0 else -1, clock)
        clock.end("shim")
        count = int(moved.sum())
        worth = found.worth - int(np.ceil(self.move_cost * count))
        return replace(found, worth=worth, seconds=clock.seconds, moved=count)

    def _started(self, tasks: Ints, refused: dict[int, str], clock: StageClock) -> PlacementPlan:
        """Start waiting tasks without moving others."""
        fleet = self.fleet
        fleet.reserve(2 * len(tasks))
        self._keep_free(np.bincount(fleet.jobs.shape[tasks], minlength=len(fleet.names)))
        if self.one_by_one:
            self._place(tasks)
            clock.end("shim")
            return self.done(tasks, refused, -1, clock)
        if (np.diff(tasks) < 0).any():
            tasks = np.sort(tasks)  # first come first, in each shape
        board, jobs = fleet.board, fleet.jobs
        shape = jobs.shape[tasks]
        self.asked = asked = np.bincount(shape, minlength=len(fleet.names))
        clock.end("edit")
        all_worth = int(asked @ fleet.shapes.worth)
        short = bool(((self.price < fleet.shapes.worth) & (asked > 0)).any())  # the last round had no room for all
        before = rooms_of(board, fleet.shapes, asked) if short else None
        clock.end("bound")
        if before is None:
            self._place(tasks[stable_order(self.size_rank[shape])])
            clock.end("shim")
            if not (fleet.jobs.server[tasks] < 0).any():
                return self.done(tasks, refused, all_worth, clock)
            self.price = np.zeros_like(fleet.shapes.worth)
            had = fleet.jobs.server[tasks].copy(), fleet.jobs.bits[tasks].copy()
            fleet.depart(tasks)
            before = rooms_of(fleet.board, fleet.shapes, asked)
            fit = how_many_fit(fleet.shapes, np.flatnonzero(asked), before.kind, before.free, before.gpu)
            most, together = self._by_groups(tasks, asked, before, fit)
            fleet.restore(tasks, *had)
        else:
            fit = how_many_fit(fleet.shapes, np.flatnonzero(asked), before.kind, before.free, before.gpu)
            most, together = self._by_groups(tasks, asked, before, fit)
        places = np.zeros_like(asked)
        places[asked > 0] = before.servers @ fit
        tried = first_of_each(jobs, tasks, places)
        first, best = proven(before, fleet.shapes, most, self.price, together)
        bound = min(int(most @ fleet.shapes.worth), first)
        clock.end("bound")
        every = Chosen(np.arange(len(best)), best, before.servers.astype(np.float64))
        worth = self._improved(tried, bound, _on_servers(every, before.of_server))
        clock.end("shim")
        if worth < (1.0 - TARGET) * bound:
            found = self.program.solve(before, most, together, self.price, first, best)
            self.price, bound = found.price, min(bound, found.bound)
            clock.end("solve")
            if worth < (1.0 - TARGET) * bound:
                self._improved(tried, bound, _on_servers(found.patterns, before.of_server))
            clock.end("shim")
        if not (fleet.jobs.server[tasks] < 0).any():
            self.price = fleet.shapes.worth.copy()
        return self.done(tasks, refused, bound, clock)

    def _by_groups(self, tasks: Ints, asked: Ints, rooms: Rooms, fit: Ints) -> tuple[Ints, Ints]:
        """Return how many waiting tasks of each shape may start at most, and on one server, as groups limit them."""
        jobs, n = self.fleet.jobs, len(asked)
        own = tasks[jobs.group[tasks] >= 0]
        pair, count = np.unique(jobs.group[own] * n + jobs.shape[own], return_counts=True)
        group, shape = np.divmod(pair, n)
        single, most, waiting = jobs.zonal[group] == 0, jobs.most[group], np.flatnonzero(asked)
        fits = np.zeros((len(rooms.servers) + 1, n), dtype=np.bool_)  # the last row is for servers without room
        fits[:-1, waiting] = fit > 0
        places = np.where(single, (rooms.servers @ fits[:-1])[shape], self.zones)
        places = most * places - beside(jobs, group, shape, fits, rooms.of_server)
        over = np.maximum(count - np.maximum(places, 0), 0)
        aside = np.where(single, np.maximum(count - most, 0), 0)
        fewer, alone = (np.bincount(shape, each, n).astype(np.int64) for each in (over, aside))
        return asked - fewer, asked - alone

    def explain(self) -> dict[str, ServerWorth]:
        """Return what servers of each type would be worth to the last round's tasks, at its prices of the shapes (PS2).

        All is 0 while there is room for all tasks.

        Returns
        -------
        dict of str to ServerWorth
            By type.
        """
        fleet, shapes = self.fleet, self.fleet.shapes
        value = np.where(self.asked > 0, np.maximum(shapes.worth - self.price, 0), 0)
        counts = np.zeros_like(value)

        def worth(kind: int, free: Ints, gpu: Ints) -> int:
            return int(best_pattern(shapes, value, self.asked, kind, free, gpu, counts)[0])

        found = {}
        for kind, each in enumerate(fleet.types):
            whole, gpu = fleet.capacity[kind, :-1], fleet.gpus[kind]
            full = worth(kind, whole, gpu)
            without = [
                full - worth(kind, np.where(np.arange(len(whole)) == d, amount - amount // 4, whole), gpu)
                for d, amount in enumerate(whole.tolist())
            ]
            if each.gpus:
                fewer = np.where(np.arange(len(gpu)) < each.gpus - max(each.gpus // 4, 1), gpu, 0)
                without.append(full - worth(kind, whole, fewer))
            found[each.name] = ServerWorth(full, tuple(without))
        return found

    def _keep_free(self, asked: Ints) -> None:
        """Drop the price of opening a server while the servers are nearly full, since none stays free then."""
        fleet = self.fleet
        if self.opened <= 0.0:
            return
        there = np.bincount(fleet.board.kind[fleet.board.status != FAILED], minlength=len(fleet.types))
        needs = np.column_stack((fleet.shapes.need, fleet.shapes.gpus * fleet.shapes.milli))
        whole = there @ fleet.capacity
        more = np.divide(asked @ needs, whole, out=np.zeros(len(whole)), where=whole > 0)
        share = float(np.nanmax(np.nan_to_num(fleet.used()) + more, initial=0.0))
        opening = self.opened if share < (FULL if self.amounts[-1] > 0.0 else SLACK) else 0.0
        if opening != self.amounts[-1]:
            self.amounts[-1] = opening
            fleet.forget_scores()

    def _place(self, order: Ints) -> None:
        """Place tasks in order, each where it strands least."""
        fleet = self.fleet
        place_by_score(STRANDED, fleet.board, fleet.shapes, self.amounts, fleet.capacity, fleet.jobs, order, fleet.mark)

    def _improved(self, tasks: Ints, bound: int, patterns: tuple[Ints, Ints] | None = None) -> int:
        """Place the tasks anew by prices, keep the better of both plans, exchange; returns the worth."""
        fleet, jobs = self.fleet, self.fleet.jobs
        worth = fleet.shapes.worth[jobs.shape[tasks]]
        before = jobs.server[tasks].copy(), jobs.bits[tasks].copy()
        had = int(worth[before[0] >= 0].sum())
        if (before[0] >= 0).any():
            fleet.depart(tasks)
        fleet.reserve(3 * len(tasks))
        self._by_prices(tasks, patterns)
        found = int(worth[jobs.server[tasks] >= 0].sum())
        if found < had:
            fleet.depart(tasks)
            fleet.restore(tasks, *before)
            found = had
        if found < (1.0 - TARGET) * bound:
            found += self._exchanged(tasks)
        return found

    def _queues(self, tasks: Ints) -> tuple[Ints, Ints, Ints]:
        """Return waiting tasks by shape, first come first, and where each shape's begin and end."""
        jobs = self.fleet.jobs
        own = tasks[jobs.server[tasks] < 0]
        shape = jobs.shape[own]
        order = stable_order(shape)
        ends = np.cumsum(np.bincount(shape, minlength=len(self.fleet.names)))
        return own[order], np.concatenate(([0], ends[:-1])), ends

    def _by_prices(self, tasks: Ints, patterns: tuple[Ints, Ints] | None) -> None:
        """Place tasks: the program's patterns if there are any, then the others by rank."""
        fleet, jobs = self.fleet, self.fleet.jobs
        shape = jobs.shape[tasks]
        ranked = tasks[stable_order(self.rank[shape])]
        waiting = Waiting(*self._queues(tasks), self.by_size)
        if patterns is not None:
            put_patterns(fleet.board, fleet.shapes, jobs, *patterns, waiting)
        left = ranked[jobs.server[ranked] < 0]
        self._place(left)

    def _exchanged(self, tasks: Ints) -> int:
        """Exchange the round's tasks for others, server by server; returns the worth gained."""
        fleet, jobs = self.fleet, self.fleet.jobs
        runs = tasks[jobs.server[tasks] >= 0]
        own = runs[np.argsort(jobs.server[runs], kind="stable")]
        if not len(own):
            return 0
        servers, starts = np.unique(jobs.server[own], return_index=True)
        fleet.reserve(4 * len(own))
        queue, first, ends = self._queues(tasks)
        waiting = Waiting(*_with_room(queue, first, ends, jobs.shape[own], len(fleet.names)), self.by_size)
        return int(exchange(fleet.board, fleet.shapes, jobs, servers, own, np.append(starts, len(own)), waiting))


def stable_order(key: Ints) -> Ints:
    """Return the stable order of some ranks, in a time linear in their number where they are below 2^16."""
    small = key.astype(np.uint16) if int(key.max(initial=0)) < 1 << 16 else key
    return np.argsort(small, kind="stable")


def _with_room(queue: Ints, first: Ints, ends: Ints, running: Ints, n: int) -> tuple[Ints, Ints, Ints]:
    """Return the queues with free places before each shape's tasks, for as many as may come back."""
    more = np.bincount(running, minlength=n)
    shift = np.cumsum(more)
    wide = np.full(len(queue) + int(more.sum()), -1, dtype=np.int64)
    wide[np.arange(len(queue)) + np.repeat(shift, ends - first)] = queue
    return wide, first + shift, ends + shift


def _on_servers(chosen: Chosen, room: Ints) -> tuple[Ints, Ints]:
    """Return (servers, a pattern for each): of every room as many servers as the program says, fractions rounded down,
    then the largest fractions as long as there are servers.
    """
    order = np.argsort(room, kind="stable")
    first, last = (np.searchsorted(room[order], chosen.room, side) for side in ("left", "right"))
    whole = np.floor(chosen.servers + 1e-6).astype(np.int64)
    part = chosen.servers - whole
    begins, own = np.unique(chosen.room, return_index=True, return_inverse=True)[1:]
    left = np.ceil(np.bincount(own, part, len(begins)) - 1e-6)
    left = np.minimum(left, (last - first)[begins] - np.bincount(own, whole, len(begins)))
    by_part = np.lexsort((-part, own))
    whole[by_part] += np.arange(len(own)) - begins[own] < left[own]
    at = np.repeat(np.arange(len(own)), whole)
    before = np.cumsum(whole) - whole  # of all patterns before, and of those of the same room
    place = np.arange(len(at)) - before[begins[own]][at] + first[at]
    fits = place < last[at]
    return order[place[fits]], chosen.table[at[fits]]
