"""``copter explain``."""

from __future__ import annotations

import click

from copter_frontends.cli.output import FiniteRange, InputError, print_json


@click.command(short_help="Explain a job's allocation in a saved run.")
@click.argument("run", type=click.Path(dir_okay=False))
@click.argument("job", required=False)
@click.option(
    "--what-if",
    "what_if",
    metavar="CHANGE",
    help='Change to ask about, such as "add 8 a100, quota vision 16, remove job old".',
)
@click.option(
    "--hours",
    type=FiniteRange(min=0, min_open=True),
    help="With --what-if: simulate so many hours with and without the change, and compare the jobs.",
)
@click.option(
    "--options",
    "most",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Most options of the job to show.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, the last line of stdout, and no table.")
def explain(run: str, job: str | None, what_if: str | None, hours: float | None, most: int, as_json: bool) -> int:
    """Explain JOB's allocation in the last program of a run saved by `copter simulate --save RUN`.

    The linear program is solved as it was when the run was saved. Printed are the price of each resource, the job's
    options and their losses, and the weight, price or capacity at which another option becomes the best.

    With --what-if, JOB is not given: the next round is planned with and without the change, on copies; RUN is not
    changed. A change consists of one or more of these parts, separated by commas: add N TYPE, remove N TYPE, quota TEAM
    N, add job NAME GPUS [APPLICATION], remove job NAME. If RUN is a tape, each of its programs is solved with and
    without the change. A tape does not contain how jobs train, so for completion times use a run with --hours, or
    `copter simulate --what-if`.
    """
    if (job is None) == (what_if is None):
        raise click.UsageError("name a JOB, or ask --what-if CHANGE")
    if hours is not None and what_if is None:
        raise click.UsageError("--hours says how long --what-if CHANGE is tried; give that too")
    # Imported late, as in simulate.py.
    from copter.runtime.errors import CopterError
    from copter_frontends.cli.explaining import asked, explanation_of

    try:
        found = explanation_of(run, job) if job is not None else asked(run, what_if or "", hours)
    except (CopterError, LookupError) as error:
        raise InputError(str(error.args[0] if error.args else error)) from error
    if as_json:
        print_json(found.as_dict())
    else:
        click.echo(found.as_text(most))
    return 0
