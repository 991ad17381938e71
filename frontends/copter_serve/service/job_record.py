"""The service's record of a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from copter_frontends.policy_kit.deadlines import StepReward
from copter_frontends.vocabulary import InvalidJobError, Job
from copter_serve.service.fields import at, count, flag, identifier, listing, mapping, number, shown
from copter_serve.service.problems import invalid

Table = Mapping[str, Mapping[int, float]]
"""GPU type -> GPUs -> units of work per second."""

FIELDS = frozenset(
    {
        "id", "application", "weight", "gpus", "min_gpus", "max_gpus", "requested_gpus", "preemptible", "work",
        "submit_s", "throughputs", "progress", "restarts", "deadlines",
    }
)  # fmt: skip
CHANGES = frozenset({"id", "weight", "progress", "restarts"})
MOST_SIZES = 10_000  # most throughputs of a job
USUAL = {str(gpus): gpus for gpus in range(1, 1025)}


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One job, read and checked.

    Attributes
    ----------
    id, application : str
    submit_s : float or None
        Seconds since the cluster was created; None until the delta is accepted.
    weight : float
    requested_gpus, min_gpus : int
    max_gpus, gpus : int or None
    preemptible : bool
    work : float or None
        Units of work, for policies that use it.
    throughputs : mapping of GPU type to {GPUs: units per second}
        Given and later measured rates; empty if none is known.
    progress : float
        Fraction of the work that is done.
    restarts : int
    deadlines : tuple of (float, float)
        Seconds from submission, ascending, and the reward for ending by then, falling; empty for a best-effort job.
    """

    id: str
    application: str = ""
    submit_s: float | None = None
    weight: float = 1.0
    requested_gpus: int = 1
    min_gpus: int = 1
    max_gpus: int | None = None
    gpus: int | None = None
    preemptible: bool = True
    work: float | None = None
    throughputs: Table = field(default_factory=dict)
    progress: float = 0.0
    restarts: int = 0
    deadlines: tuple[tuple[float, float], ...] = ()

    @classmethod
    def read(cls, where: str, value: Any) -> JobRecord:
        """Read a job from a document; raises Problem 422."""
        told = mapping(where, value, FIELDS, ("id",))
        name = identifier(f"{where}/id", told["id"])
        low = count(f"{where}/min_gpus", told.get("min_gpus", 1))
        high, fixed = (
            None if told.get(each) is None else count(at(where, each), told[each]) for each in ("max_gpus", "gpus")
        )
        if high is not None and high < low:
            raise invalid(f"{where}/max_gpus", f"is {high}, below min_gpus {low}")
        if fixed is not None and not low <= fixed <= (high or fixed):
            raise invalid(f"{where}/gpus", f"is {fixed}, outside min_gpus {low} to max_gpus {high}")
        wanted = count(f"{where}/requested_gpus", told.get("requested_gpus", fixed or low))
        submit, work = told.get("submit_s"), told.get("work")
        table = read_table(f"{where}/throughputs", told.get("throughputs", {}), wanted)
        application = told.get("application", "")
        return cls(
            id=name,
            application=identifier(f"{where}/application", application) if application != "" else "",
            submit_s=None if submit is None else number(f"{where}/submit_s", submit, least=0.0),
            weight=number(f"{where}/weight", told.get("weight", 1.0), above=0.0),
            requested_gpus=wanted,
            min_gpus=low,
            max_gpus=high,
            gpus=fixed,
            preemptible=flag(f"{where}/preemptible", told.get("preemptible", True)),
            work=None if work is None else number(f"{where}/work", work, above=0.0),
            throughputs=table,
            progress=fraction(f"{where}/progress", told.get("progress", 0.0)),
            restarts=count(f"{where}/restarts", told.get("restarts", 0), 0),
            deadlines=read_deadlines(f"{where}/deadlines", told.get("deadlines", [])),
        )

    @property
    def reward(self) -> StepReward | None:
        """Return the reward for the job's deadlines; None for a best-effort job."""
        return StepReward(self.deadlines) if self.deadlines else None

    def changed(self, change: Mapping[str, Any]) -> JobRecord:
        """Return the job with a checked change applied."""
        return replace(self, **{name: value for name, value in change.items() if name != "id"})

    def measured(self, table: Table) -> JobRecord:
        """Return the job with measured throughputs replaced; zero means that it cannot run."""
        merged: dict[str, Mapping[int, float]] = dict(self.throughputs)
        for kind, by_count in table.items():
            merged[kind] = {**merged.get(kind, {}), **by_count}
        return replace(self, throughputs=merged)

    def document(self) -> dict[str, Any]:
        """Return the job as a JSON document, which :meth:`read` accepts."""
        found: dict[str, Any] = {"id": self.id}
        for name in ("application", "submit_s", "max_gpus", "gpus", "work"):
            value = getattr(self, name)
            if value is not None and value != "":
                found[name] = value
        if self.deadlines:
            found["deadlines"] = [list(step) for step in self.deadlines]
        found.update(
            weight=self.weight,
            requested_gpus=self.requested_gpus,
            min_gpus=self.min_gpus,
            preemptible=self.preemptible,
            progress=self.progress,
            restarts=self.restarts,
            throughputs=table_document(self.throughputs),
        )
        return found

    def job(self) -> Job:
        """Return the job in the policies' form."""
        return Job(
            id=self.id,
            application=self.application,
            submit_s=self.submit_s or 0.0,
            work_samples=self.work,
            requested_gpus=self.requested_gpus,
            min_gpus=self.min_gpus,
            max_gpus=self.max_gpus,
            gpus=self.gpus,
            preemptible=self.preemptible,
        )


def read_deadlines(where: str, value: Any) -> tuple[tuple[float, float], ...]:
    """Read deadlines: a list of [seconds from submission, reward for ending by then]."""
    steps: list[tuple[float, float]] = []
    for k, each in enumerate(listing(where, value)):
        pair = listing(at(where, k), each)
        if len(pair) != 2:
            raise invalid(at(where, k), f"is {shown(each)}", "give [seconds from submission, reward]")
        seconds, reward = (number(f"{at(where, k)}/{part}", told, above=0.0) for part, told in enumerate(pair))
        steps.append((seconds, reward))
    try:
        return StepReward(tuple(steps)).steps if steps else ()
    except InvalidJobError as error:
        raise invalid(where, str(error)) from None


def read_table(where: str, value: Any, requested: int | None = None) -> dict[str, dict[int, float]]:
    """Read a table of throughputs: {type: {"GPUs": rate}}, or {type: rate} for the requested GPUs."""
    table: dict[str, dict[int, float]] = {}
    for kind, entry in mapping(where, value).items():
        place = at(where, kind)
        identifier(place, kind)
        if isinstance(entry, dict):
            table[kind] = read_rates(place, entry)
        elif requested is None:
            raise invalid(place, f"is {shown(entry)}, must be an object", 'give {"GPUs": units per second}')
        else:
            table[kind] = {requested: number(place, entry, least=0.0)}
    return table


def sizes_of(value: Any) -> int:
    """Return the number of throughputs in a document, checked or not."""
    if not isinstance(value, Mapping):
        return 0
    return sum(len(entry) if isinstance(entry, Mapping) else 1 for entry in value.values())


def require_few_sizes(where: str, sizes: int) -> None:
    """Raise Problem 422 for a job with more throughputs than any policy looks at."""
    if sizes > MOST_SIZES:
        raise invalid(
            where, f"has {sizes:,} throughputs, a job may have {MOST_SIZES:,}", "leave out sizes it never gets"
        )


def read_rates(where: str, entry: Mapping[str, Any]) -> dict[int, float]:
    """Read rates by number of GPUs; positions are computed only for errors, for speed."""
    found: dict[int, float] = {}
    for text, rate in entry.items():
        gpus = USUAL.get(text)
        if gpus is None or type(rate) is not float or not 0.0 <= rate < inf:
            gpus = read_gpus(at(where, text), text)
            rate = number(at(where, text), rate, least=0.0)
        found[gpus] = rate
    return found


def read_gpus(where: str, text: str) -> int:
    """Read a number of GPUs from a field's name."""
    if not (text.isascii() and text.isdigit() and len(text) <= 7):
        raise invalid(where, f"{shown(text)} is no number of GPUs", 'name the field by a whole number, such as "8"')
    return count(where, int(text))


def read_change(where: str, value: Any) -> dict[str, Any]:
    """Read the changes of a job."""
    told = mapping(where, value, CHANGES, ("id",))
    found: dict[str, Any] = {"id": identifier(f"{where}/id", told["id"])}
    if "weight" in told:
        found["weight"] = number(f"{where}/weight", told["weight"], above=0.0)
    if "progress" in told:
        found["progress"] = fraction(f"{where}/progress", told["progress"])
    if "restarts" in told:
        found["restarts"] = count(f"{where}/restarts", told["restarts"], 0)
    return found


def fraction(where: str, value: Any) -> float:
    """Return a number from 0 to 1."""
    found = number(where, value, least=0.0)
    if found > 1.0:
        raise invalid(where, f"is {value}, must be a fraction from 0 to 1")
    return found


def table_document(table: Table) -> dict[str, dict[str, float]]:
    """Return a table as a JSON document."""
    return {kind: {str(gpus): rate for gpus, rate in by_count.items()} for kind, by_count in table.items()}
