"""What the families of scheduling jobs share: who is there, who comes, who goes."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from families.protocol import Floats, Ints, chosen
from families.uniform import UniformFamily


class JobRounds(UniformFamily):
    """Jobs of which a share is replaced every round.

    Parameters
    ----------
    churn : float
        Share of jobs replaced every round.
    seed : int

    Attributes
    ----------
    jobs : ndarray (n,)
        Ids of the jobs, in the order they were added.
    doomed : ndarray
        Places of the jobs that the next round takes out.
    waiting
        The jobs that it puts in, as :meth:`draw` gives them.
    """

    changes: ClassVar[tuple[str, ...]] = ("churn",)
    integer = True
    waiting: Any

    def __init__(self, churn: float, seed: int) -> None:
        self.rng, self.churn = np.random.default_rng(seed), churn
        self.jobs = np.zeros(0, dtype=np.int64)
        self.next_job = 0
        self.doomed = np.zeros(0, dtype=np.int64)
        self.departed, self.arrived = self.doomed, self.doomed

    @abstractmethod
    def draw(self, count: int) -> Any:
        """New jobs."""

    @property
    def requests(self) -> Ints:
        """Ids of the jobs."""
        return self.jobs

    @property
    def limits(self) -> Floats:
        """One configuration, or one share of a round, a job."""
        return np.ones(len(self.jobs))

    def prepare(self) -> None:
        """Draw the next round's arrivals and departures (not timed: it is the cluster's doing, not the solver's)."""
        self.doomed = chosen(len(self.jobs), self.rng, self.churn)
        self.waiting = self.draw(len(self.doomed))

    def turn_over(self, fresh: int) -> NDArray[np.bool_]:
        """Take the doomed jobs out of the model, give `fresh` new ones ids; which of the old ones stay, (n,) bool."""
        self.departed = self.jobs[self.doomed]
        self.model.remove_requests(self.departed.tolist())
        keep = np.ones(len(self.jobs), dtype=bool)
        keep[self.doomed] = False
        self.arrived = np.arange(self.next_job, self.next_job + fresh)
        self.next_job += fresh
        self.jobs = np.concatenate((self.jobs[keep], self.arrived))
        return keep
