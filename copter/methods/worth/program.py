"""The requests of a model side by side, as the passes over concave worths read them; kept and patched over rounds."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter.methods.worth.requests import KINDS, Requests
from copter.model.ledger import HeldWorth, Ledger
from copter.model.matrix.changes import Mark
from copter.problem.worth import LOG, PIECES, POWER, QUADRATIC, Worth
from copter.runtime.errors import EditNotAllowedError

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Part = dict[str, Any]

# a worth's numbers (then 1 and 0) in the order in which the passes read them: weight, floor, exponent or curvature
READ = {LOG: [0, 1, 2], POWER: [1, 2, 0], QUADRATIC: [0, 3, 1]}
WASTE = 2.0  # places per column in use, from which on the program is built anew
ROOM = 1.3  # places made for each one in use, so that new requests are written into the same arrays
LARGEST = 1e100  # size of a worth
LEAST_ROOM = 64  # ... and in addition


class WorthProgram:
    """The requests of a model with concave worths, in the objective's own sense: a maximisation.

    The arrays have room for new requests; those that have left keep their places, without columns, until the program is
    built anew.

    Attributes
    ----------
    slots : ndarray (n,) int32
        Slot of each request; -1 where a request has left.
    place : ndarray (slots,) int64
        Place of the request in each slot, or -1.
    constant : ndarray (n,)
        Worth of requests that can have no column.
    packing : ndarray (rows,) of bool
        Rows without usage below zero.
    passes : Requests
    """

    _mark: Mark

    def __init__(self, ledger: Ledger) -> None:
        self._build(ledger)

    def follow(self, ledger: Ledger) -> None:
        """Take over the model's edits since the last call: what changed alone, if only requests did."""
        changed = None if self._rows != ledger.matrix.n_rows else ledger.changes.of_requests_since(self._mark)
        waste = self._used["rate"] > WASTE * ledger.matrix.n_columns + 100
        if changed is None or waste or WASTE * len(changed) > self._used["count"]:
            self._build(ledger)
        elif len(changed):
            self._patch(ledger, changed)
        self._mark = ledger.changes.mark

    @property
    def parts(self) -> Part:
        """The arrays of :class:`Requests`, as far as they are in use."""
        return {name: each[: self._used[name]] for name, each in self._arrays.items()}

    @property
    def slots(self) -> Ints:
        """Slot of each request; -1 where a request has left."""
        slots: Ints = self._arrays["slot"][: self._used["slot"]]
        return slots

    @property
    def size(self) -> float:
        """Sum of the sizes of the requests' worths."""
        n = self._used["count"]
        return float(np.sum(np.abs(self._arrays["size"][:n]), where=self._arrays["count"][:n] > 0))

    def _build(self, ledger: Ledger) -> None:
        slots = np.fromiter(ledger.slot_of.values(), dtype=np.int32, count=len(ledger.slot_of))
        parts = _parts_of(ledger, slots)
        self._used = {name: len(each) for name, each in parts.items()}
        self._arrays = {name: _with_room(each) for name, each in parts.items()}
        self._rows, self._mark = ledger.matrix.n_rows, ledger.changes.mark
        self.constant = float(parts["constant"].sum())
        self.place = np.full(int(ROOM * ledger.matrix.n_slots) + LEAST_ROOM, -1, dtype=np.int64)
        self.place[slots] = np.arange(len(slots))
        self.packing = np.ones(self._rows, dtype=bool)
        self.packing[parts["row"][parts["value"] < 0.0]] = False
        self.passes = Requests(self._arrays, self._rows, len(slots))

    def _patch(self, ledger: Ledger, changed: Ints) -> None:
        """Replace the requests in these slots: the old ones get no columns, the new ones come last."""
        arrays, used, matrix = self._arrays, self._used, ledger.matrix
        live = changed[changed < matrix.n_slots]
        live = live[matrix.sizes_of(live) > 0]
        new = _parts_of(ledger, live)
        new["start"] += used["rate"]
        new["entry"] = new["entry"][1:] + used["row"]
        new["piece"] += used["slopes"]
        room = all(used[name] + len(each) <= len(arrays[name]) for name, each in new.items())
        if not room or matrix.n_slots > len(self.place):
            self._build(ledger)
            return
        old = self.place[changed[changed < len(self.place)]]
        old = old[old >= 0]
        self.passes.leave(old)
        self.place[arrays["slot"][old]] = -1
        arrays["count"][old], arrays["constant"][old], arrays["slot"][old] = 0, 0.0, -1
        self.place[live] = used["slot"] + np.arange(len(live))
        for name, each in new.items():
            arrays[name][used[name] : used[name] + len(each)] = each
            used[name] += len(each)
        self.packing[new["row"][new["value"] < 0.0]] = False
        self.constant = float(arrays["constant"][: used["constant"]].sum())
        self.passes.grow(used["count"])

    def keys(self) -> tuple[NDArray[np.int64], Floats]:
        """Return (slot << 32 | column, value) of the columns of the point that are not zero, ascending."""
        return self.passes.nonzero(self.place, self._arrays["column"])


def _with_room(part: NDArray[Any]) -> NDArray[Any]:
    """Return an array with room at its end."""
    more = np.zeros((int(ROOM * len(part)) + LEAST_ROOM, *part.shape[1:]), dtype=part.dtype)
    more[: len(part)] = part
    return more


def _parts_of(ledger: Ledger, slots: Ints) -> Part:
    """Return the arrays of these requests side by side; "column" is each column's number in its request."""
    matrix, worths = ledger.matrix, ledger.worths
    ids: list[Any] = []
    special = np.zeros(len(slots), dtype=bool)
    limits, leasts = matrix.sums_of(slots)
    for at, slot in enumerate(slots.tolist()):
        if (why := ledger.not_plain(slot)) is not None:
            ids = ids or [next(each for each, place in ledger.slot_of.items() if place == slot)]
            raise EditNotAllowedError(
                f"request {ids[0]!r}: {why}. In a model with concave worths each request has a limit alone"
            )
        special[at] = limits[at] <= 0.0 or matrix.fixed_of(slot) >= 0
    sizes = matrix.sizes_of(slots).astype(np.int32)
    start = np.append(0, np.cumsum(sizes)).astype(np.int32)
    columns = (np.arange(start[-1]) - np.repeat(start[:-1], sizes)).astype(np.int32)
    flat = matrix.gather(slots, start, columns)
    rates = [worths[slot][1] if slot in worths else np.zeros(n) for slot, n in zip(slots.tolist(), sizes, strict=True)]
    held = [worths.get(slot) for slot in slots.tolist()]
    rate = np.concatenate([np.zeros(0), *rates])
    cost = -flat.cost + 0.0
    limit = limits.copy()
    idle = (leasts == -inf).astype(np.int8)
    count, begin, constant = sizes.copy(), start[:-1].copy(), np.zeros(len(slots))
    for at in np.flatnonzero(special).tolist():  # a fixed request is its column alone, one without room is nothing
        column = matrix.fixed_of(int(slots[at]))
        if column >= 0:
            value = float(flat.upper[begin[at] + column])
            begin[at], count[at], limit[at], idle[at] = begin[at] + column, 1, min(value, limit[at]), 0
        if limit[at] <= 0.0:
            count[at] = 0
        own = held[at]
        if own is not None:
            worth = Worth(*own[0])
            total = float(limit[at] * rate[begin[at]]) if count[at] else 0.0
            constant[at] = 0.0 if count[at] else worth(0.0)
            if worth(total) == -inf:
                name = next(each for each, place in ledger.slot_of.items() if place == slots[at])
                raise EditNotAllowedError(
                    f"request {name!r} can have nothing, which its worth values at -inf: give the worth a floor"
                )
    parts: Part = {
        "start": begin,
        "count": count,
        "entry": flat.entry_start.astype(np.int32),
        "row": flat.row,
        "rate": rate,
        "cost": cost,
        "value": flat.coefficient,
        "limit": np.where(limit > 0.0, limit, 1.0),
        "idle": idle,
        "slot": slots.copy(),
        "column": columns,
        "constant": constant,
    }
    largest = limit * np.maximum.reduceat(np.append(rate, 0.0), start[:-1]) if len(slots) else limit
    parts.update(_curves(held, largest))
    most = np.maximum.reduceat(np.append(np.maximum(cost, 0.0), 0.0), start[:-1]) if len(slots) else limit
    size = parts.pop("scale") + np.where(limit > 0.0, limit, 0.0) * most
    parts["size"] = np.where(size > 0.0, size, float(size.mean()) if size.any() else 1.0)
    return parts


def _curves(held: list[HeldWorth | None], largest: Floats) -> Part:
    """Return the arrays of the worths; `largest` is the largest total of each request, `scale` the worth's size."""
    n = len(held)
    kind, curve, scale = np.zeros(n, dtype=np.int32), np.zeros((n, 3)), np.zeros(n)
    piece, n_pieces = np.zeros(n, dtype=np.int32), np.zeros(n, dtype=np.int32)
    slopes, lengths = [0.0], [0.0]
    names = np.array(["" if each is None else each[0][0] for each in held], dtype="U9")
    for at in np.flatnonzero(names == PIECES).tolist():
        numbers = held[at][0][1]  # type: ignore[index]
        z, own = float(largest[at]), list(numbers[2::2])
        piece[at], n_pieces[at] = len(slopes), (len(numbers)) // 2
        slopes += numbers[1::2]
        lengths += [*own, max(z - sum(own), 0.0)]
        kind[at], curve[at, 0] = KINDS[PIECES], numbers[0]
        rises = [max(slope, 0.0) * min(length, z) for slope, length in zip(numbers[1::2], (*own, z), strict=True)]
        scale[at] = min(sum(rises), max(numbers[1], 0.0) * z) or abs(numbers[1]) * min(lengths[piece[at]], z)
    for name, order in READ.items():
        mine = np.flatnonzero(names == name)
        if len(mine):
            table = np.array([held[at][0][1] for at in mine.tolist()])  # type: ignore[index]
            kind[mine] = KINDS[name]
            curve[mine] = np.column_stack((table, np.ones(len(mine)), np.zeros(len(mine))))[:, order]
    a, floor, alpha = curve.T
    half = 0.5 * largest
    for name in (LOG, POWER):
        mine = np.flatnonzero(kind == KINDS[name])
        with np.errstate(over="ignore", divide="ignore"):
            sizes = a[mine] * half[mine] * (half[mine] + floor[mine]) ** -alpha[mine]
        scale[mine] = np.minimum(sizes, LARGEST)
    mine = np.flatnonzero(kind == KINDS[QUADRATIC])
    scale[mine] = np.abs(a[mine]) * np.minimum(np.abs(a[mine]) / alpha[mine], largest[mine])
    return {
        "kind": kind,
        "curve": curve,
        "scale": scale,
        "piece": piece,
        "n_pieces": n_pieces,
        "slopes": np.array(slopes),
        "lengths": np.array(lengths),
    }
