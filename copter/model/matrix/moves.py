"""Record of where a request's columns and private rows went when it was given others, for states kept since."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter.problem.values import ranges

Ints = NDArray[np.int32]
Keys = NDArray[np.int64]

MOST = 8  # moves that are remembered per request


@dataclass(frozen=True, slots=True)
class Move:
    """One exchange of a request's columns and private rows, between two generations of its slot.

    Attributes
    ----------
    before, after : int
        Generations of the slot.
    columns, rows : ndarray int32
        For each new column and private row the old one that it continues, -1 for none.
    n_rows : int
        Number of private rows before.
    """

    before: int
    after: int
    columns: Ints
    rows: Ints
    n_rows: int

    def then(self, later: Move) -> Move:
        """Return this move followed by a later one, as one move."""
        columns, rows = (
            np.where(second < 0, -1, np.append(first, np.int32(-1))[second]).astype(np.int32)
            for first, second in ((self.columns, later.columns), (self.rows, later.rows))
        )
        return Move(self.before, later.after, columns, rows, self.n_rows)


class Moves:
    """The last moves of each slot. A state that is older than these starts the request's columns anew."""

    def __init__(self) -> None:
        self._of_slot: dict[int, list[Move]] = {}

    def __bool__(self) -> bool:
        """Whether a move is remembered."""
        return bool(self._of_slot)

    def note(self, slot: int, move: Move) -> None:
        """Record the latest move of a slot."""
        known = self._of_slot.setdefault(slot, [])
        known.append(move)
        del known[:-MOST]

    def take_back(self, slot: int) -> None:
        """Forget the latest move of a slot, which has been undone."""
        self._of_slot[slot].pop()

    def clear(self) -> None:
        """Forget all moves, because slots are renumbered."""
        self._of_slot.clear()

    def between(self, slot: int, before: int, after: int) -> Move | None:
        """Return the move of a slot from one generation to a later one; None if it is not known as a whole."""
        known, found = self._of_slot.get(slot, []), None
        if known and known[-1].before == before:
            return known[-1] if known[-1].after == after else None
        for move in known:
            if found is None and move.before == before:
                found = move
            elif found is not None and move.before == found.after:
                found = found.then(move)
            elif found is not None:
                return None
        return found if found is not None and found.after == after else None

    def followed(self, key: Keys, generation: Keys, now: Keys, own_rows: bool = False) -> tuple[Keys, Keys] | None:
        """Return the present keys of what was kept by key, and the position of each among the old keys.

        What belongs to requests that have been removed is left out. None if nothing has moved.

        Parameters
        ----------
        key : ndarray (n,)
            slot << 32 | column, ascending; with `own_rows`, slot << 32 | own row.
        generation : ndarray (n,)
            Generation of each key's slot when it was kept.
        now : ndarray (slots,)
            The slots' present generations.
        own_rows : bool
        """
        if not self._of_slot or not len(key):
            return None
        stale = generation != now[key >> 32]
        slots, first = np.unique(key[stale] >> 32, return_index=True)
        moves = zip(slots.tolist(), generation[stale][first].tolist(), now[slots].tolist(), strict=True)
        found = [(slot, move) for slot, *ages in moves if (move := self.between(slot, *ages)) is not None]
        if not found:
            return None
        sources = [move.rows if own_rows else move.columns for _, move in found]
        counts = np.array([len(each) for each in sources])
        source, number = np.concatenate(sources).astype(np.int64), ranges(np.zeros_like(counts), counts)
        base = np.array([slot for slot, _ in found], dtype=np.int64) << 32
        each = np.repeat(base, counts)[source >= 0]
        old, new = each | source[source >= 0], each | number[source >= 0]
        if own_rows:  # row 0 is the sum of the columns
            old, new = np.concatenate((base, old + 1)), np.concatenate((base, new + 1))
        place = np.minimum(np.searchsorted(key, old), len(key) - 1)
        known = key[place] == old
        keys = np.concatenate((key[~stale], new[known]))
        order = np.argsort(keys)
        return keys[order], np.concatenate((np.flatnonzero(~stale), place[known]))[order]
