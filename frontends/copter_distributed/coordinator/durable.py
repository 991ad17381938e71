"""Files of the coordinator: the list of shards, and the state that makes its next solve warm."""

from __future__ import annotations

import os
from collections.abc import Hashable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from copter.methods.integer.solution import IntegerStatus
from copter.runtime.errors import SnapshotError
from copter.runtime.settings import Settings
from copter.shims.plan import IntegerPlan
from copter.storage.disk import DISK
from copter.storage.encoding import Reader, encode
from copter.storage.files import make_folders, read_file, write_atomically
from copter.storage.sealing import Seal
from copter_distributed.master.master import Master, Values
from copter_distributed.shards.transport import ShardOptions

MEMBERS = Seal(b"\x89COPTERM", 1, "the list of shards of a distributed session")
COORDINATOR = Seal(b"\x89COPTERC", 1, "a coordinator's snapshot")

Plan = tuple[dict[Hashable, int], Values, IntegerPlan]


@dataclass(frozen=True)
class Members:
    """The shards of a session.

    Attributes
    ----------
    shards : tuple of int
    following : int
        Number of the next shard that joins; numbers are not reused.
    offset : float
        Constant in the objective.
    options : ShardOptions
    """

    shards: tuple[int, ...]
    following: int
    offset: float
    options: ShardOptions


def write_members(members: Members, new: bool) -> None:
    """Write the list of shards if there is a directory; a new session that finds another's list raises
    SnapshotError.
    """
    directory = members.options.directory
    if directory is None:
        return
    path = os.path.join(directory, "members")
    if new and DISK.get().kind(path) is not None:
        raise SnapshotError(f"{directory} holds a session already: go on with it by Session.load, or remove it")
    make_folders(directory)
    options = asdict(members.options)
    del options["directory"]
    values = {"shards": list(members.shards), "following": members.following, "offset": members.offset}
    write_atomically(path, MEMBERS.close(encode({**values, "options": options})))


def read_members(directory: str) -> Members:
    """Read a directory's list of shards."""
    path = os.path.join(directory, "members")
    values = Reader(MEMBERS.open(read_file(path), path), path).whole()
    try:
        options = ShardOptions(directory=directory, **values["options"])
        return Members(tuple(values["shards"]), values["following"], values["offset"], options)
    except (KeyError, TypeError) as error:
        raise SnapshotError(f"{path} is no list of shards: {error}") from None


@dataclass(frozen=True)
class Remembered:
    """Working columns with their values, prices, and the last plan, all by id.

    Attributes
    ----------
    settings : Settings
    values : dict of id to (columns, values)
    prices : dict of id to float
        In the signs of the minimisation.
    chosen, shares : dict or None
        The last plan's.
    """

    settings: Settings
    values: Values
    prices: dict[Hashable, float]
    chosen: dict[Hashable, int] | None
    shares: Values | None

    @classmethod
    def read(cls, directory: str) -> Remembered | None:
        """Read the coordinator's last snapshot in a directory; None without one."""
        path = os.path.join(directory, "coordinator")
        if DISK.get().kind(path) is None:
            return None
        values = Reader(COORDINATOR.open(read_file(path), path), path).whole()
        try:
            settings = Settings.saved(values["settings"])
            plan = values["plan"]
            chosen, shares = (None, None) if plan is None else (dict(plan[0]), by_id(plan[1]))
            return cls(settings, by_id(values["values"]), dict(values["prices"]), chosen, shares)
        except (KeyError, TypeError, ValueError) as error:
            raise SnapshotError(f"{path} is no coordinator's snapshot: {error}") from None

    def empty_plan(self) -> IntegerPlan:
        """Return a plan without columns, to be filled with the remembered ones."""
        none = np.zeros(0, dtype=np.int32)
        return IntegerPlan(
            0.0, 0.0, 0.0, 0, False, none, none.astype(np.int64), {}, IntegerStatus.FEASIBLE,
            continuous=frozenset(self.shares or ()),
        )  # fmt: skip


def by_id(entries: list[Any]) -> Values:
    """Return (id, columns, values) as a dict by id."""
    return {request: (np.array(columns, dtype=np.int32), np.array(values)) for request, columns, values in entries}


def entries_of(values: Values) -> list[tuple[Any, ...]]:
    """Return the values as a list."""
    return [(request, columns, x) for request, (columns, x) in values.items()]


def remembered(master: Master, settings: Settings, plan: Plan | None) -> dict[str, Any]:
    """Return the coordinator's state as plain values, for a snapshot."""
    iterate, model = master.session._iterate, master.model
    known = len(iterate.y)
    rows = {resource: row for resource, row in model.ledger.row_of.items() if row < known}
    return {
        "settings": settings.plain(),
        "values": entries_of(master.values_of()),
        "prices": [(resource, float(iterate.y[row])) for resource, row in rows.items()],
        "plan": None if plan is None else [list(plan[0].items()), entries_of(plan[1])],
    }


def write_remembered(directory: str, values: dict[str, Any]) -> None:
    """Write the coordinator's snapshot."""
    write_atomically(os.path.join(directory, "coordinator"), COORDINATOR.close(encode(values)))
