"""A replay as tables, as wide as they need: no name and no figure is cut."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from copter.problem.figures import percent, seconds, times
from copter_frontends.replay.runs import Run

STAGES = (("edit", "edit_s"), ("solve", "solve_s"), ("shim", "shim_s"))
LEAST, MOST = 180, 1000  # width of the tables in characters


def print_rounds(run: Run, console: Console) -> None:
    """Print copter's rounds, one per line."""
    table = Table(box=box.SIMPLE_HEAD, title=run.solver, title_justify="left")
    for name in ("round", "edits", "columns", "edit", "solve", "shim", "gap", "method", "why", "verified", "same"):
        table.add_column(name, justify="left" if name in ("method", "why") else "right")
    for row in run.rows:
        table.add_row(
            str(row["round"]),
            str(row["edits"]),
            f"{row['columns']:,}",
            *(seconds(row[stage]) for stage in ("edit_s", "solve_s", "shim_s")),
            gap_text(row["gap"]),
            str(row["method"] or "-"),
            str(row["why"] or "-"),
            verdict(row["verified"]),
            "bits" if row["identical"] else percent(row["difference"]),
        )
    _print(table, console)


def print_sums(summaries: list[dict[str, Any]], console: Console) -> None:
    """Print all solvers' totals, one per line."""
    title = (
        "a counted round, medians; edit and solve: p50 / p95 / p99; times: over copter's, median and sum "
        "of the rounds of both"
    )
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    stages = [name for name, _ in STAGES]
    for name in (
        *("solver", "cold", "counted", *stages, "edit and solve", "times", "of both"),
        *("gap", "difference", "verified", "ended"),
    ):
        table.add_column(name, justify="left" if name in ("solver", "ended") else "right", no_wrap=name != "ended")
    for each in summaries:
        table.add_row(
            each["solver"],
            seconds(each["cold_s"] or None),
            str(each["counted"]),
            *(seconds(each[stage]["p50"]) for _, stage in STAGES),
            " / ".join(seconds(each["lp_s"][share]) for share in ("p50", "p95", "p99")),
            " / ".join(times(each[name]) for name in ("times_median", "times_sum")),
            str(each["rounds_of_both"]),
            gap_text(each["gap_max"]),
            percent(each["difference_max"]),
            f"{each['verified']} of {each['rounds']}",
            each["ended"] or "",
        )
    _print(table, console)


def _print(table: Table, console: Console) -> None:
    whole = console.measure(table, options=console.options.update(width=MOST)).maximum
    Console(file=console.file, width=max(console.width, LEAST, whole)).print(table)


def verdict(verified: bool | None) -> str:
    """Return the verifier's verdict as a word."""
    return "-" if verified is None else "yes" if verified else "NO"


def gap_text(gap: float) -> str:
    """Return a gap in percent; NaN is a gap that no bound proves."""
    return percent(gap) if gap == gap else "not proven"
