"""A kept basis written down and read again: the next round is the same to the last bit; damage is refused."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from copter.methods.blocks.basis import WarmBasis
from copter.methods.blocks.saved_basis import basis_from, basis_state
from tests.copter.methods.blocks.test_basis import FOREVER, edited, names, program_like


def solved(seed: int = 3):
    """A basis after one solve, its program and another one edited from it."""
    rng = np.random.default_rng(seed)
    program = program_like(rng, 20, 5, exotic=False)
    basis = WarmBasis()
    assert basis.solve(program, *names(program), np.zeros(program.n_rows), FOREVER) is not None
    return basis, program, edited(rng, program)


@pytest.mark.parametrize("seed", range(8))
def test_the_next_round_is_the_same_to_the_last_bit(seed):
    basis, program, after = solved(seed)
    other = basis_from(copy.deepcopy(basis_state(basis)))
    for next_one in (program, after):
        answers = [each.solve(next_one, *names(next_one), np.zeros(program.n_rows), FOREVER) for each in (basis, other)]
        for name in ("x", "y", "private"):
            assert getattr(answers[0], name).tobytes() == getattr(answers[1], name).tobytes()


def test_without_a_basis_there_is_nothing_to_save():
    assert basis_state(None) is basis_state(WarmBasis()) is basis_from(None) is None


def changed(state, name, value):
    state[name] = value


DAMAGES = [
    ("length", lambda s: changed(s, "prices", s["prices"][1:])),
    ("key is not of its block", lambda s: changed(s, "keys", s["keys"] + 1000)),
    ("none of the program's", lambda s: changed(s, "heads", s["heads"] + 1000)),
    ("twice", lambda s: changed(s, "heads", np.full_like(s["heads"], s["heads"].max()))),
    ("no number", lambda s: changed(s, "scale", s["scale"] * np.nan)),
    ("no row", lambda s: s["program"].__setitem__("row", s["program"]["row"] + 99)),
    ("do not belong together", lambda s: s["program"].__setitem__("start", s["program"]["start"][::-1].copy())),
    ("answer differs", lambda s: changed(s, "answer", [s["answer"][0][1:], *s["answer"][1:]])),
]


@pytest.mark.parametrize(("words", "damage"), DAMAGES)
def test_damage_is_refused(words, damage):
    state = copy.deepcopy(basis_state(solved()[0]))
    damage(state)
    with pytest.raises(ValueError, match=words):
        basis_from(state)
