"""What a run prints at its end: one JSON object or a table, of one run, or of one without and with a change."""

from __future__ import annotations

import click
from rich.console import Console

from copter_frontends.cli.habits import is_quiet
from copter_frontends.cli.interruption import exit_code_of
from copter_frontends.cli.options import SimulateOptions
from copter_frontends.cli.output import complain, print_json
from copter_frontends.cli.running import Outcome
from copter_frontends.replay.what_if.change import Change
from copter_frontends.report.table import print_side_by_side, print_summary
from copter_frontends.simulator.paired import Paired, completed_h


def show(asked: SimulateOptions, outcome: Outcome, change: Change | None = None, changed: Outcome | None = None) -> int:
    """Print a run as JSON or, unless output is quiet, as a table; returns the exit code.

    With a what-if change, the run without it and `changed`, the one with it, are printed side by side, and the jobs in
    pairs. The code is 0, or 128 plus the number of the signal that ended the last run.
    """
    before, after = outcome.summary, outcome.summary if changed is None else changed.summary
    if change is None:
        if asked.as_json:
            print_json(before)
        elif not is_quiet():
            print_summary(before, Console())
    elif changed is None:
        complain("the run with the change was not begun")
    else:
        paired = Paired.of(completed_h(outcome.result.jobs), completed_h(changed.result.jobs))
        if asked.as_json:
            print_json({"what_if": change.text, "before": before, "after": after, "jobs": paired.as_dict()})
        elif not is_quiet():
            sides = [{**before, "policy": "before"}, {**after, "policy": "after"}]
            print_side_by_side(sides, Console(), f"{asked.policy}: what if {change.text}")
            click.echo(paired.as_text())
    return exit_code_of(after)
