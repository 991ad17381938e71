"""``copter resume``."""

from __future__ import annotations

from dataclasses import replace

import click

from copter_frontends.cli.output import InputError, complain
from copter_frontends.cli.simulate import show


@click.command(short_help="Continue a saved run.")
@click.argument("file", type=click.Path(dir_okay=False))
@click.option(
    "--hours",
    type=click.FloatRange(min=0, min_open=True),
    help="Simulated hours in all, from the start of the run  [default: as saved]",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    help="Simulated rounds in all, from the start of the run  [default: as saved]",
)
@click.option("--to-end", is_flag=True, help="Run until the last job ends.")
@click.option("--out", type=click.Path(file_okay=False), help="Folder for Parquet files, plots and report.html.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, the last line of stdout, and no table.")
@click.option("--save", type=click.Path(dir_okay=False), help="File to save the run in  [default: not saved again]")
@click.option(
    "--save-every",
    type=click.IntRange(min=1),
    metavar="ROUNDS",
    help="Rounds between saves  [default: one save, at the end]",
)
def resume(
    file: str,
    hours: float | None,
    rounds: int | None,
    to_end: bool,
    out: str | None,
    as_json: bool,
    save: str | None,
    save_every: int | None,
) -> int:
    """Continue the run that `copter simulate --save FILE` saved, as if it had never stopped.

    It ends as requested by the saved run's options, unless --hours, --rounds or --to-end is given. A damaged file is
    refused.
    """
    if to_end and (hours or rounds):
        raise click.UsageError("--to-end and --hours or --rounds do not go together")
    if save_every is not None and save is None:
        raise click.UsageError("--save-every says how often --save FILE is written; give --save too")
    # Imported late, as in simulate.py, to save `--help` 2 s.
    from copter_frontends.cli.destinations import prepare_outputs
    from copter_frontends.cli.run import Run
    from copter_frontends.cli.running import carry_on
    from copter_frontends.cli.saving import RunNote
    from copter_frontends.simulator import SimulationError, load_run

    try:
        simulation = load_run(file)
    except SimulationError as error:
        raise InputError(str(error)) from error
    note = simulation.note
    if not isinstance(note, RunNote):
        raise InputError(f"{file}: was not saved by `copter simulate --save`; load it with load_run in Python")
    asked = replace(note.asked, out=out, as_json=as_json, save=save, save_every=save_every)
    if hours or rounds or to_end:
        warmup = asked.warmup(simulation.round_s, note.workload.sampled)
        asked = replace(asked, hours=hours, rounds=rounds, warmup_rounds=warmup)
    prepare_outputs(asked)
    run = Run.resumed(asked, note, simulation)
    if run.rounds is not None and run.rounds <= len(simulation.records):
        complain(f"{file}: the run is at its end; --rounds, --hours or --to-end goes on. Its figures:")
    return show(asked, [carry_on(run)])
