"""The figures of the thesis's chapter on Sia, from the points in the last lines of its tables (docs/results/tables)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from copter_frontends.report.theme import Theme
from pictures.drawing import drawn, panels

POLICIES = ("sia", "pollux", "gavel", "shockwave")
TYPES = ("a100", "rtx", "t4", "quad")
Points = Mapping[str, Any]


def points(tables: Path, name: str) -> Points:
    """The points of a table that was made with --json; none of one that was not made yet."""
    path = tables / f"{name}.txt"
    last = path.read_text().splitlines()[-1] if path.is_file() else ""
    found: Points = json.loads(last) if last.startswith("{") else {}
    return found


def colour(theme: Theme, name: str) -> str:
    """A policy's or a GPU type's colour, the same in every panel."""
    names = TYPES if name in TYPES else POLICIES
    return theme.series[names.index(name)]


def by_number(found: Points) -> dict[str, list[tuple[int, list[Any]]]]:
    """Points of "policy number" by policy, ascending."""
    result: dict[str, list[tuple[int, list[Any]]]] = {}
    for name, values in found.items():
        policy, _, number = name.partition(" ")
        result.setdefault(policy, []).append((int(number), values))
    return {policy: sorted(each) for policy, each in result.items()}


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _bars(axes: Any, theme: Theme, found: Points) -> None:
    for place, (policy, scenarios) in enumerate(found.items()):
        at = [group + 0.26 * (place - 1) for group in range(len(scenarios))]
        axes.bar(at, [_mean(v) for v in scenarios.values()], 0.24, color=colour(theme, policy), label=policy)
    names = [name.replace(", ", ",\n") for name in next(iter(found.values()))]
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel("average JCT, h")


def _lines(axes: Any, theme: Theme, found: Points, x: str, y: str) -> None:
    for policy, each in by_number(found).items():
        axes.plot(
            [at for at, _ in each],
            [_mean(v) for _, v in each],
            marker="o",
            ms=3,
            color=colour(theme, policy),
            label=policy,
        )
    axes.set_xlabel(x)
    axes.set_ylabel(y)


def _curves(axes: Any, theme: Theme, found: Points, which: str, x: str) -> None:
    for policy in (name for name in POLICIES if name in found):
        axes.plot(found[policy][which], found["shares"], color=colour(theme, policy), label=policy)
    axes.set_xscale("log")
    axes.set_xlabel(x)
    axes.set_ylabel("jobs, %")


def _plans(axes: Any, theme: Theme, found: Points) -> None:
    _lines(axes, theme, found, "GPUs", "median seconds")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")


def _arrivals(axes: Any, theme: Theme, found: Points) -> None:
    rates = [_mean(list(each)) for each in zip(*found["rates"], strict=True)]
    axes.stairs(rates, [half / 2 for half in range(len(rates) + 1)], color=theme.series[0])
    axes.set_xlabel("hours")
    axes.set_ylabel("jobs an hour")


def _throughput(axes: Any, theme: Theme, found: Points) -> None:
    for kind, each in found["throughput"].items():
        axes.plot([g for g, _ in each], [r for _, r in each], marker="o", ms=3, color=colour(theme, kind), label=kind)
    axes.set_xlabel("GPUs")
    axes.set_ylabel("samples/s")


def figures(tables: Path) -> str:
    """The SVG of Figures 3.1, 3.6, 3.7, 3.9, 3.10 and the left one of 3.5.3, as far as their tables are made."""
    curves = {**points(tables, "sia_figure_3_7"), **points(tables, "sia_figure_3_7_shockwave")}
    plans = {name: [values[1][0]] for name, values in points(tables, "sia_figure_3_10").items() if values[1]}
    bars, loads, spike, gpt = (points(tables, f"sia_{n}") for n in ("figure_3_1", "figure_3_6", "figure_3_9", "gpt"))
    every: list[tuple[str, Points, Callable[[Any, Theme], None]]] = [
        ("3.1: JCT", bars, lambda axes, theme: _bars(axes, theme, bars)),
        ("3.6: JCT by load", loads, lambda axes, theme: _lines(axes, theme, loads, "jobs an hour", "average JCT, h")),
        ("3.7: finish-time fairness", curves, lambda axes, theme: _curves(axes, theme, curves, "rho", "rho")),
        ("3.7: JCT", curves, lambda axes, theme: _curves(axes, theme, curves, "jct_h", "h")),
        ("3.9: the spike", spike, lambda axes, theme: _arrivals(axes, theme, spike)),
        ("3.10: a plan", plans, lambda axes, theme: _plans(axes, theme, plans)),
        ("3.5.3: GPT", gpt, lambda axes, theme: _throughput(axes, theme, gpt)),
    ]
    made = [(title, draw_panel) for title, found, draw_panel in every if found]

    def draw(figure: Any, theme: Theme) -> None:
        columns = min(3, len(made))
        for axes, (_, draw_panel) in zip(panels(figure, [title for title, _ in made], columns), made, strict=True):
            draw_panel(axes, theme)
            if axes.get_legend_handles_labels()[0]:
                axes.legend()

    return drawn(draw, (10.2, 2.8 * -(-len(made) // 3)))


def _spans(axes: Any, theme: Theme, found: Mapping[str, Any], active: list[list[float]]) -> None:
    """GPUs of jobs over time, coloured by type, and the number of jobs as a line."""
    for row, (_, spans) in enumerate(found.items()):
        for begin, end, kind, gpus in spans:
            axes.barh(row, end - begin, 0.05 + 0.035 * gpus, begin, color=colour(theme, kind))
    axes.set_yticks(range(len(found)), list(found))
    axes.set_ylim(-0.7, len(found) - 0.3)
    other = axes.twinx()
    other.plot([at for at, _ in active], [count for _, count in active], color=theme.muted, lw=1.0)
    other.set_ylabel("jobs in the cluster")
    other.grid(False)
    axes.set_xlabel("minutes")
    for kind in sorted({kind for spans in found.values() for *_, kind, _ in spans}):
        axes.bar(0, 0, color=colour(theme, kind), label=kind)
    axes.legend()


def joined(bars: list[list[float]]) -> list[list[float]]:
    """Periods, those that follow each other without a pause as one."""
    found: list[list[float]] = []
    for begin, end in bars:
        if found and begin <= found[-1][1]:
            found[-1][1] = end
        else:
            found.append([begin, end])
    return found


def _activity(axes: Any, theme: Theme, found: Points) -> None:
    for row, (begin, end, bars) in enumerate(zip(found["from_min"], found["to_min"], found["bars"], strict=True)):
        axes.barh(row, end - begin, 1.0, begin, color=theme.series[2])
        axes.broken_barh([(a, b - a) for a, b in joined(bars)], (row - 0.5, 1.0), color=theme.series[0])
    axes.set_xlabel("minutes")
    axes.set_ylabel("jobs by arrival")
    axes.grid(False)


def timelines(tables: Path) -> str:
    """The SVG of Figures 3.4, 3.8 and the right one of 3.5.3."""
    spike, testbed, gpt = (points(tables, f"sia_{name}") for name in ("figure_3_8", "figure_3_4", "gpt"))

    def draw(figure: Any, theme: Theme) -> None:
        titles = [f"3.8: {name} ({each['jct_h']:.2f} h)" for name, each in spike.items()]
        axes = panels(figure, ["3.4: GPUs of three jobs", "3.5.3: GPUs of the GPT job", *titles], 2)
        _spans(axes[0], theme, testbed["jobs"], testbed["active"])
        _spans(axes[1], theme, {"gpt": gpt["spans"]}, gpt["active"])
        for place, each in zip(axes[2:], spike.values(), strict=True):
            _activity(place, theme, each)

    return drawn(draw, (10.2, 9.0))
