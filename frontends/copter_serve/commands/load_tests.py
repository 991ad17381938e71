"""Execution of ``copter simulate kueue``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from copter import CopterError, Settings
from copter_frontends.cli.habits import is_quiet
from copter_frontends.cli.output import InputError, complain, foreign_prints_on_stderr, print_json
from copter_serve.queues.load_bounds import load_bounds
from copter_serve.queues.load_run import run_load_test
from copter_serve.queues.load_summary import load_summary
from copter_serve.queues.load_test import load_test


def run_kueue(given: Mapping[str, Any]) -> int:
    """Compute the bounds, run the test, print both; returns the exit code."""
    try:
        test = load_test(given["test"])
        complain(f"{test.name}: {test.workloads:,} workloads, {test.queues:,} queues")
        with foreign_prints_on_stderr():
            bounds = load_bounds(test)
            result = run_load_test(test, Settings(threads=given["threads"] or 0), given["tape"])
            summary = load_summary(test, bounds, result)
    except CopterError as error:
        raise InputError(str(error)) from error
    if given["as_json"]:
        print_json(summary)
    else:
        Console(quiet=is_quiet()).print(_table(summary))
    return 0


def _table(summary: Mapping[str, Any]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=summary["test"], title_justify="left", pad_edge=False, show_edge=False)
    for name in ("", "this run", "bound", "Kueue's range"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    usage, ranges = summary["usage"], summary["kueue_ranges"]
    table.add_row("workloads admitted", f"{summary['admitted']:,}", f"{summary['workloads']:,}", "")
    table.add_row("usage of nominal quota", f"{usage['mean']:.2%}", f"{usage['most']:.2%}", _percent(ranges["usage"]))
    table.add_row("end", f"{summary['end_ms']:,.0f} ms", f"{summary['least_end_ms']:,.0f} ms", _ms(ranges["wall_ms"]))
    for each in summary["classes"]:
        least = each["least_mean_ms"]
        table.add_row(
            f"mean wait, {each['class']}", f"{each['mean_ms']:,.1f} ms", "" if least is None else f"{least:,.1f} ms",
            _ms(each["kueue_range_ms"]),
        )  # fmt: skip
    table.add_row("priorities overturned", f"{summary['inversions']}", "0", "")
    table.add_row("solver time", f"{summary['solve_s']:.2f} s", "", "")
    return table


def _percent(value: float | None) -> str:
    return "" if not value else f"{value:.1%}"


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f} ms"
