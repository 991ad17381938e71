"""A cluster on disk: a snapshot and later journal segments."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from copter.runtime.errors import SnapshotError
from copter.storage.disk import DISK
from copter.storage.encoding import Reader, encode
from copter.storage.files import make_folders, read_file, sync_folder, write_atomically
from copter.storage.journal import Contents, History, Journal, operations_of, read_journal
from copter.storage.sealing import Seal
from copter_serve.service import ownership
from copter_serve.service.attained import Had
from copter_serve.service.cluster_record import ClusterRecord
from copter_serve.service.cluster_state import Accepted, ClusterState
from copter_serve.service.delta import read_pin
from copter_serve.service.delta_log import journal_sync, reserved, segment
from copter_serve.service.job_record import JobRecord
from copter_serve.service.plan_book import PlanBook
from copter_serve.service.problems import Problem

SEAL = Seal(b"\x89COPTERV", 1, "a snapshot of a served cluster")
SEGMENT = re.compile(r"journal-[0-9]{8}")
CHUNK = 500  # jobs encoded before other threads get the processor


@dataclass(slots=True)
class Stored:
    """A cluster read from disk: its state, creation time, and open journal."""

    state: ClusterState
    book: PlanBook
    created_s: float
    journal: Journal
    number: int


@dataclass(frozen=True, slots=True)
class Frozen:
    """Contents of a snapshot, copied at one instant and never changed."""

    record: ClusterRecord
    created_s: float
    sequence: int
    jobs: Mapping[str, JobRecord]
    nodes: Mapping[str, list[str]]
    next_index: Mapping[str, int]
    pins: Mapping[str, Any]
    accepted: Mapping[str, Accepted]
    plan: Mapping[str, Any]
    allocations: Mapping[str, Any]
    attained: Mapping[str, Had]

    @classmethod
    def of(
        cls, state: ClusterState, book: PlanBook, created_s: float, pending: Collection[Mapping[str, Any]] = ()
    ) -> Frozen:
        """Make shallow copies; `pending` are the deltas in the state that the plan has not followed yet."""
        if pending:
            book = book.after(pending)
        return cls(
            state.record,
            created_s,
            state.sequence,
            dict(state.jobs),
            {kind: list(nodes) for kind, nodes in state.nodes.items()},
            dict(state.next_index),
            dict(state.pins),
            dict(state.accepted),
            dict(book.header),
            dict(book.allocations),
            dict(book.attained.jobs),
        )

    def parts(self, history: History) -> Iterator[bytes]:
        """Yield the snapshot in pieces."""
        front = {
            "record": self.record.document(),
            "created_s": self.created_s,
            "sequence": self.sequence,
            "nodes": dict(self.nodes),
            "next_index": dict(self.next_index),
            "pins": {name: {"gpu_type": kind, "nodes": dict(nodes)} for name, (kind, nodes) in self.pins.items()},
            "accepted": dict(self.accepted),
            "plan": dict(self.plan),
        }
        yield from (bytes(part) for part in encode([history.lineage, history.edits, history.chain]))
        yield from (bytes(part) for part in encode(json.dumps(front)))
        for items in (list(self.jobs.values()), list(self.allocations.items()), list(self.attained.items())):
            for first in range(0, len(items), CHUNK):
                chunk = [
                    each.document() if isinstance(each, JobRecord) else each for each in items[first : first + CHUNK]
                ]
                yield from (bytes(part) for part in encode(json.dumps(chunk)))
            yield from (bytes(part) for part in encode(None))

    def sealed(self, history: History) -> bytes:
        """Return the snapshot as one byte string."""
        return b"".join(SEAL.close(list(self.parts(history))))


def write_snapshot(folder: Path, frozen: Frozen, history: History) -> None:
    """Write the snapshot, completely or not at all."""
    write_atomically(folder / "snapshot", [frozen.sealed(history)])


def drop_segments(folder: Path, below: int) -> None:
    """Delete the journal's segments whose number is below `below`."""
    for number in segments(folder):
        if number < below:
            DISK.get().remove(segment(folder, number))
    sync_folder(folder)


def segments(folder: Path) -> list[int]:
    """Return the numbers of the journal's segments, in order."""
    return sorted(int(name[8:]) for name in DISK.get().names(folder) if SEGMENT.fullmatch(name))


def create(folder: Path, record: ClusterRecord, created_s: float, sync: str) -> Stored:
    """Create a cluster's folder with a first snapshot and an empty journal; returns the cluster.

    The folder is made under another name and renamed when its snapshot is complete.

    Parameters
    ----------
    folder : path
    record : ClusterRecord
    created_s : float
        Creation time of the cluster.
    sync : str
        Whether the journal waits for the disk.

    Raises
    ------
    SnapshotError
        If the folder cannot be written, or its name is taken.
    """
    try:
        make_folders(folder.parent)
        made = ownership.begin(folder.parent, folder.name)
    except OSError as error:
        raise SnapshotError(f"{folder} cannot be made: {error.strerror}") from error
    try:
        state, book, history = ClusterState(record), PlanBook(), History()
        write_snapshot(made, Frozen.of(state, book, created_s), history)
        ownership.finish(made, folder)
        journal = Journal.create(segment(folder, 1), history, None, journal_sync(sync), reserved(sync))
    except OSError as error:
        raise SnapshotError(f"{folder} cannot be made: {error.strerror}") from error
    finally:
        if DISK.get().kind(made) is not None:
            ownership.take_away(made)
    sync_folder(folder)
    return Stored(state, book, created_s, journal, 1)


def recover(folder: Path, sync: str) -> Stored:
    """Return a cluster in the state of its last acknowledged change.

    Raises
    ------
    SnapshotError
        If a file is damaged, from a newer copter, or in use; the error names it.
    """
    where = os.fspath(folder / "snapshot")
    if sync == "always":
        sync_folder(folder)  # a killed service may have renamed a file without waiting for the disk
    state, book, created_s, history = read_snapshot(read_file(where), where)
    numbers = segments(folder)
    if not numbers:
        # The service was killed between the first snapshot and the first segment, so nothing had been acknowledged.
        journal = Journal.create(segment(folder, 1), history, None, journal_sync(sync), reserved(sync))
        return Stored(state, book, created_s, journal, 1)
    journal, last = Journal.resume(segment(folder, numbers[-1]), journal_sync(sync), reserved(sync))
    try:
        place: History | None = None
        for number in numbers:
            path = segment(folder, number)
            contents = last if number == numbers[-1] else read_journal(path)
            if place is None and contents.first.edits > history.edits:
                raise SnapshotError(f"the journal {path} begins after {where} ends: a segment is missing")
            if place is not None and contents.first != place:
                raise SnapshotError(f"the journal {path} does not go on from the one before it")
            _replay(state, book, contents, history, os.fspath(path))
            place = contents.last
        if place is None or place.edits < history.edits:
            raise SnapshotError(f"{where} is newer than the journal {segment(folder, numbers[-1])}: one is missing")
    except BaseException:
        journal.close()
        raise
    return Stored(state, book, created_s, journal, numbers[-1])


def _replay(state: ClusterState, book: PlanBook, contents: Contents, history: History, where: str) -> None:
    """Apply a segment's records that the snapshot does not contain."""
    if contents.first.lineage != history.lineage:
        raise SnapshotError(f"{where} belongs to another cluster")
    for place, offset, payload in contents.records:
        if place.edits <= history.edits:
            continue
        try:
            for kind, (body,) in operations_of(payload, where):
                if kind == "delta":
                    change = json.loads(body)
                    state.apply(change)
                    book.follow(change)
                elif kind == "plan":
                    book.take(json.loads(body), state)
                else:
                    raise SnapshotError(f"{where} holds a record of kind {kind!r}, of a newer copter")
        except (Problem, ValueError, TypeError, LookupError, AttributeError) as error:
            raise SnapshotError(f"{where} cannot be replayed at byte {offset}: {error}") from error


def read_snapshot(data: bytes, where: str) -> tuple[ClusterState, PlanBook, float, History]:
    """Return state, plan, creation time and journal position of a snapshot; raises SnapshotError."""
    reader = Reader(SEAL.open(data, where), where)
    try:
        lineage, edits, chain = reader.value()
        front = json.loads(reader.value())
        state = ClusterState(ClusterRecord.read(front["record"]))
        for kind, names in front["nodes"].items():
            state.nodes[kind] = dict.fromkeys(names)
        state.type_of_node = {name: kind for kind, names in state.nodes.items() for name in names}
        state.next_index.update(front["next_index"])
        state.sequence = front["sequence"]
        state.pins.update({name: read_pin("", pin) for name, pin in front["pins"].items()})
        for name, told in front["accepted"].items():  # files of copter 0.1 have only a number
            state.accepted[name] = Accepted(told, None) if isinstance(told, int) else Accepted(*told)
        while (chunk := reader.value()) is not None:
            state.jobs.update((each["id"], JobRecord.read("", each)) for each in json.loads(chunk))
        allocations: dict[str, Any] = {}
        while (chunk := reader.value()) is not None:
            allocations.update(json.loads(chunk))
        book = PlanBook()
        # older snapshots end before this part
        while reader.at < len(reader.data) and (chunk := reader.value()) is not None:
            book.attained.jobs.update((name, Had(*each)) for name, each in json.loads(chunk) if name in state.jobs)
        there = {name: each for name, each in allocations.items() if name in state.jobs}
        book.restore(front["plan"], there)
        # The copy may contain a delta that was applied but not yet durable, which the plan had not followed yet.
        book.look_again(state, float(front["plan"].get("computed_s") or 0.0))
        return state, book, front["created_s"], History(lineage, edits, chain)
    except (Problem, ValueError, TypeError, LookupError, AttributeError) as error:
        raise SnapshotError(f"{where} cannot be read: {error}") from error
