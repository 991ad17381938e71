"""The options of ``copter simulate``, which ``compare`` and ``resume`` share; light to import, for ``--help``."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from copter_frontends.cli.output import complain
from copter_frontends.policies.registry.names import HADAR_MODES, LP_NAMES, METHOD_NAMES, PROFILING_NAMES

if TYPE_CHECKING:
    from copter.runtime.settings import NamedMethod
    from copter_frontends.replay.what_if.change import Change
    from copter_frontends.vocabulary.semantics import Shim

SEMANTICS_NAMES = ("default", "sia-artifact", "thesis")
"""The keys of :data:`copter_frontends.vocabulary.semantics.PRESETS`."""

SIA_OPTIONS = ("power", "incentive", "time_sharing", "penalty", "growth", "deja_vu", "shim", "quota", "reserve")
"""Options that only the policy ``sia`` has."""

OWN_OPTIONS = {
    **dict.fromkeys(SIA_OPTIONS, ("sia",)),
    **dict.fromkeys(("fairness", "sensitivity", "priority", "stay_bonus"), ("hops",)),
    "unmeasured": ("hadar", *HADAR_MODES),
    "admission": ("chronus",),
    "lease_s": ("chronus",),
    "profiling": PROFILING_NAMES,
}
"""Options that only some policies have, and these."""

WARMUP_HOURS = 9
"""Default warm-up of a sampled day, in hours: the rounds of ``--rounds`` begin after it, when the busiest hours
begin.
"""


TESTBEDS = "copter_papers.testbeds:TESTBEDS"
"""Where the papers' own jobs are, by the cluster's name."""

TESTBED_NAMES = ("hare-15", "hops-64", "hops-512")
"""The keys of :data:`copter_papers.testbeds.TESTBEDS`."""

DEFAULT_CLUSTER = "sia-het"
"""Cluster if neither --gpus nor --cluster is given: 64 GPUs of three types, simulated in seconds on a laptop."""


def own_tape(path: str, name: str) -> str:
    """Return the tape's file name for one of several runs: the run's name is inserted before the ending."""
    stem, ending = os.path.splitext(path)
    return f"{stem}-{name}{ending}"


@dataclass(frozen=True, slots=True)
class SimulateOptions:
    """The options of ``copter simulate`` as given."""

    policy: str
    gpus: int | None
    cluster: str | None
    hours: float | None
    rounds: int | None
    trace: str | None
    work: str
    jobs: int | None
    seed: int
    mode: str
    round_s: float | None
    semantics: str
    profiles: str | None
    warmup_rounds: int | None
    compare: str | None
    compare_every: int
    compare_time_limit: float
    out: str | None
    as_json: bool
    threads: int | None
    method: NamedMethod = "auto"
    throughputs: str | None = None
    tuned: str | None = None
    events: str | None = None
    save: str | None = None
    save_every: int | None = None
    applications: str | None = None
    power: float | None = None
    incentive: float | None = None
    time_sharing: float | None = None
    penalty: str | None = None
    growth: int | None = None
    deja_vu: bool = False
    window_hours: float | None = None
    deadline_s: float | None = None
    shim: Shim | None = None
    quota: tuple[tuple[str, int], ...] = ()
    non_preemptible: tuple[str, ...] = ()
    reserve: tuple[tuple[str, str, int], ...] = ()
    plan_latency: float = 0.0
    tape: str | None = None
    deadlines: bool = False  # whether to report deadlines even if the policy does not use them
    deadline_source: str | None = None
    mix: str | None = None
    lease_s: float | None = None
    profiling: bool = False
    what_if: Change | None = None
    ageing: float | None = None
    fairness: float | None = None
    sensitivity: float | None = None
    priority: str | None = None
    stay_bonus: float | None = None
    unmeasured: bool = False
    admission: str | None = None
    load: float | None = None

    def warmup(self, round_s: float, sampled: bool) -> int:
        """Number of first rounds outside the statistics: as given or, for some rounds of a sampled day, those before
        its busy hours.
        """
        if self.warmup_rounds is not None:
            return self.warmup_rounds
        return round(WARMUP_HOURS * 3600 / round_s) if self.rounds is not None and sampled else 0

    def counted_rounds(self, round_s: float, warmup: int) -> int | None:
        """Number of rounds to simulate, warm-up included; None if the run ends with its last job."""
        limits = [self.rounds] if self.rounds is not None else []
        limits += [math.ceil(self.hours * 3600 / round_s - 1e-9)] if self.hours is not None else []
        return min(limits) + warmup if limits else None

    @property
    def on_testbed(self) -> bool:
        """Whether the jobs are those of a paper's evaluation: its GPUs, no trace, its training models."""
        return self.cluster in TESTBED_NAMES and self.trace is None and self.semantics == "default"

    @classmethod
    def of(cls, **given: Any) -> SimulateOptions:
        """Return the options with a cluster; the default cluster is announced on stderr."""
        asked = cls(**given)
        if asked.gpus is not None or asked.cluster is not None:
            return asked
        complain(f"no --gpus and no --cluster: taking --cluster {DEFAULT_CLUSTER}")
        return replace(asked, cluster=DEFAULT_CLUSTER)

    def check(self, alone: bool = True) -> None:
        """Raise UsageError for options that contradict each other or that a single policy does not accept."""
        if self.gpus is not None and self.cluster is not None:
            raise click.UsageError("give either --gpus N or --cluster NAME|FILE.yaml, not both")
        if self.mix is not None and self.deadline_source == "own":
            raise click.UsageError("--mix draws deadlines, and --deadlines own takes the trace's: give one of them")
        for name, has in OWN_OPTIONS.items() if alone else ():
            given = getattr(self, name)
            if given is not None and given is not False and given != () and self.policy not in has:
                told = f"--{name.replace('_', '-')}: the policy {self.policy!r} has none; it is for {', '.join(has)}"
                raise click.UsageError(told)
        if self.method != "auto" and self.policy not in METHOD_NAMES and alone:
            told = f"--method: the policy {self.policy!r} chooses its own; {', '.join(METHOD_NAMES)} take one"
            raise click.UsageError(told)
        if self.penalty is not None and self.time_sharing is None:
            raise click.UsageError("--penalty says how --time-sharing SECONDS weighs jobs; give that too")
        if self.compare and self.policy not in LP_NAMES:
            raise click.UsageError(f"--compare {self.compare}: the policy {self.policy!r} solves no linear program")
        if self.what_if is not None and self.compare:
            raise click.UsageError("--what-if and --compare do not go together: ask one after the other")
        if self.compare and self.save:
            raise click.UsageError("--compare and --save do not go together: the other solver's state cannot be saved")
        if self.save is not None and self.profiling and self.policy == "hops":
            raise click.UsageError(
                "--save: the database of what Hops's --profiling measures is not part of a saved run"
            )
        if self.load is not None and (self.jobs is not None or self.trace is not None):
            raise click.UsageError("--load N makes as many jobs as are that load: leave out --jobs and --trace")
        if self.load is not None and self.on_testbed:
            raise click.UsageError(f"--load: --cluster {self.cluster} has its own jobs; take --gpus or another cluster")
        if self.save_every is not None and self.save is None:
            raise click.UsageError("--save-every says how often --save FILE is written; give --save too")
