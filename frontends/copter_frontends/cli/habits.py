"""Options that several commands have: ``--quiet`` and ``--config``."""

from __future__ import annotations

import sys
from typing import Any

import click

QUIET = "copter.quiet"
LONGEST = 1 << 20  # most bytes of a file of options


def quiet_option() -> click.Option:
    """Return the option ``--quiet``: no progress and no table; files, JSON and errors are unaffected."""
    return click.Option(
        ["--quiet", "-q"],
        is_flag=True,
        expose_value=False,
        callback=_take_quiet,
        help="Print no progress and no table.",
    )


def _take_quiet(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    context.meta[QUIET] = value


def is_quiet() -> bool:
    """Whether the running command has the option ``--quiet``."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(QUIET, False))


def config_option() -> click.Option:
    """Return the option ``--config FILE``: options from a TOML or YAML file; the command line takes precedence."""
    return click.Option(
        ["--config"],
        type=click.Path(dir_okay=False),
        is_eager=True,
        expose_value=False,
        callback=_take_config,
        help="TOML or YAML file of these options, by their long names; the command line takes precedence.",
    )


def _take_config(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    known = {name_of(each): each for each in context.command.params if isinstance(each, click.Option)}
    known.pop("config", None)
    found: dict[str, Any] = {}
    for name, given in read_options(value).items():
        option = known.get(str(name).replace("_", "-"))
        if option is None:
            raise click.BadParameter(f"{value}: there is no option {name!r}; there are {', '.join(sorted(known))}")
        if isinstance(given, dict | list) or given is None:
            raise click.BadParameter(f"{value}: {name} must be one value, not {given!r}")
        found[str(option.name)] = given
    context.default_map = {**(context.default_map or {}), **found}


def name_of(option: click.Option) -> str:
    """Return the long name of an option, without dashes."""
    return max(option.opts, key=len).lstrip("-")


def read_options(path: str) -> dict[str, Any]:
    """Return the options in a file; raises BadParameter, with its name, if it cannot be read or is not a mapping."""
    from copter.storage.inputs import opened  # late: --help loads nothing of the engine

    try:
        with opened(path) as file:
            text = file.read(LONGEST + 1).decode("utf-8")
        if len(text) > LONGEST:
            raise ValueError(f"is longer than {LONGEST} bytes")
        found = parsed(text, path.lower().endswith(".toml"))
    except OSError as error:
        raise click.BadParameter(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise click.BadParameter(f"{path}: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict):
        raise click.BadParameter(f"{path}: must hold options by name, such as 'gpus: 1000'")
    return found


def parsed(text: str, toml: bool) -> Any:
    """Parse a TOML or YAML text; raises ValueError if it is neither."""
    if toml:
        if sys.version_info < (3, 11):
            raise ValueError("TOML needs Python 3.11 or newer; write the options as YAML")
        import tomllib  # in the standard library from Python 3.11 on

        return tomllib.loads(text)
    import yaml  # type: ignore[import-untyped, unused-ignore]  # of the extra `frontends`; most runs need no YAML

    try:
        return yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise ValueError(f"not valid YAML: {error}") from error
