"""Mehrotra's predictor-corrector with Gondzio's corrections, told once for all interior-point methods.

A method says how it measures its point, finds directions and moves; this file says which directions it asks for, which
it takes, and when it ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PROGRESS = 0.9  # an iteration stalls if it brings no figure below this share of the least value that the figure has had
CORRECTIONS = 2  # corrections of centrality in an iteration, after Mehrotra's
LONG = 0.9  # length from which on a step is not corrected
LONGER = 0.18  # what a correction may add to the length of a step
GAIN = 0.01  # what it must add to one of the lengths
LOSS = 0.9  # share of a length that it must leave
BACK_OFF = 0.9995  # share of the way to the boundary, where there is one
SMALL = 1e-30


class Measured(Protocol):
    """What a method measures of its point."""

    @property
    def mu(self) -> float:
        """Mean complementarity."""

    @property
    def worst(self) -> float:
        """The largest relative misfit of rows, reduced costs and objectives."""


M = TypeVar("M", bound=Measured)
Stop = Callable[[int, M], bool]


class PathMethod(Protocol[M]):
    """An interior-point method at a point, with the direction that it found last.

    Lengths are pairs (primal, dual) of the longest steps along a direction, at most 1.
    """

    pairs: int  # of a variable and its multiplier
    iterations: int

    def measure(self) -> M:
        """Compute the misfit of the present point."""

    def figures(self, measured: M) -> Floats:
        """Figures of which one must fall for an iteration to count as progress."""

    def look(self, measured: M) -> bool:
        """Take note of a new point; True ends the method."""

    def predict(self) -> float:
        """Factorise, find the affine direction; mean complementarity after the longest step along it."""

    def centre(self, target: float, share: float) -> tuple[float, float]:
        """Mehrotra's direction to products of `target`, a `share` of the present ones; its lengths."""

    def correct(self, target: float, ahead: float, behind: float) -> tuple[float, float]:
        """The direction with the products of a step of these lengths brought back; its lengths."""

    def take_back(self) -> None:
        """Return to the direction before the last correction."""

    def move(self, ahead: float, behind: float) -> None:
        """Take a step of these lengths."""


def follow(method: PathMethod[M], goal: float, most: int, stall: int, stop: Stop[M]) -> tuple[M, bool]:
    """Iterate to the goal, to `most` iterations, or to a stall: (measure of the last point, whether it was stopped).

    Parameters
    ----------
    method : PathMethod
        Its `iterations` are counted up.
    goal : float
        Of the worst figure.
    most : int
    stall : int
        Iterations in a row without progress, after which the method ends.
    stop : callable
        Asked before every iteration.
    """
    measured = method.measure()
    least, since = method.figures(measured), 0
    while method.iterations < most:
        if stop(method.iterations, measured):
            return measured, True
        if not measured.worst > goal or since >= stall:
            break
        step(method, measured.mu)
        method.iterations += 1
        measured = method.measure()
        if not np.isfinite(measured.worst):
            break
        now = method.figures(measured)
        better = now < PROGRESS * least
        least = np.where(better, now, least)
        since = 0 if better.any() else since + 1
        if method.look(measured):
            break
    return measured, False


def step(method: PathMethod[M], mu: float) -> None:
    """One predictor, Mehrotra's corrector, a few corrections of centrality; then move."""
    share = min((method.predict() / max(mu, SMALL)) ** 3, 1.0)
    target = share * mu
    ahead, behind = method.centre(target, share)
    for _ in range(CORRECTIONS):
        if min(ahead, behind) > LONG:
            break
        one, other = method.correct(target, min(1.0, ahead + LONGER), min(1.0, behind + LONGER))
        idle = one < ahead + GAIN and other < behind + GAIN
        if idle or one < LOSS * ahead or other < LOSS * behind:
            method.take_back()
            break
        ahead, behind = one, other
    short = BACK_OFF if method.pairs else 1.0
    method.move(min(1.0, short * ahead), min(1.0, short * behind))
