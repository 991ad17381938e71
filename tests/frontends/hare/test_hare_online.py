"""Online arrivals: feasible, blind to the future, warm."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter_frontends.policies.hare import HareInstance, HareJob, HareScheduler, faults
from copter_frontends.policies.hare.online import OnlineHare
from copter_papers.hare.workload import TESTBED, PaperWorkload, random_instance

GPUS = {"a": 3, "b": 4}


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 8))
def test_what_is_carried_out_is_feasible(seed, count):
    instance = random_instance(count, GPUS, seed, arrival_window_s=50_000.0)
    online = OnlineHare(GPUS, max_tasks=2000)
    schedule = online.run(instance.jobs)
    assert faults(schedule) == []
    assert len(schedule.chunk) == (np.diff(schedule.chunks.first) * instance.tasks).sum()
    assert len(online.events) <= len(np.unique(instance.arrival_s))  # none where all tasks have started
    again = OnlineHare(GPUS, max_tasks=2000, on_completion=True)
    assert faults(again.run(instance.jobs)) == []
    assert len(again.events) >= len(online.events)
    bound = HareScheduler().schedule(instance).relaxation.bound
    assert schedule.objective >= bound * (1 - 1e-9)


def test_the_past_does_not_depend_on_the_future():
    """HR23: what starts before a job arrives is the same whether it will arrive or not (all in chunks of one round)."""
    jobs = [replace(job, rounds=20) for job in random_instance(12, GPUS, 7, arrival_window_s=40.0).jobs]
    last = max(range(12), key=lambda n: jobs[n].arrival_s)
    at = jobs[last].arrival_s
    assert at > 0

    def started(of):
        schedule = OnlineHare(GPUS, max_tasks=10**6).run(of)
        assert faults(schedule) == []
        names = np.array([job.id for job in schedule.instance.jobs])[schedule.task_job]
        before = schedule.start_s < at
        return sorted(zip(names[before], schedule.start_s[before].tolist(), schedule.gpu[before].tolist(), strict=True))

    with_it, without = started(jobs), started([job for k, job in enumerate(jobs) if k != last])
    assert len(with_it) > 10
    assert with_it == without


def test_events_after_the_first_are_solved_warm():
    online = OnlineHare(GPUS, max_tasks=4000)
    online.run(random_instance(20, GPUS, 3, arrival_window_s=2000.0).jobs)
    assert len(online.events) > 3
    assert not online.events[0].warm
    assert np.mean([event.warm for event in online.events[1:]]) >= 0.5


def test_arrivals_close_together_are_one_event():
    jobs = random_instance(20, GPUS, 3, arrival_window_s=2000.0).jobs
    every, few = OnlineHare(GPUS, max_tasks=2000), OnlineHare(GPUS, max_tasks=2000, event_s=500.0)
    assert faults(every.run(jobs)) == []
    assert faults(few.run(jobs)) == []
    assert len(few.events) < len(every.events)


def test_the_rest_of_a_round_that_has_begun_is_planned_again():
    """Three tasks a round on one GPU: one has started when a heavy job comes, which goes before the other two."""
    slow = HareJob("slow", 1, 3, {"g": 10.0})
    heavy = HareJob("heavy", 1, 1, {"g": 1.0}, weight=1000.0, arrival_s=5.0)
    schedule = OnlineHare({"g": 1}).run([slow, heavy])
    assert faults(schedule) == []
    assert schedule.completion_s.tolist() == pytest.approx([31.0, 11.0])


def test_edits_of_every_event_are_counted():
    online = OnlineHare(GPUS, max_tasks=4000)
    online.run(random_instance(20, GPUS, 3, arrival_window_s=2000.0).jobs)
    assert all(event.edits.requests <= event.jobs for event in online.events)
    assert online.events[0].edits.added == online.events[0].jobs
    assert "requests added" in str(online.events[1].edits)


def test_plans_of_the_work_that_is_left_are_worth_more_than_knowing_arrivals():
    """Why Hare online beats one plan that knows all jobs: with new plans and known arrivals it is better still."""
    once, online, known = [], [], []
    for seed in (0, 2):
        instance = HareInstance.of(PaperWorkload(40, median_min=2.0).make(seed), TESTBED)
        once.append(HareScheduler(max_tasks=50_000).schedule(instance).schedule.objective)
        for found, knows in ((online, False), (known, True)):
            schedule = OnlineHare(TESTBED, max_tasks=50_000, event_s=30.0, known=knows).run(instance.jobs)
            assert faults(schedule) == []
            found.append(schedule.objective)
    assert sum(known) < sum(online) < sum(once)
