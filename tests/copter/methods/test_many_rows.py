"""Models with many coupling rows: pivots with sparse factors through every kind of edit, against HiGHS (K9 to K14)."""

from __future__ import annotations

import numpy as np
import pytest

from copter import Model, Session, Status
from copter.methods import block_round
from copter.methods.blocks import basis
from copter.methods.blocks.sparse_dual import SparseDual
from copter.runtime.watch import Watch
from tests.copter.by_highs import highs

KINDS = ("count", "counts", "costs", "limits", "usage", "arrive", "leave", "fail", "zero", "resource")


def options(request: int) -> int:
    """How many options a request has: some have many."""
    return 40 if request % 50 == 49 else 3


class Placement:
    """Requests of a few options on a few resources each, and random edits; `alike` makes many options equal."""

    def __init__(self, seed: int, resources: int, requests: int, alike: bool) -> None:
        self.rng, self.alike, self.resources, self.made = np.random.default_rng(seed), alike, resources, 0
        self.model = Model(sense="max")
        for i in range(resources):
            self.model.add_resources(i, float(self.rng.integers(2, 9)))
        self.alive: list[int] = []
        for _ in range(requests):
            self.arrive()

    def worth(self, n: int) -> np.ndarray:
        """Worths of n options."""
        return np.full(n, 10.0) if self.alike else self.rng.integers(5, 50, n).astype(float)

    def usage(self, n: int) -> dict[int, list[float]]:
        """Two resources an option, some of them twice; one in five resources is used by nobody."""
        used: dict[int, list[float]] = {}
        for option in range(n):
            for i in self.rng.integers(0, max(self.resources * 4 // 5, 1), 2):
                used.setdefault(int(i), [0.0] * n)[option] += 1.0 if self.alike else float(self.rng.integers(1, 4))
        return used

    def arrive(self) -> None:
        """Add a request, at times one of many options."""
        n = options(self.made)
        self.model.add_request(self.made, self.worth(n), self.usage(n))
        self.alive.append(self.made)
        self.made += 1

    def edit(self, kind: str) -> None:
        """Make one edit, or a few per cent of them."""
        model, rng = self.model, self.rng
        some = rng.choice(len(self.alive), max(len(self.alive) // 50, 1), replace=False)
        if kind == "count":
            model.set_count(int(rng.integers(self.resources)), float(rng.integers(2, 9)))
        elif kind in ("counts", "fail", "zero"):
            share = {"counts": self.resources // 20 + 1, "fail": 2, "zero": self.resources}[kind]
            for i in rng.choice(self.resources, share, replace=False):
                model.set_count(int(i), float(rng.integers(2, 9)) if kind == "counts" else 0.0)
        elif kind == "costs":
            for j in some:
                model.update_cost(self.alive[j], self.worth(options(self.alive[j])))
        elif kind == "limits":
            for j in some:
                model.update_limit(self.alive[j], float(rng.integers(0, 2)))
        elif kind == "usage":
            for j in some:
                name = self.alive[j]
                model.remove_request(name)
                model.add_request(name, self.worth(options(name)), self.usage(options(name)))
        elif kind == "arrive":
            self.arrive()
        elif kind == "leave":
            model.remove_request(self.alive.pop(int(some[0])))
        else:
            model.add_resources(self.resources, 3.0)
            self.resources += 1


def assert_rounds_agree(seed: int, resources: int, requests: int, alike: bool, rounds: int) -> list[str]:
    """Solve rounds of random edits, each as well as HiGHS does from nothing; return the methods."""
    case, methods = Placement(seed, resources, requests, alike), []
    session = Session(case.model)
    for k in range(rounds):
        solution = session.solve()
        assert solution.status == Status.OPTIMAL
        assert solution.objective == pytest.approx(highs(case.model.to_linear_program())[1], rel=1e-6, abs=1e-6)
        methods.append(solution.method)
        case.edit(KINDS[(k + seed) % len(KINDS)])
    return methods


@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_every_edit_ends_at_the_optimum(monkeypatch: pytest.MonkeyPatch, seed: int, alike: bool) -> None:
    monkeypatch.setattr(basis, "DENSE_ROWS", 20)
    methods = assert_rounds_agree(seed, 70, 200, alike, 2 * len(KINDS))
    assert methods.count("basis") > len(KINDS)


def test_a_changed_count_is_solved_by_sparse_pivots() -> None:
    case = Placement(7, 400, 1200, False)
    session = Session(case.model)
    session.solve()
    case.edit("count")
    session.solve()
    for _ in range(3):
        case.edit("count")
        assert session.solve().method in ("basis", "kept")
    last = session._iterate.pivots().last
    assert last is not None
    assert isinstance(last.dual, SparseDual)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_large_models_through_every_edit(seed: int) -> None:
    assert_rounds_agree(seed, 300, 900, bool(seed % 3 == 0), 3 * len(KINDS))


def test_rounds_that_run_out_of_time_come_to_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pivots that gave up go on in the next round, if what came after them ran out of time."""
    case = Placement(3, 400, 800, False)
    session = Session(case.model)
    assert session.solve().status is Status.OPTIMAL
    case.edit("count")
    assert session.solve().method == "basis"

    def too_late(*given: object) -> None:
        watch = given[4]
        assert isinstance(watch, Watch)
        watch.limit_s = 0.0
        calls.append(len(calls))

    monkeypatch.setattr(block_round, "by_interior_points", too_late)
    calls: list[int] = []
    for i in range(case.resources):
        case.model.set_count(i, float(case.rng.integers(2, 9)))
    assert session.solve(3600.0).status is not Status.OPTIMAL
    assert calls  # pivots gave up
    found = session.solve(3600.0)
    assert (found.status, found.method, calls) == (Status.OPTIMAL, "basis", [0])
    assert found.objective == pytest.approx(highs(case.model.to_linear_program())[1], rel=1e-9)


def test_every_other_late_round_leaves_its_time_to_the_next_method() -> None:
    case, skipped = Placement(4, 150, 300, False), []
    session = Session(case.model)
    session.solve()
    case.edit("count")
    iterate = session._iterate
    for late_rounds in range(9):
        iterate.pivots().late = late_rounds
        case.edit("count")
        skipped.append(session.solve(3600.0).method != "basis")
    assert [k for k, each in enumerate(skipped) if each] == [2, 4, 8]


def test_without_a_deadline_pivots_give_up_after_a_late_round_as_after_others() -> None:
    case = Placement(3, 400, 800, False)
    session = Session(case.model)
    session.solve()
    case.edit("count")
    assert session.solve().method == "basis"
    session._iterate.pivots().late = 1
    for i in range(case.resources):
        case.model.set_count(i, float(case.rng.integers(2, 9)))
    assert session.solve().method == "blocks"
    assert session._iterate.pivots().late == 0


def test_a_stop_is_no_late_round() -> None:
    case = Placement(3, 150, 300, False)
    session = Session(case.model)
    session.solve()
    case.edit("zero")
    stopped = session.solve(3600.0, callback=lambda *given: True)
    assert stopped.status in (Status.INTERRUPTED, Status.OPTIMAL)
    assert session._iterate.pivots().late == 0
