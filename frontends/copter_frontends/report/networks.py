"""Reports on traffic engineering, shards and placement: one self-contained page with plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from copter.problem.figures import percent, seconds
from copter_frontends.placement.servers.simulation import PlacementResult
from copter_frontends.report.extras import check_extras
from copter_frontends.report.page import write_page
from copter_frontends.report.placement_charts import placement_charts
from copter_frontends.report.shard_charts import shard_charts
from copter_frontends.report.table import number
from copter_frontends.report.traffic_charts import traffic_charts
from copter_frontends.shards.simulation import ShardResult
from copter_frontends.traffic.simulation import TrafficResult

TEMPLATE = "networks.html"


def write_traffic_report(results: Sequence[TrafficResult], directory: str | Path, facts: Mapping[str, str]) -> Path:
    """Write the page that compares schemes on one network, and a PNG per plot; raises MissingExtraError.

    Parameters
    ----------
    results : sequence of TrafficResult
        The first one's network is drawn.
    directory : path
        Folder; made if it does not exist.
    facts : mapping of str to str
        Description of the run.
    """
    check_extras()
    rows = [
        {
            "scheme": each["scheme"],
            "Objective": number(each["mean_objective"], "{:,.6g}"),
            "Flow": number(each["mean_flow"], "{:,.6g}"),
            "Satisfied": number(each["satisfied"], "{:.2%}"),
            **_times(each),
        }
        for each in (result.summary() for result in results)
    ]
    title = f"Traffic on {results[0].paths.network.name}"
    return write_page(TEMPLATE, traffic_charts(results), directory, title=title, rows=rows, facts=dict(facts))


def write_shard_report(results: Sequence[ShardResult], directory: str | Path, facts: Mapping[str, str]) -> Path:
    """Write the page that compares schemes on one cluster, and a PNG per plot; raises MissingExtraError."""
    check_extras()
    rows = [
        {
            "scheme": each["scheme"],
            "Movements": number(each["movements"], "{:,.2f}"),
            "Imbalance": number(each["imbalance"], "{:.2%}"),
            "Out of band": number(each["out_of_band_rounds"], "{:,}"),
            **_times(each),
        }
        for each in (result.summary() for result in results)
    ]
    title = f"{results[0].shards:,} shards on {results[0].servers:,} servers"
    return write_page(TEMPLATE, shard_charts(results), directory, title=title, rows=rows, facts=dict(facts))


def write_placement_report(results: Sequence[PlacementResult], directory: str | Path, facts: Mapping[str, str]) -> Path:
    """Write the page that compares schemes on the same servers, with a map of them; raises MissingExtraError."""
    check_extras()
    rows = [
        {
            "scheme": each["scheme"],
            "Admitted worth": number(each["admitted_worth"], "{:.2%}"),
            "Worth running": number(each["worth_running"], "{:,.0f}"),
            "Servers used": number(each["servers_used"], "{:,.1f}"),
            **_times(each),
        }
        for each in (result.summary() for result in results)
    ]
    title = f"Tasks on {results[0].servers:,} servers"
    return write_page(TEMPLATE, placement_charts(results), directory, title=title, rows=rows, facts=dict(facts))


def _times(summary: Mapping[str, Any]) -> dict[str, str]:
    gap = summary["gap"]
    return {
        "Largest gap": "none" if gap is None else percent(gap["max"]),
        "Round, median": seconds(summary["round_s"]["p50"]),
        "Round, largest": seconds(summary["round_s"]["max"]),
    }
