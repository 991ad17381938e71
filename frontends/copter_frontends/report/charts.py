"""The plots of a simulation; each one draws on given axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter.problem.figures import percent
from copter_frontends.report.activity_chart import MOST_JOBS, draw_activity
from copter_frontends.report.theme import Theme
from copter_frontends.simulator import RoundRecord, SimulationResult
from copter_frontends.simulator.metrics import STAGES

MOST_POINTS = 360
"""Most points of a curve; with more rounds, neighbours are merged."""

Floats = NDArray[np.float64]
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Chart:
    """A plot: file name, title, description, and drawing function."""

    name: str
    title: str
    caption: str
    draw: Callable[[Any, Theme], None]


def charts_of(result: SimulationResult, comparison: Rows) -> list[Chart]:
    """Return the plots for which the result has data."""
    measured = [r for r in result.rounds if not r.warmup]
    every = list(result.rounds)
    if not every:
        return []
    charts: list[Chart] = []
    if measured:
        caption = "Wall-clock time that the policy took in each measured round, by stage."
        charts.append(Chart("round_time", "Round time", caption, lambda a, t: _round_time(a, t, measured)))
    if any(r.gap > 0 for r in measured):
        caption = "Distance of each plan from its certified bound, (bound − objective) / |objective|."
        charts.append(Chart("gap", "Gap", caption, lambda a, t: _gap(a, t, measured)))
    if comparison:
        caption = "The same programs solved from where HiGHS stood (warm) and from nothing (cold)."
        charts.append(Chart("highs", "Against HiGHS", caption, lambda a, t: _against_highs(a, t, comparison)))
    caption = "GPUs held as a share of the cluster, by type."
    charts.append(Chart("utilisation", "Utilisation", caption, lambda a, t: _utilisation(a, t, every)))
    charts.append(Chart("jobs", "Jobs", "Jobs with GPUs and waiting.", lambda a, t: _jobs(a, t, every)))
    if result.spans:
        caption = "Jobs over time, coloured by the type of GPU they have; white before, after and in the queue."
        count = len({span.job for span in result.spans})
        if count > MOST_JOBS:
            caption += f" Drawn are {MOST_JOBS} of {count:,} jobs, evenly by their first start."
        kinds = list(every[-1].gpus_capacity)
        charts.append(Chart("activity", "GPU activity", caption, lambda a, t: draw_activity(a, t, result.spans, kinds)))
    jct_h = result.jobs["jct_s"].astype(np.float64) / 3600
    jct_h = np.sort(jct_h[np.isfinite(jct_h)])
    if jct_h.size:
        caption = f"Share of the {jct_h.size:,} completed jobs that took at most so long from submission."
        charts.append(Chart("jct", "Job completion time", caption, lambda a, t: _jct(a, t, jct_h)))
    if any(r.prices for r in every):
        caption = "What one more GPU of a type would add to the objective of the round."
        charts.append(Chart("prices", "Prices", caption, lambda a, t: _prices(a, t, every)))
    return charts


def _hours(rounds: Sequence[RoundRecord]) -> Floats:
    return np.array([r.now_s for r in rounds]) / 3600


def _thin(values: Floats, how: Callable[..., Any]) -> Floats:
    """Reduce values to at most MOST_POINTS by combining neighbours with `how`, which takes an axis."""
    step = -(-len(values) // MOST_POINTS)
    whole = len(values) // step * step
    thinned: Floats = how(values[:whole].reshape(-1, step), axis=1) if step > 1 else values
    return thinned if whole == len(values) or step == 1 else np.append(thinned, how(values[whole:], axis=0))


def _over_time(axes: Any, rounds: Sequence[RoundRecord]) -> None:
    axes.set_xlabel("simulated time (h)")
    axes.set_xlim(rounds[0].now_s / 3600, _end_h(rounds))


def _end_h(rounds: Sequence[RoundRecord]) -> float:
    """Return the end of the last round in hours; a single round counts as one minute."""
    length_s = rounds[-1].now_s - rounds[-2].now_s if len(rounds) > 1 else 60.0
    return (rounds[-1].now_s + length_s) / 3600


def _stack(
    axes: Any, rounds: Sequence[RoundRecord], layers: Sequence[Floats], labels: Sequence[str], colours: Sequence[str]
) -> None:
    """Draw stacked steps, each as wide as its rounds."""
    edges = np.append(_thin(_hours(rounds), np.min), _end_h(rounds))
    closed = [np.append(layer, layer[-1]) for layer in layers]
    axes.stackplot(edges, *closed, labels=labels, colors=colours, linewidth=0, step="post")


def _legend(axes: Any, columns: int) -> None:
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1.0),
        ncols=columns,
        borderaxespad=0.2,
        borderpad=0.1,
        handlelength=1.0,
        handleheight=0.8,
        handletextpad=0.5,
        columnspacing=1.2,
    )


def _time_unit(largest_s: float) -> tuple[float, str]:
    return (1.0, "s") if largest_s >= 1 else (1e3, "ms") if largest_s >= 1e-3 else (1e6, "µs")


def _round_time(axes: Any, theme: Theme, rounds: Sequence[RoundRecord]) -> None:
    whole = np.array([r.round_s for r in rounds])
    parts = {stage: np.array([r.timings.get(stage, 0.0) for r in rounds]) for stage in STAGES}
    rest = np.maximum(whole - np.sum(list(parts.values()), axis=0), 0.0)
    parts["other"] = rest
    top = float(np.percentile(whole, 99.5))
    scale, unit = _time_unit(top)
    shown = {
        name: _thin(values, np.mean) * scale for name, values in parts.items() if values.sum() > 1e-3 * whole.sum()
    }
    colours = [*theme.series[:4], theme.series[5]]
    chosen = [colours[list(parts).index(name)] for name in shown]
    _stack(axes, rounds, list(shown.values()), list(shown), chosen)
    axes.set_ylabel(f"wall-clock time ({unit})")
    axes.set_ylim(0, 1.12 * scale * max(top, 1e-9))
    if whole.max() > 1.12 * top:
        axes.annotate(
            f"one round took {scale * whole.max():.3g} {unit}",
            (0.995, 0.97),
            xycoords="axes fraction",
            ha="right",
            va="top",
            color=theme.muted,
            fontsize=8,
        )
    _over_time(axes, rounds)
    _legend(axes, 5)


def _gap(axes: Any, theme: Theme, rounds: Sequence[RoundRecord]) -> None:
    gaps = np.array([r.gap for r in rounds])
    shown = np.where(gaps > 0, gaps, np.nan)
    hours = _hours(rounds) + 0.5 * (_end_h(rounds) - rounds[-1].now_s / 3600)  # the middle of each round
    size = 3.2 if len(hours) > MOST_POINTS else 5.0
    axes.plot(hours, shown, "o", markersize=size, color=theme.series[0], alpha=0.55, markeredgewidth=0)
    median = float(np.median(gaps))
    if median > 0:
        axes.axhline(median, color=theme.series[3], linewidth=1.2)
        axes.annotate(
            f"median {percent(median)}, largest {percent(float(gaps.max()))}",
            (1.0, 1.0),
            xycoords="axes fraction",
            xytext=(0, 4),
            textcoords="offset points",
            ha="right",
            va="bottom",
            color=theme.muted,
            fontsize=8.5,
        )
    low, high = np.nanmin(shown), np.nanmax(shown)
    if high < 30 * low:  # a log axis needs at least a decade and a half to have labels
        axes.set_ylim(low / 6, high * 6)
    axes.set_yscale("log")
    axes.set_ylabel("relative gap")
    _over_time(axes, rounds)


def _utilisation(axes: Any, theme: Theme, rounds: Sequence[RoundRecord]) -> None:
    kinds = list(dict.fromkeys(kind for r in rounds for kind in r.gpus_capacity))
    capacity = np.array([sum(r.gpus_capacity.values()) for r in rounds], dtype=np.float64)
    shares = [
        _thin(100 * np.array([r.gpus_used.get(kind, 0) for r in rounds]) / np.maximum(capacity, 1), np.mean)
        for kind in kinds
    ]
    colours = [theme.series[i % len(theme.series)] for i in range(len(kinds))]
    _stack(axes, rounds, shares, kinds, colours)
    axes.set_ylim(0, 100)
    axes.set_ylabel("GPUs held (% of cluster)")
    _shade_warmup(axes, theme, rounds)
    _over_time(axes, rounds)
    _legend(axes, len(kinds))


def _jobs(axes: Any, theme: Theme, rounds: Sequence[RoundRecord]) -> None:
    running = _thin(np.array([r.running_jobs for r in rounds], dtype=np.float64), np.mean)
    queued = _thin(np.array([r.queued_jobs for r in rounds], dtype=np.float64), np.mean)
    colours = [theme.series[0], theme.series[1]]
    _stack(axes, rounds, [running, queued], ["running", "queued"], colours)
    axes.set_ylabel("jobs")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    _shade_warmup(axes, theme, rounds)
    _over_time(axes, rounds)
    _legend(axes, 2)


def _jct(axes: Any, theme: Theme, jct_h: Floats) -> None:
    share = 100 * np.arange(1, len(jct_h) + 1) / len(jct_h)
    keep = np.unique(np.linspace(0, len(jct_h) - 1, min(len(jct_h), 2 * MOST_POINTS)).astype(np.int64))
    axes.step(jct_h[keep], share[keep], where="post", color=theme.series[0])
    axes.set_xscale("log")
    _plain_log_ticks(axes.xaxis, jct_h[-1] / jct_h[0])
    for part in (50, 99):
        at = float(np.percentile(jct_h, part))
        axes.plot([at], [part], "o", markersize=4.5, color=theme.series[3], zorder=3)
        axes.annotate(
            f"p{part}  {at:.2g} h",
            (at, part),
            xytext=(7, -8 if part > 90 else -2),
            textcoords="offset points",
            ha="left",
            va="center",
            color=theme.ink,
            fontsize=8.5,
        )
    axes.set_ylim(0, 103)
    axes.set_xlim(right=max(2.0 * float(np.percentile(jct_h, 99)), 1.1 * jct_h[-1]))  # room for the label
    axes.set_xlabel("job completion time (h)")
    axes.set_ylabel("jobs (%)")


def _prices(axes: Any, theme: Theme, rounds: Sequence[RoundRecord]) -> None:
    kinds = list(dict.fromkeys(kind for r in rounds for kind in r.prices))
    hours = _thin(_hours(rounds), np.min)
    for i, kind in enumerate(kinds):
        prices = _thin(np.array([r.prices.get(kind, np.nan) for r in rounds], dtype=np.float64), np.mean)
        axes.plot(hours, prices, label=kind, color=theme.series[i % len(theme.series)], linewidth=1.3)
    axes.set_ylabel("objective per GPU and round")
    axes.set_ylim(bottom=0)
    _shade_warmup(axes, theme, rounds)
    _over_time(axes, rounds)
    _legend(axes, len(kinds))


def _against_highs(axes: Any, theme: Theme, rows: Rows) -> None:
    at = [row["round"] for row in rows]
    names = {"copter_s": "copter", "highs_warm_s": "HiGHS, warm", "highs_cold_s": "HiGHS, cold"}
    colours = (theme.series[0], theme.series[1], theme.series[5])
    found = [row[key] for row in rows for key in names if row.get(key) is not None]
    scale, unit = _time_unit(max(found, default=1.0))
    for (key, label), colour in zip(names.items(), colours, strict=True):
        values = np.array([np.nan if row.get(key) is None else row[key] for row in rows], dtype=np.float64)
        values = np.where(values > 0, values, np.nan)
        if np.isfinite(values).any():
            axes.plot(at, scale * values, "o-", label=label, color=colour, markersize=3.5)
    axes.set_yscale("log")
    _plain_log_ticks(axes.yaxis, max(found, default=1.0) / min((each for each in found if each > 0), default=1.0))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("round")
    axes.set_ylabel(f"solve time ({unit})")
    _legend(axes, 3)


def _shade_warmup(axes: Any, theme: Theme, rounds: Sequence[RoundRecord]) -> None:
    measured = [r.now_s / 3600 for r in rounds if not r.warmup]
    if not measured or measured[0] <= rounds[0].now_s / 3600:
        return
    axes.axvspan(rounds[0].now_s / 3600, measured[0], color=theme.paper, alpha=0.45, linewidth=0, zorder=3)
    axes.axvline(measured[0], color=theme.muted, linewidth=0.8, linestyle=(0, (4, 3)), zorder=4)
    axes.annotate(
        "warm-up",
        (0.0, 1.0),
        xycoords="axes fraction",
        xytext=(6, -5),
        textcoords="offset points",
        ha="left",
        va="top",
        fontsize=8.5,
        color=theme.muted,
        zorder=5,
    )


def _plain_log_ticks(axis: Any, ratio: float) -> None:
    """Use ticks such as 0.1, 1, 10 on a log axis, with 2 and 5 between them on a short range."""
    from matplotlib.ticker import LogLocator, NullFormatter  # in the optional extra `report`

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if ratio < 300 else (1.0,)))
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter(NullFormatter())
