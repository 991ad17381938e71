"""``copter doctor``."""

from __future__ import annotations

import click

from copter_frontends.cli.output import print_json


@click.command(short_help="Check this installation.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, the last line of stdout, and no table.")
def doctor(as_json: bool) -> int:
    """Check this installation: versions, threads, OpenMP, instruction set, the speed of a small solve.

    Prints a line for each, with advice if something could be better. Exit code 0 if all is well, 1 if something is
    broken.
    """
    from copter.testing.doctor import examine, main

    if not as_json:
        return main()
    findings = examine()
    print_json({each.name: {"found": each.found, "advice": each.advice, "well": each.well} for each in findings})
    return 0 if all(each.well for each in findings) else 1
