"""Means over workloads with the least and the most, as the tables print them."""

from __future__ import annotations

from collections.abc import Sequence


def mean_and_range(values: Sequence[float]) -> str:
    """Mean of a figure, and its least and most where several workloads have it."""
    text = f"{sum(values) / len(values):.4g}"
    return text if len(values) == 1 else f"{text} ({min(values):.3g} to {max(values):.3g})"


def ratio_and_range(values: Sequence[float], base: Sequence[float]) -> str:
    """Ratio of two means, and the least and the most of the workloads' own ratios where there are several."""
    text = f"{sum(values) / sum(base):.2f}"
    each = [value / other for value, other in zip(values, base, strict=True)]
    return text if len(values) == 1 else f"{text} ({min(each):.2f} to {max(each):.2f})"
