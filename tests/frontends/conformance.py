"""The conformance suite: what every scheduling policy keeps, papers' and baselines' alike.

Use it by subclassing::

    class TestMyPolicy(PolicyConformance):
        def make(self, cluster): return MyPolicy(cluster)

Override the class attributes where a policy needs it; what a policy holds is compared by :func:`.policy_state`.
"""

from __future__ import annotations

import copy
import random
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from math import inf, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_checks import HasLp, check_lists, check_plan, optimum
from policy_state import policy_state

from copter.runtime.errors import InvalidDataError
from copter_frontends.goodput.applications import APPLICATIONS
from copter_frontends.goodput.hints import TrainingHints
from copter_frontends.vocabulary import (
    Allocation,
    CapacityInUseError,
    Cluster,
    DuplicateJobError,
    FrontendError,
    InvalidClusterError,
    InvalidJobError,
    Job,
    Node,
    Plan,
    SchedulingPolicy,
    UnknownGpuTypeError,
    UnknownJobError,
)

CLUSTER = {"t4": (3, 4), "a100": (2, 8)}


def hints_of(cluster: Cluster) -> TrainingHints:
    """What a job might tell of itself: one model for every type."""
    seen = APPLICATIONS["bert"].gpus["t4"].parameters
    return TrainingHints(dict.fromkeys(cluster.types, seen), dict.fromkeys(cluster.types, 2), 1000.0)


class PolicyConformance(ABC):
    """Tests of one policy; subclass it and give :meth:`make`."""

    applications: Sequence[str] = ("cifar10", "bert", "deepspeech2", "yolov3", "imagenet")
    examples = 15
    # Whether a policy edited before its first plan must reach the objective of one rebuilt, and how closely.
    objective_comparable = True
    objective_tolerance = 1e-9
    bound_comparable = False  # whether the bound is an LP's optimum, and so the same however the LP came about
    # Whether capacity that comes and goes leaves the objective's scale as it was (not so where values are normalised by
    # the worst configuration, and the configurations of capacity that is gone are kept).
    capacity_restores_objective = True
    # Whether it leaves the LP as it was (not so where configurations that grown capacity brought stay).
    capacity_restores_program = True
    # Whether the policy solves one LP of the engine's a round, kept from round to round.
    keeps_lp = False
    # Whether its LP is brought up to date by every plan (not so where a plan that needs none leaves the last one).
    edits_lp_each_plan = True
    # Whether the policy looks up a job's application.
    knows_applications = True
    # Whether a job larger than the cluster is refused (adaptive policies shrink it instead).
    refuses_large_jobs = True

    @abstractmethod
    def make(self, cluster: Cluster) -> SchedulingPolicy:
        """A fresh policy for a cluster."""

    def state(self, policy: SchedulingPolicy) -> Hashable:
        """Something that is equal if and only if two policies hold the same."""
        return policy_state(policy)

    # Helpers

    def cluster(self) -> Cluster:
        return Cluster.of(CLUSTER)

    def job(self, i: int, rng: random.Random) -> Job:
        return Job(
            f"job-{i}",
            rng.choice(list(self.applications)),
            submit_s=60.0 * i,
            requested_gpus=rng.choice([1, 1, 2, 3, 4, 8, 12]),
        )

    def plan(self, policy: SchedulingPolicy, now_s: float = 0.0) -> Plan:
        return policy.plan(now_s, 60.0)

    def with_jobs(self, count: int, seed: int = 0) -> SchedulingPolicy:
        policy, rng = self.make(self.cluster()), random.Random(seed)
        for i in range(count):
            policy.add_job(self.job(i, rng))
        return policy

    # The protocol

    def test_it_is_a_scheduling_policy_with_a_round_length(self) -> None:
        policy = self.make(self.cluster())
        assert isinstance(policy, SchedulingPolicy)
        assert policy.round_s > 0

    def test_no_jobs_gives_an_empty_plan(self) -> None:
        plan = self.plan(self.make(self.cluster()))
        assert (dict(plan.allocations), plan.start, plan.stop, plan.move) == ({}, (), (), ())

    def test_one_job_alone_runs(self) -> None:
        policy = self.with_jobs(1)
        plan = self.plan(policy)
        assert list(plan.allocations) == ["job-0"]
        assert plan.start == ("job-0",)

    def test_unknown_ids_raise(self) -> None:
        policy = self.with_jobs(1)
        calls = [
            lambda: policy.remove_job("nobody"),
            lambda: policy.update_job("nobody", progress=0.5),
            lambda: policy.pin("nobody", None),
            lambda: policy.pin("nobody", Allocation("t4", 1, (("t4-0", 1),))),
        ]
        for call in calls:
            with pytest.raises(UnknownJobError, match="nobody"):
                call()
        assert list(self.plan(policy).allocations) == ["job-0"]

    def test_an_unknown_fact_is_refused_by_name(self) -> None:
        policy = self.with_jobs(1)
        with pytest.raises(TypeError, match="lunch"):
            policy.update_job("job-0", lunch=True)
        assert list(self.plan(policy).allocations) == ["job-0"]

    def test_impossible_facts_are_refused_and_none_of_them_is_taken_in(self) -> None:
        policy = self.with_jobs(1)
        wrong: list[dict[str, object]] = [
            {"restarts": 3, "progress": float("nan")},
            {"restarts": 3, "progress": 1.5},
            {"progress": 0.5, "restarts": -1},
            {"progress": 0.5, "hints": 3},
        ]
        before = self.state(policy)
        for facts in wrong:
            with pytest.raises(InvalidDataError, match="job-0"):
                policy.update_job("job-0", **facts)
        assert self.state(policy) == before
        assert list(self.plan(policy).allocations) == ["job-0"]

    def test_a_removed_id_is_unknown_and_can_come_again(self) -> None:
        policy, rng = self.with_jobs(1), random.Random(1)
        policy.remove_job("job-0")
        with pytest.raises(UnknownJobError):
            policy.remove_job("job-0")
        policy.add_job(self.job(0, rng))
        assert list(self.plan(policy).allocations) == ["job-0"]

    def test_duplicate_ids_raise_and_change_nothing(self) -> None:
        policy, twin = self.with_jobs(3), self.with_jobs(3)
        with pytest.raises(DuplicateJobError, match="job-1"):
            policy.add_job(self.job(1, random.Random(9)))
        assert self.plan(policy).allocations == self.plan(twin).allocations

    def test_unknown_gpu_types_raise(self) -> None:
        policy = self.make(self.cluster())
        with pytest.raises(UnknownGpuTypeError, match="h900"):
            policy.add_resources("h900", 8)
        with pytest.raises(UnknownGpuTypeError, match="h900"):
            policy.remove_resources("h900", 8)

    def test_a_job_that_fits_nowhere_is_refused(self) -> None:
        policy = self.make(self.cluster())
        with pytest.raises(InvalidJobError, match="huge"):
            policy.add_job(Job("huge", self.applications[0], requested_gpus=1000, min_gpus=1000))
        if self.refuses_large_jobs:
            with pytest.raises(InvalidJobError, match="large"):
                policy.add_job(Job("large", self.applications[0], requested_gpus=1000))
        assert not self.plan(policy).allocations

    def test_a_cluster_without_gpus_is_refused(self) -> None:
        with pytest.raises(InvalidClusterError, match="no GPUs"):
            self.make(_without_nodes(self.cluster()))

    def test_impossible_times_are_refused_and_nothing_is_planned(self) -> None:
        policy, twin = self.with_jobs(2), self.with_jobs(2)
        before = self.state(policy)
        for now_s, deadline_s, name in ((nan, 60.0, "now_s"), (inf, 60.0, "now_s"), (0.0, 0.0, "deadline_s")):
            with pytest.raises(InvalidDataError, match=f"{name} is"):
                policy.plan(now_s, deadline_s)
        with pytest.raises(InvalidDataError, match="deadline_s is nan"):
            policy.plan(0.0, nan)
        assert self.state(policy) == before
        _same(self.plan(policy), self.plan(twin))

    def test_an_application_that_no_model_is_of_is_named(self) -> None:
        if not self.knows_applications:
            pytest.skip("the policy does not ask what a job runs")
        policy = self.with_jobs(1)
        before = self.state(policy)
        with pytest.raises(FrontendError, match="nosuchmodel"):
            policy.add_job(Job("odd", "nosuchmodel"))
        assert self.state(policy) == before

    def test_it_needs_no_data_from_elsewhere(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COPTER_DATA", "/nowhere")
        assert list(self.plan(self.with_jobs(1)).allocations) == ["job-0"]

    def test_an_interrupted_plan_can_be_made_again(self) -> None:
        policy, twin = self.with_jobs(6), self.with_jobs(6)
        observers = getattr(policy, "observers", None)
        if observers is None or not getattr(policy, "lp_each_round", True):
            pytest.skip("nothing can be called within a plan of this policy, or not within every one")
        self.plan(policy)
        self.plan(twin)

        def interrupt() -> None:
            raise KeyboardInterrupt

        observers.append(interrupt)
        with pytest.raises(KeyboardInterrupt):
            self.plan(policy, 3600.0)
        observers.clear()
        _same(self.plan(policy, 3600.0), self.plan(twin, 3600.0))

    # Edits

    def test_arrive_then_leave_restores_the_model(self) -> None:
        policy, twin = self.with_jobs(6), self.with_jobs(6)
        rng = random.Random(3)
        for i in range(10, 14):
            policy.add_job(self.job(i, rng))
        assert self.state(policy) != self.state(twin)
        for i in (12, 10, 13, 11):
            policy.remove_job(f"job-{i}")
        assert self.state(policy) == self.state(twin)
        _same(self.plan(policy), self.plan(twin))
        assert self.state(policy) == self.state(twin), "programs that are edited within a plan too"

    def test_add_then_remove_capacity_restores_the_model(self) -> None:
        policy, twin = self.with_jobs(6), self.with_jobs(6)
        policy.add_resources("t4", 8, ["extra-0", "extra-1"])
        assert self.state(policy) != self.state(twin)
        policy.remove_resources("t4", 8, ["extra-0", "extra-1"])
        program = self.capacity_restores_program
        assert policy_state(policy, program) == policy_state(twin, program)
        one, two = self.plan(policy), self.plan(twin)
        assert dict(one.allocations) == dict(two.allocations)
        if self.capacity_restores_objective:
            assert one.objective == pytest.approx(two.objective, rel=self.objective_tolerance)

    def test_added_nodes_are_used_and_removed_ones_are_not(self) -> None:
        policy = self.with_jobs(0)
        rng = random.Random(4)
        for i in range(40):
            policy.add_job(Job(f"job-{i}", rng.choice(list(self.applications)), requested_gpus=1))
        policy.add_resources("t4", 4, ["extra-0"])
        wider = self.cluster()
        _add_node(wider, "extra-0", "t4", 4)
        first = self.plan(policy)
        check_plan(first, wider)
        assert sum(a.gpus for a in first.allocations.values()) <= 32
        policy.remove_resources("t4", 4, ["extra-0"])
        second = self.plan(policy, 60.0)
        check_plan(second, self.cluster())
        assert second.allocations

    def test_more_capacity_than_there_is_cannot_be_removed(self) -> None:
        policy = self.with_jobs(2)
        with pytest.raises(CapacityInUseError):
            policy.remove_resources("t4", 400)
        check_plan(self.plan(policy), self.cluster())

    def test_edits_before_the_first_plan_equal_a_rebuilt_policy(self) -> None:
        @settings(max_examples=self.examples, deadline=None)
        @given(st.integers(0, 2**32 - 1))
        def check(seed: int) -> None:
            rng = random.Random(seed)
            policy, alive, count = self.make(self.cluster()), {}, 0
            for _ in range(rng.randrange(1, 30)):
                if alive and rng.random() < 0.4:
                    gone = rng.choice(sorted(alive))
                    policy.remove_job(gone)
                    del alive[gone]
                else:
                    job, count = self.job(count, rng), count + 1
                    policy.add_job(job)
                    alive[job.id] = job
            rebuilt = self.make(self.cluster())
            for job in alive.values():
                rebuilt.add_job(job)
            edited_plan, rebuilt_plan = self.plan(policy), self.plan(rebuilt)
            check_plan(edited_plan, self.cluster())
            if self.objective_comparable:
                expected = pytest.approx(rebuilt_plan.objective, rel=self.objective_tolerance, abs=1e-9)
                assert edited_plan.objective == expected
            if self.bound_comparable:
                assert edited_plan.bound == pytest.approx(rebuilt_plan.bound, rel=1e-6)

        check()

    def test_the_warm_lp_after_edits_has_the_optimum_of_highs(self) -> None:
        """With a plan after every few edits, so that each solve starts from the last one's point and prices."""
        if not self.keeps_lp:
            pytest.skip("the policy keeps no LP of the engine's from round to round")

        @settings(max_examples=self.examples, deadline=None)
        @given(st.integers(0, 2**32 - 1))
        def check(seed: int) -> None:
            rng, cluster = random.Random(seed), self.cluster()
            policy, alive, count = self.make(cluster), [], 0
            assert isinstance(policy, HasLp)
            for round_number in range(5):
                for _ in range(rng.randrange(1, 6)):
                    job, count = self.job(count, rng), count + 1
                    policy.add_job(job)
                    alive.append(job.id)
                for job_id in rng.sample(alive, rng.randrange(len(alive))):
                    policy.remove_job(job_id)
                    alive.remove(job_id)
                for job_id in alive[:2]:
                    policy.update_job(job_id, progress=min(0.9, 0.1 * round_number))
                if round_number == 2:
                    policy.add_resources("t4", 4, ["extra-0"])
                if round_number == 4:
                    policy.remove_resources("t4", 4, ["extra-0"])
                self.plan(policy, 600.0 * round_number)
                assert policy.last_solution is not None
                expected = optimum(policy.formulation.model)
                assert policy.last_solution.objective == pytest.approx(expected, rel=1e-5, abs=1e-5)

        check()

    def test_when_all_jobs_have_gone_the_policy_is_as_new(self) -> None:
        policy, fresh = self.with_jobs(5), self.make(self.cluster())
        for now_s in (0.0, 60.0, 120.0):
            check_plan(self.plan(policy, now_s), self.cluster())
        for i in range(5):
            policy.remove_job(f"job-{i}")
        assert policy_state(policy, program=False) == policy_state(fresh, program=False)
        assert not self.plan(policy, 180.0).allocations
        assert not self.plan(fresh, 180.0).allocations
        if self.edits_lp_each_plan:
            assert self.state(policy) == self.state(fresh), "programs that are edited within a plan too"

    # Plans

    def test_capacity_holds_over_random_rounds(self) -> None:
        @settings(max_examples=self.examples, deadline=None)
        @given(st.integers(0, 2**32 - 1))
        def check(seed: int) -> None:
            rng, cluster = random.Random(seed), self.cluster()
            policy, alive, count, before = self.make(cluster), [], 0, {}
            for round_number in range(6):
                for _ in range(rng.randrange(6)):
                    job, count = self.job(count, rng), count + 1
                    policy.add_job(job)
                    alive.append(job.id)
                for job_id in rng.sample(alive, rng.randrange(len(alive) + 1) // 2):
                    policy.remove_job(job_id)
                    alive.remove(job_id)
                    before.pop(job_id, None)
                for job_id in list(before)[:2]:
                    done = min(0.9, 0.1 * round_number)
                    policy.update_job(job_id, progress=done, restarts=round_number, hints=hints_of(cluster))
                plan = self.plan(policy, 60.0 * round_number)
                check_plan(plan, cluster)
                assert set(plan.allocations) <= set(alive)
                check_lists(plan, before)
                assert plan.bound >= plan.objective - 1e-6 * (1 + abs(plan.objective))
                assert plan.gap >= -1e-9
                before = dict(plan.allocations)

        check()

    def test_the_same_calls_give_the_same_plans(self) -> None:
        first, second = self.with_jobs(12), self.with_jobs(12)
        for now_s in (0.0, 60.0, 120.0):
            one, two = self.plan(first, now_s), self.plan(second, now_s)
            _same(one, two)
            assert (one.start, one.stop, one.move) == (two.start, two.stop, two.move)

    def test_planning_twice_without_news_never_gets_worse(self) -> None:
        policy = self.with_jobs(10)
        first = self.plan(policy)
        second = self.plan(policy)
        check_plan(second, self.cluster())
        assert second.objective >= first.objective - 1e-6 * (1 + abs(first.objective))

    def test_inputs_are_not_mutated(self) -> None:
        cluster, rng = self.cluster(), random.Random(5)
        kept = copy.deepcopy(cluster)
        policy = self.make(cluster)
        nodes = ["extra-0"]
        for i in range(5):
            policy.add_job(self.job(i, rng))
        policy.add_resources("t4", 4, nodes)
        self.plan(policy)
        policy.remove_resources("a100", 8)
        self.plan(policy, 60.0)
        assert cluster == kept
        assert nodes == ["extra-0"]

    # Pins

    def test_a_pinned_job_keeps_exactly_its_allocation(self) -> None:
        policy, rng = self.with_jobs(3), random.Random(6)
        held = self.plan(policy).allocations["job-0"]
        policy.pin("job-0", held)
        for i in range(10, 40):
            policy.add_job(self.job(i, rng))
        for now_s in (60.0, 120.0):
            plan = self.plan(policy, now_s)
            check_plan(plan, self.cluster())
            assert plan.allocations["job-0"] == held
        policy.pin("job-0", None)
        check_plan(self.plan(policy, 180.0), self.cluster())

    def test_a_pin_can_name_an_allocation_that_the_job_never_had(self) -> None:
        policy = self.with_jobs(1)
        wanted = Allocation("t4", 2, (("t4-1", 2),))
        policy.pin("job-0", wanted)
        assert self.plan(policy).allocations["job-0"] == wanted

    def test_a_pin_to_nodes_that_are_not_there_is_refused(self) -> None:
        policy = self.with_jobs(2)
        before = self.state(policy)
        for node in ("t4-9", "a100-0"):  # no such node, and one of another type
            with pytest.raises(InvalidClusterError, match=node):
                policy.pin("job-0", Allocation("t4", 2, ((node, 2),)))
        with pytest.raises(InvalidJobError, match="add up"):
            policy.pin("job-0", Allocation("t4", 2, (("t4-0", 1),)))
        assert self.state(policy) == before
        check_plan(self.plan(policy), self.cluster())

    def test_two_pins_cannot_have_the_same_gpus(self) -> None:
        policy = self.with_jobs(2)
        policy.pin("job-0", Allocation("t4", 4, (("t4-1", 4),)))
        before = self.state(policy)
        with pytest.raises(CapacityInUseError, match="t4-1"):
            policy.pin("job-1", Allocation("t4", 2, (("t4-1", 2),)))
        assert self.state(policy) == before
        check_plan(self.plan(policy), self.cluster())

    def test_nodes_under_pinned_jobs_cannot_be_removed(self) -> None:
        policy = self.with_jobs(1)
        wanted = Allocation("t4", 2, (("t4-1", 2),))
        policy.pin("job-0", wanted)
        with pytest.raises(CapacityInUseError):
            policy.remove_resources("t4", 4, ["t4-1"])
        assert self.plan(policy).allocations["job-0"] == wanted

    def test_jobs_on_removed_nodes_lose_them(self) -> None:
        policy = self.with_jobs(8)
        before = self.plan(policy).allocations
        node = next(iter(before.values())).nodes[0][0]
        kind = node.rsplit("-", 1)[0]
        policy.remove_resources(kind, self.cluster().types[kind].gpus_per_node, [node])
        cluster = self.cluster()
        cluster.remove_nodes([node])
        check_plan(self.plan(policy, 60.0), cluster)

    def test_removing_a_pinned_job_frees_its_gpus(self) -> None:
        policy = self.with_jobs(1)
        policy.pin("job-0", Allocation("t4", 2, (("t4-1", 2),)))
        self.plan(policy)
        policy.remove_job("job-0")
        assert not self.plan(policy, 60.0).allocations
        policy.remove_resources("t4", 4, ["t4-1"])


def _same(one: Plan, two: Plan) -> None:
    assert dict(one.allocations) == dict(two.allocations)
    assert one.objective == two.objective


def _without_nodes(cluster: Cluster) -> Cluster:
    cluster.remove_nodes(list(cluster.nodes))
    return cluster


def _add_node(cluster: Cluster, node: str, gpu_type: str, gpus: int) -> None:
    cluster.nodes[node] = Node(node, gpu_type, gpus)
