"""The whole model's bound, summed from the master's and the shards' parts (equations R2 to R4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from sys import float_info

from copter_distributed.messages.messages import Floats, Priced

SAFE = 1.0 + 1e-12  # factor that covers the rounding of a sum


@dataclass(frozen=True, slots=True)
class Answer:
    """A shard's last answer and the prices it answered; valid until its requests are edited.

    Attributes
    ----------
    y : ndarray (m,)
    priced : Priced
    """

    y: Floats
    priced: Priced

    def least_at(self, y: Floats) -> float:
        """Return a lower bound on the shard's dual value at other prices (equation R4)."""
        if len(y) != len(self.y):
            return -float("inf")
        moved = y - self.y
        used = self.priced.most * moved.clip(min=0.0) + self.priced.least * moved.clip(max=0.0)
        lost = float(used.sum())
        return self.priced.total - SAFE * abs(lost) if lost > 0.0 else self.priced.total


def whole_bound(lowest: float, answers: Mapping[int, Priced], missing: Mapping[int, tuple[float, float]]) -> float:
    """Return a lower bound on the whole model's optimum (stored costs, as minimised) from the master's bound (equation
    R2).

    Parameters
    ----------
    lowest : float
        The master's bound, without the constant of the objective.
    answers : mapping of int to Priced
        Each shard's answer to the prices that prove the master's bound.
    missing : mapping of int to (float, float)
        For each shard without an answer: the dual value of its held columns, and a lower bound on the dual value of all
        its columns.
    """
    bound, size = lowest, abs(lowest)
    for priced in answers.values():
        bound += priced.correction - priced.margin
        size += abs(priced.correction)
    for held, least in missing.values():
        bound += least - held
        size += abs(least) + abs(held)
    count = len(answers) + len(missing) + 8
    return bound - count * float_info.epsilon * size if isfinite(bound) else -float("inf")
