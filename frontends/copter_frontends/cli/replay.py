"""``copter replay``: the rounds of a tape again, by copter and by other solvers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from copter_frontends.cli.examples import meant
from copter_frontends.cli.habits import is_quiet
from copter_frontends.cli.output import FiniteRange, InputError, complain, print_json
from copter_frontends.cli.pulse import told

PEER_NAMES = (
    *("highs", "glop", "pdlp", "soplex", "clarabel", "columns", "columns-glop"),
    *("gurobi", "cplex", "copt"),
)
"""The names in :data:`copter_frontends.replay.peers.PEERS`, repeated here so that ``--help`` imports nothing."""

KINDS = (".svg", ".png", ".pdf")
_POSITIVE = FiniteRange(min=0, min_open=True)


def _rounds(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, float]:
    """Return (first, last) from A:B, either of which may be missing."""
    if value is None:
        return 0, math.inf
    first, colon, last = value.partition(":")
    try:
        numbers = int(first or 0), (int(last) if last else math.inf) if colon else int(first) + 1
    except ValueError:
        raise click.BadParameter(f"{value!r} is not A:B, two numbers of rounds") from None
    if not 0 <= numbers[0] < numbers[1]:
        raise click.BadParameter(f"{value!r} names no round")
    return numbers


def _peers(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    """Return the names of a list; raises BadParameter for an unknown one."""
    names = tuple(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))
    for name in names:
        if name not in PEER_NAMES:
            raise click.BadParameter(
                f"unknown peer {name!r}{meant(name, PEER_NAMES)} there are {', '.join(PEER_NAMES)}"
            )
    return names


def _picture(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Return a file name whose ending is a kind of picture; checked before the rounds are played."""
    if value is not None and Path(value).suffix not in KINDS:
        raise click.BadParameter(f"{value!r} must end in one of {', '.join(KINDS)}")
    return value


@click.command(short_help="Replay a tape with copter and other solvers.")
@click.argument("file", type=click.Path())
@click.option("--method", help="How copter solves linear programs (Settings.method)  [default: as recorded]")
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    help="Threads of copter, and of peers that can use several  [default: as recorded; the peers' own]",
)
@click.option(
    "--deadline-s",
    type=FiniteRange(min=0),
    help="Seconds for each of copter's rounds, 0 for no deadline  [default: as recorded]",
)
@click.option(
    "--rounds",
    callback=_rounds,
    metavar="A:B",
    help="Count rounds A to B - 1; every solver solves the earlier ones too  [default: all]",
)
@click.option(
    "--start",
    type=click.Choice(["recorded", "nothing"]),
    help="What copter begins with: the recorded solution, or nothing, as peers do  [default: nothing with --peers]",
)
@click.option(
    "--peers",
    default="",
    callback=_peers,
    metavar="NAME,...",
    help=f"Other solvers, separated by commas: {', '.join(PEER_NAMES)}; columns is column generation over HiGHS.",
)
@click.option(
    "--peer-time-limit", type=_POSITIVE, default=60.0, show_default=True, help="Seconds for each solve of a peer."
)
@click.option(
    "--peer-memory", type=_POSITIVE, metavar="GIB", help="GiB of address space of a peer  [default: the machine's]"
)
@click.option(
    "--peer-budget",
    type=_POSITIVE,
    metavar="SECONDS",
    help="Seconds for all rounds of a peer, though not before 20 counted rounds of under 10 s  [default: no limit]",
)
@click.option(
    "--clock",
    type=click.Choice(["wall", "processor"]),
    default="wall",
    show_default=True,
    help="Time that is taken: on a machine that other work shares, processor time on one thread.",
)
@click.option(
    "--picture",
    callback=_picture,
    type=click.Path(dir_okay=False),
    help="File for a picture of the rounds' times (.svg, .png or .pdf).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, the last line of stdout, and no table.")
def replay(
    file: str,
    method: str | None,
    threads: int | None,
    deadline_s: float | None,
    rounds: tuple[int, float],
    start: str | None,
    peers: tuple[str, ...],
    peer_time_limit: float,
    peer_memory: float | None,
    peer_budget: float | None,
    clock: str,
    picture: str | None,
    as_json: bool,
) -> int:
    """Replay the rounds of the tape FILE with copter and with other solvers (peers), each in its own process.

    All solvers begin with nothing: the first solve is "cold", is printed apart, and is in no quantile and no ratio.
    Edits and solve of a round are timed separately; a peer's program is edited by the peer's own calls. Every answer of
    copter is checked as by `copter verify`, every point of a peer on its program. A peer that crashes or runs out of
    time or memory gets a line that says so.

    Exit code 0 if copter replayed all rounds and every answer passed, 1 if not, 2 for an unusable tape.
    """
    from rich.console import Console

    from copter.runtime.errors import SettingsError, SnapshotError
    from copter.runtime.settings import Settings
    from copter.storage.tape import TapeReader
    from copter_frontends.replay import runs, tables
    from copter_frontends.replay.peers import PEERS, installed

    settings: dict[str, Any] = {}
    if method is not None:
        settings["method"] = method
    if threads is not None:
        settings["threads"] = threads
    at = ["the tape is being checked"]
    with told(lambda: f"replay: {at[0]}"):
        try:
            Settings(**settings)
            reader, begun = TapeReader(file), 0
            for record in reader:  # the whole tape is checked before any round is replayed
                begun = record.round
            if reader.torn is not None:
                complain(f"{file}: cut short in the record at byte {reader.torn}, after round {begun}: it is left out")
            asked = runs.Asked(
                file,
                *rounds,
                settings,
                math.inf if deadline_s == 0 else deadline_s,
                threads,
                peer_time_limit,
                peer_memory,
                math.inf if peer_budget is None else peer_budget,
                from_nothing=start == "nothing" or (start is None and bool(peers)),
                processor=clock == "processor",
                heard=lambda solver, rounds: at.__setitem__(0, f"{solver}, {rounds} rounds"),
            )
            done = [runs.run_copter(asked)]
            if not done[0].rows and done[0].ended is None:
                raise SnapshotError(f"{file}: there is no round that counts")
        except (SnapshotError, SettingsError) as error:
            raise InputError(str(error)) from None
        for name in peers:
            for way in PEERS[name][1]:
                if installed(name):
                    done.append(runs.run_peer(way, asked))
                else:
                    done.append(runs.Run(way, [], f"not installed: it needs the package {PEERS[name][0]}"))
    summaries = [{**runs.summary(run), **runs.compared(run, done[0]).as_dict()} for run in done]
    if as_json:
        print_json({"tape": file, "solvers": [{**s, "by_round": r.rows} for s, r in zip(summaries, done, strict=True)]})
    elif not is_quiet():
        console = Console()
        tables.print_rounds(done[0], console)
        tables.print_sums(summaries, console)
    if picture is not None:
        from copter_frontends.replay.picture import draw

        try:
            draw(done, picture, Path(file).name)
        except ImportError:
            raise InputError("--picture needs matplotlib: pip install matplotlib") from None
        except (OSError, ValueError) as error:
            raise InputError(f"--picture: {error}") from None
    for row in done[0].rows:
        for fault in row["faults"] or ():
            complain(f"{file}: round {row['round']} is rejected: {fault}")
    if done[0].ended is not None:
        complain(f"{file}: copter: {done[0].ended}")
    return 1 if done[0].ended is not None or any(row["verified"] is False for row in done[0].rows) else 0
