"""What a file may hold and a program may not, and what to write in its place."""

from __future__ import annotations

INSTEAD = {
    "special ordered sets": "write a binary b_k for each column, x_k <= upper_k b_k, and the sum of all b_k at most 1 "
    "(for SOS2 at most 2, and b_i + b_k <= 1 for columns that are not neighbours)",
    "indicator constraints": "for b = 1 -> a'x <= r write a'x + M b <= r + M, where M bounds a'x - r from above",
}


def refusal(what: str) -> str:
    """Return why a part of a file is refused, and what to write if there is something."""
    instead = INSTEAD.get(what)
    return f"{what} cannot be part of a linear program" + (f"; {instead}" if instead else "")
