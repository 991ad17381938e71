"""The clock by which peers are timed: the wall's, or the processor time of their process on a machine that others use.

COPTER_CLOCK=processor chooses the second; whoever starts the peer's process sets it.
"""

from __future__ import annotations

import os
import time

PROCESSOR = os.environ.get("COPTER_CLOCK") == "processor"
clock = time.process_time if PROCESSOR else time.perf_counter
STRETCH = 5.0 if PROCESSOR else 1.0
"""How many times as long as its processor time a solve may take by the wall, which is what solvers' limits go by."""
