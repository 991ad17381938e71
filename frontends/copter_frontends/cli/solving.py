"""The command ``copter solve``: read a file, solve, print the result."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from copter import (
    CopterError,
    IntegerSolution,
    LinearProgram,
    Settings,
    SettingsError,
    Solution,
    read_lp,
    read_mps,
    solve,
    solve_integer,
    with_record,
)
from copter.problem.figures import percent, seconds
from copter.testing import check
from copter_frontends.cli.habits import is_quiet
from copter_frontends.cli.output import InputError, complain, foreign_prints_on_stderr
from copter_frontends.cli.pulse import Pulse
from copter_frontends.report.table import number
from copter_frontends.vocabulary.samples import PROGRAM, given_or_sample

# Statuses with which point, objective and bound mean nothing.
_WITHOUT_VALUE = ("primal_infeasible", "dual_infeasible")


def solve_file(
    file: str, tolerance: float, time_limit: float | None, shim: str | None, threads: int | None, method: Any = "auto"
) -> dict[str, Any]:
    """Solve the program in a file, as an integer program if a `shim` is given; returns the object of ``--json``."""
    lp = read_program(given_or_sample(file, PROGRAM))
    settings = settings_of(tolerance, time_limit, threads, method)
    if shim is not None:
        with foreign_prints_on_stderr():
            result = solve_integer(lp, shim, time_limit, settings, callback=Pulse().of_search)
        return integer_summary_of(file, lp, result)
    if lp.is_mixed_integer:
        complain(f"{file}: {kinds_of(lp)} columns are relaxed; --integer keeps them")
    started = time.perf_counter()
    try:
        solution = solve(lp, settings, with_record(Pulse().beat))
    except SettingsError as error:  # a method for sessions only
        raise InputError(str(error)) from error
    return summary_of(file, lp, solution, time.perf_counter() - started)


def summary_of(file: str, lp: LinearProgram, solution: Solution, solve_s: float) -> dict[str, Any]:
    """Return the object that ``--json`` prints."""
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
        "seconds": solve_s,
        "relaxed": lp.is_mixed_integer,
        **_facts(file, lp),
    }


def integer_summary_of(file: str, lp: LinearProgram, result: IntegerSolution) -> dict[str, Any]:
    """Return the object that ``--json`` prints for an integer point, with its residuals."""
    known = result.x is not None
    judged = None if result.x is None else check(lp, result.x, np.zeros(lp.shape[0]))
    return {
        "status": result.status.value,
        "objective": result.objective if known else None,
        "bound": result.bound if result.bound_is_certified else None,
        "gap": result.gap if known and (result.bound_is_certified or result.status.value == "optimal") else None,
        "primal_residual": None if judged is None else judged.primal,
        "dual_residual": None,
        "max_violation": None if judged is None else judged.primal_absolute,
        "iterations": result.relaxations,
        "seconds": result.solve_time_s,
        "found_by": result.found_by or None,
        "relaxed": False,
        **_facts(file, lp),
    }


def kinds_of(lp: LinearProgram) -> str:
    """Return how many columns are integer and semi-continuous, in words."""
    counts = {"integer": int(lp.integrality.sum()), "semi-continuous": int((lp.semicontinuous > 0.0).sum())}
    return " and ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)


def _facts(file: str, lp: LinearProgram) -> dict[str, Any]:
    """Return file, name and sizes of the program."""
    return {
        "file": file,
        "name": lp.name,
        "sense": lp.sense,
        "rows": lp.shape[0],
        "columns": lp.shape[1],
        "nonzeros": int(lp.A.nnz),
        "integer_columns": int(lp.integrality.sum()),
        "semicontinuous_columns": int((lp.semicontinuous > 0.0).sum()),
    }


def read_program(file: str) -> LinearProgram:
    """Read the program; invalid input ends with exit code 2, and warnings go to stderr."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lp = read_lp(file) if file.lower().removesuffix(".gz").endswith(".lp") else read_mps(file)
    except CopterError as error:
        raise InputError(str(error)) from error
    for warning in caught:
        complain(str(warning.message))
    return lp


def settings_of(tolerance: float, time_limit: float | None, threads: int | None, method: Any = "auto") -> Settings:
    try:
        return Settings(
            tolerance=tolerance,
            absolute_tolerance=tolerance,
            time_limit_s=float("inf") if time_limit is None else time_limit,
            threads=threads or 0,
            method=method,
        )
    except SettingsError as error:
        raise InputError(str(error)) from error


def print_table(summary: dict[str, Any]) -> None:
    """Print the figures as a table."""
    table = Table(box=box.SIMPLE_HEAD, title=summary["name"] or summary["file"], title_justify="left")
    table.add_column("figure")
    table.add_column("value", justify="right")
    shape = f"{summary['rows']:,} x {summary['columns']:,}, {summary['nonzeros']:,} nonzeros"
    for kind in ("integer", "semicontinuous"):
        if summary[f"{kind}_columns"]:
            shape += f", {summary[f'{kind}_columns']:,} {kind.replace('semi', 'semi-')}"
    if summary["relaxed"]:
        shape += ", relaxed"
    table.add_row("program", f"{summary['sense']}, {shape}")
    table.add_row("status", summary["status"])
    table.add_row("objective", number(summary["objective"], "{:.12g}"))
    table.add_row("bound", "none certified" if summary["bound"] is None else number(summary["bound"], "{:.12g}"))
    table.add_row("gap", percent(summary["gap"]))
    for key in ("primal_residual", "dual_residual", "max_violation"):
        table.add_row(key.replace("_", " "), number(summary[key], "{:.1e}"))
    if summary.get("found_by"):
        table.add_row("found by", summary["found_by"])
    table.add_row("iterations", number(summary["iterations"], "{:,}"))
    table.add_row("time", seconds(summary["seconds"]))
    Console(quiet=is_quiet()).print(table)
