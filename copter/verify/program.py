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

HEAD = b"\x89COPTERT\x01\0\0\0" + zlib.crc32(b"\x89COPTERT\x01\0\0\0").to_bytes(4, "little")
Path = str | os.PathLike[str]
TYPES = {b"d": "<f8", b"f": "<f4", b"i": "<i4", b"q": "<i8", b"B": "|u1", b"?": "|b1"}
FAULTS = (LookupError, TypeError, ValueError, ArithmeticError, AssertionError, RecursionError, struct.error, zlib.error)
# What the edits of requests set, argument by argument; without an argument, or with None, the DEFAULTS.
EDITS = {
    "add": "cost limit lower upper scale offset integer rounding least own_low own_high fixed most column price",
    "limits": "limit lower upper least",
    "sums": "limit least",
    "private_bounds": "own_low own_high",
    "integer": "integer",
    "fix": "fixed",
    "cost": "cost scale offset rounding most column price",
    "costs": "cost scale offset most column price",
    "scale": "scale offset column price most",
    "exceptions": "column price",
    "rescale": "scale offset column price most",
}
DEFAULTS = {"lower": 0.0, "upper": inf, "integer": False, "least": -inf, "fixed": -1, "most": inf, "rounding": 0.0}
LENGTHS = {"cost": 0, "lower": 0, "upper": 0, "own_low": 1, "own_high": 1}  # as many as columns, as private rows


class Unusable(Exception):
    """Raised for a file that is not a tape or is damaged, or that contains an invalid edit."""


def decoded(data: BytesIO, left: list[int]) -> Any:
    """Return the next value, a tag of one byte and its content (little-endian); left[0] more values may be there."""
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
    left[0] -= (n := 2 * length if tag == b"{" else length)
    assert left[0] >= 0, "it holds more values than its bytes in the file allow"
    items = [decoded(data, left) for _ in range(n)]
    return dict(zip(items[::2], items[1::2], strict=True)) if tag == b"{" else tuple(items) if tag == b"(" else items


def records(path: Path) -> Iterator[tuple[bytes, int, int, Any]]:
    """Yield (kind, stream, round, value) of each whole record of a tape (copter/storage/tape/layout.py)."""
    with open(path, "rb") as file:
        if (head := file.read(16)) != HEAD:
            other = f"it has format {int.from_bytes(head[8:10], 'little')}, or a damaged head: this reads format 1"
            raise Unusable(other if head[:8] == HEAD[:8] else "it is no copter tape, or a damaged one")
        size, at, digest, number = file.seek(0, 2), file.seek(16), bytes(16), 0
        while len(front := file.read(28)) == 28:
            kind, stream, stored, length, checksum = struct.unpack("<4sIQQI", front)
            where, at = f"round {number}, byte {at}", at + 28 + stored + 16
            try:
                good = zlib.crc32(front[:24]) == checksum and length <= 1 << 33
                good &= stored <= length + 4 * (length >> 20) + 4 and length <= max(1 << 25, 64 * stored)
                assert good, f"its head, of {length} bytes, {stored} stored"
                if at > size:
                    break
                pieces, plain = BytesIO(content := file.read(stored)), BytesIO()
                digest = blake2b(digest + front + content, digest_size=16).digest()
                assert file.read(16) == digest, "its content"
                while word := pieces.read(4):  # the length of a piece; its top bit: it is not compressed
                    short = int.from_bytes(word, "little")
                    piece = pieces.read(short & 0x7FFFFFFF)
                    plain.write(piece if short >> 31 else zlib.decompressobj().decompress(piece, 1 << 20))
                assert plain.tell() == length, "its length"
                plain.seek(0)
                yield kind, stream, number, decoded(plain, [(1 << 20) + stored])
            except FAULTS as error:
                raise Unusable(f"{where}: a record is damaged: {error}") from None
            number += kind == b"ROUN"
        if front:
            yield b"TORN", -1, number, f"cut short in the record after round {number - 1}"


class Program:
    """A model after its recorded edits, minimised; `sign` is the sign of the costs.

    A row keeps its number, and is free once it is dropped; `slots` has the row of each slot of the ledger. A request's
    `usage` is a template's number or a pattern: (columns, own rows, column, row and value of each entry), where ~i is
    the own row i: the first is the sum of the columns, the others are private rows.
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
        cost = [state["cost"][at] for at in state["cost_at"]]
        lower = [state["lower_each"].get(at, 0.0) for at in range(len(names))]
        upper = [state["upper_each"].get(at, each) for at, each in enumerate(state["upper"].tolist())]
        rest = state["at_least"], *state["private_bounds"], state["fixed"], state["most"]
        self.add(names, usages, cost, state["limit"], lower, upper, *state["scale"].T, state["integer"], None, *rest)
        for at, (kind, numbers, rates) in state.get("worths", {}).items():
            self.set_worth(names[at], (kind, numbers), rates)
        for at, pair in state["exceptions"].items():
            self.put("exceptions", [names[at]], pair)
        self.next = state["next"][1]

    def pattern(self, start: Any, row: Any, value: Any, private: Any = None) -> Any:
        begin, own_row, own_value, bounds, *_ = private or (0 * start, row[:0], value[:0], ())
        n, part, own = len(start) - 1, slice(start[0], start[-1]), slice(begin[0], begin[-1])
        columns = [np.repeat(np.arange(n), np.diff(each)) for each in (np.arange(n + 1), start, begin)]
        rows = np.full(n, ~0), np.array(self.slots, int)[row[part]], ~(1 + own_row[own])
        return n, 1 + len(bounds), *map(np.concatenate, (columns, rows, (np.ones(n), value[part], own_value[own])))

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
        sizes = np.array([(columns, own - 1, 1) for columns, own, *_ in map(self.used, requests)], int).reshape(-1, 3)
        for field, value in zip_longest(EDITS[edit].split(), values):
            counts = sizes[:, LENGTHS.get(field, 2)]
            if isinstance(value, list) and field in LENGTHS:
                parts = zip(value, counts.tolist(), strict=True)
                value = np.concatenate([np.zeros(0), *(np.broadcast_to(each, n) for each, n in parts)])
            array = np.ravel(DEFAULTS.get(field, ()) if value is None else value)
            if field in ("column", "price"):
                counts = counts * (len(array) // max(len(names), 1))
            assert len(array) in (1, counts.sum(), counts.max(initial=0)), f"{len(array)} values of {field}"
            each = np.split(np.resize(array, counts.sum()), counts.cumsum())
            for request, piece in zip(requests, each, strict=False):
                request[field] = piece

    def set_worth(self, name: Any, worth: Any, rates: Any) -> None:
        assert len(rates) == self.used(self.requests[name])[0], f"{len(rates)} rates of request {name!r}"
        self.requests[name] |= {"worth": worth, "rates": rates}

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
            case "add", (name, usage, *values, own):
                self.add([name], [usage], *values, *sides(own, 1))
            case "add_many", (names, usage, costs, lower, upper, (limit, *numbers), least, own):
                usages, own = [usage] * len(names), sides(own, len(names))
                self.add(names, usages, costs, limit, lower, upper, *numbers, least, *own)
            case "add_own" | "columns", (names, first, start, row, value, *rest):
                cost, limit, least, rounding, private, lower, upper, integer = rest[:8]
                counts, (begin, own_row, own_value, *own) = private or (0 * first, (0 * start, row, value, None, None))
                each = zip(pairwise(first.tolist()), np.diff(counts).tolist(), strict=True)
                rows = [(slice(a, b + 1), n) for (a, b), n in each]
                usages = [(start[at], row, value, (begin[at], own_row, own_value, range(n))) for at, n in rows]
                numbers = cost, limit, lower, upper, self.sign, 0.0, integer, rounding, least, *own
                self.add(names, usages, *numbers, new=edit == "add_own")
            case "remove", (names,):
                for name in names:
                    del self.requests[name]
            case "worth", (names, None, None):
                for name in names:
                    del self.requests[name]["worth"]
            case "worth", (names, worths, rates):
                for each in zip(names, worths, rates, strict=True):
                    self.set_worth(*each)
            case "shared_costs", (names, costs, start, which, *scale):
                self.put("costs", names, (np.concatenate([costs[start[at] : start[at + 1]] for at in which]), *scale))
            case _, (names, *values) if edit in EDITS:
                self.put(edit, names if isinstance(names, list) else [names], values)
            case _:
                raise LookupError(f"there is no operation {edit!r} of {len(arguments)} arguments")


def sides(own: Any, count: int) -> Any:
    """Return (lower, upper) bounds of the private rows of so many requests; None each if they are not given."""
    return (None, None) if own is None else np.reshape(own, (count, 2, -1)).swapaxes(0, 1)


class Flat:
    """min cost'x, low <= x <= high, row_low <= rows <= row_high.

    Rows are those of resources first, then each request's own. Request k has the columns first[k] to first[k + 1], of
    `owner` k, and the rows own_first[k] to own_first[k + 1], of which the first is its sum; entry e is `value` in `row`
    of `column`.
    """

    def __init__(self, program: Program) -> None:
        requests = list(program.requests.values())
        used, place = [program.used(each) for each in requests], np.arange(len(requests))
        columns, own, entries = np.array([(*each[:2], len(each[2])) for each in used], int).reshape(-1, 3).T
        self.first, self.own_first = np.append(0, columns.cumsum()), len(program.low) + np.append(0, own.cumsum())
        self.n, self.owner, self.sums = self.first[-1], np.repeat(place, columns), self.own_first[:-1]

        def each(*fields: str) -> Any:
            return np.concatenate([np.zeros(0), *(request[field] for request in requests for field in fields)])

        limit, scale, offset, most = map(each, ("limit", "scale", "offset", "most"))
        self.cost = np.minimum(scale[self.owner] * each("cost") + offset[self.owner], most[self.owner])
        single = each("column").astype(int)
        at = np.repeat(self.first[:-1], [len(request["column"]) for request in requests]) + single
        self.cost[at[single >= 0]] = each("price")[single >= 0]
        self.low, self.high, fixed = each("lower"), each("upper"), each("fixed").astype(int)
        assert (fixed < columns).all(), "a fixed column is of no request"
        at = (self.first[:-1] + fixed)[fixed >= 0]
        value = np.minimum(self.high[at], limit[fixed >= 0])
        self.high = np.where((fixed >= 0)[self.owner], self.low, self.high)
        self.low[at] = self.high[at] = value
        self.row_low = np.concatenate((program.low, each("least", "own_low")))
        self.row_high = np.concatenate((program.high, each("limit", "own_high")))
        column, row, self.value = (np.concatenate([np.zeros(0, int), *(each[k] for each in used)]) for k in (2, 3, 4))
        of = np.repeat(place, entries)
        self.column, self.row = self.first[of] + column, np.where(row < 0, self.own_first[of] + ~row, row)
