"""What every child process of HiGHS does: it ends with its parent, and leaves the machine its memory."""

from __future__ import annotations

import os
import time
from importlib import import_module

from copter.runtime.memory import memory_bytes

LOOK_S = 1.0  # seconds between two checks whether the parent still runs


def end_with_parent(parent: int) -> None:
    """End this process once its parent has ended, even during a search."""
    while os.getppid() == parent:
        time.sleep(LOOK_S)
    os._exit(0)


def limit_memory() -> None:
    """Limit the address space to the machine's memory and disable core files, if the system supports it."""
    try:
        resource = import_module("resource")
    except ImportError:  # this system cannot limit memory
        return
    memory = memory_bytes()
    if memory < float("inf"):
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = int(memory) if hard == resource.RLIM_INFINITY else min(int(memory), hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
