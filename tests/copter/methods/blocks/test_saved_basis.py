"""A kept basis written down and read again: the next round is the same to the last bit; damage is refused."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from copter import Model, Session
from copter.methods.blocks.basis import DENSE_ROWS, BlockWarmBasis
from copter.methods.blocks.saved_basis import basis_from, basis_state
from tests.copter.methods.blocks.test_basis import FOREVER, edited, names, program_like


def solved(seed: int = 3):
    """A basis after one solve, its program and another one edited from it."""
    rng = np.random.default_rng(seed)
    program = program_like(rng, 20, 5, exotic=False)
    basis = BlockWarmBasis()
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


@pytest.mark.parametrize("seed", range(3))
def test_sparse_factors_are_made_anew(seed):
    rng = np.random.default_rng(seed)
    program = program_like(rng, 400, DENSE_ROWS + 40, exotic=False)
    basis = BlockWarmBasis()
    assert basis.solve(program, *names(program), np.zeros(program.n_rows), FOREVER) is not None
    state = copy.deepcopy(basis_state(basis))
    other, after = basis_from(state), edited(rng, program)
    answers = [each.solve(after, *names(after), np.zeros(program.n_rows), FOREVER) for each in (basis, other)]
    assert answers[0].x == pytest.approx(answers[1].x, abs=1e-7)
    assert program.cost @ answers[0].x == pytest.approx(program.cost @ answers[1].x, rel=1e-12)
    state["norms"] = np.zeros(program.n_rows)
    with pytest.raises(ValueError, match="no length"):
        basis_from(state)


def test_a_session_with_sparse_factors_is_saved_and_goes_on(tmp_path):
    rng = np.random.default_rng(5)
    model = Model(sense="max")
    for row in range(DENSE_ROWS + 40):
        model.add_resource(row, float(rng.integers(1, 5)))
    for request in range(600):
        usage = {int(row): rng.integers(0, 3, 2).astype(float) for row in rng.choice(DENSE_ROWS + 40, 3, replace=False)}
        model.add_request(request, rng.integers(5, 50, 2).astype(float), usage)
    session = Session(model)
    session.solve()
    for row in range(50):
        model.set_count(row, 1.0)
    assert session.solve().method == "basis"
    session.save(tmp_path / "session")
    for other in (Session.load(tmp_path / "session"), copy.deepcopy(session), pickle.loads(pickle.dumps(session))):
        for row in range(60, 70):
            other.model.set_count(row, 1.0)
        found = other.solve()
        assert found.method == "basis"
        assert found.iterations < 100
        assert found.objective == pytest.approx(Session(other.model).solve().objective, rel=1e-9)


def test_without_a_basis_there_is_nothing_to_save():
    assert basis_state(None) is basis_state(BlockWarmBasis()) is basis_from(None) is None


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
