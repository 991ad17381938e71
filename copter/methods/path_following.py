"""Mehrotra's predictor-corrector with Gondzio's corrections, shared by all interior-point methods.

A method measures its point, computes directions and moves. This file decides which directions are computed, which are
taken, and when to stop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NEARLY = 0.9  # a figure counts as no smaller than another above this share of it; a step of this length counts as long
STALL = 12  # the method ends after this many iterations in a row in which no residual or gap becomes smaller
CORRECTIONS = 2  # most centrality corrections of an iteration, after Mehrotra's corrector
LONGER = 0.18  # length that a correction aims to add to a step
GAIN = 0.01  # least gain of one step length for a correction to be kept
BACK_OFF = 0.9995  # share of the way to the boundary that a step goes
SEED = 20_151  # of the random costs that choose a vertex: the same program always gets the same vertex
SMALL = 1e-30  # lower bound of mu in a quotient: keeps it finite
LEAST_START = 1.0  # least distance of the starting point from every bound
LEAST_GOAL = 1e-10  # least relative goal: below it, rounding stops the progress
FACE_ROUNDS = 3  # most corrections towards the optimal face


class Measured(Protocol):
    """Interface of a method's measure of its point."""

    @property
    def mu(self) -> float:
        """Mean product of a variable and its multiplier."""

    @property
    def worst(self) -> float:
        """Largest relative residual of rows, reduced costs and objectives."""


M = TypeVar("M", bound=Measured)
Stop = Callable[[int, M], bool]


class PathMethod(Protocol[M]):
    """Interface of an interior-point method: a point, and the direction computed last.

    Lengths are pairs (primal, dual) of the longest steps along a direction, at most 1.
    """

    pairs: int  # number of products variable times multiplier
    iterations: int

    def measure(self) -> M:
        """Return the residuals and products of the present point, for :meth:`figures` and :meth:`look`."""

    def figures(self, measured: M) -> Floats:
        """Return the figures; an iteration counts as progress if one of them falls enough."""

    def look(self, measured: M) -> bool:
        """Note the new point; returns True to end the method."""

    def predict(self) -> float:
        """Factorise and find the affine direction; returns the mean product after the longest step along it."""

    def centre(self, target: float, share: float) -> tuple[float, float]:
        """Find Mehrotra's direction, which aims at products of `target` (`share` times mu); returns its lengths."""

    def correct(self, target: float, ahead: float, behind: float) -> tuple[float, float]:
        """Correct the direction so that the products after a step of these lengths come near `target`; returns its
        lengths.
        """

    def take_back(self) -> None:
        """Return to the direction before the last correction."""

    def move(self, ahead: float, behind: float) -> None:
        """Take a step of these lengths."""


def follow(method: PathMethod[M], goal: float, most: int, stop: Stop[M]) -> tuple[M, bool]:
    """Iterate to the goal, `most` iterations or a stall; returns (measure of the last point, whether `stop` ended it).

    Parameters
    ----------
    method : PathMethod
        Its `iterations` are increased.
    goal : float
        The iteration ends when :attr:`Measured.worst` is at most this.
    most : int
    stop : callable
        Called before every iteration; True ends it.
    """
    measured = method.measure()
    least, since = method.figures(measured), 0
    while method.iterations < most:
        if stop(method.iterations, measured):
            return measured, True
        if not measured.worst > goal or since >= STALL:
            break
        step(method, measured.mu)
        method.iterations += 1
        measured = method.measure()
        if not np.isfinite(measured.worst):
            break
        now = method.figures(measured)
        better = now < NEARLY * least
        least = np.where(better, now, least)
        since = 0 if better.any() else since + 1
        if method.look(measured):
            break
    return measured, False


def step(method: PathMethod[M], mu: float) -> None:
    """Do one iteration: predictor, Mehrotra's corrector, a few centrality corrections, then the step."""
    share = min(method.predict() / max(mu, SMALL), 1.0) ** 3
    target = share * mu
    ahead, behind = method.centre(target, share)
    for _ in range(CORRECTIONS):
        if min(ahead, behind) > NEARLY:
            break
        one, other = method.correct(target, min(1.0, ahead + LONGER), min(1.0, behind + LONGER))
        idle = one < ahead + GAIN and other < behind + GAIN
        if idle or one < NEARLY * ahead or other < NEARLY * behind:
            method.take_back()
            break
        ahead, behind = one, other
    short = BACK_OFF if method.pairs else 1.0
    method.move(min(1.0, short * ahead), min(1.0, short * behind))


def vertex_costs(count: int) -> Floats:
    """Return random positive costs, (count,).

    On an optimal face whose columns have lower bounds they have a minimum, and with probability one a unique
    minimiser, which is a vertex of the face.
    """
    return np.random.default_rng(SEED).uniform(0.5, 1.5, count)
