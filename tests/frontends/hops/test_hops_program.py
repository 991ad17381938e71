"""The Hops program: bounds, both formulations, the shim and HiGHS on the paper's own columns (HP15-HP18, HP24-HP27)."""

from __future__ import annotations

import numpy as np
import pytest
from hops_instances import RandomSpeeds, small_groups, small_wishes
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

import copter
from copter import LinearProgram, Settings
from copter.runtime.errors import SettingsError
from copter_frontends.policies.hops.draft import Draft
from copter_frontends.policies.hops.formulation import GroupFormulation, Wish, telling_sizes
from copter_frontends.policies.hops.latency_ratio import LatencyQueue
from copter_frontends.policies.hops.offers import PACKED, OfferRules
from copter_frontends.policies.hops.requirements import RequirementSet
from copter_frontends.policies.hops.server_groups import ServerGroups
from copter_frontends.policies.hops.shim import HopsShim, dive, fill, swap
from copter_frontends.vocabulary import Job
from copter_papers.hops.exact import placed_program
from copter_papers.hops.node_prices import NodePriceFormulation

COUNTS = {"k": (3, 4), "long": (2, 8)}
NO_CUTS_NEEDED = {"k": (4, 2)}


def highs_best(program: LinearProgram) -> float:
    found = milp(
        -program.c,
        integrality=program.integrality,
        bounds=Bounds(program.col_lower, program.col_upper),
        constraints=LinearConstraint(program.A, program.row_lower, program.row_upper),
    )
    assert found.success
    return -float(found.fun)


def highs_relaxed(program: LinearProgram) -> float:
    found = linprog(-program.c, A_ub=program.A, b_ub=program.row_upper, bounds=(0.0, 1.0))
    return -float(found.fun)


@pytest.mark.parametrize("seed", range(6))
def test_the_exact_program_has_the_optimum_of_highs(seed: int) -> None:
    speeds = RandomSpeeds(seed, slow_server=0.8)
    groups = small_groups(speeds, COUNTS)
    program, _ = placed_program(small_wishes(10, groups, speeds, seed), groups, groups.size)
    ours = copter.solve_integer(program, "exact")
    assert ours.objective == pytest.approx(highs_best(program), rel=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_the_group_bound_holds_for_every_placement_and_the_shim_comes_near(seed: int) -> None:
    speeds = RandomSpeeds(seed, slow_server=0.8 if seed % 2 else 1.0)
    groups = small_groups(speeds, COUNTS)
    wishes = small_wishes(12, groups, speeds, seed)
    program, _ = placed_program(wishes, groups, groups.size)
    best = highs_best(program)
    formulation = GroupFormulation(groups, Settings())
    formulation.set_free(groups.size)
    formulation.set_wishes(wishes)
    solution = formulation.solve()
    assert solution.bound >= best - 1e-6 * best
    draft = Draft(groups, groups.size, {}, lambda *_: 1.0, 0.0)
    draft.admit(wishes)
    residual = GroupFormulation(groups, Settings(), all_slots=True)
    draft, _ = HopsShim(dives=2)(draft, formulation, solution, solution.bound, residual, 60.0)
    assert best * 0.95 <= draft.value <= solution.bound + 1e-6 * best
    used = np.zeros(len(groups.ids), dtype=np.int64)
    for each in draft.placed.values():
        for server, gpus in each.shares:
            used[server] += gpus
    assert (used <= groups.size).all()
    assert (groups.size - used == draft.free).all()


@pytest.mark.parametrize("seed", range(4))
def test_without_cuts_the_group_relaxation_is_the_one_over_servers(seed: int) -> None:
    """HP17: servers of two GPUs imply all their slots rows, and single-server jobs have no windows."""
    speeds = RandomSpeeds(seed)
    groups = small_groups(speeds, NO_CUTS_NEEDED)
    wishes = small_wishes(12, groups, speeds, seed, most=2)
    program, _ = placed_program(wishes, groups, groups.size)
    formulation = GroupFormulation(groups, Settings())
    formulation.set_free(groups.size)
    formulation.set_wishes(wishes)
    assert formulation.solve().objective == pytest.approx(highs_relaxed(program), rel=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_node_prices_reach_the_relaxation_over_servers(seed: int) -> None:
    speeds = RandomSpeeds(seed, slow_server=0.8)
    groups = small_groups(speeds, COUNTS)
    wishes = small_wishes(10, groups, speeds, seed)
    program, _ = placed_program(wishes, groups, groups.size)
    formulation = NodePriceFormulation(groups, Settings())
    formulation.set_free(groups.size)
    formulation.set_wishes(wishes)
    found = formulation.solve(gap=1e-5)
    relaxed = highs_relaxed(program)
    assert found.bound >= relaxed - 1e-6 * relaxed
    assert found.objective == pytest.approx(found.bound, rel=1e-4)


def test_cuts_are_written_where_gpus_do_not_imply_them() -> None:
    assert telling_sizes(8) == [3, 5]
    assert telling_sizes(4) == [3]
    assert telling_sizes(2) == []
    assert telling_sizes(1) == []


def test_edits_reach_the_optimum_of_a_fresh_formulation() -> None:
    speeds = RandomSpeeds(3)
    groups = small_groups(speeds, COUNTS)
    first, second = small_wishes(12, groups, speeds, 1), small_wishes(15, groups, speeds, 2)
    edited, fresh = GroupFormulation(groups, Settings()), GroupFormulation(groups, Settings())
    edited.set_free(groups.size)
    edited.set_wishes(first)
    edited.solve()
    less = groups.size - 1
    for each in (edited, fresh):
        each.set_free(less)
        each.set_wishes(second)
    assert edited.solve().objective == pytest.approx(fresh.solve().objective, rel=1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_no_swap_and_no_growth_touches_a_pinned_job(seed: int) -> None:
    """A pinned job of next to no worth keeps exactly its GPUs; one that is only held may lose them."""
    speeds = RandomSpeeds(seed)
    groups = small_groups(speeds, COUNTS)
    wishes = small_wishes(12, groups, speeds, seed)
    worthless = {job: wish._replace(weight=1e-9) for job, wish in wishes.items()}
    moved = 0
    for pinned in (True, False):
        for job, wish in worthless.items():
            packed = wish.offers.gpus[wish.offers.kind == PACKED]
            if not len(packed):
                continue
            draft = Draft(groups, groups.size, {}, lambda *_: 1.0, 0.0)
            draft.admit({**wishes, job: wish})
            gpus = int(packed[0])
            server = next(k for k, free in enumerate(draft.free) if free >= gpus)
            draft.hold(job, ((server, gpus),), fixed=pinned)
            for _ in range(3):
                fill(draft)
                swap(draft.copy())
                swap(draft)
            kept = job in draft.placed and draft.placed[job].shares == ((server, gpus),)
            assert kept or not pinned, job
            moved += not kept
    assert moved > 0


def test_jobs_that_come_and_go_leave_no_templates_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Size sets that never come again: their templates go to others, and the optimum is that of a fresh model."""
    monkeypatch.setattr("copter_frontends.policies.hops.formulation.SPARE_TEMPLATES", 8)
    speeds = RandomSpeeds(5)
    groups = small_groups(speeds, COUNTS)
    edited = GroupFormulation(groups, Settings())
    edited.set_free(groups.size)
    columns, keys = set(), set()
    for turn in range(60):
        wishes = {f"{turn}-{job}": wish for job, wish in small_wishes(9, groups, speeds, turn).items()}
        edited.set_wishes(wishes)
        columns |= {len(wish.offers.kind) for wish in wishes.values()}
        keys |= {wish.offers.key for wish in wishes.values()}
        if turn % 20 == 19:
            fresh = GroupFormulation(groups, Settings())
            fresh.set_free(groups.size)
            fresh.set_wishes(wishes)
            assert edited.solve().objective == pytest.approx(fresh.solve().objective, rel=1e-5)
    most = 9 + 8 + 9 * len(columns)
    assert len(keys) > most
    assert len(edited.model.templates) <= most


def test_what_is_remembered_of_ended_jobs_is_a_day() -> None:
    ratios = LatencyQueue()
    for hour in range(200):
        ratios.ended(3600.0 * hour, float(hour))
    assert len(ratios._ended) <= 25
    assert ratios.recent_ratio(3600.0 * 199, 2.0) == pytest.approx(198.5)
    with pytest.raises(SettingsError, match="at most 24"):
        ratios.recent_ratio(3600.0 * 199, 25.0)


def one_job(groups: ServerGroups, speeds: RandomSpeeds, sizes: list[int]) -> Wish:
    """A wish for some sizes."""
    job = Job("only", "any", work_samples=1e4)
    offers = OfferRules().make(
        job,
        RequirementSet.of(sizes),
        groups,
        lambda kind, gpus, nodes, servers: speeds.rate(job, kind, gpus, nodes, servers),
    )
    assert offers is not None
    return Wish(offers, 1.0)


def test_a_job_grows_on_the_server_that_it_has() -> None:
    """Into what is free there, and no further; the other server, as free, is left alone."""
    speeds = RandomSpeeds(1)
    groups = small_groups(speeds, {"a": (2, 8)})
    for beside, expected in ((0, 8), (3, 4)):
        draft = Draft(groups, groups.size - np.array([beside, 0]), {}, lambda *_: 1.0, 0.0)
        draft.admit({"only": one_job(groups, speeds, [2, 4, 8])})
        assert draft.put("only", PACKED, 2, ((0, 2),))
        fill(draft)
        assert draft.placed["only"].shares == ((0, expected),)


def test_a_dive_solves_for_what_the_draft_has_left() -> None:
    """With one GPU of sixteen left the program is that of one GPU."""
    speeds = RandomSpeeds(2)
    groups = small_groups(speeds, {"a": (2, 8)})
    draft = Draft(groups, np.array([1, 0]), {}, lambda *_: 1.0, 0.0)
    draft.admit({"only": one_job(groups, speeds, [1, 8])})
    residual = GroupFormulation(groups, Settings(), all_slots=True)
    residual.set_free(groups.size)
    assert dive(draft, residual)
    assert draft.placed["only"].gpus == 1
    wanted = residual.solve().objective
    assert wanted == pytest.approx(draft.value, rel=1e-6), "and not that of eight"
