"""Every knob of the solver, with its default beside its meaning."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from math import isfinite
from typing import Literal

import numpy as np

from copter.errors import SettingsError


def available_threads() -> int:
    """Processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class Settings:
    """Knobs of one solve.

    Parameters
    ----------
    tolerance : float
        Bound on the relative primal residual, dual residual and gap (docs/formulation.md, equations F6-F8).
    absolute_tolerance : float
        Bound on the largest absolute violation of a row or a bound.
    max_pricing_passes : int
        Pricing passes over all columns before ITERATION_LIMIT.
    max_proximal_steps : int
        Proximal-point steps on the working set between two pricing passes.
    max_newton_steps : int
        Semismooth Newton steps in one proximal step.
    descent_sweeps : int
        Coordinate-descent sweeps over the working set that open a cold solve; 0 leaves it to Newton.
    sigma : float
        First proximal parameter, in units of a column's range over a cost.
    warm_sigma : float
        Largest proximal parameter that a solve begins with: after an edit a moderate one finds the new active set in
        fewer Newton steps than the last solve's large one.
    sigma_growth, max_sigma : float
        Factor by which the proximal parameter grows after an easy step, and its largest value.
    dense_rows : int
        Newton systems of at most this many rows are factorised (Cholesky); larger ones go to conjugate gradients.
    settle_columns : int
        Working sets of at least this many columns are solved without the groups whose answer no price in reach changes.
    price_reach : float
        How far a warm solve lets prices move between two pricing passes, in units of their size, before it looks at all
        columns again; inf for as far as they will.
    purify : bool
        Move to a vertex of the optimal face at the end (a session with integer columns wants this).
    purify_rows : int
        Leave purification out when more coupling rows than this are tight; the interior-point method, which models with
        many rows start by, finds a vertex by itself where there are integer columns.
    keep_slack : float
        A column at rest leaves the working set when its reduced cost exceeds this many times its block's median cost.
    method : {"interior", "proximal"}
        How a one-shot :func:`copter.solve` goes; sessions are always proximal.
    presolve : bool
        Make the program of a one-shot solve smaller first.
    max_interior_iterations : int
        Interior-point iterations of a one-shot solve before ITERATION_LIMIT.
    refinements : int
        Times that the error of an answer which is not within tolerance is solved for by itself.
    interior_rows : int
        A session whose model has more coupling rows than this starts a solve that has something to do by the
        interior-point method; with fewer rows it is tried where the proximal method stalls.
    interior_columns : int
        Models of more columns than this are never handed to the interior-point method.
    hand_over_s : float
        Seconds that HiGHS's branch and bound, which works beside the search of :func:`copter.solve_integer` in a
        process of its own, may take where that has no deadline; with one it has until then. 0 leaves it out.
    threads : int
        Threads of a pricing pass; 0 for all processors.
    time_limit_s : float
        Wall-clock limit of one solve, in seconds.
    """

    tolerance: float = 1e-6
    absolute_tolerance: float = 1e-6
    max_pricing_passes: int = 200
    max_proximal_steps: int = 100
    max_newton_steps: int = 100
    descent_sweeps: int = 20
    sigma: float = 10.0
    warm_sigma: float = 160.0
    sigma_growth: float = 4.0
    max_sigma: float = 1e6
    dense_rows: int = 1500
    settle_columns: int = 1000
    price_reach: float = 0.5
    purify: bool = True
    purify_rows: int = 64
    keep_slack: float = 0.05
    method: Literal["interior", "proximal"] = "interior"
    presolve: bool = True
    max_interior_iterations: int = 300
    refinements: int = 3
    interior_rows: int = 64
    interior_columns: int = 1_000_000
    hand_over_s: float = 60.0
    threads: int = 0
    time_limit_s: float = float("inf")

    def __post_init__(self) -> None:
        for field in fields(self):
            self._require_type(field.name, getattr(self, field.name), type(field.default))
        for name in ("tolerance", "absolute_tolerance", "sigma", "warm_sigma", "max_sigma"):
            value = getattr(self, name)
            self._require(isfinite(value) and value > 0, name, value, "finite and > 0")
        for name in ("max_pricing_passes", "max_proximal_steps", "max_newton_steps", "max_interior_iterations"):
            self._require(getattr(self, name) >= 1, name, getattr(self, name), ">= 1")
        for name in (
            "descent_sweeps",
            "dense_rows",
            "settle_columns",
            "purify_rows",
            "threads",
            "refinements",
            "interior_rows",
            "interior_columns",
            "keep_slack",
            "hand_over_s",
        ):
            self._require(getattr(self, name) >= 0, name, getattr(self, name), ">= 0")
        self._require(self.method in ("interior", "proximal"), "method", self.method, "'interior' or 'proximal'")
        self._require(self.sigma_growth >= 1, "sigma_growth", self.sigma_growth, ">= 1")
        self._require(self.price_reach > 0, "price_reach", self.price_reach, "> 0")
        self._require(self.time_limit_s > 0, "time_limit_s", self.time_limit_s, "> 0")

    @staticmethod
    def _require_type(name: str, value: object, kind: type) -> None:
        needed: dict[type, tuple[type, str]] = {
            bool: (np.bool_, "True or False"),
            int: (np.integer, "a whole number"),
            float: (np.floating, "a number"),
            str: (np.str_, "a name"),
        }
        others, what = needed[kind]
        whole = kind is float and isinstance(value, (int, np.integer))
        if not (isinstance(value, (kind, others)) or whole):
            raise SettingsError(f"setting {name} is {value!r}, must be {what}")

    @staticmethod
    def _require(condition: bool, name: str, value: object, needed: str) -> None:
        if not condition:
            raise SettingsError(f"setting {name} is {value}, must be {needed}")

    @property
    def n_threads(self) -> int:
        """Threads of a pricing pass, resolved."""
        return self.threads or available_threads()

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Names of all settings."""
        return tuple(field.name for field in fields(cls))
