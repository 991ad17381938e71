"""A hypothetical change, such as "add 8 a100, quota vision 16, add job probe 4 bert, remove job old"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from copter_frontends.vocabulary import Cluster, FrontendError, Job, SchedulingPolicy

if TYPE_CHECKING:
    from copter_frontends.simulator import Simulation

FORMS = "add N TYPE, remove N TYPE, quota TEAM N, add job NAME GPUS [APPLICATION], remove job NAME"
MOST_PARTS = 100  # most parts of one change
MOST_GPUS = 10_000_000  # most GPUs in one part
_COUNT = re.compile(r"[0-9]{1,8}", re.ASCII)


class WhatIfError(FrontendError):
    """A change that cannot be read, or that does not apply to the given cluster or policy."""


@runtime_checkable
class WithQuotas(Protocol):
    """A policy whose tenants have quotas."""

    def set_quota(self, tenant: str, gpus: int) -> None:
        """Change a tenant's quota."""


@dataclass(frozen=True, slots=True)
class AddedJob:
    """A job that the change adds: its name, its GPUs, and its application if one was named."""

    name: str
    gpus: int
    application: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """Parts of a change.

    Attributes
    ----------
    text : str
        The change as the user wrote it.
    gpus : dict of GPU type to int
        GPUs added (positive) or removed (negative).
    quotas : dict of tenant to int
    added : tuple of AddedJob
    removed : tuple of str
        Names of removed jobs.
    """

    text: str
    gpus: Mapping[str, int] = field(default_factory=dict)
    quotas: Mapping[str, int] = field(default_factory=dict)
    added: tuple[AddedJob, ...] = ()
    removed: tuple[str, ...] = ()

    @classmethod
    def read(cls, text: str) -> Change:
        """Read a change from text; WhatIfError names the wrong part and the valid forms."""
        parts = [part.split() for part in text.split(",")]
        if len(parts) > MOST_PARTS:
            raise WhatIfError(f"what-if: {len(parts)} parts, at most {MOST_PARTS} are taken")
        gpus: dict[str, int] = {}
        quotas: dict[str, int] = {}
        added: dict[str, AddedJob] = {}
        removed: dict[str, None] = {}
        for words in parts:
            told = " ".join(words)
            match words:
                case ["add", "job", name, count] | ["add", "job", name, count, _]:
                    application = words[4] if len(words) == 5 else None
                    _once(told, name, added)
                    added[name] = AddedJob(name, _counted(told, count, 1), application)
                case ["remove", "job", name]:
                    _once(told, name, removed)
                    removed[name] = None
                case ["quota", team, count]:
                    _once(told, team, quotas)
                    quotas[team] = _counted(told, count, 0)
                case ["add" | "remove" as verb, count, kind]:
                    _once(told, kind, gpus)
                    gpus[kind] = _counted(told, count, 1) * (1 if verb == "add" else -1)
                case _:
                    raise WhatIfError(f"what-if: {told!r} is not one of: {FORMS}; parts are separated by commas")
        return cls(text.strip(), gpus, quotas, tuple(added.values()), tuple(removed))

    def jobs(self, jobs: list[Job]) -> list[Job]:
        """Return the jobs with the added ones, at time 0, and without the removed ones; WhatIfError for an unknown one.

        An added job runs the application that was named, else the most common one of the other jobs.
        """
        names = {job.id for job in jobs}
        for name in self.removed:
            if name not in names:
                raise WhatIfError(f"what-if: there is no job {name!r} to remove; {_some(names)}")
        for each in self.added:
            if each.name in names - set(self.removed):
                raise WhatIfError(f"what-if: job {each.name!r} is there already; give it another name")
        kept = [job for job in jobs if job.id not in self.removed]
        return [*(job_of(each, jobs) for each in self.added), *kept]

    def require_only_gpus(self, where: str, quotas: bool = False) -> None:
        """Raise WhatIfError if the change has parts on jobs, or on quotas unless `quotas` is true."""
        if self.added or self.removed or (self.quotas and not quotas):
            part = "jobs" if self.added or self.removed else "quotas"
            raise WhatIfError(f"what-if: {where} takes no change of {part}; `copter simulate ... --what-if` does")

    def tell(self, policy: SchedulingPolicy, cluster: Cluster, jobs: list[Job]) -> None:
        """Apply the change to a policy; raises FrontendError or another error of copter if the policy refuses a part.

        Parameters
        ----------
        policy : SchedulingPolicy
            Pass a copy: if a part is refused, earlier parts have been applied.
        cluster : Cluster
            The policy's present cluster, for the names of removed nodes.
        jobs : list of Job
            Jobs of the run, for the application of an added job.
        """
        for name in self.removed:
            policy.remove_job(name)
        for kind, count in self.gpus.items():
            if count > 0:
                policy.add_resources(kind, count)
            else:
                policy.remove_resources(kind, -count, sorted(cluster.choose_whole_nodes(kind, -count)))
        self.tell_quotas(policy)
        for each in self.added:
            policy.add_job(job_of(each, jobs))

    def tell_simulation(self, simulation: Simulation) -> None:
        """Change the GPUs and quotas of a simulation between two rounds; raises one of copter's errors if a part is
        refused.
        """
        for kind, count in self.gpus.items():
            if count > 0:
                simulation.add_nodes(kind, len(simulation.cluster.copy().add_whole_nodes(kind, count)))
            else:
                simulation.remove_nodes(sorted(simulation.cluster.choose_whole_nodes(kind, -count)))
        self.tell_quotas(simulation.policy)

    def tell_quotas(self, policy: object) -> None:
        """Apply the quotas to a policy; WhatIfError if it has no quotas."""
        for team, count in self.quotas.items():
            if not isinstance(policy, WithQuotas):
                raise WhatIfError(f"what-if: quota {team} {count}: the policy {type(policy).__name__} has no quotas")
            policy.set_quota(team, count)

    def delta(self, capacity: Mapping[str, int]) -> dict[str, Any]:
        """Return the change as a delta of the service, whose clusters have no quotas.

        Parameters
        ----------
        capacity : mapping of GPU type to int
            GPUs of the cluster now.

        Raises
        ------
        WhatIfError
            For a quota, an unknown type, or if more GPUs are removed than exist.
        """
        for team, count in self.quotas.items():
            raise WhatIfError(f"what-if: quota {team} {count}: clusters of the service have no quotas")
        for kind, count in self.gpus.items():
            if kind not in capacity:
                raise WhatIfError(f"what-if: there is no GPU type {kind!r}; the cluster has {', '.join(capacity)}")
            if capacity[kind] + count < 0:
                raise WhatIfError(f"what-if: remove {-count} {kind}: the cluster has {capacity[kind]}")
        told: dict[str, Any] = {}
        if self.gpus:
            told["set_capacity"] = {kind: capacity[kind] + count for kind, count in self.gpus.items()}
        if self.removed:
            told["remove_jobs"] = list(self.removed)
        if self.added:
            told["add_jobs"] = [
                {"id": each.name, "gpus": each.gpus, **({"application": each.application} if each.application else {})}
                for each in self.added
            ]
        return told


def job_of(added: AddedJob, others: list[Job]) -> Job:
    """Return an added job as a job: with its own application, else the most common one of the others."""
    names = [job.application for job in others]
    if added.application is None and not names:
        raise WhatIfError(f"what-if: add job {added.name} {added.gpus} APPLICATION: say which application it runs")
    return Job(added.name, added.application or max(names, key=names.count), requested_gpus=added.gpus)


def _once(told: str, name: str, found: Mapping[str, object]) -> None:
    if name in found:
        raise WhatIfError(f"what-if: {told!r}: {name!r} is named twice; say it once, in sum")


def _counted(told: str, word: str, least: int) -> int:
    if not _COUNT.fullmatch(word) or not least <= int(word) <= MOST_GPUS:
        raise WhatIfError(f"what-if: {told!r}: {word!r} is no whole number from {least} to {MOST_GPUS:,}")
    return int(word)


def _some(names: set[str]) -> str:
    return f"there are {len(names):,}, among them {', '.join(sorted(names)[:3])}" if names else "there is none"
