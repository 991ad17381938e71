"""Branch and bound on a round (S11'): the plan is the best of all, with pins, quotas and limits, or there is none."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from copter_frontends.goodput.applications import APPLICATIONS
from copter_frontends.policies.sia import SiaPolicy, exact
from copter_frontends.policies.sia.exact import exact_assignment
from copter_frontends.policies.sia.formulation import SiaFormulation
from copter_frontends.policies.sia.job_book import IDLE
from copter_frontends.policies.sia.shim import integer_assignment
from copter_frontends.vocabulary import Cluster, Job


def round_of(seed: int, jobs: int = 4, quota: int | None = None) -> SiaFormulation:
    """A crowded round of four jobs of two tenants."""
    rng = np.random.default_rng(seed)
    quotas = None if quota is None else {"u0": quota}
    policy = SiaPolicy(Cluster.of({"t4": (1, 4), "a100": (1, 4)}), quotas=quotas)
    for i in range(jobs):
        policy.add_job(Job(f"j{i}", str(rng.choice(list(APPLICATIONS))), tenant=f"u{i % 2}"))
    policy.formulation.refresh_costs(0.0)
    return policy.formulation


def best_of_all(formulation: SiaFormulation) -> float:
    """The worth of the best plan, by trying every one."""
    names = list(formulation.jobs)
    choices = []
    for name in names:
        pinned, value = formulation.jobs[name].pinned, formulation.values(name)
        free = [(IDLE, 0.0), *((int(c), float(value[c])) for c in np.flatnonzero(value > 0))]
        choices.append(free if pinned == IDLE else [(pinned, float(value[pinned]))])
    capacity = np.array([formulation.model.count(kind) for kind in formulation.types])
    best = -np.inf
    for plan in itertools.product(*choices):
        used = np.zeros(len(capacity))
        for column, _ in plan:
            if column != IDLE:
                used[formulation.kind[column]] += formulation.gpus[column]
        rows_hold = all(
            sum(
                row.usage[c]
                for name, (c, _) in zip(names, plan, strict=True)
                if c != IDLE and at in formulation.jobs[name].rows
            )
            <= formulation.model.count(row.key)
            for at, row in enumerate(formulation.rows)
        )
        if (used <= capacity).all() and rows_hold:
            best = max(best, sum(worth for _, worth in plan))
    return best


@pytest.mark.parametrize("quota", [None, 2])
@pytest.mark.parametrize("seed", range(5))
def test_the_plan_is_the_best_of_all(seed: int, quota: int | None) -> None:
    formulation = round_of(seed, quota=quota)
    found, _ = exact_assignment(formulation, formulation.solve(), 60.0)
    assert found.objective == pytest.approx(best_of_all(formulation), rel=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_a_pinned_job_keeps_its_column_in_the_search(seed: int) -> None:
    formulation = round_of(seed)
    column = int(np.flatnonzero(formulation.values("j0") > 0)[0])
    formulation.jobs["j0"].pinned = column
    found = exact._branch_and_bound(formulation, 60.0)
    assert found is not None
    assert found.column["j0"] == column
    assert found.evaluate() == pytest.approx(best_of_all(formulation), rel=1e-8)


def searched(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time limits of the searches that are made."""
    limits: list[float] = []
    search = exact._branch_and_bound

    def watched(formulation: SiaFormulation, time_limit_s: float) -> object:
        limits.append(time_limit_s)
        return search(formulation, time_limit_s)

    monkeypatch.setattr(exact, "_branch_and_bound", watched)
    return limits


def open_round() -> SiaFormulation:
    """A round whose rounded plan is below the LP's bound."""
    for seed in range(40):
        formulation = round_of(seed, jobs=6)
        solution = formulation.solve()
        rounded, _ = integer_assignment(formulation, solution)
        if solution.bound - rounded.objective > 1e-4 * abs(solution.bound):
            return formulation
    raise AssertionError("every round is closed")


def test_it_searches_where_the_shim_leaves_a_gap_with_half_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    formulation, limits = open_round(), searched(monkeypatch)
    solution = formulation.solve()
    exact_assignment(formulation, solution, 40.0)
    assert limits == [20.0]
    rounded, _ = integer_assignment(formulation, solution)
    for left_s in (0.0, -1.0):
        assert exact_assignment(formulation, solution, left_s)[0].objective == pytest.approx(rounded.objective)
    assert limits == [20.0]
    exact_assignment(formulation, solution, 0.5)
    assert limits == [20.0, 0.25]


def test_it_does_not_search_where_the_shims_plan_is_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = searched(monkeypatch)
    formulation = round_of(0, jobs=1)
    exact_assignment(formulation, formulation.solve(), 40.0)
    assert limits == []


def test_a_large_round_keeps_the_shims_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    formulation = open_round()
    columns = sum(int((formulation.values(name) > 0).sum()) for name in formulation.jobs)
    monkeypatch.setattr(exact, "MOST_COLUMNS", columns)
    assert exact._branch_and_bound(formulation, 60.0) is not None
    monkeypatch.setattr(exact, "MOST_COLUMNS", columns - 1)
    assert exact._branch_and_bound(formulation, 60.0) is None
    solution = formulation.solve()
    rounded, fractional = integer_assignment(formulation, solution)
    found, told = exact_assignment(formulation, solution, 60.0)
    assert found.objective == pytest.approx(rounded.objective)
    assert told == fractional


def test_one_column_is_searched_and_none_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    formulation = round_of(0, jobs=1)
    worth = np.full(len(formulation.gpus), -1.0)
    monkeypatch.setattr(formulation, "values", lambda job_id: worth)
    assert exact._branch_and_bound(formulation, 60.0) is None
    worth[2] = 0.5
    found = exact._branch_and_bound(formulation, 60.0)
    assert found is not None
    assert dict(found.column) == {"j0": 2}


def test_a_round_without_jobs_has_an_empty_plan() -> None:
    formulation = SiaPolicy(Cluster.of({"t4": (1, 4)})).formulation
    formulation.refresh_costs(0.0)
    found, fractional = exact_assignment(formulation, formulation.solve(), 60.0)
    assert (dict(found.column), fractional) == ({}, 0)
