"""Sia's objective with corrected signs (thesis 3.2-3.4; docs/papers/sia.md, equations S1-S4).

The value of job i in configuration c, for one maximisation whatever the sign of p:

    v_ic = Lambda + sgn(p) * (rho_ic * G_ic)^p      (p != 0),      Lambda + ln(rho_ic * G_ic)      (p = 0)

with G_ic = N_i^min * g_ic / min over valid c' of g_ic', and rho_ic = 1 for the present configuration (or if the job has
none), otherwise the restart factor r_i.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, log

import numpy as np
from numpy.typing import NDArray

from copter.runtime.errors import SettingsError
from copter_frontends.vocabulary import InvalidJobError
from copter_frontends.vocabulary.semantics import Semantics

Floats = NDArray[np.float64]

LEAST_VALUE = 1e-3  # least value of a configuration on which the job can run (S4)
INVALID_VALUE = -1.0  # of a configuration on which the job cannot run: below zero, the value of no GPUs


def restart_factor(age_s: float, restarts: int, restart_cost_s: float) -> float:
    """Return r_i of equation (3.3): the share of useful time if the job goes on restarting as often as before.

    Parameters
    ----------
    age_s : float
        Seconds since submission, T_i.
    restarts : int
        Restarts so far, N_i.
    restart_cost_s : float
        Wall-clock seconds of one restart, S_i, as in the public simulator (docs/papers/sia.md).

    Returns
    -------
    float
        From 0 to 1; 1 while the job's age is at most the time of one restart.
    """
    if age_s <= restart_cost_s:
        return 1.0
    return max(age_s - restarts * restart_cost_s, 0.0) / (age_s + restart_cost_s)


def restart_factors(age_s: Floats, restarts: Floats, restart_cost_s: Floats) -> Floats:
    """Return :func:`restart_factor` of many jobs, (n,)."""
    kept = np.maximum(age_s - restarts * restart_cost_s, 0.0)
    young = age_s <= restart_cost_s
    return np.where(young, 1.0, kept / np.where(young, 1.0, age_s + restart_cost_s))


@dataclass(frozen=True, slots=True)
class SiaObjective:
    """Fairness power and queue-occupancy incentive.

    Parameters
    ----------
    power : float
        p: below 0 favours fairness, above 0 total goodput; 0 is proportional fairness.
    incentive : float
        |lambda|, the value of giving a job any GPUs; above 1, the least value of G^p for p < 0.
    least_value : float or None
        Least value of every valid configuration, so that no job idles beside idle GPUs; None: no floor.
    decimals : int or None
        Number of decimals to which (rho G)^p is rounded (S2'); None: no rounding.
    clip : float
        Largest value of (rho G)^p.
    """

    power: float = -0.5
    incentive: float = 1.1
    least_value: float | None = LEAST_VALUE
    decimals: int | None = None
    clip: float = float("inf")

    def __post_init__(self) -> None:
        if not isfinite(self.power):
            raise SettingsError(f"power is {self.power}, must be finite")
        if not (isfinite(self.incentive) and self.incentive > 0):
            raise SettingsError(f"incentive is {self.incentive}, must be finite and > 0")
        if self.least_value is not None and not 0 < self.least_value < self.incentive:
            raise SettingsError(f"least_value is {self.least_value}, must be between 0 and the incentive")

    def base(self, job_id: str, goodput: Floats, valid: NDArray[np.bool_], min_gpus: int) -> Floats:
        """Return sgn(p) G^p (ln G for p = 0) of every configuration, (n,); NaN if the job cannot run on it (S1-S2).

        Raises
        ------
        InvalidJobError
            If the job cannot run anywhere.
        """
        usable = valid & (goodput > 0)
        if not usable.any():
            raise InvalidJobError(
                f"job {job_id!r} fits nowhere: no configuration of the cluster has goodput within its limits; "
                "check min_gpus, max_gpus and max_batch_size"
            )
        normalised = np.full(len(goodput), np.nan)
        normalised[usable] = min_gpus * goodput[usable] / goodput[usable].min()
        if self.power == 0:
            return np.asarray(np.log(normalised))
        return np.asarray(np.sign(self.power) * normalised**self.power)

    def scale_and_offset(self, factor: float) -> tuple[float, float]:
        """Return (scale, offset) with v = scale * base + offset at restart factor `factor` (S3)."""
        factor = max(factor, 1e-9)
        if self.power == 0:
            return 1.0, self.incentive + log(factor)
        return float(factor**self.power), self.incentive

    def scales_and_offsets(self, factors: Floats) -> tuple[Floats, Floats]:
        """Return :meth:`scale_and_offset` of many restart factors, (n,) each."""
        factors = np.maximum(factors, 1e-9)
        if self.power == 0:
            return np.ones(len(factors)), self.incentive + np.log(factors)
        return factors**self.power, np.full(len(factors), self.incentive)

    def values(self, base: Floats, factor: float, bonus: float = 0.0) -> Floats:
        """Return v of every configuration at one restart factor, (n,), with the floor and the value of invalid ones
        (S4).
        """
        scale, offset = self.scale_and_offset(factor)
        value = self.finished(scale * base) + (offset + bonus)
        if self.least_value is not None:
            value = np.maximum(value, self.least_value)
        value[np.isnan(base)] = INVALID_VALUE
        return np.asarray(value)

    @property
    def plain(self) -> bool:
        """Whether values are exactly scale times base plus offset, neither rounded nor clipped."""
        return self.decimals is None and self.clip == float("inf")

    def finished(self, term: Floats) -> Floats:
        """Return sgn(p) (rho G)^p, clipped and rounded; any shape."""
        if self.clip != float("inf"):
            term = np.clip(term, -self.clip, self.clip)
        return term if self.decimals is None else np.round(term, self.decimals)


def objective_of(semantics: Semantics) -> SiaObjective:
    """Return the default objective, rounded, clipped and floored as the semantics require."""
    least = LEAST_VALUE if semantics.keep_positive else None
    return SiaObjective(least_value=least, decimals=semantics.decimals, clip=semantics.clip)
