"""Hadar's LP and whole plans against HiGHS (docs/papers/hadar.md, H6 to H14)."""

from __future__ import annotations

import numpy as np
import pytest
from hadar_instances import by_highs, paper_form, random_round, threshold_form
from plan_checks import optimum

from copter import Settings, Status
from copter_frontends.policies.hadar import HadarPolicy
from copter_frontends.policies.hadar.formulation import HadarFormulation, bundle_values
from copter_frontends.policies.hadar.round_values import RoundTerms
from copter_frontends.policies.hadar.shim import Draft, HadarShim
from copter_frontends.policy_kit.throughputs import ThroughputTable
from copter_frontends.vocabulary import Cluster, Job

FEW, MANY = range(0, 300, 13), range(300)  # of every utility, with jobs that have GPUs and without


def few_of(seeds: range, count: int) -> list[object]:
    """The seeds, all but so many of them long."""
    few = set(seeds[:: -(-len(seeds) // count)])
    return [pytest.param(seed, marks=() if seed in few else pytest.mark.long) for seed in seeds]


def settled(seed: int) -> tuple[Draft, float, int]:
    made = random_round(seed)
    solution = made.solve()
    bound = made.bound_of(solution)
    draft, split = HadarShim()(made, made.shares(solution), made.prices(solution), bound, 10.0)
    return draft, bound, split


@pytest.mark.parametrize("seed", few_of(range(0, 300, 5), 12))
def test_the_compact_lp_has_the_optimum_of_the_papers_form(seed: int) -> None:
    made = random_round(seed - seed % 2, spread_cost=0.0, restart_s=0.0)
    solution = made.solve()
    expected = by_highs(paper_form(made), whole=False).fun
    assert solution.objective / made.scale == pytest.approx(expected, rel=2e-6, abs=2e-6 / made.scale)


@pytest.mark.parametrize("seed", few_of(range(0, 300, 5), 12))
def test_the_compact_lp_bounds_the_threshold_form_with_moves_and_spread(seed: int) -> None:
    made = random_round(seed)
    solution = made.solve()
    form = threshold_form(made)
    relaxed = by_highs(form.linear_program(), whole=False).fun
    assert made.bound_of(solution) >= relaxed - 1e-6 * (1 / made.scale + relaxed)


@pytest.mark.parametrize("seeds", [FEW, pytest.param(MANY, marks=pytest.mark.long)], ids=["few", "many"])
def test_plans_are_within_one_percent_of_the_best(seeds: range) -> None:
    worst = 0.0
    for seed in seeds:
        draft, bound, _ = settled(seed)
        form = threshold_form(draft.formulation)
        if form.whole == 0:
            assert draft.value() == 0
            continue
        best = by_highs(form.linear_program(), whole=True).fun
        assert bound >= best * (1 - 1e-6) - 1e-6 / draft.formulation.scale
        assert draft.value() <= best * (1 + 1e-4), f"seed {seed}: a plan better than the best"
        worst = max(worst, 1.0 - draft.value() / best)
    assert worst <= 0.01


@pytest.mark.parametrize("seed", few_of(range(0, 300, 5), 12))
def test_plans_keep_capacity_gangs_and_their_own_value(seed: int) -> None:
    draft, _, split = settled(seed)
    made = draft.formulation
    assert np.array_equal(draft.bundles.sum(axis=0) + draft.left, made.capacity)
    assert (draft.left >= 0).all()
    given = draft.bundles.sum(axis=1)
    assert ((given == 0) | (given == made.book.gpus)).all()
    assert draft.value() == pytest.approx(bundle_values(made.book, draft.values, draft.bundles).sum())
    assert split <= len(made.types), "a vertex splits at most as many jobs as there are types (F12)"


@pytest.mark.parametrize("seed", few_of(range(1, 300, 10), 10))
def test_no_plan_is_worse_than_keeping_what_jobs_have(seed: int) -> None:
    draft, _, _ = settled(seed)
    kept = Draft(draft.formulation, draft.prices)
    kept.keep()
    assert draft.value() >= kept.value() - 1e-9 * kept.value()


@pytest.mark.parametrize("seed", few_of(range(0, 300, 19), 6))
def test_given_whole_thresholds_the_gpus_are_whole_by_themselves(seed: int) -> None:
    made = random_round(seed)
    form = threshold_form(made)
    if form.whole == 0:
        return
    program = form.linear_program()
    free = program.integrality.copy()
    free[form.whole :] = False
    best = by_highs(program, whole=True).fun
    object.__setattr__(program, "integrality", free)
    assert by_highs(program, whole=True).fun == pytest.approx(best, rel=1e-4)


def test_an_edited_model_solves_to_the_same_as_one_built_anew_and_as_highs() -> None:
    made = random_round(7)
    before = made.solve()
    for job_id in ("j1", "j2"):
        made.hold(job_id, np.zeros(len(made.types), dtype=np.int64))
    made.change_capacity(made.types[0], 3)
    made.remove_jobs(["j0"])
    terms = RoundTerms(3960.0, 360.0, 10.0, 0.05, made.capacity)
    made.refresh(terms)
    warm = made.solve()
    again = HadarFormulation(made.types, made.capacity.copy(), made.utility, Settings(threads=1))
    book = made.book
    for row in reversed(range(len(book))):  # in another order
        job = book.jobs[row]
        again.book.add(job, int(book.gpus[row]), float(book.total[row]), book.rates[row].copy())
        again.book.progress[again.book.row(job.id)] = book.progress[row]
        if book.held[row].any():
            again.hold(job.id, book.held[row].copy(), bool(book.spread[row]))
    again.refresh(terms)
    cold = again.solve()
    assert again.scale == made.scale
    assert before.objective != pytest.approx(warm.objective, rel=1e-3), "the edits must matter"
    assert warm.objective == pytest.approx(cold.objective, rel=2e-6)
    assert warm.objective == pytest.approx(optimum(again.model), rel=2e-6)
    assert cold.objective <= warm.bound * (1 + 1e-6)


def test_shares_are_each_jobs_values_and_its_mixture_s_apart() -> None:
    """In odd seeds some jobs have GPUs of several types, and so a column more, behind others in the book."""
    mixtures = 0
    for seed in range(1, 160, 6):
        made = random_round(seed)
        solution = made.solve()
        shares = made.shares(solution)
        for row, job in enumerate(made.book.jobs):
            values, kinds = solution.of(job.id), len(made.types)
            np.testing.assert_array_equal(shares.x[row], values[:kinds])
            own = float(values[kinds]) if len(values) > kinds else 0.0
            assert shares.own[row] == own
            mixtures += own > 0.0
    assert mixtures >= 2


def test_a_round_of_many_columns_is_solved_by_pivots_from_the_last_ones_basis() -> None:
    types = [f"gpu-{n}" for n in range(9)]
    rates = ThroughputTable(
        {f"app-{n}": {kind: 2.0 - 0.01 * n * at for at, kind in enumerate(types)} for n in range(7)}
    )
    policy = HadarPolicy(Cluster.of(dict.fromkeys(types, (25, 4))), rates)
    policy.add_jobs([Job(f"j{n}", f"app-{n % 7}", 60.0 * n, 1e6 + 1e3 * n, 1 + n % 4) for n in range(4600)])
    form, methods = policy.formulation, list[str]()
    for turn in range(3):
        policy.update_progress({f"j{n}": 0.3 * turn for n in range(100 * turn, 4600, 3)})
        form.refresh(policy.terms(3e5 + 1e4 * turn))
        solution = form.solve()
        assert solution.status is Status.OPTIMAL
        methods.append(solution.method)
    assert form.model.n_columns > Settings().basis_columns
    assert methods[1:] == ["basis", "basis"]
