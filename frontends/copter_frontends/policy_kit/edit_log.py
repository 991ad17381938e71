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
        Requests that came, that went, and whose columns or bounds are others.
    resources : int
        Resources that came, went, or have other units.
    requests : int
        Requests that there are.
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
        Rounds with a solve; requests added, removed and changed in them, and requests that there were.
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
