"""A block program with room for edits: a block for each of the matrix's slots; it follows the matrix in place (K14)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.program import BlockProgram
from copter.model.matrix import BlockMatrix
from copter.model.matrix.bounds import gaps, roomy_sizes, sizes_of_slots, usual_size, write_blocks
from copter.runtime.errors import InternalError

Ints = NDArray[np.int32]
Ages = NDArray[np.int64]

ROOM = 0.4  # most columns, or entries, that smaller blocks get beyond their own, as a share of all
SPARE = 16  # one block without a request for every so many with one, and one more
LARGE = 2.0  # blocks without a request for larger ones, times the root of the number of these, and one more
MOST_LARGE = 0.2  # most columns, or entries, of these blocks: a share of all,
SOME_LARGE = 200  # and so many more
IDLE = 2  # a program is made anew if it has more than so many times the model's columns,
LEAST_IDLE = 500  # and so many more
UNKNOWN = -2  # stamp of a block whose usage is to be compared


@dataclass(frozen=True, slots=True)
class SlottedProgram:
    """A program of one block for each slot, and gaps: columns fixed at zero, which no method moves.

    Attributes
    ----------
    program : BlockProgram
        Every block has one private row, its sum.
    slots, block_of : ndarray (blocks,) int32
        Slot of each block, block of each slot; there are more of them than the matrix has.
    generation, stamps : ndarray (blocks,) int64
        Generation of the request in each block, and stamp of its usage; -1 for none.
    changed : ndarray (blocks + 1,) uint8
        What the last :meth:`follow` found: 0 for blocks that stayed, 1 for other bounds, 2 for other costs, 3 for other
        entries; last, whether rows have other bounds.
    """

    program: BlockProgram
    slots: Ints
    block_of: Ints
    generation: Ages
    stamps: Ages
    changed: NDArray[np.uint8]

    @classmethod
    def of(cls, matrix: BlockMatrix, before: SlottedProgram | None = None) -> SlottedProgram:
        """Return the program of a model's matrix, with gaps of up to `ROOM` of all columns, and of all entries.

        Slots that come next to be used have room for requests of usual size; some blocks have more, as the largest of
        the program `before`.
        """
        largest = (0, 0) if before is None else before.largest
        columns, entries = roomy(sizes_of_slots(matrix), matrix.free_slots, largest)
        program, blocks = BlockProgram(n_rows=matrix.n_rows, **gaps(matrix.n_rows, columns, entries)), len(columns)
        found = cls.holding(program, np.arange(blocks, dtype=np.int32), np.full(blocks, -1, dtype=np.int64))
        if not found.holds(matrix):
            raise InternalError("a program made for a model's requests does not hold them")
        return found

    @classmethod
    def holding(cls, program: BlockProgram, slots: Ints, generation: Ages) -> SlottedProgram:
        """Return a program in this layout that will find at its first :meth:`follow` which usage its blocks hold."""
        stamps, changed = np.full(len(slots), UNKNOWN, dtype=np.int64), np.zeros(len(slots) + 1, dtype=np.uint8)
        block_of = np.empty(len(slots), dtype=np.int32)
        block_of[slots] = np.arange(len(slots), dtype=np.int32)
        return cls(program, slots, block_of, generation, stamps, changed)

    @property
    def largest(self) -> tuple[int, int]:
        """The most columns, and the most entries, of a block."""
        start = self.program.column_start
        return int(np.diff(start).max()), int(np.diff(self.program.start[start]).max())

    def follow(self, matrix: BlockMatrix, edited: Ints | None = None) -> bool:
        """Bring the program up to the matrix, in place; returns whether it has room for all requests, and not too much.

        `edited` lists the slots that may differ; without it all are compared.
        """
        idle = self.program.n_columns > IDLE * matrix.n_columns + LEAST_IDLE
        return not idle and self.holds(matrix, edited)

    def holds(self, matrix: BlockMatrix, edited: Ints | None = None) -> bool:
        """Do :meth:`follow`, however many gaps there are."""
        return write_blocks(
            matrix, self.program, self.slots, self.block_of, self.stamps, self.generation, self.changed, edited
        )


def roomy(sizes: tuple[Ints, Ints], free: list[int], largest: tuple[int, int] = (0, 0)) -> tuple[Ints, Ints]:
    """Return (columns, entries) of slots with room: small ones become usual ones, as do some slots without a request.

    These are the last ones of `free` and, if there are too few of them, new ones at the end. If there are larger
    requests than usual ones, or were, some more slots get room for larger ones; `largest` is what they had.
    """
    columns, entries = sizes
    usual = [usual_size(each, ROOM) for each in sizes]
    large = (columns > usual[0]) | (entries > usual[1])
    spare, more = int(np.count_nonzero(columns)) // SPARE + 1, int(np.count_nonzero(large))
    size = usual_size(columns[large], ROOM)
    larger = [max(size, largest[0]), max(int(entries[large & (columns <= size)].max(initial=1)), largest[1])]
    if more or larger[0] > usual[0] or larger[1] > usual[1]:
        most = [(MOST_LARGE * int(each.sum()) + SOME_LARGE) / one for each, one in zip(sizes, larger, strict=True)]
        more = int(min(LARGE * more**0.5 + 1.0, *most))
    spares = [np.repeat(np.array(pair, dtype=np.int32), (spare, more)) for pair in zip(usual, larger, strict=True)]
    found = [roomy_sizes(sizes[k], columns, usual[k], free, spares[k]) for k in (0, 1)]
    return found[0], found[1]
