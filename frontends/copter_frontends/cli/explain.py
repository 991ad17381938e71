"""``copter explain``."""

from __future__ import annotations

import click

from copter_frontends.cli.output import InputError, print_json


@click.command()
@click.argument("run", type=click.Path(dir_okay=False))
@click.argument("job")
@click.option("--options", "most", type=click.IntRange(min=1), default=8, show_default=True, help="Options to show.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, the last line of stdout, and no table.")
def explain(run: str, job: str, most: int, as_json: bool) -> int:
    """Explain the allocation of JOB in the last program of the run saved by `copter simulate --save RUN`.

    The linear program is solved as it stood when the run was saved: the price of each resource, the job's options and
    what they would lose, and the weight, price or capacity at which its best option becomes another one.
    """
    # Imported late, as in simulate.py.
    from copter_frontends.cli.explaining import explanation_of
    from copter_frontends.simulator import SimulationError

    try:
        explanation = explanation_of(run, job)
    except (SimulationError, LookupError) as error:
        raise InputError(str(error.args[0] if error.args else error)) from error
    if as_json:
        print_json(explanation.as_dict())
    else:
        click.echo(explanation.as_text(most))
    return 0
