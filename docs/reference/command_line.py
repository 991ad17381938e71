"""Write docs/reference/command_line.md from the commands' own help.

Run by hand after a change of an option: python docs/reference/command_line.py
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from copter_frontends.cli import cli

HEAD = """# Command line

`copter COMMAND [OPTIONS]`. Exit codes: 0 an answer, 1 a failure, 2 bad input, 130 and 143 an interrupted simulation
that has written its results. With `--json` the last line of stdout is one JSON object. This page is written by
`python docs/reference/command_line.py`.

Options of several commands, which name them only:

| option | |
|---|---|
{common}
"""
COMMON = 4  # commands from which on an option that they have in the same words stands at the head of the page


def cell(text: str) -> str:
    """Text for a cell of a table, in one line."""
    return " ".join(text.split()).replace("|", "\\|").replace("*", "\\*")


def default_of(option: click.Option) -> str:
    """The default value, if the command's help shows it and the text does not say it."""
    if not option.show_default or option.is_flag or option.required:
        return ""
    value = option.default
    shown = (
        ", ".join(map(str, value)) if isinstance(value, tuple) else f"{value:g}" if isinstance(value, float) else value
    )
    return f" Default: {shown}."


def rows_of(command: click.Command) -> list[str]:
    """A row for each option of the command."""
    rows = []
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            names = ", ".join(f"`{name}`" for name in parameter.opts)
            choices = ""
            if isinstance(parameter.type, click.Choice):
                choices = " One of " + ", ".join(f"`{each}`" for each in parameter.type.choices) + "."
            rows.append(f"| {names} | {cell((parameter.help or '') + choices + default_of(parameter))} |")
    return rows


def all_commands() -> list[tuple[str, click.Command]]:
    """Every command by its name and, after a group, the commands in it."""
    found = []
    for name, command in sorted(cli.commands.items()):
        inner = getattr(command, "commands", {}) or (getattr(command, "problems", {}) if name == "simulate" else {})
        found += [(name, command), *((f"{name} {second}", each) for second, each in inner.items())]
    return found


def section(name: str, command: click.Command, common: list[str]) -> list[str]:
    """A command: what it does, then its options; `compare` says only where it differs from `simulate`."""
    arguments = [each.human_readable_name for each in command.params if isinstance(each, click.Argument)]
    parts = [f"## copter {' '.join([name, *arguments])}", "", cell((command.help or "").split("\b")[0]), ""]
    rows = rows_of(command)
    if name == "compare":
        others = rows_of(cli.commands["simulate"])
        missing = ", ".join(row.split(" | ")[0].lstrip("| ") for row in others if row not in rows)
        parts += [f"It takes the options of [copter simulate](#copter-simulate-policy) but {missing}, and these:", ""]
        rows = [row for row in rows if row not in others]
    named = ", ".join(row.split(" | ")[0].lstrip("| ") for row in rows if row in common)
    rows = [row for row in rows if row not in common]
    parts += ["| option | |", "|---|---|", *rows, ""] if rows else []
    return [*parts, f"Also {named}.", ""] if named else parts


def page() -> str:
    """The whole page: every command and, after a group, the commands in it."""
    commands = all_commands()
    counts = Counter(row for name, command in commands if name != "compare" for row in rows_of(command))
    common = [row for row, count in counts.most_common() if count >= COMMON]
    parts = [HEAD.format(common="\n".join(common))]
    for name, command in commands:
        parts += section(name, command, common)
    return "\n".join(parts)


if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(page())
