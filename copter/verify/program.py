"""The records of a tape, and the linear program after its edits. It imports nothing of copter."""

import os
import struct
import zlib
from collections.abc import Iterator
from hashlib import blake2b
from io import BytesIO
from itertools import pairwise, zip_longest
from math import inf, prod
from typing import Any

import numpy as np

U = 2.0**-53  # largest relative error of one rounded operation in float64
HEAD = b"\x89COPTERT\x01\0\0\0" + zlib.crc32(b"\x89COPTERT\x01\0\0\0").to_bytes(4, "little")
Path = str | os.PathLike[str]
TYPES = {b"d": "<f8", b"f": "<f4", b"i": "<i4", b"q": "<i8", b"B": "|u1", b"?": "|b1"}
FAULTS = (LookupError, TypeError, ValueError, ArithmeticError, AssertionError, RecursionError, struct.error, zlib.error)
# What the edits of requests set, argument by argument ("_": nothing here); without an argument, or None, the DEFAULTS.
EDITS = {
    "add": "cost limit lower upper scale offset integer _ least own_low own_high fixed most column price",
    "limits": "limit lower upper least",
    "sums": "limit least",
    "private_bounds": "own_low own_high",
    "integer": "integer",
    "fix": "fixed",
    "cost": "cost scale offset _ most column price",
    "costs": "cost scale offset most column price",
    "scale": "scale offset column price most",
    "exceptions": "column price",
    "rescale": "scale offset column price most",
}
DEFAULTS = {"lower": 0.0, "upper": inf, "integer": False, "least": -inf, "fixed": -1, "most": inf}


class Unusable(Exception):
    """Raised for a file that is not a tape or is damaged, or that contains an invalid edit."""


def decoded(data: BytesIO) -> Any:
    """Return the next value: a tag of one byte and its content (little-endian)."""
    tag = data.read(1)
    if tag in (b"N", b"T", b"F"):
        return {b"N": None, b"T": True, b"F": False}[tag]
    if tag == b"D":
        return struct.unpack("<d", data.read(8))[0]
    if tag == b"A":
        kind, n = np.dtype(TYPES[data.read(1)]), data.read(1)[0]
        shape = struct.unpack(f"<{n}Q", data.read(8 * n))
        return np.frombuffer(data.read(prod(shape) * kind.itemsize), kind).reshape(shape)
    length = struct.unpack("<Q", data.read(8))[0]
    if tag == b"I":
        return int.from_bytes(data.read(length), "little", signed=True)
    if tag in (b"S", b"Y"):
        return data.read(length) if tag == b"Y" else data.read(length).decode("utf-8", "surrogatepass")
    assert tag in (b"(", b"[", b"{"), f"no value begins with {tag!r}"
    items = [decoded(data) for _ in range(2 * length if tag == b"{" else length)]
    return dict(zip(items[::2], items[1::2], strict=True)) if tag == b"{" else tuple(items) if tag == b"(" else items


def records(path: Path) -> Iterator[tuple[bytes, int, int, Any]]:
    """Yield (kind, stream, round, value) of each whole record of a tape; copter/tape/layout.py describes the layout."""
    with open(path, "rb") as file:
        if (head := file.read(16)) != HEAD:
            whole = head[:8] == HEAD[:8] and zlib.crc32(head[:12]).to_bytes(4, "little") == head[12:]
            other = f"it has format {int.from_bytes(head[8:10], 'little')}, this reads format 1: use a newer copter"
            raise Unusable(other if whole else "its head is damaged, or it is no copter tape")
        size, at, digest, number = file.seek(0, 2), file.seek(16), bytes(16), 0
        while len(front := file.read(28)) == 28:
            kind, stream, stored, length, checksum = struct.unpack("<4sIQQI", front)
            where, at = f"round {number}, byte {at}", at + 28 + stored + 16
            if zlib.crc32(front[:24]) != checksum or stored > length + 4 * (length >> 20) + 4 or length > 1 << 33:
                raise Unusable(f"{where}: the head of a record of {length} bytes, {stored} stored, is damaged")
            if at > size:
                break
            pieces, plain = BytesIO(content := file.read(stored)), BytesIO()
            digest = blake2b(digest + front + content, digest_size=16).digest()
            if digest != file.read(16):
                raise Unusable(f"{where}: a record is damaged")
            try:
                while word := pieces.read(4):  # the length of a piece; its top bit: it is not compressed
                    short = int.from_bytes(word, "little")
                    piece = pieces.read(short & 0x7FFFFFFF)
                    plain.write(piece if short >> 31 else zlib.decompressobj().decompress(piece, 1 << 20))
                assert plain.tell() == length, "its length is another"
                plain.seek(0)
                yield kind, stream, number, decoded(plain)
            except FAULTS as error:
                raise Unusable(f"{where}: a record cannot be read: {error}") from None
            number += kind == b"ROUN"
        if front:
            yield b"TORN", -1, number, f"cut short in the record after round {number - 1}"


class Program:
    """A model after its recorded edits, minimised; `sign` is the sign of the costs.

    A row keeps its number, and is free once it is dropped; `slots` has the row of each slot of the ledger. A request's
    `usage` is a template's number or a pattern: (columns, private rows, column, row and value of each entry), where ~i
    is the private row i.
    """

    def __init__(self, state: Any) -> None:
        self.sign, self.offset = -1.0 if state["sense"] == "max" else 1.0, state["offset"]
        self.low, self.high = state["rows"][0].tolist(), state["rows"][1].tolist()
        self.row_of: Any = dict(zip(state["resources"], state["row"].tolist(), strict=True))
        self.slots, self.free, self.requests = [*range(len(self.low))], state["free_rows"].tolist(), {}
        contents = [(*each, state["private_rows"].get(at)) for at, each in enumerate(state["templates"])]
        self.templates: Any = {each: self.pattern(*contents[at]) for at, each in enumerate(state["serials"])}
        names, which, self.next = state["requests"], state["template"].tolist(), 0
        usages = [state["serials"][at] if state["shared"][at] else contents[at] for at in which]
        costs = [state["cost"][at] for at in state.get("cost_at", range(len(names)))]
        upper = np.repeat(state["upper"], [self.templates[state["serials"][at]][0] for at in which])
        rest = state["at_least"], *state["private_bounds"], state["fixed"], state.get("most")
        numbers = state["limit"], None, upper, *np.transpose(state["scale"]), state["integer"], None, *rest
        self.add(names, usages, np.concatenate([np.zeros(0), *costs]), *numbers)
        for field, each in ("lower", state["lower_each"]), ("upper", state["upper_each"]):
            for at, value in each.items():
                self.requests[names[at]][field] = value
        for at, pair in state["exceptions"].items():
            self.put("exceptions", [names[at]], pair)
        self.next = state["next"][1]

    def pattern(self, start: Any, row: Any, value: Any, private: Any = None) -> Any:
        begin, own_row, own_value, bounds = private[:4] if private else (0 * start, row[:0], value[:0], ())
        columns = [np.repeat(np.arange(len(start) - 1), np.diff(each)) for each in (start, begin)]
        rows = np.array(self.slots, int)[row], ~own_row
        return len(start) - 1, len(bounds), *map(np.concatenate, (columns, rows, (value, own_value)))

    def used(self, request: Any) -> Any:
        """Return a request's pattern."""
        usage = request["usage"]
        return self.templates[usage] if isinstance(usage, int) else usage

    def add(self, names: Any, usages: Any, *values: Any, new: bool = True) -> None:
        for name, usage in zip(names, usages, strict=True):
            assert (name in self.requests) != new, f"request {name!r} is {'there already' if new else 'not there'}"
            self.requests.setdefault(name, {})["usage"] = usage if isinstance(usage, int) else self.pattern(*usage)
            self.next += not isinstance(usage, int)
        self.put("add", names, values)

    def put(self, edit: str, names: Any, values: Any) -> None:
        """Set what an edit of requests sets: one value for all, or one for each request, column or private row."""
        requests = [self.requests[name] for name in names]
        sizes = np.array([self.used(each)[:2] for each in requests], int).reshape(-1, 2)
        for field, value in zip_longest(EDITS[edit].split(), values):
            if field == "_":
                continue
            array = np.ravel(DEFAULTS.get(field, ()) if value is None else value)
            counts = np.ones(len(names), int)
            if field in ("cost", "lower", "upper", "own_low", "own_high"):
                counts = sizes[:, int(field in ("own_low", "own_high"))]
            elif field in ("column", "price"):
                counts *= len(array) // max(len(names), 1)
            assert len(array) in (1, counts.sum(), counts.max(initial=0)), f"{len(array)} values of {field}"
            for request, piece in zip(
                requests, np.split(np.resize(array, counts.sum()), counts.cumsum()), strict=False
            ):
                request[field] = piece

    def set_row(self, name: Any, low: float, high: float) -> None:
        if name not in self.row_of:
            slot = self.free.pop() if self.free else len(self.slots)
            self.slots[slot : slot + 1] = [len(self.low)]
            self.row_of[name], self.low, self.high = len(self.low), [*self.low, low], [*self.high, high]
        self.low[self.row_of[name]], self.high[self.row_of[name]] = low, high

    def do(self, edit: str, arguments: Any) -> None:
        """Apply one edit (copter/model/ledger.py)."""
        match edit, arguments:
            case "count", (name, high):
                self.set_row(name, self.low[self.row_of[name]] if name in self.row_of else -inf, high)
            case "rows", (names, lower, upper):
                for each in zip(names, lower.tolist(), upper.tolist(), strict=True):
                    self.set_row(*each)
            case "drop_row", (name,):
                row = self.row_of.pop(name)
                self.low[row], self.high[row] = -inf, inf
                self.free.append(self.slots.index(row))
            case "add_template", contents:
                self.templates[self.next] = self.pattern(*contents)
                self.next += 1
            case "update_template", (serial, *contents) if serial in self.templates:
                self.templates[serial] = self.pattern(*contents)
            case "drop_template", (serial,):
                del self.templates[serial]
            case "usage", (name, usage):
                request, own = self.requests[name], isinstance(usage, tuple)
                self.next += own and isinstance(request["usage"], int)
                request["usage"] = self.pattern(*usage) if own else usage
            case "add", (name, usage, cost, limit, lower, upper, scale, offset, integer, _, *rest):
                self.add([name], [usage], cost, limit, lower, upper, scale, offset, integer, None, *halves(rest, 1))
            case "add_many", (names, usage, costs, lower, upper, (limit, *numbers), *rest):
                usages = [usage] * len(names)
                self.add(names, usages, costs, limit, lower, upper, *numbers, *halves(rest, len(names)))
            case "add_own" | "columns", (names, first, start, row, value, cost, limit, least, _, *rest):
                private, lower, upper, integer = (*rest, None, None, None, None)[:4]
                usages, own = cut(first, start, row, value), (None, None)
                if private is not None:
                    counts, (begin, own_row, own_value, *own) = np.diff(private[0]), private[1]
                    rows = zip(usages, cut(first, begin, own_row, own_value), counts, strict=True)
                    usages = [(*usage, (*each, range(count))) for usage, each, count in rows]
                numbers = cost, limit, lower, upper, self.sign, 0.0, integer, None, least, *own
                self.add(names, usages, *numbers, new=edit == "add_own")
            case "remove", (names,):
                for name in names:
                    del self.requests[name]
            case "shared_costs", (names, costs, start, which, *scale):
                self.put("costs", names, (np.concatenate([costs[start[at] : start[at + 1]] for at in which]), *scale))
            case _, (list() as names, *values) if edit in EDITS:
                self.put(edit, names, values)
            case _, (name, *values) if edit in EDITS:
                self.put(edit, [name], values)
            case _:
                raise LookupError(f"there is no operation {edit!r} of {len(arguments)} arguments")


def halves(rest: Any, count: int) -> Any:
    """Split an edit's last arguments: (least sums, lower, upper bounds of private rows), each None if left out."""
    least, own = (*rest, None, None)[:2]
    return least, *((None, None) if own is None else np.reshape(own, (count, 2, -1)).swapaxes(0, 1))


def cut(first: Any, start: Any, *arrays: Any) -> Any:
    """Return (start, *arrays) of each request's columns, first[k] to first[k + 1] - 1 of all."""
    each = pairwise(first.tolist())
    return [(start[a : b + 1] - start[a], *(array[start[a] : start[b]] for array in arrays)) for a, b in each]


class Flat:
    """min cost'x, low <= x <= high, row_low <= rows <= row_high.

    Rows are `own` ones first, those of resources and private ones, and then the sums of all requests. Request k has the
    columns first[k] to first[k + 1], of `owner` k; entry e is `value` in `row` of `column`, those of sums left out.
    """

    @np.errstate(invalid="ignore")  # infinite lower bounds plus infinite room, which are not taken
    def __init__(self, program: Program) -> None:
        requests = list(program.requests.values())
        used, start = [program.used(each) for each in requests], np.zeros((1, 2), int)
        sizes = np.array([each[:2] for each in used], int).reshape(-1, 2)
        self.first, self.own_first = np.add(np.concatenate((start, sizes.cumsum(0))), (0, len(program.low))).T
        self.n, self.own, self.owner = self.first[-1], self.own_first[-1], np.repeat(np.arange(len(used)), sizes[:, 0])

        def each(field: str) -> Any:
            return np.concatenate([np.zeros(0), *(request[field] for request in requests)])

        limit, least, scale, offset, most = map(each, ("limit", "least", "scale", "offset", "most"))
        self.cost = np.minimum(scale[self.owner] * each("cost") + offset[self.owner], most[self.owner])
        for begin, request in zip(self.first.tolist(), requests, strict=False):
            for at, cost in zip(request["column"].tolist(), request["price"], strict=True):
                if at >= 0:
                    self.cost[begin + at] = cost
        self.low, self.high, fixed = each("lower"), each("upper"), each("fixed").astype(int)
        assert (fixed < sizes[:, 0]).all(), "a fixed column is of no request"
        at, held = (self.first[:-1] + fixed)[fixed >= 0], (fixed >= 0)[self.owner]
        value = np.minimum(self.high[at], limit[fixed >= 0])
        self.high[held] = self.low[held]
        self.low[at] = self.high[at] = value
        # The limit on the sum replaces infinite upper bounds, rounded up; it does not where a lower bound is infinite.
        low, size = (np.bincount(self.owner, each, len(limit)) for each in (self.low, abs(self.low)))
        room = limit - low + 4 * sizes[:, 0] * U * (abs(limit) + size)
        room = np.where(room >= 0, room, inf)[self.owner]
        self.high = np.where((self.high == inf) & (room < inf), self.low + room, self.high)
        self.row_low = np.concatenate((program.low, each("own_low"), least))
        self.row_high = np.concatenate((program.high, each("own_high"), limit))
        entries = [
            (c + a, np.where(r < 0, b + ~r, r), v)
            for (*_, c, r, v), a, b in zip(used, self.first, self.own_first, strict=False)
        ]
        self.column, self.row, self.value = (
            np.concatenate([np.zeros(0, int), *(each[k] for each in entries)]) for k in range(3)
        )
