"""Recording of one session on a tape: its first model, its edits, its rounds and their answers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from copter.model.assembly import own_rows_of
from copter.model.matrix import Template
from copter.problem.solution import Solution, Status
from copter.problem.values import OwnDuals, SparseValues
from copter.runtime.errors import CopterError
from copter.runtime.settings import Settings
from copter.storage.encoder import Encoder
from copter.storage.encoding import COUNT, Buffers, encode, refused, too_deep
from copter.storage.tape.layout import BASE, ENDS, PLAN, ROUND
from copter.storage.tape.writer import TapeWriter

if TYPE_CHECKING:
    from copter.model.ledger import Ledger
    from copter.shims.plan import IntegerPlan

LOG = logging.getLogger("copter")
Keys = NDArray[np.int64]
Floats = NDArray[np.float64]
EDIT = b"".join(encode(("edit", [])))[: -COUNT.size]  # of a batch of edits, before their number


@dataclass(frozen=True)
class Job:
    """A record to be written.

    Attributes
    ----------
    made : callable
        Called in the writing thread with the items of the round and the seconds of its edits; returns the record.
    round : bool
        Whether it is a round, which takes the items so far.
    """

    made: Callable[[list[list[bytes] | str], float], tuple[bytes, int, Buffers]]
    round: bool


class Recorder:
    """One session's recording on a tape.

    Edits are kept in memory, as bytes, until their round ends, and written with it: a tape has whole rounds only. What
    an edit may change later is read in the caller's thread, before :meth:`round` returns; what is left, arrays that
    nobody changes, is put into bytes in the thread that writes, so that a round does not wait for it. Nothing that goes
    wrong here reaches the session: the edit holds, the answer is given, the recording ends, and :attr:`failed` says
    why. The next call tells it to the logger.

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
        self._items: list[list[bytes] | str] = []  # the edits of batches, empty if they could not be held; and events
        self._encoder = Encoder(True, _plain)
        self.encoded = self._encoder.operation  # without a call of Python's around each edit
        self._why: str | None = None
        self._told = False  # whether the logger has been told of a failure
        self._last: tuple[SparseValues, float] | None = None  # the last round's point and bound
        content = b"".join(base)  # copied now, because edits change the arrays
        self._coming: tuple[SparseValues, float] | None = None  # of a round that :meth:`put` is about to write
        writer.make_room()
        writer.put(lambda: (BASE, self.stream, [content]))

    @property
    def failed(self) -> str | None:
        """Why the recording ended early; None if it did not."""
        return self._why or self.writer.failed

    @property
    def ended(self) -> bool:
        """Whether the recording has ended, by request or by a failure."""
        return self.failed is not None or self.writer.closed

    def append(self, operations: Sequence[bytes], seconds: float) -> None:
        """Record the edits of one batch, or a single edit."""
        if self._why is None and self.writer.failed is None:  # the cheap part of `ended`
            self.edit_s += seconds
            self._items.append(list(operations))

    def event(self, name: str) -> None:
        """Record an event other than an edit: "compact" or "reset"."""
        if not self.ended:
            self._items.append(name)

    def round(
        self, ledger: Ledger, solution: Solution, settings: Settings, deadline_s: float | None, watched: bool
    ) -> Job | None:
        """Return the record of a round: its edits, the arguments of its solve, its answer. :meth:`put` writes it."""
        if not self._ready():
            return None
        try:
            return self._round(ledger, solution, settings, deadline_s, watched)
        except Exception as error:
            self._end_by(error)
            return None

    def _round(
        self, ledger: Ledger, solution: Solution, settings: Settings, deadline_s: float | None, watched: bool
    ) -> Job:
        wrong = self._encoder.wrong
        sparse, bound = solution.sparse, float(solution.bound)
        own = sparse.behind.own() if self.answers and ledger.matrix.n_with_rows else None
        ray = solution.ray if self.answers else None
        proof = None if ray is None or solution.status is not Status.PRIMAL_INFEASIBLE else by_rows(ledger, ray)
        answer = self._answer(solution, sparse, proof)
        place = places(sparse)[1] if self.answers else None
        solve_s, chosen = solution.solve_time_s, settings.plain()

        def made(items: list[list[bytes] | str], edit_s: float) -> tuple[bytes, int, Buffers]:
            parts = [each for item in items for each in whole(item)]
            if not all(parts):
                raise too_deep() if wrong is None or isinstance(wrong, RecursionError) else wrong
            if place is not None:
                answer.update(columns_of(sparse, place, own))
            mark = {
                "deadline_s": deadline_s,
                "watched": watched,
                "settings": chosen,
                "edit_s": edit_s,
                "solve_s": solve_s,
                "answer": answer,
            }
            return ROUND, self.stream, [b"[" + COUNT.pack(len(items) + 1), *parts, *encode(mark)]

        self._coming = sparse, bound
        return Job(made, True)

    def plan(
        self,
        plan: IntegerPlan,
        seconds: float,
        shim: str | None,
        deadline_s: float | None = None,
    ) -> Job | None:
        """Return the record of the integer plan that belongs to the last written round. :meth:`put` writes it.

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
        if not self._ready() or self._last is None:
            return None
        sparse, bound = self._last
        better = isfinite(plan.bound) and plan.bound != bound  # a search found this bound, so no prices prove it
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
        slots, place = places(sparse) if self.answers and plan.is_feasible else (None, None)
        column = None if slots is None else narrow(plan.column_of_slot[slots])

        def made(items: list[list[bytes] | str], edit_s: float) -> tuple[bytes, int, Buffers]:
            if place is not None:
                values["column"] = column
                values["share"] = (
                    place[plan.share_key >> 32].astype(np.int32),
                    (plan.share_key & 0xFFFFFFFF).astype(np.int32),
                    plan.share,
                )
            return PLAN, self.stream, encode(values)

        return Job(made, False)

    def put(self, job: Job) -> None:
        """Let the writing thread append a record; for a round, with the edits so far. It waits for nothing."""
        items, edit_s = self._items, self.edit_s
        if job.round:
            self._items, self.edit_s, self._last = [], 0.0, self._coming
            self.rounds += 1
        made = job.made

        def alone() -> tuple[bytes, int, Buffers] | None:
            if self.failed is not None:
                return None
            try:
                return made(items, edit_s)
            except Exception as error:
                self._end_by(error)
                return None

        self.writer.put(alone)

    def _end_by(self, error: Exception) -> None:
        """End the recording because a record cannot be made."""
        kind = "" if isinstance(error, (CopterError, MemoryError)) else f"{type(error).__name__}: "
        self._why = f"the tape {self.writer.path} ends before a round that it cannot hold: {kind}{error}"

    def _ready(self) -> bool:
        """Return whether records are written; waits until there is room for one."""
        if not self.ended:
            self.writer.make_room()
        if self.failed is not None and not self._told:
            self._told = True
            LOG.warning("recording has ended: %s", self.failed)
        if self.ended:
            self._items.clear()
        return not self.ended

    def end(self) -> None:
        """Write the end of the session; closes the file if only this recorder uses it."""
        if not self.ended:
            self.writer.put(lambda: (ENDS, self.stream, encode(None)))
        if self.own_file:
            self.writer.close()
        else:
            self.writer.drain()

    def _answer(self, solution: Solution, sparse: SparseValues, ray: dict[str, Any] | None) -> dict[str, Any]:
        """Return the answer as plain values, but for the columns and the duals of requests' own rows."""
        values: dict[str, Any] = {
            "status": solution.status.value,
            "objective": float(solution.objective),
            "bound": float(solution.bound),
            "certified": bool(solution.bound_is_certified),
            "method": getattr(solution, "method", None),
            "why": getattr(solution, "why", None),
            "gap": float(solution.gap),
        }
        if self.answers:
            values["prices"] = sparse.y[list(sparse.row_of.values())]
            values["ray"] = ray
            slopes = getattr(sparse.behind, "slopes", None)
            if slopes is not None:
                values["slopes"] = slopes[list(sparse.slot_of.values())]
        return values


def columns_of(sparse: SparseValues, place: Keys, own: OwnDuals | None) -> dict[str, Any]:
    """Return the working columns and the duals of own rows, with requests numbered in the order they were added."""
    values: dict[str, Any] = {}
    part = sparse.values != 1.0  # most values are 1 and are left out: they come last
    key = np.concatenate((sparse.key[part], sparse.key[~part]))
    values["place"] = place[key >> 32].astype(np.int32)
    values["column"] = narrow(key & 0xFFFFFFFF)
    values["x"] = sparse.values[part]
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


def narrow(numbers: Keys | NDArray[np.int32]) -> NDArray[np.int32 | np.uint8]:
    """Return numbers of columns as bytes if they fit, else as 32-bit integers."""
    least, most = numbers.min(initial=0), numbers.max(initial=0)
    return numbers.astype(np.uint8 if least >= 0 and most < 256 else np.int32)


def by_rows(ledger: Ledger, ray: Floats) -> dict[str, Any]:
    """Return a ray as answers have their prices: of resources, and (request, 1 + its private row, multiplier)."""
    first = own_rows_of(ledger)[1]
    slabs = map(ledger.matrix.slabs.__getitem__, ledger.slot_of.values())
    counts = np.array([slab.template.n_private for slab in slabs], dtype=np.int64)
    place, row = np.repeat(np.arange(len(counts)), counts), np.concatenate([np.zeros(0), *map(np.arange, counts)])
    own = ray[np.repeat(first[1:] - counts, counts) + row.astype(np.int64)]  # they come after a request's sum
    return {"prices": ray[: len(ledger.row_of)], "own": (place.astype(np.int32), row.astype(np.int32) + 1, own)}


def whole(item: list[bytes] | str) -> Buffers:
    """Return a batch of edits, or an event, as bytes."""
    return encode((item, None)) if isinstance(item, str) else [EDIT, COUNT.pack(len(item)), *item]


def _plain(value: Any) -> int:
    """Return a template's number; raises InvalidDataError for anything else that is no plain value."""
    return value.serial if isinstance(value, Template) else refused(value)
