"""``copter solve``."""

from __future__ import annotations

import click

from copter_frontends.cli.output import FiniteRange, print_json
from copter_frontends.policies.registry.names import METHOD_CHOICES

SHIM_NAMES = ("rounding", "dive", "exact")
"""The shims of :func:`copter.solve_integer`, repeated here so that ``--help`` imports nothing."""

_POSITIVE = FiniteRange(min=0, min_open=True)

_FAILED = ("numerical_error", "interrupted")


@click.command(short_help="Solve the linear program in a file.")
@click.argument("file", type=click.Path())
@click.option(
    "--tolerance", type=_POSITIVE, default=1e-6, show_default=True, help="Relative tolerance of residuals and gap."
)
@click.option("--time-limit", type=_POSITIVE, help="Seconds for the solve  [default: no limit]")
@click.option("--integer", is_flag=True, help="Keep integer and semi-continuous columns  [default: they are relaxed]")
@click.option(
    "--shim",
    type=click.Choice(SHIM_NAMES),
    default="dive",
    show_default=True,
    help="With --integer: round the relaxation, search, or branch and bound by HiGHS.",
)
@click.option("--threads", type=click.IntRange(min=1), help="Threads of the solver  [default: all]")
@click.option(
    "--method",
    type=click.Choice(METHOD_CHOICES),
    default="auto",
    show_default=True,
    help="How linear programs are solved (Settings.method); basis needs a session.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, the last line of stdout, and no table.")
def solve(
    file: str,
    tolerance: float,
    time_limit: float | None,
    integer: bool,
    shim: str,
    threads: int | None,
    method: str,
    as_json: bool,
) -> int:
    """Solve the linear program in FILE: MPS, or CPLEX's LP format if its name ends in .lp; both may be gzipped.

    `copter solve sample` solves a program that comes with copter. After two seconds and then at intervals, a line on
    stderr reports the progress.

    The objective includes the file's constant. A bound is printed only if it is certified: proven from prices,
    including all rounding errors. Exit code 0 for an answer (infeasible, unbounded and out of time are answers), 1 for
    none, 2 for bad input.
    """
    # Imported late, as in simulate.py: SciPy and the engine take most of a second.
    from copter_frontends.cli.solving import print_table, solve_file

    summary = solve_file(file, tolerance, time_limit, shim if integer else None, threads, method)
    if as_json:
        print_json(summary)
    else:
        print_table(summary)
    return 1 if summary["status"] in _FAILED else 0
