"""A reader of tapes, and a model of dictionaries to which the recorded edits are applied; imports nothing of copter."""

import os
import struct
import zlib
from collections.abc import Iterator
from hashlib import blake2b
from math import inf, prod
from typing import Any

import numpy as np

Path = str | os.PathLike[str]
Record = tuple[bytes, int, int, object]
U = 2.0**-53
CELLS = 1 << 20  # reduced costs worked out at once: 8 MiB an array
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
    return (
        dict(zip(items[::2], items[1::2], strict=True)) if tag == b"{" else tuple(items) if tag == b"(" else items
    ), at


def unpacked(content: bytes) -> bytes:
    """Return a payload from its pieces, each with its length and stored plain (top bit) or compressed."""
    at, pieces = 0, []
    while at < len(content):
        word, begin = struct.unpack_from("<I", content, at)[0], at + 4
        at = begin + (word & 0x7FFFFFFF)
        piece = content[begin:at]
        pieces.append(piece if word >> 31 else zlib.decompressobj().decompress(piece, 1 << 20))
    return b"".join(pieces)


def records(path: Path) -> Iterator[Record]:
    """Yield (kind, stream, round, value) of every complete record; copter/tape/layout.py describes the format."""
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
    """A usage pattern: coefficients and private rows by column, and the requests that use it."""

    def __init__(self, contents: Any, shared: bool, serial: int) -> None:
        self.shared, self.serial, self.members, self.group = shared, serial, {}, None
        self.fill(*contents)

    def fill(self, start: Any, row: Any, value: Any, private: Any = None) -> None:
        self.n, self.group, self.row, self.value = len(start) - 1, None, row, value
        self.column, self.n_own = (
            np.repeat(np.arange(self.n), np.diff(start)),
            0 if private is None else len(private[3]),
        )
        begin, self.own_row, self.own_value = private[:3] if self.n_own else (0 * start, row[:0], value[:0])
        self.own_column = np.repeat(np.arange(self.n), np.diff(begin))


class Request:
    """A request's costs, box, sum, and bounds of private rows (lower, then upper)."""

    def __init__(self, template: Template, cost: Any, limit: float, *rest: Any) -> None:
        lower, upper, scale, offset, integer, least, own = (*rest, -inf, None)[:7] if len(rest) < 7 else rest
        self.template, self.base, self.limit, self.least, self.integer = template, cost, limit, least, integer
        self.scale, self.offset, self.lower, self.upper, self.single, self.fixed = scale, offset, lower, upper, {}, -1
        self.most = inf
        self.own = np.zeros(0) if own is None else np.ravel(own)

    def arrays(self) -> tuple[Any, Any, Any]:
        """Return (cost, lower, upper) of the columns; no column exceeds what the sum leaves for it."""
        cost = np.minimum(self.scale * np.asarray(self.base, dtype=np.float64) + self.offset, self.most)
        cost[list(self.single)] = list(self.single.values())
        low, high = np.full(self.template.n, float(0)) + self.lower, np.full(self.template.n, float(0)) + self.upper
        if self.fixed >= 0:
            value, high = min(high[self.fixed], self.limit), low.copy()
            low[self.fixed] = high[self.fixed] = value
        room = self.limit - low.sum()
        if 0 <= room < inf:  # it is infinite where a column has no lower bound, too
            high = np.where(high == inf, (low + room) * (1 + 4 * self.template.n * U), high)
        return cost, low, high


class Program:
    """A model after the recorded operations, minimised; only `do` changes it, and `sign` is the sign of the costs."""

    def __init__(self, state: Any) -> None:
        self.sign, self.offset = -1.0 if state["sense"] == "max" else 1.0, state["offset"]
        self.low, self.high = state["rows"][0].tolist(), state["rows"][1].tolist()
        self.row_of, self.free = (
            dict(zip(state["resources"], state["row"].tolist(), strict=True)),
            state["free_rows"].tolist(),
        )
        self.next, self.templates, self.requests = state["next"][1], {}, {}
        for at, (serial, shared) in enumerate(zip(state["serials"], state["shared"], strict=True)):
            contents = (*state["templates"][at], state["private_rows"].get(at))
            self.templates[serial] = Template(contents, shared, serial)
        begin = 0
        for at, name in enumerate(state["requests"]):
            serial = state["serials"][state["template"][at]]
            begin, end = begin + self.templates[serial].n_own, begin
            box = state["lower_each"].get(at, 0.0), state["upper_each"].get(at, state["upper"][at])
            own = np.concatenate([each[end:begin] for each in state["private_bounds"]])
            rest = *state["scale"][at], bool(state["integer"][at]), state["at_least"][at], own
            cost = state["cost"][state["cost_at"][at] if "cost_at" in state else at]
            self.hang(name, serial, cost, state["limit"][at], *box, *rest)
            vars(self.requests[name]).update(fixed=int(state["fixed"][at]), most=state.get("most", {at: inf})[at])
            if at in state["exceptions"]:
                self.do("exceptions", (name, *state["exceptions"][at]))

    def source(self, source: Any, shared: bool = False) -> Template:
        """Return a template by serial number, or a new one."""
        if isinstance(source, tuple):
            self.templates[self.next] = Template(source, shared, self.next)
            source, self.next = self.next, self.next + 1
        return self.templates[source]

    def hang(self, name: Any, source: Any, *rest: Any) -> None:
        assert name not in self.requests, f"request {name!r} is there already"
        template = self.source(source)
        self.requests[name] = template.members[name] = Request(template, *rest)
        template.group = None

    def leave(self, name: Any) -> None:
        """Detach a request from its template, which is deleted if it belonged to this request alone."""
        template = self.kept(name).template
        del template.members[name]
        if not template.shared:
            del self.templates[template.serial]

    def kept(self, name: Any) -> Request:
        """Return a request that is about to be edited."""
        self.requests[name].template.group = None
        return self.requests[name]

    def set_row(self, name: Any, low: float, high: float) -> None:
        if name not in self.row_of:
            self.row_of[name] = self.free.pop() if self.free else len(self.low)
            self.low += [0.0] * (self.row_of[name] == len(self.low))
            self.high += [0.0] * (len(self.low) - len(self.high))
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
                self.source(tuple(contents), True)
            case "update_template", (serial, *contents):
                self.templates[serial].fill(*contents)
            case "drop_template", (serial,):
                del self.templates[serial]
            case "add", (name, source, cost, limit, lower, upper, scale, offset, integer, _, *rest):
                self.hang(name, source, cost, limit, lower, upper, scale, offset, integer, *rest)
            case "add_many", (names, serial, costs, lower, upper, numbers, *rest):
                leasts, own = (*rest, None, None)[:2]
                for at, (name, limit, scale, offset, integer) in enumerate(zip(names, *numbers[:4], strict=True)):
                    more = -inf if leasts is None else leasts[at], None if own is None else own[at]
                    self.hang(name, serial, costs[at], limit, lower, upper, scale, offset, integer, *more)
            case "add_own", (names, first, start, row, value, cost, limits, leasts, _, *rest):
                private, lower, upper, integer = (*rest, *(None, 0.0, inf, None)[len(rest) :])
                for at, name in enumerate(names):
                    a, b = first[at : at + 2]
                    contents, own = (start[a : b + 1] - start[a], *(x[start[a] : start[b]] for x in (row, value))), None
                    if private is not None and private[0][at] < private[0][at + 1]:
                        (r, s), (begin, own_row, own_value, low, high) = private[0][at : at + 2], private[1]
                        entries, own = slice(begin[a], begin[b]), np.concatenate((low[r:s], high[r:s]))
                        rows = begin[a : b + 1] - begin[a], own_row[entries], own_value[entries], low[r:s], high[r:s]
                        contents = (*contents, rows)
                    box = [each if isinstance(each, float) else each[a:b].copy() for each in (lower, upper)]
                    more = self.sign, 0.0, integer is not None and bool(integer[at]), leasts[at], own
                    self.hang(name, contents, cost[a:b], limits[at], *box, *more)
            case "remove", (names,):
                for name in names:
                    self.leave(name)
                    del self.requests[name]
            case "usage", (name, tuple() as contents) if not self.requests[name].template.shared:
                self.requests[name].template.fill(*contents)
            case "usage", (name, source):
                self.leave(name)
                self.requests[name].template = template = self.source(source)
                template.members[name], template.group = self.requests[name], None
            case "limits", (name, limit, lower, upper, *least):
                vars(self.kept(name)).update(limit=limit, lower=lower, upper=upper, least=(*least, -inf)[0])
            case "sums", (names, limits, leasts):
                for name, limit, least in zip(names, limits.tolist(), leasts.tolist(), strict=True):
                    vars(self.kept(name)).update(limit=limit, least=least)
            case "private_bounds", (names, lower, upper):
                end = 0
                for name in names:
                    at, end = end, end + self.kept(name).template.n_own
                    self.requests[name].own = np.concatenate((lower[at:end], upper[at:end]))
            case "integer", (name, integer):
                self.requests[name].integer = integer
            case "fix", (name, column):
                self.kept(name).fixed = column
            case "cost", (name, cost, scale, offset, _):
                vars(self.kept(name)).update(base=cost, scale=scale, offset=offset, most=inf, single={})
            case "costs", (names, costs, scale, offset):
                end = 0
                for name in names:
                    at, end = end, end + self.requests[name].template.n
                    self.do("cost", (name, costs.ravel()[at:end], scale, offset, 0.0))
            case "shared_costs", (names, costs, start, which, scale, offset):
                for name, at in zip(names, which.tolist(), strict=True):
                    self.do("cost", (name, costs[start[at] : start[at + 1]], scale, offset, 0.0))
            case "scale", (name, scale, offset, columns, costs):
                vars(self.kept(name)).update(scale=scale, offset=offset, most=inf)
                self.do("exceptions", (name, columns, costs))
            case "exceptions", (name, columns, costs):
                self.kept(name).single = (
                    {} if columns is None else dict(zip(columns.tolist(), costs.tolist(), strict=True))
                )
            case "rescale", (names, *numbers, last) if len(numbers) in (3, 4):
                lists = [each.tolist() for each in (*numbers, last, np.full(len(names), inf))][:5]
                for name, scale, offset, at, cost, most in zip(names, *lists, strict=True):
                    single = {at: cost} if at >= 0 else {}
                    vars(self.kept(name)).update(scale=scale, offset=offset, most=most, single=single)
            case _:
                raise LookupError(f"there is no operation {operation!r} of {len(arguments)} arguments")

    def groups(self) -> Iterator[Any]:
        """Yield requests by template: (template, places, costs, low, high, limit, least, own bounds)."""
        place = {name: at for at, name in enumerate(self.requests)}
        for template in [each for each in self.templates.values() if each.members]:
            each, places = list(template.members.values()), np.array([place[name] for name in template.members])
            if template.group is None:
                columns = [np.array(arrays) for arrays in zip(*(request.arrays() for request in each), strict=True)]
                sums = [np.array([getattr(request, what) for request in each]) for what in ("limit", "least")]
                template.group = *columns, *sums, np.array([request.own for request in each]).reshape(len(each), -1)
            for at in range(0, len(each), step := max(CELLS // template.n, 1)):
                yield template, places[at : at + step], *(array[at : at + step] for array in template.group)
