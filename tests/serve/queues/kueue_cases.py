"""Reads the cases of Kueue's own tests of preemption, tables in Go, as trees, workloads and who is stopped."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from copter_serve.queues import Quota, QuotaTree
from copter_serve.queues.fair_preemption import STRATEGIES
from copter_serve.queues.preemption import Holder, Preemption
from copter_serve.queues.quantities import quantity
from copter_serve.queues.quota_tree import Share

RESOURCE = r'(?:corev1\.Resource(\w+)|"([^"]+)")'
EMPTY = {("default", resource): Quota(0.0) for resource in ("cpu", "memory")}  # queues that list no resource


class UnreadableError(Exception):
    """A case that uses what the plan does not know, such as several pod sets."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case: the tree with the holders' usage, the rules of the asking queue, and the names of those stopped."""

    name: str
    tree: QuotaTree
    rules: Preemption
    asking: Holder
    holders: list[Holder]
    strategies: tuple[str, ...]
    expected: set[str]


def cases(path: Path, fair: bool) -> Iterator[Case]:
    """Yield the cases of a file that can be read."""
    head, _, body = path.read_text().partition("cases := map")
    named = dict(re.findall(r"^\t(\w+) := \[\]\*kueue\.ClusterQueue\{(.*?)^\t\}", head, re.DOTALL | re.MULTILINE))
    for name, block in re.findall(r'^\t\t"((?:[^"\\]|\\.)+)": \{\n(.*?)^\t\t\},', body, re.DOTALL | re.MULTILINE):
        try:
            yield case(name, block, named, fair)
        except UnreadableError:
            continue


def case(name: str, block: str, named: dict[str, str], fair: bool) -> Case:
    """Read one case."""
    tree, rules = QuotaTree(), dict[str, Preemption]()
    tree.fair = fair
    for told in section(block, "cohorts").split("MakeCohort(")[1:]:
        parent = first(r'Parent\("([^"]+)"', told) or None
        tree.add_cohort(first(r'"([^"]+)"', told), quotas(told), parent, weight(told))
    queues = section(block, "clusterQueues")
    queues = queues if "MakeClusterQueue" in queues else named.get(queues.strip(" ,\n"), "")
    for told in queues.split("MakeClusterQueue(")[1:]:
        queue = first(r'"([^"]+)"', told)
        tree.add_queue(queue, quotas(told) or EMPTY, first(r'Cohort\("([^"]+)"', told) or None, weight(told))
        most = first(r"MaxPriorityThreshold:\s*\S*?\((?:int32\()?(-?\d+)", told)
        rules[queue] = Preemption(
            first(r"WithinClusterQueue:\s*kueue\.PreemptionPolicy(\w+)", told) or "Never",
            first(r"ReclaimWithinCohort:\s*kueue\.PreemptionPolicy(\w+)", told) or "Never",
            first(r"BorrowWithinCohortPolicy(\w+)", told) or "Never",
            float(most or math.inf),
        )
    tree.settle()
    holders = sorted(workloads(section(block, "admitted")), key=lambda each: each.key)
    if any(each.queue not in tree.queues for each in holders):
        raise UnreadableError
    for each in holders:
        tree.use(each.queue, each.amounts)
    target, incoming = first(r'"([^"]+)"', section(block, "targetCQ")), section(block, "incoming")
    if not target or "PodSets(" in incoming:
        raise UnreadableError
    flavors = dict(re.findall(r'corev1\.Resource(\w+):[^"]*?Name:\s*"([^"]+)"', section(block, "assignment")))
    default = first(r'"([^"]+)"', section(block, "assignmentFlavor")) or "default"
    needs = {(flavors.get(kind, default), kind.lower()): amount for kind, amount in requests(incoming).items()}
    priority = int(first(r"Priority\((-?\d+)", incoming) or 0)
    asking = Holder("incoming", target, needs, priority, moment(incoming, "Creation"))
    if fair:
        expected = set(re.findall(r'targetKeyReason\("/?([^"]+)"', section(block, "wantPreempted")))
    else:
        expected = {each.key for each in workloads(section(block, "wantWorkloads")) if each.evicted}
    strategies = tuple(re.findall(r"config\.(LessThan\w+)", section(block, "strategies"))) or STRATEGIES[0]
    return Case(name, tree, rules[target], asking, holders, strategies, expected)


def section(block: str, field: str) -> str:
    """Return the value of a field of a case, as text; empty without one."""
    found = re.search(rf"^\t\t\t{field}:(.*?)(?=^\t\t\t\w+:|\Z)", block, re.DOTALL | re.MULTILINE)
    return "" if found is None else found[1]


def first(pattern: str, text: str) -> str:
    """Return what the first match of a pattern has in its group; empty without a match."""
    found = re.search(pattern, text)
    return "" if found is None else str(found[1])


def weight(told: str) -> float:
    """Return the weight in fair sharing."""
    return quantity("weight", first(r'FairWeight\(resource\.MustParse\("([^"]+)"', told) or "1")


def quotas(told: str) -> dict[Share, Quota]:
    """Return the quotas of a queue or cohort."""
    found: dict[Share, Quota] = {}
    for part in told.split("MakeFlavorQuotas(")[1:]:
        for kind, name, numbers in re.findall(rf'Resource\(\s*{RESOURCE}((?:,\s*"[^"]*")*)\s*\)', part):
            values = [quantity("quota", each) if each else math.inf for each in re.findall(r'"([^"]*)"', numbers)]
            found[first(r'"([^"]+)"', part), kind.lower() or name] = Quota(*values)
    return found


def requests(told: str) -> dict[str, float]:
    """Return the amounts that a workload asks for, by Kueue's name of the resource."""
    found = {"CPU": 1.0} if "unitWl." in told else {}
    for kind, name, amount in re.findall(rf'Request\(\s*{RESOURCE},\s*"([^"]+)"', told):
        found[kind or name] = quantity("request", amount)
    return found


def workloads(text: str) -> Iterator[Holder]:
    """Yield admitted workloads."""
    for told in re.split(r"(?=utiltestingapi\.MakeWorkload\(|unitWl\.Clone\(\))", text)[1:]:
        key = first(r'(?:MakeWorkload|\.Name)\("([^"]+)"', told)
        queue = first(r'SimpleReserveQuota\("([^"]+)"', told)
        flavor = first(r'SimpleReserveQuota\("[^"]+", "([^"]+)"', told)
        amounts: dict[Share, float] = {(flavor, kind.lower()): amount for kind, amount in requests(told).items()}
        if not queue:
            queue, amounts = first(r'MakeAdmission\("([^"]+)"', told), {}
            for kind, name, where, amount in re.findall(rf'Assignment\(\s*{RESOURCE},\s*"([^"]+)",\s*"([^"]+)"', told):
                share = where, kind.lower() or name
                amounts[share] = amounts.get(share, 0.0) + quantity("assignment", amount)
        priority, since_s = int(first(r"Priority\((-?\d+)", told) or 0), moment(told, "Reserve")
        yield Holder(key, queue, amounts, priority, since_s, moment(told, "Creation"), "WorkloadEvicted" in told)


def moment(told: str, after: str) -> float:
    """Return the seconds from the case's present to the first time that stands after a word."""
    found = re.search(r"\bnow(?:\.Add\((-?)(?:(\d+) \* )?time\.Second\))?", told.partition(after)[2])
    if found is None or "Add" not in found[0]:
        return 0.0
    return (-1.0 if found[1] else 1.0) * float(found[2] or 1)
