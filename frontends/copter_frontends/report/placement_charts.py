"""Plots of placement: a map of the servers, worth that runs, tasks that wait, time of each round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from copter_frontends.placement.servers.simulation import PlacementResult
from copter_frontends.report.charts import Chart
from copter_frontends.report.theme import Theme


def placement_charts(results: Sequence[PlacementResult]) -> list[Chart]:
    """Return the plots of some schemes; the map is the first one's."""
    return [
        Chart("map", "Servers", "A cell for every server after the last round, by type, the fullest first: the used "
              "share of its scarcest dimension.", lambda a, t: _map(a, t, results[0])),
        Chart("worth", "Worth that runs", "Worth of all running tasks after every round.",
              lambda a, t: _lines(a, t, results, "worth_running", "worth")),
        Chart("waiting", "Waiting tasks", "Tasks without room after every round.",
              lambda a, t: _lines(a, t, results, "waiting", "tasks")),
        Chart("round_time", "Round time", "Seconds from the round's events to its plan.",
              lambda a, t: _lines(a, t, results, "round_s", "seconds", log=True)),
    ]  # fmt: skip


def _map(axes: Any, theme: Theme, result: PlacementResult) -> None:
    width = max(1, int(np.ceil(np.sqrt(2.0 * result.servers))))
    parts, ticks, at = [], [], 0
    for name, use in result.use.items():
        height = -(-len(use) // width)
        cells = np.full(height * width, np.nan)
        cells[: len(use)] = use
        parts.append(cells.reshape(height, width))
        ticks.append((at + height / 2 - 0.5, name))
        at += height
    picture = axes.imshow(np.concatenate(parts), cmap="viridis", vmin=0.0, vmax=1.0, aspect="auto")
    axes.figure.colorbar(picture, ax=axes, label="used share")
    axes.set_yticks([each for each, _ in ticks], [name for _, name in ticks])
    axes.set_xticks([])


def _lines(
    axes: Any, theme: Theme, results: Sequence[PlacementResult], name: str, label: str, log: bool = False
) -> None:  # fmt: skip
    for at, result in enumerate(results):
        values = np.array([getattr(each, name) for each in result.rounds], dtype=np.float64)
        axes.plot(np.maximum(values, 1e-5) if log else values, color=theme.series[at % len(theme.series)],
                  label=result.scheme)  # fmt: skip
    if log:
        axes.set_yscale("log")
    axes.set_xlabel("round")
    axes.set_ylabel(label)
    axes.legend(fontsize=7)
