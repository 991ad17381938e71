"""A limit on a process's memory, so that it ends with an error instead of being killed with what others hold."""

from __future__ import annotations

import resource
from pathlib import Path

MEMINFO = Path("/proc/meminfo")
KIB = 1024


def available_bytes() -> int | None:
    """Return the memory that the machine can give away now; None where it does not tell."""
    try:
        lines = MEMINFO.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return next((int(line.split()[1]) * KIB for line in lines if line.startswith("MemAvailable:")), None)


def limit_to_available() -> None:
    """Let this process allocate no more than the machine can give away now: beyond it is a MemoryError."""
    there = available_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if there is not None and (soft == resource.RLIM_INFINITY or there < soft):
        resource.setrlimit(resource.RLIMIT_DATA, (there, hard))
