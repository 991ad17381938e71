"""The allocation policy: known answers, edits against fresh models, the conformance suite."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from conformance import PolicyConformance
from hypothesis import given, settings
from hypothesis import strategies as st

from copter import Session, verify
from copter.runtime.errors import InvalidDataError, SettingsError
from copter.storage.tape import TapeReader, recorded
from copter_frontends.goodput import GoodputModel, UnknownApplicationError
from copter_frontends.vocabulary import (
    Allocation,
    Cluster,
    InvalidJobError,
    Job,
    SchedulingPolicy,
    configurations_of,
)
from copter_serve.allocation import AllocationPolicy, Rates, checked_rates, options_of
from tests.copter.consistent import require_consistent


class GoodputAllocation(AllocationPolicy):
    """The policy with rates of the goodput model, for jobs that say no more than their application."""

    def add_job(self, job: Job, rates: Rates | None = None, weight: float = 1.0) -> None:
        goodput = GoodputModel(configurations_of(self.cluster))
        if job.application not in goodput.applications:
            raise UnknownApplicationError(f"job {job.id!r}: unknown application {job.application!r}")
        table: dict[str, dict[int, float]] = {}
        for where, rate in zip(goodput.configurations, goodput.row(job.application, 0.0).tolist(), strict=True):
            table.setdefault(where.gpu_type, {})[where.gpus] = rate
        super().add_job(job, table, weight)


class TestConformance(PolicyConformance):
    """What every policy keeps."""

    refuses_large_jobs = False  # they have smaller options
    objective_comparable = False  # rounding takes jobs in the order of their slots; the LPs are compared below

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        """The policy with all configurations as options."""
        return GoodputAllocation(cluster)


def job(name: str, **fields: object) -> Job:
    return Job(name, "any", **fields)  # type: ignore[arg-type]


def two_types() -> AllocationPolicy:
    return AllocationPolicy(Cluster.of({"fast": (1, 4), "slow": (1, 4)}))


def test_the_job_that_gains_most_gets_the_fast_type() -> None:
    policy = two_types()
    policy.add_job(job("a"), {"fast": {4: 8.0}, "slow": {4: 2.0}})  # speed-ups 4 and 1
    policy.add_job(job("b"), {"fast": {4: 6.0}, "slow": {4: 3.0}})  # speed-ups 2 and 1
    plan = policy.plan(0.0)
    assert {j: a.gpu_type for j, a in plan.allocations.items()} == {"a": "fast", "b": "slow"}
    assert plan.objective == pytest.approx(0.9 * 5.0)
    assert plan.bound >= plan.objective - 1e-9


def test_weights_turn_the_answer() -> None:
    policy = two_types()
    policy.add_job(job("a"), {"fast": {4: 8.0}, "slow": {4: 2.0}})
    policy.add_job(job("b"), {"fast": {4: 6.0}, "slow": {4: 3.0}}, weight=10.0)
    assert policy.plan(0.0).allocations["b"].gpu_type == "fast"
    policy.update_job("b", weight=0.1)
    assert policy.plan(60.0).allocations["a"].gpu_type == "fast"


def test_a_small_gain_is_not_worth_a_restart() -> None:
    policy = two_types()
    policy.add_job(job("a"), {"fast": {4: 1.05}, "slow": {4: 1.0}})
    assert policy.plan(0.0).allocations["a"].gpu_type == "fast"
    policy.update_job("a", rates={"fast": {4: 1.0}, "slow": {4: 1.05}})
    assert policy.plan(60.0).allocations["a"].gpu_type == "fast"
    policy.update_job("a", rates={"fast": {4: 1.0}, "slow": {4: 2.0}})
    assert policy.plan(120.0).allocations["a"].gpu_type == "slow"


def test_a_waiting_job_takes_no_equal_ones_place() -> None:
    cluster = Cluster.of({"t4": (4, 4)})
    first, later = AllocationPolicy(cluster), AllocationPolicy(cluster)
    jobs = [job(f"{k}") for k in range(100)]
    for each in jobs[::-1]:
        first.add_job(each, {"t4": {1: 1.0, 2: 1.5}})
    held = dict(first.plan(0.0).allocations)
    for each in jobs:
        later.add_job(each, {"t4": {1: 1.0, 2: 1.5}})
    for name, allocation in held.items():
        later.pin(name, allocation)
        later.pin(name, None)
    assert dict(later.plan(60.0).allocations) == held  # a new session, told what jobs hold
    later.update_job(next(name for name in later.entries if name not in held), weight=1.2)
    assert len(later.plan(120.0).start) == 1


def test_what_is_not_preemptible_stays_until_it_cannot_run_there() -> None:
    policy = AllocationPolicy(Cluster.of({"fast": (1, 4)}))
    policy.add_job(job("stays", preemptible=False), {"fast": {4: 1.0}})
    policy.plan(0.0)
    policy.add_job(job("rich"), {"fast": {4: 1.0}}, weight=100.0)
    assert set(policy.plan(60.0).allocations) == {"stays"}
    policy.update_job("stays", rates={"fast": {2: 1.0}})
    assert set(policy.plan(120.0).allocations) == {"rich"}


def test_jobs_too_large_for_the_cluster_wait_for_it_to_grow() -> None:
    policy = AllocationPolicy(Cluster.of({"fast": (1, 4)}))
    policy.add_job(job("big"), {"fast": {8: 1.0}})
    plan = policy.plan(0.0)
    assert not plan.allocations
    assert "too few GPUs" in plan.skipped["big"]
    policy.add_resources("fast", 4)
    plan = policy.plan(60.0)
    assert plan.allocations["big"].gpus == 8
    assert not plan.skipped


def test_explanations_name_the_resources() -> None:
    policy = two_types()
    for name in ("a", "b", "c"):
        policy.add_job(job(name), {"fast": {4: 8.0}, "slow": {4: 2.0}})
    policy.plan(0.0)
    assert policy.last_solution is not None
    explanation = policy.last_solution.explain("a")
    assert {str(name) for option in explanation.options for name in option.usage} == {"fast", "slow"}


@pytest.mark.parametrize(
    ("rates", "words"),
    [
        ({"fast": {0: 1.0}}, "counts >= 1"),
        ({"fast": {1: -1.0}}, "finite"),
        ({"fast": {1: math.nan}}, "finite"),
        ({"fast": {1: 0.0}}, "no throughput above zero"),
        ({"none": {1: 1.0}}, "no throughput above zero"),
        ({}, "no throughput above zero"),
    ],
)
def test_wrong_rates_change_nothing(rates: dict[str, dict[int, float]], words: str) -> None:
    policy = two_types()
    with pytest.raises(InvalidJobError, match=words):
        policy.add_job(job("a"), rates)
    policy.add_job(job("a"), {"fast": {1: 1.0}})
    version = policy.model.version
    with pytest.raises(InvalidJobError, match=words):
        policy.update_job("a", rates=rates)
    assert policy.model.version == version


def test_wrong_weights_penalties_and_pins() -> None:
    policy = two_types()
    with pytest.raises(InvalidDataError, match="weight"):
        policy.add_job(job("a"), {"fast": {1: 1.0}}, weight=0.0)
    policy.add_job(job("a"), {"fast": {1: 1.0}})
    with pytest.raises(InvalidDataError, match="weight"):
        policy.update_job("a", weight=math.inf)
    with pytest.raises(InvalidJobError, match="none of its options"):
        policy.pin("a", Allocation("fast", 2, (("fast-0", 2),)))
    policy.pin("a", Allocation("fast", 1, (("fast-0", 1),)))
    with pytest.raises(InvalidJobError, match="pinned"):
        policy.update_job("a", rates={"slow": {1: 1.0}})
    with pytest.raises(SettingsError):
        AllocationPolicy(Cluster.of({"t4": (1, 4)}), restart_penalty=1.0)
    with pytest.raises(InvalidJobError, match="reservations"):
        policy.add_job(job("r", reservation=("fast", 1)))


def test_pins_of_any_shape_and_pins_over_what_others_keep() -> None:
    """A pin scattered over nodes, and one on the GPUs of a job that is not preemptible: the plan holds all the same."""
    policy = AllocationPolicy(Cluster.of({"t4": (3, 4)}))
    for name in ("a", "b", "c", "d"):
        policy.add_job(job(name, preemptible=name != "b"), {"t4": {1: 1.0, 3: 2.0, 4: 3.0}})
    policy.plan(0.0)
    scattered = Allocation("t4", 3, (("t4-0", 1), ("t4-1", 1), ("t4-2", 1)))
    policy.pin("a", scattered)
    theirs = policy.held["b"]
    over = Allocation("t4", 3, ((theirs.nodes[0][0], 3),))
    policy.pin("c", over)
    for now_s in (60.0, 120.0):
        plan = policy.plan(now_s)
        assert plan.allocations["a"] == scattered
        assert plan.allocations["c"] == over
        used: dict[str, int] = {}
        for allocation in plan.allocations.values():
            for node, gpus in allocation.nodes:
                used[node] = used.get(node, 0) + gpus
        assert max(used.values()) <= 4
        assert sum(used.values()) >= 10


def test_options_keep_the_jobs_range() -> None:
    table = checked_rates("a", {"t4": {1: 1.0, 2: 2.0, 4: 3.0, 8: 0.0}})
    assert set(options_of(job("a", min_gpus=2), table)) == {("t4", 2), ("t4", 4)}
    assert set(options_of(job("a", max_gpus=2), table)) == {("t4", 1), ("t4", 2)}
    assert set(options_of(job("a", gpus=4), table)) == {("t4", 4)}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 9)), min_size=1, max_size=25))
def test_edited_is_as_good_as_fresh(steps: list[tuple[int, int, int]]) -> None:
    """After any edits the model is that of a policy told of the present jobs only, with the same optimum."""
    policy = AllocationPolicy(Cluster.of({"fast": (2, 4), "slow": (2, 4)}), restart_penalty=0.0)
    present: dict[str, dict[str, dict[int, float]]] = {}
    for at, (what, which, size) in enumerate(steps):
        name = f"j{which}"
        rates = {"fast": {1: float(size), 4: 2.0 * size + 1}, "slow": {2 if size > 5 else 1: 1.0}}
        if name not in present:
            policy.add_job(job(name), rates)
            present[name] = rates
        elif what < 3:
            policy.update_job(name, rates=rates)
            present[name] = rates
        else:
            policy.remove_job(name)
            del present[name]
        if what == 5:
            policy.plan(60.0 * at)
    policy.plan(1e6)
    fresh = AllocationPolicy(Cluster.of({"fast": (2, 4), "slow": (2, 4)}), restart_penalty=0.0)
    for name, rates in present.items():
        fresh.add_job(job(name), rates)
    assert list(policy.entries) == list(present) or set(policy.entries) == set(present)
    for name in present:
        np.testing.assert_allclose(policy.model.cost(name), fresh.model.cost(name))
    assert policy.last_solution is not None
    assert policy.last_solution.objective == pytest.approx(Session(fresh.model).solve().objective, rel=1e-6, abs=1e-9)
    require_consistent(policy.model.ledger)


def test_the_gap_is_that_of_the_bound_that_prices_prove(tmp_path: Path) -> None:
    policy = AllocationPolicy(Cluster.of({"a": (1, 4)}))
    for name in ("one", "two"):
        policy.add_job(job(name), {"a": {3: 3.0}})
    with recorded(tmp_path / "t"):
        plan = policy.plan(0.0)
    assert plan.status.value == "optimal"  # a search of all choices says so
    assert plan.bound == pytest.approx(plan.objective * 4 / 3, rel=1e-6)
    assert plan.gap > 0.05
    _, checked, faults = next(verify.verify(tmp_path / "t"))
    assert faults == []
    assert "bound of a search, not proven" in checked
    proven = next(record.value()["bound"] for record in TapeReader(tmp_path / "t") if record.kind == b"PLAN")
    assert plan.bound == pytest.approx(proven)
