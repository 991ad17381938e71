"""Plots of shard balancing: imbalance and movements over the rounds, time of each scheme, loads of servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from copter_frontends.report.charts import Chart
from copter_frontends.report.theme import Theme
from copter_frontends.shards.simulation import ShardResult


def shard_charts(results: Sequence[ShardResult]) -> list[Chart]:
    """Return the plots of some schemes."""
    found = [
        Chart("imbalance", "Imbalance", "Most loaded server less the least loaded, in mean loads.",
              lambda a, t: _lines(a, t, results, "imbalance", "mean loads")),
        Chart("movements", "Movements", "New copies in every round, added up.",
              lambda a, t: _lines(a, t, results, "movements", "copies", added=True)),
        Chart("round_time", "Round time", "Seconds from the loads to copies and shares.",
              lambda a, t: _lines(a, t, results, "round_s", "seconds", log=True)),
    ]  # fmt: skip
    if results[0].last is not None:
        caption = "Load of every server in the last round, in mean loads, servers in order of their load."
        found.append(Chart("servers", "Servers", caption, lambda a, t: _servers(a, t, results)))
    return found


def _lines(
    axes: Any, theme: Theme, results: Sequence[ShardResult], name: str, label: str, added: bool = False,
    log: bool = False,
) -> None:  # fmt: skip
    for at, result in enumerate(results):
        values = np.array([getattr(each, name) for each in result.rounds], dtype=np.float64)
        values = np.cumsum(values) if added else values
        colour = theme.series[at % len(theme.series)]
        axes.plot(np.maximum(values, 1e-5) if log else values, color=colour, label=result.scheme)
    if log:
        axes.set_yscale("log")
    axes.set_xlabel("round")
    axes.set_ylabel(label)
    axes.legend(fontsize=7)


def _servers(axes: Any, theme: Theme, results: Sequence[ShardResult]) -> None:
    for at, result in enumerate(results):
        if result.last is None:
            continue
        load = np.sort(result.last.server_load)
        axes.plot(load / max(float(load.mean()), 1e-300), color=theme.series[at % len(theme.series)],
                  label=result.scheme)  # fmt: skip
    axes.set_xlabel("server")
    axes.set_ylabel("mean loads")
    axes.legend(fontsize=7)
