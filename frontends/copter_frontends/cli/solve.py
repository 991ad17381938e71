"""``copter solve``."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any

import click

from copter_frontends.cli.output import FiniteRange, InputError, complain, foreign_prints_on_stderr, print_json

if TYPE_CHECKING:
    from copter import IntegerSolution, LinearProgram, Settings, Solution

SHIM_NAMES = ("rounding", "dive", "exact")
"""Those of :func:`copter.solve_integer`, here so that ``--help`` imports nothing."""

_POSITIVE = FiniteRange(min=0, min_open=True)

# Whose point, objective and bound mean nothing.
_WITHOUT_VALUE = ("primal_infeasible", "dual_infeasible")
_FAILED = ("numerical_error", "interrupted")


@click.command()
@click.argument("file", type=click.Path())
@click.option("--tolerance", type=_POSITIVE, default=1e-6, show_default=True, help="Of residuals and gap.")
@click.option("--time-limit", type=_POSITIVE, help="Seconds  [default: none]")
@click.option("--integer", is_flag=True, help="Find a point with whole integer columns; without it they are relaxed.")
@click.option(
    "--shim",
    type=click.Choice(SHIM_NAMES),
    default="dive",
    show_default=True,
    help="With --integer: round the relaxation, search, or branch and bound by HiGHS.",
)
@click.option("--threads", type=click.IntRange(min=1), help="Threads of the solver  [default: all]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, the last line of stdout, and no table.")
def solve(
    file: str,
    tolerance: float,
    time_limit: float | None,
    integer: bool,
    shim: str,
    threads: int | None,
    as_json: bool,
) -> int:
    """Solve the linear program in FILE (.mps or .mps.gz).

    The objective includes the file's constant. A bound is printed only if it is certified: proven from prices, with
    every rounding accounted for. Exit code 0 if there is an answer (infeasible, unbounded and out of time are answers),
    1 if there is none, 2 for bad input.
    """
    lp = _read(file)
    settings = _settings(tolerance, time_limit, threads)
    started = time.perf_counter()
    if integer:
        import copter

        with foreign_prints_on_stderr():
            found = copter.solve_integer(lp, shim, time_limit, settings)
        summary = integer_summary_of(file, lp, found)
    else:
        summary = summary_of(file, lp, _solve(lp, settings), time.perf_counter() - started)
    if as_json:
        print_json(summary)
    else:
        _print_table(summary)
    return 1 if summary["status"] in _FAILED else 0


def summary_of(file: str, lp: LinearProgram, solution: Solution, seconds: float) -> dict[str, Any]:
    """The object that ``--json`` prints."""
    residuals = solution.residuals
    known = solution.status.value not in _WITHOUT_VALUE
    certified = known and solution.bound_is_certified
    return {
        "status": solution.status.value,
        "objective": solution.objective if known else None,
        "bound": solution.bound if certified else None,
        "gap": solution.gap if certified or solution.status.value == "optimal" else None,
        "primal_residual": residuals.primal if known else None,
        "dual_residual": residuals.dual if known else None,
        "max_violation": residuals.primal_absolute if known else None,
        "iterations": solution.iterations,
        "seconds": seconds,
        **_facts(file, lp),
    }


def integer_summary_of(file: str, lp: LinearProgram, found: IntegerSolution) -> dict[str, Any]:
    """The object that ``--json`` prints for an integer point; residuals are the point's."""
    from numpy import zeros

    from copter.testing import check

    known = found.x is not None
    judged = None if found.x is None else check(lp, found.x, zeros(lp.shape[0]))
    return {
        "status": found.status.value,
        "objective": found.objective if known else None,
        "bound": found.bound if found.bound_is_certified else None,
        "gap": found.gap if known and (found.bound_is_certified or found.status.value == "optimal") else None,
        "primal_residual": None if judged is None else judged.primal,
        "dual_residual": None,
        "max_violation": None if judged is None else judged.primal_absolute,
        "iterations": found.relaxations,
        "seconds": found.solve_time_s,
        "found_by": found.found_by or None,
        **_facts(file, lp),
    }


def _facts(file: str, lp: LinearProgram) -> dict[str, Any]:
    """What the program is."""
    return {
        "file": file,
        "name": lp.name,
        "sense": lp.sense,
        "rows": lp.shape[0],
        "columns": lp.shape[1],
        "nonzeros": int(lp.A.nnz),
        "integer_columns": int(lp.integrality.sum()),
    }


def _read(file: str) -> LinearProgram:
    """The program; bad input is exit code 2, what the reader warns of is a line on stderr."""
    import copter

    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lp = copter.read_mps(file)
    except copter.CopterError as error:
        raise InputError(str(error)) from error
    for warning in caught:
        complain(str(warning.message))
    return lp


def _settings(tolerance: float, time_limit: float | None, threads: int | None) -> Settings:
    import copter

    try:
        return copter.Settings(
            tolerance=tolerance,
            absolute_tolerance=tolerance,
            time_limit_s=float("inf") if time_limit is None else time_limit,
            threads=threads or 0,
        )
    except copter.SettingsError as error:
        raise InputError(str(error)) from error


def _solve(lp: LinearProgram, settings: Settings) -> Solution:
    import copter

    return copter.solve(lp, settings)


def _print_table(summary: dict[str, Any]) -> None:
    """The same figures for people."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from copter_frontends.report.table import number
    from copter_frontends.report.table import seconds as time_text

    table = Table(box=box.SIMPLE_HEAD, title=summary["name"] or summary["file"], title_justify="left")
    table.add_column("figure")
    table.add_column("value", justify="right")
    shape = f"{summary['rows']:,} x {summary['columns']:,}, {summary['nonzeros']:,} nonzeros"
    if summary["integer_columns"]:
        shape += f", {summary['integer_columns']:,} integer"
    table.add_row("program", f"{summary['sense']}, {shape}")
    table.add_row("status", summary["status"])
    table.add_row("objective", number(summary["objective"], "{:.12g}"))
    table.add_row("bound", "none certified" if summary["bound"] is None else number(summary["bound"], "{:.12g}"))
    for key in ("gap", "primal_residual", "dual_residual", "max_violation"):
        table.add_row(key.replace("_", " "), number(summary[key], "{:.1e}"))
    if summary.get("found_by"):
        table.add_row("found by", summary["found_by"])
    table.add_row("iterations", number(summary["iterations"], "{:,}"))
    table.add_row("time", time_text(summary["seconds"]))
    Console().print(table)
