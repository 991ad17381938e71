"""Options that name jobs, tenants or a change: click's callbacks that split and check each value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from copter_frontends.cli.output import InputError

if TYPE_CHECKING:
    from copter_frontends.replay.what_if.change import Change


def quotas(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """Split each ``TENANT=GPUS`` into (tenant, GPUs)."""
    result: dict[str, int] = {}
    for value in values:
        tenant, _, count = value.rpartition("=")
        if not tenant or not count.isdecimal():
            raise click.BadParameter(f"{value!r} is not TENANT=GPUS, such as vision=16", context, parameter)
        if tenant in result:
            raise click.BadParameter(f"tenant {tenant!r} is named twice", context, parameter)
        result[tenant] = int(count)
    return tuple(result.items())


def reservations(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, str, int], ...]:
    """Split each ``JOB=TYPE:GPUS`` into (job, GPU type, GPUs)."""
    result: list[tuple[str, str, int]] = []
    for value in values:
        job, _, held = value.rpartition("=")
        kind, _, count = held.rpartition(":")
        if not (job and kind and count.isdecimal() and int(count)):
            raise click.BadParameter(f"{value!r} is not JOB=TYPE:GPUS, such as bert-3=a100:8", context, parameter)
        result.append((job, kind, int(count)))
    return tuple(result)


def change(context: click.Context, parameter: click.Parameter, value: str | None) -> Change | None:
    """Read a what-if change; raises InputError for text that is none."""
    if value is None:
        return None
    from copter_frontends.replay.what_if.change import Change, WhatIfError  # late: it loads NumPy, `--help` does not

    try:
        return Change.read(value)
    except WhatIfError as error:
        raise InputError(str(error)) from error
