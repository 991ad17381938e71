"""A warm solve of a model, from an iterate to a solution; used by sessions and the one-shot proximal solve.

`choose.py` says which methods are tried, in which order; `protocol.py` what a method is; this file runs them.
"""

from __future__ import annotations

from copter.methods import choose
from copter.methods.answers import Ended, sharpened, solution_of
from copter.methods.block_round import BlockRound
from copter.methods.choose import ModelFacts, Way
from copter.methods.protocol import Callback, Method, Round
from copter.methods.proximal_round import ProximalRound
from copter.methods.small_simplex import SmallSimplex
from copter.methods.warm_state import WarmState
from copter.methods.whole_program import WholeProgram
from copter.model.matrix.bounds import count_sums_and_entries, has_private_rows
from copter.model.model import Model
from copter.problem.solution import Solution
from copter.runtime.errors import InternalError
from copter.runtime.settings import Settings
from copter.runtime.watch import Watch

METHODS: dict[Way, type[Method]] = {
    "small_simplex": SmallSimplex,
    "block_round": BlockRound,
    "whole_program": WholeProgram,
    "proximal_round": ProximalRound,
}
"""The methods of a session's round, by the names with which `copter/methods/choose.py` chooses them."""


def warm_solve(
    model: Model,
    iterate: WarmState,
    settings: Settings,
    watch: Watch,
    callback: Callback | None = None,
    restart_reason: str | None = None,
) -> Solution:
    """Solve the current model, starting from an iterate.

    Parameters
    ----------
    model : Model
        Not edited; the caller holds its guard.
    iterate : WarmState
        Starting state; updated to the final state.
    settings : Settings
    watch : Watch
        The watch that was started with the solve and ends it.
    callback : callable, optional
        Called as ``callback(passes, relative_gap, largest_violation)`` after each pricing pass and each answer; True
        ends the solve. Watching does not change the solve otherwise.
    restart_reason : str, optional
        Why the iterate is new; reported in the solution.

    Returns
    -------
    Solution

    Raises
    ------
    SettingsError
        If `settings.method` names a method that takes no such model.
    """
    ended = answered(Round(model, iterate, settings, watch, callback))
    return sharpened(model, solution_of(model, ended, watch.elapsed_s, restart_reason), settings.tolerance)


def answered(given: Round) -> Ended:
    """Return the answer of the first method, in order, that ends the round."""
    given.iterate.follow_columns(given.model.ledger.matrix, given.model.ledger.moves)
    facts = facts_of(given)
    if choose.pivots_fit(facts, given.settings):
        given.iterate.pivots()  # create the basis: the next round's pivots start from this round's prices
    order = choose.for_model(facts, given.settings)
    begun: dict[type[Method], Method] = {}
    for place, choice in enumerate(order):
        method = METHODS[choice.by]
        ended = None
        if method not in begun:
            begun[method] = method.start(given)
            ended = begun[method].still_optimal()
        ended = ended or begun[method].improve(order[place:])
        if ended is not None:
            return ended
    raise InternalError("the order of methods ends without one that always answers")


def facts_of(given: Round) -> ModelFacts:
    """Return the facts from which the method is chosen."""
    model, iterate = given.model, given.iterate
    matrix, basis = model.ledger.matrix, iterate.basis
    sums, entries = count_sums_and_entries(matrix) if model.n_columns <= choose.SMALL_COLUMNS else (0, 0)
    return ModelFacts(
        columns=model.n_columns,
        rows=matrix.n_rows,
        private_rows=bool(matrix.n_with_rows),
        only_sums=not has_private_rows(matrix) if matrix.n_with_rows else True,
        has_basis=basis is not None,
        requests=len(model.ledger.slot_of),
        sums=sums,
        entries=entries,
        unchanged=iterate.version == model.version and (basis is None or basis.answer is None),
        has_optimum=iterate.whole.is_ready,
        has_own_duals=len(iterate.own_key) > 0,
    )
