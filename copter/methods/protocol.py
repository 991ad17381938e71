"""The interface of a method for a session's rounds: its start, its answer, and the state that it leaves.

The loop of a round (:func:`copter.methods.warm.answered`) is written against :class:`Method` alone. Implementations:
`small_simplex.py`, `block_round.py`, `whole_program.py`, `proximal_round.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from copter.methods.answers import Ended
from copter.methods.choose import Choice
from copter.methods.warm_state import WarmState
from copter.model.model import Model
from copter.problem.residuals import Residuals
from copter.runtime.settings import Settings
from copter.runtime.watch import Watch

Callback = Callable[[int, float, float], bool | None]


@dataclass(frozen=True, slots=True)
class Round:
    """One round: the model to solve, where to start, and when to stop.

    Attributes
    ----------
    model : Model
        Not edited; the caller holds its guard.
    iterate : WarmState
        State that the last round has left; a method that ends moves it to its answer.
    settings : Settings
    watch : Watch
    callback : callable, optional
        See :func:`copter.methods.warm.warm_solve`.
    """

    model: Model
    iterate: WarmState
    settings: Settings
    watch: Watch
    callback: Callback | None = None

    @property
    def offset(self) -> float:
        """The objective's constant, as minimised."""
        return self.model.ledger.sign * self.model.offset

    def tell(self, residuals: Residuals) -> None:
        """Tell the callback of an answer; True from it interrupts what follows."""
        if self.callback is not None and self.callback(1, residuals.gap, residuals.primal_absolute):
            self.watch.interrupted = True


class Method(Protocol):
    """A method for one round. The last method of an order always ends; the others may leave the round to the next."""

    @classmethod
    def start(cls, given: Round) -> Method:
        """Return the method, ready to solve this round."""

    def still_optimal(self) -> Ended | None:
        """Return the iterate's own point, if it is proven to be still optimal; None if not, or if that is dear."""

    def improve(self, order: tuple[Choice, ...]) -> Ended | None:
        """Solve, tell the callback, and move the iterate to the answer, which is proven.

        Parameters
        ----------
        order : tuple of Choice
            Why this method is tried, and what would be tried after it.

        Returns
        -------
        Ended or None
            None if the next method must try.
        """
