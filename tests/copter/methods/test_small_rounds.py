"""Rounds of small models by pivots, of the whole program or of its blocks: against HiGHS, and how they give up."""

from __future__ import annotations

from collections import Counter

import highspy
import numpy as np
import pytest

from copter import Model, PrivateRows, Session, Settings, Status
from copter.methods import choose
from copter.methods.simplex.pivots import Pivots
from copter.problem.checker import check
from copter.runtime.watch import Stopped
from tests.copter.by_highs import highs

INF = float("inf")
PERTURBED = (choose.PIVOTS.why, choose._COLD_PIVOTS.why)
PIVOTED = (*PERTURBED, choose.SMALL.why, choose.SMALL_COLD.why, choose.KEPT.why)
CLOSE = 1e-6  # the same for costs that are perturbed: the tolerance
EXACT = 1e-9  # of the objective: what two vertices of one optimal face may differ by


class Rounds:
    """A model with random requests, and random edits of it.

    Parameters
    ----------
    seed : int
    private : bool
        Whether requests have private rows and least sums.
    """

    def __init__(self, seed: int, private: bool) -> None:
        self.rng, self.private = np.random.default_rng(seed), private
        self.model = Model("min" if seed % 2 else "max", offset=float(seed % 3))
        self.resources = [f"r{i}" for i in range(int(self.rng.integers(2, 12)))]
        self.columns: dict[int, int] = {}
        self.rows: dict[int, int] = {}
        self.made = len(self.resources)
        for resource in self.resources:
            self.model.add_resources(resource, float(self.rng.integers(1, 9)))
        for _ in range(int(self.rng.integers(1, 20))):
            self.add()

    def costs(self, n: int) -> np.ndarray:
        """Whole numbers, so that vertices tie, or any."""
        if self.rng.random() < 0.5:
            return self.rng.integers(-4, 9, n).astype(float)
        return self.rng.normal(2.0, 3.0, n)

    def add(self) -> None:
        """A request with some columns; all of them are bounded by its limit, or each by a bound of its own."""
        rng, n = self.rng, int(self.rng.integers(1, 6))
        request = max(self.columns, default=-1) + 1
        some = rng.choice(self.resources, int(rng.integers(1, min(4, len(self.resources)) + 1)), replace=False)
        usage = {str(resource): rng.integers(0, 4, n).astype(float) for resource in some}
        limited = rng.random() < 0.7
        limit, upper = (float(rng.integers(1, 3)), INF) if limited else (INF, float(rng.integers(1, 4)))
        rows = None
        if self.private and rng.random() < 0.6:
            height = int(rng.integers(1, 3))
            matrix = rng.integers(-1, 3, (height, n)).astype(float)
            rows = PrivateRows(matrix, np.full(height, -2.0), rng.integers(0, 4, height).astype(float))
            self.rows[request] = height
        least = float(rng.integers(0, 2)) / 2 if self.private and rng.random() < 0.3 else -INF
        self.model.add_request(
            request, self.costs(n), usage, limit=limit, upper=upper, private_rows=rows,
            at_least=least, integer=bool(rng.random() < 0.3),
        )  # fmt: skip
        self.columns[request] = n

    def edit(self) -> None:
        """One edit of any kind."""
        rng, model = self.rng, self.model
        kind = rng.integers(9)
        request = int(rng.choice(list(self.columns))) if self.columns else None
        if kind == 0 or request is None or len(self.columns) < 2:
            self.add()
        elif kind == 1:
            model.remove_request(request)
            del self.columns[request]
            self.rows.pop(request, None)
        elif kind == 2:
            model.update_cost(request, self.costs(self.columns[request]))
        elif kind == 3:
            model.rescale_cost(request, float(rng.uniform(0.5, 2.0)))
        elif kind == 4:
            model.set_count(str(rng.choice(self.resources)), float(rng.integers(0, 9)))
        elif kind == 5:
            model.update_bounds(request, upper=float(rng.integers(1, 3)))
        elif kind == 6:
            self.made += 1
            self.resources.append(f"r{self.made}")
            model.add_resources(self.resources[-1], float(rng.integers(1, 5)))
        elif kind == 7 and len(self.resources) > 2:
            model.drop_resource(self.resources.pop(int(rng.integers(len(self.resources)))))
        elif request in self.rows:
            size = self.rows[request]
            model.update_row_bounds([request], upper=[rng.integers(0, 4, size).astype(float)])


def play(seed: int, private: bool, rounds: int = 8) -> Counter[str]:
    """Compare every round of a session with HiGHS; how its rounds were solved."""
    made, seen = Rounds(seed, private), Counter[str]()
    session = Session(made.model, Settings(threads=1))
    for number in range(rounds):
        solution, lp = session.solve(), made.model.to_linear_program()
        status, objective, *_ = highs(lp)
        where = f"seed {seed}, private rows {private}, round {number}: {solution.status}, {solution.why}"
        if status == highspy.HighsModelStatus.kOptimal:
            assert solution.status is Status.OPTIMAL, where
            exact = solution.why in PIVOTED
            most = CLOSE if solution.why in PERTURBED else EXACT if exact else 1e-3
            apart = abs(solution.objective - objective) / (1.0 + abs(objective))
            assert apart <= most, f"{where}: {solution.objective} and {objective}"
            assert solution.bound_is_certified, where
            assert solution.gap <= most, where
            assert check(lp, solution.x, solution.y).within(1e-6 if exact else 1e-3, 1e-6 if exact else 1e-3), where
            seen[solution.why] += 1
        elif status == highspy.HighsModelStatus.kInfeasible:
            assert solution.status is Status.PRIMAL_INFEASIBLE, where
        for _ in range(int(made.rng.integers(0, 5))):
            made.edit()
    return seen


@pytest.mark.parametrize("private", [False, True])
def test_every_round_is_what_highs_finds(private: bool) -> None:
    seen = sum((play(seed, private) for seed in range(60)), Counter[str]())
    assert sum(seen[why] for why in PIVOTED) > 0.95 * seen.total(), seen


@pytest.mark.long
@pytest.mark.parametrize("private", [False, True])
def test_every_round_of_many_sessions_is_what_highs_finds(private: bool) -> None:
    for seed in range(1_000, 3_000):
        play(seed, private)


def covering(rows: int, columns: int) -> Model:
    """Requests of eight columns over many rows, with bounds that may be moved."""
    rng, model = np.random.default_rng(5), Model("min")
    for i in range(rows):
        model.add_resources(i, 1e6, lower=float(rng.integers(1, 4)))
    for g in range(columns // 8):
        usage = {int(i): (rng.random(8) < 0.4) * 1.0 for i in rng.choice(rows, min(rows, 10), replace=False)}
        model.add_request(g, rng.uniform(1.0, 2.0, 8), usage, limit=INF, upper=9.0)
    return model


def test_moved_bounds_take_a_few_pivots() -> None:
    model = covering(60, 400)
    session = Session(model, Settings(threads=1))
    first = session.solve()
    assert first.method == "basis"
    model.update_bounds(3, upper=0.5)
    second = session.solve()
    assert second.why == choose.SMALL.why
    assert second.iterations < 0.3 * first.iterations
    assert session.solve().iterations == 0


def test_a_round_without_work_left_is_solved_by_the_next_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("copter.methods.choose.SIMPLEX_WORK", 1.0)
    model = covering(20, 160)
    session = Session(model, Settings(threads=1))
    solution = session.solve()
    assert solution.status is Status.OPTIMAL
    assert solution.why != choose.SMALL.why
    assert solution.objective == pytest.approx(highs(model.to_linear_program())[1], rel=1e-3)
    assert session._iterate.vertex is not None
    assert session._iterate.vertex.failures == 1  # and the next round leaves it out


def test_many_requests_over_few_rows_are_left_to_their_blocks() -> None:
    facts = choose.ModelFacts(columns=3_000, rows=7, private_rows=False, has_basis=True, requests=500)
    assert choose.SMALL not in choose.for_model(facts, Settings())
    for requests, private in ((300, False), (800, True)):
        small = choose.ModelFacts(3_000, 200, private, has_basis=True, requests=requests)
        assert choose.for_model(small, Settings())[0] is choose.SMALL
    for rows, sums, entries in ((400, 160, 0), (400, 161, 0), (400, 0, 40_000), (400, 0, 40_001), (200, 1, 0)):
        plain = choose.ModelFacts(3_000, rows, False, has_basis=True, requests=200, sums=sums, entries=entries)
        is_small = sums <= 160 and entries <= 40_000 and (rows > 256 or not sums)
        assert (choose.for_model(plain, Settings())[0] is choose.SMALL) == is_small
    for requests, private in ((301, False), (801, True)):
        eliminated = choose.ModelFacts(3_000, 200, private, has_basis=True, requests=requests)
        assert choose.SMALL not in choose.for_model(eliminated, Settings())


def test_a_round_without_time_leaves_no_program_with_entries_of_another() -> None:
    model = covering(60, 400)
    session = Session(model, Settings(threads=1))
    assert session.solve().status is Status.OPTIMAL
    for request in range(100, 110):
        model.add_request(request, [0.1] * 8, {request % 60: [1.0] * 8}, limit=INF, upper=9.0)
    assert session.solve(deadline_s=1e-9).status is Status.TIME_LIMIT
    solution = session.solve()
    assert solution.why == choose.SMALL.why
    assert solution.objective == pytest.approx(highs(model.to_linear_program())[1], rel=1e-9)


def test_pivots_that_were_stopped_at_once_leave_prices_of_their_own_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(_: Pivots) -> Status:
        raise Stopped

    model = Model("max")
    for resource in ("a", "c", "d", "e"):
        model.add_resources(resource, 3.0)
    for request, cost in enumerate((5.0, 4.0, 3.0)):
        model.add_request(request, [cost], {"a": [2.0]})
    session = Session(model)
    with monkeypatch.context() as cut:
        cut.setattr(Pivots, "to_optimum", stopped)
        cut.setattr(Pivots, "first_phase", stopped)
        session.solve()
    model.add_resources("b", 1.0)
    model.add_request("new", [7.0], {"a": [1.0], "b": [2.0]})
    assert session.solve().objective == pytest.approx(7.0 * 0.5 + 5.0 + 4.0 * 0.25)
