"""Terms of coordinators. Each coordinator has a term, and a shard refuses calls from earlier terms."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from copter.runtime.clock import CLOCK
from copter.runtime.errors import SnapshotError
from copter.storage.disk import DISK
from copter.storage.encoding import Reader, encode
from copter.storage.files import read_file, write_atomically
from copter.storage.sealing import Seal
from copter_distributed.messages.errors import SupersededError

TERM = Seal(b"\x89COPTERT", 1, "the term of a distributed session")

Order = tuple[int, int, frozenset[int]]
"""(term of the coordinator, number of its call, births of the shards that it is meant for). A shard runs calls for its
own birth, in ascending order of term and number, and refuses any other."""

PENDING = "pending-"
"""Prefix of the name of a file with a decided batch; the coordinator's term follows."""


@dataclass(frozen=True)
class Terms:
    """Terms of coordinators, as stored in a directory.

    Attributes
    ----------
    now : int
        Term of the latest coordinator.
    settled : int
        Last term whose coordinator has completed the batches decided in earlier terms.
    """

    now: int = 0
    settled: int = 0


def read_terms(directory: str | None) -> Terms:
    """Read a directory's terms; zeros without a directory, or before the first coordinator."""
    path = None if directory is None else os.path.join(directory, "term")
    if path is None or DISK.get().kind(path) is None:
        return Terms()
    values = Reader(TERM.open(read_file(path), path), path).whole()
    try:
        return Terms(**values)
    except TypeError as error:
        raise SnapshotError(f"{path} holds no term: {error}") from None


def write_terms(directory: str, terms: Terms) -> None:
    """Write terms to a directory."""
    values = {"now": terms.now, "settled": terms.settled}
    write_atomically(os.path.join(directory, "term"), TERM.close(encode(values)))


class Turn:
    """The term of one coordinator, which begins when this object is made.

    Parameters
    ----------
    directory : str or None
        Directory of the session. Without one no other coordinator can continue the session, and the term is the time.

    Attributes
    ----------
    term : int
    """

    def __init__(self, directory: str | None) -> None:
        self.directory = directory
        self._calls = 0
        if directory is None:
            self.term = int(CLOCK.get().now() * 1e9)
            return
        known = read_terms(directory)
        self._settled = known.settled
        # Two coordinators that begin at once read the same number; random bits make their terms different.
        self.term = ((known.now >> 32) + 1) << 32 | int.from_bytes(os.urandom(4), "little")
        write_terms(directory, Terms(self.term, known.settled))

    def next(self, births: Iterable[int] = ()) -> Order:
        """Return the order of the next call, meant for the shards of these births."""
        self._calls += 1
        return self.term, self._calls, frozenset(births)

    def require_current(self) -> None:
        """Raise SupersededError if another coordinator has begun."""
        if read_terms(self.directory).now > self.term:
            raise SupersededError("another coordinator goes on with this session: this one is over")

    def unfinished(self) -> list[str]:
        """Return the files of batches that earlier coordinators may have left. Call it after the shards refuse these
        coordinators.
        """
        return [path for term, path in self._left() if self._settled <= term < self.term]

    def settle(self) -> None:
        """Record that all earlier batches are completed: later writes of earlier coordinators are ignored."""
        if self.directory is not None:
            self.require_current()
            write_terms(self.directory, Terms(self.term, self.term))
            for term, path in self._left():
                if term < self.term:
                    with suppress(OSError):  # a leftover file is ignored
                        DISK.get().remove(path)

    def _left(self) -> list[tuple[int, str]]:
        if self.directory is None:
            return []
        names = [name for name in DISK.get().names(self.directory) if name.startswith(PENDING)]
        return sorted(
            (int(name[len(PENDING) :]), os.path.join(self.directory, name))
            for name in names
            if name[len(PENDING) :].isdigit()
        )
