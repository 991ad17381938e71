"""What decides whether a job can start: rooms on nodes, pods that need them, and ways to run a job.

All views use these words. A node has free amounts of each resource, and may be closed, or held alone by a job or a
user. A way to run a job takes amounts of quotas and counts of limits, and consists of pods, each of which needs one
node.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from copter_serve.queues.quota_tree import Amounts

WHOLE = "*"  # the owner of a node that one job has alone
SLACK = 1e-9  # relative allowance for rounding in sums of amounts


def within(need: float, room: float) -> bool:
    """Whether a need fits into a room, up to rounding."""
    return need <= room + SLACK * (1.0 + abs(room))


@dataclass(slots=True)
class Node:
    """A node at one moment.

    Attributes
    ----------
    name : str
    total, free : dict of str to float
        Amounts of each resource; the free ones surely are free.
    maybe : dict of str to float
        Amounts beyond the free ones that may be free, too, as the documents leave it open.
    step : dict of str to float
        Resources that are given in multiples of this amount, such as CPUs by whole cores.
    closed : str
        Why no job may start here; empty if one may.
    unclear : str
        Why it is not known whether a job may start here; empty if it is.
    users : frozenset of str
        Users of the jobs on the node.
    owner : str
        User to whose jobs the node is left, `WHOLE` if one job has it alone; empty if it is open to all.
    devices : tuple of tuple of float
        For GPUs that are shared by parts: the free part of each, in every arrangement that the documents allow; empty
        where GPUs are not shared.
    device : str
        Resource of these GPUs.
    device_memory : float
        Memory of one of these GPUs, in MiB; 0 if it is not told.
    """

    name: str
    total: dict[str, float] = field(default_factory=dict)
    free: dict[str, float] = field(default_factory=dict)
    maybe: dict[str, float] = field(default_factory=dict)
    step: dict[str, float] = field(default_factory=dict)
    closed: str = ""
    unclear: str = ""
    users: frozenset[str] = frozenset()
    owner: str = ""
    devices: tuple[tuple[float, ...], ...] = ()
    device: str = ""
    device_memory: float = 0.0

    def is_sure(self) -> bool:
        """Whether jobs surely may start here if there is room."""
        return not self.closed and not self.unclear

    def takes(self, resource: str, need: float) -> float:
        """Return what a need takes of a resource here."""
        step = self.step.get(resource, 0.0)
        return math.ceil(need / step - SLACK) * step if step > 0.0 else need


@dataclass(frozen=True, slots=True)
class Pods:
    """Equal pods of a job, or its equal parts on nodes.

    Attributes
    ----------
    count : int
    need : Mapping of str to float
        Amounts of one pod by resource, with whole GPUs.
    nodes : frozenset of str or None
        Names of the nodes that its rules admit; None for all.
    apart : bool
        Whether each needs a node that no other pod of the job uses.
    untouched : tuple of str
        Resources of which a node must have everything free, and gives everything.
    alone : str
        `WHOLE` if the node must be empty and no other job may come; a user, if jobs of other users must not.
    portion, portion_memory : float
        Part of a GPU, or memory of a GPU in MiB, on each of `devices` GPUs.
    devices : int
    """

    count: int
    need: Mapping[str, float]
    nodes: frozenset[str] | None = None
    apart: bool = False
    untouched: tuple[str, ...] = ()
    alone: str = ""
    portion: float = 0.0
    portion_memory: float = 0.0
    devices: int = 0

    def part_on(self, node: Node) -> float:
        """Return the part of each GPU that one pod takes on a node; above 1 if it cannot."""
        if self.portion_memory:
            return self.portion_memory / node.device_memory if node.device_memory else 2.0
        return self.portion


@dataclass(frozen=True, slots=True)
class Way:
    """One way to run a job.

    Attributes
    ----------
    queue : str
    amounts : Amounts
        What it takes of the queue's quotas.
    pods : tuple of Pods
        Empty where the view knows no nodes.
    counts : Mapping of str to float
        What it takes of the view's limits.
    stages : tuple of tuple of Amounts
        Amounts that are chosen one after the other, of each stage the first that fits beside the earlier ones; they
        come to `amounts`.
    prefers_own : bool
        Whether in each stage what the queue need not borrow is chosen before the rest.
    loose : Pods or None
        The same pods without what a bound need not know, where the job may be dealt to nodes in other ways than `pods`.
    user : str
    unclear : str
        Why it is not known whether this way is open; empty if it is. It counts in the bound, but never in a plan.
    """

    queue: str
    amounts: Amounts
    pods: tuple[Pods, ...] = ()
    counts: Mapping[str, float] = field(default_factory=dict)
    stages: tuple[tuple[Amounts, ...], ...] = ()
    prefers_own: bool = False
    loose: Pods | None = None
    user: str = ""
    unclear: str = ""


@dataclass(frozen=True, slots=True)
class Start:
    """A job that could start, the way, the amounts it takes of quotas, and for each of its pods the node."""

    job: str
    way: Way
    amounts: Amounts
    places: tuple[tuple[str, ...], ...]  # of each of the way's pods

    @property
    def nodes(self) -> list[str]:
        """Return the nodes, each once."""
        return sorted({name for each in self.places for name in each})
