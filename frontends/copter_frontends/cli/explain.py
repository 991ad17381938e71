"""``copter explain``."""

from __future__ import annotations

import click

from copter_frontends.cli.output import FiniteRange, InputError, print_json


@click.command()
@click.argument("run", type=click.Path(dir_okay=False))
@click.argument("job", required=False)
@click.option("--what-if", "what_if", metavar="CHANGE", help='Such as "add 8 a100, quota vision 16, remove job old".')
@click.option(
    "--hours",
    type=FiniteRange(min=0, min_open=True),
    help="With --what-if: go on so long with the change and without it, and compare the jobs.",
)
@click.option("--options", "most", type=click.IntRange(min=1), default=8, show_default=True, help="Options to show.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, the last line of stdout, and no table.")
def explain(run: str, job: str | None, what_if: str | None, hours: float | None, most: int, as_json: bool) -> int:
    """Why JOB got what it got, in the last program of the run that `copter simulate --save RUN` left.

    The linear program is solved as it stood when the run was saved: the price of each resource, the job's options and
    what they would lose, and the weight, price or capacity at which its best option becomes another one.

    With --what-if, no JOB is named: the next round is planned with the change and without it, on copies, and RUN stays
    as it is. A change has one or more of these parts, with commas between them: add N TYPE, remove N TYPE,
    quota TEAM N, add job NAME GPUS [APPLICATION], remove job NAME. RUN may be a tape, too: then every one of its
    programs is solved with the change and without it. A tape says nothing of how jobs train, so for completion times
    take a run with --hours, or `copter simulate --what-if`.
    """
    if (job is None) == (what_if is None):
        raise click.UsageError("name a JOB, or ask --what-if CHANGE")
    if hours is not None and what_if is None:
        raise click.UsageError("--hours says how long --what-if CHANGE is tried; give that too")
    # Imported late, as in simulate.py.
    from copter.errors import CopterError
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
