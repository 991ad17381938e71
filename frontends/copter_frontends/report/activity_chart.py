"""The GPU activity chart: jobs over time, coloured by GPU type (thesis Figure 3.8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from copter_frontends.report.theme import Theme
from copter_frontends.simulator.activity import Span

MOST_JOBS = 160  # most jobs drawn; of more jobs, an even sample


def drawn_jobs(spans: Sequence[Span]) -> list[str]:
    """Return the jobs that the chart shows, by first start."""
    first: dict[str, float] = {}
    for span in spans:
        first[span.job] = min(span.begin_s, first.get(span.job, np.inf))
    jobs = sorted(first, key=lambda job: (first[job], job))
    at = np.unique(np.linspace(0, len(jobs) - 1, min(len(jobs), MOST_JOBS)).astype(np.int64))
    return [jobs[i] for i in at.tolist()]


def draw_activity(axes: Any, theme: Theme, spans: Sequence[Span], kinds: Sequence[str]) -> None:
    """Draw one line per job, coloured while it has GPUs."""
    row = {job: i for i, job in enumerate(drawn_jobs(spans))}
    for k, kind in enumerate(kinds):
        colour = theme.series[k % len(theme.series)]
        mine = [span for span in spans if span.gpu_type == kind and span.job in row]
        at = [row[span.job] for span in mine]
        begin, end = [span.begin_s / 3600 for span in mine], [span.end_s / 3600 for span in mine]
        axes.hlines(at, begin, end, colors=colour, linewidth=max(0.8, 150 / max(len(row), 1)), label=kind)
    axes.set_xlabel("simulated time (h)")
    axes.set_ylabel("jobs, by first start")
    axes.set_ylim(-1, max(len(row), 1))
    axes.invert_yaxis()
    axes.legend(loc="upper left", bbox_to_anchor=(0, 1.14), ncols=max(1, len(kinds)), frameon=False, fontsize=7.5)
