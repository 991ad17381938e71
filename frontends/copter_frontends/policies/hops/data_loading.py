"""Data loading as a mixture of two states, cached and slow (equation 3; HP5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from copter_frontends.policies.hops.errors import ThroughputError

Floats = NDArray[np.float64]
EM_STEPS = 60  # steps of expectation maximisation
FEWEST = 8  # least number of observations for a fit of two states
APART = 3.0  # least distance of two states' means, in standard deviations


@dataclass(frozen=True, slots=True)
class LoadingState:
    """Loading time in one state, normally distributed in seconds, and the wait for slower processes.

    Attributes
    ----------
    mean_s, deviation_s : float
    wait_s : float
        Mean of T_w in this state.
    """

    mean_s: float
    deviation_s: float = 0.0
    wait_s: float = 0.0

    def __post_init__(self) -> None:
        for name in ("mean_s", "deviation_s", "wait_s"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise ThroughputError(f"data loading: {name} is {value}, must be finite and >= 0")

    def mean_of_larger_s(self, other_s: float) -> float:
        """Return E max(T_d, other), exact for a normal T_d (HP5)."""
        if self.deviation_s == 0.0:
            return max(self.mean_s, other_s)
        z = (self.mean_s - other_s) / self.deviation_s
        density = float(np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi))
        above = float(ndtr(z))
        return self.mean_s * above + other_s * (1.0 - above) + self.deviation_s * density


@dataclass(frozen=True, slots=True)
class DataLoading:
    """T_d and T_w: the cached state with probability `cached_share`, otherwise the slow state (3).

    Attributes
    ----------
    cached, slow : LoadingState
    cached_share : float
        p_cache; p_load is 1 - p_cache.
    """

    cached: LoadingState
    slow: LoadingState
    cached_share: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.cached_share <= 1.0:
            raise ThroughputError(f"data loading: cached_share is {self.cached_share}, must be from 0 to 1")

    @classmethod
    def steady(cls, seconds: float, wait_s: float = 0.0) -> DataLoading:
        """Return loading with one state and no variance."""
        state = LoadingState(seconds, 0.0, wait_s)
        return cls(state, state, 1.0)

    @property
    def mean_s(self) -> float:
        """Mean of T_d."""
        return self.cached_share * self.cached.mean_s + (1.0 - self.cached_share) * self.slow.mean_s

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Draw the seconds of `count` loads."""
        return self.draw_with_waits(count, rng)[0]

    def draw_with_waits(self, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw the seconds of `count` loads, and of the corresponding waits."""
        hit = rng.random(count) < self.cached_share
        mean = np.where(hit, self.cached.mean_s, self.slow.mean_s)
        deviation = np.where(hit, self.cached.deviation_s, self.slow.deviation_s)
        waits = np.where(hit, self.cached.wait_s, self.slow.wait_s)
        return np.asarray(np.maximum(rng.normal(mean, deviation), 0.0)), np.asarray(waits)


def fit_loading(seconds: Sequence[float] | Floats, waits_s: Sequence[float] | Floats | None = None) -> DataLoading:
    """Fit the two states to observed loads by expectation maximisation; one state if they are indistinguishable.

    Parameters
    ----------
    seconds : array_like (n,)
        Observed T_d.
    waits_s : array_like (n,), optional
        T_w of the same iterations.

    Raises
    ------
    ThroughputError
        If there are no observations, or one is negative or not finite.
    """
    loads = np.asarray(seconds, dtype=np.float64)
    waits = np.zeros_like(loads) if waits_s is None else np.asarray(waits_s, dtype=np.float64)
    if loads.ndim != 1 or len(loads) == 0 or loads.shape != waits.shape:
        raise ThroughputError("data loading: give at least one observed time, and as many waits if any")
    if not (np.isfinite(loads).all() and np.isfinite(waits).all() and (loads >= 0).all() and (waits >= 0).all()):
        raise ThroughputError("data loading: observed times must be finite and >= 0")
    one = LoadingState(float(loads.mean()), float(loads.std()), float(waits.mean()))
    if len(loads) < FEWEST or one.deviation_s <= 1e-6 * max(one.mean_s, 1e-12):
        return DataLoading(one, one, 1.0)
    slow_share, mean, deviation = _two_normals(loads)
    share = slow_share.mean()
    if not 0.5 / len(loads) < share < 1 - 0.5 / len(loads) or mean[1] - mean[0] < APART * deviation.max():
        return DataLoading(one, one, 1.0)
    parts = (1.0 - slow_share, slow_share)
    states = [
        LoadingState(float(mean[i]), float(deviation[i]), float(parts[i] @ waits / parts[i].sum())) for i in (0, 1)
    ]
    return DataLoading(states[0], states[1], float(1.0 - share))


def _two_normals(loads: Floats) -> tuple[Floats, Floats, Floats]:
    """Fit a mixture of two normals; returns (share of the slower state at each point, means, deviations)."""
    middle = 0.5 * (loads.min() + loads.max())
    slow_share = np.where(loads > middle, 1.0, 0.0)
    mean, deviation = np.zeros(2), np.zeros(2)
    floor = max(1e-3 * float(loads.std()), 1e-12)
    for _ in range(EM_STEPS):
        parts = np.stack([1.0 - slow_share, slow_share])
        total = np.maximum(parts.sum(axis=1), 1e-12)
        mean = parts @ loads / total
        deviation = np.sqrt(np.maximum((parts * (loads - mean[:, None]) ** 2).sum(axis=1) / total, floor**2))
        log = -0.5 * ((loads - mean[:, None]) / deviation[:, None]) ** 2 + np.log(total / deviation)[:, None]
        after = 1.0 / (1.0 + np.exp(np.clip(log[0] - log[1], -700.0, 700.0)))
        if np.abs(after - slow_share).max() < 1e-9:
            break
        slow_share = after
    return np.asarray(slow_share), mean, deviation
