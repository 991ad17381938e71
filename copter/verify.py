"""Check the answers on a tape: ``python -m copter.verify FILE``, or this file alone, by ``python verify.py FILE``.

It imports nothing of copter. It reads the tape, does the recorded edits to a model of dictionaries, and judges, for
min c'x (a maximisation has its signs turned), rows lower <= A x <= upper, and requests r with columns x_r in P_r: box,
least <= sum x_r <= limit, private rows B x_r:

- Bound. Prices y (of the sign that a bound of their row answers for, else zero) and multipliers u of private rows prove
  c'x >= y'b + sum_r [u'b_r + min over box and sum of (c_r - A_r'y - B_r'u)'x]. It is evaluated outward (Neumaier and
  Shcherbina, 2004): d = c - A'y - B'u in floating point is wrong by at most g (|c| + |A|'|y| + |B|'|u|), g =
  n u / (1 - n u) with n operations, u = 2^-53 (Higham 2002, lemma 3.1); sums are exact (fsum). The answer's bound must
  be no more; where it is, by less than 1e-9, the same is evaluated in rational numbers.
- Infeasible. The same with c = 0 must be above zero. Unbounded rounds are counted as unanswered.
- LP point. Objective recomputed; rows, boxes and gap within the settings' tolerance, if it is called optimal.
- Plan. Every row, sum and box in exact rational arithmetic; the objective recomputed. Figures that are not whole stand
  for decimals, so half a unit in the last place of each (2^-53 of the sum of sizes) is allowed to them, nothing else.
"""

import os
import struct
import sys
import zlib
from collections.abc import Iterator, Sequence
from fractions import Fraction
from hashlib import blake2b
from itertools import chain
from math import fsum, inf, prod
from typing import Any

import numpy as np

Path = str | os.PathLike[str]
Record = tuple[bytes, int, int, object]
U = 2.0**-53
NEAR = 1e-9  # relative: a bound that misses by less is judged in rational arithmetic, which is a thousand times slower
CELLS = 1 << 20  # reduced costs worked out at once: 8 MiB an array
TYPES = {b"d": "<f8", b"f": "<f4", b"i": "<i4", b"q": "<i8", b"B": "|u1", b"?": "|b1"}
FAULTS = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError, struct.error, zlib.error)


class Unusable(Exception):
    """A file that is no tape, or is damaged, or does what a model does not take."""


def read(data: Any, at: int = 0, depth: int = 0) -> tuple[Any, int]:
    """(value, end) of a tag of one byte and its content, little-endian."""
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
    """A payload from its pieces, each behind its length and stored as it is (top bit) or compressed."""
    at, pieces = 0, []
    while at < len(content):
        word, begin = struct.unpack_from("<I", content, at)[0], at + 4
        at = begin + (word & 0x7FFFFFFF)
        piece = content[begin:at]
        pieces.append(piece if word >> 31 else zlib.decompressobj().decompress(piece, 1 << 20))
    return b"".join(pieces)


def records(path: Path) -> Iterator[Record]:
    """(kind, stream, round, value) of every whole record of a tape; copter/tape/layout.py says how they lie."""
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
                return
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


class Template:
    """A usage pattern: coefficients by column, private rows by column, and the requests that have it."""

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
    """Costs, box, sum and bounds of private rows (lower ones, then upper ones) of a request."""

    def __init__(self, template: Template, cost: Any, limit: float, *rest: Any) -> None:
        lower, upper, scale, offset, integer, least, own = (*rest, -inf, None)[:7] if len(rest) < 7 else rest
        self.template, self.base, self.limit, self.least, self.integer = template, cost, limit, least, integer
        self.scale, self.offset, self.lower, self.upper, self.single, self.fixed = scale, offset, lower, upper, {}, -1
        self.own = np.zeros(0) if own is None else np.ravel(own)

    def arrays(self) -> tuple[Any, Any, Any]:
        """(cost, lower, upper) of the columns; no column is above what the sum leaves to it."""
        cost = self.scale * np.asarray(self.base, dtype=np.float64) + self.offset
        cost[list(self.single)] = list(self.single.values())
        low, high = np.full(self.template.n, float(0)) + self.lower, np.full(self.template.n, float(0)) + self.upper
        if self.fixed >= 0:
            value, high = min(high[self.fixed], self.limit), low.copy()
            low[self.fixed] = high[self.fixed] = value
        room = self.limit - low.sum()
        high = np.where(high == inf, (low + room) * (1 + 4 * self.template.n * U) if room >= 0 else high, high)
        return cost, low, high


class Program:
    """A model as the recorded operations leave it; `do` is all that changes it. Minimised: `sign` is of the costs."""

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
            self.hang(name, serial, state["cost"][at], state["limit"][at], *box, *rest)
            self.requests[name].fixed = int(state["fixed"][at])
            if at in state["exceptions"]:
                self.do("exceptions", (name, *state["exceptions"][at]))

    def source(self, source: Any, shared: bool = False) -> Template:
        """A template by its serial number, or a new one."""
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
        """A request leaves its template, which goes if it was its own."""
        template = self.kept(name).template
        del template.members[name]
        if not template.shared:
            del self.templates[template.serial]

    def kept(self, name: Any) -> Request:
        """A request that is about to be edited."""
        self.requests[name].template.group = None
        return self.requests[name]

    def set_row(self, name: Any, low: float, high: float) -> None:
        if name not in self.row_of:
            self.row_of[name] = self.free.pop() if self.free else len(self.low)
            self.low += [0.0] * (self.row_of[name] == len(self.low))
            self.high += [0.0] * (len(self.low) - len(self.high))
        self.low[self.row_of[name]], self.high[self.row_of[name]] = low, high

    def do(self, operation: str, arguments: Any) -> None:
        """One operation of the journal (copter/model/ledger.py)."""
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
                vars(self.kept(name)).update(base=cost, scale=scale, offset=offset, single={})
            case "costs", (names, costs, scale, offset):
                end = 0
                for name in names:
                    at, end = end, end + self.requests[name].template.n
                    self.do("cost", (name, costs.ravel()[at:end], scale, offset, 0.0))
            case "scale", (name, scale, offset, columns, costs):
                vars(self.kept(name)).update(scale=scale, offset=offset)
                self.do("exceptions", (name, columns, costs))
            case "exceptions", (name, columns, costs):
                self.kept(name).single = (
                    {} if columns is None else dict(zip(columns.tolist(), costs.tolist(), strict=True))
                )
            case "rescale", (names, *numbers):
                for name, scale, offset, at, cost in zip(names, *(each.tolist() for each in numbers), strict=True):
                    vars(self.kept(name)).update(scale=scale, offset=offset, single={at: cost} if at >= 0 else {})
            case _:
                raise LookupError(f"there is no operation {operation!r} of {len(arguments)} arguments")

    def groups(self) -> Iterator[Any]:
        """The requests template by template: (template, their places, costs, low, high, limit, least, own bounds)."""
        place = {name: at for at, name in enumerate(self.requests)}
        for template in [each for each in self.templates.values() if each.members]:
            each, places = list(template.members.values()), np.array([place[name] for name in template.members])
            if template.group is None:
                columns = [np.array(arrays) for arrays in zip(*(request.arrays() for request in each), strict=True)]
                sums = [np.array([getattr(request, what) for request in each]) for what in ("limit", "least")]
                template.group = *columns, *sums, np.array([request.own for request in each]).reshape(len(each), -1)
            for at in range(0, len(each), step := max(CELLS // template.n, 1)):
                yield template, places[at : at + step], *(array[at : at + step] for array in template.group)


def dense(places: Any, triples: Any, width: int, otherwise: Any = 0.0) -> Any:
    """What an answer says of (place, column, value), in a row for each of these places, and otherwise this."""
    array, row = np.zeros((len(places), width)) + otherwise, np.full(int(triples[0].max(initial=0)) + 1, -1)
    row[places[places < len(row)]] = np.flatnonzero(places < len(row))
    at = row[triples[0]]
    assert min(triples[0].min(initial=0), triples[1].min(initial=0)) >= 0, "a place is below zero"
    array[at[at >= 0], triples[1][at >= 0]] = triples[2][at >= 0]
    return array


def proven(program: Program, prices: Any, own: Any, with_costs: bool = True) -> float:
    """What prices of the resources and multipliers of private rows prove of the minimum, rounded down."""
    y, terms = np.zeros(len(program.low)), []
    y[list(program.row_of.values())] = prices
    side = np.where(y > 0, program.low, program.high)
    y[~np.isfinite(side) | ~np.isfinite(y)] = 0.0
    terms.append(y * np.where(y == 0, 0.0, side))
    for template, places, cost, low, high, limit, least, bounds in program.groups():
        n, used, size = template.n, template.value * y[template.row], with_costs * np.abs(cost)
        gain = np.bincount(template.column, used, n) - with_costs * cost
        size = size + np.bincount(template.column, np.abs(used), n)
        operations = np.bincount(template.column, minlength=n) + np.bincount(template.own_column, minlength=n) + 8.0
        if template.n_own:
            u = dense(places, own, template.n_own + 1)[:, 1:]
            side = np.where(u > 0, bounds[:, : template.n_own], bounds[:, template.n_own :])
            u[~np.isfinite(side) | ~np.isfinite(u)] = 0.0
            terms.append(u * np.where(u == 0, 0.0, side))
            cell, used = (
                template.own_column + n * np.arange(len(u))[:, None],
                template.own_value * u[:, template.own_row],
            )
            gain += np.bincount(cell.ravel(), used.ravel(), gain.size).reshape(gain.shape)
            size += np.bincount(cell.ravel(), np.abs(used).ravel(), gain.size).reshape(gain.shape)
        error = operations * U / (1.0 - operations * U) * size * (1.0 + 8 * U)
        # A price of the sum, so that its columns are worth no more: that of the last unit, filling from the best on.
        best, start, price = gain + error, low.sum(1), np.zeros(len(places))
        one = np.isfinite(limit) & (least <= start) & ((high - low) >= (limit - start)[:, None]).all(1)
        price[one] = np.maximum(best[one].max(1), 0.0)
        for k in np.flatnonzero(~one & (np.isfinite(limit) | np.isfinite(least))).tolist():
            order = np.argsort(-best[k], kind="stable")
            filled = np.cumsum((high - low)[k][order]) + start[k]
            last, first = (np.flatnonzero(filled >= each[k])[:1] for each in (limit, least))
            price[k] = max([*best[k][order[last]], 0.0]) if np.isfinite(limit[k]) else 0.0
            price[k] = min([*best[k][order[first]], 0.0]) if price[k] == 0.0 and np.isfinite(least[k]) else price[k]
        terms.append(-price * np.where(price == 0, 0.0, np.where(price > 0, limit, least)))
        net, error = gain - price[:, None], error + 2 * U * (np.abs(gain) + np.abs(price)[:, None])
        with np.errstate(invalid="ignore"):
            worst = [np.where(at == 0, 0.0, net * at + error * np.abs(at)) for at in (low, high)]
            worst[1] = np.where((high == inf) & (net + error <= 0), worst[0], worst[1])
        terms.append(-np.maximum(*worst))
    every = np.concatenate([np.ravel(each) for each in terms])
    if not np.isfinite(every).all():
        return -inf
    return fsum(every.tolist()) - 4 * U * fsum(np.abs(every).tolist()) - 1e-300


def proven_exactly(program: Program, prices: Any, own: Any, with_costs: bool = True) -> Any:
    """The same in rational arithmetic, without a loss: for bounds that lie within the rounding of :func:`proven`."""
    y, total = dict(zip(program.row_of.values(), map(Fraction, prices.tolist()), strict=True)), Fraction(0)
    for row, price in y.items():
        side = program.low[row] if price > 0 else program.high[row]
        y[row] = price if abs(side) < inf else Fraction(0)
        total += y[row] * Fraction(side) if y[row] else 0
    for template, places, cost, low, high, limit, least, bounds in program.groups():
        n_own, owns = template.n_own, dense(places, own, template.n_own + 1)[:, 1:]
        used = [Fraction(0)] * template.n
        for column, row, value in zip(template.column.tolist(), template.row.tolist(), template.value, strict=True):
            used[column] += Fraction(value) * y.get(row, 0)
        for k in range(len(places)):
            sides = np.where(owns[k] > 0, bounds[k, :n_own], bounds[k, n_own:])
            u = [Fraction(each) if abs(side) < inf else 0 for each, side in zip(owns[k], sides, strict=True)]
            total += sum(each * Fraction(side) for each, side in zip(u, sides, strict=True) if each)
            gain = [each - Fraction(with_costs * value) for each, value in zip(used, cost[k], strict=True)]
            for column, row, value in zip(template.own_column, template.own_row, template.own_value, strict=True):
                gain[column] += Fraction(value) * u[row]
            start = sum(map(Fraction, low[k]))
            room, need = (each if abs(each) == inf else Fraction(each) - start for each in (limit[k], least[k]))
            total -= sum(g * Fraction(at) for g, at in zip(gain, low[k], strict=True))
            for g, j in sorted(((g, j) for j, g in enumerate(gain)), reverse=True):
                wide = inf if high[k, j] == inf else Fraction(high[k, j]) - Fraction(low[k, j])
                part = min(wide, room if g > 0 else max(min(need, room), 0))
                if g and part == inf:
                    return -inf
                total, room, need = total - (g * part if g else 0), room - part, need - part
                if room <= 0 or (g <= 0 and need <= 0):
                    break
    return total


def point(program: Program, triples: Any) -> tuple[float, float, float]:
    """(objective, violation relative to the bounds' norm, largest violation) of an LP's point (F6)."""
    use, off, size, total = np.zeros(len(program.low)), [], [], [np.zeros(0)]
    between = lambda value, low, high: off.append(np.maximum(np.maximum(low - value, value - high), 0.0))  # noqa: E731
    for template, places, cost, low, high, limit, least, bounds in program.groups():
        x, n_own = dense(places, triples, template.n, low), template.n_own
        cells = template.own_row + n_own * np.arange(len(places))[:, None]
        own = np.bincount(cells.ravel(), (x[:, template.own_column] * template.own_value).ravel(), len(places) * n_own)
        use += np.bincount(template.row, template.value * x.sum(0)[template.column], len(use))
        for value, lower, upper in (
            (x.sum(1), least, limit),
            (own, bounds[:, :n_own].ravel(), bounds[:, n_own:].ravel()),
        ):
            between(value, lower, upper)
            size += [lower[np.isfinite(lower)], upper[np.isfinite(upper)]]
        between(x.ravel(), low.ravel(), high.ravel())
        total.append((cost * x)[x != 0.0])
    rows = list(program.row_of.values())
    lower, upper = np.array(program.low)[rows], np.array(program.high)[rows]
    between(use[rows], lower, upper)
    norm = np.linalg.norm(np.concatenate([*size, lower[np.isfinite(lower)], upper[np.isfinite(upper)]]))
    off = np.concatenate(off)
    return fsum(np.concatenate(total).tolist()), np.linalg.norm(off) / (1 + norm), off.max(initial=0.0)


def holds(terms: Any, low: float, high: float) -> bool:
    """Whether low <= sum of the terms' products <= high, exactly; see the top for what decimals are allowed."""
    total, size = (sum(f(Fraction(a)) * f(Fraction(b)) for a, b in terms) for f in (Fraction, abs))
    whole = all(float(a).is_integer() and float(b).is_integer() for a, b in terms)
    spare = [0 if whole or abs(bound) == inf else Fraction(U) * (size + abs(Fraction(bound))) for bound in (low, high)]
    return (low == -inf or total >= Fraction(low) - spare[0]) and (high == inf or total <= Fraction(high) + spare[1])


def plan_faults(program: Program, plan: Any) -> Iterator[str]:
    """What is wrong with a plan: a whole request has one column at 1 or none, a continuous one its shares."""
    whole = np.flatnonzero(plan["column"] >= 0)
    ones = whole, plan["column"][whole], np.ones(len(whole))
    triples = [np.concatenate(each) for each in zip(ones, plan["share"], strict=True)]
    assert len(plan["column"]) == len(program.requests), "it has another number of requests"
    rows, names, costs = {row: [] for row in program.row_of.values()}, list(program.requests), []
    for template, places, cost, low, high, limit, least, bounds in program.groups():
        x = dense(places, triples, template.n)
        for k, place in enumerate(places.tolist()):
            used, name, own = np.flatnonzero(x[k]).tolist(), names[place], [[] for _ in range(template.n_own)]
            costs += [Fraction(cost[k, j]) * Fraction(x[k, j]) for j in used]
            if program.requests[name].integer and not all(float(x[k, j]).is_integer() for j in used):
                yield f"request {name!r} must be whole"
            for j in used:
                for e in range(*np.searchsorted(template.column, [j, j + 1])):
                    rows[template.row[e]].append((template.value[e], x[k, j]))
                for e in range(*np.searchsorted(template.own_column, [j, j + 1])):
                    own[template.own_row[e]].append((template.own_value[e], x[k, j]))
            if (x[k] < low[k]).any() or (x[k] > high[k]).any():
                yield f"request {name!r} has a column out of its bounds"
            sides = np.reshape(bounds[k], (2, -1)).T.tolist()
            if not all(
                map(holds, [[(x[k, j], 1.0) for j in used], *own], *zip((least[k], limit[k]), *sides, strict=True))
            ):
                yield f"request {name!r} does not keep to its sum or private rows"
    for name, row in program.row_of.items():
        if not holds(rows[row], program.low[row], program.high[row]):
            yield f"resource {name!r} is used beyond its bounds"
    yield from objective_fault(program, float(sum(costs)), plan["objective"])


def objective_fault(program: Program, value: float, told: float) -> Iterator[str]:
    """Whether an objective is what its point is worth: sums in another order differ by less than 1e-9."""
    if not abs(program.sign * value + program.offset - told) <= 1e-9 * (1 + abs(told)):
        yield f"objective {told!r}, its point is worth {program.sign * value + program.offset!r}"


def bound_fault(program: Program, bound: float, prices: Any, own: Any) -> Iterator[str]:
    """Whether a bound is better than what its prices prove: first outward, then, if that is not enough, exactly."""
    told = program.sign * (Fraction(bound) - Fraction(program.offset))
    for prove in proven, proven_exactly:
        lowest = prove(program, prices, own)
        if lowest != -inf and told <= Fraction(lowest):
            return
        if lowest != -inf and told - Fraction(lowest) > (abs(told) + 1) * Fraction(NEAR):
            break
    yield f"bound {bound!r}, its prices prove {float(program.sign * lowest + program.offset)!r}"


def judged(program: Program, mark: Any, plan: Any) -> tuple[list[str], list[str]]:
    """(what was checked, what is wrong) of a round."""
    answer, settings, faults, checked = mark["answer"], mark["settings"], [], []
    none = np.zeros(0, int), np.zeros(0, int), np.zeros(0)
    if answer["status"] == "primal_infeasible":
        m = len(program.row_of)
        ray, own, at = answer["ray"], [], m
        for place, request in enumerate(program.requests.values()):
            at += request.limit < inf or request.least > -inf
            own += [(place, 1 + k, ray[at + k]) for k in range(request.template.n_own)]
            at += request.template.n_own
        triples = [np.array(each) for each in zip(*own, strict=True)] or none
        checked = ["ray"]
        faults += [] if proven(program, ray[:m], triples, False) > 0.0 else ["the ray proves nothing"]
    elif answer.get("prices") is not None and answer["status"] != "dual_infeasible":
        own = answer.get("own", none)
        prices, own = program.sign * answer["prices"], (own[0], own[1], program.sign * own[2])
        if answer["certified"]:
            checked.append("bound")
            faults += bound_fault(program, answer["bound"], prices, own)
        value, violation, most = point(program, (answer["place"], answer["column"], answer["x"]))
        checked.append("point")
        faults += objective_fault(program, value, answer["objective"])
        gap = abs(answer["objective"] - answer["bound"]) / (1 + abs(answer["objective"]) + abs(answer["bound"]))
        if answer["status"] == "optimal":
            within = violation <= settings["tolerance"] and most <= settings["absolute_tolerance"]
            faults += [] if within else [f"the point violates its rows by {violation:.3g} ({most:.3g} at most)"]
            faults += [] if gap <= settings["tolerance"] else [f"called optimal with a gap of {gap:.3g}"]
        if plan is not None and "column" in plan:
            checked.append("plan")
            faults += plan_faults(program, plan)
            faults += bound_fault(program, plan["bound"], prices, own) if plan["certified"] else []
    return checked, faults


def verify(path: Path) -> Iterator[tuple[int, list[str], list[str]]]:
    """(round, what was checked, what is wrong) of every round of a tape; Unusable if it cannot be read or done."""
    programs, waiting = {}, None
    for kind, stream, number, value in chain(records(path), [(b"ENDS", None, None, None)]):
        try:
            if waiting is not None:
                before, number_of, program, mark = waiting
                plan = value if kind == b"PLAN" and stream == before else None
                with np.errstate(all="ignore"):  # a number that is none proves nothing
                    checked, faults = judged(program, mark, plan)
                yield number_of, checked, faults
                waiting = None
            if kind == b"BASE":
                programs[stream] = Program(value["model"])
            elif kind == b"ENDS":
                programs.pop(stream, None)
            elif kind == b"ROUN":
                for what, operations in value[:-1]:
                    for operation in operations if what == "edit" else ():
                        programs[stream].do(*operation)
                waiting = stream, number, programs[stream], value[-1]
        except FAULTS as error:
            raise Unusable(f"round {number}: {type(error).__name__}: {error}") from error


def main(paths: Sequence[Path]) -> int:
    """Verify tapes; 0 if every round is accepted, 1 if one is rejected, 2 if a file is of no use."""
    wrong = 0
    for path in paths:
        counts = dict.fromkeys(("rounds", "accepted", "rejected", "bound", "point", "plan", "ray"), 0)
        try:
            for number, checked, faults in verify(path):
                for what in ("rounds", "rejected" if faults else "accepted" if checked else "unanswered", *checked):
                    counts[what] = counts.get(what, 0) + 1
                for fault in faults:
                    print(f"{path}: round {number} is rejected: {fault}")
        except (Unusable, OSError, MemoryError) as error:
            print(f"{path}: {error or 'there is not enough memory'}", file=sys.stderr)
            return 2
        print(
            f"{path}: " + ", ".join(f"{count} {what}" for what, count in counts.items() if count or what == "rejected")
        )
        wrong += counts["rejected"]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
