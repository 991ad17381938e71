"""A process that edits, solves and saves until it is killed: python -m tests.copter.worker FOLDER SEED KIND.

Every acknowledged step is told by one byte on stdout.
"""

from __future__ import annotations

import os
import sys

import numpy as np

from copter import Session
from tests.copter.block_player import BlockPlayer
from tests.copter.plain import Player

SAVES = 23  # steps between two snapshots
SOLVES = 7


def main(folder: str, seed: int, kind: str) -> None:
    """Play for ever."""
    player, rng = (BlockPlayer if kind == "BlockPlayer" else Player)(), np.random.default_rng(seed)
    session = Session(player.model, journal=os.path.join(folder, "journal"))
    session.save(os.path.join(folder, "snapshot"))
    os.write(1, b"!")
    step = 0
    while True:
        player.step(rng)
        os.write(1, b".")
        step += 1
        if step % SOLVES == 0:
            session.solve(deadline_s=1.0)
        if step % SAVES == 0:
            session.save(os.path.join(folder, "snapshot"))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
