"""Servers, tasks and their edits: arrivals, departures, failures, drains, repairs; the cost is that of what changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import index
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from copter_frontends.placement.servers.board import (
    DRAINING,
    FAILED,
    UP,
    WHOLE_GPU,
    Board,
    Floats,
    Ints,
    Shapes,
    board_of,
)
from copter_frontends.placement.servers.errors import ServerError
from copter_frontends.placement.servers.pattern_kernels import how_many_fit
from copter_frontends.placement.servers.place_kernels import link_groups
from copter_frontends.placement.servers.score_kernels import best_place
from copter_frontends.placement.servers.state_kernels import depart, enter, enter_all, leave, put_back, room, take

MOST_AMOUNT, MOST_SERVERS, MOST_GROUPS = 1 << 40, 1 << 24, 1 << 28
SPARE = 4096
"""Classes for which there is room beyond twice the servers' present ones."""


@dataclass(frozen=True, slots=True)
class ServerType:
    """A type of server.

    Attributes
    ----------
    name : str
    amounts : tuple of int
        Capacity in every divisible dimension: thousandths of a core, MiB, and so on.
    count : int
        Number of servers.
    gpus : int
        GPUs of a server.
    """

    name: str
    amounts: tuple[int, ...]
    count: int
    gpus: int = 0


@dataclass(frozen=True, slots=True)
class TaskShape:
    """What tasks of one shape need.

    Attributes
    ----------
    name : str
    amounts : tuple of int
        Need in every divisible dimension.
    worth : int
        Worth of a running task; the priority times its size, say.
    gpus : int
        Number of GPUs.
    gpu_milli : int
        Thousandths of each GPU: less than 1000 only for a single one.
    types : tuple of str, optional
        Selector: names of the types that may host it; any by default.
    share : float
        Share among the tasks that are expected, relative to the other shapes'.
    """

    name: str
    amounts: tuple[int, ...]
    worth: int
    gpus: int = 0
    gpu_milli: int = WHOLE_GPU
    types: tuple[str, ...] | None = None
    share: float = 1.0


class Jobs(NamedTuple):
    """Tasks by number.

    Attributes
    ----------
    shape, server, bits, group : ndarray (tasks,) of int64
        Shape; server, or -1 while it waits or after it has left; its GPUs as bits; group with anti-affinity, or -1.
    next : ndarray (tasks,) of int64
        Next task of the group's list, or -1.
    first : ndarray (groups,) of int64
        First task of every group's list, or -1.
    most, zonal : ndarray (groups,) of int64
        How many tasks of the group may share a server, or a zone where `zonal` is 1.
    zone : ndarray (servers,) of int64
        Zone of every server.
    """

    shape: Ints
    server: Ints
    bits: Ints
    group: Ints
    next: Ints
    first: Ints
    most: Ints
    zonal: Ints
    zone: Ints


def require_whole(what: str, values: Iterable[object]) -> None:
    """Raise ServerError unless all are whole numbers."""
    for each in values:
        try:
            index(each)  # type: ignore[arg-type]
        except TypeError:
            raise ServerError(f"{what}: {each!r} is not a whole number; count thousandths of a core, MiB") from None


def whole_numbers(what: str, values: ArrayLike) -> Ints:
    """Return an array of whole numbers; raises ServerError for others, which would be rounded."""
    found = np.asarray(values)
    if found.size and found.dtype.kind not in "iu":
        raise ServerError(f"{what}: {found.dtype} numbers; give whole ones, counted from 0")
    return found.astype(np.int64)


def checked_types(types: Sequence[ServerType]) -> int:
    """Return the number of dimensions; raises ServerError."""
    if not types:
        raise ServerError("there are no servers: give at least one type")
    n = len(types[0].amounts)
    for each in types:
        if len(each.amounts) != n or n == 0:
            raise ServerError(f"type {each.name!r} has {len(each.amounts)} dimensions, type {types[0].name!r} {n}")
        require_whole(f"type {each.name!r}", (*each.amounts, each.count, each.gpus))
        for at, amount in enumerate(each.amounts):
            if not 0 < amount <= MOST_AMOUNT:
                raise ServerError(
                    f"type {each.name!r}: dimension {at} is {amount}; a server needs more than 0 of it, at most 2^40"
                )
        if not 0 <= each.count <= MOST_SERVERS or not 0 <= each.gpus <= 32:
            raise ServerError(
                f"type {each.name!r}: {each.count} servers of {each.gpus} GPUs; give 0 to 2^24 servers, 0 to 32 GPUs"
            )
    if len({each.name for each in types}) < len(types):
        raise ServerError("two types have the same name: give each one its own")
    return n


def shapes_of(shapes: Sequence[TaskShape], types: Sequence[ServerType]) -> Shapes:
    """Return the shapes as arrays; raises ServerError for needs that no one can have."""
    n, names = checked_types(types), [each.name for each in types]
    if not shapes:
        raise ServerError("there are no task shapes: give at least one")
    if len({each.name for each in shapes}) < len(shapes):
        raise ServerError("two task shapes have the same name: give each one its own")
    for each in shapes:
        if len(each.amounts) != n:
            raise ServerError(f"shape {each.name!r} has {len(each.amounts)} dimensions, the servers {n}")
        require_whole(f"shape {each.name!r}", (*each.amounts, each.worth, each.gpus, each.gpu_milli))
        if any(not 0 <= amount <= MOST_AMOUNT for amount in each.amounts) or not 0 <= each.gpus <= 32:
            raise ServerError(f"shape {each.name!r}: needs {each.amounts} and {each.gpus} GPUs; give 0 to 2^40 and 32")
        if not 0 < each.gpu_milli <= WHOLE_GPU or (each.gpus > 1 and each.gpu_milli < WHOLE_GPU):
            raise ServerError(
                f"shape {each.name!r}: {each.gpu_milli} thousandths of {each.gpus} GPUs; give 1 to 1000, "
                "and less than 1000 only of one GPU"
            )
        if not 0 <= each.worth <= 10**9 or not (np.isfinite(each.share) and each.share >= 0.0):
            raise ServerError(f"shape {each.name!r}: worth {each.worth}, share {each.share}; give 0 to 10^9, and 0 on")
        unknown = sorted(set(each.types or ()) - set(names))
        if unknown:
            raise ServerError(f"shape {each.name!r} asks for type {unknown[0]!r}; there are {', '.join(names)}")
    first: dict[tuple[object, ...], int] = {}
    share, like = np.zeros(len(shapes)), np.zeros(len(shapes), dtype=np.int64)
    for at, each in enumerate(shapes):
        like[at] = first.setdefault((each.amounts, each.gpus, each.gpu_milli, each.types), at)
        share[like[at]] += each.share
    return Shapes(
        np.array([each.amounts for each in shapes], dtype=np.int64),
        np.array([each.gpus for each in shapes], dtype=np.int64),
        np.array([each.gpu_milli for each in shapes], dtype=np.int64),
        np.array([[each.types is None or name in each.types for name in names] for each in shapes], dtype=np.bool_),
        np.array([each.worth for each in shapes], dtype=np.int64),
        share / max(float(share.sum()), 1e-300),
        like,
    )


class Fleet:
    """The servers, in classes of like state, and all tasks.

    Parameters
    ----------
    types : sequence of ServerType
    shapes : sequence of TaskShape
    zones : array_like (servers,) of int or str, optional
        Zone of every server, in the order of the types; all are in one by default.
    most : int
        Tasks of a group that may share a server, or a zone; `limit` says otherwise for a single group.
    by_zone : bool

    Attributes
    ----------
    capacity : ndarray (types, dimensions + 1) of int64
        Of a server of each type; last the thousandths of its GPUs.
    gpus : ndarray (types, most GPUs) of int64
        Thousandths of each GPU of a server of each type.
    fits : ndarray (shapes, types) of bool
        Whether a task of the shape fits on an empty server of the type.
    up : ndarray (types,) of int64
        Servers of each type that take tasks.
    never : list of (int, str)
        For shapes that fit on no server even if it is empty: the shape and the reason.

    Raises
    ------
    ServerError
        For a server without some of a dimension, unlike dimensions, an unknown type, zones that are not one for each
        server.
    """

    def __init__(
        self,
        types: Sequence[ServerType],
        shapes: Sequence[TaskShape],
        zones: ArrayLike | None = None,
        most: int = 1,
        by_zone: bool = False,
    ) -> None:
        self.shapes = shapes_of(shapes, types)
        self.names = [each.name for each in shapes]
        self.types = tuple(types)
        kind = np.repeat(np.arange(len(types)), [each.count for each in types]).astype(np.int64)
        gpus = np.array([each.gpus for each in types], dtype=np.int64)
        amounts = np.array([each.amounts for each in types], dtype=np.int64)
        self.capacity = np.column_stack((amounts, gpus * WHOLE_GPU))
        self.gpus = WHOLE_GPU * (np.arange(int(gpus.max())) < gpus[:, None]).astype(np.int64)
        zero = np.zeros(len(kind), dtype=np.int64)
        self.board = self._built(kind, zero.copy(), zero.copy(), amounts[kind], self.gpus[kind])
        empty = np.zeros(0, dtype=np.int64)
        zone = np.zeros(len(kind), dtype=np.int64) if zones is None else np.asarray(zones)
        if zone.shape != kind.shape or zone.dtype.kind not in "iuU":
            raise ServerError(
                f"zones {zone.shape} of {len(kind)} servers: give one for each server, a number or a name"
            )
        zone = np.unique(zone, return_inverse=True)[1].astype(np.int64)
        self.jobs = Jobs(empty, empty, empty, empty, empty, empty, empty, empty, zone)
        self.tasks = self.groups = 0
        self.mark = np.zeros(len(kind) + int(zone.max(initial=0)) + 2, dtype=np.int64)
        _check_limit(0, most)
        self.usual = most, int(by_zone)
        self.up = np.bincount(kind, minlength=len(types))
        every = np.arange(len(shapes))
        self.fits = how_many_fit(self.shapes, every, np.arange(len(types)), amounts, self.gpus).T > 0
        self.never = [
            (k, self._why_never(k)) for k in np.flatnonzero(~(self.fits & (self.up > 0)).any(axis=1)).tolist()
        ]

    @property
    def servers(self) -> int:
        """Number of servers, failed ones included."""
        return len(self.board.kind)

    def _built(self, kind: Ints, status: Ints, running: Ints, free: Ints, gpu: Ints, more: int = 0) -> Board:
        """Return a board of the servers with fresh classes."""
        key = np.column_stack((kind, free, gpu))
        there = len(np.unique(key[status == UP], axis=0)) if len(kind) else 0
        board = board_of(kind, status, running, free, gpu, len(self.names), 3 * there + 2 * more + SPARE)
        enter_all(board)
        return board

    def _why_never(self, shape: int) -> str:
        """Return why a shape fits on no type."""
        own, reasons = self.shapes, []
        for at in np.flatnonzero(own.allowed[shape]).tolist():
            each, need = self.types[at], own.need[shape]
            over = np.flatnonzero(need > self.capacity[at, :-1])
            if not each.count:
                reasons.append(f"there is no {each.name!r}")
            elif len(over):
                size = self.capacity[at, over[0]]
                reasons.append(f"dimension {over[0]} of {each.name!r}: {need[over[0]]} of {size}")
            else:
                reasons.append(f"{own.gpus[shape]} GPUs of {each.name!r}'s {each.gpus}")
        return f"larger than any server it may use: {'; '.join(reasons) or 'its selector takes no type'}"

    # Edits ------------------------------------------------------------------------------------------------------------

    def arrive(self, shape: ArrayLike, group: ArrayLike | None = None) -> Ints:
        """Add waiting tasks; returns their numbers.

        Parameters
        ----------
        shape : array_like (tasks,) of int
        group : array_like (tasks,) of int, optional
            Group whose tasks may not share a server (or see `limit`), or -1.

        Raises
        ------
        ServerError
            For an unknown shape or a group below -1; nothing is added then.
        """
        own = whole_numbers("shapes", shape)
        of = np.full(own.shape, -1, dtype=np.int64) if group is None else whole_numbers("groups", group)
        if own.ndim != 1 or of.shape != own.shape:
            raise ServerError(f"shapes {own.shape} and groups {of.shape}: give one of each for every task")
        bad = np.flatnonzero((own < 0) | (own >= len(self.names)))
        if len(bad):
            raise ServerError(f"task {bad[0]}: shape {own[bad[0]]}; the shapes are 0 to {len(self.names) - 1}")
        wrong = of[(of < -1) | (of >= MOST_GROUPS)]
        if len(wrong):
            raise ServerError(f"group {wrong[0]}: groups count from 0 to 2^28, -1 is none")
        first, self.tasks = self.tasks, self.tasks + len(own)
        self._grow(int(of.max(initial=-1)) + 1)
        self.jobs.shape[first : self.tasks], self.jobs.group[first : self.tasks] = own, of
        added = np.arange(first, self.tasks)
        link_groups(self.jobs, added)
        return added

    def limit(self, group: int, most: int, by_zone: bool = False) -> None:
        """Let at most so many tasks of a group share a server, or a zone; without a call it is as the fleet says.

        Parameters
        ----------
        group : int
            May be one whose tasks have not arrived yet.
        most : int
        by_zone : bool

        Raises
        ------
        ServerError
            For figures outside their ranges, or while tasks of the group run; nothing changes then.
        """
        _check_limit(group, most)
        self._grow(group + 1)
        task = self.jobs.first[group]
        while task >= 0:
            if self.jobs.server[task] >= 0:
                raise ServerError(f"group {group} has running tasks: set its limit before they start")
            task = self.jobs.next[task]
        self.jobs.most[group], self.jobs.zonal[group] = most, int(by_zone)

    def _grow(self, groups: int) -> None:
        """Make room for the tasks and so many groups."""
        self.groups = max(self.groups, groups)
        jobs = self.jobs
        shape, server, bits, group, after = (_grown(each, self.tasks) for each in jobs[:5])
        self.jobs = Jobs(
            shape, server, bits, group, after, _grown(jobs.first, self.groups),
            _grown(jobs.most, self.groups, self.usual[0]), _grown(jobs.zonal, self.groups, self.usual[1]), jobs.zone,
        )  # fmt: skip

    def depart(self, tasks: ArrayLike) -> None:
        """Take tasks away, running or waiting; raises ServerError for an unknown one."""
        tasks = self._checked(tasks, self.tasks, "task")
        self.reserve(len(tasks))
        depart(self.board, self.shapes, tasks, self.jobs.shape, self.jobs.server, self.jobs.bits)

    def start(self, task: int, server: int) -> None:
        """Start a waiting task on a server; raises ServerError if it does not fit."""
        self.require_waiting(np.array([task]))
        self._checked(np.array([server]), self.servers, "server")
        board, k = self.board, int(self.jobs.shape[task])
        own, place = self.shapes, 0
        fits = board.status[server] == UP and own.allowed[k, board.kind[server]]
        if not fits or not room(own.need[k], own.gpus[k], own.milli[k], board.free[server], board.gpu[server]):
            raise ServerError(f"task {task} (shape {self.names[k]!r}) does not fit on server {server}")
        self.reserve(1)
        if own.gpus[k] > 0 and own.milli[k] < WHOLE_GPU:
            place = best_place(own, k, self.board.state_gpu[self.board.state[server]])
        self.jobs.bits[task] = take(self.board, own, server, k, place)
        self.jobs.server[task] = server

    def restore(self, tasks: Ints, server: Ints, bits: Ints) -> None:
        """Put waiting tasks on the servers and GPUs that they had, where there is still room."""
        self.reserve(len(tasks))
        put_back(self.board, self.shapes, self.jobs, tasks, server, bits)

    def fail(self, servers: ArrayLike) -> Ints:
        """Lose servers; returns the tasks that ran there and wait again. Raises ServerError for an unknown server."""
        at = self._checked(servers, self.servers, "server")
        lost = np.flatnonzero(np.isin(self.jobs.server[: self.tasks], at))
        self.depart(lost)
        self._status(at, FAILED)
        return lost

    def drain(self, servers: ArrayLike) -> None:
        """Let servers take no further tasks; raises ServerError for an unknown one."""
        at = self._checked(servers, self.servers, "server")
        self._status(at, DRAINING)

    def repair(self, servers: ArrayLike) -> None:
        """Let failed or draining servers take tasks again; raises ServerError for an unknown one."""
        at = self._checked(servers, self.servers, "server")
        self._status(at, UP)

    def _status(self, servers: Ints, status: int) -> None:
        self.reserve(len(servers))
        for server in servers.tolist():
            leave(self.board, server)
            self.up[self.board.kind[server]] += int(status == UP) - int(self.board.status[server] == UP)
            self.board.status[server] = status
            enter(self.board, server)

    def require_waiting(self, tasks: ArrayLike) -> Ints:
        """Return tasks as an array; raises ServerError unless they are known, named once and not running."""
        own = self._checked(tasks, self.tasks, "task")
        if (np.diff(own) <= 0).any() and len(np.unique(own)) < len(own):
            raise ServerError("a task is named twice: name each waiting task once")
        runs = own[self.jobs.server[own] >= 0]
        if len(runs):
            raise ServerError(f"task {runs[0]} runs on server {self.jobs.server[runs[0]]}: name waiting tasks only")
        return own

    @staticmethod
    def _checked(numbers: ArrayLike, size: int, what: str) -> Ints:
        found = whole_numbers(f"{what}s", numbers)
        if found.ndim != 1:
            raise ServerError(f"{what}s {found.shape}: give a list of them")
        bad = found[(found < 0) | (found >= size)]
        if len(bad):
            raise ServerError(f"{what} {bad[0]}: there are {size}, counted from 0")
        return found

    def reserve(self, moves: int) -> None:
        """Make room for so many moves of servers between classes."""
        board = self.board
        if board.made[0] + moves >= len(board.state_kind):
            self.board = self._built(board.kind, board.status, board.running, board.free, board.gpu, moves)

    def forget_scores(self) -> None:
        """Have all scores computed anew, after a change of the prices they count with."""
        self.board.left[:] = np.nan
        self.board.score[:] = np.nan

    # Reading ----------------------------------------------------------------------------------------------------------

    def used(self) -> Floats:
        """Return the used share of every dimension, GPUs last, over servers that have not failed; NaN if there is
        none.
        """
        board = self.board
        free, gpu, kind = board.free, board.gpu, board.kind
        if (board.status == FAILED).any():
            free, gpu, kind = (each[board.status != FAILED] for each in (free, gpu, kind))
        left = np.append(free.sum(axis=0), gpu.sum())
        whole = np.bincount(kind, minlength=len(self.types)) @ self.capacity
        used: Floats = np.divide(whole - left, whole, out=np.full(len(whole), np.nan), where=whole > 0)
        return used


def _check_limit(group: int, most: int) -> None:
    """Raise ServerError unless it is a group, and one task of it or more may be together."""
    require_whole("a group's limit", (group, most))
    if not 0 <= group < MOST_GROUPS or not 0 < most <= 1 << 31:
        raise ServerError(f"group {group}, at most {most}: groups count from 0 to 2^28, and one task or more may run")


def _grown(values: Ints, size: int, new: int = -1) -> Ints:
    """Return an array with at least `size` entries, new ones `new`."""
    if size <= len(values):
        return values
    grown = np.full(max(size, 2 * len(values), 1024), new, dtype=np.int64)
    grown[: len(values)] = values
    return grown
