"""Coupling rows without capacity: their columns leave the program, and come back with prices (blocks.md, K7)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from judge import judge

from copter import Model, PrivateRows, Session, Settings, Status
from copter.methods.blocks.closed_rows import opened
from copter.methods.blocks.path import LEVELS, Milestone, PricePath, path_from, path_state
from copter.methods.blocks.program import BlockProgram, program_of
from copter.methods.blocks.solve import solve_blocks
from copter.runtime.watch import Watch
from tests.copter.highs import highs

LINKS = 80


def network(seed: int, requests: int = 200) -> Model:
    """Commodities with up to four paths of three links; every fifth has a private row besides its limit."""
    rng, model = np.random.default_rng(seed), Model(sense="max")
    for link in range(LINKS):
        model.add_resources(link, float(rng.uniform(2.0, 6.0)))
    for request in range(requests):
        paths = int(rng.integers(1, 5))
        used = [rng.choice(LINKS, 3, replace=False) for _ in range(paths)]
        pattern = {int(k): [float(k in path) for path in used] for k in np.unique(np.concatenate(used))}
        own = PrivateRows(np.arange(1.0, paths + 1.0)[None], upper=2.0) if request % 5 == 0 else None
        model.add_request(request, rng.uniform(0.5, 1.5, paths), pattern, limit=1.0, private_rows=own)
    return model


def program(model: Model) -> BlockProgram:
    slots = np.sort(np.array(list(model.ledger.slot_of.values()), dtype=np.int32))
    return program_of(model.ledger.matrix, slots)


def test_a_tiny_program_whose_answer_is_known() -> None:
    model = Model(sense="max")
    for link, count in (("down", 0.0), ("up", 3.0)):
        model.add_resources(link, count)
    model.add_request("both", [5.0, 1.0], {"down": [1.0, 0.0], "up": [0.0, 1.0]}, limit=4.0)
    model.add_request("lost", [2.0], {"down": [2.0]}, limit=1.0)
    whole = program(model)
    found = opened(whole)
    assert found is not None
    assert found.closed.tolist() == [0]
    assert found.columns.tolist() == [1]
    assert found.private.tolist() == [0]
    assert len(found.program.column_start) == 2  # the block that lost all of its columns is gone
    x, y, private = found.restored(np.array([3.0]), np.array([0.0, -1.0]), np.array([0.0]))
    assert x.tolist() == [0.0, 3.0, 0.0]
    assert y.tolist() == [-5.0, -1.0]  # the dearer of 5 and 2 / 2 per unit
    assert private.tolist() == [0.0, 0.0]
    matrix = np.zeros((2, 3))
    matrix[whole.row, np.repeat(np.arange(3), np.diff(whole.start))] = whole.value
    assert (whole.cost - matrix.T @ y).tolist() == [0.0, 0.0, 8.0]


@pytest.mark.parametrize("seed", range(6))
def test_the_restored_answer_is_optimal(seed: int) -> None:
    model = network(seed)
    rng = np.random.default_rng(seed)
    for link in rng.choice(LINKS, 5, replace=False).tolist():
        model.set_count(link, 0.0)
    whole = program(model)
    found = opened(whole)
    assert found is not None
    assert len(found.closed) == 5
    assert len(found.columns) < whole.n_columns
    answer = solve_blocks(whole, Settings(threads=1), Watch(np.inf), False)
    assert answer is not None
    lp = model.to_linear_program()
    assert -float(whole.cost @ answer.x) == pytest.approx(highs(lp)[1], rel=1e-6)
    judged = judge(lp, answer.x, -np.concatenate((answer.y, answer.private)))
    assert max(judged.primal, judged.dual, judged.gap) <= 1e-6


def test_what_is_not_closed_stays() -> None:
    model = network(0)
    assert opened(program(model)) is None
    model.set_count(3, 0.0)
    assert opened(program(model)) is not None
    touching = int(np.flatnonzero(program(model).row == 3)[0])
    column = int(np.searchsorted(program(model).start, touching, side="right")) - 1
    block = int(np.searchsorted(program(model).column_start, column, side="right")) - 1
    model.update_bounds(block, lower=-1.0, upper=1.0)  # what may be below zero gives capacity to others
    assert opened(program(model)) is None


def test_a_request_that_must_be_served_over_a_closed_row_is_left_to_the_other_methods() -> None:
    model = network(1)
    model.set_count(3, 0.0)
    model.add_request("must", [1.0], {3: [1.0]}, at_least=0.5)
    assert opened(program(model)) is None
    assert Session(model).solve().status is Status.PRIMAL_INFEASIBLE


@pytest.mark.parametrize("seed", range(3))
def test_links_go_down_and_come_back(seed: int) -> None:
    model = network(seed, requests=300)
    session = Session(model, Settings(basis_columns=0, threads=1))
    rng = np.random.default_rng(seed)
    usual = {link: model.count(link) for link in range(LINKS)}
    for _ in range(4):
        down = rng.choice(LINKS, 2, replace=False).tolist()
        for counts in (dict.fromkeys(down, 0.0), {link: usual[link] for link in down}):
            for link, count in counts.items():
                model.set_count(link, count)
            solution, lp = session.solve(), model.to_linear_program()
            assert solution.status is Status.OPTIMAL
            assert solution.objective == pytest.approx(highs(lp)[1], rel=2e-6)
            assert solution.residuals.within(1e-6, 1e-6)


def test_the_path_with_all_rows_open_is_kept_while_one_is_closed() -> None:
    path = PricePath(np.zeros(2, dtype=np.int64))
    path.passed[LEVELS[0]] = Milestone(0.5, np.array([1.0, 2.0]))
    path.turn_to((1,))
    assert path.starts == [path.passed]  # the same prices are tried once
    path.passed[LEVELS[0]] = Milestone(0.5, np.array([7.0, 0.0]))
    assert [each[LEVELS[0]].prices.tolist() for each in path.starts] == [[7.0, 0.0], [1.0, 2.0]]
    again = path_from(path_state(path))
    assert again is not None
    for each in (path, again, path.of_rows(path.row_generation)):
        assert each.closed == (1,)
        each.turn_to(())
        assert each.passed[LEVELS[0]].prices.tolist() == [1.0, 2.0]
        assert each.starts[1][LEVELS[0]].prices.tolist() == [7.0, 0.0]
    for row in range(9):
        path.turn_to((row,))
    assert len(path.before) == 4


def test_a_session_saved_with_a_link_down_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    model = network(5, requests=300)
    session = Session(model, Settings(basis_columns=0, threads=1))
    session.solve()
    model.set_count(3, 0.0)
    session.solve()
    session.save(tmp_path / "s")
    other = Session.load(tmp_path / "s")
    for each in (session, other):
        each.model.set_count(3, 4.0)
    one, two = session.solve(), other.solve()
    assert np.array_equal(one.x, two.x)
    assert np.array_equal(one.y, two.y)
