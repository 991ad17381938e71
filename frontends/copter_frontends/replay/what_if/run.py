"""A run with and without a change: its next round, or its next hours."""

from __future__ import annotations

from copter_frontends.replay.what_if.change import Change
from copter_frontends.replay.what_if.round import Answer, ask
from copter_frontends.simulator import load_run
from copter_frontends.simulator.paired import Paired, completed_h


def ask_run(change: Change, path: str) -> Answer:
    """Return the effect of a change on the next round of a saved run; the file is not changed."""
    simulation = load_run(path)
    simulation.tell_policy()
    active = simulation.active
    return ask(
        change.text,
        simulation.policy,
        lambda policy: change.tell(policy, simulation.cluster, active),
        simulation.now_s,
        simulation.deadline_s,
        (len(active), len(active) + len(change.added) - len(change.removed)),
    )


def ask_hours(change: Change, path: str, hours: float) -> Paired:
    """Continue a saved run for some hours with and without a change; returns the completion times in both.

    Jobs that completed before are left out.
    """
    change.require_only_gpus("a saved run that goes on", quotas=True)
    pair = []
    for changed in (False, True):
        simulation = load_run(path)
        done = completed_h(simulation.result().jobs).keys()
        if changed:
            change.tell_simulation(simulation)
        ended = completed_h(simulation.run(hours=hours).jobs)
        pair.append({name: h for name, h in ended.items() if name not in done})
    return Paired.of(*pair)
