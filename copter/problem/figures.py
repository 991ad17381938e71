"""How figures are written, in one style for displays, tables, reports and pages."""

from __future__ import annotations

from math import isfinite

UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
NONE = "–"


def short(value: float, digits: int = 3) -> str:
    """Return a number of so many digits, thousands apart, without an exponent above 0.0001."""
    return f"{float(f'{value:.{digits}g}'):,.15g}"


def figure(value: float) -> str:
    """Return a number as people write it: six digits, thousands apart."""
    return short(value, 6) if abs(value) < 1e6 else f"{value:,.0f}" if abs(value) < 1e15 else f"{value:g}"


def percent(value: float | None) -> str:
    """Return a gap in percent; a dash for None, "unknown" for NaN and infinity."""
    if value is None:
        return NONE
    if not isfinite(value):
        return "unknown"
    return "0%" if value == 0 else f"{short(100 * value, 2)}%" if value >= 1e-6 else "< 0.0001%"


def seconds(value: float | None) -> str:
    """Return a duration of three digits in the unit that leaves one to three before the point; a dash for None and
    NaN.
    """
    if value is None or not isfinite(value):
        return NONE
    if value >= 1000.0:
        return f"{value:,.0f} s"
    for size, unit in UNITS:
        if float(f"{value / size:.3g}") >= 1.0:
            return f"{short(value / size)} {unit}"
    return f"{short(value / UNITS[-1][0])} µs" if value else "0 s"


def times(value: float | None) -> str:
    """Return a ratio of three digits; a dash for None and NaN."""
    return NONE if value is None or not isfinite(value) else short(value) if value < 1000 else f"{value:,.0f}"


def counted(number: int, what: str) -> str:
    """Return a number of things, in the singular for one."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
