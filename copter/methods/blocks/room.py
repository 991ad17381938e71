"""A block program with room for edits: its blocks are the matrix's slots, and it follows the matrix in place (K14)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.program import BlockProgram
from copter.model.matrix import BlockMatrix
from copter.model.matrix.bounds import gaps, roomy_sizes, sizes_of_slots, usual_size, write_blocks

Ints = NDArray[np.int32]
Ages = NDArray[np.int64]

ROOM = 0.4  # most columns, or entries, that smaller blocks get beyond their own, as a share of all
SPARE = 16  # one block without a request for every so many with one, and one more
UNKNOWN = -2  # stamp of a block whose usage is to be compared


@dataclass(frozen=True, slots=True)
class Room:
    """A program whose block g holds the columns of slot g, and gaps: columns fixed at zero, which no method moves.

    Attributes
    ----------
    program : BlockProgram
        Every block has one private row, its sum.
    slots : ndarray (blocks,) int32
        0, 1, 2, ...: more slots than the matrix has.
    generation, stamps : ndarray (blocks,) int64
        Generation of the request in each slot, and stamp of its usage; -1 for none.
    changed : ndarray (blocks + 1,) uint8
        What the last :meth:`follow` found: 0 for blocks that stayed, 1 for other bounds, 2 for other costs or entries;
        last, whether rows have other bounds.
    """

    program: BlockProgram
    slots: Ints
    generation: Ages
    stamps: Ages
    changed: NDArray[np.uint8]

    @classmethod
    def of(cls, matrix: BlockMatrix) -> Room:
        """Return the program of a model's matrix, with gaps of up to `ROOM` of all columns, and of all entries.

        Slots that come next to be used have room for requests of usual size.
        """
        columns, entries = roomy(sizes_of_slots(matrix), matrix.free_slots)
        program, blocks = BlockProgram(n_rows=matrix.n_rows, **gaps(matrix.n_rows, columns, entries)), len(columns)
        found = cls.holding(program, np.arange(blocks, dtype=np.int32), np.full(blocks, -1, dtype=np.int64))
        found.follow(matrix)
        return found

    @classmethod
    def holding(cls, program: BlockProgram, slots: Ints, generation: Ages) -> Room:
        """Return a program in this layout that will find at its first :meth:`follow` which usage its blocks hold."""
        stamps, changed = np.full(len(slots), UNKNOWN, dtype=np.int64), np.zeros(len(slots) + 1, dtype=np.uint8)
        return cls(program, slots, generation, stamps, changed)

    def follow(self, matrix: BlockMatrix, edited: Ints | None = None) -> bool:
        """Bring the program up to the matrix, in place; returns whether it has room for all requests.

        `edited` lists the slots that may differ; without it all are compared.
        """
        return write_blocks(matrix, self.program, self.stamps, self.generation, self.changed, edited)


def roomy(sizes: tuple[Ints, Ints], free: list[int]) -> tuple[Ints, Ints]:
    """Return (columns, entries) of slots with room: small ones become usual ones, as do some slots without a request.

    These are the last ones of `free` and, if there are too few of them, new ones at the end.
    """
    spare = int(np.count_nonzero(sizes[0])) // SPARE + 1
    columns, entries = (roomy_sizes(each, sizes[0], usual_size(each, ROOM), free, spare) for each in sizes)
    return columns, entries
