"""Loads of the published benchmarks: Zipf with an exponent per round (SH6, SH7 in docs/method/shards.md).

The exponents come from Java's linear congruential generator, as in POP's and DeDe's code.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from copter_frontends.shards.cluster import Floats
from copter_frontends.shards.errors import ShardError

SEED = 42  # seed of the published load sequence
LEAST_Z, MOST_Z = 0.25, 0.75
STEP = 0.1  # relative change of z in a round of the Stateful sequence (SH7)
SEQUENCES = ("stateless", "stateful")
_A, _B, _MASK = 0x5DEECE66D, 0xB, (1 << 48) - 1


def java_uniforms(seed: int = SEED) -> Iterator[float]:
    """Yield the numbers of Java's ``Random(seed).nextDouble()``, without end."""
    state = (seed ^ _A) & _MASK
    while True:
        state = (state * _A + _B) & _MASK
        high = state >> 22
        state = (state * _A + _B) & _MASK
        yield ((high << 27) + (state >> 21)) / (1 << 53)


def exponents(kind: str, rounds: int, seed: int = SEED) -> list[float]:
    """Yield the exponent z of every round.

    ``stateless``: independent, uniform in [0.25, 0.75]. ``stateful``: the last one times 0.9 or 1.1 with equal
    probability, kept inside the same range (SH7).
    """
    if kind not in SEQUENCES:
        raise ShardError(f"unknown sequence {kind!r}: one of {', '.join(SEQUENCES)}")
    draws = java_uniforms(seed)
    found = [LEAST_Z + (MOST_Z - LEAST_Z) * next(draws)]
    while len(found) < rounds:
        u = next(draws)
        if kind == "stateless":
            found.append(LEAST_Z + (MOST_Z - LEAST_Z) * u)
        else:
            moved = found[-1] * (1.0 + STEP if u < 0.5 else 1.0 - STEP)
            found.append(min(max(moved, LEAST_Z), MOST_Z))
    return found[:rounds]


def zipf_loads(shards: int, z: float) -> Floats:
    """Return POP's loads: 1e6 (j + 1)^-z, rounded half up."""
    return np.floor(1e6 * np.arange(1, shards + 1, dtype=np.float64) ** -z + 0.5)


def dede_loads(shards: int, z: float) -> Floats:
    """Return DeDe's loads: the same curve stretched to 1,024 ranks, in units of 1e4."""
    return np.floor(1e6 * (1024.0 * np.arange(shards) / shards + 1.0) ** -z + 0.5) / 1e4


def load_rounds(shards: int, rounds: int, kind: str = "stateless", seed: int = SEED) -> Iterator[Floats]:
    """Yield the loads of every round."""
    for z in exponents(kind, rounds, seed):
        yield zipf_loads(shards, z)
