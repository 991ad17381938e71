"""Peak memory of this process alone."""

from __future__ import annotations

import resource
from pathlib import Path


def peak_rss_mb() -> float:
    """Largest resident set so far, in MB: Linux's high-water mark, as getrusage's starts at that of the parent."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return float(line.split()[1]) / 1024.0
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def fresh_peak_mb() -> float:
    """Set the high-water mark back to what is resident now, where the system lets it, and return that, in MB."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return peak_rss_mb()
    return peak_rss_mb()
