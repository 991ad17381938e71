"""Choice between the builds of the compiled modules, by the instruction set of this processor.

A wheel holds each module for several levels of x86-64 (as the psABI defines them: v2 has SSE4.2, v3 AVX2, v4 AVX-512):
the lowest level in its package, the others under ``copter/levels/``. A build from source is for the building machine's
level only.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from pathlib import Path

LEVELS: dict[str, frozenset[str]] = {  # flags of /proc/cpuinfo that each level adds to the one below
    "x86-64-v2": frozenset({"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"}),
    "x86-64-v3": frozenset({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}),
    "x86-64-v4": frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
}
ROOM = Path(__file__).parents[1] / "levels"
ASKED = "COPTER_LEVEL"  # environment variable: use a lower level than the processor's


def level_of(flags: Iterable[str]) -> str | None:
    """Return the highest x86-64 level whose CPU flags are all present; None if even the first level lacks some."""
    known, found = frozenset(flags), None
    for level, needed in LEVELS.items():
        if not needed <= known:
            break
        found = level
    return found


def processor_level(path: str = "/proc/cpuinfo") -> str | None:
    """Return the x86-64 level of this machine's processor; None if it is another architecture or unknown."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return None
    try:
        with open(path, encoding="utf-8", errors="replace") as lines:
            flags = next((line for line in lines if line.startswith("flags")), "")
    except OSError:
        return None
    return level_of(flags.partition(":")[2].split())


def chosen_level() -> str | None:
    """Return the processor's level, or the lower level that the environment variable COPTER_LEVEL names."""
    own, asked = processor_level(), os.environ.get(ASKED)
    order = list(LEVELS)
    if asked in LEVELS and own is not None and order.index(asked) < order.index(own):
        return asked
    return own


def with_levels(package: str, path: Iterable[str], room: Path = ROOM) -> list[str]:
    """Return the folders to search for a package's modules: the processor's level first, then the lower levels."""
    known, chosen = list(path), chosen_level()
    if chosen is None:
        return known
    below = list(LEVELS)[: list(LEVELS).index(chosen) + 1]
    inside = Path(*package.split(".")[1:])
    found = [room / level / inside for level in reversed(below)]
    return [str(folder) for folder in found if folder.is_dir()] + known
