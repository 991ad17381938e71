"""A short run of the fuzz by structure, its judge, and what its first runs found."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import copter
from copter import LinearProgram, Model, Session, Status
from tests.adversary import solver_fuzz
from tests.adversary.exact_judge import FALSE, OPEN, TOLERATED, TRUE, judged
from tests.adversary.structures import MILD, Tinker, structured

MOST_OPEN = 0.02  # of solves of mild figures


@pytest.mark.parametrize("first", range(0, 24, 6))
def test_no_claim_is_false(first: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(first, first + 6):
        solver_fuzz.trial(seed, counts)
    assert not sum(count for name, count in counts.items() if name.endswith(f"|{FALSE}"))
    mild = {name: count for name, count in counts.items() if name.count("|") == 2 and name.split("|")[1] in MILD}
    hung = sum(count for name, count in mild.items() if name.endswith(f"|{OPEN}"))
    assert hung <= MOST_OPEN * sum(mild.values())
    assert counts["solves"] > 50


@pytest.mark.parametrize("seed", [169, 1064])
def test_what_the_long_run_found_is_mended(seed: int) -> None:
    """An optimum of the proximal method whose prices prove a gap of 4e-5 and 4e-4, with figures from 1e-9 to 1e12."""
    counts: Counter[str] = Counter()
    solver_fuzz.session(seed, counts, edits=10)
    assert counts[f"session|huge|{FALSE}"] == 0
    assert counts[f"session|huge|{TRUE}"] > 10


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_no_claim_about_a_program_is_false(first: int) -> None:
    verdicts = Counter()
    for seed in range(first, first + 50):
        _, figures, lp = structured(seed, 4)
        judgement = judged(lp, copter.solve(lp, copter.Settings(time_limit_s=2.0)), figures in MILD)
        assert judgement.verdict != FALSE, (seed, judgement.why)
        verdicts[judgement.verdict] += 1
    assert verdicts[TRUE] > 40


def test_the_judge_sees_what_is_false() -> None:
    lp = LinearProgram([1.0, 1.0], [[1.0, 2.0]], [2.0], [np.inf], [0.0, 0.0], [4.0, 4.0])
    found = copter.solve(lp)
    assert judged(lp, found, True).verdict == TRUE
    assert judged(lp, found, True, by_simplex=False).by == "certificate"
    too_good = replace(found, bound=np.nextafter(1.0, 2.0))
    assert judged(lp, too_good, True, by_simplex=False).verdict == FALSE
    assert judged(lp, replace(found, objective=1.1), True).verdict == FALSE
    for status in (Status.PRIMAL_INFEASIBLE, Status.DUAL_INFEASIBLE):
        assert judged(lp, replace(found, status=status), True).verdict == FALSE
    assert judged(lp, replace(found, status=Status.NUMERICAL_ERROR), True).verdict == OPEN


@pytest.mark.parametrize("seed", [2280, 2920, 2950, 3510, 4120, 5180])
def test_rows_that_rounding_makes_differ_are_within_tolerance(seed: int) -> None:
    """Rows twice, or nearly: exact arithmetic takes 0.1 * 3 and 0.3 for two rows, and has another optimum."""
    structure, figures, lp = structured(seed, 30 if seed // 10 % 10 == 0 else 6)
    found = copter.solve(lp, copter.Settings(method=solver_fuzz.METHODS[seed // 10 % 4]))
    assert structure in ("parallel", "duplicate")
    assert judged(lp, found, figures in MILD).verdict == TOLERATED


def test_an_answer_that_is_wrong_nearby_too_is_false() -> None:
    one = LinearProgram([1.0, 1.0], [[1.0, 2.0]], [2.0], [np.inf], [0.0, 0.0], [4.0, 4.0])
    free = LinearProgram([1.0, 0.0], [[1.0, 1.0], [1.0, 1.0 + 1e-6]], [1.0, 2.0], [1.0, 2.0], -np.inf, np.inf)
    found = copter.solve(one)
    infeasible = replace(found, status=Status.PRIMAL_INFEASIBLE, _ray=lambda: np.array([-1.0, 1.0]))
    unbounded = replace(found, status=Status.DUAL_INFEASIBLE, _ray=lambda: np.array([-1.0, 1.0]))
    assert judged(free, infeasible, True).verdict == FALSE  # 1e-6 is no rounding
    assert judged(one, unbounded, True).verdict == FALSE
    for ray in ([1.0, 0.0], [-1.0, 0.5 + 1e-8]):
        assert judged(one, replace(unbounded, _ray=lambda ray=ray: np.array(ray)), True).verdict == FALSE


def two_requests(sense: str) -> tuple[Model, Session]:
    """A session whose last solve has left a basis."""
    model = Model(sense)
    for name in "ab":
        model.add_resources(name, 3.0)
    model.add_request("x", [2.0, 1.0], {"a": [1.0, 4.0], "b": [0.0, 4.0]}, limit=np.inf)
    model.add_request("y", [1.0], {"a": [1.0]}, limit=np.inf)
    session = Session(model)
    assert session.solve().status is Status.OPTIMAL
    return model, session


def test_a_session_proves_that_small_models_contradict_themselves() -> None:
    """It ended with a numerical error: pivots give no verdict, and the proximal method has no ray."""
    model, session = two_requests("max")
    model.set_count("b", 3.0, 3.0)
    model.add_request("z", [1.0], {"a": [4.0]}, limit=np.inf, lower=0.5)
    model.update_bounds("y", 1.5, np.inf)
    found = session.solve()
    assert found.status is Status.PRIMAL_INFEASIBLE
    assert found.method == "simplex"
    assert set(found.conflict[1]) <= {"x", "y", "z"}
    model.set_count("a", 9.0)
    assert session.solve().status is Status.OPTIMAL


def test_a_session_proves_that_small_models_are_unbounded() -> None:
    """It went on until the time was up."""
    model, session = two_requests("max")
    model.add_request("w", [5.0], {"a": [-1.0], "b": [0.0]}, limit=np.inf)
    found = session.solve()
    assert found.status is Status.DUAL_INFEASIBLE
    model.remove_request("w")
    assert session.solve().status is Status.OPTIMAL


def test_an_optimum_of_terms_far_larger_than_it_has_a_bound_that_shows_it() -> None:
    """Terms of 1e13 cancel to 4e3: the margin of a pass was larger than the optimum, and the gap came out as 0.8."""
    model = Model("min")
    model.add_resources("a", 1.18842202e-04, 5.94211008e-05)
    model.add_request("x", [-4.74428974e-07], {"a": [1.42604527]}, upper=9.63467179e-09)
    model.add_request("y", [1.37411259e14, -1.20632373e19], {"a": [4.60157411e01, 4.02257873e11]})
    session = Session(model)
    for count in (1.18842202e-04, 1.2e-04, 1.3e-04):
        model.set_count("a", count, 5.94211008e-05)
        found = session.solve()
        assert found.status is Status.OPTIMAL
        assert found.bound_is_certified
        assert found.gap <= 1e-6
        assert judged(model.to_linear_program(), found, False).verdict == TRUE


def test_edits_reach_every_feature() -> None:
    rng = np.random.default_rng(3)
    tinker = Tinker(rng, "whole", 4)
    for _ in range(400):
        tinker.step()
    assert tinker.edits > 250
    assert tinker.refused > 10
    assert tinker.model.version > 250


def test_a_run_goes_on_from_its_state_and_writes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = tmp_path / "state.json"
    monkeypatch.setattr(solver_fuzz, "BLOCK", 1)
    counts: Counter[str] = Counter()
    solver_fuzz.trial(0, counts)
    state.write_text(solver_fuzz.json.dumps({"next": 1, "counts": counts}))
    solver_fuzz.run(state, counts["solves"], 60.0)  # nothing is left to do
    text = solver_fuzz.page(state)
    assert f"{counts['solves']:,} solves" in text
    assert text.count("\n| ") >= 3
