"""``copter compare``: the same jobs through several policies, side by side."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import click

from copter_frontends.cli.habits import is_quiet
from copter_frontends.cli.options import SimulateOptions, own_tape
from copter_frontends.cli.output import complain, print_json
from copter_frontends.cli.problems import WithProblems, problem_commands
from copter_frontends.cli.simulate import simulate
from copter_frontends.registry.names import DEADLINE_NAMES, POLICY_NAMES

OWN_TO_SIMULATE = ("policy", "compare", "compare_every", "compare_time_limit", "save", "save_every", "what_if")
"""Options of ``copter simulate`` alone: the policy, the other solver, the saved run."""


def _names(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    """The names of a list, each known and named once; BadParameter otherwise."""
    names = tuple(name.strip() for name in value.split(",") if name.strip())
    unknown = [name for name in names if name not in POLICY_NAMES]
    if unknown:
        raise click.BadParameter(f"unknown policy {unknown[0]!r}; there are {', '.join(POLICY_NAMES)}")
    twice = [name for name in names if names.count(name) > 1]
    if twice or not names:
        raise click.BadParameter(f"{twice[0]!r} is named twice" if twice else "name at least one policy")
    return names


def _shared_options() -> list[click.Parameter]:
    """The options of ``copter simulate`` that mean the same here; the very objects, so that they stay the same."""
    return [parameter for parameter in simulate.params if parameter.name not in OWN_TO_SIMULATE]


def _defaults_of_the_others() -> dict[str, Any]:
    """Defaults of the options that only `simulate` has."""
    given = simulate.make_context("simulate", [POLICY_NAMES[0]]).params
    return {name: given[name] for name in OWN_TO_SIMULATE}


def _simulated(asked: SimulateOptions) -> dict[str, Any]:
    """One policy's run, in a task of its own: the summary."""
    from copter_frontends.cli.running import run_simulation  # as late as in _run

    return run_simulation(asked)


def _run(policies: tuple[str, ...], ray: str | None = None, **options: Any) -> int:
    """Simulate the same jobs under several policies and set the figures side by side."""
    shared = {**_defaults_of_the_others(), **options, "deadlines": any(name in DEADLINE_NAMES for name in policies)}
    first = SimulateOptions.of(**{**shared, "policy": policies[0]})
    asked = [replace(first, policy=name) for name in policies]
    asked[0].check(alone=False)
    # Imported late, as in simulate.py: 2 s that `--help` need not take.
    from rich.console import Console

    from copter_frontends.cli.interruption import exit_code_of
    from copter_frontends.cli.over_ray import gathered
    from copter_frontends.cli.running import run_simulation
    from copter_frontends.report.table import print_side_by_side

    asked = [replace(each, out=None if each.out is None else os.path.join(each.out, each.policy)) for each in asked]
    asked = [replace(each, tape=None if each.tape is None else own_tape(each.tape, each.policy)) for each in asked]
    summaries = [] if ray is None else gathered(ray, _simulated, asked, "policies", policies)
    for each in asked[len(summaries) :]:
        summaries.append(run_simulation(each))
        if summaries[-1]["interrupted"] is not None:
            complain(f"policies that were not simulated: {len(asked) - len(summaries)}")
            break
    code = exit_code_of(summaries[-1])
    lengths = {each["policy"]: each["simulated_h"] for each in summaries}
    if asked[0].rounds is not None and len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} {hours:.4g} h" for name, hours in lengths.items())
        complain(f"so many rounds are not as long for each policy ({told}): take --hours, or one --round-s for all")
    if asked[0].as_json:
        print_json({"policies": summaries})
        return code
    if not is_quiet():
        print_side_by_side(summaries, Console())
    return code


compare = WithProblems(
    "compare",
    callback=_run,
    params=[
        click.Option(
            ["--policies"],
            callback=_names,
            required=True,
            metavar="NAME,NAME,...",
            help="Policies by name, separated by commas.",
        ),
        click.Option(
            ["--ray"],
            metavar="ADDRESS|local",
            help="Run the policies as tasks of a Ray cluster (auto: the one that runs here), or of one started here.",
        ),
        *_shared_options(),
    ],
    help=_run.__doc__,
    epilog="With --out DIR each policy's report is in a folder of its name in DIR; with --tape FILE each has a file of "
    "its own, with its name before the ending. `copter compare traffic` and "
    "`copter compare shards` set schemes side by side: see their --help.",
)
"""The command; each run is as ``copter simulate`` with the same options."""

compare.problems = problem_commands(several=True)
