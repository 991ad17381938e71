"""The table at the end of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from copter.problem.figures import NONE, percent, seconds, times

_STAGES = (("round", "round_s"), ("edit", "edit_s"), ("solve", "solve_s"), ("shim", "shim_s"), ("place", "place_s"))
_PERCENTILES = ("p50", "p95", "p99")
LABEL_WIDTH, FIGURE_WIDTH = 26, 20  # characters for a figure's name and for one run's figures, with lines broken


def print_summary(summary: Mapping[str, Any], console: Console) -> None:
    """Print the figures of a run: jobs and cluster first, then wall-clock times a round."""
    facts = Table(box=box.SIMPLE_HEAD, title=f"{summary['policy']} on {summary['gpus']:,} GPUs", title_justify="left")
    facts.add_column("figure")
    facts.add_column("value", justify="right")
    for name, value in headline(summary):
        facts.add_row(name, value)
    stages = Table(box=box.SIMPLE_HEAD, title="wall-clock time per round", title_justify="left")
    for name in ("", *_PERCENTILES, "max"):
        stages.add_column(name, justify="right" if name else "left")
    for name, key in _STAGES:
        stages.add_row(name, *(number(summary[key][which], seconds) for which in (*_PERCENTILES, "max")))
    highs = summary.get("highs") or {}
    for key, value in highs.items():
        if isinstance(value, Mapping) and key.endswith("_s") and value.get("p50") is not None:
            cells = (number(value.get(which), seconds) for which in (*_PERCENTILES, "max"))
            stages.add_row(f"HiGHS {key[:-2]}", *cells)
    if highs.get("cold_s") is not None:
        limited = " (stopped at the time limit)" if highs.get("cold_time_limit_hit") else ""
        stages.add_row("HiGHS cold", number(highs["cold_s"], seconds) + limited, "", "", "")
    console.print(facts)
    for note in notes(summary):
        console.print(f" {note}\n", style="dim")
    console.print(stages)
    edits = summary.get("edits_per_solve")
    if edits:
        counts = ", ".join(f"{edits[name]:,.1f} {name}" for name in ("added", "removed", "changed"))
        console.print(f" {edits['solves']:,} solves; edits a solve: {counts}, of {edits['requests']:,.1f} requests")
    for name, value in (summary.get("figures") or {}).items():
        console.print(f" {name.replace('_', ' ')}: {value:,.4g}")
    ratio = (highs.get("faster_of_warm_and_cold_over_copter") or {}).get("p50")
    if ratio:
        console.print(
            f" HiGHS's faster way (warm or cold) takes {number(ratio, times)} times as long as copter (median)"
        )
    if highs.get("objective_rel_diff_max") is not None:
        console.print(f" objective against HiGHS: {number(highs['objective_rel_diff_max'], percent)} apart at most\n")


def print_side_by_side(summaries: Sequence[Mapping[str, Any]], console: Console, title: str = "") -> None:
    """Print the figures of several runs of the same jobs, one column for each run, as many side by side as fit."""
    title = title or f"{len(summaries)} policies on {summaries[0]['gpus']:,} GPUs"
    abreast = max(1, (console.width - LABEL_WIDTH) // FIGURE_WIDTH)
    for first in range(0, len(summaries), abreast):
        console.print(_side_by_side(summaries[first : first + abreast], title))
    for note in notes(summaries[0]):
        console.print(f" {note}\n", style="dim")


def _side_by_side(summaries: Sequence[Mapping[str, Any]], title: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=title)
    table.add_column("figure", overflow="fold")
    for summary in summaries:
        table.add_column(str(summary["policy"]), justify="right", overflow="fold")
    columns = [
        [
            *headline(summary),
            *((f"{name}, p50 / p95 / p99", _triple(summary[key])) for name, key in _STAGES),
        ]
        for summary in summaries
    ]
    for row in zip(*columns, strict=True):
        table.add_row(row[0][0], *(text for _, text in row))
    return table


def _triple(times: Mapping[str, float | None]) -> str:
    return " / ".join(number(times[which], seconds) for which in _PERCENTILES)


def headline(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return a run's figures other than wall-clock times, as (name, text)."""
    warmup = summary.get("warmup_rounds") or 0
    rounds = f"{summary['rounds']:,}" + (f" (+ {warmup:,} to warm up)" if warmup else "")
    simulated_h = summary["simulated_h"]
    warmup_h = (
        f" (+ {simulated_h / summary['rounds'] * warmup:.4g} h to warm up)" if warmup and summary["rounds"] else ""
    )
    arrived = summary.get("jobs_arrived", summary["jobs_submitted"])
    by_then = f" ({arrived:,} by the end of the run)" if arrived != summary["jobs_submitted"] else ""
    variables, fractional, gap = summary["variables"], summary["fractional_jobs"], summary["gap"]
    return [
        ("rounds", rounds),
        ("simulated", number(simulated_h, "{:.4g} h") + warmup_h),
        ("jobs submitted", f"{summary['jobs_submitted']:,}{by_then}"),
        *_load(summary),
        ("jobs completed", f"{summary['jobs_completed']:,}"),
        ("average JCT", number(summary["avg_jct_h"], "{:.3f} h")),
        *_weighted(summary),
        ("p99 JCT", number(summary["p99_jct_h"], "{:.2f} h")),
        ("makespan", number(summary["makespan_h"], "{:.2f} h")),
        ("utilisation", number(summary["utilisation"], "{:.1%}")),
        ("GPU hours per completed job", number(summary["gpu_hours_per_job"], "{:.2f}")),
        ("hours in the queue per completed job", number(summary["queue_h_per_job"], "{:.3f}")),
        ("jobs at a time, mean / max", _contention(summary)),
        ("jobs without GPUs, p50 / max", _waiting(summary)),
        ("restarts per completed job", number(summary["restarts_per_job"], "{:.2f}")),
        ("variables, p50 / max", _variables(variables)),
        (
            "fractional jobs, p50 / max",
            f"{number(fractional['p50'], '{:.0f}')} / {number(fractional['max'], '{:.0f}')}",
        ),
        ("gap, p50 / max", f"{number(gap['p50'], percent)} / {number(gap['max'], percent)}"),
        *_fairness(summary),
        *waiting_rows(summary),
        *_deadlines(summary),
        ("peak memory", number(summary["peak_rss_mb"], "{:,.0f} MB")),
    ]


def _arrived(summary: Mapping[str, Any]) -> int:
    """Return the number of jobs submitted before the run's end."""
    return int(summary.get("jobs_arrived", summary["jobs_submitted"]))


def cards_of(summary: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the headline figures: (name, figure, remark)."""
    round_s, gap = summary["round_s"], summary["gap"]
    cards = [
        ("Round time", number(round_s["p50"], seconds), f"p99 {number(round_s['p99'], seconds)}"),
        ("Gap", number(gap["p50"], percent), f"largest {number(gap['max'], percent)}"),
        ("Average JCT", number(summary["avg_jct_h"], "{:.2f} h"), f"p99 {number(summary['p99_jct_h'], '{:.1f} h')}"),
        ("Utilisation", number(summary["utilisation"], "{:.0%}"), f"of {summary['gpus']:,} GPUs"),
        ("Jobs completed", f"{summary['jobs_completed']:,}", f"of {_arrived(summary):,} submitted in the run"),
    ]
    if not summary["variables"]["max"]:
        cards.pop(1)  # a policy without a program has no gap
    ratio = ((summary.get("highs") or {}).get("faster_of_warm_and_cold_over_copter") or {}).get("p50")
    if ratio:
        cards.insert(
            1,
            (
                "Against HiGHS",
                f"{number(ratio, times)}×",
                "median of the times in the table below",
            ),
        )
    return cards


def _variables(spread: Mapping[str, float | None]) -> str:
    """Return the sizes of the rounds' linear programs."""
    if spread["max"] == 0:
        return "no round needed a linear program"
    return " / ".join(number(spread[which], "{:,.0f}") for which in ("p50", "max"))


def notes(summary: Mapping[str, Any]) -> list[str]:
    """Return explanations of those figures' names that need one."""
    if "finish_time_fairness" not in summary:
        return []
    return [
        "finish-time ρ: a completed job's time over its time alone on an equal share of the GPUs; above 1 the job is "
        "unfair. Over several GPU types, thesis: the mean of the ratios; artifact: the ratio to the mean time, as "
        "Sia's public tool has it."
    ]


def _contention(summary: Mapping[str, Any]) -> str:
    """Return the mean and largest number of jobs in the cluster, over rounds with jobs."""
    return f"{number(summary['contention'], '{:,.1f}')} / {number(summary['contention_max'], '{:,.0f}')}"


def _waiting(summary: Mapping[str, Any]) -> str:
    """Return the numbers of jobs without GPUs in the counted rounds."""
    waiting = summary.get("jobs_without_gpus") or {"p50": None, "max": None}
    return " / ".join(number(waiting[which], "{:,.0f}") for which in ("p50", "max"))


def _load(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the load of the counted rounds, and the largest of a GPU type, if the run has them."""
    load = summary.get("load")
    if not load:
        return []
    kind = max(load["by_type"], key=load["by_type"].get, default="")
    most = f", {load['by_type'][kind]:.2f} ({kind})" if kind else ""
    return [("load, all and the highest of a type", f"{load['all']:.2f}{most}")]


def _weighted(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the sum of weights times JCTs, if the jobs have weights."""
    return [("weighted JCT", f"{summary['weighted_jct_h']:.2f} h")] if "weighted_jct_h" in summary else []


def _fairness(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return finish-time fairness, latency ratio and fragmentation, if the run has them."""
    if "finish_time_fairness" not in summary:
        return []
    thesis, artifact = (summary["finish_time_fairness"][name] for name in ("thesis", "artifact"))
    worst = f"{number(thesis['worst'], '{:.2f}')} / {number(artifact['worst'], '{:.2f}')}"
    unfair = f"{number(thesis['unfair_fraction'], '{:.1%}')} / {number(artifact['unfair_fraction'], '{:.1%}')}"
    judged = summary["finish_time_fairness"].get("jobs", summary["jobs_completed"])
    return [
        ("worst finish-time ρ, thesis / artifact", worst),
        ("unfair jobs, thesis / artifact", f"{unfair} of {judged:,}" if judged else NONE),
        ("largest latency ratio of completed jobs", number(summary["latency_ratio"]["max"], "{:.2f}")),
        ("latency ratio of the worst hour", number(summary["latency_ratio"].get("worst_hour"), "{:.2f}")),
        ("GPUs idle while jobs wait", number(summary["fragmentation_gpus"], "{:.2f}")),
    ]


def waiting_rows(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the figures of waiting over all jobs that have arrived, completed or not."""
    if "waiting" not in summary:
        return []
    result = summary["waiting"]
    return [
        ("never run, of the jobs arrived", f"{result['never_run']:,} of {result['jobs']:,}{_refused(result)}"),
        (
            "longest wait of a job still waiting",
            f"{result['longest_wait_h']:.2f} h ({result['still_waiting']:,} wait)"
            if result["still_waiting"]
            else "none waits",
        ),
        ("largest latency ratio of all jobs", number(result["latency_ratio"]["max"], "{:.2f}")),
        ("mean latency ratio of all jobs", number(result["latency_ratio"]["mean"], "{:.2f}")),
        ("bound on waiting", result["bound"]),
    ]


def _refused(result: Mapping[str, Any]) -> str:
    return f"; {result['refused']:,} more refused" if result.get("refused") else ""


def _deadlines(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the deadline-miss figures, if the jobs have deadlines."""
    if "deadlines" not in summary:
        return []
    result = summary["deadlines"]
    return [
        ("jobs with deadlines, of these due in the run", f"{result['jobs']:,} / {result['due']:,}"),
        ("deadlines met / missed", f"{result['met']:,} / {result['missed']:,}"),
        ("weighted deadline-miss rate", number(result["weighted_miss_rate"], "{:.1%}")),
        ("promised / kept / late", _counts(result, "promised", "kept", "late")),
        ("demoted, of these by failures", _counts(result, "demoted", "demoted_by_failures")),
        ("best-effort JCT, at least", number(result["best_effort_jct_h"], "{:.3f} h")),
    ]


def _counts(result: Mapping[str, Any], *names: str) -> str:
    """Return counts side by side."""
    return " / ".join(number(result[name], "{:,}") for name in names)


def number(value: float | None, form: str | Callable[[float], str]) -> str:
    """Return a figure as text, written by a format or a function; a dash for None."""
    if value is None:
        return NONE
    return form.format(value) if isinstance(form, str) else form(value)
