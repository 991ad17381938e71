"""``copter kueue-controller``."""

from __future__ import annotations

import time
from typing import Any

import click

from copter_frontends.cli.output import FiniteRange, InputError, complain

WRITES = ("boost", "gates", "checks", "dispatch")
STRATEGIES = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")


def _workers(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for each in value:
        name, equals, place = each.partition("=")
        if not (name and equals and place) or name in found:
            raise click.BadParameter(f"{each!r} is not NAME=CONTEXT or NAME=URL, each name once")
        found[name] = place
    return found


@click.command("kueue-controller", short_help="Write decisions that Kueue leaves to others.")
@click.option("--address", metavar="URL", help="Address of an API server without credentials (`kubectl proxy`).")
@click.option(
    "--context", metavar="NAME", help="Context of the kubeconfig  [default: its current one, or the pod's account]"
)
@click.option("--write", "writes", type=click.Choice((*WRITES, "all")), multiple=True,
              help="Kind of fields that may be written, or all. May be given again; without it none is.")  # fmt: skip
@click.option("--worker", "workers", multiple=True, callback=_workers, metavar="NAME=CONTEXT|URL",
              help="Worker cluster of MultiKueue that may be nominated. May be given again.")  # fmt: skip
@click.option("--strategy", "strategies", type=click.Choice(STRATEGIES), multiple=True, default=STRATEGIES,
              show_default=True, help="With fair sharing: Kueue's preemptionStrategies, in their order.")  # fmt: skip
@click.option("--every", type=FiniteRange(min=0, min_open=True), default=2.0, show_default=True, metavar="SECONDS",
              help="Seconds between steps.")  # fmt: skip
@click.option("--steps", type=click.IntRange(min=1), help="Number of steps  [default: until Ctrl-C]")
@click.option("--dry-run", is_flag=True, help="Print what would be written, and write nothing, as without --write.")
def kueue_controller(**given: Any) -> int:
    """Write decisions that Kueue leaves to others, by copter's plans: boosts, gates, AdmissionChecks, nominations."""
    # Imported late, as in simulate.py; the Kubernetes client belongs to the optional extra "kubernetes".
    try:
        from copter_serve.kueue_controller.cluster_api import ClusterApi
    except ImportError as error:
        raise InputError(str(error)) from error
    from copter_serve.kueue_controller.controller import Controller, lines
    from copter_serve.queues import QueueError
    from copter_serve.views.documents import is_address
    from copter_serve.views.kueue import kueue_view, read_api

    named = set(given["writes"])
    writes = WRITES if not named or "all" in named else tuple(each for each in WRITES if each in named)
    dry = given["dry_run"] or not named
    try:
        cluster = ClusterApi(given["address"], given["context"])
        apis = {
            name: ClusterApi(place, None) if is_address(place) else ClusterApi(None, place)
            for name, place in given["workers"].items()
        }
        workers = {name: (lambda api=api: kueue_view(read_api(api))) for name, api in apis.items()}
        controller = Controller(
            cluster, writes, workers, dry, strategies=given["strategies"]
        )  # fmt: skip
    except QueueError as error:
        raise InputError(str(error)) from error
    done, blind, failed, idle = 0, "", False, ""
    try:
        while True:
            try:
                written = controller.step()
                failed, blind = any(each.refused for each in written), ""
                if written:
                    idle = ""
                elif controller.idle() != idle:  # said again once something has changed
                    idle = controller.idle()
                    complain(idle)
            except QueueError as error:
                written, failed = controller.written, True
                if str(error) != blind:
                    blind = str(error)
                    count = sum(each.done for each in written)
                    complain(f"{f'stopped after {count} writes' if count else 'wrote nothing'}: {error}")
            for line in lines(written, dry):
                click.echo(line)
            if not given["dry_run"] and not named and written and not failed and done == 0:
                complain("nothing was written: name what may be, such as --write boost, or --write all")
            done += 1
            if given["steps"] is not None and done >= given["steps"]:
                return int(failed)
            time.sleep(given["every"])
    except KeyboardInterrupt:
        complain("stopped")
        return 0
