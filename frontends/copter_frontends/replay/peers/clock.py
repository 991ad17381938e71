"""The clock for timing peers: wall time, or their process's processor time on a shared machine.

The environment variable COPTER_CLOCK=processor, set by the starter of the peer's process, selects the second.
"""

from __future__ import annotations

import os
import time

PROCESSOR = os.environ.get("COPTER_CLOCK") == "processor"
clock = time.process_time if PROCESSOR else time.perf_counter
STRETCH = 5.0 if PROCESSOR else 1.0
"""Factor on a solve's time limit, because solvers' limits are in wall time, which may exceed processor time."""
