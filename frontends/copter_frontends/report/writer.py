"""The report: Parquet files, plots as PNG, and one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from copter_frontends.report.charts import charts_of
from copter_frontends.report.extras import check_extras
from copter_frontends.report.page import write_page
from copter_frontends.report.parquet import write_tables
from copter_frontends.report.table import cards_of, headline, notes
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
    charts = charts_of(result, comparison)
    return write_page(
        TEMPLATE,
        charts,
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
