"""A job as Hare models it: rounds of equal tasks, with times on every GPU type."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from copter_frontends.vocabulary import InvalidJobError


@dataclass(frozen=True, slots=True)
class HareJob:
    """A job with `rounds` rounds of `tasks` equal tasks (section 5.1 of the paper, with constant times).

    The tasks of a round may start once every task of the previous round has trained and synchronised. They need not run
    at the same time (relaxed scale-fixed synchronisation): two tasks of a round may run one after the other on one GPU.

    Parameters
    ----------
    id : str
    rounds, tasks : int
        R_n rounds of K_n tasks each.
    train_s, sync_s : mapping of GPU type to float
        p_ng and s_ng, seconds of training and of synchronisation of one task. A type without `train_s` cannot run the
        job; a type without `sync_s` synchronises in no time. Only training occupies a GPU.
    weight : float
        w_n of the objective, the sum of w_n C_n.
    arrival_s : float
        a_n, the time before which no task starts.
    model : str
        Name of the trained model; the cost of switching depends on it (:mod:`.switching`).

    Raises
    ------
    InvalidJobError
        If there are no rounds, tasks or GPU types, or a time or weight is negative.
    """

    id: str
    rounds: int
    tasks: int
    train_s: Mapping[str, float]
    sync_s: Mapping[str, float] = field(default_factory=dict)
    weight: float = 1.0
    arrival_s: float = 0.0
    model: str = ""

    def __post_init__(self) -> None:
        if not self._sound():  # most are, and words take longer than checks
            self._complain()

    def _sound(self) -> bool:
        """Return whether every value is valid."""
        return (
            bool(self.id and self.train_s)
            and min(self.rounds, self.tasks) >= 1
            and min(self.train_s.values()) > 0
            and min(self.sync_s.values(), default=0.0) >= 0
            and math.isfinite(sum(self.train_s.values()) + sum(self.sync_s.values()))
            and 0 < self.weight < math.inf
            and 0 <= self.arrival_s < math.inf
        )

    def _complain(self) -> None:
        """Raise InvalidJobError for the first value that is not valid."""
        self._require(bool(self.id), "the id is empty")
        self._require(self.rounds >= 1, f"rounds is {self.rounds}, must be >= 1")
        self._require(self.tasks >= 1, f"tasks is {self.tasks}, must be >= 1")
        self._require(bool(self.train_s), "train_s names no GPU type: give the seconds of a task on at least one")
        for kind, seconds in self.train_s.items():
            if not 0 < seconds < math.inf:
                self._require(
                    False, f"train_s[{kind!r}] is {seconds}, must be finite and > 0 (leave a type out if it cannot)"
                )
        for kind, seconds in self.sync_s.items():
            if not 0 <= seconds < math.inf:
                self._require(False, f"sync_s[{kind!r}] is {seconds}, must be finite and >= 0")
        self._require(
            math.isfinite(self.weight) and self.weight > 0, f"weight is {self.weight}, must be finite and > 0"
        )
        good = math.isfinite(self.arrival_s) and self.arrival_s >= 0
        self._require(good, f"arrival_s is {self.arrival_s}, must be finite and >= 0")

    def _require(self, condition: bool, complaint: str) -> None:
        if not condition:
            raise InvalidJobError(f"job {self.id!r}: {complaint}")
