"""``copter simulate``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from copter_frontends.cli.examples import Named
from copter_frontends.cli.habits import is_quiet
from copter_frontends.cli.options import SEMANTICS_NAMES, WARMUP_HOURS, SimulateOptions
from copter_frontends.cli.output import FiniteRange, complain, print_json
from copter_frontends.cli.policy_options import change, quotas, reservations
from copter_frontends.cli.problems import WithProblems, problem_commands
from copter_frontends.policies.registry.names import METHOD_CHOICES, POLICY_NAMES

if TYPE_CHECKING:
    from copter_frontends.cli.running import Outcome
    from copter_frontends.replay.what_if.change import Change

_SOLVER = Named(("highs",), "solver", "it is highs; `copter compare --policies A,B` sets policies side by side")
_COUNT = click.IntRange(min=1)
_GPUS = click.IntRange(max=10_000_000)  # GPUs of a simulated cluster; more would fill the memory before the first round
_JOBS = click.IntRange(1, 100_000_000)
_POSITIVE = FiniteRange(min=0, min_open=True)
_ROUND = FiniteRange(min=1.0, max=1e7)


@click.command(
    short_help="Simulate a policy on a cluster, round by round.",
    cls=WithProblems,
    epilog=f"Policies: {', '.join(POLICY_NAMES)}.\n\n"
    "`copter simulate traffic`, `shards`, `placement` and `kueue` have options of their own: see their --help.",
)
@click.argument("policy", metavar="POLICY", type=Named(POLICY_NAMES, "policy", "`copter simulate --help` lists them"))
@click.option("--gpus", type=_GPUS, help="GPUs of a cluster of seven types, 8 per node.")
@click.option(
    "--cluster",
    help="A paper's cluster (sia-het, hadar-60, ...; hare-15, hops-64, hops-512 with their own jobs) or a .yaml file.",
)
@click.option("--hours", type=_POSITIVE, help="Simulated hours  [default: until the last job ends]")
@click.option("--rounds", type=_COUNT, help="Simulated rounds  [default: until the last job ends]")
@click.option("--trace", type=click.Path(), help="Trace file, or `sample`  [default: generated jobs]")
@click.option(
    "--work",
    type=click.Choice(["trace", "full"]),
    default="trace",
    show_default=True,
    help="Work of a sampled job: the trace's duration, or its model's full training run.",
)
@click.option("--jobs", type=_JOBS, help="Jobs in a sampled day  [default: 4 per GPU; 40 of Hare's own]")
@click.option(
    "--load",
    type=_POSITIVE,
    help="As many generated jobs as offer this load in the counted rounds: 1.0 asks for all GPUs all the time.",
)
@click.option(
    "--window-hours",
    type=FiniteRange(min=0.1, max=8760.0),
    metavar="HOURS",
    help="Hours in which the jobs arrive, the day's busiest  [default: 24, or --hours if more]",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of everything that is drawn."
)
@click.option(
    "--mode",
    type=click.Choice(["full", "capped"]),
    default="full",
    show_default=True,
    help="Sizes of a job: all, or up to 64 GPUs.",
)
@click.option(
    "--semantics",
    type=click.Choice(SEMANTICS_NAMES),
    default="default",
    show_default=True,
    help="Conventions: copter's own, those of Sia's public simulator, or Sia as its thesis describes it.",
)
@click.option("--profiles", type=click.Path(), help="Folder of measured profiles  [default: found next to the data]")
@click.option(
    "--throughputs",
    type=click.Path(),
    help="File of steps per second, for Gavel's traces  [default: found next to the data]",
)
@click.option(
    "--plan-latency",
    type=FiniteRange(min=0.0),
    default=0.0,
    metavar="TIMES",
    help="Seconds that starting and changing jobs wait for each second of planning  [default: 0]",
)
@click.option("--applications", type=click.Path(), help="YAML file of further applications and GPU types.")
@click.option("--power", type=FiniteRange(), help="Sia: fairness power p  [default: -0.5]")
@click.option("--incentive", type=_POSITIVE, help="Sia: queue-occupancy incentive lambda  [default: 1.1]")
@click.option(
    "--time-sharing", type=_POSITIVE, metavar="SECONDS", help="Sia: seconds of a job's turn  [default: no turns]"
)
@click.option(
    "--penalty",
    type=click.Choice(["ours", "published"]),
    help="Sia: how --time-sharing weighs jobs; published: a job that had its turn is worth least, as in the thesis.",
)
@click.option(
    "--growth",
    type=_COUNT,
    metavar="TIMES",
    help="Sia: most GPUs of a job, as a multiple of the most that it has had  [default: as in --semantics]",
)
@click.option(
    "--deja-vu",
    is_flag=True,
    help="Sia: a job of a model that ran before is not profiled, and starts with what earlier jobs measured; with "
    "--semantics thesis or sia-artifact.",
)
@click.option(
    "--shim",
    type=click.Choice(["filled", "rounded", "exact"]),
    help="Sia: from the LP to a plan. filled (default): round, then fill with idle jobs; rounded: only round; "
    "exact: the integer optimum by HiGHS.",
)
@click.option(
    "--quota",
    multiple=True,
    callback=quotas,
    metavar="TENANT=GPUS",
    help="Sia: most GPUs of a tenant's jobs. May be given again.",
)
@click.option(
    "--non-preemptible", multiple=True, metavar="JOB", help="Job that is never stopped or moved. May be given again."
)
@click.option(
    "--reserve",
    multiple=True,
    callback=reservations,
    metavar="JOB=TYPE:GPUS",
    help="Sia: GPUs reserved for a job. May be given again.",
)
@click.option(
    "--deadlines",
    "deadline_source",
    type=click.Choice(["own", "drawn"]),
    help="Deadlines: the trace's own (expect_time_list), or drawn by --mix  [default: own, if there are any]",
)
@click.option(
    "--mix",
    type=click.Choice(["slo", "mix1", "mix2"]),
    help="Drawn deadlines: shares of strict, soft and best-effort jobs  [default: mix2]",
)
@click.option(
    "--admission",
    type=click.Choice(["selective", "paper"]),
    help="Chronus: selective (default) refuses jobs that take more from later ones than they bring; paper: as printed.",
)
@click.option("--fairness", type=FiniteRange(min=0.0), help="Hops: lambda, the exponent of fairness  [default: 1]")
@click.option(
    "--sensitivity",
    type=FiniteRange(min=0.0),
    help="Hops: sigma, the sensitivity above which a job is kept on one server  [default: 1.4]",
)
@click.option(
    "--priority",
    type=click.Choice(["lr", "las", "sjf", "srtf", "ftf"]),
    help="Hops: order of the queue  [default: lr, the latency ratio]",
)
@click.option(
    "--stay-bonus",
    type=FiniteRange(min=0.0),
    help="Hops: beta, the gain of a job that keeps its GPUs; 0 as in the paper  [default: 0.1]",
)
@click.option(
    "--unmeasured",
    is_flag=True,
    help="Hadar: know no job's speeds, estimate them, and learn them as it runs  [default: known speeds]",
)
@click.option("--lease-s", type=FiniteRange(min=1.0, max=1e7), help="Chronus: seconds of a lease  [default: 1200]")
@click.option(
    "--profiling",
    is_flag=True,
    help="Chronus, Hare, Hops: run jobs of kinds not seen before for some minutes first, to measure their speed (Hops: "
    "on --cluster hops-64 or hops-512).",
)
@click.option(
    "--ageing",
    type=_POSITIVE,
    metavar="HOURS",
    help="Give a turn to every job that has waited this long, the longest wait first  [default: no turns]",
)
@click.option(
    "--tuned", metavar="TYPE", help="GPU type on which rigid policies' jobs are tuned, up to 64 GPUs  [default: none]"
)
@click.option("--deadline-s", type=_POSITIVE, help="Seconds that a plan may take  [default: those of a round]")
@click.option("--round-s", type=_ROUND, help="Seconds of a round  [default: as in the policy's paper]")
@click.option(
    "--warmup-rounds",
    type=click.IntRange(min=0),
    help="First rounds, simulated and not measured  "
    f"[default: {WARMUP_HOURS} h of a sampled day with --rounds, else 0]",
)
@click.option("--events", type=click.Path(), help="YAML file of node failures, repairs and changes of capacity.")
@click.option(
    "--what-if",
    metavar="CHANGE",
    callback=change,
    help='Simulate twice, as asked and with a change such as "add 8 a100" from the start, and compare the jobs.',
)
@click.option("--compare", type=_SOLVER, help="Solve the same linear programs with this solver too.")
@click.option("--compare-every", type=_COUNT, default=10, show_default=True, help="Rounds between comparisons.")
@click.option(
    "--compare-time-limit",
    type=_POSITIVE,
    default=120.0,
    show_default=True,
    help="Seconds for each solve of --compare.",
)
@click.option(
    "--tape", type=click.Path(dir_okay=False), help="Record the rounds here, for `copter replay` and `verify`."
)
@click.option("--out", type=click.Path(file_okay=False), help="Folder for Parquet files, plots and report.html.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, the last line of stdout, and no table.")
@click.option("--threads", type=_COUNT, help="Threads of the solver  [default: all]")
@click.option(
    "--method",
    type=click.Choice(METHOD_CHOICES),
    default="auto",
    show_default=True,
    help="How linear programs are solved (Settings.method); auto: the order of copter/methods/choose.py.",
)
@click.option("--save", type=click.Path(dir_okay=False), help="File to save the run in, for `copter resume`.")
@click.option(
    "--save-every", type=_COUNT, metavar="ROUNDS", help="Rounds between saves  [default: one save, at the end]"
)
def simulate(**options: Any) -> int:
    """Simulate POLICY on a cluster, round by round.

    Ctrl-C or SIGTERM ends the run after the present round: the results so far are written, and the exit code is 130 or
    143. A second signal ends it at once.

    With --what-if the same jobs are simulated without and with a change; --out, --save and --tape apply to the run
    without it. Changes are written as for `copter explain --what-if`.
    """
    asked = SimulateOptions.of(**options)
    asked.check()
    # Imported late: the import takes 2 s of processor time (Numba, SciPy, every policy), `--help` without it 0.1 s.
    from copter.storage.inputs import read_once

    change = asked.what_if
    if asked.jobs is None and asked.gpus is not None and change is not None and change.gpus:
        complain("--what-if: the same jobs both times, as many as for the cluster without the change")
    with nullcontext() if change is None else read_once():  # the same files both times, even if one is replaced
        outcomes = [_carried_out(asked)]
        if change is not None and outcomes[0].summary["interrupted"] is None:
            outcomes.append(_carried_out(replace(asked, out=None, save=None, save_every=None, tape=None), change))
    return show(asked, outcomes, change)


def _carried_out(asked: SimulateOptions, change: Change | None = None) -> Outcome:
    """Read a run and carry it out; a what-if change applies from its start."""
    from copter_frontends.cli.run import Run
    from copter_frontends.cli.running import carry_on

    run = Run.read(asked, change)
    return carry_on(run, asked.tape)


def show(asked: SimulateOptions, outcomes: Sequence[Outcome], change: Change | None = None) -> int:
    """Print a run as JSON or, unless output is quiet, as a table; returns the exit code.

    With a what-if change, the runs without it and with it are printed side by side, and the jobs in pairs. The code is
    0, or 128 plus the number of the signal that ended the last run.
    """
    from rich.console import Console

    from copter_frontends.report.table import print_side_by_side, print_summary
    from copter_frontends.simulator.paired import Paired, completed_h

    before, after = outcomes[0].summary, outcomes[-1].summary
    paired = Paired.of(*(completed_h(each.result.jobs) for each in outcomes)) if len(outcomes) == 2 else None
    whole = before
    if change is not None and paired is not None:
        whole = {"what_if": change.text, "before": before, "after": after, "jobs": paired.as_dict()}
    if change is not None and paired is None:
        complain("the run with the change was not begun")
    elif asked.as_json:
        print_json(whole)
    elif is_quiet():
        pass
    elif change is not None and paired is not None:
        sides = [{**before, "policy": "before"}, {**after, "policy": "after"}]
        print_side_by_side(sides, Console(), f"{asked.policy}: what if {change.text}")
        click.echo(paired.as_text())
    else:
        print_summary(before, Console())
    return outcomes[-1].exit_code


simulate.problems = problem_commands(several=False)
