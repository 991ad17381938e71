"""Snapshots: a session in one versioned, checksummed file, written completely or not at all, plus its journal."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from copter.methods.warm_state import WarmState
from copter.model.model import Model
from copter.runtime.errors import CopterError, SnapshotError
from copter.runtime.settings import Settings
from copter.session.state import Plain, iterate_from, iterate_state, model_from, model_state, plan_from, plan_state
from copter.shims.plan import IntegerPlan
from copter.storage.disk import DISK
from copter.storage.encoding import Reader, encode
from copter.storage.files import PathLike, read_file, write_atomically
from copter.storage.journal import MAGIC as JOURNAL_MAGIC
from copter.storage.journal import Contents, History, Journal, Sync, operations_of
from copter.storage.sealing import Seal

SNAPSHOT = Seal(b"\x89COPTERS", 2, "a copter snapshot")  # format 1 had no private rows


@dataclass(frozen=True)
class SessionState:
    """State of a session: the contents of a snapshot, from which :meth:`copter.Session.load` builds a session.

    Attributes
    ----------
    model : Model
        The model, with its journal if it has one.
    settings : Settings
    iterate : WarmState
    restart : str or None
        Why the next solve starts cold; None if it starts warm.
    plan : IntegerPlan or None
        The last plan; the next plan is not worse if this one still fits.
    """

    model: Model
    settings: Settings
    iterate: WarmState
    restart: str | None
    plan: IntegerPlan | None


def plain(state: SessionState, path: PathLike | None = None) -> Plain:
    """Return the session as plain values; `path` is the file's future place, from which the journal's path is
    relative.
    """
    journal = state.model.ledger.journal
    history: Plain | None = None
    if journal is not None and path is not None:
        folder = os.path.dirname(os.path.abspath(path))
        place = journal.history
        history = {
            "lineage": place.lineage,
            "edits": place.edits,
            "chain": place.chain,
            "journal": os.path.relpath(journal.path, folder),
        }
    return {"model": model_state(state.model), **beside_model(state), "history": history}


def beside_model(state: SessionState) -> Plain:
    """Return what a session has besides its model, as plain values."""
    return {
        "iterate": iterate_state(state.iterate),
        "settings": state.settings.plain(),
        "restart": state.restart,
        "plan": plan_state(state.plan),
    }


def save_state(state: SessionState, path: PathLike) -> None:
    """Write a snapshot to a file."""
    write_atomically(path, SNAPSHOT.close(encode(plain(state, path))))


def load_state(
    path: PathLike, settings: Settings | None, journal: PathLike | None, find: bool, sync: Sync
) -> SessionState:
    """Read a session's state from a snapshot, or from a journal that starts with a model.

    Parameters
    ----------
    path : path
    settings : Settings, optional
        Settings to use in place of the saved ones.
    journal : path or None
        The journal that continues the snapshot, if there is one.
    find : bool
        Whether to use the journal that the snapshot names instead.
    sync : {"always", "batch", "never"}

    Raises
    ------
    SnapshotError
    """
    data, where = read_file(path), os.fspath(path)
    if data[: len(JOURNAL_MAGIC)] == JOURNAL_MAGIC:
        return _from_journal(path, settings, sync)
    values = read_state(SNAPSHOT.open(data, where), where)
    del data
    state, history = state_from(values, settings, where), values["history"]
    if find and history is not None:
        journal = Path(path).absolute().parent / str(history["journal"])
        if DISK.get().kind(journal) is None:
            raise SnapshotError(
                f"{where} has a journal, {journal}, which is not there: give its path, or journal=None for the model "
                "as it was when the snapshot was taken"
            )
    if journal is None:
        return state
    if history is None:
        raise SnapshotError(f"{where} was saved without a journal, so {os.fspath(journal)} cannot be its own")
    _follow(state.model, journal, History(history["lineage"], history["edits"], history["chain"]), where, sync)
    return state


def read_state(payload: memoryview, where: str) -> Plain:
    """Return the plain values of a session; raises SnapshotError if they are not a session's."""
    values = Reader(payload, where).whole()
    keys = {"model", "iterate", "settings", "restart", "plan", "history"}
    if not isinstance(values, dict) or set(values) != keys:
        raise SnapshotError(f"{where} does not hold a session")
    return values


def state_from(values: Plain, settings: Settings | None, where: str, model: Model | None = None) -> SessionState:
    """Build a session's state from its plain values; `settings`, if given, replace the saved ones, and so a `model`."""
    try:
        model = model_from(values["model"]) if model is None else model
        return SessionState(
            model,
            settings or Settings.saved(values["settings"]),
            iterate_from(values["iterate"], model),
            values["restart"],
            plan_from(values["plan"]),
        )
    except (CopterError, ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        raise SnapshotError(f"{where} does not hold a session that can be restored: {error}") from error


def _from_journal(path: PathLike, settings: Settings | None, sync: Sync) -> SessionState:
    """Build a session's state from a journal that starts with a model."""
    journal, contents = Journal.resume(path, sync)
    try:
        if contents.base is None:
            raise SnapshotError(f"{os.fspath(path)} is a journal that goes on from a snapshot: load the snapshot")
        where = f"the journal {os.fspath(path)}"
        state = state_from(read_state(contents.base, where), settings, where)
        replay(state.model, contents, contents.first.edits, where)
    except BaseException:
        journal.close()
        raise
    state.model.ledger.journal = journal
    return state


def _follow(model: Model, path: PathLike, history: History, where: str, sync: Sync) -> None:
    """Apply the journal's edits that the snapshot does not contain, and continue writing the journal."""
    journal, contents = Journal.resume(path, sync)
    try:
        name = f"the journal {os.fspath(path)}"
        places = {contents.first.edits: contents.first} | {place.edits: place for place, _, _ in contents.records}
        if contents.first.lineage != history.lineage:
            raise SnapshotError(f"{name} is not that of {where}")
        if contents.first.edits > history.edits:
            raise SnapshotError(
                f"{name} begins at edit {contents.first.edits}, {where} ends at {history.edits}: the snapshot is "
                "older than the one that the journal goes on from"
            )
        if contents.last.edits >= history.edits and places[history.edits].chain != history.chain:
            raise SnapshotError(f"{name} and {where} do not hold the same edits")
        replay(model, contents, history.edits, name)
        if contents.last.edits < history.edits:
            journal.history = history
            journal.restart()
    except BaseException:
        journal.close()
        raise
    model.ledger.journal = journal


def replay(model: Model, contents: Contents, first: int, where: str) -> None:
    """Apply the recorded edits, starting with number `first`."""
    for place, offset, payload in contents.records:
        if place.edits <= first:
            continue
        try:
            operations: list[tuple[str, tuple[Any, ...]]] = operations_of(payload, where)
            with model.batch():
                for name, arguments in operations:
                    model.ledger.apply(name, *arguments)
        except (CopterError, ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
            raise SnapshotError(
                f"{where} cannot be replayed: edit {place.edits - 1} at byte {offset}: {error}"
            ) from error
