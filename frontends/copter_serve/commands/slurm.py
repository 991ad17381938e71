"""``copter slurm shadow`` and ``copter slurm run``."""

from __future__ import annotations

import fcntl
import os
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from copter_frontends.cli.output import FiniteRange, InputError, complain
from copter_serve.commands.shadow import shadow_options, watch

if TYPE_CHECKING:
    from copter_serve.slurm_controller.doors import Door

_FILE = click.Path(dir_okay=False)


def _door_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--token-file", type=_FILE,
                     help="File with the JSON web token, read again for each request  [default: SLURM_JWT]"),
        click.option("--user", default="root", show_default=True, help="User of the token."),
        click.option("--rest", metavar="URL", help="Address of slurmrestd  [default: Slurm's commands here]"),
    ):  # fmt: skip
        command = option(command)
    return command


def _door(given: dict[str, Any]) -> Door:
    from copter_serve.queues import QueueError
    from copter_serve.slurm_controller.doors import Commands, Rest

    path = given["token_file"]

    def token() -> str:
        if path is None:
            return os.environ.get("SLURM_JWT", "")
        try:
            return Path(path).read_text(encoding="ascii").strip().removeprefix("SLURM_JWT=")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"--token-file {path}: cannot be read: {getattr(error, 'strerror', None) or error}"
            ) from error

    try:
        return Rest(given["rest"], given["user"], token) if given["rest"] else Commands()
    except QueueError as error:
        raise InputError(str(error)) from error


@click.group(short_help="Watch a Slurm cluster, or start its jobs (an experiment).")
def slurm() -> None:
    """Watch a Slurm cluster, or start its jobs by copter's plans; the latter is an experiment."""


@slurm.command(
    "shadow",
    short_help="Watch a Slurm cluster live; decide nothing.",
    context_settings={"allow_extra_args": True},  # files are told where they belong
)
@_door_options
@shadow_options
@click.pass_context
def slurm_shadow(ctx: click.Context, /, **given: Any) -> int:
    """Watch a Slurm cluster live, decide nothing, and report what Slurm leaves unused.

    Reads squeue and sinfo or scontrol on this machine, or slurmrestd; keeps one session and, with --tape, a tape.
    `copter shadow --slurm SQUEUE SINFO` reads files.
    """
    from copter_serve.slurm_controller.live_view import live_view

    if ctx.args:
        raise InputError("this reads Slurm live and takes no files: give them to `copter shadow --slurm SQUEUE SINFO`")
    door = _door(given)
    with tempfile.TemporaryDirectory(prefix="copter-slurm-shadow-") as folder:
        return watch(lambda: live_view(door, Path(folder)), True, given)


@slurm.command("run")
@_door_options
@click.option("--partition", "partitions", multiple=True, metavar="NAME",
              help="Partition whose jobs are all under the controller; in others only jobs whose comment begins with"
              " 'copter:'. May be given again.")  # fmt: skip
@click.option("--profiles", type=_FILE, help="YAML file with sizes and speeds of applications.")
@click.option("--learned", type=_FILE, help="File that keeps what runs taught, from start to start.")
@click.option("--every", type=FiniteRange(min=0, min_open=True), default=1.0, show_default=True, metavar="SECONDS",
              help="Seconds between steps.")  # fmt: skip
@click.option("--steps", type=click.IntRange(min=1), help="Number of steps  [default: until Ctrl-C or SIGTERM]")
@click.option("--lease", type=click.IntRange(min=10), default=120, show_default=True, metavar="SECONDS",
              help="Longest time that a job waits for a controller that died; then Slurm starts it.")  # fmt: skip
@click.option("--give-up", type=FiniteRange(min=1), default=10.0, show_default=True, metavar="SECONDS",
              help="Seconds after which a start that Slurm did not make is taken back.")  # fmt: skip
@click.option("--patience", type=FiniteRange(min=0), default=10.0, show_default=True, metavar="RUNS",
              help="Nodes are kept free for the oldest large job after so many typical run times.")  # fmt: skip
@click.option("--lock", type=_FILE, help="File that only one controller holds  [default: one in the temporary folder]")
@click.option("--alive", type=_FILE,
              help="File for the time of the last step, which job_submit.lua reads.")  # fmt: skip
@click.option("--tape", type=_FILE, help="Record the rounds here, for `copter replay` and `verify`.")
@click.option("--dry-run", is_flag=True, help="Print what would be done, and change nothing.")
def slurm_run(**given: Any) -> int:
    """Start waiting jobs of a Slurm cluster by copter's plans.

    Jobs wait by their begin time, which lies at most a lease ahead and is renewed; without renewal Slurm starts them.
    At the end every waiting job is handed to Slurm.
    """
    # Imported late, as in simulate.py.
    from copter.storage.tape import recorded
    from copter_serve.queues import QueueError
    from copter_serve.slurm_controller.controller import Controller, Options
    from copter_serve.slurm_controller.policy import Rules

    door = _door(given)
    options = Options(frozenset(given["partitions"]), given["lease"], given["give_up"], given["dry_run"])
    learned = None if given["learned"] is None else Path(given["learned"])
    try:
        controller = Controller(door, options, Rules(patience=given["patience"]), _profiles(given["profiles"]), learned)
    except QueueError as error:
        raise InputError(str(error)) from error
    with _locked(given["lock"], given["dry_run"]), nullcontext() if given["tape"] is None else recorded(given["tape"]):
        return _loop(controller, given)


def _loop(controller: Any, given: dict[str, Any]) -> int:
    from copter_serve.queues import QueueError

    ended = False

    def end(*_: object) -> None:
        nonlocal ended
        ended = True
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    done, blind, failed, told = 0, "", False, dict[str, str]()
    try:
        while True:
            try:
                step = controller.step()
                if given["alive"] is not None:
                    _say_alive(Path(given["alive"]))
                for line in step.lines:
                    if not line.endswith("s more") or given["dry_run"]:
                        click.echo(f"{'would: ' if given['dry_run'] else ''}{line}")
                for name, why in step.left.items():
                    if told.get(name) != why:
                        told[name] = why
                        complain(f"job {name} is left to Slurm: {why}")
                if blind:
                    complain("Slurm answers again")
                failed, blind = False, ""
            except QueueError as error:
                failed = True
                if str(error) != blind:
                    blind = str(error)
                    complain(f"cannot go on at the moment: {error}")
            done += 1
            if given["steps"] is not None and done >= given["steps"]:
                return int(failed)
            time.sleep(given["every"])
    except KeyboardInterrupt:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if not given["dry_run"]:
            try:
                for line in controller.close().lines:
                    click.echo(line)
            except QueueError as error:
                complain(
                    f"Slurm does not answer; it starts the waiting jobs by itself within {given['lease']} s: {error}"
                )
        complain("stopped")
        return 0


def _say_alive(path: Path) -> None:
    spare = path.with_suffix(".new")
    spare.write_text(f"{int(time.time())}\n")
    os.replace(spare, path)


class _locked:
    """A lock that one controller of this machine holds, so that two do not undo each other's starts."""

    def __init__(self, path: str | None, free: bool) -> None:
        name = os.environ.get("SLURM_CONF", "slurm").replace("/", "_")
        self.path = path or str(Path(tempfile.gettempdir()) / f"copter{name}.lock")
        self.free, self.held = free, -1

    def __enter__(self) -> None:
        if self.free:
            return
        try:
            self.held = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self.held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError(
                f"--lock {self.path}: another controller holds it ({error.strerror}): stop it first"
            ) from error

    def __exit__(self, *error: object) -> None:
        if self.held >= 0:
            os.close(self.held)


def _profiles(path: str | None) -> dict[str, Any]:
    from copter_frontends.vocabulary.yaml_files import load_yaml
    from copter_serve.slurm_controller.profiles import of_file

    return {} if path is None else of_file(load_yaml(path), path)
