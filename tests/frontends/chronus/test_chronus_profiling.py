"""Profiling by GPU type: two times and their extrapolation, and times that were seen, which need no profile."""

from __future__ import annotations

import pytest

from copter.runtime.errors import InvalidDataError
from copter_frontends.policies.chronus import ChronusPolicy, Profiler
from copter_frontends.policy_kit import SeenTimes, ThroughputTable
from copter_frontends.vocabulary import Cluster, Job

TWO = Cluster.of({"k80": (2, 8), "a100": (2, 8)})
BOTH = ThroughputTable({"any": {"k80": 0.5, "a100": 1.0}, "modern": {"a100": 1.0}}, {"any": 9000.0, "modern": 9000.0})


def of(name: str, model: str = "any", gpus: int = 1, batch: int = 64) -> Job:
    return Job(name, model, requested_gpus=gpus, batch_size=batch)


def profile(policy: ChronusPolicy, now_s: float, **progress: float) -> None:
    """Tell the jobs' progress, and plan."""
    for job_id, done in progress.items():
        policy.update_job(job_id, progress=done)
    policy.plan(now_s)


def where(policy: ChronusPolicy) -> dict[str, str]:
    """The type on which each job is profiled or waits for it."""
    return {job: kind for kind, each in policy.profiling.by_type.items() for job in (*each.queue, *each.running)}


def test_a_job_is_profiled_only_on_types_that_its_table_allows() -> None:
    policy = ChronusPolicy(TWO, BOTH, profiler=Profiler(nodes=1))
    for number in range(3):
        policy.add_job(of(f"job-{number}", "modern", batch=number + 1))
    assert where(policy) == {f"job-{number}": "a100" for number in range(3)}
    plan = policy.plan(0.0)
    assert {held.gpu_type for held in plan.allocations.values()} == {"a100"}


def test_each_type_is_measured_by_itself_and_jobs_like_those_seen_are_not_profiled() -> None:
    """Three jobs of one kind: the first two measure a type each, the third is scheduled at once."""
    policy = ChronusPolicy(TWO, BOTH, profiler=Profiler(nodes=1))
    policy.add_job(of("a"))
    policy.plan(0.0)
    policy.add_job(of("b"))
    assert where(policy) == {"a": "k80", "b": "a100"}
    profile(policy, 300.0, a=300.0 / 36_000.0)  # twice as slow as declared
    profile(policy, 600.0, b=300.0 / 9_000.0)  # as declared
    assert where(policy) == {}
    policy.add_job(of("c"))
    assert where(policy) == {}
    assert [mode.total_s for mode in policy.modes_of(policy.jobs["c"])] == pytest.approx([36_000.0, 9_000.0])
    policy.add_job(of("other batch", batch=65))
    policy.add_job(of("other size", gpus=2))
    assert list(where(policy)) == ["other batch", "other size"]


def test_what_was_measured_corrects_types_that_were_not() -> None:
    policy = ChronusPolicy(TWO, BOTH, profiler=Profiler(nodes=1))
    policy.add_job(of("a"))
    policy.plan(0.0)
    profile(policy, 300.0, a=300.0 / 36_000.0)
    assert [mode.total_s for mode in policy.modes_of(policy.jobs["a"])] == pytest.approx([36_000.0, 18_000.0])


def test_a_job_that_waits_is_let_go_once_a_job_like_it_was_measured() -> None:
    cluster, table = Cluster.of({"v100": (3, 8)}), ThroughputTable({"any": {"v100": 1.0}}, {"any": 9000.0})
    policy = ChronusPolicy(cluster, table, profiler=Profiler(nodes=1))
    for name in ("a", "b"):
        policy.add_job(of(name, gpus=8))
    policy.plan(0.0)
    assert policy.profiling.by_type["v100"].queue.keys() == {"b"}
    profile(policy, 300.0, a=300.0 / 9_000.0)
    assert where(policy) == {}
    assert policy.held.keys() == {"a", "b"}
    every = ChronusPolicy(cluster, table, profiler=Profiler(nodes=1, every=True))
    for name in ("a", "b"):
        every.add_job(of(name, gpus=8))
    every.plan(0.0)
    profile(every, 300.0, a=300.0 / 9_000.0)
    assert where(every) == {"b": "v100"}


def test_a_large_job_is_measured_on_two_nodes_and_one_and_its_time_follows_the_formula() -> None:
    """Iterations take 1 s on a node and 1.2 s on two; on eight they take 1.6 s, not 1.3 s as declared."""
    declared = {8: 8.0, 16: 16.0 / 1.2, 64: 64.0 / 1.3}
    table = ThroughputTable({"any": {"v100": declared}}, {"any": 640_000.0})
    policy = ChronusPolicy(Cluster.of({"v100": (8, 8)}), table, profiler=Profiler())
    policy.add_job(of("large", gpus=64))
    assert policy.plan(0.0).allocations["large"].gpus == 16
    done = 300.0 * declared[16] / 640_000.0
    policy.update_job("large", progress=done)
    assert policy.plan(300.0).allocations["large"].gpus == 8
    done += 300.0 * declared[8] / 640_000.0
    profile(policy, 600.0, large=done)
    assert where(policy) == {}
    assert policy.modes_of(policy.jobs["large"])[0].total_s == pytest.approx(640_000.0 / 64.0 * 1.6)
    assert policy.profiler is not None
    assert policy.profiler.waits_s == [0.0]
    assert policy.modes.seen.estimate(policy.jobs["large"], "v100", 32, 8) == pytest.approx(1.4 / 32)


def test_seen_times_are_means_that_follow_and_refuse_nonsense() -> None:
    seen, job = SeenTimes(), of("a")
    assert seen.seconds(job, "k80", 1) is None
    seen.note(job, "k80", 1, 2.0)
    seen.note(of("b"), "k80", 1, 4.0)
    assert seen.seconds(job, "k80", 1) == 3.0
    assert len(seen) == 1
    for _ in range(300):
        seen.note(job, "k80", 1, 10.0)
    assert seen.seconds(job, "k80", 1) == pytest.approx(10.0, rel=1e-3)
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InvalidDataError, match=r"job 'a': .* s per unit of work on 1 k80, must be finite and > 0"):
            seen.note(job, "k80", 1, wrong)
