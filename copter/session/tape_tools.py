"""Tools for tapes: describe, cut, anonymise, export a program."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from hashlib import sha256
from typing import Any

from copter.model.formats.mps import write_mps
from copter.runtime.errors import SnapshotError
from copter.session.playback import Playback, Round
from copter.session.session import Session
from copter.session.snapshot import plain
from copter.storage.encoding import Buffers, encode
from copter.storage.files import PathLike
from copter.storage.tape.layout import BASE, PLAN, ROUND
from copter.storage.tape.reader import TapeReader
from copter.storage.tape.writer import TapeWriter

# The arguments of each ledger operation that are names: r a request, rs a list of requests, g a resource, gs a list of
# resources.
NAMED = {
    "count": "g",
    "rows": "gs",
    "drop_row": "g",
    "add": "r",
    "add_many": "rs",
    "add_own": "rs",
    "columns": "rs",
    "remove": "rs",
    "usage": "r",
    "limits": "r",
    "sums": "rs",
    "private_bounds": "rs",
    "integer": "r",
    "fix": "r",
    "cost": "r",
    "costs": "rs",
    "shared_costs": "rs",
    "scale": "r",
    "exceptions": "r",
    "rescale": "rs",
}
Renamed = Callable[[str, Hashable], str]


def described(path: PathLike) -> dict[str, Any]:
    """Summarise a tape: sizes, rounds, sessions, edits by operation, answers by status.

    `sha256` covers the models and edits only: two recordings of the same rounds agree in it, whatever the solver
    answered and however long it took.

    Raises
    ------
    SnapshotError
        If the tape is damaged, or holds an edit or an answer that cannot be: what :class:`Playback` refuses.
    """
    reader, digest = TapeReader(path), sha256()
    edits: dict[str, int] = {}
    statuses: dict[str, int] = {}
    found: dict[str, Any] = {"file": reader.path, "bytes": os.path.getsize(reader.path), "sessions": 0, "rounds": 0}
    found |= {"plans": 0, "base_bytes": 0, "round_bytes": 0, "read_bytes": 0, "with_prices": 0}
    for record in reader:
        found["read_bytes"] += len(record.payload)
        found["base_bytes" if record.kind == BASE else "round_bytes"] += record.end - record.begin
        found["sessions"] += record.kind == BASE
        found["plans"] += record.kind == PLAN
        if record.kind == BASE:
            model = record.value().get("model")
            digest.update(b"".join(encode(model)))
        if record.kind == ROUND:
            items = record.value()
            digest.update(b"".join(encode(items[:-1])))
            found["rounds"] += 1
            try:
                for kind, content in items[:-1]:
                    for name, _ in content if kind == "edit" else [(kind, None)]:
                        edits[name] = edits.get(name, 0) + 1
                answer = items[-1]["answer"]
                statuses[answer["status"]] = statuses.get(answer["status"], 0) + 1
                found["with_prices"] += "prices" in answer
            except (TypeError, ValueError, LookupError) as error:
                raise SnapshotError(f"{record.where} does not hold a round: {error}") from error
    for _ in Playback(path):  # applies every edit, and looks at every answer
        pass
    found["torn_at"] = reader.torn
    return {**found, "sha256": digest.hexdigest(), "edits": edits, "answers": statuses}


def cut(path: PathLike, out: PathLike, first: int, last: float) -> None:
    """Copy rounds `first` to `last - 1` of a tape to another; a session that began before `first` starts cold there."""
    playback, begun = Playback(path), set[int]()
    payloads = {
        (record.kind, record.round): record.payload for record in TapeReader(path) if record.kind in (ROUND, PLAN)
    }
    writer = TapeWriter(out)
    try:
        rounds = 0
        for played in playback:
            if not first <= played.number < last:
                continue
            rounds += 1
            if played.stream not in begun:
                begun.add(played.stream)
                _put(writer, BASE, played.stream, encode(plain(_fresh(played)._state())))
                _put(writer, ROUND, played.stream, encode([played.mark]))
            else:
                _put(writer, ROUND, played.stream, [payloads[ROUND, played.number]])
            if played.plan is not None:
                _put(writer, PLAN, played.stream, [payloads[PLAN, played.number + 1]])
        if not rounds:
            raise SnapshotError(f"{os.fspath(path)} has no round {first}")
    except BaseException:
        writer.close()
        os.unlink(writer.path)
        raise
    writer.close()


def _fresh(played: Round) -> Session:
    """Return an unsolved session of the same model."""
    return Session(played.session.model, played.session.settings)


def anonymised(path: PathLike, out: PathLike) -> None:
    """Copy a tape with requests renamed r0, r1, ... and resources g0, g1, ...; numbers are unchanged."""
    number: dict[tuple[str, Hashable], str] = {}

    def renamed(kind: str, name: Hashable) -> str:
        return number.setdefault((kind, name), f"{kind}{len(number)}")

    reader, writer = TapeReader(path), TapeWriter(out)
    try:
        for record in reader:
            payload: Buffers = [record.payload]
            try:
                if record.kind == BASE:
                    payload = encode(_base_renamed(record.value(), renamed))
                elif record.kind == ROUND:
                    *items, mark = record.value()
                    payload = encode([*(_item_renamed(kind, content, renamed) for kind, content in items), mark])
            except (TypeError, ValueError, LookupError, AttributeError) as error:
                raise SnapshotError(f"{record.where} cannot be renamed: {error}") from error
            _put(writer, record.kind, record.stream, payload)
    except BaseException:
        writer.close()
        os.unlink(writer.path)
        raise
    writer.close()


def _base_renamed(state: dict[str, Any], renamed: Renamed) -> dict[str, Any]:
    """Return a session's state with new names and without its last integer plan."""
    model = {
        **state["model"],
        "requests": [renamed("r", name) for name in state["model"]["requests"]],
        "resources": [renamed("g", name) for name in state["model"]["resources"]],
    }
    return {**state, "model": model, "plan": None}


def _item_renamed(kind: str, content: Any, renamed: Renamed) -> tuple[str, Any]:
    if kind != "edit":
        return kind, content
    operations = []
    for name, arguments in content:
        what = NAMED.get(name)
        if what is not None:
            first = arguments[0]
            named = [renamed(what[0], each) for each in first] if len(what) == 2 else renamed(what, first)
            arguments = (named, *arguments[1:])
        operations.append((name, arguments))
    return kind, operations


def as_mps(path: PathLike, out: PathLike, number: int) -> None:
    """Write the linear program of round `number` of the tape `path` to the MPS file `out`.

    Raises
    ------
    SnapshotError
        If the tape has no such round.
    """
    for played in Playback(path):
        if played.number == number:
            write_mps(played.session.model.to_linear_program(), out)
            return
    raise SnapshotError(f"{os.fspath(path)} has no round {number}")


def _put(writer: TapeWriter, kind: bytes, stream: int, payload: Any) -> None:
    if not writer.append(kind, stream, payload):
        raise SnapshotError(writer.failed or f"the tape {writer.path} cannot be written")
