"""``copter compare``: the same jobs through several policies, side by side."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from copter_frontends.cli.examples import meant
from copter_frontends.cli.habits import is_quiet
from copter_frontends.cli.options import SimulateOptions, own_tape
from copter_frontends.cli.output import complain, print_json
from copter_frontends.cli.problems import WithProblems, problem_commands
from copter_frontends.cli.simulate import simulate
from copter_frontends.policies.registry.names import DEADLINE_NAMES, POLICY_NAMES

OWN_TO_SIMULATE = ("policy", "compare", "compare_every", "compare_time_limit", "save", "save_every", "what_if")
"""Options that only ``copter simulate`` has: policy, comparison solver, saved run."""


def _names(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Return the names of a list, each known and unique; raises UsageError otherwise."""
    if value is None:
        raise click.UsageError("name the policies to compare: copter compare --policies sia,fifo")
    names = tuple(name.strip() for name in value.split(",") if name.strip())
    unknown = [name for name in names if name not in POLICY_NAMES]
    if unknown:
        near = meant(unknown[0], POLICY_NAMES)
        raise click.BadParameter(f"there is no policy {unknown[0]!r}{near} `copter simulate --help` lists them")
    twice = [name for name in names if names.count(name) > 1]
    if twice or not names:
        raise click.BadParameter(f"{twice[0]!r} is named twice" if twice else "name at least one policy")
    return names


def _shared_options() -> list[click.Parameter]:
    """Return the options that mean the same as in ``copter simulate``, as the same objects."""
    return [parameter for parameter in simulate.params if parameter.name not in OWN_TO_SIMULATE]


def _defaults_of_the_others() -> dict[str, Any]:
    """Return the defaults of the options that only `simulate` has."""
    given = simulate.make_context("simulate", [POLICY_NAMES[0]]).params
    return {name: given[name] for name in OWN_TO_SIMULATE}


def _apart(asked: SimulateOptions, name: str) -> SimulateOptions:
    """Return the options with the run's own folder and tape, named after the run."""
    out = None if asked.out is None else os.path.join(asked.out, name)
    return replace(asked, out=out, tape=None if asked.tape is None else own_tape(asked.tape, name))


def _simulated(asked: SimulateOptions) -> tuple[dict[str, Any], dict[str, float]]:
    """Run one policy; returns the summary, and the hours of every completed job."""
    from copter_frontends.cli.run import Run  # imported late, as in _run
    from copter_frontends.cli.running import carry_on
    from copter_frontends.simulator.paired import completed_h

    outcome = carry_on(Run.read(asked), asked.tape)
    return outcome.summary, completed_h(outcome.result.jobs)


def _run(
    policies: tuple[str, ...], ray: str | None = None, seeds: int = 1, report: str | None = None, **options: Any
) -> int:
    """Simulate the same jobs under several policies and set the figures side by side."""
    shared = {**_defaults_of_the_others(), **options, "deadlines": any(name in DEADLINE_NAMES for name in policies)}
    first = SimulateOptions.of(**{**shared, "policy": policies[0]})
    asked = [replace(first, policy=name, seed=first.seed + k) for k in range(seeds) for name in policies]
    asked[0].check(alone=False)
    # Imported late, as in simulate.py, to save `--help` 2 s.
    from rich.console import Console

    from copter_frontends.cli.destinations import prepare_report
    from copter_frontends.cli.interruption import exit_code_of
    from copter_frontends.cli.over_ray import gathered
    from copter_frontends.report.comparison import ComparedRun, comparison_page
    from copter_frontends.report.table import print_side_by_side

    if report is not None:
        prepare_report(report)
    names = [each.policy if seeds == 1 else f"{each.policy}-{each.seed}" for each in asked]
    asked = [_apart(each, name) for each, name in zip(asked, names, strict=True)]
    found = [] if ray is None else gathered(ray, _simulated, asked, "policies", names)
    from copter.storage.inputs import read_once  # late, as in simulate.py: --help loads nothing of the engine

    with read_once():  # the same files for all, even if one is replaced meanwhile
        for each in asked[len(found) :]:
            found.append(_simulated(each))
            if found[-1][0]["interrupted"] is not None:
                complain(f"policies that were not simulated: {len(asked) - len(found)}")
                break
    summaries = [summary for summary, _ in found]
    code = exit_code_of(summaries[-1])
    lengths = {each["policy"]: each["simulated_h"] for each in summaries}
    if asked[0].rounds is not None and len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} {hours:.4g} h" for name, hours in lengths.items())
        complain(f"so many rounds are not as long for each policy ({told}): take --hours, or one --round-s for all")
    if report is not None:
        page = comparison_page([ComparedRun(*each) for each in found], shlex.join(["copter", *sys.argv[1:]]))
        Path(report).write_text(page, encoding="utf-8")
        complain(f"report: {report}")
    if asked[0].as_json:
        print_json({"policies": summaries})
    elif not is_quiet():
        for k in range(0, len(summaries), len(policies)):
            print_side_by_side(summaries[k : k + len(policies)], Console())
    return code


compare = WithProblems(
    "compare",
    callback=_run,
    params=[
        click.Option(
            ["--policies"],
            callback=_names,
            metavar="NAME,NAME,...",
            help="Policies to compare, separated by commas.",
        ),
        click.Option(
            ["--ray"],
            metavar="ADDRESS|local",
            help="Run policies as tasks of this Ray cluster (auto: the running one), or of one started here (local).",
        ),
        click.Option(
            ["--seeds"],
            type=click.IntRange(1, 1000),
            default=1,
            show_default=True,
            help="Number of seeds, from --seed on; each is simulated under all policies.",
        ),
        click.Option(
            ["--report"],
            type=click.Path(dir_okay=False),
            help="HTML file for figures, and for differences job by job with bootstrap intervals.",
        ),
        *_shared_options(),
    ],
    help=_run.__doc__,
    short_help="Compare policies on the same jobs.",
    epilog="With --out DIR each policy's report is in a folder of its name in DIR; with --tape FILE each has a file of "
    "its own, with its name before the ending; with --seeds the names have the seed, too. `copter compare traffic`, "
    "`shards` and `placement` set schemes side by side: see their --help.",
)
"""The command; each run equals ``copter simulate`` with the same options."""

compare.problems = problem_commands(several=True)
