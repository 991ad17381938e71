"""The first numbers of many seeded generators at once: what NumPy draws for one seed after the other.

A generator takes longer to make than two numbers to draw. This is NumPy's way from a seed to PCG64's state (its
SeedSequence, whose results NumPy keeps), over arrays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]  # 32 bits each, or the halves of a number of 128 bits

LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
POOL = 4  # words of the pool into which a seed is mixed
FIRST_A, TIMES_A = 0x43B0D7E5, 0x931E8875  # constants of the mixing
FIRST_B, TIMES_B = 0x8B51F9DD, 0x58F38DED  # constants of the words drawn from the pool
LEFT, RIGHT = np.uint64(0xCA01F9DD), np.uint64(0x4973F715)
STEP = np.uint64(2549297995355413924), np.uint64(4865540595714422341)  # PCG64's multiplier, its high and its low half
UNIT = 1.0 / 9007199254740992.0  # 2^-53


def first_draws(seed: int, names: Words) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the first two numbers, from 0 to 1, of ``numpy.random.default_rng([seed, name])`` for each name.

    Parameters
    ----------
    seed : int
        From 0 on.
    names : uint64 array (n,)
        Below 2^32.
    """
    words = [np.full(len(names), word, dtype=np.uint64) for word in _words(seed)]
    if len(words) >= POOL:  # a seed beyond 96 bits
        draws = [np.random.default_rng([seed, int(name)]).random(2) for name in names]
        both = np.array(draws).reshape(-1, 2)
        return both[:, 0], both[:, 1]
    state = _drawn(_mixed([*words, names]))
    start, step = (state[0], state[1]), (state[2] << np.uint64(1) | state[3] >> np.uint64(63), state[3] << np.uint64(1))
    step = step[0], step[1] | np.uint64(1)
    now = _next(_plus(step, start), step)
    first = _next(now, step)
    return _number(first), _number(_next(first, step))


def _words(seed: int) -> list[int]:
    """Return a whole number's words of 32 bits, the lowest first."""
    words = [seed & 0xFFFFFFFF]
    while seed := seed >> 32:
        words.append(seed & 0xFFFFFFFF)
    return words


def _mixed(entropy: list[Words]) -> list[Words]:
    """Return the pool of a seed's words."""
    factor = FIRST_A

    def hashed(value: Words) -> Words:
        nonlocal factor
        before, factor = factor, factor * TIMES_A & 0xFFFFFFFF
        return _folded((value ^ np.uint64(before)) * np.uint64(factor) & LOW)

    none = np.zeros_like(entropy[0])
    pool = [hashed(entropy[at] if at < len(entropy) else none) for at in range(POOL)]
    for source in range(POOL):
        for target in range(POOL):
            if source != target:
                pool[target] = _folded((LEFT * pool[target] - RIGHT * hashed(pool[source])) & LOW)
    return pool


def _drawn(pool: list[Words]) -> list[Words]:
    """Return four numbers of 64 bits from a pool."""
    factor, words = FIRST_B, list[Words]()
    for at in range(2 * POOL):
        before, factor = factor, factor * TIMES_B & 0xFFFFFFFF
        words.append(_folded((pool[at % POOL] ^ np.uint64(before)) * np.uint64(factor) & LOW))
    return [words[2 * at] | words[2 * at + 1] << HALF for at in range(POOL)]


def _folded(value: Words) -> Words:
    return value ^ value >> np.uint64(16)


def _plus(a: tuple[Words, Words], b: tuple[Words, Words]) -> tuple[Words, Words]:
    low = a[1] + b[1]
    return a[0] + b[0] + (low < a[1]).astype(np.uint64), low


def _next(state: tuple[Words, Words], step: tuple[Words, Words]) -> tuple[Words, Words]:
    """Return a state of 128 bits after one step."""
    (high, low), (more, less) = state, STEP
    a, b, c, d = low >> HALF, low & LOW, less >> HALF, less & LOW
    cross = (b * d >> HALF) + (a * d & LOW) + (b * c & LOW)
    carry = a * c + (a * d >> HALF) + (b * c >> HALF) + (cross >> HALF)
    return _plus((carry + high * less + low * more, low * less), step)


def _number(state: tuple[Words, Words]) -> NDArray[np.float64]:
    """Return a state's number from 0 to 1."""
    mixed, turn = state[0] ^ state[1], state[0] >> np.uint64(58)
    turned = mixed >> turn | mixed << (np.uint64(64) - turn & np.uint64(63))
    return np.asarray((turned >> np.uint64(11)).astype(np.float64) * UNIT)
