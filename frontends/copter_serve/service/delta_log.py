"""The journal of a cluster: waiting records are written and synced together, by a thread without Python's lock."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from copter.runtime.clock import CLOCK
from copter.runtime.errors import CopterError, SnapshotError
from copter.storage.disk import DISK
from copter.storage.journal import History, Journal, Record, Sync
from copter_serve.service.cluster_state import Undo

LOG = logging.getLogger("copter.serve")
MOST_TOGETHER = 512  # most records in one write
ROTATE_BYTES = 64 << 20  # a segment of this many bytes is replaced by a snapshot and a new segment
RESERVE = 4 << 20  # bytes by which a segment's file grows at a time


class UncertainWriteError(SnapshotError):
    """A write failed and could not be undone: after a loss of power, the record may exist."""


@dataclass(slots=True)
class Waiting:
    """A record on its way to the disk."""

    kind: str
    payload: bytes
    told: asyncio.Future[None]
    then: Callable[[Exception | None], None] | None
    undo: Undo = field(default_factory=list)

    def end(self, error: Exception | None) -> None:
        """Finish: the record is durable or was undone. Runs the follow-up and informs the waiting task."""
        if self.then is not None:
            try:
                self.then(error)
            except Exception:  # go on, so that the other records of the group do not wait for ever
                LOG.exception("after a record of kind %s", self.kind)
        if self.told.done():
            return  # nobody waits
        if error is None:
            self.told.set_result(None)
        else:
            self.told.set_exception(error)
            self.told.exception()  # marks the error as seen, because the sender may be gone


@dataclass(slots=True)
class Group:
    """Records that are written together."""

    records: list[Waiting]
    record: Record
    grows_by: int
    started: float


class DeltaLog:
    """Appends records in order; a record's future completes when it is as durable as `sync` requires.

    The event loop encodes records, and a :class:`.DiskThread` writes them and waits for the disk. Records that arrive
    during a write are written together by the next one.

    Parameters
    ----------
    folder : Path
        Holds the segments, ``journal-<number>``.
    journal : Journal
        The last segment, open.
    number : int
        Number of that segment.
    sync : {"always", "never"}
        Whether to wait for the disk. In both cases the operating system holds every acknowledged record, so a killed
        process loses none.
    on_write : callable, optional
        Called with (records, seconds) after every write.

    Attributes
    ----------
    epoch : int
        Number of writes that failed so far.
    undone : bool
        Whether the last failed write undid deltas that the state already contained.
    """

    def __init__(
        self,
        folder: Path,
        journal: Journal,
        number: int,
        sync: str,
        on_write: Callable[[int, float], None] | None = None,
    ) -> None:
        self.folder, self.journal, self.number, self.sync = folder, journal, number, sync
        self.epoch, self.undone = 0, False
        self._on_write = on_write
        self._loop = asyncio.get_running_loop()
        self._queue: deque[Waiting | Callable[[], None]] = deque()
        self._group: Group | None = None
        self._turning = False  # whether a new segment is being made
        self._called = False  # whether :meth:`_next` is scheduled
        self._disk = DISK.get().writer()
        self._loop.add_reader(self._disk.fileno(), self._done)

    @property
    def written(self) -> int:
        """Bytes in the present segment."""
        return self.journal.length

    def append(
        self,
        kind: str,
        payload: bytes,
        undo: Undo | None = None,
        then: Callable[[Exception | None], None] | None = None,
    ) -> asyncio.Future[None]:
        """Add a record; on failure, its changes are undone and its future raises OSError or CopterError.

        `then` is called before the future is done, with that error or None, even if nobody waits for the future.
        """
        waiting = Waiting(kind, payload, self._loop.create_future(), then, undo or [])
        self._put(waiting)
        return waiting.told

    def rotate(self) -> asyncio.Future[History]:
        """Start a new segment after all waiting records; the future returns the history at its start."""
        future: asyncio.Future[History] = self._loop.create_future()

        def turn() -> None:
            self._turning = True
            made = self._loop.run_in_executor(None, self._new_segment)
            made.add_done_callback(turned)

        def turned(made: asyncio.Future[Journal]) -> None:
            self._turning = False
            error = made.exception()
            if error is None:
                self.journal.close()
                self.journal, self.number = made.result(), self.number + 1
                if not future.done():
                    future.set_result(self.journal.history)
            elif not future.done():
                future.set_exception(error)
            self._next()

        self._put(turn)
        return future

    async def settled(self) -> None:
        """Wait until every record and segment requested so far is written or undone."""
        if self._group is None and not self._turning and not self._queue:
            return
        future: asyncio.Future[None] = self._loop.create_future()
        self._put(lambda: None if future.done() else future.set_result(None))
        await future

    async def close(self) -> None:
        """Write the waiting records and close the file."""
        await self.settled()
        self._loop.remove_reader(self._disk.fileno())
        self._disk.close()
        self.journal.close()

    # Inside -------------------------------------------------------------------------------------------------------

    def _put(self, item: Waiting | Callable[[], None]) -> None:
        self._queue.append(item)
        if self._group is None and not self._turning and not self._called:
            self._called = True  # records that arrive in this turn of the loop are written together
            self._loop.call_soon(self._next)

    def _next(self) -> None:
        """Start writing the waiting records, unless the disk is busy."""
        self._called = False
        while self._queue and self._group is None and not self._turning:
            item = self._queue[0]
            if isinstance(item, Waiting):
                self._write()
            else:
                self._queue.popleft()
                item()

    def _write(self) -> None:
        """Give the first records of the queue to the thread."""
        records: list[Waiting] = []
        while self._queue and isinstance(item := self._queue[0], Waiting) and len(records) < MOST_TOGETHER:
            records.append(item)
            self._queue.popleft()
        try:
            record = self.journal.record([Journal.encode(each.kind, (each.payload,)) for each in records])
        except CopterError as error:
            self._take_back(records, UncertainWriteError(str(error)) if self.journal.soiled else error)
            return
        room, by = self.journal.growth(len(record.data))
        self._group = Group(records, record, by, CLOCK.get().monotonic())
        self._disk.put(self.journal.file, record.data, self.sync == "always", room, by)

    def _done(self) -> None:
        """Handle the thread's completion of an order."""
        code, grew, ever = self._disk.outcome()
        group, self._group = self._group, None
        if group is None:
            raise RuntimeError("the disk has done what nobody asked for")
        if group.grows_by:
            self.journal.grown(group.grows_by if grew else 0, ever)
        if code:
            words = f"the journal {self.journal.path} cannot be written: {os.strerror(code)}"
            error = SnapshotError(words) if self.journal.take_back() else UncertainWriteError(words)
            self._take_back(group.records, error)
        else:
            self.journal.wrote(group.record)
        self._next()  # the disk continues while senders are informed
        if not code:
            if self._on_write is not None:
                self._on_write(len(group.records), CLOCK.get().monotonic() - group.started)
            for each in group.records:
                each.end(None)

    def _take_back(self, records: list[Waiting], error: Exception) -> None:
        """Undo everything that was not written, last change first."""
        self.epoch += 1
        lost = records + [each for each in self._queue if isinstance(each, Waiting)]
        self._queue = deque(each for each in self._queue if not isinstance(each, Waiting))
        self.undone = any(each.undo for each in lost)
        for each in reversed(lost):
            for step in each.undo:
                step()
        for each in lost:
            each.end(error)

    def _new_segment(self) -> Journal:
        place, sync = segment(self.folder, self.number + 1), journal_sync(self.sync)
        try:
            # otherwise, after a loss of power, the new segment might continue a missing record
            DISK.get().sync(self.journal.file)
        except OSError as error:
            raise SnapshotError(f"the journal {self.journal.path} cannot be written: {error.strerror}") from error
        return Journal.create(place, self.journal.history, None, sync, reserved(self.sync))


def segment(folder: Path, number: int) -> Path:
    """Return the path of a segment."""
    return folder / f"journal-{number:08d}"


def journal_sync(sync: str) -> Sync:
    """Return the journal's sync policy; every group counts as a batch."""
    return "batch" if sync == "always" else "never"


def reserved(sync: str) -> int:
    """Return the bytes by which a segment grows at a time; 0 if nobody waits for the disk."""
    return RESERVE if sync == "always" else 0
