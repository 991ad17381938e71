"""Conversion of the options of SciPy's linprog and milp to copter's settings."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import OptimizeWarning

from copter.runtime.settings import Internals, Settings

LINPROG = (
    "maxiter",
    "disp",
    "presolve",
    "time_limit",
    "dual_feasibility_tolerance",
    "primal_feasibility_tolerance",
    "ipm_optimality_tolerance",
    "simplex_dual_edge_weight_strategy",
    "mip_rel_gap",
    "mip_max_nodes",
)
MILP = ("disp", "presolve", "time_limit", "node_limit", "mip_rel_gap")
EDGE_WEIGHTS = (None, "dantzig", "devex", "steepest", "steepest-devex")
TOLERANCES = ("dual_feasibility_tolerance", "primal_feasibility_tolerance", "ipm_optimality_tolerance")
TIGHTEST, USUAL = 1e-12, 1e-8  # tightest and default tolerance; SciPy's defaults are 1e-7 and 1e-8
MIP_GAP = 1e-4  # relative gap at which HiGHS stops without mip_rel_gap
FRAMES = 4  # stack frames from a warning here to the caller of linprog or milp


@dataclass(frozen=True, slots=True)
class Options:
    """Options in copter's terms.

    Attributes
    ----------
    settings : Settings
        Settings of the linear program.
    time_limit_s : float or None
    gap : float
        Relative gap at which a mixed-integer search ends.
    max_nodes : int or None
    disp : bool
    """

    settings: Settings
    time_limit_s: float | None
    gap: float
    max_nodes: int | None
    disp: bool


USUAL_SETTINGS = Settings(tolerance=USUAL, absolute_tolerance=USUAL)
DEFAULTS = Options(USUAL_SETTINGS, None, MIP_GAP, None, False)


def linprog_options(given: Mapping[str, Any] | None) -> Options:
    """Convert options of linprog; warns (OptimizeWarning) of invalid values and unknown names, which are ignored."""
    if not given:
        return DEFAULTS
    known = dict(given)
    unknown = {name: known.pop(name) for name in list(known) if name not in LINPROG and name != "autoscale"}
    if unknown:
        warn(f"Unrecognized options detected: {unknown}. copter leaves them out.", OptimizeWarning)
    if known.get("simplex_dual_edge_weight_strategy") not in EDGE_WEIGHTS:
        warn(
            f"Option simplex_dual_edge_weight_strategy is {known['simplex_dual_edge_weight_strategy']}, but only "
            f"values in {set(EDGE_WEIGHTS)} are allowed. Using default: None.",
            OptimizeWarning,
        )
    return options(known, known.get("mip_max_nodes"), OptimizeWarning)


def milp_options(given: Mapping[str, Any] | None) -> Options:
    """Convert options of milp; warns (RuntimeWarning) of unknown names, which are ignored."""
    if not given:
        return DEFAULTS
    known = dict(given)
    unknown = {name for name in known if name not in MILP}
    if unknown:
        warn(f"Unrecognized options detected: {unknown}. copter leaves them out.", RuntimeWarning)
    return options(known, known.get("node_limit"), RuntimeWarning)


def options(known: dict[str, Any], nodes: Any, kind: type[Warning]) -> Options:
    """Convert SciPy's options; a value out of range raises a warning and keeps the default."""

    def at_least(name: str, value: Any, least: float, strict: bool = False) -> Any:
        if value is None:
            return None
        number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        if number and not np.isnan(value) and (value > least if strict else value >= least):
            return value
        warn(f"Option '{name}' is {value!r}, must be a number {'>' if strict else '>='} {least:g}; using default", kind)
        return None

    for name in ("presolve", "disp"):
        if name in known and not isinstance(known[name], (bool, np.bool_)):
            warn(f"Option '{name}' is {known.pop(name)!r}, must be True or False; using default", kind)
    tolerance = USUAL
    for name in TOLERANCES:
        tolerance = min(tolerance, at_least(name, known.get(name), TIGHTEST) or np.inf)
    maxiter = at_least("maxiter", known.get("maxiter"), 0)
    limit = at_least("time_limit", known.get("time_limit"), 0.0)
    limit = None if limit is None or np.isinf(limit) else max(float(limit), 1e-3)
    gap = at_least("mip_rel_gap", known.get("mip_rel_gap"), 0.0)
    most = at_least("max_nodes", nodes, 0)
    internals = Internals(presolve=bool(known.get("presolve", True)))
    settings = Settings(
        tolerance=tolerance,
        absolute_tolerance=max(tolerance, USUAL),
        method="auto" if maxiter is None else "interior",  # maxiter limits the interior-point iterations
        internals=internals if maxiter is None else replace(internals, max_interior_iterations=max(1, int(maxiter))),
        time_limit_s=float("inf") if limit is None else limit,
    )
    return Options(
        settings,
        limit,
        MIP_GAP if gap is None else float(gap),
        None if most is None or np.isinf(most) else max(1, int(most)),
        bool(known.get("disp", False)),
    )


def warn(message: str, kind: type[Warning]) -> None:
    """Issue a warning that points to the line that called linprog or milp."""
    warnings.warn(message, kind, stacklevel=FRAMES + 1)
