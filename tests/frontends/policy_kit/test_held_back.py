"""Ctrl-C while many jobs are added, removed or pinned in one call: the call has happened, or it has not."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from policy_state import policy_state

from copter_frontends.policies.chronus import ChronusPolicy
from copter_frontends.policies.hadar import HadarPolicy
from copter_frontends.policies.hare.task_policy import HareTaskPolicy
from copter_frontends.policies.hops import HopsPolicy
from copter_frontends.policies.sia import SiaPolicy
from copter_frontends.policy_kit import HeldBack
from copter_frontends.vocabulary import Allocation, CapacityInUseError, Cluster, Job

POLICIES: dict[str, Callable[[Cluster], Any]] = {
    "sia": SiaPolicy,
    "hadar": HadarPolicy,
    "hops": HopsPolicy,
    "chronus": ChronusPolicy,
    "hare": HareTaskPolicy,
}
MOST_LINES, STRIDE = 10_000, 3


def jobs(name: str, first: int, count: int) -> list[Job]:
    application, work = ("resnet50", 1e7) if name == "hare" else ("cifar10", 1e9)
    return [Job(f"j{n}", application, float(n), work, 2, min_gpus=2, max_gpus=2) for n in range(first, first + count)]


def made(name: str) -> Any:
    policy = POLICIES[name](Cluster.of({"t4": (3, 4)}))
    policy.add_jobs(jobs(name, 0, 5))
    policy.plan(0.0)
    return policy


def pressed(call: Callable[[], object], at: int) -> bool:
    """Press Ctrl-C at the line number `at` of copter's that a call runs; returns whether it has that many."""
    seen = 0

    def tracer(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal seen
        if "copter_frontends" not in frame.f_code.co_filename:
            return None
        if event == "line":
            seen += 1
            if seen == at:
                signal.raise_signal(signal.SIGINT)
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return seen >= at


def edits(name: str) -> dict[str, Callable[[Any], object]]:
    return {
        "remove": lambda policy: policy.remove_jobs(["j1", "j0", "j3"]),
        "add": lambda policy: policy.add_jobs(jobs(name, 5, 3)),
    }


@pytest.mark.parametrize("edit", ["remove", "add"])
@pytest.mark.parametrize("name", ["sia", "hadar", "hops"])
def test_an_edit_of_many_jobs_is_whole_wherever_ctrl_c_comes(name: str, edit: str) -> None:
    call = edits(name)[edit]
    untouched, done = made(name), made(name)
    call(done)
    states = (policy_state(untouched), policy_state(done))
    ended = False
    for at in range(1, MOST_LINES, STRIDE):
        policy = made(name)
        more = pressed(lambda policy=policy: call(policy), at)  # type: ignore[misc]
        assert policy_state(policy) in states, f"Ctrl-C at line {at}"
        if not more:
            ended = True
            break
    assert ended
    assert at > 10


@pytest.mark.parametrize("name", ["chronus", "hare"])
def test_a_removal_of_many_jobs_is_whole_after_ctrl_c_in_the_midst(name: str) -> None:
    policy, done = made(name), made(name)
    done.remove_jobs(["j1", "j0", "j3"])
    remove = policy.remove_job

    def pressing(job_id: str) -> None:
        signal.raise_signal(signal.SIGINT)
        remove(job_id)

    policy.remove_job = pressing
    with pytest.raises(KeyboardInterrupt):
        policy.remove_jobs(["j1", "j0", "j3"])
    del policy.remove_job
    assert policy_state(policy) == policy_state(done)


def pins(policy: SiaPolicy) -> dict[str, Allocation | None]:
    """Ends one pin, gives another job its GPUs for good, and a third one the last job's node."""
    held = policy.held
    return {"j0": None, "j1": held["j1"], "j2": held["j2"]}


def pinned() -> SiaPolicy:
    policy: SiaPolicy = made("sia")
    policy.pin("j0", policy.held["j0"])
    return policy


def test_pins_are_whole_wherever_ctrl_c_comes() -> None:
    untouched, done = pinned(), pinned()
    done.pin_jobs(pins(done))
    states = [policy_state(untouched), policy_state(done)]
    for at in range(1, MOST_LINES, STRIDE):
        policy = pinned()
        each = pins(policy)
        more = pressed(lambda policy=policy, each=each: policy.pin_jobs(each), at)  # type: ignore[misc]
        assert policy_state(policy) in states, f"Ctrl-C at line {at}"
        if not more:
            break
    assert not more
    assert at > 10


def test_a_wrong_pin_and_none_is_set_or_ended() -> None:
    policy, twin = pinned(), pinned()
    taken = policy.held["j1"]
    with pytest.raises(CapacityInUseError):
        policy.pin_jobs({"j0": None, "j1": taken, "j2": Allocation("t4", 4, ((taken.nodes[0][0], 4),))})
    assert policy_state(policy) == policy_state(twin)
    assert policy.plan(60.0).allocations == twin.plan(60.0).allocations


def test_ctrl_c_held_back_has_its_handlers_effect_once_after_the_block() -> None:
    seen = list[int]()
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        with HeldBack():
            with HeldBack():
                signal.raise_signal(signal.SIGINT)
                signal.raise_signal(signal.SIGINT)
            assert not seen
        assert seen == [signal.SIGINT]
        signal.raise_signal(signal.SIGINT)
        assert len(seen) == 2
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_and_handlers_that_are_not_pythons_are_left_alone() -> None:
    kinds = list[str]()

    def edit() -> None:
        with HeldBack():
            kinds.append(str(signal.getsignal(signal.SIGINT)))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=edit)
    thread.start()
    thread.join()
    assert kinds == [str(before)]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with HeldBack():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
