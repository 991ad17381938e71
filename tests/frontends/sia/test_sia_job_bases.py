"""Where each job can run, and the base of its values there, as capacity, quotas and growth change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from copter_frontends.policies.sia import SiaPolicy
from copter_frontends.vocabulary import Cluster, GoodputTable, Job
from copter_frontends.vocabulary.semantics import DEFAULT


def test_bases_follow_capacity_and_quotas() -> None:
    policy = SiaPolicy(Cluster.of({"t4": (2, 4), "a100": (1, 2)}), quotas={"u": 8})
    policy.add_job(Job("a", "cifar10"))
    policy.add_job(Job("b", "cifar10", tenant="u"))
    jobs, gpus, kind = policy.formulation.jobs, policy.formulation.gpus, policy.formulation.kind
    whole = jobs["a"].base.copy()
    assert not np.isnan(whole).any()
    policy.remove_resources("t4", 4)
    assert np.isnan(jobs["a"].base).tolist() == ((kind == 0) & (gpus == 8)).tolist()
    policy.add_resources("t4", 4)
    np.testing.assert_array_equal(jobs["a"].base, whole)
    policy.set_quota("u", 2)
    assert np.isnan(jobs["b"].base).tolist() == (gpus > 2).tolist()
    np.testing.assert_array_equal(jobs["a"].base, whole)


def test_a_jobs_base_is_its_goodput_over_the_least_to_the_power_p() -> None:
    policy = SiaPolicy(Cluster.of({"t4": (2, 4), "a100": (1, 2)}))
    form = policy.formulation
    for job in (Job("any", "bert"), Job("two", "bert", min_gpus=2, max_gpus=4), Job("rigid", "bert", gpus=4)):
        policy.add_job(job)
        row = form.goodput.job_row(job, 0.0)  # type: ignore[attr-defined]
        row = np.maximum(row, 1e-300)  # no more: where it is 0 the job cannot run
        allowed = (form.gpus >= job.min_gpus) & (form.gpus <= (job.max_gpus or 99)) & (row > 1e-300)
        if job.gpus:
            allowed &= form.gpus == job.gpus
        expected = np.where(allowed, -(((job.gpus or job.min_gpus) * row / row[allowed].min()) ** -0.5), np.nan)
        np.testing.assert_allclose(form.jobs[job.id].base, expected)
        assert form.jobs[job.id].columns.tolist() == np.flatnonzero(allowed).tolist()
        assert form.jobs.numbers[form.jobs[job.id].row]["smallest"] == np.nanmin(expected)
        np.testing.assert_array_equal(form.jobs[job.id].live_base, form.jobs[job.id].base[form.jobs[job.id].columns])


def test_growth_is_a_multiple_of_the_most_so_far_or_the_smallest_or_what_is_reserved() -> None:
    grows = replace(DEFAULT, growth=2)
    policy = SiaPolicy(Cluster.of({"t4": (4, 4)}), semantics=grows)
    policy.add_job(Job("one", "cifar10"))
    policy.add_job(Job("four", "cifar10", min_gpus=4))
    policy.add_job(Job("asks", "cifar10", requested_gpus=8, preemptible=False))
    policy.add_job(Job("reserved", "cifar10", reservation=("t4", 8)))

    def largest(job: str) -> int:
        return int(policy.formulation.gpus[~np.isnan(policy.formulation.jobs[job].base)].max())

    assert [largest(job) for job in ("one", "four", "asks", "reserved")] == [1, 4, 8, 8]
    place = policy.formulation.column_of["t4", 2]
    policy.formulation.place("one", place)
    assert largest("one") == 4
    policy.formulation.place("one", policy.formulation.column_of["t4", 1])
    assert largest("one") == 4


def test_the_smallest_that_a_job_may_grow_from_is_one_that_it_can_run_on() -> None:
    policy = SiaPolicy(Cluster.of({"t4": (4, 4)}), semantics=replace(DEFAULT, growth=2))
    policy.add_job(Job("wide", "bert", work_samples=9.0, goodput=GoodputTable({("t4", 4): 1.0, ("t4", 8): 2.0})))
    runs = ~np.isnan(policy.formulation.jobs["wide"].base)
    assert policy.formulation.gpus[runs].tolist() == [4]
