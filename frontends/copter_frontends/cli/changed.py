"""A simulation with a change and without it: ``copter simulate --what-if``."""

from __future__ import annotations

from dataclasses import replace

import click
from rich.console import Console

from copter.storage.inputs import read_once
from copter_frontends.cli.habits import is_quiet
from copter_frontends.cli.interruption import exit_code_of
from copter_frontends.cli.options import SimulateOptions
from copter_frontends.cli.output import InputError, complain, print_json
from copter_frontends.cli.running import run_simulation
from copter_frontends.report.table import print_side_by_side
from copter_frontends.simulator import SimulationResult
from copter_frontends.simulator.paired import Paired, completed_h
from copter_frontends.what_if.change import Change, WhatIfError


def simulate_twice(asked: SimulateOptions) -> int:
    """Simulate without the change, then with it; print both and the jobs in pairs; return the exit code."""
    try:
        change = Change.read(asked.what_if or "")
    except WhatIfError as error:
        raise InputError(str(error)) from error
    results: list[SimulationResult] = []
    if asked.jobs is None and asked.gpus is not None and change.gpus:
        complain("--what-if: the same jobs both times, as many as for the cluster without the change")
    with read_once():  # the same files both times, even if one is replaced meanwhile
        return _both(asked, change, results)


def _both(asked: SimulateOptions, change: Change, results: list[SimulationResult]) -> int:
    """Run both simulations and print what they have told."""
    before = run_simulation(asked, None, results.append)
    if before["interrupted"] is not None:
        complain("the run with the change was not begun")
        return exit_code_of(before)
    after = run_simulation(replace(asked, out=None, save=None, save_every=None, tape=None), change, results.append)
    paired = Paired.of(*(completed_h(each.jobs) for each in results))
    if asked.as_json:
        print_json({"what_if": change.text, "before": before, "after": after, "jobs": paired.as_dict()})
    elif not is_quiet():
        sides = [{**before, "policy": "before"}, {**after, "policy": "after"}]
        print_side_by_side(sides, Console(), f"{asked.policy}: what if {change.text}")
        click.echo(paired.as_text())
    return exit_code_of(after)
