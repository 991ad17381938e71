"""A tape open for writing, on which any number of sessions record."""

from __future__ import annotations

import atexit
import os
import weakref

# Not threading's: a signal that ends its functions, which are Python's, leaves a lock that nobody can release.
from _thread import LockType, allocate_lock, get_ident, start_new_thread
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue

from copter.runtime.errors import SnapshotError
from copter.storage.encoding import Buffers
from copter.storage.files import PathLike
from copter.storage.tape.layout import DIGEST, head, record

# Most records that wait to be written, which bounds the memory; a recorder with one more waits for the disk.
WAITING = 8
WAIT_S = 1.0  # after so long a wait, whoever waits for the thread looks whether it is there
Later = Callable[[], tuple[bytes, int, Buffers] | None]


class TapeWriter:
    """Creates a tape and appends records to it.

    Parameters
    ----------
    path : path
        File to create; it must not exist yet.

    Raises
    ------
    SnapshotError
        If there is a file already, or it cannot be written.

    Notes
    -----
    A failed write ends the tape at the last whole record; :attr:`failed` then says why, and later records are ignored.
    A forked process writes nothing: only the process that began the tape writes. A thread encodes, compresses and
    writes the records. Records go to it by a queue that is one step for Python, so that a signal cannot lose one; a
    process that ends first waits for it.
    """

    _file = -1

    def __init__(self, path: PathLike) -> None:
        self.path = os.path.abspath(path)
        self.failed: str | None = None
        self._jobs: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._thread = 0  # its identifier
        self._working = allocate_lock()  # which it holds until it ends
        self.length = 0
        self._streams = 0
        self._digest = bytes(DIGEST)
        self._process = os.getpid()
        try:
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            raise SnapshotError(f"{os.fspath(path)} is there already: a tape begins a new file") from None
        except OSError as error:
            raise SnapshotError(f"the tape {os.fspath(path)} cannot be written: {error.strerror}") from error
        try:
            self._put([head()])
            if self.failed is not None:
                raise SnapshotError(self.failed)
            OPEN.add(self)
            self._working.acquire()
            self._thread = start_new_thread(_work, (self._jobs, self._working))
        except BaseException:
            self.discard()
            raise

    @property
    def closed(self) -> bool:
        """Whether records are ignored from now on, here or in this process."""
        return self._file < 0 or os.getpid() != self._process

    def new_stream(self) -> int:
        """Return the number of a new session."""
        self._streams += 1
        return self._streams - 1

    def make_room(self) -> None:
        """Wait until few enough records wait to be written that one more may be put."""
        if not self.closed and self._jobs.qsize() >= WAITING:
            self.drain()

    def put(self, job: Later) -> None:
        """Let the writing thread append the record that `job` makes; None makes no record. It waits for nothing."""
        if not self.closed:
            self._jobs.put(lambda: self._write(job))

    def _write(self, job: Later) -> None:
        """Append a record, in the writing thread; whatever goes wrong ends the tape, with its reason."""
        try:
            made = job()
            if made is not None:
                self.append(*made)
        except BaseException as error:
            self.failed = self.failed or f"the tape {self.path} ends here: {type(error).__name__}: {error}"

    def drain(self) -> None:
        """Wait until nothing waits to be written."""
        if self.closed or self._thread in (0, get_ident()):
            return
        done = allocate_lock()
        done.acquire()
        self._jobs.put(done.release)
        while not done.acquire(timeout=WAIT_S):
            if not self._working.locked():
                self.failed = self.failed or f"the tape {self.path} ends early: its thread has ended"
                return

    def append(self, kind: bytes, stream: int, payload: Buffers) -> bool:
        """Append a record; returns whether it was written."""
        if self.failed is not None or self.closed:
            return False
        try:
            parts, digest = record(kind, stream, payload, self._digest)
        except MemoryError:
            self.failed = f"the tape {self.path} ends before a record for which there is no memory"
            return False
        if self._put(parts):
            self._digest = digest
            return True
        return False

    def _put(self, parts: list[bytes]) -> bool:
        """Write bytes at the end; remains of a failed write are cut off."""
        try:
            for part in parts:
                left = memoryview(part)
                while len(left):
                    left = left[os.write(self._file, left) :]
        except OSError as error:
            self.failed = f"the tape {self.path} cannot be written: {error.strerror}; it ends at its last whole round"
            try:
                os.ftruncate(self._file, self.length)
            except OSError:
                self.failed += " and half a record, which readers leave out"
            return False
        self.length += sum(map(len, parts))
        return True

    def close(self) -> None:
        """Write waiting records and close the file; later records are ignored."""
        self.drain()
        file, self._file = self._file, -1
        if file >= 0:
            self._jobs.put(None)
            os.close(file)

    __del__ = close

    def discard(self) -> None:
        """Close the file and remove it, because the recording that it was for has not begun."""
        self.close()
        with suppress(OSError):
            os.unlink(self.path)


def _work(jobs: SimpleQueue[Callable[[], object] | None], working: LockType) -> None:
    """Do jobs until there is None; the thread holds no tape, so that a forgotten one is closed."""
    try:
        while (job := jobs.get()) is not None:
            job()
            del job
    finally:
        working.release()


OPEN: weakref.WeakSet[TapeWriter] = weakref.WeakSet()


def _drain_all() -> None:
    for writer in list(OPEN):
        writer.drain()


atexit.register(_drain_all)
