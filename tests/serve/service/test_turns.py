"""What the operating system is asked for: the service runs before its schedulers."""

from __future__ import annotations

import ctypes
import os
import platform
import re
from pathlib import Path

import pytest
from served import Served

from copter_serve.service.turns import ATTRIBUTES, BATCH, CALLS, NICENESS, SHORT_NS

RELEASE = tuple(int(part) for part in re.findall(r"\d+", platform.release())[:2])
pytestmark = pytest.mark.skipif(
    platform.system() != "Linux" or platform.machine() not in CALLS, reason="the system takes no such wish"
)


def granted(thread: int) -> tuple[int, int, int]:
    """(policy, niceness, slice in ns) of a thread."""
    told = ctypes.create_string_buffer(ATTRIBUTES.size)
    assert ctypes.CDLL(None).syscall(CALLS[platform.machine()] + 1, thread, told, ATTRIBUTES.size, 0) == 0
    _, policy, _, niceness, _, slice_ns, _, _ = ATTRIBUTES.unpack(told.raw)
    return policy, niceness, slice_ns


def threads(pid: int) -> dict[int, str]:
    """Threads of a process, by number, with their names."""
    return {int(path.name): (path / "comm").read_text().strip() for path in Path(f"/proc/{pid}/task").iterdir()}


def test_answers_go_before_plans(service: Served) -> None:
    service.make("turns")
    service.delta({"add_jobs": [{"id": "a"}]}, "turns")
    service.plan("turns", 1)
    own = os.getpriority(os.PRIO_PROCESS, 0)
    (scheduler, *_) = [
        int(pid)
        for pid in Path(f"/proc/{service.process.pid}/task/{service.process.pid}/children").read_text().split()
        if "copter_serve.service.worker" in Path(f"/proc/{pid}/cmdline").read_text()
    ]
    policy, niceness, slice_ns = granted(scheduler)
    assert niceness == min(own + NICENESS, 19)
    mine = os.sched_getscheduler(0)
    assert policy == (BATCH if mine == os.SCHED_OTHER else mine)
    if RELEASE >= (6, 12) and mine == os.SCHED_OTHER:
        answering = threads(service.process.pid)
        assert len(answering) > 1, "the disk's thread is there"
        assert {granted(thread)[1:] for thread in answering} == {(own, SHORT_NS)}
        assert slice_ns > SHORT_NS
