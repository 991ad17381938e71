"""What clusters have: weights, classes, quotas, requested GPUs, nodes of any size (docs/papers/sia.md, S7-S9)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter.runtime.errors import SettingsError
from copter_frontends.goodput import GoodputModel
from copter_frontends.goodput.fitted_constants import GPT_STAGES
from copter_frontends.placement import PlacementError, Placer
from copter_frontends.policies.sia import SiaPolicy
from copter_frontends.policies.sia.job_book import IDLE
from copter_frontends.policies.sia.shared_rows import placement_rows
from copter_frontends.policies.sia.shim import Assignment
from copter_frontends.simulator import Simulation
from copter_frontends.vocabulary import (
    Allocation,
    CapacityInUseError,
    Cluster,
    InvalidJobError,
    Job,
    configurations_of,
)
from copter_frontends.vocabulary.semantics import SIA_ARTIFACT

HET = {"t4": (6, 4), "rtx": (3, 8), "a100": (2, 8)}
EXACT = replace(SIA_ARTIFACT, training="exact", profiling="oracle", decimals=None, clip=float("inf"))


def best_value(policy: SiaPolicy) -> float:
    """Optimum of the policy's program by enumeration: every column of every job."""
    form = policy.formulation
    jobs = list(form.jobs)
    capacity = [form.model.count(name) for name in form.types]
    spare = [form.model.count(row.key) for row in form.rows]
    values = {job: form.values(job) for job in jobs}
    best = 0.0
    for chosen in product(*([IDLE, *map(int, form.jobs[job].columns)] for job in jobs)):
        used, further, value = Counter[int](), [0.0] * len(spare), 0.0
        for job, column in zip(jobs, chosen, strict=True):
            if column == IDLE:
                continue
            used[int(form.kind[column])] += int(form.gpus[column])
            for at in form.jobs[job].rows:
                further[at] += form.rows[at].usage[column]
            value += values[job][column]
        if all(used[k] <= capacity[k] for k in used) and all(f <= s for f, s in zip(further, spare, strict=True)):
            best = max(best, value)
    return best


def held_by(policy: SiaPolicy, plan_jobs: dict[str, Allocation], tenant: str) -> int:
    jobs = policy.formulation.jobs
    return sum(held.gpus for job, held in plan_jobs.items() if jobs[job].job.tenant == tenant)


# Weights and priority classes ---------------------------------------------------------------------------------------


def test_all_values_of_a_job_are_its_weight_times_as_large() -> None:
    policy = SiaPolicy(Cluster.of(HET))
    for job in (Job("one", "bert"), Job("three", "bert", weight=3.0), Job("high", "bert", priority=1)):
        policy.add_job(job)
    for now_s in (0.0, 4000.0):
        plan = policy.plan(now_s)
        form = policy.formulation
        form.refresh_costs(now_s)
        for job in ("one", "three", "high"):  # running jobs too: the model's values are those that are worked out
            state = form.jobs[job]
            expected = [form.value(job, int(column)) for column in state.columns]
            live = np.array(expected) > 0
            assert form.values(job)[state.columns][live] == pytest.approx(np.array(expected)[live], rel=1e-9)
        assert plan.objective <= plan.bound * (1 + 1e-9)
    policy = SiaPolicy(Cluster.of(HET))
    policy.add_job(Job("one", "bert"))
    policy.add_job(Job("three", "bert", weight=3.0))
    columns = policy.formulation.jobs["one"].columns
    one, three = policy.formulation.values("one")[columns], policy.formulation.values("three")[columns]
    assert three == pytest.approx(3.0 * one)


def test_the_heavier_job_gets_what_only_one_can_have() -> None:
    for weights in ((1.0, 5.0), (5.0, 1.0)):
        policy = SiaPolicy(Cluster.of({"t4": (1, 1)}))
        for i, weight in enumerate(weights):
            policy.add_job(Job(f"j{i}", "cifar10", weight=weight))
        assert list(policy.plan(0.0).allocations) == [f"j{int(np.argmax(weights))}"]


@pytest.mark.parametrize(("tops", "highs"), [(0, 3), (0, 9), (1, 2), (2, 5), (3, 0), (5, 9)])
def test_no_job_of_a_class_waits_while_one_below_runs(tops: int, highs: int) -> None:
    policy = SiaPolicy(Cluster.of({"t4": (2, 4)}))
    for i in range(8):
        policy.add_job(Job(f"low{i}", "cifar10", max_gpus=1))
    assert len(policy.plan(0.0).allocations) == 8
    for i in range(highs):
        policy.add_job(Job(f"high{i}", "bert", 6000.0, priority=1))
    for i in range(tops):
        policy.add_job(Job(f"top{i}", "yolov3", 6000.0, priority=2, min_gpus=2))
    served = Counter(job.rstrip("0123456789") for job in policy.plan(6000.0).allocations)
    assert served["top"] == min(tops, 4)
    assert served["high"] == highs or served["low"] == 0
    assert served["top"] == tops or served["high"] == 0
    if tops == 0 and highs == 3:
        assert served["high"] == 3


def test_bad_weights_and_factors_are_refused() -> None:
    with pytest.raises(InvalidJobError, match="weight"):
        Job("j", "bert", weight=0.0)
    with pytest.raises(InvalidJobError, match="priority"):
        Job("j", "bert", priority=-1)
    with pytest.raises(SettingsError, match="priority_factor"):
        SiaPolicy(Cluster.of(HET), priority_factor=0.5)


# Quotas -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("semantics", [SIA_ARTIFACT, EXACT], ids=["learned", "exact"])
def test_a_tenant_never_has_more_than_its_quota(semantics: object) -> None:
    quotas = {"vision": 6, "speech": 20}
    policy = SiaPolicy(Cluster.of(HET), quotas=quotas, semantics=semantics)  # type: ignore[arg-type]
    jobs = [Job(f"j{i}", "cifar10", tenant=("vision", "speech", None)[i % 3], work_samples=3e7) for i in range(12)]
    run = Simulation(
        Cluster.of(HET),
        jobs,
        policy,
        GoodputModel(configurations_of(Cluster.of(HET))),
        semantics=semantics,  # type: ignore[arg-type]
    )
    most = Counter[str]()
    for _ in range(9):
        run.step()
        for tenant in quotas:
            used = held_by(policy, policy.held, tenant)
            assert used <= quotas[tenant]
            most[tenant] = max(most[tenant], used)
    assert most["vision"] == 6  # four jobs could use more


JOBS = st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(1, 3)), min_size=1, max_size=4)


@given(JOBS, st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_plans_under_quotas_are_between_nothing_and_the_optimum(jobs: list[tuple[str | None, int]], quota: int) -> None:
    quotas = {"a": quota, "b": 2}
    policy = SiaPolicy(Cluster.of({"t4": (1, 3), "a100": (1, 2)}), quotas=quotas)
    for i, (tenant, least) in enumerate(jobs):
        job = Job(f"j{i}", "bert", tenant=tenant, min_gpus=least)
        if tenant is not None and least > quotas[tenant]:
            with pytest.raises(InvalidJobError, match="fits nowhere"):
                policy.add_job(job)
        else:
            policy.add_job(job)
    plan = policy.plan(0.0)
    best = best_value(policy) if plan.allocations else 0.0
    # values are those of the round: a plan's jobs have since been given their place
    assert plan.bound >= plan.objective - 1e-9
    assert held_by(policy, dict(plan.allocations), "a") <= quota
    assert held_by(policy, dict(plan.allocations), "b") <= 2
    if plan.allocations:
        assert plan.objective <= best * (1 + 1e-6) + 1e-6
        assert plan.objective >= 0.75 * best


def test_a_quota_changes_and_what_is_pinned_keeps_it() -> None:
    policy = SiaPolicy(Cluster.of(HET), quotas={"vision": 8})
    policy.add_job(Job("j", "cifar10", tenant="vision"))
    first = policy.plan(0.0).allocations["j"]
    assert first.gpus == 8
    policy.set_quota("vision", 2)
    assert policy.plan(6000.0).allocations["j"].gpus <= 2
    policy.set_quota("vision", 16)
    held = policy.plan(60_000.0).allocations["j"]
    assert 8 <= held.gpus <= 16
    policy.pin("j", held)
    with pytest.raises(CapacityInUseError, match="pinned jobs have"):
        policy.set_quota("vision", 1)
    with pytest.raises(SettingsError, match="no quota"):
        policy.set_quota("speech", 1)
    with pytest.raises(SettingsError, match="whole number"):
        policy.set_quota("vision", -1)
    assert policy.plan(60_060.0).allocations["j"] == held


def test_what_no_quota_allows_is_refused() -> None:
    policy = SiaPolicy(Cluster.of(HET), quotas={"vision": 3})
    with pytest.raises(InvalidJobError, match="fits nowhere"):
        policy.add_job(Job("j", "cifar10", tenant="vision", min_gpus=4))
    policy.add_job(Job("r", "cifar10", tenant="vision", reservation=("a100", 2)))
    with pytest.raises(InvalidJobError, match="2 of tenant 'vision'"):
        policy.add_job(Job("s", "cifar10", tenant="vision", reservation=("a100", 2)))
    with pytest.raises(SettingsError, match="quota of tenant"):
        SiaPolicy(Cluster.of(HET), quotas={"vision": 1.5})  # type: ignore[dict-item]


# Requested GPUs, least GPUs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("asked", "given_"), [(1, 1), (3, 4), (8, 8), (12, 16)])
def test_a_job_that_may_not_be_preempted_gets_what_it_asks_for_at_once(asked: int, given_: int) -> None:
    crowd = [Job(f"c{i}", "cifar10") for i in range(40)]
    policy = SiaPolicy(Cluster.of({"a100": (3, 8)}))
    for job in crowd:
        policy.add_job(job)
    policy.plan(0.0)
    policy.add_job(Job("kept", "cifar10", 600.0, requested_gpus=asked, preemptible=False))
    held = policy.plan(600.0).allocations["kept"]
    assert held.gpus == given_
    for now_s in (660.0, 720.0, 5000.0):
        assert policy.plan(now_s).allocations["kept"] == held


@pytest.mark.parametrize("least", [1, 2, 3, 5, 9])
def test_any_least_number_of_gpus_runs_under_the_artifacts_semantics(least: int) -> None:
    there = Cluster.of(HET)
    run = Simulation(
        there,
        [Job("j", "cifar10", min_gpus=least, work_samples=4e7)],
        SiaPolicy(there, semantics=SIA_ARTIFACT),
        GoodputModel(configurations_of(there)),
        semantics=SIA_ARTIFACT,
    )
    assert not run.skipped
    sizes = []
    for _ in range(12):
        run.step()
        if "j" in run._occupancy.allocations:
            sizes.append(run._occupancy.allocations["j"].gpus)
    per_type = [min(c.gpus for c in configurations_of(there) if c.gpu_type == k and c.gpus >= least) for k in HET]
    assert sizes[0] in per_type
    assert min(sizes) >= least


def test_hybrid_jobs_run_and_grow_under_the_artifacts_semantics() -> None:
    there = Cluster.of(HET)
    policy = SiaPolicy(there, semantics=SIA_ARTIFACT)
    jobs = [Job("g", "gpt", work_samples=4000.0), Job("c", "cifar10")]
    run = Simulation(there, jobs, policy, GoodputModel(configurations_of(there)), semantics=SIA_ARTIFACT)
    had: list[tuple[str, int]] = []
    for _ in range(400):
        run.step()
        held = run._occupancy.allocations.get("g")
        if held is not None:
            assert held.gpus % GPT_STAGES[held.gpu_type] == 0
            most = max((gpus for _, gpus in had), default=0)
            assert held.gpus <= max(2 * most, GPT_STAGES[held.gpu_type])
            had.append((held.gpu_type, held.gpus))
        if run.finished:
            break
    assert run.finished
    assert not run.skipped
    assert max(gpus for _, gpus in had) > min(GPT_STAGES.values())


# Nodes of any size --------------------------------------------------------------------------------------------------


def rows_hold(per_node: int, nodes: int, sizes: list[int]) -> bool:
    there = Cluster.of({"t4": (nodes, per_node)})
    places = configurations_of(there)
    column = {place.gpus: at for at, place in enumerate(places)}
    rows = placement_rows(places, {"t4": nodes * per_node}, {"t4": per_node})
    within = sum(sizes) <= nodes * per_node
    return within and all(sum(row.usage[column[size]] for size in sizes) <= row.limit for row in rows)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_the_rows_hold_if_and_only_if_there_are_nodes_for_all(data: st.DataObject) -> None:
    per_node, nodes = data.draw(st.integers(1, 16)), data.draw(st.integers(1, 4))
    there = Cluster.of({"t4": (nodes, per_node)})
    sizes = data.draw(st.lists(st.sampled_from([c.gpus for c in configurations_of(there)]), max_size=12))
    wanted = {f"j{i}": ("t4", size) for i, size in enumerate(sizes)}
    try:
        placed, _ = Placer(there).place(wanted, {})
    except PlacementError:
        assert not rows_hold(per_node, nodes, sizes)
        return
    assert rows_hold(per_node, nodes, sizes)
    assert {job: held.gpus for job, held in placed.items()} == {job: gpus for job, (_, gpus) in wanted.items()}


def test_powers_of_two_need_no_further_rows_and_others_one_a_hole() -> None:
    counts = {}
    for per_node in range(1, 17):
        there = Cluster.of({"t4": (2, per_node)})
        counts[per_node] = len(placement_rows(configurations_of(there), {"t4": 2 * per_node}, {"t4": per_node}))
    assert counts == {size: size.bit_count() - 1 for size in range(1, 17)}


def test_jobs_that_odd_nodes_cannot_hold_are_not_hoped_for() -> None:
    policy = SiaPolicy(Cluster.of({"t4": (2, 6)}))
    for i in range(3):
        policy.add_job(Job(f"j{i}", "cifar10", gpus=4, batch_size=1024))
    plan = policy.plan(0.0)
    assert len(plan.allocations) == 2
    assert plan.gap < 1e-6  # the bound knows that two is all there is
    policy.add_resources("t4", 6)
    assert len(policy.plan(60.0).allocations) == 3
    policy.remove_resources("t4", 6)
    plan = policy.plan(120.0)
    assert len(plan.allocations) == 2
    assert plan.gap < 0.05


@given(st.lists(st.integers(1, 6), min_size=1, max_size=12), st.sampled_from([3, 5, 6, 7, 12]))
@settings(max_examples=40, deadline=None)
def test_every_plan_on_odd_nodes_is_placed_as_it_was_hoped(least: list[int], per_node: int) -> None:
    policy = SiaPolicy(Cluster.of({"t4": (3, per_node)}))
    for i, gpus in enumerate(least):
        if gpus <= 3 * per_node:
            policy.add_job(Job(f"j{i}", "cifar10", min_gpus=gpus))
    with patch.object(Assignment, "refuse", side_effect=AssertionError("the plan has a job that no node has room for")):
        plan = policy.plan(0.0)
    used = Counter[str]()
    for held in plan.allocations.values():
        for node, gpus in held.nodes:
            used[node] += gpus
    assert all(count <= per_node for count in used.values())


@pytest.mark.parametrize("growth", [1, 2])
@pytest.mark.parametrize("semantics", [SIA_ARTIFACT, EXACT], ids=["learned", "exact"])
def test_no_growth_limit_keeps_a_job_from_what_it_is_owed(growth: int, semantics: object) -> None:
    limited = replace(semantics, growth=growth)  # type: ignore[type-var]
    there = Cluster.of(HET)
    jobs = [
        Job("least", "bert", min_gpus=3),
        Job("asked", "cifar10", requested_gpus=12, preemptible=False),
        Job("kept", "cifar10", reservation=("a100", 8)),
    ]
    model = GoodputModel(configurations_of(there))
    run = Simulation(there, jobs, SiaPolicy(there, semantics=limited), model, semantics=limited)
    assert not run.skipped
    for _ in range(8):
        run.step()
        held = run._occupancy.allocations
        assert "least" not in held or held["least"].gpus >= 3
        if len(run.records) > 2:
            assert "asked" not in run._active or held["asked"].gpus in (12, 16)
            assert "kept" not in run._active or (held["kept"].gpu_type, held["kept"].gpus) == ("a100", 8)
