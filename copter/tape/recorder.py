"""What one session puts on a tape: its model as it was, its edits, its rounds and their answers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from copter.errors import CopterError
from copter.problem.solution import Solution
from copter.settings import Settings
from copter.storage.encoding import COUNT, Buffers, encode
from copter.storage.journal import Journal
from copter.tape.layout import BASE, ENDS, PLAN, ROUND
from copter.tape.writer import TapeWriter

if TYPE_CHECKING:
    from copter.model.ledger import Ledger
    from copter.shims.plan import IntegerPlan

LOG = logging.getLogger("copter")
EDIT = b"(" + COUNT.pack(2) + b"".join(encode("edit"))
Keys = NDArray[np.int64]


class Recorder:
    """One session's stream on a tape.

    Edits are kept in memory until their round ends, and written with it: a tape has whole rounds only. Nothing that
    goes wrong here reaches the session: the edit holds, the answer is given, the recording ends, and :attr:`failed`
    says why.

    Parameters
    ----------
    writer : TapeWriter
    base : Buffers
        The session's state as plain values.
    answers : bool
        Whether rounds have all that a verifier needs; without it they have status, objective and bound alone.
    own_file : bool
        Whether the writer is this recorder's alone, to be closed with it.
    """

    def __init__(self, writer: TapeWriter, base: Buffers, answers: bool = True, own_file: bool = True) -> None:
        self.writer, self.answers, self.own_file = writer, answers, own_file
        self.stream = writer.new_stream()
        self.rounds = 0
        self.edit_s = 0.0
        self._items: list[bytes] = []
        self._why: str | None = None
        self._note(writer.append(BASE, self.stream, base))

    @property
    def failed(self) -> str | None:
        """Why the recording ended before it was stopped; None where it did not."""
        return self._why or self.writer.failed

    @property
    def ended(self) -> bool:
        """Whether nothing more is recorded."""
        return self.failed is not None or self.writer.closed

    def append(self, operations: Sequence[tuple[str, tuple[Any, ...]]], seconds: float) -> None:
        """Take edits in that belong together: those of a batch, or one alone."""
        if not self.ended:
            self.edit_s += seconds
            try:
                parts = [EDIT, b"[", COUNT.pack(len(operations))]
                for name, arguments in operations:
                    parts += Journal.encode(name, arguments)
                self._items.append(b"".join(parts))
            except (CopterError, MemoryError) as error:
                self._end(f"the tape {self.writer.path} ends before an edit that it cannot hold: {error}")

    def event(self, name: str) -> None:
        """Take in what the session was told to do besides ("compact", "reset")."""
        if not self.ended:
            self._items.append(b"".join(encode((name, None))))

    def round(
        self, ledger: Ledger, solution: Solution, settings: Settings, deadline_s: float | None, watched: bool
    ) -> None:
        """Write a round: its edits, what was asked, what was answered."""
        if self.ended:
            return
        try:
            mark = {
                "deadline_s": deadline_s,
                "watched": watched,
                "settings": asdict(settings),
                "edit_s": self.edit_s,
                "solve_s": solution.solve_time_s,
                "answer": self._answer(ledger, solution),
            }
            payload = [b"[" + COUNT.pack(len(self._items) + 1), *self._items, *encode(mark)]
        except (CopterError, MemoryError) as error:
            self._end(f"the tape {self.writer.path} ends before an answer that it cannot hold: {error}")
            return
        self._items, self.edit_s = [], 0.0
        self.rounds += 1
        self._note(self.writer.append(ROUND, self.stream, payload))

    def plan(
        self,
        ledger: Ledger,
        plan: IntegerPlan,
        seconds: float,
        shim: str | None,
        deadline_s: float | None = None,
    ) -> None:
        """Write the integer plan of the round that was written last.

        Parameters
        ----------
        seconds : float
            That the shim took.
        shim : str or None
            Its name; None for one of the caller's.
        deadline_s : float, optional
            Of solve and shim together.
        """
        if self.ended or not self.rounds:
            return
        values: dict[str, Any] = {
            "status": plan.status.value,
            "objective": float(plan.objective),
            "bound": float(plan.bound),
            "certified": bool(plan.bound_is_certified),
            "shim_s": seconds,
            "shim": shim,
            "deadline_s": deadline_s,
        }
        if self.answers and plan.is_feasible:
            place = self._places(ledger)
            slots = np.fromiter(ledger.slot_of.values(), dtype=np.int64, count=len(ledger.slot_of))
            values["column"] = plan.column_of_slot[slots]
            values["share"] = (
                place[plan.share_key >> 32].astype(np.int32),
                (plan.share_key & 0xFFFFFFFF).astype(np.int32),
                plan.share,
            )
        self._note(self.writer.append(PLAN, self.stream, encode(values)))

    def end(self) -> None:
        """Say on the tape that the session has ended; close the file if it is this recorder's alone."""
        if not self.ended:
            self._note(self.writer.append(ENDS, self.stream, encode(None)))
        if self.own_file:
            self.writer.close()

    def _answer(self, ledger: Ledger, solution: Solution) -> dict[str, Any]:
        """The answer, by the places of requests and of resources in the order that they were added in."""
        values: dict[str, Any] = {
            "status": solution.status.value,
            "objective": float(solution.objective),
            "bound": float(solution.bound),
            "certified": bool(solution.bound_is_certified),
            "method": getattr(solution, "method", None),
            "why": getattr(solution, "why", None),
            "gap": float(solution.gap),
        }
        if not self.answers:
            return values
        sparse = solution.sparse
        place = self._places(ledger)
        values["prices"] = sparse.y[list(ledger.row_of.values())]
        values["place"] = place[sparse.key >> 32].astype(np.int32)
        values["column"] = (sparse.key & 0xFFFFFFFF).astype(np.int32)
        values["x"] = sparse.values
        values["ray"] = solution.ray
        if ledger.matrix.n_with_rows:
            own = sparse.behind.own()
            nonzero = own.dual != 0.0
            key = own.key[nonzero]
            values["own"] = (place[key >> 32].astype(np.int32), (key & 0xFFFFFFFF).astype(np.int32), own.dual[nonzero])
        return values

    @staticmethod
    def _places(ledger: Ledger) -> Keys:
        """Place of the request in every slot, in the order that requests were added in."""
        slots = np.fromiter(ledger.slot_of.values(), dtype=np.int64, count=len(ledger.slot_of))
        place = np.full(ledger.matrix.n_slots, -1, dtype=np.int64)
        place[slots] = np.arange(len(slots))
        return place

    def _note(self, written: bool) -> None:
        if not written and self._why is None:
            self._end(self.writer.failed or f"the tape {self.writer.path} was closed")

    def _end(self, why: str) -> None:
        self._why, self._items = why, []
        LOG.warning("recording has ended: %s", why)
