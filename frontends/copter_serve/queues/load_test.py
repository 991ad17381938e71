"""Kueue's scheduler performance test as input of the simulator: its cohorts, queues and classes of workloads.

The queues of a set are identical. In each, workloads of every class arrive at fixed intervals. The numbers of the
built-in tests are those of Kueue's public generator; any of its files can be read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from copter_frontends.vocabulary.yaml_files import check_fields, load_yaml, read_count, read_word
from copter_serve.queues.errors import QueueError
from copter_serve.queues.quantities import quantity
from copter_serve.queues.quota_tree import Quota, QuotaTree, Share

SHARE: Share = ("default", "cpu")
MOST_WORKLOADS = 10_000_000  # most workloads of a test, so that they fit into memory
POLICIES = ("Never", "LowerPriority", "LowerOrNewerEqualPriority", "Any")


@dataclass(frozen=True, slots=True)
class WorkloadClass:
    """Identical workloads that arrive in a queue at fixed intervals.

    Attributes
    ----------
    name : str
    count : int
        Workloads in each queue.
    interval_ms, runtime_ms : int
        The first workload arrives after one interval.
    priority : int
    request : float
        Units of quota.
    """

    name: str
    count: int
    interval_ms: int
    runtime_ms: int
    priority: int
    request: float

    @property
    def work(self) -> float:
        """Return the work of one workload: units times milliseconds."""
        return self.request * self.runtime_ms


@dataclass(frozen=True, slots=True)
class QueueSet:
    """Identical queues of one cohort."""

    name: str
    count: int
    nominal: float
    borrowing: float
    classes: tuple[WorkloadClass, ...]


@dataclass(frozen=True, slots=True)
class CohortSet:
    """Identical cohorts."""

    name: str
    count: int
    queue_sets: tuple[QueueSet, ...]

    @property
    def quota(self) -> float:
        """Return the quota of one cohort, in units."""
        return sum(each.nominal * each.count for each in self.queue_sets)


@dataclass(frozen=True, slots=True)
class Ranges:
    """Limits that Kueue's own checker sets for a run; the defaults are no limits.

    Attributes
    ----------
    wall_ms : float
        Most milliseconds from start to end.
    usage : float
        Least mean usage, as a share of nominal quota.
    admission_ms : mapping of class to float, or None
        Most milliseconds that workloads of a class wait for admission in the mean.
    """

    wall_ms: float = math.inf
    usage: float = 0.0
    admission_ms: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class LoadTest:
    """A load test: cohorts, and Kueue's ranges for the result."""

    name: str
    cohort_sets: tuple[CohortSet, ...]
    ranges: Ranges = Ranges()

    @property
    def workloads(self) -> int:
        """Return the number of workloads in all."""
        return sum(
            cohorts.count * queues.count * each.count
            for cohorts in self.cohort_sets
            for queues in cohorts.queue_sets
            for each in queues.classes
        )

    @property
    def queues(self) -> int:
        """Return the number of queues in all."""
        return sum(cohorts.count * queues.count for cohorts in self.cohort_sets for queues in cohorts.queue_sets)

    @property
    def quota(self) -> float:
        """Return the quota of all cohorts, in units."""
        return sum(cohorts.count * cohorts.quota for cohorts in self.cohort_sets)

    @property
    def grid_ms(self) -> int:
        """Return the largest time step, in milliseconds, of which all arrivals and runtimes are multiples."""
        return math.gcd(
            *(
                number
                for cohorts in self.cohort_sets
                for queues in cohorts.queue_sets
                for each in queues.classes
                for number in (each.interval_ms, each.runtime_ms)
            )
        )

    def tree(self) -> QuotaTree:
        """Return the test's cohorts and queues as a tree."""
        tree = QuotaTree()
        for cohort, queue, queues in self.each_queue():
            tree.add_queue(queue, {SHARE: Quota(queues.nominal, queues.borrowing)}, cohort)
        return tree.settle()

    def each_queue(self) -> list[tuple[str, str, QueueSet]]:
        """Return (cohort's name, queue's name, queue's set) of each queue."""
        return [
            (f"{cohorts.name}-{at}", f"{queues.name}-{of_set}-{number}-{cohorts.name}-{at}", queues)
            for cohorts in self.cohort_sets
            for at in range(cohorts.count)
            for of_set, queues in enumerate(cohorts.queue_sets)
            for number in range(queues.count)
        ]


def _three(small: tuple[int, int, int], medium: tuple[int, int, int], large: tuple[int, int, int]) -> Any:
    named = zip(("small", "medium", "large"), (small, medium, large), (50, 100, 200), (1, 5, 20), strict=True)
    return tuple(WorkloadClass(name, *numbers, priority, request) for name, numbers, priority, request in named)


def _built_in(name: str, cohorts: int, queues: int, classes: tuple[WorkloadClass, ...], ranges: Ranges) -> LoadTest:
    return LoadTest(name, (CohortSet("cohort", cohorts, (QueueSet("cq", queues, 20.0, 100.0, classes),)),), ranges)


BUILT_IN = {
    each.name: each
    for each in (
        _built_in(
            "large-scale-60000", 20, 100, _three((20, 20, 50), (7, 50, 100), (3, 200, 200)),
            Ranges(900e3, 0.55, {"large": 60e3, "medium": 500e3, "small": 1500e3}),
        ),
        _built_in(
            "large-scale-50000", 10, 100, _three((35, 60, 150), (11, 300, 350), (4, 700, 700)),
            Ranges(1416e3, 0.316, {"large": 128e3, "medium": 308e3, "small": 841e3}),
        ),
        _built_in(
            "baseline", 5, 6, _three((350, 100, 200), (100, 500, 500), (50, 1200, 1000)),
            Ranges(425e3, 0.50, {"large": 23e3, "medium": 90e3, "small": 260e3}),
        ),
    )
}  # fmt: skip
"""Kueue's tests by name: the first large one, with the provisional ranges of its time, and two of 2026."""


def load_test(name: str) -> LoadTest:
    """Return a built-in test, or read one of Kueue's generator files.

    Raises
    ------
    QueueError
        If a field is missing, unknown or of the wrong type; the message names its place.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    document = load_yaml(name)
    try:
        fields = check_fields(name, document, ["cohorts"], ["topology", "resourceFlavor"])
        if "topology" in fields:
            raise QueueError(f"{name}: a topology is not read: only the test of queues and quotas is")
        found = LoadTest(
            Path(name).stem, tuple(_cohorts(f"{name}: cohorts[{at}]", each) for at, each in _listed(name, fields))
        )
    except QueueError:
        raise
    except ValueError as error:
        raise QueueError(str(error)) from error
    if not 0 < found.workloads <= MOST_WORKLOADS:
        raise QueueError(f"{name}: {found.workloads:,} workloads; it must be 1 to {MOST_WORKLOADS:,}")
    return found


def _listed(where: str, fields: Mapping[str, Any], name: str = "cohorts") -> list[tuple[int, Any]]:
    if not isinstance(fields[name], list) or not fields[name]:
        raise QueueError(f"{where}: {name} must be a list with at least one entry")
    return list(enumerate(fields[name]))


def _cohorts(where: str, entry: Any) -> CohortSet:
    fields = check_fields(where, entry, ["className", "count", "queuesSets"])
    sets = tuple(_queues(f"{where}.queuesSets[{at}]", each) for at, each in _listed(where, fields, "queuesSets"))
    return CohortSet(
        read_word(f"{where}.className", fields["className"]), read_count(f"{where}.count", fields["count"], 1), sets
    )


def _queues(where: str, entry: Any) -> QueueSet:
    fields = check_fields(
        where, entry, ["className", "count", "nominalQuota", "workloadsSets"],
        ["borrowingLimit", "reclaimWithinCohort", "withinClusterQueue"],
    )  # fmt: skip
    for name in ("reclaimWithinCohort", "withinClusterQueue"):
        if fields.get(name, "Never") not in POLICIES:
            raise QueueError(f"{where}.{name}: {fields[name]!r}; it must be one of {', '.join(POLICIES)}")
    limit = fields.get("borrowingLimit")
    classes: list[WorkloadClass] = []
    for at, each in _listed(where, fields, "workloadsSets"):
        classes += _classes(f"{where}.workloadsSets[{at}]", each)
    return QueueSet(
        read_word(f"{where}.className", fields["className"]),
        read_count(f"{where}.count", fields["count"], 1),
        quantity(f"{where}.nominalQuota", fields["nominalQuota"]),
        math.inf if limit in (None, "") else quantity(f"{where}.borrowingLimit", limit),
        tuple(classes),
    )


def _classes(where: str, entry: Any) -> list[WorkloadClass]:
    fields = check_fields(where, entry, ["count", "creationIntervalMs", "workloads"])
    listed = _listed(where, fields, "workloads")
    if len(listed) != 1:
        raise QueueError(f"{where}.workloads: {len(listed)} kinds take turns; give each a set of its own")
    at = f"{where}.workloads[0]"
    kind = check_fields(at, listed[0][1], ["className", "runtimeMs", "priority", "request"], ["podCount"])
    return [
        WorkloadClass(
            read_word(f"{at}.className", kind["className"]),
            read_count(f"{where}.count", fields["count"], 1),
            read_count(f"{where}.creationIntervalMs", fields["creationIntervalMs"], 1),
            read_count(f"{at}.runtimeMs", kind["runtimeMs"], 1),
            read_count(f"{at}.priority", kind["priority"], 0, 2**31 - 1),
            quantity(f"{at}.request", kind["request"]) * read_count(f"{at}.podCount", kind.get("podCount", 1), 1),
        )
    ]
