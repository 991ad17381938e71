"""Programs of small models follow every edit in place: against HiGHS, and against a program made anew (K14)."""

from __future__ import annotations

import pickle
from collections.abc import Hashable

import numpy as np
import pytest
from judge import assert_optimal

from copter import Model, Session, Settings, Status
from copter.methods import choose
from copter.methods.blocks import basis, slotted_program
from copter.methods.blocks.basis import BlockWarmBasis
from copter.methods.blocks.slotted_program import SlottedProgram, roomy
from tests.copter.by_highs import highs
from tests.copter.followed_program import assert_program_is_the_models

INF = float("inf")


@pytest.fixture(autouse=True)
def by_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model counts as small, so that blocks are eliminated."""
    monkeypatch.setattr(choose, "is_small", lambda facts, settings: False)


class Edited:
    """A model of requests with a few columns, and random edits of it; `size` is the usual number of columns.

    With `alike` all columns take whole units of one resource, so that many are equal; else they hardly ever are.
    """

    def __init__(self, seed: int, alike: bool, size: int = 5) -> None:
        self.rng, self.alike, self.size = np.random.default_rng(seed), alike, size
        self.model = Model("min" if seed % 2 else "max", offset=float(seed % 3))
        for resource in range(6):
            self.model.add_resources(resource, float(self.rng.integers(5, 25)))
        self.alive: dict[int, int] = {}
        self.made = 0
        for _ in range(40):
            self.add()

    def usage(self, n: int) -> dict[Hashable, list[float]]:
        """Units of each column."""
        if self.alike:
            resource = self.rng.integers(6, size=n)
            units = 2.0 ** self.rng.integers(0, 3, n)
            return {int(each): np.where(resource == each, units, 0.0).tolist() for each in np.unique(resource)}
        some = self.rng.choice(6, 3, replace=False)
        return {int(each): self.rng.uniform(0.5, 4.0, n).tolist() for each in some}

    def costs(self, n: int) -> list[float]:
        """Mostly worth taking."""
        return (self.rng.normal(4.0, 3.0, n) * self.model.ledger.sign * -1.0).tolist()

    def add(self, n: int = 0) -> int:
        """A request of n columns, or of usual size, at times much larger; with a limit or with bounds of its columns.

        Returns its slot.
        """
        if not n:
            n = self.size if self.rng.random() < 0.8 else int(self.rng.integers(1, 3 * self.size))
        limit, upper = (float(self.rng.integers(1, 3)), INF) if self.rng.random() < 0.8 else (INF, 1.5)
        self.model.add_request(
            self.made, self.costs(n), self.usage(n), limit=limit, upper=upper, integer=bool(self.rng.random() < 0.5)
        )
        self.alive[self.made] = n
        self.made += 1
        return self.model.ledger.slot_of[self.made - 1]

    def edit(self) -> None:
        """One random edit."""
        rng, model = self.rng, self.model
        one = int(rng.choice(list(self.alive)))
        n, kind = self.alive[one], int(rng.integers(11))
        if kind < 3:
            self.add()
        elif kind < 6 and len(self.alive) > 5:
            model.remove_request(one)
            del self.alive[one]
        elif kind == 6:
            model.update_cost(one, self.costs(n))
        elif kind == 7:
            model.rescale_cost(one, float(rng.uniform(0.5, 2.0)))
        elif kind == 8:
            model.update_usage(one, self.usage(n))
        elif kind == 9:
            model.update_bounds(one, upper=float(rng.uniform(0.5, 3.0)))
        else:
            model.set_count(int(rng.integers(6)), float(rng.integers(3, 25)))


def assert_solved(session: Session) -> None:
    """The session's answer is HiGHS's and proven, and its program the model's."""
    solution, program = session.solve(), session.model.to_linear_program()
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(highs(program)[1], rel=1e-7, abs=1e-7)
    assert_optimal(program, solution.x, solution.y)
    assert_program_is_the_models(session)
    session._iterate.check_consistent(session.model.ledger.matrix)


def slotted_of(session: Session) -> SlottedProgram:
    """The program that follows the session's model."""
    assert isinstance(session._iterate.basis, BlockWarmBasis)
    assert session._iterate.basis.slotted is not None
    return session._iterate.basis.slotted


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_all_edits_are_followed(seed: int, alike: bool) -> None:
    edited = Edited(seed, alike)
    session = Session(edited.model)
    assert_solved(session)
    for _ in range(40):
        for _ in range(int(edited.rng.integers(1, 5))):
            edited.edit()
        assert_solved(session)


@pytest.mark.parametrize("alike", [True, False])
def test_requests_that_come_and_go_leave_the_arrays_in_place(alike: bool) -> None:
    edited = Edited(1, alike)
    for request, n in list(edited.alive.items()):
        if n != edited.size:
            edited.model.remove_request(request)
            del edited.alive[request]
    session = Session(edited.model)
    assert_solved(session)
    program = slotted_of(session).program
    for _ in range(30):
        oldest = min(edited.alive)
        edited.model.remove_request(oldest)
        del edited.alive[oldest]
        edited.model.add_request(edited.made, edited.costs(edited.size), edited.usage(edited.size), limit=1.0)
        edited.alive[edited.made] = edited.size
        edited.made += 1
        assert_solved(session)
        solution = session.last_solution
        assert solution is not None
        assert solution.method == "basis"
    assert slotted_of(session).program is program


@pytest.mark.parametrize("again", [False, True])
def test_large_requests_change_blocks_with_slots_of_none_or_of_a_new_one(again: bool) -> None:
    """A large request gets the slot of a small one; the large one's is free or, with `again`, has a new small one."""
    edited = Edited(4, alike=False)
    session = Session(edited.model)
    for _ in range(3):
        edited.add(20)
    assert_solved(session)
    found = slotted_of(session)
    for _ in range(6):
        for size in (20, edited.size):
            request = next(request for request, n in edited.alive.items() if n == size)
            edited.model.remove_request(request)
            del edited.alive[request]
        slot = edited.add(20)
        if again:
            edited.add(edited.size)
        block = found.block_of[slot]
        assert found.program.column_start[block + 1] - found.program.column_start[block] < 20
        assert_solved(session)
        assert slotted_of(session) is found
        assert found.block_of[slot] != block
        other = pickle.loads(pickle.dumps(session))
        assert other.solve().iterations == 0
        assert_program_is_the_models(other)


def test_one_large_request_leaves_little_room() -> None:
    model = Model("max")
    model.add_resources("gpu", 3.0)
    model.add_request("large", np.arange(400.0), {"gpu": np.arange(400.0) / 100.0}, limit=1.0)
    session = Session(model)
    assert_solved(session)
    assert slotted_of(session).program.n_columns <= 800


def test_a_program_of_gaps_is_made_anew() -> None:
    edited = Edited(9, alike=False, size=20)
    session = Session(edited.model)
    assert_solved(session)
    program = slotted_of(session).program
    for request in list(edited.alive)[4:]:
        edited.model.remove_request(request)
    assert_solved(session)
    assert slotted_of(session).program.n_columns < program.n_columns / 2


def test_a_request_too_large_for_its_slot_gets_a_new_program_and_the_basis_stays() -> None:
    edited = Edited(3, alike=False)
    session = Session(edited.model)
    assert_solved(session)
    program = slotted_of(session).program
    edited.model.add_request("large", edited.costs(60), edited.usage(60), limit=1.0)
    assert_solved(session)
    assert slotted_of(session).program is not program
    solution = session.last_solution
    assert solution is not None
    assert solution.iterations < 12  # from nothing it takes more


def test_an_unchanged_model_needs_no_pivots_and_the_same_answer() -> None:
    edited = Edited(2, alike=False)
    session = Session(edited.model)
    first = session.solve()
    x = first.x
    edited.model.rescale_cost(0, 2.0)
    edited.model.rescale_cost(0, 1.0)
    second = session.solve()
    assert second.iterations == 0
    np.testing.assert_array_equal(x, second.x)
    assert second.bound == first.bound


def test_a_round_without_time_leaves_a_basis_that_follows_later_edits() -> None:
    edited = Edited(5, alike=False)
    session = Session(edited.model)
    assert_solved(session)
    for _ in range(5):
        for _ in range(3):
            edited.edit()
        assert session.solve(deadline_s=1e-9).status is Status.TIME_LIMIT
    assert_solved(session)


def test_after_an_error_between_program_and_basis_a_round_begins_from_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    edited = Edited(8, alike=False)
    session = Session(edited.model)
    assert_solved(session)
    edited.edit()
    with monkeypatch.context() as broken:
        broken.setattr(basis, "renewed", lambda *_: (_ for _ in ()).throw(MemoryError))
        with pytest.raises(MemoryError):
            session.solve()
    assert_solved(session)


def test_a_copy_of_a_session_follows_on() -> None:
    edited = Edited(6, alike=False)
    session = Session(edited.model)
    assert_solved(session)
    other = pickle.loads(pickle.dumps(session))
    same = other.solve()
    assert same.iterations == 0
    for each in (session, other):
        each.model.remove_request(0)
        assert_solved(each)


def test_many_rows_go_by_interior_points_without_gaps() -> None:
    edited = Edited(7, alike=False)
    session = Session(edited.model, Settings(method="blocks"))
    assert_solved(session)
    edited.model.remove_request(0)
    assert_solved(session)


def test_room_is_for_usual_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = np.array([10] * 30 + [0, 4, 8, 40, 0, 0, 0, 0, 0], dtype=np.int32)
    sizes = columns, np.where(columns == 4, 0, 2 * columns).astype(np.int32)
    monkeypatch.setattr(slotted_program, "SOME_LARGE", 0)
    found = roomy(sizes, [34, 35, 36, 37, 38, 30])
    assert found[0].tolist() == [10] * 33 + [40, 0, 0, 40, 10, 10]  # the next three that will be used, and a large one
    assert found[1].tolist() == [20] * 33 + [80, 0, 0, 80, 20, 20]
    monkeypatch.setattr(slotted_program, "ROOM", 0.02)
    monkeypatch.setattr(slotted_program, "MOST_LARGE", 0.1)
    assert roomy(sizes, [30])[0].tolist()[30:] == [8, 8, 8, 40, 0, 0, 0, 0, 0, 8, 8, 10, 10, 10]
    monkeypatch.setattr(slotted_program, "SOME_LARGE", 100)
    assert roomy(sizes, [30], (50, 100))[0].tolist()[39:] == [8, 8, 50]  # as large as one that there was
    nothing = np.zeros(3, dtype=np.int32)
    assert [each.tolist() for each in roomy((nothing, nothing), [2, 1, 0])] == [[1, 0, 0]] * 2


def test_requests_without_usage_have_blocks_too() -> None:
    model = Model("max")
    model.add_resources("gpu", 2.0)
    session = Session(model)
    for request in range(30):
        model.add_request(request, [1.0, 2.0], {"gpu": [0.0, 0.0]} if request % 3 else {"gpu": [1.0, 2.0]}, limit=1.0)
        assert_solved(session)
