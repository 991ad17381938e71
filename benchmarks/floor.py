"""The memory-pass floor: how fast this machine reads memory, measured in the run."""

from __future__ import annotations

import platform
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from copter.runtime.settings import available_threads

STREAM_BYTES = 1 << 28  # far above any cache that a share of a machine has
REPEATS = 7


def stream_bytes_per_s() -> float:
    """Best rate of one reduction over an array of float64 by all processors, in bytes a second."""
    threads = available_threads()
    parts = np.array_split(np.ones(STREAM_BYTES // 8), threads)
    best = np.inf
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(REPEATS):
            started = time.perf_counter()
            list(pool.map(np.max, parts))
            best = min(best, time.perf_counter() - started)
    return STREAM_BYTES / best


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "processor": processor_name(),
        "threads": available_threads(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "stream_bytes_per_s": stream_bytes_per_s(),
    }


def processor_name() -> str:
    """Name of the processor as the system gives it."""
    try:
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
