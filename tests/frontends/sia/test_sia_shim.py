"""Sia's shim step by step: from shares to whole configurations, what is kept, filled, grown (sia.md, S11 to S13)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from copter_frontends.policies.sia import SiaFormulation, SiaPolicy
from copter_frontends.policies.sia.shim import Assignment, fill, keep_previous, round_solution, upgrade
from copter_frontends.vocabulary import Cluster, Job

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Shares:
    """A solution that is given: {job: {(type, GPUs): share}}."""

    def __init__(self, formulation: SiaFormulation, shares: Mapping[str, Mapping[tuple[str, int], float]]) -> None:
        self.formulation, self.shares = formulation, shares

    def by_column(self) -> tuple[list[Hashable], Ints, Ints, Floats]:
        names, form = list(self.formulation.jobs), self.formulation
        rows = [
            (at, int(form.jobs[job].local[form.column_of[place]]), share)
            for at, job in enumerate(names)
            for place, share in self.shares.get(job, {}).items()
        ]
        owner, column, share = (np.array(each) for each in zip(*sorted(rows), strict=True))
        return list(names), owner, column, share


def policy_of(*jobs: Job, **nodes: tuple[int, int]) -> SiaPolicy:
    policy = SiaPolicy(Cluster.of(nodes))
    for job in jobs:
        policy.add_job(job)
    return policy


def placed(assignment: Assignment) -> dict[str, tuple[str, int]]:
    places = assignment.formulation.configurations
    return {job: (places[column].gpu_type, places[column].gpus) for job, column in assignment.column.items()}


def take_both(assignment: Assignment, columns: list[int]) -> bool:
    return assignment.take_all(assignment.formulation.jobs.rows_of(["a", "b"]), np.array(columns))


def test_many_columns_are_taken_together_or_not_at_all() -> None:
    form = policy_of(Job("a", "bert"), Job("b", "bert"), t4=(2, 4)).formulation
    four, eight = form.column_of["t4", 4], form.column_of["t4", 8]
    assignment = Assignment(form)
    assert not take_both(assignment, [four, eight])
    assert assignment.left.tolist() == [8]
    assert not assignment.column
    assert take_both(assignment, [four, four])
    assert assignment.left.tolist() == [0]
    assert placed(assignment) == {"a": ("t4", 4), "b": ("t4", 4)}
    assert not assignment.fits("a", form.column_of["t4", 1])
    assert assignment.give_back("a") == four
    assert assignment.left.tolist() == [4]


def test_quotas_are_taken_together_or_not_at_all() -> None:
    policy = SiaPolicy(Cluster.of({"t4": (4, 4)}), quotas={"u": 4})
    for name in ("a", "b"):
        policy.add_job(Job(name, "cifar10", tenant="u"))
    form = policy.formulation
    two, four = form.column_of["t4", 2], form.column_of["t4", 4]
    assignment = Assignment(form)
    assert not take_both(assignment, [two, four])
    assert (assignment.left.tolist(), assignment.spare) == ([16], [4.0])
    assert take_both(assignment, [two, two])
    assert (assignment.left.tolist(), assignment.spare) == ([12], [0.0])
    assert not assignment.fits("a", form.column_of["t4", 1]), "there are GPUs, but not for this tenant"


def test_whole_columns_first_then_the_larger_share_then_what_still_fits() -> None:
    policy = policy_of(*(Job(f"j{i}", "cifar10") for i in range(5)), t4=(2, 4), a100=(1, 4))
    shares = {
        "j0": {("t4", 4): 1.0},
        "j1": {("t4", 2): 0.6, ("a100", 4): 0.4},
        "j2": {("a100", 4): 0.7, ("t4", 1): 0.3},
        "j3": {("t4", 4): 0.5, ("t4", 2): 0.2},
        "j4": {("t4", 1): 1e-12},
    }
    rounded, fractional = round_solution(policy.formulation, Shares(policy.formulation, shares))  # type: ignore[arg-type]
    assert fractional == 3
    assert placed(rounded) == {"j0": ("t4", 4), "j2": ("a100", 4), "j1": ("t4", 2), "j3": ("t4", 2)}
    assert rounded.left.tolist() == [0, 0]


def test_pinned_jobs_have_what_they_are_pinned_to_whatever_their_share() -> None:
    policy = policy_of(Job("pinned", "cifar10"), Job("other", "cifar10"), t4=(2, 4))
    form = policy.formulation
    form.pin("pinned", form.column_of["t4", 2])
    shares = {"pinned": {("t4", 8): 1.0}, "other": {("t4", 8): 1.0}}
    rounded, fractional = round_solution(form, Shares(form, shares))  # type: ignore[arg-type]
    assert placed(rounded) == {"pinned": ("t4", 2)}
    assert fractional == 1, "eight GPUs do not fit beside it"
    fill(rounded)
    assert placed(rounded) == {"pinned": ("t4", 2), "other": ("t4", 4)}


def test_of_the_present_plan_what_fits_is_kept_pinned_jobs_first() -> None:
    policy = policy_of(*(Job(name, "cifar10") for name in ("a", "b", "idle", "pinned")), t4=(3, 4))
    form = policy.formulation
    for name, gpus in (("a", 4), ("b", 4), ("pinned", 4)):
        form.place(name, form.column_of["t4", gpus])
    assert placed(keep_previous(form)) == {"a": ("t4", 4), "b": ("t4", 4), "pinned": ("t4", 4)}
    form.pin("pinned", form.column_of["t4", 4])
    form.remove_gpus("t4", 4)
    assert placed(keep_previous(form)) == {"pinned": ("t4", 4), "a": ("t4", 4)}
    form.remove_gpus("t4", 4)
    assert placed(keep_previous(form)) == {"pinned": ("t4", 4)}


def test_idle_jobs_are_filled_in_by_worth_per_gpu_and_running_ones_grow() -> None:
    policy = policy_of(Job("light", "cifar10"), Job("heavy", "cifar10", weight=3.0), t4=(1, 2))
    assignment = Assignment(policy.formulation)
    fill(assignment)
    assert placed(assignment) == {"heavy": ("t4", 2)}, "its best configuration"
    assert assignment.evaluate() == pytest.approx(
        policy.formulation.value("heavy", policy.formulation.column_of["t4", 2])
    )
    assignment.give_back("heavy")
    assignment.take("light", policy.formulation.column_of["t4", 1])
    fill(assignment)
    assert placed(assignment) == {"light": ("t4", 1), "heavy": ("t4", 1)}
    assignment.give_back("light")
    upgrade(assignment)
    assert placed(assignment) == {"heavy": ("t4", 2)}


def test_what_was_refused_is_not_offered_again() -> None:
    policy = policy_of(Job("a", "cifar10"), t4=(1, 4))
    assignment = Assignment(policy.formulation)
    sizes = []
    for _ in range(3):
        fill(assignment)
        sizes.append(placed(assignment)["a"][1])
        assignment.refuse("a")
    assert sizes == [4, 2, 1]
    fill(assignment)
    assert not assignment.column
    assert assignment.left.tolist() == [4]


def test_what_no_node_has_room_for_is_offered_to_no_other_job() -> None:
    """Whole nodes that one job was refused would be refused to the next one too, and so would larger sets."""
    jobs = [Job(name, "bert", min_gpus=4, max_gpus=8) for name in ("a", "b", "c")]
    form = policy_of(*jobs, t4=(2, 4), v100=(1, 4)).formulation
    assignment = Assignment(form)
    assignment.take("a", form.column_of["t4", 4])
    assignment.refuse("a")
    fill(assignment)
    assert list(placed(assignment).values()) == [("v100", 4)]
    assert assignment.full.tolist() == [kind == "t4" and gpus >= 4 for kind, gpus in form.sizes]
