"""Checks that an array fits into memory before it is allocated."""

from __future__ import annotations

import os

SHARE = 0.5  # share of the free memory that one array may take


def memory_bytes() -> float:
    """Return the physical memory in bytes; infinite if unknown."""
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return float("inf")
    return float(os.sysconf("SC_PHYS_PAGES")) * float(os.sysconf("SC_PAGE_SIZE"))


def require_room(what: str, entries: float, entry_bytes: int) -> None:
    """Raise MemoryError for an array larger than half of the memory."""
    needed, there = entries * entry_bytes, memory_bytes()
    if needed > SHARE * there:
        raise MemoryError(f"{what} would take {needed / 2**30:.1f} GiB of {there / 2**30:.1f} GiB of memory")
