"""How a family whose solver is its own runs: as the harness does, without the harness's programs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

WARM_UP = 1  # rounds between the cold one and those that count


class OwnRun(ABC):
    """One sequence through a solver and its peers; :meth:`run` gives the object that --json prints.

    Attributes
    ----------
    options : Options
        Of rounds.py.
    family
        Has a :meth:`prepare` that draws the next round.
    """

    options: Any
    family: Any

    @abstractmethod
    def round(self, index: int) -> None:
        """One round of the solver, then of every peer; those from 0 on count."""

    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """The figures."""

    def run(self) -> dict[str, Any]:
        """A cold round, one to warm up, then those that count."""
        for index in range(-WARM_UP - 1, self.options.rounds):
            self.round(index)
            self.family.prepare()
        return self.summary()


def known_peers(family: str, asked: tuple[str, ...], known: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of the peers asked for; SystemExit for one that there is not."""
    for name in asked:
        if name not in known:
            raise SystemExit(f"--family {family}: no peer {name!r}; there are {', '.join(known)}")
    return {name: known[name] for name in asked}
