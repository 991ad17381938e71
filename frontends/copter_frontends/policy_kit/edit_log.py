"""Statistics of how much of a linear program is edited between solves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Edits:
    """Requests that changed in a model before one solve.

    Attributes
    ----------
    added, removed, changed : int
        Number of requests added, removed, and changed in columns or bounds.
    resources : int
        Number of resources added, removed, or changed in units.
    requests : int
        Number of requests in the model.
    """

    added: int = 0
    removed: int = 0
    changed: int = 0
    resources: int = 0
    requests: int = 0

    def __str__(self) -> str:
        return (
            f"{self.added} requests added, {self.removed} removed, {self.changed} changed of {self.requests}; "
            f"{self.resources} resources"
        )


@dataclass(slots=True)
class EditLog:
    """Sums of the edits over all solves.

    Attributes
    ----------
    solves, added, removed, changed, requests : int
        Number of rounds with a solve; sums over these rounds of added, removed, changed and present requests.
    """

    solves: int = 0
    added: int = 0
    removed: int = 0
    changed: int = 0
    requests: int = 0

    def note(self, edits: Edits) -> None:
        """Add the edits of one solve."""
        self.solves += 1
        self.added += edits.added
        self.removed += edits.removed
        self.changed += edits.changed
        self.requests += edits.requests

    def summary(self) -> dict[str, Any]:
        """Return the number of solves and the mean of every other count."""
        count = max(self.solves, 1)
        means = {name: getattr(self, name) / count for name in ("added", "removed", "changed", "requests")}
        return {"solves": self.solves, **means}
