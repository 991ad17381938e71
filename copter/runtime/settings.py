"""Every setting of the solver, with its meaning and its default."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from math import isfinite
from typing import Any, Literal, get_args

import numpy as np

from copter.runtime.errors import SettingsError

NamedMethod = Literal[
    "auto", "basis", "blocks", "proximal", "price_descent", "coordinate_descent", "simplex", "interior"
]
METHODS: tuple[str, ...] = get_args(NamedMethod)
RENAMED = {"price_reach": "trust_radius"}
"""Settings by the name that files of earlier versions have."""
FORMER = frozenset(
    {
        "max_sigma",
        "dense_rows",
        "settle_columns",
        "purify_rows",
        "refinements",
        "max_newton_steps",
        "sigma",
        "keep_slack",
    }
)
"""Settings that earlier versions had; they are ignored where a file has them."""
LARGEST_WHOLE = 10**300  # largest int accepted where a float is expected, so that its float does not overflow


def available_threads() -> int:
    """Return the number of processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


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
    if isinstance(value, int) and abs(value) > LARGEST_WHOLE:
        raise SettingsError(f"setting {name} has {len(str(value))} digits, must be {what} that a float can hold")


def _require(condition: bool, name: str, value: object, needed: str) -> None:
    if not condition:
        raise SettingsError(f"setting {name} is {value}, must be {needed}")


def _require_types(settings: Settings | Internals, names: tuple[str, ...]) -> None:
    for field in fields(settings):
        if field.name in names:
            _require_type(field.name, getattr(settings, field.name), type(field.default))


@dataclass(frozen=True, slots=True)
class Internals:
    """What a solve does beside the public settings: for the doors to other tools, for benchmarks and tests.

    Attributes
    ----------
    max_pricing_passes : int
        Pricing passes over all columns before ITERATION_LIMIT.
    max_interior_iterations : int
        Interior-point iterations of a one-shot solve before ITERATION_LIMIT.
    purify : bool
        Move to a vertex of the optimal face at the end of a solve of a model with integer columns: at a vertex few
        requests are fractional. Models without integer columns get the optimum as it is found.
    presolve : bool
        Presolve the linear program of a one-shot solve.
    hand_over_s : float
        Seconds for HiGHS's branch and bound, which :func:`copter.solve_integer` runs in another process beside its own
        search. With a deadline it may run until the deadline instead. 0: HiGHS is not run.
    """

    max_pricing_passes: int = 200
    max_interior_iterations: int = 300
    purify: bool = True
    presolve: bool = True
    hand_over_s: float = 60.0

    def __post_init__(self) -> None:
        _require_types(self, self.names())
        for name in ("max_pricing_passes", "max_interior_iterations"):
            _require(getattr(self, name) >= 1, name, getattr(self, name), ">= 1")
        _require(self.hand_over_s >= 0, "hand_over_s", self.hand_over_s, ">= 0")

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Names of all of these."""
        return tuple(field.name for field in fields(cls))


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one solve.

    Parameters
    ----------
    tolerance : float
        Bound on the relative primal residual, dual residual and gap (docs/method/formulation.md, equations F8-F10).
    absolute_tolerance : float
        Bound on the largest absolute violation of a row or a bound.
    max_proximal_steps : int
        Proximal-point steps on the working set between two pricing passes.
    descent_sweeps : int
        Coordinate-descent sweeps over the working set at the start of a cold solve; 0 for none.
    warm_sigma : float
        Upper limit of the proximal parameter at the start of a warm solve. After an edit, a moderate parameter finds
        the new active set in fewer Newton steps than the large one with which the last solve ended.
    sigma_growth : float
        Factor by which the proximal parameter grows after an easy step.
    trust_radius : float
        Trust radius of a warm solve: how far prices may move between two pricing passes, in units of their size;
        inf for no bound.
    method : {"auto", "basis", "blocks", "proximal", "price_descent", "coordinate_descent", "simplex", "interior"}
        "auto": the order that `copter/methods/choose.py` states. Every other value names one method: "basis", pivots
        from the last round's basis; "blocks", interior points with the requests eliminated; "proximal", proximal steps
        by Newton's method; "price_descent", proximal steps whose systems are solved by coordinate descent over prices
        (algorithm.md, A12 to A14); "coordinate_descent", the baseline of S. Jayaram Subramanya's thesis (4.3.2):
        proximal steps by primal coordinate descent over all columns, for loose tolerances, without certificates;
        "simplex", the dual simplex method; "interior", the interior-point method of the whole program. "basis",
        "proximal", "price_descent" and "coordinate_descent" take models without private rows only.
    interior_rows : int
        With more coupling rows than this, a session begins with the interior-point method unless the last answer is
        still optimal. With fewer, the interior-point method is the fallback if the proximal method stalls.
    basis_columns : int
        Columns up to which a session pivots from its last basis, however few rows couple them.
    interior_columns : int
        Models of more columns than this are never given to the interior-point method for general LPs; the block method
        has no such limit. 0: the proximal method only.
    threads : int
        Threads of a pricing pass; 0 for all processors.
    time_limit_s : float
        Wall-clock limit of one solve, in seconds.
    internals : Internals
        Not for callers: what the doors to other tools, benchmarks and tests ask for.

    Examples
    --------
    >>> import copter
    >>> copter.Settings(tolerance=1e-8, threads=1).tolerance
    1e-08
    """

    tolerance: float = 1e-6
    absolute_tolerance: float = 1e-6
    max_proximal_steps: int = 100
    descent_sweeps: int = 20
    warm_sigma: float = 160.0
    sigma_growth: float = 4.0
    trust_radius: float = 0.5
    method: NamedMethod = "auto"
    interior_rows: int = 64
    interior_columns: int = 1_000_000
    basis_columns: int = 40_000
    threads: int = 0
    time_limit_s: float = float("inf")
    internals: Internals = Internals()

    def __post_init__(self) -> None:
        _require_types(self, self.names())
        if not isinstance(self.internals, Internals):
            raise SettingsError(f"setting internals is {self.internals!r}, must be left out")
        for name in ("tolerance", "absolute_tolerance", "warm_sigma"):
            value = getattr(self, name)
            _require(isfinite(value) and value > 0, name, value, "finite and > 0")
        _require(self.max_proximal_steps >= 1, "max_proximal_steps", self.max_proximal_steps, ">= 1")
        for name in ("descent_sweeps", "threads", "interior_rows", "interior_columns", "basis_columns"):
            _require(getattr(self, name) >= 0, name, getattr(self, name), ">= 0")
        _require(self.method in METHODS, "method", self.method, f"one of {', '.join(METHODS)}")
        _require(self.sigma_growth >= 1, "sigma_growth", self.sigma_growth, ">= 1")
        _require(self.trust_radius > 0, "trust_radius", self.trust_radius, "> 0")
        _require(self.time_limit_s > 0, "time_limit_s", self.time_limit_s, "> 0")

    @classmethod
    def given(cls, settings: Settings | None) -> Settings:
        """Return the caller's settings, or the defaults for None; raises SettingsError for anything else."""
        if settings is not None and not isinstance(settings, Settings):
            kind = type(settings).__name__
            raise SettingsError(f"settings is a {kind}, must be a Settings: Settings(tolerance=1e-6)")
        return Settings() if settings is None else settings

    @classmethod
    def saved(cls, values: Mapping[str, Any]) -> Settings:
        """Return settings from a file's values by name; raises TypeError for a name that no version had."""
        named = {RENAMED.get(name, name): value for name, value in values.items() if name not in FORMER}
        inner = {name: named.pop(name) for name in Internals.names() if name in named}
        return cls(**named, internals=Internals(**inner)) if inner else cls(**named)

    def plain(self) -> dict[str, Any]:
        """Return all values by name, internals among them, as a file keeps them; see :meth:`saved`."""
        return {name: getattr(self, name) for name in self.names()} | asdict(self.internals)

    def limited_to(self, seconds: float) -> Settings:
        """Return these settings with the shorter of the two time limits; the other settings are not checked again.

        Raises SettingsError for a deadline that is no number above zero.
        """
        _require_type("deadline_s", seconds, float)
        if not seconds > 0:
            raise SettingsError(
                f"deadline_s is {seconds!r}, must be a number above 0: the seconds that a solve may take"
            )
        if seconds >= self.time_limit_s:
            return self
        limited = object.__new__(Settings)
        for name in self.__slots__:
            object.__setattr__(limited, name, getattr(self, name))
        object.__setattr__(limited, "time_limit_s", seconds)
        return limited

    @property
    def n_threads(self) -> int:
        """Number of threads of a pricing pass; 0 is replaced by the number of processors."""
        return self.threads or available_threads()

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Names of all settings."""
        return tuple(field.name for field in fields(cls) if field.name != "internals")
