"""The commands ``copter tape`` and ``copter verify``: describe a tape and check its answers."""

from __future__ import annotations

import json
from typing import Any

import click

from copter_frontends.cli.output import InputError, print_json
from copter_frontends.cli.pulse import told


@click.command(short_help="Check the answers on tapes without a solver.")
@click.argument("files", type=click.Path(), nargs=-1, required=True)
def verify(files: tuple[str, ...]) -> int:
    """Check the answers on the tapes FILES (bounds, points, plans and rays) without using copter's solvers.

    Prints a line for every rejected round and one for each tape. Exit code 0 if all rounds are accepted, 1 if one is
    rejected, 2 for an unusable file. `python -m copter.verify FILE` does the same and needs only NumPy.
    """
    from copter.verify import main

    at = [f"{files[0]} is read"]
    with told(lambda: f"verify: {at[0]}"):
        return main(files, lambda file, rounds: at.__setitem__(0, f"{file}, {rounds} rounds"))


@click.group(short_help="Describe, cut, anonymise or export a tape.")
def tape() -> None:
    """Describe a tape, cut it, make it anonymous, or write one of its programs as MPS."""


@tape.command(short_help="Describe a tape.")
@click.argument("file", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, the last line of stdout, and no table.")
def info(file: str, as_json: bool) -> None:
    """Describe the contents of the tape FILE.

    Every edit is applied and every answer looked at, as for `copter replay` and `copter verify`: exit code 2 for a file
    that one of them cannot use.
    """
    found = _of(file, "described")
    if as_json:
        print_json(found)
        return
    for name, value in found.items():
        click.echo(f"{name}: {json.dumps(value) if isinstance(value, dict) else value}")


@tape.command(short_help="Copy some rounds.")
@click.argument("file", type=click.Path())
@click.argument("out", type=click.Path())
@click.option("--rounds", required=True, metavar="A:B", help="Copy rounds A to B - 1.")
def cut(file: str, out: str, rounds: str) -> None:
    """Copy rounds of the tape FILE to the tape OUT. Unless round A is the first, its sessions start cold there."""
    from copter_frontends.cli.replay import _rounds

    first, last = _rounds(click.get_current_context(), click.Option(["--rounds"]), rounds)
    _of(file, "cut", out, first, last)


@tape.command(short_help="Replace names by numbers.")
@click.argument("file", type=click.Path())
@click.argument("out", type=click.Path())
def anonymise(file: str, out: str) -> None:
    """Copy the tape FILE to OUT with numbers instead of the names of requests and resources; figures stay the same."""
    _of(file, "anonymised", out)


@tape.command(short_help="Write a round's program as MPS.")
@click.argument("file", type=click.Path())
@click.argument("out", type=click.Path())
@click.option("--round", "number", type=click.IntRange(min=0), required=True, help="Number of the round.")
def mps(file: str, out: str, number: int) -> None:
    """Write the program of one round of the tape FILE to the MPS file OUT."""
    _of(file, "as_mps", out, number)


def _of(file: str, name: str, *arguments: Any) -> Any:
    """Call a function of :mod:`copter.session.tape_tools` on a file; raises InputError for an unusable file."""
    from copter.runtime.errors import CopterError
    from copter.session import tape_tools

    try:
        return getattr(tape_tools, name)(file, *arguments)
    except CopterError as error:
        raise InputError(str(error)) from None
