"""The controller's step: read, plan, start, and renew the leases of what waits.

A job under the controller waits by its begin time, which lies at most a lease ahead. Each step moves begin times that
come near. So if the controller dies, is stopped or cannot reach Slurm, every job becomes Slurm's own within a lease,
and Slurm starts it as it would have without copter.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from copter import Settings
from copter_serve.queues import QueueError
from copter_serve.slurm_controller.doors import Door
from copter_serve.slurm_controller.horizon import Start, take
from copter_serve.slurm_controller.limits import Limit, limits_of
from copter_serve.slurm_controller.outside import blocked_nodes, partitions_of, weights_of
from copter_serve.slurm_controller.policy import Policy, Rules
from copter_serve.slurm_controller.profiles import (
    MARK,
    Estimates,
    Profile,
    ProfileError,
    asked_before,
    asking,
    parsed,
)
from copter_serve.slurm_controller.reading import ClusterNow, JobNow
from copter_serve.views.documents import BlindError

RENEW = 0.5  # a lease is renewed once so much of it has passed
AT_A_TIME = 6  # updates that are sent at a time
STALE_S = 300.0  # age at which limits, partitions and reservations are read again


Update = tuple[str, str, Callable[[], None]]  # job, what is done in words, the update


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
        self._threads = ThreadPoolExecutor(AT_A_TIME)
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
        """Make one step; BlindError if Slurm does not answer. One refused update stops no other."""
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
        runs_s = {name: start.seconds for name, start in self._ran.items()}
        seen = replace(cluster, jobs=dict(cluster.jobs))
        for name, each in self.asked.items():  # an asked start counts as running until it runs or is given up
            runs_s[name], nodes = each.start.seconds, each.start.nodes
            seen.jobs[name] = replace(
                seen.jobs[name], state="CONFIGURING", nodes=nodes, gpus=each.start.gpus, started_s=each.at_s
            )
            if all(node in cluster.nodes for node in nodes):
                take(cluster, each.start.job, each.start, nodes)
        for name, (until, why) in list(self.refused.items()):
            if cluster.now_s < until and name in planned_for:
                done.left[name] = why
                del planned_for[name]
        weights = weights_of(cluster, self._by_priority)
        plan = self.policy.plan(seen, planned_for, limits, blocked, weights, runs_s)
        done.left |= plan.left_out
        begun = {start.job.id for start in plan.starts}
        late = [
            cluster.jobs[name]
            for name in planned_for
            if name in cluster.jobs and cluster.jobs[name].waits and name not in begun and name not in plan.left_out
            and self._is_due(cluster.jobs[name], cluster.now_s)
        ]  # fmt: skip
        made = self._update_all(done, [*map(self._start, plan.starts), *map(self._renewal, late)])
        for start, is_made in zip(plan.starts, made, strict=False):
            if is_made:
                done.started += 1
                if not self.options.dry_run:
                    self.asked[start.job.id] = Asked(start, cluster.now_s)
        done.renewed += sum(made[len(plan.starts) :])
        done.waiting = sum(cluster.jobs[name].waits for name in profiles if name in cluster.jobs)
        return done

    def close(self) -> Step:
        """Hand every job that waits under the controller to Slurm."""
        done = Step()
        updates = []
        for job in self.door.read().jobs.values():
            if job.waits and job.id in self.own:
                own, back = self.own[job.id][0], partial(self.door.release, job.id)
                if asked_before(job.comment) is not None:
                    back = partial(self.door.take_back, job.id, 0, own.required, _gpus(own, own.gpus), own.comment)
                updates.append((job.id, "is Slurm's again", back))
        self._update_all(done, updates)
        return done

    # What is under the controller -----------------------------------------------------------------------------------

    def _under_control(self, cluster: ClusterNow, done: Step) -> dict[str, Profile]:
        found = {}
        for job in cluster.jobs.values():
            if not (job.comment.startswith(MARK) or job.partition in self.options.partitions):
                continue
            later = job.begins_s - cluster.now_s
            if job.waits and not job.comment.startswith(MARK) and later > self.options.lease_s + 1.0:
                done.left[job.id] = "begins later, as its user asked"
                continue
            if job.id not in self.own:
                job = self._as_it_was(job, cluster.now_s)
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

    def _as_it_was(self, job: JobNow, now_s: float) -> JobNow:
        """Return a job as its user submitted it: a controller that ended may have asked for its start."""
        before = asked_before(job.comment)
        if before is None:
            return job
        if job.waits:
            self.asked[job.id] = Asked(Start(job, job.required, job.gpu_type or "gpu", job.gpus, math.inf), now_s)
        return replace(job, comment=before[0], gpus=before[1], required=())

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
        """Drop asked starts that were made, and take back those that Slurm did not make in time, or put back in line.

        A job that Slurm puts back, as its node was lost, still has the nodes of its start: it would wait for the
        lost one.
        """
        for back in cluster.jobs.values():
            if back.waits and back.id in self.own and back.id not in self.asked and asked_before(back.comment):
                self._ran.pop(back.id, None)
                self._take_back(back, f"is back in line ({back.reason or 'not started'})", done)
        for name, asked in list(self.asked.items()):
            job = cluster.jobs.get(name)
            if job is None or not job.waits:
                self._ran[name] = asked.start
                del self.asked[name]
            elif cluster.now_s - asked.at_s >= self.options.give_up_s:
                done.given_up += 1
                self._take_back(job, f"gives up ({job.reason or 'not started'})", done)
                del self.asked[name]
                self.refused[name] = (cluster.now_s + self.options.give_up_s, "Slurm did not start it where planned")

    def _take_back(self, job: JobNow, text: str, done: Step) -> None:
        own, seconds = self.own[job.id][0], self.options.lease_s
        back = partial(self.door.take_back, job.id, seconds, own.required, _gpus(own, own.gpus), own.comment)
        if self._update_all(done, [(job.id, text, back)])[0] and not self.options.dry_run:
            job.required, job.gpus, job.comment, job.reason = own.required, own.gpus, own.comment, "BeginTime"
            job.begins_s = self.door.now_s() + seconds

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

    def _start(self, start: Start) -> Update:
        own = self.own[start.job.id][0]
        # The nodes decide on the type; a type on a job that asked for none is refused.
        changed = _gpus(own, start.gpus) if start.gpus != own.gpus else None
        text = f"starts on {','.join(start.nodes)}" + (f" with {changed} GPUs" if changed else "")
        comment = asking(own.comment, own.gpus)
        return start.job.id, text, lambda: self.door.start(start.job.id, start.nodes, changed, comment)

    def _is_due(self, job: JobNow, now_s: float) -> bool:
        """Return whether a job's lease must be renewed, or is given for the first time."""
        left = job.begins_s - now_s
        return left <= RENEW * self.options.lease_s or (job.reason != "BeginTime" and left <= 0.0)

    def _renewal(self, job: JobNow) -> Update:
        seconds = self.options.lease_s
        return job.id, f"waits at most {seconds} s more", lambda: self.door.postpone(job.id, seconds)

    def _update_all(self, done: Step, updates: Sequence[Update]) -> list[bool]:
        """Make updates, some at a time; return which were made. A refusal is noted, and its job left alone for a while.

        Raises
        ------
        BlindError
            If Slurm did not answer; the other updates were tried all the same.
        """
        if self.options.dry_run:
            done.lines += [f"job {name} {text}" for name, text, _ in updates]
            return [True] * len(updates)
        made, blind = [], None
        for (name, text, _), error in zip(updates, self._threads.map(_tried, updates), strict=True):
            made.append(error is None)
            done.lines.append(f"job {name} {text}" + ("" if error is None else f": not done: {error}"))
            if isinstance(error, BlindError):
                blind = error
            elif error is not None:
                self.refused[name] = (self.door.now_s() + self.options.lease_s, str(error))
        if blind is not None:
            raise blind
        return made


def _tried(update: Update) -> QueueError | None:
    try:
        update[2]()
    except QueueError as error:
        return error
    return None


def _gpus(job: JobNow, count: int) -> str | None:
    """Return a number of GPUs a node as a job asked for them, with its type if it named one; None for no GPUs."""
    if not count:
        return None
    return f"{job.gpu_type}:{count}" if job.gpu_type else str(count)
