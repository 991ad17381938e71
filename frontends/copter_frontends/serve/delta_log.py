"""The journal of a cluster, written by a thread of its own: what waits is written, and waited for, together."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from copter.errors import CopterError
from copter.storage.journal import History, Journal, Sync
from copter_frontends.serve.cluster_state import Undo

MOST_TOGETHER = 512  # records in one write
ROTATE_BYTES = 64 << 20
RESERVE = 4 << 20  # bytes that a segment grows by at a time


@dataclass(slots=True)
class Waiting:
    """A record on its way to the disk."""

    kind: str
    payload: bytes
    epoch: int
    done: asyncio.Future[None]
    undo: Undo = field(default_factory=list)


class DeltaLog:
    """Appends records in order; a record's future is done once it is as safe as `sync` says.

    Parameters
    ----------
    folder : Path
        Holds the segments, ``journal-<number>``.
    journal : Journal
        The last segment, open.
    number : int
        Of it.
    sync : {"always", "never"}
        Whether to wait for the disk. Either way the operating system has every acknowledged record, so that killing the
        process loses none.
    on_write : callable, optional
        Called by the thread with (records, seconds) after every write.

    Attributes
    ----------
    written : int
        Bytes of the segment.
    epoch : int
        Number of writes that failed so far.
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
        self.written = journal.length
        self._on_write = on_write
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[Waiting | Callable[[], None] | None] = queue.SimpleQueue()
        self._pending: deque[Waiting] = deque()
        self._epoch = 0
        self._thread = threading.Thread(target=self._run, name=f"journal {folder.name}", daemon=True)
        self._thread.start()

    def append(self, kind: str, payload: bytes, undo: Undo | None = None) -> asyncio.Future[None]:
        """Add a record; its future has an OSError or CopterError if it could not be written, and then is undone."""
        waiting = Waiting(kind, payload, self._epoch, self._loop.create_future(), undo or [])
        self._pending.append(waiting)
        self._queue.put(waiting)
        return waiting.done

    @property
    def epoch(self) -> int:
        """How often a write has failed."""
        return self._epoch

    def rotate(self) -> asyncio.Future[History]:
        """Begin a new segment after all that waits; the place at which it begins."""
        future: asyncio.Future[History] = self._loop.create_future()

        def turn() -> None:
            try:
                place, sync = segment(self.folder, self.number + 1), journal_sync(self.sync)
                journal = Journal.create(place, self.journal.history, None, sync, reserved(self.sync))
            except (OSError, CopterError) as error:
                self._loop.call_soon_threadsafe(_fail, future, error)
                return
            self.journal.close()
            self.journal, self.number, self.written = journal, self.number + 1, journal.length
            self._loop.call_soon_threadsafe(_finish, future, journal.history)

        self._queue.put(turn)
        return future

    async def close(self) -> None:
        """Write what waits, and close the file."""
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)
        await asyncio.sleep(0)  # lets the last acknowledgements through
        self.journal.close()

    # The thread ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        refused = -1  # epoch of a failed write: what was put in before its end was known is not written
        while True:
            group: list[Waiting] = []
            other: Callable[[], None] | None = None
            item = self._queue.get()
            while isinstance(item, Waiting):
                if item.epoch != refused:
                    group.append(item)
                if len(group) >= MOST_TOGETHER:
                    break
                try:
                    item = self._queue.get_nowait()
                except queue.Empty:
                    break
            if group:
                error = self._write(group)
                if error is not None:
                    refused = group[0].epoch
                    self._loop.call_soon_threadsafe(self._take_back, refused, error)
                else:
                    self._loop.call_soon_threadsafe(self._acknowledge, group)
            if item is None:
                return
            if not isinstance(item, Waiting):
                other = item
                other()

    def _write(self, group: list[Waiting]) -> Exception | None:
        started = perf_counter()
        try:
            operations = [Journal.encode(each.kind, (each.payload,)) for each in group]
            self.journal.append(operations, batch=True)
        except (OSError, CopterError) as error:
            return error
        self.written = self.journal.length
        if self._on_write is not None:
            self._on_write(len(group), perf_counter() - started)
        return None

    # The loop -----------------------------------------------------------------------------------------------------

    def _acknowledge(self, group: list[Waiting]) -> None:
        for each in group:
            self._pending.popleft()
            if not each.done.done():
                each.done.set_result(None)

    def _take_back(self, epoch: int, error: Exception) -> None:
        """Undo all that was not written, last first."""
        self._epoch = max(self._epoch, epoch + 1)
        lost = [each for each in self._pending if each.epoch == epoch]
        self._pending = deque(each for each in self._pending if each.epoch != epoch)
        for each in reversed(lost):
            for step in each.undo:
                step()
        for each in lost:
            if not each.done.done():
                each.done.set_exception(error)
                each.done.exception()  # the sender may be gone: nobody has to look


def segment(folder: Path, number: int) -> Path:
    """The file of a segment."""
    return folder / f"journal-{number:08d}"


def journal_sync(sync: str) -> Sync:
    """The journal's own word: it is told of every group as a batch."""
    return "batch" if sync == "always" else "never"


def reserved(sync: str) -> int:
    """Bytes that a segment grows by at a time, where the disk is waited for."""
    return RESERVE if sync == "always" else 0


def _finish(future: asyncio.Future[History], result: History) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[History], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
