"""How much of a linear program is edited from solve to solve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


class CountedEdits(Protocol):
    """Edits of one solve: requests added, removed and changed, of how many."""

    added: int
    removed: int
    changed: int
    requests: int


@dataclass(slots=True)
class EditLog:
    """Edits of all solves so far, added up.

    Attributes
    ----------
    solves, added, removed, changed, requests : int
        Rounds with a solve; requests added, removed and changed in them, and requests that there were.
    """

    solves: int = 0
    added: int = 0
    removed: int = 0
    changed: int = 0
    requests: int = 0

    def note(self, edits: CountedEdits) -> None:
        """Add one solve's."""
        self.solves += 1
        self.added += edits.added
        self.removed += edits.removed
        self.changed += edits.changed
        self.requests += edits.requests

    def summary(self) -> dict[str, Any]:
        """Solves, and the mean of each of the others over them."""
        count = max(self.solves, 1)
        means = {name: getattr(self, name) / count for name in ("added", "removed", "changed", "requests")}
        return {"solves": self.solves, **means}
