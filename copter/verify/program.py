"""The records of a tape, and the model after its edits as one flat linear program; it imports nothing of copter."""

import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from math import inf, prod
from typing import Any

import numpy as np

Path = str | os.PathLike[str]
U = 2.0**-53  # largest relative error of one rounded operation in float64
TYPES = {b"d": "<f8", b"f": "<f4", b"i": "<i4", b"q": "<i8", b"B": "|u1", b"?": "|b1"}
FAULTS = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError, struct.error, zlib.error)


class Unusable(Exception):
    """Raised for a file that is not a tape or is damaged, or that contains an invalid edit."""


def read(data: Any, at: int = 0, depth: int = 0) -> tuple[Any, int]:
    """Decode a value, a tag of one byte and its content (little-endian); returns (value, end)."""
    tag, at = bytes(data[at : at + 1]), at + 1
    assert depth <= 64, "values are nested too deep"
    if tag in (b"N", b"T", b"F"):
        return {b"N": None, b"T": True, b"F": False}[tag], at
    if tag == b"D":
        return struct.unpack_from("<d", data, at)[0], at + 8
    if tag == b"A":
        kind, shape = np.dtype(TYPES[bytes(data[at : at + 1])]), struct.unpack_from(f"<{data[at + 1]}Q", data, at + 2)
        at, size = at + 2 + 8 * len(shape), prod(shape) * kind.itemsize
        return np.frombuffer(data[at : at + size], kind).reshape(shape).astype(kind.newbyteorder("=")), at + size
    length, at = struct.unpack_from("<Q", data, at)[0], at + 8
    assert length <= len(data) - at, "a length is beyond the data"
    if tag in (b"I", b"S", b"Y"):
        piece = bytes(data[at : at + length])
        decoded = int.from_bytes(piece, "little", signed=True) if tag == b"I" else piece
        return piece.decode("utf-8", "surrogatepass") if tag == b"S" else decoded, at + length
    assert tag in (b"(", b"[", b"{"), f"no value begins with {tag!r}"
    items = []
    for _ in range(2 * length if tag == b"{" else length):
        item, at = read(data, at, depth + 1)
        items.append(item)
    pairs = zip(items[::2], items[1::2], strict=True)
    return dict(pairs) if tag == b"{" else tuple(items) if tag == b"(" else items, at


def unpacked(content: bytes) -> bytes:
    """Return a payload from its pieces, each with its length and stored plain (top bit) or compressed."""
    at, pieces = 0, []
    while at < len(content):
        word, begin = struct.unpack_from("<I", content, at)[0], at + 4
        at = begin + (word & 0x7FFFFFFF)
        piece = content[begin:at]
        pieces.append(piece if word >> 31 else zlib.decompressobj().decompress(piece, 1 << 20))
    return b"".join(pieces)


def records(path: Path) -> Iterator[tuple[bytes, int, int, Any]]:
    """Yield (kind, stream, round, value) of each whole record of a tape; copter/tape/layout.py describes the layout."""
    with open(path, "rb") as file:
        head, size = file.read(16), file.seek(0, 2)
        if head[:8] != b"\x89COPTERT" or len(head) < 16 or zlib.crc32(head[:12]) != struct.unpack("<I", head[12:])[0]:
            raise Unusable("it is not a copter tape, or its head is damaged")
        if head[8:10] != b"\x01\x00":
            raise Unusable(f"it has format {head[8] + 256 * head[9]}, this verifier reads format 1")
        at, digest, number = file.seek(16), bytes(16), 0
        while len(front := file.read(28)) == 28:
            kind, stream, stored, length, checksum = struct.unpack("<4sIQQI", front)
            where, at = f"round {number}, byte {at}", at + 28 + stored + 16
            if zlib.crc32(front[:24]) != checksum or length > 1 << 33:
                raise Unusable(f"{where}: the head of a record is damaged")
            if at > size:
                break
            if stored > length + 4 * (length >> 20) + 4:
                raise Unusable(f"{where}: a record of {length} bytes, {stored} stored, is not one of a tape")
            content = file.read(stored)
            digest = blake2b(digest + front + content, digest_size=16).digest()
            if digest != file.read(16):
                raise Unusable(f"{where}: a record is damaged")
            try:
                value, end = read(memoryview(unpacked(content)))
                assert end == length, "its length is another"
            except FAULTS as error:
                raise Unusable(f"{where}: a record cannot be read: {error}") from None
            yield kind, stream, number, value
            number += kind == b"ROUN"
        if front:
            yield b"TORN", -1, number, f"cut short in the record after round {number - 1}"


class Template:
    """Entries (column, row, value) of a request's columns: in the resources and in the request's private rows."""

    def __init__(self, serial: int, shared: bool, contents: Any) -> None:
        self.serial, self.shared = serial, shared
        self.fill(*contents)

    def fill(self, start: Any, row: Any, value: Any, private: Any = None) -> None:
        self.n, self.row, self.value, self.n_own = len(start) - 1, row, value, len(private[3]) if private else 0
        begin, self.own_row, self.own_value = private[:3] if self.n_own else (0 * start, row[:0], value[:0])
        self.column, self.own_column = (np.repeat(np.arange(self.n), np.diff(each)) for each in (start, begin))


@dataclass
class Request:
    """A request's data besides its template; `own` are bounds of private rows, lower ones, then upper ones."""

    template: Template
    base: Any
    limit: float
    lower: Any = 0.0
    upper: Any = inf
    scale: float = 1.0
    offset: float = 0.0
    integer: bool = False
    least: float = -inf
    own: Any = None
    single: dict[int, float] = field(default_factory=dict)
    fixed: int = -1
    most: float = inf

    def arrays(self) -> tuple[Any, Any, Any]:
        """Return (cost, lower, upper) of the columns; the limit on the sum replaces infinite upper bounds."""
        cost = np.minimum(self.scale * np.asarray(self.base, dtype=np.float64) + self.offset, self.most)
        cost[list(self.single)] = list(self.single.values())
        low, high = np.zeros(self.template.n) + self.lower, np.zeros(self.template.n) + self.upper
        if self.fixed >= 0:
            value, high = min(high[self.fixed], self.limit), low.copy()
            low[self.fixed] = high[self.fixed] = value
        room = self.limit - low.sum()
        if 0 <= room < inf:  # infinite also if a column has no lower bound
            high = np.where(high == inf, (low + room) * (1 + 4 * self.template.n * U), high)
        return cost, low, high


class Program:
    """A model after the recorded operations, minimised; only `do` changes it. `sign` is the sign of the costs."""

    def __init__(self, state: Any) -> None:
        self.sign, self.offset = -1.0 if state["sense"] == "max" else 1.0, state["offset"]
        self.low, self.high = state["rows"][0].tolist(), state["rows"][1].tolist()
        self.row_of: Any = dict(zip(state["resources"], state["row"].tolist(), strict=True))
        self.free, self.next, self.templates, self.requests = state["free_rows"].tolist(), state["next"][1], {}, {}
        for at, (serial, shared) in enumerate(zip(state["serials"], state["shared"], strict=True)):
            contents = (*state["templates"][at], state["private_rows"].get(at))
            self.templates[serial] = Template(serial, shared, contents)
        begin = 0
        for at, name in enumerate(state["requests"]):
            serial = state["serials"][state["template"][at]]
            begin, end = begin + self.templates[serial].n_own, begin
            box = state["lower_each"].get(at, 0.0), state["upper_each"].get(at, state["upper"][at])
            own = np.concatenate([each[end:begin] for each in state["private_bounds"]])
            rest = *state["scale"][at], bool(state["integer"][at]), state["at_least"][at], own
            cost = state["cost"][state["cost_at"][at] if "cost_at" in state else at]
            self.add(name, serial, cost, state["limit"][at], *box, *rest)
            self.set(name, fixed=int(state["fixed"][at]), most=state["most"][at] if "most" in state else inf)
            self.do("exceptions", (name, *state["exceptions"].get(at, (None, None))))

    def template(self, source: Any, shared: bool = False) -> Template:
        """Return a template by its serial number, or a new one."""
        if isinstance(source, tuple):
            self.templates[self.next] = Template(self.next, shared, source)
            source, self.next = self.next, self.next + 1
        return self.templates[source]

    def add(self, name: Any, source: Any, *rest: Any) -> None:
        assert name not in self.requests, f"request {name!r} is there already"
        self.requests[name] = Request(self.template(source), *rest)

    def leave(self, name: Any) -> None:
        """Remove a request from its template; a template of its own is deleted."""
        template = self.requests[name].template
        if not template.shared:
            del self.templates[template.serial]

    def set(self, name: Any, **values: Any) -> None:
        vars(self.requests[name]).update(values)

    def set_row(self, name: Any, low: float, high: float) -> None:
        if name not in self.row_of:
            self.row_of[name] = self.free.pop() if self.free else len(self.low)
            if self.row_of[name] == len(self.low):
                self.low, self.high = [*self.low, 0.0], [*self.high, 0.0]
        self.low[self.row_of[name]], self.high[self.row_of[name]] = low, high

    def do(self, operation: str, arguments: Any) -> None:
        """Apply one operation of the journal (copter/model/ledger.py)."""
        match operation, arguments:
            case "count", (name, count):
                self.set_row(name, self.low[self.row_of[name]] if name in self.row_of else -inf, count)
            case "rows", (names, lower, upper):
                for each in zip(names, lower.tolist(), upper.tolist(), strict=True):
                    self.set_row(*each)
            case "drop_row", (name,):
                self.free.append(row := self.row_of.pop(name))
                self.low[row], self.high[row] = -inf, inf
                for each in self.templates.values():
                    keep = each.row != row
                    each.column, each.row, each.value = each.column[keep], each.row[keep], each.value[keep]
            case "add_template", contents:
                self.template(tuple(contents), True)
            case "update_template", (serial, *contents):
                self.templates[serial].fill(*contents)
            case "drop_template", (serial,):
                del self.templates[serial]
            case "add", (name, source, cost, limit, lower, upper, scale, offset, integer, _, *rest):
                self.add(name, source, cost, limit, lower, upper, scale, offset, integer, *rest)
            case "add_many", (names, serial, costs, lower, upper, numbers, *rest):
                for at, (name, limit, scale, offset, integer) in enumerate(zip(names, *numbers[:4], strict=True)):
                    least, own = (None if each is None else each[at] for each in (*rest, None, None)[:2])
                    more = integer, -inf if least is None else least, own
                    self.add(name, serial, costs[at], limit, lower, upper, scale, offset, *more)
            case "add_own", (names, first, start, row, value, cost, limits, leasts, _, *rest):
                private, lower, upper, integer = (*rest, *(None, 0.0, inf, None)[len(rest) :])
                for at, (name, a, b) in enumerate(zip(names, first[:-1], first[1:], strict=True)):
                    e, own, rows = slice(start[a], start[b]), None, None
                    if private is not None and private[0][at] < private[0][at + 1]:
                        r, (begin, own_row, own_value, low, high) = slice(*private[0][at : at + 2]), private[1]
                        p, own = slice(begin[a], begin[b]), np.concatenate((low[r], high[r]))
                        rows = begin[a : b + 1] - begin[a], own_row[p], own_value[p], low[r], high[r]
                    box = [each if isinstance(each, float) else each[a:b] for each in (lower, upper)]
                    more = self.sign, 0.0, integer is not None and bool(integer[at]), leasts[at], own
                    contents = start[a : b + 1] - start[a], row[e], value[e], rows
                    self.add(name, contents, cost[a:b], limits[at], *box, *more)
            case "remove", (names,):
                for name in names:
                    self.leave(name)
                    del self.requests[name]
            case "usage", (name, tuple() as contents) if not self.requests[name].template.shared:
                self.requests[name].template.fill(*contents)
            case "usage", (name, source):
                self.leave(name)
                self.requests[name].template = self.template(source)
            case "limits", (name, limit, lower, upper, *least):
                self.set(name, limit=limit, lower=lower, upper=upper, least=(*least, -inf)[0])
            case "sums", (names, limits, leasts):
                for name, limit, least in zip(names, limits.tolist(), leasts.tolist(), strict=True):
                    self.set(name, limit=limit, least=least)
            case "private_bounds", (names, lower, upper):
                end = 0
                for name in names:
                    at, end = end, end + self.requests[name].template.n_own
                    self.set(name, own=np.concatenate((lower[at:end], upper[at:end])))
            case "integer", (name, integer):
                self.set(name, integer=integer)
            case "fix", (name, column):
                self.set(name, fixed=column)
            case "cost", (name, cost, scale, offset, _):
                self.set(name, base=cost, scale=scale, offset=offset, most=inf, single={})
            case "costs", (names, costs, scale, offset):
                end = 0
                for name in names:
                    at, end = end, end + self.requests[name].template.n
                    self.do("cost", (name, costs.ravel()[at:end], scale, offset, 0.0))
            case "shared_costs", (names, costs, start, which, scale, offset):
                for name, at in zip(names, which.tolist(), strict=True):
                    self.do("cost", (name, costs[start[at] : start[at + 1]], scale, offset, 0.0))
            case "scale", (name, scale, offset, columns, costs):
                self.set(name, scale=scale, offset=offset, most=inf)
                self.do("exceptions", (name, columns, costs))
            case "exceptions", (name, columns, costs):
                pairs = () if columns is None else zip(columns.tolist(), costs.tolist(), strict=True)
                self.set(name, single=dict(pairs))
            case "rescale", (names, *numbers):
                lists = [*(each.tolist() for each in numbers), [inf] * len(names)][:5]
                for name, scale, offset, at, cost, most in zip(names, *lists, strict=True):
                    self.set(name, scale=scale, offset=offset, most=most, single={at: cost} if at >= 0 else {})
            case _:
                raise LookupError(f"there is no operation {operation!r} of {len(arguments)} arguments")


class Flat:
    """min cost'x, low <= x <= high, least <= sum of each request's columns <= limit, row_low <= rows <= row_high.

    Rows are those of resources, then private rows. Request k has the columns first[k] to first[k + 1], of `owner` k,
    and the rows from own_first[k] on; entry e is `value` in `row` of `column`.
    """

    def __init__(self, program: Program) -> None:
        requests, m = list(program.requests.values()), len(program.low)
        templates, none = [request.template for request in requests], [np.zeros(0)]
        arrays = [request.arrays() for request in requests]
        self.cost, self.low, self.high = (np.concatenate([*none, *(each[k] for each in arrays)]) for k in range(3))
        sizes = np.array([(each.n, each.n_own) for each in templates], int).reshape(-1, 2)
        self.owner = np.repeat(np.arange(len(requests)), sizes[:, 0])
        self.first, self.own_first = np.add(np.concatenate(([[0, 0]], sizes.cumsum(0))), (0, m)).T
        self.limit, self.least = (np.array([getattr(each, name) for each in requests]) for name in ("limit", "least"))
        own = [np.reshape([] if each.own is None else each.own, (2, -1)) for each in requests]
        self.row_low, self.row_high = np.concatenate([[program.low, program.high], *own], 1)
        assert len(self.row_low) == self.own_first[-1], "private rows have other numbers of bounds"
        at = [*zip(templates, self.first[:-1], self.own_first[:-1], strict=True)]
        entries = [*((t.column + c, t.row, t.value) for t, c, _ in at)]
        entries += [(t.own_column + c, t.own_row + r, t.own_value) for t, c, r in at if t.n_own]
        self.column, self.row, self.value = (np.concatenate([*none, *(each[k] for each in entries)]) for k in range(3))
        self.column, self.row = self.column.astype(int), self.row.astype(int)
        assert self.row.min(initial=0) >= 0, "an entry is of no row"
