"""The controller's step: read, plan, start, and renew the leases of what waits.

A job under the controller waits by its begin time, which lies at most a lease ahead. Each step moves begin times that
come near. So if the controller dies, is stopped or cannot reach Slurm, every job becomes Slurm's own within a lease, and
Slurm starts it as it would have without copter.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from copter import Settings
from copter_frontends.queues import QueueError
from copter_frontends.slurm_controller.doors import Door, RefusedError
from copter_frontends.slurm_controller.horizon import Start, take
from copter_frontends.slurm_controller.limits import Limit, limits_of
from copter_frontends.slurm_controller.outside import blocked_nodes, partitions_of, weights_of
from copter_frontends.slurm_controller.policy import Policy, Rules
from copter_frontends.slurm_controller.profiles import MARK, Estimates, Profile, ProfileError, parsed
from copter_frontends.slurm_controller.reading import FREE_TO_START, ClusterNow, JobNow
from copter_frontends.views.documents import BlindError

RENEW = 0.5  # a lease is renewed once so much of it has passed
STALE_S = 300.0  # age at which limits, partitions and reservations are read again


@dataclass(slots=True)
class Options:
    """How the controller works.

    Attributes
    ----------
    partitions : frozenset of str
        Every job of these is under the controller; in the others those whose comment begins with "copter:".
    lease_s : int
        Longest time that a job waits for a dead controller.
    give_up_s : float
        Seconds after which a start that Slurm has not made is taken back and planned anew.
    dry_run : bool
    """

    partitions: frozenset[str] = frozenset()
    lease_s: int = 120
    give_up_s: float = 10.0
    dry_run: bool = False


@dataclass(slots=True)
class Asked:
    """A start that Slurm was asked for and has not made yet."""

    start: Start
    at_s: float


@dataclass(slots=True)
class Step:
    """What a step did: a line for each update, and counts."""

    lines: list[str] = field(default_factory=list)
    started: int = 0
    renewed: int = 0
    given_up: int = 0
    left: dict[str, str] = field(default_factory=dict)
    waiting: int = 0
    plan_s: float = 0.0


class Controller:
    """Starts a cluster's jobs by plan.

    Parameters
    ----------
    door : Door
    options : Options, optional
    rules : Rules, optional
    profiles : dict of str to Profile, optional
        Of the profile file.
    learned : path, optional
        File with what runs taught, read at the start and written as jobs end.
    settings : Settings, optional
    """

    def __init__(
        self, door: Door, options: Options | None = None, rules: Rules | None = None,
        profiles: dict[str, Profile] | None = None, learned: Path | None = None, settings: Settings | None = None,
    ) -> None:  # fmt: skip
        self.door, self.options = door, options or Options()
        self.policy = Policy(rules, settings)
        self.file, self.learned = profiles or {}, learned
        self.asked: dict[str, Asked] = {}
        self.own: dict[str, tuple[JobNow, Profile]] = {}  # each job as it was first seen
        self.refused: dict[str, tuple[float, str]] = {}  # jobs whose update was refused: when they are tried again, why
        self._ran: dict[str, Start] = {}  # starts that were made, until the job ends
        self._outside_s = -STALE_S
        self._limits_text, self._partitions, self._reservations, self._by_priority = "", "", "", False
        if learned is not None and learned.exists():
            try:
                self.policy.estimates.take(json.loads(learned.read_text()))
            except (ValueError, OSError, AttributeError) as error:
                raise ProfileError(f"{learned}: cannot be read: {error}; remove it, to learn anew") from error

    @property
    def estimates(self) -> Estimates:
        """What was learned of run times."""
        return self.policy.estimates

    def step(self) -> Step:
        """Make one step; BlindError if Slurm does not answer. Jobs are updated one by one: one refusal stops no other."""
        cluster = self.door.read()
        done = Step()
        self._learn(cluster)
        profiles = self._under_control(cluster, done)
        self._check_asked(cluster, done)
        self._see_outside(cluster.now_s)
        limits: list[Limit] = limits_of(self._limits_text, cluster.jobs.values())
        blocked = blocked_nodes(self._reservations, cluster.now_s)
        partitions_of(self._partitions, cluster)
        planned_for = {name: each for name, each in profiles.items() if name not in self.asked}
        for each in self.asked.values():  # an asked start holds its nodes until it runs or is given up
            if all(node in cluster.nodes for node in each.start.nodes):
                take(cluster, each.start.job, each.start, each.start.nodes)
        for name, (until, why) in list(self.refused.items()):
            if cluster.now_s < until and name in planned_for:
                done.left[name] = why
                del planned_for[name]
        weights = weights_of(cluster, self._by_priority)
        plan = self.policy.plan(cluster, planned_for, limits, blocked, weights)
        done.plan_s = self.policy.horizon.solve_s
        done.left |= plan.left_out
        for start in plan.starts:
            self._start(start, cluster, done)
        begun = {start.job.id for start in plan.starts}
        for name in planned_for:
            job = cluster.jobs[name]
            if job.waits and name not in begun and name not in plan.left_out:
                self._renew(job, cluster, done)
        done.waiting = sum(cluster.jobs[name].waits for name in profiles if name in cluster.jobs)
        return done

    def close(self) -> Step:
        """Hand every job that waits under the controller to Slurm."""
        done = Step()
        for job in self.door.read().jobs.values():
            if job.waits and job.id in self.own and job.reason in FREE_TO_START and job.begins_s:
                self._update(done, job.id, "hands to Slurm", lambda job=job: self.door.release(job.id))
        return done

    # What is under the controller -----------------------------------------------------------------------------------

    def _under_control(self, cluster: ClusterNow, done: Step) -> dict[str, Profile]:
        found = {}
        for job in cluster.jobs.values():
            if not (job.comment.startswith(MARK) or job.partition in self.options.partitions):
                continue
            if job.id not in self.own:
                try:
                    profile = parsed(job.comment, self.file) or Profile(job.user)
                except ProfileError as error:
                    done.left[job.id] = str(error)
                    continue
                self.own[job.id] = (job, profile)
            found[job.id] = self.own[job.id][1]
        for name in [name for name in self.own if name not in cluster.jobs]:
            del self.own[name]
            self.asked.pop(name, None)
            self.refused.pop(name, None)
        return found

    def _learn(self, cluster: ClusterNow) -> None:
        changed = False
        for name, (state, began, ended) in cluster.finished.items():
            if name in self.own and state == "COMPLETED" and ended > began > 0.0:
                job, profile = self.own[name]
                asked = self.asked.get(name)
                start = self._ran.pop(name, None) if asked is None else asked.start
                if start is not None:
                    self.estimates.learn(job, profile, start.kind, start.gpus, ended - began)
                    changed = True
        if changed and self.learned is not None:
            spare = self.learned.with_suffix(".new")
            spare.write_text(json.dumps(self.estimates.to_plain(), sort_keys=True))
            os.replace(spare, self.learned)

    def _check_asked(self, cluster: ClusterNow, done: Step) -> None:
        """Drop asked starts that were made, and take back those that Slurm did not make in time."""
        for name, asked in list(self.asked.items()):
            job = cluster.jobs.get(name)
            if job is None or not job.waits:
                self._ran[name] = asked.start
                del self.asked[name]
            elif cluster.now_s - asked.at_s >= self.options.give_up_s:
                own = self.own[name][0]
                done.given_up += 1
                self._update(
                    done, name, f"gives up ({job.reason or 'not started'})",
                    lambda name=name, own=own: self.door.postpone(name, self.options.lease_s, _gpus(own, own.gpus), True),
                )  # fmt: skip
                del self.asked[name]
                self.refused[name] = (cluster.now_s + self.options.give_up_s, "Slurm did not start it where planned")

    def _see_outside(self, now_s: float) -> None:
        """Read limits, partitions and reservations, which change seldom."""
        if now_s - self._outside_s < STALE_S:
            return
        self._outside_s = now_s
        table = ("sacctmgr", "-nP", "show", "qos", "format=name,grptres,grpjobs,maxtrespu,maxjobspu")
        configuration = self.door.text("scontrol", "show", "config")
        self._by_priority = "priority/multifactor" in configuration
        self._limits_text = self.door.text(*table) if "accounting_storage/slurmdbd" in configuration else ""
        self._partitions = self.door.text("scontrol", "show", "partition")
        self._reservations = self.door.text("scontrol", "show", "reservation")

    # Updates --------------------------------------------------------------------------------------------------------

    def _start(self, start: Start, cluster: ClusterNow, done: Step) -> None:
        own = self.own[start.job.id][0]
        # The nodes decide on the type; a type on a job that asked for none is refused.
        changed = _gpus(own, start.gpus) if start.gpus != own.gpus else None
        text = f"starts on {','.join(start.nodes)}" + (f" with {changed} GPUs" if changed else "")
        if self._update(done, start.job.id, text, lambda: self.door.start(start.job.id, start.nodes, changed)):
            done.started += 1
            if not self.options.dry_run:
                self.asked[start.job.id] = Asked(start, cluster.now_s)

    def _renew(self, job: JobNow, cluster: ClusterNow, done: Step) -> None:
        left = job.begins_s - cluster.now_s
        if left > RENEW * self.options.lease_s and (job.reason == "BeginTime" or left > 0.0):
            return
        if self._update(
            done, job.id, f"waits at most {self.options.lease_s} s more",
            lambda: self.door.postpone(job.id, self.options.lease_s),
        ):  # fmt: skip
            done.renewed += 1

    def _update(self, done: Step, name: str, text: str, act: Callable[[], None]) -> bool:
        """Make one update, or say what it would be; a refusal is noted, and the job is left alone for a while."""
        done.lines.append(f"job {name} {text}")
        if self.options.dry_run:
            return True
        try:
            act()
        except BlindError:
            raise
        except RefusedError as error:
            done.lines[-1] += f": refused: {error}"
            self.refused[name] = (self.door.now_s() + self.options.lease_s, str(error))
            return False
        except QueueError as error:
            done.lines[-1] += f": failed: {error}"
            return False
        return True


def _gpus(job: JobNow, count: int) -> str | None:
    """Return a number of GPUs a node as a job asked for them, with its type if it named one; None for no GPUs."""
    if not count:
        return None
    return f"{job.gpu_type}:{count}" if job.gpu_type else str(count)
