"""The option that names the schemes of a problem: one to simulate, several to compare."""

from __future__ import annotations

import re
from typing import Any

import click

_POP = re.compile(r"^pop-[1-9]\d*$")


def scheme_option(problem: str, known: tuple[str, ...], several: bool, pop: bool = True) -> click.Option:
    """Return ``--schemes`` for `several`, else ``--scheme``; with `pop` the names pop-K are known too."""
    told = ", ".join((*known, "pop-K") if pop else known)
    if several:
        example = f"copter compare {problem} --schemes {known[0]},{known[-1] if pop else known[1]}"
        return click.Option(
            ["--schemes"],
            callback=_names(known, pop, example),
            metavar="NAME,NAME,...",
            help=f"Schemes to compare, separated by commas: {told}.",
        )
    return click.Option(
        ["--scheme", "schemes"],
        callback=_names(known, pop, None),
        default="copter",
        show_default=True,
        help=f"Scheme: one of {told}.",
    )


def _names(known: tuple[str, ...], pop: bool, example: str | None) -> Any:
    """Return the check of names; `example` is a command with several, None where one is named."""

    def check(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
        if value is None:
            raise click.UsageError(f"name the schemes to compare: {example}", context)
        names = tuple(name.strip() for name in value.split(",") if name.strip())
        for name in names:
            if name not in known and not (pop and _POP.match(name)):
                raise click.BadParameter(f"unknown scheme {name!r}; there are {', '.join(known)}{' and pop-K' * pop}")
        if not names or len(set(names)) < len(names) or (len(names) > 1 and example is None):
            raise click.BadParameter("name one scheme" if example is None else "name at least one scheme, each once")
        return names

    return check
