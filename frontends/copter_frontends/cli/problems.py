"""``copter simulate traffic|shards|placement|kueue`` and ``copter compare`` of all but the last: their options."""

from __future__ import annotations

from typing import Any

import click

from copter_frontends.cli import placement
from copter_frontends.cli.output import FiniteRange
from copter_frontends.cli.schemes import scheme_option
from copter_frontends.policies.registry.elsewhere import elsewhere
from copter_frontends.policies.registry.network_names import (
    DEMAND_MODELS,
    LOAD_SEQUENCES,
    LOAD_TESTS,
    PATH_RULES,
    PROBLEMS,
    SHARD_COSTS,
    SHARD_SCHEMES,
    TRAFFIC_OBJECTIVES,
    TRAFFIC_SCHEMES,
    TRAFFIC_STREAMS,
)

KUEUE_TEST = "copter_serve.commands.load_tests:run_kueue"

_COUNT = click.IntRange(min=1)
_FROM_ZERO = click.IntRange(min=0)
_POSITIVE = FiniteRange(min=0, min_open=True)


class WithProblems(click.Command):
    """A command whose first argument may name another problem with its own command."""

    problems: dict[str, click.Command]

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Return the context of this command or of the problem's command."""
        if args and args[0] in self.problems:
            return self.problems[args[0]].make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


def _shared() -> list[click.Parameter]:
    """Return the options that both problems have."""
    return [
        click.Option(["--rounds"], type=_COUNT, default=20, show_default=True, help="Simulated rounds."),
        click.Option(
            ["--warmup-rounds"],
            type=_FROM_ZERO,
            default=0,
            show_default=True,
            help="First rounds, simulated and not measured.",
        ),
        click.Option(
            ["--seed"], type=_FROM_ZERO, help="Seed of the changes between rounds  [default: the published one]"
        ),
        click.Option(["--deadline"], type=_POSITIVE, help="Seconds for every plan  [default: none]"),
        click.Option(["--threads"], type=_COUNT, help="Threads of the solver  [default: all]"),
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


def _traffic_options(several: bool) -> list[click.Parameter]:
    choice = click.Choice
    return [
        scheme_option("traffic", TRAFFIC_SCHEMES, several),
        click.Option(
            ["--network"], default="random-30", show_default=True,
            help="Network: a published topology (GtsCe, UsCarrier, Cogentco, Kdl), random-N, asn-N, sample, or a file.",
        ),
        click.Option(
            ["--capacity"], type=_POSITIVE, default=1000.0, show_default=True,
            help="Capacity of links without one.",
        ),
        click.Option(
            ["--model"], type=choice(DEMAND_MODELS), default="gravity", show_default=True,
            help="Model of the demands.",
        ),
        click.Option(["--scale"], type=_POSITIVE, help="Factor on the demands  [default: 64; 1 for measured ones]"),
        click.Option(["--matrix-seed"], type=_FROM_ZERO, default=0, show_default=True, help="Seed of the demands."),
        click.Option(["--matrices"], type=click.Path(), help="File of measured demand matrices, one a round."),
        click.Option(
            ["--unit"], type=_POSITIVE, default=1.0, show_default=True,
            help="Unit of that file, in the network's unit.",
        ),
        click.Option(
            ["--stream"], type=choice(TRAFFIC_STREAMS), default="perturbed", show_default=True,
            help="Changes between rounds.",
        ),
        click.Option(
            ["--objective"], type=choice(TRAFFIC_OBJECTIVES), default="total", show_default=True,
            help="Objective of the flows.",
        ),
        click.Option(
            ["--paths", "rule"], type=choice(PATH_RULES), default="disjoint", show_default=True,
            help="Rule for the paths of a pair.",
        ),
        click.Option(
            ["--most-paths", "most"], type=click.IntRange(1, 64), default=4, show_default=True,
            help="Most paths of a pair.",
        ),
        click.Option(["--cache"], type=click.Path(file_okay=False), help="Folder in which path sets are kept."),
        click.Option(
            ["--interval"], type=_POSITIVE,
            help="Seconds of a round; during a slower solve the old flows remain.",
        ),
        click.Option(
            ["--carried"], type=FiniteRange(min=0, max=1), default=0.0, show_default=True,
            help="Share of unmet demand that is added to the next round's.",
        ),
        click.Option(
            ["--client-split"], type=FiniteRange(min=0, max=100), default=0.75, show_default=True,
            help="Pieces that POP's splitting adds, as a share of the demands: 0.75 as published, 0 for none.",
        ),
        *([] if several else _router_options()),
        *_shared(),
    ]  # fmt: skip


def _router_options() -> list[click.Parameter]:
    return [
        click.Option(
            ["--splits"], type=click.Path(dir_okay=False),
            help="CSV file for the last round's flows, as integer weights of paths for routers.",
        ),
        click.Option(["--buckets"], type=_COUNT, default=64, show_default=True, help="Sum of a pair's weights."),
    ]  # fmt: skip


def _number_or_file(context: click.Context, parameter: click.Parameter, value: str | None) -> float | str | None:
    """Return a positive number, or the path of a file."""
    if value is None:
        return None
    try:
        number = float(value)
    except ValueError:
        return value
    if not 0.0 < number < float("inf"):
        raise click.BadParameter(f"{value} is not a number above 0")
    return number


def _round_and_server(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> dict[int, int]:
    """Return servers by round; every round has at most one."""
    found: dict[int, int] = {}
    for each in value:
        left, colon, right = each.partition(":")
        if not (colon and left.isdecimal() and right.isdecimal()):
            raise click.BadParameter(f"{each!r} is not ROUND:SERVER, both counted from 0")
        if int(left) in found:
            raise click.BadParameter(f"round {left} is named twice")
        found[int(left)] = int(right)
    return found


def _shard_options(several: bool) -> list[click.Parameter]:
    return [
        scheme_option("shards", SHARD_SCHEMES, several),
        click.Option(["--shards"], type=_COUNT, default=1024, show_default=True, help="Number of shards."),
        click.Option(["--servers"], type=_COUNT, default=128, show_default=True, help="Number of servers."),
        click.Option(["--replicas"], type=_COUNT, default=1, show_default=True, help="Fewest copies of a shard."),
        click.Option(
            ["--memory"], callback=_number_or_file, metavar="NUMBER|FILE",
            help="Memory of a server, in the unit of --sizes, or a file with one number each  [default: 16 a replica]",
        ),
        click.Option(["--sizes"], type=click.Path(), help="File of the shards' sizes  [default: 1 each]"),
        click.Option(
            ["--cost"], type=click.Choice(SHARD_COSTS), default="unit", show_default=True, help="Cost of a new copy."
        ),
        click.Option(
            ["--loads-file"], type=click.Path(),
            help="File of measured loads, one line a round, instead of --loads.",
        ),
        click.Option(
            ["--lose"], multiple=True, callback=_round_and_server, metavar="ROUND:SERVER",
            help="Lose a server before a round, both counted from 0. May be given again.",
        ),
        click.Option(
            ["--back"], multiple=True, callback=_round_and_server, metavar="ROUND:SERVER",
            help="Restore a lost server, empty, before a round. May be given again.",
        ),
        click.Option(["--band"], type=FiniteRange(min=0, max=1, min_open=True, max_open=True), default=0.05,
                     show_default=True, help="Largest deviation from the mean load, as a share of it."),
        click.Option(
            ["--loads"], type=click.Choice(LOAD_SEQUENCES), default="stateless", show_default=True,
            help="Sequence of loads.",
        ),
        click.Option(
            ["--time-limit"], type=_POSITIVE, default=600.0, show_default=True,
            help="Seconds of HiGHS for each program.",
        ),
        *_shared(),
    ]  # fmt: skip


def _run_traffic(**options: Any) -> int:
    """Simulate traffic engineering on a network, round by round."""
    from copter_frontends.cli.problem_runs import run_traffic  # imported late: `--help` need not load the engine

    return run_traffic(options)


def _run_shards(**options: Any) -> int:
    """Simulate the load balancing of shards on servers, round by round."""
    from copter_frontends.cli.problem_runs import run_shards  # imported late: `--help` need not load the engine

    return run_shards(options)


def _run_kueue(**options: Any) -> int:
    """Admit the workloads of Kueue's scheduler performance test, moment by moment, beside bounds on any scheduler."""
    return int(elsewhere(KUEUE_TEST)(options))


def _kueue_command() -> click.Command:
    params: list[click.Parameter] = [
        click.Option(
            ["--test"], default=LOAD_TESTS[0], show_default=True, metavar="NAME|FILE",
            help=f"Test: {', '.join(LOAD_TESTS)}, or a generator file of Kueue's.",
        ),
        click.Option(["--threads"], type=_COUNT, help="Threads of the solver  [default: all]"),
        click.Option(
            ["--tape"], type=click.Path(dir_okay=False),
            help="Record the rounds here, for `copter replay` and `verify`.",
        ),
        click.Option(
            ["--json", "as_json"], is_flag=True,
            help="Print one JSON object, the last line of stdout, and no table.",
        ),
    ]  # fmt: skip
    return click.Command("kueue", callback=_run_kueue, params=params, help=_run_kueue.__doc__)


def problem_commands(several: bool) -> dict[str, click.Command]:
    """Return the commands of the problems, for one scheme or for `several` side by side."""
    one = {} if several else {"kueue": _kueue_command()}
    return one | {
        name: click.Command(name, callback=run, params=options(several), help=run.__doc__)
        for name, run, options in zip(
            PROBLEMS,
            (_run_traffic, _run_shards, placement.run),
            (_traffic_options, _shard_options, placement.placement_options),
            strict=True,
        )
    }
