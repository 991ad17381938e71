"""Priorities of processes in the operating system: responses run before plans."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from contextlib import suppress

ATTRIBUTES = struct.Struct("<IIQiIQQQ")  # Linux's struct sched_attr: size, policy, flags, niceness, -, slice, -, -
CALLS = {"x86_64": 314, "aarch64": 274, "riscv64": 274}  # numbers of sched_setattr
NORMAL, BATCH = 0, 3  # Linux's scheduling policies
SHORT_NS = 100_000  # shortest time slice that Linux grants, in nanoseconds
NICENESS = 10  # niceness of a scheduler's process


def short_turns() -> bool:
    """Request short, early time slices for this thread and the threads it starts; returns whether they were granted.

    The share of the processors stays the same. Linux (since 6.12) runs threads with shorter slices before those with
    longer ones; otherwise a thread that wakes up waits until another's slice of some milliseconds is over.
    """
    return _ask(NORMAL, os.getpriority(os.PRIO_PROCESS, 0), SHORT_NS)


def behind_others() -> None:
    """Let this process run after others, at higher niceness and with ordinary slices."""
    with suppress(OSError):
        niceness = os.nice(NICENESS)
        _ask(BATCH, niceness, 0)


def _ask(policy: int, niceness: int, slice_ns: int) -> bool:
    call = CALLS.get(platform.machine())
    if call is None or platform.system() != "Linux" or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False  # idle or real-time priority was chosen by the user and is kept
    asked = ATTRIBUTES.pack(ATTRIBUTES.size, policy, 0, niceness, 0, slice_ns, 0, 0)
    done: int = ctypes.CDLL(None, use_errno=True).syscall(call, 0, asked, 0)
    return done == 0
