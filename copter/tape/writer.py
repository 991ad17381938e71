"""A tape open for writing, on which any number of sessions record."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable

from copter.errors import SnapshotError
from copter.storage.encoding import Buffers
from copter.storage.files import PathLike
from copter.tape.layout import DIGEST, head, record

# Most records that wait to be written, which bounds the memory; a recorder with one more waits for the disk.
WAITING = 8
# Seconds for which the writing thread waits for more records: also the longest delay at a process's end.
LINGER_S = 0.25
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
    writes the records. It waits a while for more of them before it ends, because starting a thread would delay a round.
    """

    def __init__(self, path: PathLike) -> None:
        self.path = os.path.abspath(path)
        self.failed: str | None = None
        self._file = -1
        self._jobs: deque[Later] = deque()
        self._changed = threading.Condition()
        self._busy = False
        self._thread: threading.Thread | None = None
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
        self._put([head()])
        if self.failed is not None:
            self.close()
            raise SnapshotError(self.failed)

    @property
    def closed(self) -> bool:
        """Whether records are ignored from now on, here or in this process."""
        return self._file < 0 or os.getpid() != self._process

    def new_stream(self) -> int:
        """Return the number of a new session."""
        self._streams += 1
        return self._streams - 1

    def later(self, job: Later) -> None:
        """Let the writing thread append the record that `job` makes; None makes no record."""
        if self.closed:
            return
        if len(self._jobs) >= WAITING:
            self.drain()
        with self._changed:
            self._jobs.append(job)
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="copter-tape")
                self._thread.start()

    def _work(self) -> None:
        try:
            while (job := self._next()) is not None:
                made = job()
                if made is not None:
                    self.append(*made)
        finally:
            with self._changed:
                if self._thread is threading.current_thread():  # an error ended the recording in the thread itself
                    self._thread, self._busy = None, False
                self._changed.notify_all()

    def _next(self) -> Later | None:
        """Return the next job; if none comes for a while, return None and end the thread."""
        with self._changed:
            self._busy = False
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: self._jobs, LINGER_S):
                self._thread = None
                return None
            self._busy = True
            return self._jobs.popleft()

    def drain(self) -> None:
        """Wait until nothing waits to be written."""
        if not self.closed:
            with self._changed:
                self._changed.wait_for(lambda: self._thread is None or not (self._jobs or self._busy))

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
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    __del__ = close
