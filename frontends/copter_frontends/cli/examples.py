"""What people do with ``copter``: tasks, the commands of each, and an example of every command."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import click

TASKS = {
    "Try a scheduler": ("simulate", "compare", "explain", "resume"),
    "Solve a model, check an answer": ("solve", "verify", "replay", "tape"),
    "Run it beside a cluster": ("serve", "shadow", "slurm", "kueue-controller"),
    "This installation": ("doctor",),
}

EXAMPLES: dict[str, tuple[str, ...]] = {
    "simulate": (
        "copter simulate sia --cluster sia-het --rounds 3 --save run.saved --tape rounds.tape",
        "copter simulate hadar --cluster hadar-60 --rounds 3 --jobs 60 --out report",
        "copter simulate traffic --network sample --rounds 3",
        "copter simulate shards --shards 64 --servers 8 --rounds 3",
        "copter simulate placement --servers 20 --rounds 3",
        "copter simulate kueue --test baseline",
    ),
    "compare": (
        "copter compare --policies sia,gavel --cluster sia-het --rounds 2",
        "copter compare traffic --schemes copter,greedy --network sample --rounds 3",
        "copter compare shards --schemes copter,greedy --shards 64 --servers 8 --rounds 3",
        "copter compare placement --schemes copter,first-fit --servers 20 --rounds 3",
    ),
    "explain": ("copter explain run.saved --what-if 'add 8 a100'",),
    "resume": ("copter resume run.saved --rounds 6",),
    "solve": ("copter solve model.mps", "copter solve model.lp --json"),
    "verify": ("copter verify rounds.tape",),
    "replay": ("copter replay rounds.tape --peers highs",),
    "tape": ("copter tape info rounds.tape", "copter tape cut rounds.tape short.tape --rounds 0:2"),
    "serve": ("copter serve --data clusters --port 8470", "copter serve --config serve.yaml --access-log"),
    "shadow": (
        "copter shadow --kueue objects.json --out shadow.html",
        "copter shadow --slurm squeue.json sinfo.json",
    ),
    "slurm": (
        "copter slurm shadow --rounds 1 --out slurm.html",
        "copter slurm run --partition gpu --dry-run --steps 1",
    ),
    "kueue-controller": ("copter kueue-controller --address http://127.0.0.1:8001 --dry-run --steps 1",),
    "doctor": ("copter doctor", "copter doctor --json"),
}
"""Examples of each command, run by tests/frontends/cli/test_command_examples.py in the order of `TASKS`."""

INSTEAD = {
    "what-if": "`copter explain RUN --what-if CHANGE`, or `copter simulate POLICY --what-if CHANGE`",
    "report": "`--out DIRECTORY` of `copter simulate` and `copter compare` writes one",
    "schedule": "`copter serve` schedules clusters, `copter simulate POLICY` tries a policy",
}
"""What does the work of a command that people look for and that is none."""


def meant(word: str, known: Any) -> str:
    """Return a question for the known word that is nearest to a mistyped one; a semicolon if none is near."""
    near = get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else ";"


class ByTask(click.Group):
    """The group of all commands: its help lists them by task, on one screen, and each command's ends with examples."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands of each task."""
        for task, names in TASKS.items():
            rows = []
            for name in names:
                command = self.get_command(ctx, name)
                rows.append((name, command.get_short_help_str(60) if command else ""))
            with formatter.section(task):
                formatter.write_dl(rows, col_max=18)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command, with its examples at the end of its help."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            if args[0] in INSTEAD:
                ctx.fail(f"there is no command {args[0]!r}: {INSTEAD[args[0]]}")
            ctx.fail(f"there is no command {args[0]!r}{meant(args[0], self.commands)} `copter --help` lists them")
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and name in EXAMPLES:
            inner = {**getattr(command, "commands", {}), **getattr(command, "problems", {})}
            own = {
                each: [line for line in EXAMPLES[name] if line.startswith(f"copter {name} {each} ")] for each in inner
            }
            elsewhere = [line for each in getattr(command, "problems", {}) for line in own[each]]
            show_examples(command, [line for line in EXAMPLES[name] if line not in elsewhere])
            for each, lines in own.items():
                show_examples(inner[each], lines)
        return name, command, rest


def show_examples(command: click.Command, lines: Sequence[str]) -> None:
    """End a command's help with its examples, once."""
    shown = "\b\nExamples:\n" + "\n".join(f"  {each}" for each in lines)
    if lines and shown not in (command.epilog or ""):
        command.epilog = f"{command.epilog}\n\n{shown}" if command.epilog else shown


class Named(click.Choice[str]):
    """A choice among many names: an unknown one gets the nearest as a question, not the whole list."""

    def __init__(self, choices: tuple[str, ...], what: str, where: str) -> None:
        super().__init__(choices)
        self.what, self.where = what, where

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        """Return the first names, and where all are."""
        return f"Choose one, such as {', '.join(self.choices[:3])}; {self.where}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name; raises a usage error that names the nearest one."""
        if value in self.choices:
            return str(value)
        raise click.UsageError(f"there is no {self.what} {value!r}{meant(str(value), self.choices)} {self.where}", ctx)
