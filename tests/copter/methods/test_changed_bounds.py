"""Rounds in which only bounds are others: the kept program is patched, and is what a whole one would be (K14)."""

from __future__ import annotations

import numpy as np
import pytest
from judge import assert_optimal

from copter import InvalidDataError, Model, Session, Status
from copter.methods import block_round, choose
from copter.model.matrix.changes import LEAST_MOST, Changes
from tests.copter.by_highs import highs
from tests.copter.followed_program import assert_program_is_the_models, last_program

LINKS, REQUESTS, PATHS = 20, 60, 3


@pytest.fixture(autouse=True, params=["whole", "blocks"])
def kept_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program is kept by pivots of the whole of it, or of its blocks where it has no room for other edits."""
    monkeypatch.setattr(choose, "is_small", lambda facts, settings: request.param == "whole")
    if request.param == "blocks":
        monkeypatch.setattr(block_round, "has_gaps", lambda model, settings: False)


def network(rng: np.random.Generator) -> Model:
    """Requests with three paths of four links each."""
    model = Model("max")
    for link in range(LINKS):
        model.add_resources(link, float(rng.integers(5, 15)))
    for request in range(REQUESTS):
        usage = np.zeros((LINKS, PATHS))
        for path in range(PATHS):
            usage[rng.choice(LINKS, 4, replace=False), path] = 1.0
        paths = {link: usage[link] for link in range(LINKS) if usage[link].any()}
        model.add_request(request, rng.uniform(1.0, 2.0, PATHS), paths, limit=float(rng.integers(1, 6)))
    return model


def assert_solved(session: Session) -> None:
    """The session's answer is HiGHS's, and what it keeps is the model's."""
    solution, program = session.solve(), session.model.to_linear_program()
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(highs(program)[1], rel=1e-7)
    assert_optimal(program, solution.x, solution.y)
    assert_program_is_the_models(session)
    session._iterate.check_consistent(session.model.ledger.matrix)


def begun(seed: int) -> tuple[np.random.Generator, Model, Session]:
    """A session that keeps a basis."""
    rng = np.random.default_rng(seed)
    model = network(rng)
    session = Session(model)
    for request in (0, 1):
        assert_solved(session)
        model.update_limit(request, 2.5)
    assert_solved(session)
    assert last_program(session) is not None
    return rng, model, session


@pytest.mark.parametrize("seed", range(3))
def test_bounds_of_all_kinds_are_patched(seed: int) -> None:
    rng, model, session = begun(seed)
    before = last_program(session)
    some = rng.choice(REQUESTS, 7, replace=False).tolist()
    edits = (
        lambda: model.update_limits(some, rng.integers(1, 6, len(some)).astype(float)),
        lambda: model.update_limit(3, 0.0),
        lambda: model.update_counts(range(LINKS), rng.integers(5, 15, LINKS).astype(float)),
        lambda: model.set_count(4, 2.0),
        lambda: model.update_bounds(5, upper=[0.5, 1.0, 2.0]),
        lambda: model.update_bounds(6, lower=[0.0, 0.1, 0.0]),
        lambda: model.update_limits(range(REQUESTS), rng.uniform(1.0, 6.0, REQUESTS)),
        lambda: (model.update_limit(7, 1.0), model.update_bounds(7, upper=9.0), model.fix(7, 1)),
        lambda: model.unfix(7),
        lambda: model.update_integrality(8, True),
    )
    for edit in edits:
        edit()
        assert_solved(session)
        after = last_program(session)
        assert after is not None
        assert before is not None
        assert after.value is before.value  # not made anew


def test_other_edits_end_what_is_patched() -> None:
    _, model, session = begun(0)
    edits = (
        lambda: model.update_cost(0, [3.0, 1.0, 1.0]),
        lambda: model.rescale_cost(1, 2.0),
        lambda: model.update_usage(2, {0: [1.0, 0.0, 1.0]}),
        lambda: model.remove_request(3),
        lambda: model.add_request(3, [1.0], {1: [1.0]}, limit=2.0),
        lambda: model.update_limit(4, np.inf),  # its sum is no row any more
        lambda: model.add_resources("new", 3.0),
        lambda: model.drop_resource(5),
        lambda: session.compact(),
    )
    for edit in edits:
        before = last_program(session)
        edit()
        assert_solved(session)
        after = last_program(session)
        assert after is None or before is None or after.value is not before.value


def test_a_failed_batch_is_not_taken_for_its_edits() -> None:
    _, model, session = begun(1)
    with pytest.raises(InvalidDataError), model.batch():  # noqa: PT012
        model.update_limits([0, 1], [9.0, 9.0])
        model.update_limits([2], [np.nan])
    assert_solved(session)


def test_two_sessions_of_one_model_are_patched_apart() -> None:
    rng, model, session = begun(2)
    other = Session(model)
    for turn in range(8):
        model.update_limits(rng.choice(REQUESTS, 3, replace=False).tolist(), rng.uniform(1.0, 6.0, 3))
        assert_solved(session)
        if turn % 3 == 0:
            assert_solved(other)


def test_changes_are_remembered_by_each_mark_until_there_are_too_many() -> None:
    changes = Changes()
    first = changes.mark
    assert changes.since(first).tolist() == []
    changes.bounds(np.array([3, 1], dtype=np.int32), 5)
    second = changes.mark
    changes.bounds(np.array([1, 2], dtype=np.int32), 5)
    assert changes.since(first).tolist() == [1, 2, 3]
    assert changes.since(second).tolist() == [1, 2]
    changes.bounds(np.arange(LEAST_MOST - 3, dtype=np.int32), 5)
    assert changes.since(first) is None
    assert len(changes.since(second)) == LEAST_MOST - 3
    third = changes.mark
    changes.contents(np.array([4], dtype=np.int32), 5)
    assert changes.since(third) is None  # not of bounds alone
    assert changes.of_requests_since(third).tolist() == [4]
    assert changes.since(changes.mark).tolist() == []
    changes.anything()
    assert changes.of_requests_since(third) is None
    assert changes.since(changes.mark).tolist() == []
