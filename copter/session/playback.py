"""Replay of a tape: its sessions, the edits of each round, and the recorded solves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from copter.problem.solution import Solution
from copter.runtime.errors import CopterError, SnapshotError
from copter.runtime.settings import Settings
from copter.session.session import Session
from copter.session.snapshot import state_from
from copter.shims.plan import IntegerPlan
from copter.storage.files import PathLike
from copter.storage.tape.layout import BASE, ENDS, PLAN
from copter.storage.tape.reader import Record, TapeReader

WRONG = (CopterError, ValueError, TypeError, LookupError, AttributeError, OverflowError)


@dataclass(frozen=True)
class Round:
    """A round of a tape, after its edits and before its solve.

    Attributes
    ----------
    number : int
        Number on the tape, counted from 0 over all sessions.
    stream : int
    session : Session
        The session after the round's edits.
    mark : dict
        The recorded request and answer: `deadline_s`, `watched`, `settings`, `answer`, `edit_s`, `solve_s`.
    plan : dict or None
        The integer plan of the round, if one was made.
    edit_s : float
        Seconds that the edits took now, without those that recording them again took.
    operations : int
        Number of edits.
    """

    number: int
    stream: int
    session: Session
    mark: dict[str, Any]
    plan: dict[str, Any] | None
    edit_s: float
    operations: int


class Playback:
    """Replay a tape round by round: ``for played in Playback(path): solution = played.session.solve()``.

    Parameters
    ----------
    path : path
    settings : dict, optional
        Settings that replace recorded ones, by name ({"threads": 1}).
    clock : callable
        Clock of the edits' time, in seconds: wall time unless told otherwise.

    Raises
    ------
    SnapshotError
        If the file is no tape, is damaged, or holds an edit that the model refuses. The message names round, byte and
        reason.
    """

    def __init__(
        self,
        path: PathLike,
        settings: dict[str, Any] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.reader = TapeReader(path)
        self.clock = clock
        self.instead = settings or {}
        self.sessions: dict[int, Session] = {}

    def __iter__(self) -> Iterator[Round]:
        """Yield the rounds; solving each one before the next is optional."""
        self.sessions = {}
        waiting: tuple[Record, list[Any]] | None = None
        for record in self.reader:
            if record.kind == PLAN:
                plan = record.value()
                if waiting is None or waiting[0].stream != record.stream or not isinstance(plan, dict):
                    raise SnapshotError(f"{record.where} has a plan of no round")
                yield self._played(*waiting, plan)
                waiting = None
                continue
            if waiting is not None:
                yield self._played(*waiting, None)
                waiting = None
            if record.kind == BASE:
                if record.stream in self.sessions:
                    raise SnapshotError(f"{record.where} begins session {record.stream} a second time")
                self.sessions[record.stream] = self._begun(record)
            elif record.stream not in self.sessions:
                raise SnapshotError(f"{record.where} is of session {record.stream}, which has not begun")
            elif record.kind == ENDS:
                del self.sessions[record.stream]
            else:
                waiting = record, record.value()
        if waiting is not None:
            yield self._played(*waiting, None)

    def _begun(self, record: Record) -> Session:
        try:
            return Session._from_state(state_from(record.value(), None, record.where))
        except WRONG as error:
            raise SnapshotError(f"{record.where} cannot begin a session: {error}") from error

    def _played(self, record: Record, items: list[Any], plan: dict[str, Any] | None) -> Round:
        session, mark = self.sessions[record.stream], items[-1]
        done, ledger = 0, session.model.ledger
        spent = ledger.told_s
        for kind, content in items[:-1]:
            try:
                begun = self.clock()
                if kind == "edit":
                    done += _edit(session, content)
                elif kind == "compact":
                    session.compact()
                elif kind == "reset":
                    session.reset()
                else:
                    raise ValueError(f"nothing is called {kind!r}")
                spent += self.clock() - begun
            except WRONG as error:
                raise SnapshotError(f"{record.where} cannot be played, edit {done} of the round: {error}") from error
        try:
            session.settings = Settings.saved({**mark["settings"], **self.instead})
            (mark["deadline_s"], mark["watched"])
            _require_answer(mark["answer"], session)
        except WRONG as error:
            raise SnapshotError(f"{record.where} cannot be played: {error}") from error
        return Round(record.round, record.stream, session, mark, plan, spent - ledger.told_s, done)


def _require_answer(answer: dict[str, Any], session: Session) -> None:
    """Raise one of `WRONG` unless a recorded answer has what `copter verify` reads of it."""
    (answer["objective"], answer["bound"], answer["certified"])
    if answer["status"] in ("primal_infeasible", "dual_infeasible") or "prices" not in answer:
        return
    place, column, ledger = answer["place"], answer["column"], session.model.ledger
    if len(answer["prices"]) != len(ledger.row_of):
        raise ValueError(f"its answer has {len(answer['prices'])} prices for {len(ledger.row_of)} resources")
    if len(column) != len(place) or len(answer["x"]) > len(place):
        raise ValueError("its answer has more values than columns")
    sizes = ledger.matrix.sizes_of(np.fromiter(ledger.slot_of.values(), dtype=np.int32, count=len(ledger.slot_of)))
    known = (place >= 0) & (place < len(sizes))
    if not known.all() or ((column < 0) | (column >= sizes[place])).any():
        raise ValueError("its answer has a value of no column")


def _edit(session: Session, operations: list[tuple[str, tuple[Any, ...]]]) -> int:
    """Apply a batch of edits, or a single one, and return how many there were."""
    ledger = session.model.ledger
    if len(operations) == 1:
        name, arguments = operations[0]
        ledger.apply(name, *arguments)
        return 1
    with ledger.batch():
        for name, arguments in operations:
            ledger.apply(name, *arguments)
    return len(operations)


def solved(played: Round, deadline_s: float | None = None) -> tuple[Solution, IntegerPlan | None, float]:
    """Solve a round as it was recorded; returns (solution, plan, seconds of the shim).

    Parameters
    ----------
    played : Round
    deadline_s : float, optional
        Instead of the recorded one; infinite for none.
    """
    session, mark = played.session, played.mark
    limit = mark["deadline_s"] if deadline_s is None else None if deadline_s == float("inf") else deadline_s
    callback = (lambda *_: None) if mark["watched"] else None
    made = played.plan or {}
    if made.get("shim") is None:
        return session.solve(limit, callback), None, 0.0
    begun = time.perf_counter()
    plan = session.solve_integer(made["shim"], made.get("deadline_s") if deadline_s is None else limit)
    spent = time.perf_counter() - begun
    solution = session.last_solution
    if solution is None:
        raise SnapshotError("a plan was made without a solve")
    return solution, plan, max(spent - solution.solve_time_s, 0.0)
