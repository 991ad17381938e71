"""A session through random edits: after each, the edited session, a fresh one and HiGHS agree."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from judge import assert_optimal, is_infeasibility_ray

from copter import InvalidDataError, LinearProgram, Model, Session, Settings, Solution, Status, solve
from tests.copter.by_highs import highs
from tests.copter.consistent import require_consistent

Floats = np.ndarray


@dataclass
class Twin:
    """What a caller would write down about the model, and the models built from it."""

    sense: str
    counts: dict[Hashable, float] = field(default_factory=dict)
    requests: dict[Hashable, dict[str, Any]] = field(default_factory=dict)

    def build(self) -> Model:
        """A new model, added to in the order of the notes."""
        model = Model(self.sense)  # type: ignore[arg-type]
        for resource, count in self.counts.items():
            model.add_resources(resource, count)
        for request, note in self.requests.items():
            usage = {r: v for r, v in note["usage"].items() if r in self.counts} or {
                next(iter(self.counts)): np.zeros(len(note["cost"]))
            }
            model.add_request(
                request, note["cost"], usage, scale=note["scale"], offset=note["offset"], **note["bounds"]
            )
            if note["exceptions"]:
                model.rescale_cost(request, note["scale"], note["offset"], note["exceptions"])
            if note["fixed"] is not None:
                model.fix(request, note["fixed"])
        return model


class Edits:
    """Random edits, made to a model and noted in its twin."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.twin = Twin(("max", "min")[seed % 2])
        self.model = Model(self.twin.sense)  # type: ignore[arg-type]
        self.patterns: list[tuple[Any, dict[Hashable, Floats], int]] = []
        self.names = iter(range(10**9))
        for k in range(3):
            self.add_resource(k)
        for _ in range(8):
            self.add_request()

    def any_request(self) -> Hashable:
        return list(self.twin.requests)[self.rng.integers(len(self.twin.requests))]

    def any_resource(self) -> Hashable:
        return list(self.twin.counts)[self.rng.integers(len(self.twin.counts))]

    def add_resource(self, name: Hashable | None = None) -> None:
        name = f"resource {next(self.names)}" if name is None else name
        count = float(self.rng.integers(2, 12))
        self.model.add_resources(name, count)
        self.twin.counts[name] = count

    def more(self) -> None:
        name, count = self.any_resource(), float(self.rng.integers(0, 4))
        self.model.add_resources(name, count)
        self.twin.counts[name] += count

    def fewer(self) -> None:
        name = self.any_resource()
        spare = self.twin.counts[name] - self.model.fixed_usage(name)
        count = float(np.floor(max(0.0, spare) * self.rng.random()))
        self.model.remove_resources(name, count)
        self.twin.counts[name] -= count

    def drop_resource(self) -> None:
        if len(self.twin.counts) > 2:
            name = self.any_resource()
            self.model.drop_resource(name)
            del self.twin.counts[name]
            self.patterns.clear()

    def add_request(self) -> None:
        rng = self.rng
        name = f"job {next(self.names)}" if rng.random() < 0.7 else f"job {rng.integers(30)}"
        if name in self.twin.requests:
            return
        if self.patterns and rng.random() < 0.6:
            template, usage, n = self.patterns[rng.integers(len(self.patterns))]
        else:
            n = int(rng.integers(1, 9))
            usage = {
                r: np.where(rng.random(n) < 0.6, rng.integers(1, 6, n), 0.0)
                for r in self.twin.counts
                if rng.random() < 0.8
            } or {self.any_resource(): np.ones(n)}
            template = None
            if rng.random() < 0.6:
                template = self.model.add_template(usage)
                self.patterns.append((template, usage, n))
        kind = rng.random()
        bounds: dict[str, Any] = {}
        if kind < 0.1:
            bounds = {"limit": np.inf, "upper": rng.uniform(0.1, 1.0, n)}
        elif kind < 0.2:
            bounds = {"limit": 0.5 + rng.random(), "lower": -rng.random(n), "upper": 2.0}
        elif kind < 0.3:
            bounds = {"limit": 0.8}
        sign = 1.0 if self.twin.sense == "max" else -1.0
        cost = sign * np.round(rng.uniform(-0.3, 2.0, n), int(rng.integers(1, 6)))
        note = {"scale": float(rng.uniform(0.5, 2.0)), "offset": float(rng.normal() * 0.1)}
        note |= {"cost": cost, "usage": usage, "bounds": bounds, "exceptions": {}, "fixed": None}
        source = {"usage": usage} if template is None else {"template": template}
        self.model.add_request(name, cost, **source, scale=note["scale"], offset=note["offset"], **bounds)
        self.twin.requests[name] = note

    def remove_request(self) -> None:
        if len(self.twin.requests) > 3:
            name = self.any_request()
            self.model.remove_request(name)
            del self.twin.requests[name]

    def replace_request(self) -> None:
        """Remove, and add at once: the slot is taken again."""
        self.remove_request()
        self.add_request()

    def rescale(self) -> None:
        name = self.any_request()
        note = self.twin.requests[name]
        n = len(note["cost"])
        note["scale"], note["offset"] = float(self.rng.uniform(-0.5, 2.0)), float(self.rng.normal() * 0.1)
        columns = self.rng.choice(n, int(self.rng.integers(0, min(n, 3) + 1)), replace=False)
        note["exceptions"] = {int(j): float(self.rng.normal()) for j in columns}
        self.model.rescale_cost(name, note["scale"], note["offset"], note["exceptions"])

    def update_cost(self) -> None:
        name = self.any_request()
        note = self.twin.requests[name]
        note |= {"cost": self.rng.normal(0.5, 1.0, len(note["cost"])), "scale": 1.0, "offset": 0.0, "exceptions": {}}
        self.model.update_cost(name, note["cost"])

    def fix(self) -> None:
        name = self.any_request()
        note = self.twin.requests[name]
        if not note["bounds"]:
            note["fixed"] = int(self.rng.integers(len(note["cost"])))
            self.model.fix(name, note["fixed"])

    def unfix(self) -> None:
        for name, note in self.twin.requests.items():
            if note["fixed"] is not None:
                self.model.unfix(name)
                note["fixed"] = None
                return

    def one(self) -> None:
        """One edit of a kind drawn at random."""
        kinds = (
            self.add_request, self.add_request, self.remove_request, self.replace_request, self.rescale, self.rescale,
            self.update_cost, self.fix, self.unfix, self.unfix, self.more, self.fewer, self.add_resource,
            self.drop_resource,
        )  # fmt: skip
        kinds[self.rng.integers(len(kinds))]()


def require_same(edited: Model, solution: Solution, fresh: Model) -> None:
    """The edited model is the fresh one; its solution, the fresh model's and HiGHS's agree."""
    program, anew = edited.to_linear_program(), fresh.to_linear_program()
    np.testing.assert_array_equal(program.c, anew.c)
    assert (program.A != anew.A).nnz == 0
    for name in ("row_lower", "row_upper", "col_lower", "col_upper"):
        np.testing.assert_array_equal(getattr(program, name), getattr(anew, name))
    other = Session(fresh).solve()
    status, best, _, _ = highs(program)
    assert solution.status is other.status
    if solution.status is Status.PRIMAL_INFEASIBLE:
        assert "kInfeasible" in str(status)
        assert is_infeasibility_ray(program, solution.ray)
        assert is_infeasibility_ray(anew, other.ray)
        return
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(best, rel=2e-6, abs=2e-6)
    assert other.objective == pytest.approx(best, rel=2e-6, abs=2e-6)
    assert_optimal(program, solution.x, solution.y)
    for request in edited.requests:
        np.testing.assert_array_equal(solution.of(request), _block(edited, solution, request))


def _block(model: Model, solution: Solution, request: Hashable) -> Floats:
    """Values of a request, cut out of the dense vector."""
    lengths = [len(model.cost(r)) for r in model.requests]
    at = model.requests.index(request)
    return solution.x[sum(lengths[:at]) : sum(lengths[: at + 1])]


def settings_of(seed: int, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Pivots from the last basis; or Newton's method alone, its steps in Python, prices held close."""
    newton = Settings(basis_columns=0)
    if seed % 4 == 2:
        monkeypatch.setattr("copter.methods.proximal.solve.solve_in_one_call", lambda *_: None)
    return [Settings(), newton, newton, replace(newton, trust_radius=0.05)][seed % 4]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(10), 1055])  # 1055: the price of a row that a fixed column uses up
def test_every_edit_ends_where_a_fresh_model_does(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    edits = Edits(seed)
    session = Session(edits.model, settings_of(seed, monkeypatch))
    for _ in range(40):
        edits.one()
        solution = session.solve()
        session._iterate.check_consistent(edits.model.ledger.matrix)
        require_consistent(edits.model.ledger)
        require_same(edits.model, solution, edits.twin.build())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_many_edits_between_two_solves(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    edits = Edits(100 + seed)
    session = Session(edits.model, settings_of(seed, monkeypatch))
    for _ in range(12):
        for _ in range(int(edits.rng.integers(0, 25))):
            edits.one()
        solution = session.solve()
        session._iterate.check_consistent(edits.model.ledger.matrix)
        require_consistent(edits.model.ledger)
        require_same(edits.model, solution, edits.twin.build())


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1100))
def test_every_edit_for_long(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    test_every_edit_ends_where_a_fresh_model_does(seed, monkeypatch)


def test_a_session_is_of_a_model() -> None:
    lp = LinearProgram([1.0], [[1.0]], row_upper=[1.0])
    with pytest.raises(InvalidDataError, match=r"is a LinearProgram, must be a Model; copter\.solve\(lp\)"):
        Session(lp)  # type: ignore[arg-type]
    with pytest.raises(InvalidDataError, match=r"is a Model.*Session\(model\)\.solve"):
        solve(Model())  # type: ignore[arg-type]
