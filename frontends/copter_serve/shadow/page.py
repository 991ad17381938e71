"""The shadow's page, HTML without scripts; report and live page are the same."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from copter.problem.figures import figure, short
from copter_frontends.report.page import STYLE, text_of
from copter_serve.queues.reservations import wait_words
from copter_serve.shadow.wait_estimates import ASSUMED
from copter_serve.shadow.watch import Shadow, stamp

REFRESH_S = 5  # seconds between two reloads of a live page


def shadow_page(shadow: Shadow, live: bool = False) -> str:
    """Return the page; a live page reloads itself."""
    summary = shadow.summary()
    now = summary["now"]
    again = f'<meta http-equiv="refresh" content="{REFRESH_S}">' if live else ""
    body = [_state(summary)]
    if now is not None:
        unit = now["resource"]
        body += [
            _section("Throughput", _facts(summary, now, unit), _picture(shadow.history)),
            _section(
                f"The plan that does better: {len(now['starts'])} job{'s' * (len(now['starts']) != 1)} could start now",
                _table(now["starts"], ("job", "queue", "priority", "units", "nodes", "flavors", "waits_s")),
            ),
            _section(
                "Waiting: jobs that could have run",
                _table(summary["jobs"], ("job", "waited_for_nothing_s")),
            ),
            _section(
                "Estimated starts",
                _table([_estimate(each) for each in now["estimates"]], ("job", "queue", "units", "starts", "on")),
                f"<p>An estimate: {escape(ASSUMED)}. Not known: it waits for a job without a time limit.</p>",
            ),
            _section(
                "Fairness: jobs that wait for borrowers, within their own queue's quota or with a smaller share",
                _table(now["unfair"], ("job", "queue", "units", "borrowed_by")),
            ),
            *(
                [
                    _section(
                        "Fair sharing: part of what can be lent, divided by the weight",
                        _table(now["shares"], ("queue", "weight", "share")),
                    )
                ]
                if now["shares"]
                else []
            ),
            _section(
                "Priority: jobs that others of lower priority were started before",
                _table(now["overturned"], ("job", "queue", "priority", "started_instead")),
            ),
            _section(
                "Fragmentation: free, but in pieces",
                f"<p>{figure(now['stranded'])} {escape(unit)} are free and nothing that waits can use them.</p>"
                + _table(now["scattered"], ("job", "queue", "pod_needs", "fullest_offer", "free")),
            ),
            _section("Held by their owners or the scheduler", _table(now["held"], ("job", "queue", "why"))),
            _section(
                "Unclear: they may start or not, and count in the bound only",
                _table(now["unclear"], ("job", "queue", "why")),
            ),
            _section("Not modelled", _list(now["not_modelled"])),
            _section("Not read", _list(now["skipped"])),
        ]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport"'
        f' content="width=device-width, initial-scale=1"><title>copter shadow</title>{again}'
        f"<style>{text_of(STYLE)}</style></head><body><main><h1>copter shadow</h1>{''.join(body)}"
        "<footer>The shadow reads and changes nothing. What could start now keeps to the quotas and, where the source"
        " tells of nodes, to their rooms and rules; each start was checked. What is not modelled may still keep a job"
        " from starting.</footer></main></body></html>\n"
    )


def _state(summary: dict[str, Any]) -> str:
    now = summary["now"]
    if summary["blind_since"] is not None:
        then = "" if now is None else f" What follows is as of {stamp(now['at_s'])}."
        return (
            f'<p class="lead"><strong>Blind since {summary["blind_since"]}</strong>: {escape(summary["why_blind"])}.'
            f"{then}</p>"
        )
    return "" if now is None else f'<p class="lead">As of {stamp(now["at_s"])}, round {summary["rounds"]}.</p>'


def _facts(summary: dict[str, Any], now: dict[str, Any], unit: str) -> str:
    unused = summary["unused_unit_hours"]
    trust = "(certified)" if now["certified"] else "within the model"
    rows = {
        "quota": f"{figure(now['quota'])} {unit}",
        "in use": f"{figure(now['used'])}",
        "could be started now": f"{figure(now['could'])}; at most {figure(now['bound'])} {trust}",
        "jobs": f"{now['running']:,} run, {now['waiting']:,} wait",
        "watched": f"{wait_words(3600.0 * summary['watched_hours'])}, blind for {wait_words(summary['blind_s'])}",
        f"{unit}-hours left unused": f"at least {short(unused['at_least'], 4)}, at most {short(unused['at_most'], 4)}",
        "job-hours waited for nothing": f"{short(summary['job_hours_waited_for_nothing'], 4)}",
    }
    return (
        "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in rows.items()) + "</dl>"
    )


def _picture(history: Sequence[tuple[float, float, float, float]]) -> str:
    """Return a chart of usage over time, with what the plan would add on top."""
    if len(history) < 2:
        return ""
    first, last = history[0][0], history[-1][0]
    most = max(max(used + could for _, used, could, _ in history), 1e-9)

    def line(values: Sequence[float]) -> str:
        return " ".join(
            f"{600 * (row[0] - first) / max(last - first, 1e-9):.1f},{118 - 116 * value / most:.1f}"
            for row, value in zip(history, values, strict=True)
        )

    used, better = line([row[1] for row in history]), line([row[1] + row[2] for row in history])
    return (
        '<svg viewBox="0 0 600 120" role="img" aria-label="in use, and with the plan" style="width:100%">'
        f'<polyline points="{better}" fill="none" stroke="currentColor" stroke-dasharray="4 3"/>'
        f'<polyline points="{used}" fill="none" stroke="#3b7dd8" stroke-width="2"/></svg>'
        "<p>Blue: in use. Dashed: with the plan.</p>"
    )


def _estimate(line: dict[str, Any]) -> dict[str, Any]:
    seconds = line["starts_in_s"]
    words = "not known" if seconds is None else "now" if seconds == 0.0 else f"in {wait_words(seconds)}"
    return line | {"starts": words + (" (backfill)" if line["backfills"] else "")}


def _section(title: str, *parts: str) -> str:
    return f'<section class="panel wide scroll"><h2>{escape(title)}</h2>{"".join(parts)}</section>'


def _table(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> str:
    if not rows:
        return "<p>None.</p>"
    left = {name: ' class="text"' * any(isinstance(row[name], str | list) for row in rows) for name in names}
    head = "".join(f"<th{left[name]}>{escape(name.removesuffix('_s').replace('_', ' '))}</th>" for name in names)
    lines = "".join(
        "<tr>" + "".join(f"<td{left[name]}>{escape(_cell(name, row[name]))}</td>" for name in names) + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{lines}</table>"


def _cell(name: str, value: Any) -> str:
    if name.endswith("_s"):
        return wait_words(value)
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return figure(value) if isinstance(value, float) else str(value)


def _list(lines: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>" if lines else "<p>None.</p>"
