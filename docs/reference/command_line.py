"""Write docs/reference/command_line.md from the commands' own help.

Run by hand after a change of an option: python docs/reference/command_line.py
"""

from __future__ import annotations

from pathlib import Path

import click

from copter_frontends.cli import cli

HEAD = """# Command line

`copter COMMAND [OPTIONS]`. Exit codes: 0 an answer, 1 a failure, 2 bad input, 130 and 143 an interrupted simulation
that has written its results. With `--json` the last line of stdout is one JSON object. This page is written by
`python docs/reference/command_line.py`.
"""


def cell(text: str) -> str:
    """Text for a cell of a table, in one line."""
    return " ".join(text.split()).replace("|", "\\|").replace("*", "\\*")


def options_of(command: click.Command) -> list[str]:
    """A table of the command's options."""
    lines = ["| option | |", "|---|---|"]
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            names = ", ".join(f"`{name}`" for name in parameter.opts)
            choices = ""
            if isinstance(parameter.type, click.Choice):
                choices = " One of " + ", ".join(f"`{each}`" for each in parameter.type.choices) + "."
            lines.append(f"| {names} | {cell((parameter.help or '') + choices)} |")
    return lines


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for name, command in sorted(cli.commands.items()):
        arguments = [each.human_readable_name for each in command.params if isinstance(each, click.Argument)]
        said = cell((command.help or "").split("\b")[0])
        parts += [f"## copter {' '.join([name, *arguments])}", "", said, "", *options_of(command), ""]
    return "\n".join(parts)


if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(page())
