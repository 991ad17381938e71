"""Limits of quality of service, accounts and users, as rows of the model."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from copter_serve.slurm_controller.reading import JobNow


@dataclass(frozen=True, slots=True)
class Limit:
    """At most so much of a resource for some jobs at a time.

    Attributes
    ----------
    name : str
        Unique.
    resource : {"cpu", "gpu", "node", "mem", "job"}
        GPUs of all types together, or one type as "gpu:a100".
    most : float
    qos, user, account, partition : str
        The jobs that it is for; empty means any.
    """

    name: str
    resource: str
    most: float
    qos: str = ""
    user: str = ""
    account: str = ""
    partition: str = ""

    def takes(self, job: JobNow, gpus: int) -> float:
        """Return what a job takes of the limit with some GPUs a node; 0 if the limit is not for it."""
        for own, told in (
            (self.qos, job.qos),
            (self.user, job.user),
            (self.account, job.account),
            (self.partition, job.partition),
        ):
            if own and own != told:
                return 0.0
        if self.resource == "job":
            return 1.0
        if self.resource == "node":
            return float(job.node_count)
        if self.resource == "cpu":
            return float(job.cpus)
        if self.resource == "mem":
            return job.memory_mb * job.node_count
        _, _, kind = self.resource.partition(":")
        return float(gpus * job.node_count) if not kind or kind == job.gpu_type else 0.0

    def left(self, jobs: Iterable[JobNow]) -> float:
        """Return what the running jobs leave."""
        return self.most - sum(self.takes(job, job.gpus) for job in jobs if not job.waits)


def limits_of(table: str, jobs: Iterable[JobNow]) -> list[Limit]:
    """Return the limits in what `sacctmgr -nP show qos format=name,grptres,grpjobs,maxtrespu,maxjobspu` prints.

    Limits of a user are made for each user that has a job.
    """
    users = sorted({(job.qos, job.user) for job in jobs})
    found: list[Limit] = []
    for line in table.splitlines():
        cells = line.split("|")
        if len(cells) < 5 or not cells[0]:
            continue
        qos = cells[0]
        for resource, most in [*_tres(cells[1]), *([("job", float(cells[2]))] if cells[2] else [])]:
            found.append(Limit(f"qos {qos} {resource}", resource, most, qos))
        for resource, most in [*_tres(cells[3]), *([("job", float(cells[4]))] if cells[4] else [])]:
            found += [
                Limit(f"qos {qos} {resource} of {user}", resource, most, qos, user)
                for name, user in users
                if name == qos
            ]
    return [limit for limit in found if math.isfinite(limit.most)]


def _tres(text: str) -> list[tuple[str, float]]:
    found = []
    for each in text.split(","):
        name, _, amount = each.partition("=")
        if name.startswith("gres/gpu"):
            found.append((name.removeprefix("gres/"), float(amount)))
        elif name in ("cpu", "node"):
            found.append((name, float(amount)))
        elif name == "mem":
            unit = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2}.get(amount[-1], 1.0)
            found.append(("mem", unit * float(amount.rstrip("KMGT"))))
    return found
