"""``copter simulate placement`` and ``copter compare placement``: their options and runs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from typing import Any

import click

from copter_frontends.cli.output import FiniteRange, InputError, complain, foreign_prints_on_stderr
from copter_frontends.cli.schemes import scheme_option
from copter_frontends.policies.registry.network_names import PLACEMENT_SCHEMES

COLUMNS = (
    ("admitted worth", "admitted_worth", "{:.2%}"),
    ("worth running", "worth_running", "{:,.0f}"),
    ("servers used", "servers_used", "{:,.1f}"),
    ("fullest dimension", "fullest", "{:.2%}"),
    ("moved", "moved", "{:,}"),
    ("refused", "refused", "{:,}"),
)


def _events(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> dict[int, tuple[int, ...]]:
    """Return servers by round, from ROUND:SERVER or ROUND:FIRST-LAST."""
    found: dict[int, tuple[int, ...]] = {}
    for each in value:
        left, colon, right = each.partition(":")
        first, dash, last = right.partition("-")
        if not (colon and left.isdecimal() and first.isdecimal() and (not dash or last.isdecimal())):
            raise click.BadParameter(f"{each!r} is not ROUND:SERVER or ROUND:FIRST-LAST, all counted from 0")
        servers = range(int(first), int(last or first) + 1)
        if not 0 < len(servers) <= 10_000_000:
            raise click.BadParameter(f"{each!r} names {len(servers)} servers; give FIRST-LAST with the lower one first")
        found[int(left)] = (*found.get(int(left), ()), *servers)
    return found


def _priorities(context: click.Context, parameter: click.Parameter, value: str) -> tuple[int, ...]:
    """Return whole numbers separated by commas."""
    if not all(each.strip().isdecimal() for each in value.split(",")):
        raise click.BadParameter(f"{value!r} is not whole numbers separated by commas, 1,3 say")
    return tuple(int(each) for each in value.split(","))


def placement_options(several: bool) -> list[click.Parameter]:
    """Return the options, for one scheme or for `several` side by side."""
    count, share = click.IntRange(min=1), FiniteRange(min=0, max=1)
    return [
        scheme_option("placement", PLACEMENT_SCHEMES, several, pop=False),
        click.Option(
            ["--servers"],
            type=click.IntRange(1, 10_000_000),
            default=1000,
            show_default=True,
            help="Servers of three generations, 64 to 128 cores (not with --openb).",
        ),
        click.Option(
            ["--load"],
            type=FiniteRange(min=0, max=10, min_open=True),
            help="Asked for, over all there is  [default: 0.95; 1.3 with --openb]",
        ),
        click.Option(
            ["--churn"],
            type=FiniteRange(min=0, max=1, min_open=True),
            default=0.01,
            show_default=True,
            help="Share of the running tasks that end in a round, and of new ones.",
        ),
        click.Option(
            ["--grouped"],
            type=share,
            default=0.1,
            show_default=True,
            help="Share of the tasks that come in groups which repel each other.",
        ),
        click.Option(
            ["--group-limit"],
            type=count,
            default=1,
            show_default=True,
            help="Tasks of a group that may share a server; a zone if there are several.",
        ),
        click.Option(
            ["--zones"], type=count, default=1, show_default=True, help="Zones, in which the servers are in turn."
        ),
        click.Option(
            ["--selective"],
            type=share,
            default=0.0,
            show_default=True,
            help="Share of the tasks that may use one type of server only (not with a trace).",
        ),
        click.Option(
            ["--priorities"],
            callback=_priorities,
            default="1,3",
            show_default=True,
            metavar="NUMBER,...",
            help="Worth of a core for tasks of each priority, the most frequent one first (not with a trace).",
        ),
        click.Option(
            ["--azure"],
            type=click.Path(),
            metavar="FOLDER",
            help="Azure's stream of virtual machines, a round for each five minutes.",
        ),
        click.Option(["--spread"], is_flag=True, help="With --azure: machines of a batch may not share a server."),
        click.Option(
            ["--openb"],
            type=click.Path(),
            metavar="FOLDER",
            help="Alibaba's GPU servers and pods of 2023, as FGD's authors used them: one by one, none ends.",
        ),
        click.Option(
            ["--lose"],
            multiple=True,
            callback=_events,
            metavar="ROUND:SERVER[-LAST]",
            help="Lose servers before a round, counted from 0. May be given again.",
        ),
        click.Option(
            ["--drain"],
            multiple=True,
            callback=_events,
            metavar="ROUND:SERVER[-LAST]",
            help="Let servers take no further tasks. May be given again.",
        ),
        click.Option(
            ["--back"],
            multiple=True,
            callback=_events,
            metavar="ROUND:SERVER[-LAST]",
            help="Bring lost or draining servers back. May be given again.",
        ),
        click.Option(
            ["--migrations"],
            type=share,
            default=0.0,
            show_default=True,
            help="Share of the running tasks that copter may move in a round; then its gap is to a bound with moves.",
        ),
        click.Option(
            ["--move-cost"],
            type=FiniteRange(min=0),
            default=0.0,
            show_default=True,
            help="Worth that each move costs.",
        ),
        click.Option(["--rounds"], type=count, help="Rounds  [default: 50; all of a trace]"),
        click.Option(
            ["--warmup-rounds"],
            type=click.IntRange(min=0),
            default=0,
            show_default=True,
            help="First rounds, simulated and not measured.",
        ),
        click.Option(
            ["--seed"],
            type=click.IntRange(min=0),
            default=0,
            show_default=True,
            help="Seed of everything that is drawn.",
        ),
        click.Option(
            ["--time-limit"],
            type=FiniteRange(min=0, min_open=True),
            default=60.0,
            show_default=True,
            help="Seconds of the MILP in a round.",
        ),
        click.Option(["--threads"], type=count, help="Threads of the solver  [default: all]"),
        click.Option(
            ["--tape"],
            type=click.Path(dir_okay=False),
            help="Record the rounds here, for `copter replay` and `verify`.",
        ),
        click.Option(["--out"], type=click.Path(file_okay=False), help="Folder for plots and report.html."),
        click.Option(
            ["--json", "as_json"], is_flag=True, help="Print one JSON object, the last line of stdout, and no table."
        ),
    ]


def run(**options: Any) -> int:
    """Simulate containers and virtual machines on servers, round by round.

    Tasks need amounts of cores, memory and GPUs; servers of one type and state are one class. The gap is that of the
    round's admitted worth to a proven bound of any plan without migrations.
    """
    # Imported late: `--help` need not load the engine.
    from copter import CopterError
    from copter_frontends.cli.problem_runs import facts, show, taped
    from copter_frontends.placement.servers import make_scheme, simulate_placement

    try:
        workload = _workload(options)
        schemes = [
            make_scheme(
                name,
                workload,
                options["threads"] or 0,
                options["time_limit"],
                options["migrations"],
                options["move_cost"],
            )
            for name in options["schemes"]
        ]
    except CopterError as error:
        raise InputError(str(error)) from error
    failed: CopterError | None = None
    summaries, results = [], []
    try:
        for name, scheme in zip(options["schemes"], schemes, strict=True):
            complain(f"{name}: {len(workload.rounds)} rounds, {scheme.fleet.servers:,} servers")
            with foreign_prints_on_stderr(), taped(options, name):
                result = simulate_placement(name, scheme, workload, options["warmup_rounds"])
            for why, number in result.reasons.items():
                complain(f"{name}: {number:,} tasks refused: {why}")
            for why, number in result.held_up.items():
                complain(f"{name}: {number:,} tasks waited: {why}")
            results.append(result)
            summary = result.summary()
            last = summary["used_last" if workload.one_by_one else "used"]
            known = [each for each in (last[-1:] if workload.one_by_one else last[:2]) if isfinite(each)]
            summaries.append({**summary, "fullest": max(known, default=None)})
    except CopterError as error:  # print the schemes that were run before the error
        failed = error
    if options["out"] is not None and results:
        from copter_frontends.report.networks import write_placement_report  # needs matplotlib, an optional extra

        print(f"report: {write_placement_report(results, options['out'], facts(options))}", file=sys.stderr)
    return show(options, summaries, COLUMNS, workload.name, failed)


def _workload(options: Mapping[str, Any]) -> Any:
    """Return the workload that the options ask for; raises ServerError."""
    from copter_frontends.placement.servers import ServerError, generated, read_azure, read_openb

    if options["azure"] and options["openb"]:
        raise ServerError("--azure and --openb: give one trace")
    if options["azure"]:
        found = read_azure(options["azure"], options["servers"], options["rounds"], options["spread"])
    elif options["openb"]:
        found = read_openb(options["openb"], options["load"] or 1.3, options["seed"])
        found.rounds = found.rounds[: options["rounds"]]
    else:
        found = generated(
            options["servers"],
            options["rounds"] or 50,
            options["load"] or 0.95,
            options["churn"],
            options["grouped"],
            options["seed"],
            options["selective"],
            options["priorities"],
        )
    found.zones, found.most = options["zones"], options["group_limit"]
    servers, rounds = sum(each.count for each in found.types), len(found.rounds)
    for option, what in (("lose", "lost"), ("drain", "drained"), ("back", "back")):
        for at, own in options[option].items():
            if at >= rounds or max(own) >= servers:
                raise ServerError(
                    f"--{option} {at}:{max(own)}: rounds are 0 to {rounds - 1}, servers 0 to {servers - 1}"
                )
            found.rounds[at] = replace(found.rounds[at], **{what: own})
    return found
