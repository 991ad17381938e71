"""``copter shadow``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from copter_frontends.cli.output import FiniteRange, InputError, complain, print_json

if TYPE_CHECKING:
    from copter_serve.shadow.watch import Read

_POSITIVE = FiniteRange(min=0, min_open=True)
_FILE = click.Path(dir_okay=False)


def shadow_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that every shadow has."""
    for option in reversed((
        click.option("--every", type=_POSITIVE, default=30.0, show_default=True, metavar="SECONDS",
                     help="Seconds between rounds."),
        click.option("--rounds", type=click.IntRange(min=1),
                     help="Number of rounds  [default: 1 for a file, until Ctrl-C for a live cluster]"),
        click.option("--grace", type=FiniteRange(min=0), default=30.0, show_default=True, metavar="SECONDS",
                     help="Seconds that a job may wait before it counts as left waiting."),
        click.option("--tape", type=_FILE, help="Record the rounds here, for `copter replay` and `verify`."),
        click.option("--out", type=_FILE, help="HTML file for the report, written every round."),
        click.option("--port", type=click.IntRange(0, 65535), help="Show the live page on this port of this machine."),
        click.option("--json", "as_json", is_flag=True,
                     help="Print one JSON object, the last line of stdout, and no table."),
    )):  # fmt: skip
        command = option(command)
    return command


@click.command(short_help="Watch another scheduler's cluster; decide nothing.")
@click.option(
    "--kueue", metavar="FILE|URL", help="Kueue's objects: a file, or an API server's address (`kubectl proxy`)."
)
@click.option(
    "--volcano",
    metavar="FILE|URL",
    help="Volcano's queues, pod groups, nodes and pods: a file, or an API server's address.",
)
@click.option("--kai", metavar="FILE|URL", help="KAI's /get-snapshot: a file, or the scheduler's address.")
@click.option(
    "--slurm",
    nargs=2,
    type=_FILE,
    metavar="SQUEUE SINFO",
    help="Files of what squeue --json and sinfo --json print, or of REST's jobs and nodes.",
)
@click.option("--token-file", type=_FILE, help="File with the token for the API server.")
@shadow_options
def shadow(**given: Any) -> int:
    """Watch a cluster of another scheduler, decide nothing, and report what that scheduler leaves unused.

    Give one of --kueue, --volcano, --kai and --slurm. If the source cannot be read, the shadow reports since when it is
    blind, and goes on. `copter slurm shadow` reads a Slurm live.
    """
    # Imported late, as in simulate.py.
    from copter_serve.shadow.sources import reader

    named = [name for name in ("kueue", "volcano", "kai", "slurm") if given[name]]
    if len(named) != 1:
        raise InputError("give one of --kueue, --volcano, --kai and --slurm")
    read, is_live = reader(named[0], given[named[0]], _token(given["token_file"]))
    return watch(read, is_live, given)


def watch(read: Read, is_live: bool, given: dict[str, Any]) -> int:
    """Watch a cluster by a function that reads it, with the options of :func:`shadow_options`; return the exit code."""
    from copter_serve.shadow.live import LivePage
    from copter_serve.shadow.page import shadow_page
    from copter_serve.shadow.watch import Shadow

    rounds = given["rounds"] or (None if is_live else 1)
    if given["tape"] is not None and os.path.exists(given["tape"]):
        raise InputError(f"--tape: {given['tape']} is there already: a tape begins a new file")
    try:
        page = None if given["port"] is None else LivePage(given["port"])
    except OSError as error:
        raise InputError(f"--port {given['port']}: {error.strerror or error}") from error
    if page is not None:
        complain(f"the live page is at {page.address}")
    told: set[str] = set()
    done = 0
    try:
        with Shadow(read, given["tape"], given["grace"], every_s=given["every"]) as watching:
            while True:
                line = watching.look()
                found = watching.findings
                for each in [line, *([] if found is None else found.skipped)]:
                    if each and (each is line or each not in told):
                        told.add(each)
                        complain(each)
                if given["out"] is not None:
                    _write(given["out"], shadow_page(watching))
                if page is not None:
                    page.show(watching)
                done += 1
                if rounds is not None and done >= rounds:
                    break
                time.sleep(given["every"])
    except KeyboardInterrupt:
        complain("stopped")
    finally:
        if page is not None:
            page.close()
    return _end(watching.summary(), given["as_json"])


def _end(summary: dict[str, Any], as_json: bool) -> int:
    """Print the findings; returns exit code 1 if nothing could be seen."""
    from copter.problem.figures import figure
    from copter_serve.queues.reservations import wait_words

    now = summary["now"]
    if as_json:
        print_json(summary)
    elif now is not None:
        used, quota, could = (figure(now[each]) for each in ("used", "quota", "could"))
        click.echo(
            f"{used} of {quota} {now['resource']} in use; {could} more could be started"
            f" {'now' if summary['blind_since'] is None else 'then'}, {'certified ' if now['certified'] else ''}at most"
            f" {figure(now['bound'])}; {figure(now['stranded'])} are free for none that waits"
        )
        for each in now["not_modelled"]:
            click.echo(f"  not modelled: {each}")
        for each in now["starts"]:
            where = f" on {', '.join(each['nodes'])}" if each["nodes"] else f" in {', '.join(each['flavors'])}"
            units = f"{figure(each['units'])} {now['resource']}, " if each["units"] else ""
            click.echo(f"  could start: {each['job']}{where} ({units}waits {wait_words(each['waits_s'])})")
        for each in now["estimates"]:
            if each["starts_in_s"]:
                click.echo(f"  estimated start: {each['job']} in {wait_words(each['starts_in_s'])}")
        for each in now["unclear"]:
            click.echo(f"  may start or not: {each['job']}: {each['why']}")
        for each in now["unfair"]:
            click.echo(f"  waits for borrowers: {each['job']}; borrowed by {', '.join(each['borrowed_by'])}")
        for each in now["overturned"]:
            click.echo(f"  was overtaken: {each['job']} by {', '.join(each['started_instead'])}")
        for each in now["scattered"]:
            click.echo(f"  finds no node: {each['job']} needs {figure(each['pod_needs'])} in one piece")
    return 0 if now is not None else 1


def _token(path: str | None) -> str:
    if path is None:
        return ""
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--token-file {path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"--out {path}: cannot be written: {error.strerror or error}") from error
