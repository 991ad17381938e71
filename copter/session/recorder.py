"""Recording of one session on a tape: its first model, its edits, its rounds and their answers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from copter.errors import CopterError
from copter.model.matrix import Template
from copter.problem.solution import Solution
from copter.problem.values import OwnDuals, SparseValues
from copter.settings import Settings
from copter.storage.encoding import Buffers, encode
from copter.tape.layout import BASE, ENDS, PLAN, ROUND
from copter.tape.writer import TapeWriter

if TYPE_CHECKING:
    from copter.model.ledger import Ledger, Operation
    from copter.shims.plan import IntegerPlan

LOG = logging.getLogger("copter")
Keys = NDArray[np.int64]
Floats = NDArray[np.float64]
FIXED = frozenset((str, int, float, bool, bytes, type(None)))  # immutable types, which need no copy
Item = tuple[str, Any]  # "edit" and the operations of a batch, or an event and None


class Recorder:
    """One session's recording on a tape.

    Edits stay in memory until their round ends and are written with it, so a tape has whole rounds only. The writer's
    thread encodes them, so a round does not wait. A failure of the recording does not reach the session: its edits and
    answers hold, the recording ends, and :attr:`failed` says why.

    Parameters
    ----------
    writer : TapeWriter
    base : Buffers
        The session's first state as plain values.
    answers : bool
        Whether to record points, prices and plans, which a verifier needs; otherwise only status, objective and bound.
    own_file : bool
        Whether to close the writer at the end, because nobody else uses it.
    """

    def __init__(self, writer: TapeWriter, base: Buffers, answers: bool = True, own_file: bool = True) -> None:
        self.writer, self.answers, self.own_file = writer, answers, own_file
        self.stream = writer.new_stream()
        self.rounds = 0
        self.edit_s = 0.0
        self._items: list[Item] = []
        self._why: str | None = None
        self._last: tuple[SparseValues, float] | None = None  # the last round's point and bound
        content = b"".join(base)  # copied now, because edits change the arrays
        writer.later(lambda: (BASE, self.stream, [content]))

    @property
    def failed(self) -> str | None:
        """Why the recording ended early; None if it did not."""
        return self._why or self.writer.failed

    @property
    def ended(self) -> bool:
        """Whether the recording has ended, by request or by a failure."""
        return self.failed is not None or self.writer.closed

    def append(self, operations: Sequence[Operation], seconds: float) -> None:
        """Record the edits of one batch, or a single edit."""
        if not self.ended:
            self.edit_s += seconds
            self._items.append(("edit", [(name, held(arguments)) for name, arguments in operations]))

    def event(self, name: str) -> None:
        """Record an event other than an edit: "compact" or "reset"."""
        if not self.ended:
            self._items.append((name, None))

    def round(
        self, ledger: Ledger, solution: Solution, settings: Settings, deadline_s: float | None, watched: bool
    ) -> None:
        """Write a round: its edits, the arguments of its solve, its answer."""
        if self.ended:
            return
        items, edit_s = self._items, self.edit_s
        self._items, self.edit_s = [], 0.0
        self.rounds += 1
        sparse, bound = solution.sparse, float(solution.bound)
        self._last = sparse, bound
        own = sparse.behind.own() if self.answers and ledger.matrix.n_with_rows else None
        ray = solution.ray if self.answers else None

        def made() -> tuple[bytes, int, Buffers]:
            mark = {
                "deadline_s": deadline_s,
                "watched": watched,
                "settings": asdict(settings),
                "edit_s": edit_s,
                "solve_s": solution.solve_time_s,
                "answer": self._answer(solution, sparse, own, ray),
            }
            return ROUND, self.stream, encode([*items, mark])

        self._later(made)

    def plan(
        self,
        plan: IntegerPlan,
        seconds: float,
        shim: str | None,
        deadline_s: float | None = None,
    ) -> None:
        """Write the integer plan that belongs to the last written round.

        Parameters
        ----------
        plan : IntegerPlan
        seconds : float
            Seconds of the shim.
        shim : str or None
            Name of the shim; None for the caller's own.
        deadline_s : float, optional
            Deadline of solve and shim together.
        """
        if self.ended or self._last is None:
            return
        sparse, bound = self._last
        better = plan.is_feasible and plan.bound != bound  # a search found this bound, so no prices prove it

        def made() -> tuple[bytes, int, Buffers]:
            values: dict[str, Any] = {
                "status": plan.status.value,
                "objective": float(plan.objective),
                "bound": bound if better else float(plan.bound),
                "searched": float(plan.bound) if better else None,
                "certified": bool(plan.bound_is_certified),
                "shim_s": seconds,
                "shim": shim,
                "deadline_s": deadline_s,
            }
            if self.answers and plan.is_feasible:
                slots, place = places(sparse)
                values["column"] = plan.column_of_slot[slots]
                values["share"] = (
                    place[plan.share_key >> 32].astype(np.int32),
                    (plan.share_key & 0xFFFFFFFF).astype(np.int32),
                    plan.share,
                )
            return PLAN, self.stream, encode(values)

        self._later(made)

    def end(self) -> None:
        """Write the end of the session; closes the file if only this recorder uses it."""
        if not self.ended:
            self.writer.later(lambda: (ENDS, self.stream, encode(None)))
        self.writer.drain()
        if self.own_file:
            self.writer.close()

    def _later(self, made: Callable[[], tuple[bytes, int, Buffers]]) -> None:
        """Write a record. If it cannot be made, note why and end the recording."""

        def job() -> tuple[bytes, int, Buffers] | None:
            if self.failed is not None:
                return None
            try:
                return made()
            except (CopterError, MemoryError) as error:
                self._why = f"the tape {self.writer.path} ends before a round that it cannot hold: {error}"
                LOG.warning("recording has ended: %s", self._why)
                return None

        self.writer.later(job)

    def _answer(
        self, solution: Solution, sparse: SparseValues, own: OwnDuals | None, ray: Floats | None
    ) -> dict[str, Any]:
        """Return the answer as plain values, with requests and resources numbered in the order they were added."""
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
        _, place = places(sparse)
        values["prices"] = sparse.y[list(sparse.row_of.values())]
        values["place"] = place[sparse.key >> 32].astype(np.int32)
        values["column"] = (sparse.key & 0xFFFFFFFF).astype(np.int32)
        values["x"] = sparse.values
        values["ray"] = ray
        if own is not None:
            nonzero = own.dual != 0.0
            key = own.key[nonzero]
            values["own"] = (place[key >> 32].astype(np.int32), (key & 0xFFFFFFFF).astype(np.int32), own.dual[nonzero])
        return values


def places(sparse: SparseValues) -> tuple[Keys, Keys]:
    """Return (slot of every request in the order added, index of the request in every slot)."""
    slots = np.fromiter(sparse.slot_of.values(), dtype=np.int64, count=len(sparse.slot_of))
    place = np.full(int(slots.max(initial=-1)) + 1, -1, dtype=np.int64)
    place[slots] = np.arange(len(slots))
    return slots, place


def held(value: Any) -> Any:
    """Return a copy of an operation's argument, safe from later changes by the caller; a template becomes its
    number.
    """
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, Template):
        return value.serial
    if isinstance(value, tuple):
        return value if FIXED.issuperset(map(type, value)) else tuple([held(each) for each in value])
    if isinstance(value, list):
        return [each.copy() for each in value] if value and isinstance(value[0], np.ndarray) else list(value)
    return value
