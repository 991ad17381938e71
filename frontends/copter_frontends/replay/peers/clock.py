"""The clock for timing peers: wall time, or their process's processor time on a shared machine.

COPTER_CLOCK=processor chooses the second; whoever starts the peer's process sets it.
"""

from __future__ import annotations

import os
import time

PROCESSOR = os.environ.get("COPTER_CLOCK") == "processor"
clock = time.process_time if PROCESSOR else time.perf_counter
STRETCH = 5.0 if PROCESSOR else 1.0
"""How many times as long as its processor time a solve may take by the wall, which is what solvers' limits go by."""
