"""What a placement leaves behind when it is undone."""

from __future__ import annotations

from typing import Any, cast

from copter_frontends.policies.hadar.placing import Placement
from copter_frontends.vocabulary import Allocation


class Recorder:
    """Servers that write down what is given back and what is taken."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def give(self, allocation: Allocation) -> None:
        self.calls.append(("give", allocation.nodes[0][0]))

    def take(self, allocation: Allocation) -> None:
        self.calls.append(("take", allocation.nodes[0][0]))


def test_undone_jobs_return_in_the_order_of_their_ids() -> None:
    """A set's order of ids differs from process to process, and the order of equally free servers must not."""
    names = [f"job-{at:02d}" for at in range(40)]
    before = {name: Allocation("t4", 1, ((f"old-{name}", 1),)) for name in names}
    servers = Recorder()
    placement = Placement(cast(Any, servers), cast(Any, None), before)
    placement.changed.update(reversed(names))
    placement.now = {name: Allocation("t4", 1, ((f"new-{name}", 1),)) for name in names}
    placement.undo()
    assert servers.calls == [("give", f"new-{name}") for name in names] + [("take", f"old-{name}") for name in names]
    assert placement.now == before
    assert not placement.changed
