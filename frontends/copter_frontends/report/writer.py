"""The report: Parquet files, plots as PNG, and one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from copter.figures import percent, seconds, times
from copter_frontends.report.charts import charts_of
from copter_frontends.report.extras import check_extras
from copter_frontends.report.page import write_page
from copter_frontends.report.parquet import write_tables
from copter_frontends.report.table import headline, notes, number
from copter_frontends.simulator import SimulationResult

TEMPLATE = "report.html"


def write_report(
    result: SimulationResult,
    directory: str | Path,
    summary: Mapping[str, Any],
    facts: Mapping[str, str] | None = None,
    comparison: Sequence[Mapping[str, Any]] = (),
) -> Path:
    """Write ``rounds.parquet``, ``jobs.parquet``, a PNG for each plot, and ``report.html``.

    Parameters
    ----------
    result : SimulationResult
    directory : path
        Folder; made if it does not exist. Files of these names are replaced.
    summary : mapping
        The object of ``copter simulate --json``.
    facts : mapping of str to str, optional
        Description of the run.
    comparison : sequence of mappings
        Rows of a comparison with HiGHS: ``round``, ``variables``, ``copter_s``, ``highs_warm_s``, ``highs_cold_s``,
        ``times``, ``objective_rel_diff``; missing figures are None.

    Returns
    -------
    Path
        Path of the page.

    Raises
    ------
    MissingExtraError
        If pyarrow, matplotlib or jinja2 is not installed.
    """
    check_extras()
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    write_tables(result, folder)
    return write_page(
        TEMPLATE,
        charts_of(result, comparison),
        folder,
        summary=summary,
        facts=dict(facts or {}),
        cards=cards_of(summary),
        figures=headline(summary),
        notes=notes(summary),
        stages=[(name, summary[f"{name}_s"]) for name in ("round", "edit", "solve", "shim", "place")],
        comparison=list(comparison),
        skipped=result.skipped[:20],
        skipped_count=len(result.skipped),
    )


def _arrived(summary: Mapping[str, Any]) -> int:
    """Return the number of jobs submitted before the run's end."""
    return int(summary.get("jobs_arrived", summary["jobs_submitted"]))


def cards_of(summary: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the headline figures: (name, figure, remark)."""
    round_s, gap = summary["round_s"], summary["gap"]
    cards = [
        ("Round time", seconds(round_s["p50"]), f"p99 {seconds(round_s['p99'])}"),
        ("Gap", percent(gap["p50"]), f"largest {percent(gap['max'])}"),
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
                f"{times(ratio)}×",
                "median of the times in the table below",
            ),
        )
    return cards
