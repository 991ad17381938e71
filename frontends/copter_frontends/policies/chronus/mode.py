"""A way to run a job (docs/papers/chronus.md, C2)."""

from __future__ import annotations

from typing import NamedTuple


class Mode(NamedTuple):
    """A way to run a job: GPU type, GPUs used, GPUs taken (rounded up), seconds for the job's whole work.

    `restart_s` is the job's own start time in seconds if it exceeds the grid's common one.
    """

    kind: int
    gpus: int
    taken: int
    total_s: float
    restart_s: float = 0.0
