"""The function solve_integer: a one-shot solve of a mixed-integer program."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np

from copter.highs.lp import require_highspy
from copter.methods.integer.clock import Clock
from copter.methods.integer.hand_over import Callback, Limits
from copter.methods.integer.proof import prove
from copter.methods.integer.search import PROVEN, IntegerSearch
from copter.methods.integer.semicontinuous import NO_SWITCHES, with_switches, without_switches
from copter.methods.integer.solution import IntegerSolution, IntegerStatus
from copter.methods.solve import checked
from copter.problem.linear_program import LinearProgram
from copter.runtime.errors import InvalidDataError, SettingsError
from copter.runtime.settings import Settings
from copter.storage.disk import PathLike

ENDING_SHARE, ENDING_S = 0.02, 0.25  # time reserved for ending running parts: share of the time, and most seconds
SEARCH_SHARE = 0.5  # share of the time for the search if a proof follows
LONGEST_S = 1e9  # seconds; a deadline beyond this counts as none
LARGEST_GAP = 1e300  # largest relative gap that a caller may ask for
SHIMS = ("rounding", "dive", "exact")


def solve_integer(
    lp: LinearProgram,
    shim: str = "dive",
    deadline_s: float | None = None,
    settings: Settings | None = None,
    seed: int = 0,
    gap: float = PROVEN,
    max_nodes: int | None = None,
    callback: Callback | None = None,
    proof: PathLike | None = None,
) -> IntegerSolution:
    """Find a good integer point of a mixed-integer program and a bound on the optimum.

    Parameters
    ----------
    lp : LinearProgram
        Integer columns are whole in the answer, and semi-continuous columns are respected (M16).
    shim : {"rounding", "dive", "exact"}
        "rounding": the relaxation, rounded with propagation, and 1-opt. "dive": the whole search (dives, local search,
        feasibility pump, neighbourhoods). "exact": HiGHS's branch and bound, which needs the extra `highs`.
    deadline_s : float, optional
        Wall-clock seconds. Without a deadline the search ends when several rounds bring no improvement.
    settings : Settings, optional
        Settings of the relaxations.
    seed : int
        Seed of the random parts.
    gap : float
        Relative gap at which the search ends, with status FEASIBLE if the gap is above 1e-6.
    max_nodes : int, optional
        Nodes after which branch and bound ends.
    callback : callable, optional
        Called as ``callback(objective, bound)`` many times a second (NaN without a point); True ends the search.
    proof : path, optional
        File to be made, with a proof that no integer point is better than the one found by more than 1e-6 (1 +
        |objective|): a branching tree with a bound for each leaf. ``copter verify`` checks it in rational arithmetic.
        The tree has at most 5,000 nodes, or `max_nodes`, so only small programs are proven; the answer's `proof` says
        whether the file was written.

    Returns
    -------
    IntegerSolution
        A point that satisfies every row to 1e-6 (1 + |bound of the row|), if one was found; a bound; the true gap.

    Raises
    ------
    InvalidDataError, SettingsError
        For an unknown shim, an invalid deadline, gap or number of nodes, or an argument of a wrong type.
    CopterError
        If `shim="exact"` and highspy is not installed.

    Notes
    -----
    Ctrl-C ends the search with the best point so far. docs/method/integer.md has the methods: M1 to M8, M11 and M12.
    Use "exact" if a proof of optimality matters more than time.

    Examples
    --------
    >>> import copter
    >>> lp = copter.LinearProgram([-1.0], [[2.0]], row_upper=3.0, integrality=[1])
    >>> copter.solve_integer(lp).x.tolist()
    [1.0]
    """
    if not isinstance(shim, str) or shim not in SHIMS:
        raise InvalidDataError(f"shim is {shim!r}, must be one of {', '.join(SHIMS)}")
    settings = checked(lp, settings)
    if deadline_s is not None and not (isinstance(deadline_s, (int, float, np.number)) and deadline_s > 0):
        raise SettingsError(f"deadline_s is {deadline_s!r}, must be > 0 (None for no deadline)")
    limit = float("inf") if deadline_s is None or deadline_s > LONGEST_S else float(deadline_s)
    if isinstance(gap, bool) or not (isinstance(gap, (int, float, np.number)) and 0.0 <= gap <= LARGEST_GAP):
        raise SettingsError(f"gap is {gap!r}, must be a number >= 0, as a share of the objective: 0.01 is a per cent")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise SettingsError(f"seed is {seed!r}, must be a whole number >= 0")
    if max_nodes is not None and (isinstance(max_nodes, bool) or not isinstance(max_nodes, int) or max_nodes < 1):
        raise SettingsError(f"max_nodes is {max_nodes!r}, must be a whole number >= 1 (None for no limit)")
    if callback is not None and not callable(callback):
        raise SettingsError(f"callback is a {type(callback).__name__}, must be callable: callback(objective, bound)")
    whole, limit = Clock(limit), limit if proof is None else SEARCH_SHARE * limit
    clock = Clock(limit - min(ENDING_SHARE * limit, ENDING_S) if np.isfinite(limit) else limit)
    if proof is not None and not isinstance(proof, (str, bytes, os.PathLike)):
        raise SettingsError(f"proof is a {type(proof).__name__}, must be a path")
    if proof is not None and os.path.lexists(proof):
        raise SettingsError(f"{os.fsdecode(proof)} is there already: a proof begins a new file")
    if shim == "exact":
        require_highspy("shim='exact'")
    program, switches = with_switches(lp) if lp.semicontinuous.any() else (lp, NO_SWITCHES)
    limits = Limits(max(float(gap), PROVEN), max_nodes, callback)
    search = IntegerSearch(program, settings, clock, seed, limits, switches)
    run = {"exact": search.exact, "rounding": search.round_only, "dive": search.run}[shim]
    try:
        found = run()
    except KeyboardInterrupt:
        found = search.solution()
    found = found if program is lp else without_switches(lp, found)
    if proof is None:
        return found
    if found.x is None or found.status is IntegerStatus.DUAL_INFEASIBLE:
        return replace(found, proof=f"there is no point that is the best: {found.status.value}")
    why = prove(lp, found.x, proof, settings, max_nodes, lambda: whole.expired)
    return replace(found, proof=why or "written")
