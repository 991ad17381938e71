"""Reports of traffic engineering and of shards: one self-contained page with a plot for each thing to see."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from copter_frontends.report.charts import Chart
from copter_frontends.report.extras import check_extras
from copter_frontends.report.figures import render
from copter_frontends.report.shard_charts import shard_charts
from copter_frontends.report.table import number, seconds
from copter_frontends.report.theme import DARK, LIGHT
from copter_frontends.report.traffic_charts import traffic_charts
from copter_frontends.shards.simulation import ShardResult
from copter_frontends.traffic.simulation import TrafficResult

PAGE, TEMPLATE = "report.html", "networks.html"


def write_traffic_report(results: Sequence[TrafficResult], directory: str | Path, facts: Mapping[str, str]) -> Path:
    """Write the page of some schemes on one network, and a PNG for each plot; MissingExtraError.

    Parameters
    ----------
    results : sequence of TrafficResult
        The first one's network is drawn.
    directory : path
        Made if it is not there.
    facts : mapping of str to str
        What was run, in words.
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
    return _page(title, rows, traffic_charts(results), directory, facts)


def write_shard_report(results: Sequence[ShardResult], directory: str | Path, facts: Mapping[str, str]) -> Path:
    """Write the page of some schemes on one cluster, and a PNG for each plot; MissingExtraError."""
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
    return _page(title, rows, shard_charts(results), directory, facts)


def _times(summary: Mapping[str, Any]) -> dict[str, str]:
    gap = summary["gap"]
    return {
        "Largest gap": "none" if gap is None else number(gap["max"], "{:.1e}"),
        "Round, median": seconds(summary["round_s"]["p50"]),
        "Round, largest": seconds(summary["round_s"]["max"]),
    }


def _page(
    title: str, rows: list[dict[str, str]], charts: Sequence[Chart], directory: str | Path, facts: Mapping[str, str]
) -> Path:
    from jinja2 import Environment  # of the optional extra `report`

    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for chart in charts:
        (folder / f"{chart.name}.png").write_bytes(render(chart, LIGHT, "png"))
        images = {theme.name: _inline(render(chart, theme, "svg")) for theme in (LIGHT, DARK)}
        drawn.append({"name": chart.name, "title": chart.title, "caption": chart.caption, **images})
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(files("copter_frontends.report").joinpath(TEMPLATE).read_text(encoding="utf-8"))
    target = folder / PAGE
    target.write_text(template.render(title=title, rows=rows, charts=drawn, facts=dict(facts)), encoding="utf-8")
    return target


def _inline(image: bytes) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(image).decode("ascii")
