"""Where jobs may run under every kind of limit, against a slow twin, and what becomes of those that may nowhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from copter_frontends.policies.sia import SiaFormulation, SiaPolicy
from copter_frontends.vocabulary import Cluster, InvalidJobError, Job
from copter_frontends.vocabulary.semantics import DEFAULT

CLUSTER = {"t4": (4, 4), "a100": (2, 8), "rtx": (1, 2)}
LIMITED = replace(DEFAULT, max_nodes={"t4": 2, "a100": 1}, max_gpus=8)
JOBS = (
    Job("any", "cifar10"),
    Job("least", "cifar10", min_gpus=2),
    Job("most", "cifar10", max_gpus=4),
    Job("both", "bert", min_gpus=4, max_gpus=8),
    Job("three", "bert", min_gpus=3),
    Job("fixed", "yolov3", gpus=4),
    Job("stays", "cifar10", requested_gpus=2, preemptible=False),
    Job("stays-between", "cifar10", requested_gpus=3, preemptible=False),
    Job("stays-large", "cifar10", requested_gpus=64, preemptible=False),
    Job("tenant", "cifar10", tenant="u"),
    Job("tenant-most", "cifar10", tenant="u", max_gpus=2),
)


def may_run(form: SiaFormulation, job: Job, capacity: dict[str, int], quota: int | None) -> list[bool]:
    """Whether a job may run on every configuration, said plainly."""
    semantics, found = form.semantics, []
    row = form.goodput.job_row(job, 0.0)  # type: ignore[attr-defined]
    for at, place in enumerate(form.configurations):
        runs = float(row[at]) > 0 and place.gpus <= capacity[place.gpu_type]
        runs = runs and place.nodes <= semantics.max_nodes.get(place.gpu_type, 10**9)
        runs = runs and place.gpus <= (semantics.max_gpus or 10**9)
        runs = runs and job.min_gpus <= place.gpus <= (job.max_gpus or 10**9)
        runs = runs and (job.gpus is None or place.gpus == job.gpus)
        found.append(runs and (quota is None or job.tenant is None or place.gpus <= quota))
    return found


def asked_for(form: SiaFormulation, job: Job) -> list[bool]:
    """Of each type the least configuration with what a job asks for, or else the largest: where it stays."""
    found = [False] * len(form.configurations)
    for kind in form.types:
        mine = [at for at, place in enumerate(form.configurations) if place.gpu_type == kind and form.bases.allowed[at]]
        enough = [at for at in mine if form.configurations[at].gpus >= job.requested_gpus]
        if mine:
            found[enough[0] if enough else mine[-1]] = True
    return found


@pytest.mark.parametrize("semantics", [DEFAULT, LIMITED], ids=["all", "limited"])
def test_a_job_runs_where_all_its_limits_let_it(semantics: object) -> None:
    policy = SiaPolicy(Cluster.of(CLUSTER), semantics=semantics, quotas={"u": 4, "v": 1})  # type: ignore[arg-type]
    form = policy.formulation
    for job in JOBS:
        policy.add_job(job)
    capacity = {"t4": 16, "a100": 16, "rtx": 2}
    for step in ("all", "fewer", "more"):
        if step == "fewer":
            policy.remove_resources("t4", 12)
            policy.remove_resources("a100", 8)
            capacity = {"t4": 4, "a100": 8, "rtx": 2}
        elif step == "more":
            policy.add_resources("t4", 8)
            capacity["t4"] = 12
        for job in JOBS:
            expected = may_run(form, job, capacity, 4)
            if not job.preemptible:
                expected = [a and b for a, b in zip(expected, asked_for(form, job), strict=True)]
            assert (~np.isnan(form.jobs[job.id].base)).tolist() == expected, (job.id, step)
            columns = set(form.jobs[job.id].columns.tolist())
            assert {at for at, runs in enumerate(expected) if runs} <= columns, "there is a column for it"


def test_only_capacity_that_rules_something_in_or_out_is_news() -> None:
    form = SiaPolicy(Cluster.of(CLUSTER)).formulation
    order = [form.types.index(name) for name in ("t4", "a100", "rtx")]

    def follows(t4: int, a100: int, rtx: int) -> bool:
        counts = np.zeros(3, dtype=np.int64)
        counts[order] = (t4, a100, rtx)
        return form.bases.follow_capacity(counts)

    assert not follows(16, 16, 2)
    assert follows(12, 16, 2)
    assert not follows(12, 17, 3), "no configuration needs them"
    assert follows(12, 8, 2)
    assert follows(16, 16, 2)


def test_jobs_that_can_run_nowhere_are_said_until_they_can() -> None:
    policy = SiaPolicy(Cluster.of({"t4": (2, 4)}), quotas={"u": 8})
    policy.add_job(Job("large", "cifar10", min_gpus=8))
    policy.add_job(Job("tenant", "cifar10", min_gpus=4, tenant="u"))
    policy.add_job(Job("small", "cifar10"))
    policy.plan(0.0)
    policy.remove_resources("t4", 4)
    policy.set_quota("u", 2)
    assert policy.formulation.stranded == {"large", "tenant"}
    plan = policy.plan(60.0)
    assert set(plan.skipped) == {"large", "tenant"}
    assert set(plan.allocations) == {"small"}
    policy.add_resources("t4", 4)
    policy.set_quota("u", 2)
    assert policy.formulation.stranded == {"tenant"}
    policy.set_quota("u", 8)
    assert not policy.plan(120.0).skipped
    policy.set_quota("u", 1)
    policy.remove_job("tenant")
    assert not policy.formulation.stranded
    with pytest.raises(InvalidJobError):
        policy.add_job(Job("again", "cifar10", min_gpus=4, tenant="u"))
    assert set(policy.formulation.jobs) == {"large", "small"}


def test_a_quota_is_moved_by_what_it_changes_and_only_its_tenants_jobs_are_told() -> None:
    policy = SiaPolicy(Cluster.of({"t4": (2, 4)}), quotas={"u": 4, "v": 4})
    for name, tenant in (("a", "u"), ("b", "v")):
        policy.add_job(Job(name, "cifar10", tenant=tenant))
    form = policy.formulation
    row = {each.tenant: each for each in form.rows}
    base = form.jobs["b"].base
    for gpus in (8, 8, 3, 3, 0, 2):
        form.set_quota("u", gpus)
        assert [int(policy.model.count(row[name].key)) for name in ("u", "v")] == [gpus, 4]
        assert form.quotas == {"u": gpus, "v": 4}
        assert form.jobs["b"].base is base
        largest = form.gpus[~np.isnan(form.jobs["a"].base)].max(initial=0)
        assert largest == max((size for size in (1, 2, 4, 8) if size <= gpus), default=0)


def test_progress_and_restarts_are_taken_in_and_a_new_phase_brings_new_values() -> None:
    policy = SiaPolicy(Cluster.of({"t4": (2, 4)}))
    policy.add_job(Job("a", "cifar10"))
    form, state = policy.formulation, policy.formulation.jobs["a"]
    policy.plan(0.0)
    before, phase = state.base.copy(), state.phase
    policy.update_job("a", restarts=3)
    assert (form.jobs.numbers["restarts"][state.row], state.progress) == (3, 0.0)
    policy.update_job("a", progress=1e-6)
    assert state.phase == phase
    np.testing.assert_array_equal(state.base, before)
    policy.update_job("a", progress=0.9)
    assert (form.jobs.numbers["restarts"][state.row], state.progress) == (3, 0.9)
    assert state.phase == form.goodput.phase("cifar10", 0.9) != phase
    assert not np.allclose(state.base, before, equal_nan=True)
