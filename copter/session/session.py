"""Sessions: a model together with the solver state that carries over from round to round."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from copter import shims
from copter.highs.lp import require_highspy
from copter.methods.integer.solution import IntegerStatus
from copter.methods.protocol import Callback
from copter.methods.warm import warm_solve
from copter.methods.warm_state import WarmState
from copter.methods.worth_round import worth_solve
from copter.model.model import Model
from copter.problem.solution import Solution, Status
from copter.runtime.collector import uncollected
from copter.runtime.errors import EditNotAllowedError, InternalError, InvalidDataError, SnapshotError
from copter.runtime.guard import Guard
from copter.runtime.progress import heard_plans, listening, told
from copter.runtime.settings import Settings
from copter.runtime.watch import Watch
from copter.session.recorder import Recorder
from copter.session.snapshot import SessionState, beside_model, load_state, plain, save_state, state_from
from copter.session.state import iterate_from, iterate_state
from copter.session.worth_plans import linear_of
from copter.shims import IntegerPlan, RoundingShim, Shim, require_feasible
from copter.shims.asked import Ask, PlanCallback, Start, Wanted, checked_gap, started_from
from copter.shims.draft import drafts_know
from copter.shims.plan import IDLE
from copter.storage.disk import DISK
from copter.storage.encoding import encode
from copter.storage.files import PathLike, require_path
from copter.storage.journal import History, Journal, checked_sync
from copter.storage.tape import TapeWriter
from copter.storage.tape.watching import begun

if TYPE_CHECKING:
    from copter.shims.tree_road import TreeRoad

# After these statuses prices or values have diverged: the next solve starts cold.
DIVERGED = (Status.PRIMAL_INFEASIBLE, Status.DUAL_INFEASIBLE, Status.NUMERICAL_ERROR)

SHIM_S, SHIM_SLOT_S = 3e-3, 4e-7  # seconds of a deadline kept for rounding, and more for each slot
WORK = 40_000  # limit (nodes times rows) of the search that closes a small plan's gap: about a millisecond
CHECK_S, CHECK_SLOT_S = 5e-4, 3e-7  # seconds kept for checking the plan, and more for each slot
INTERRUPTED = "an exception or a signal ended the last solve"
LEAST_S, MOST_SLOWNESS = 1e-4, 4.0
TREE_S, TREE_CHECK_S, TREE_SLOT_S = 10.0, 4e-3, 2e-6  # seconds of a tree without a deadline; kept for a check
TREE_GAP, EXACT_GAP = 1e-4, 1e-6  # gaps at which a tree ends if none is asked for, and of shim="exact"
PLAN_SHARE = 0.4  # share of the deadline that LP and plan get if a proof follows
LP_SHARE = 0.7  # share of the deadline that the LP gets if a searching shim follows
NAMED: Final = ""  # Session.load uses the journal that the snapshot names
Ages = NDArray[np.int64]


class Session:
    """Solves a model again and again, each time from the result of the last solve.

    Edits keep the prices of the remaining resources and the values of the remaining requests. The next solve starts
    from them; a new request starts with all columns at their lower bounds.

    Parameters
    ----------
    model : Model
        Edited by its owner between solves.
    settings : Settings, optional
    journal : path, optional
        File of a journal to begin, see :meth:`journal`.
    sync : {"always", "batch", "never"}
        When the journal waits for the disk.

    Raises
    ------
    InvalidDataError
        If `model` is not a Model.

    Notes
    -----
    Use a session and its model from one thread at a time; a second thread gets an EditNotAllowedError, also while a
    shim makes a plan (method/differential.md has a table). `last_solution` is what the last solve returned. Sessions of
    different models are independent. A forked process may go on with its copy of a session, on one thread and without
    the journal. Sessions and models can be pickled, so a spawned process may be given one.

    Examples
    --------
    >>> import copter
    >>> model = copter.Model(sense="max")
    >>> model.add_resource("gpu", 1)
    >>> model.add_request("job", [3.0], {"gpu": [2]})
    >>> session = copter.Session(model)
    >>> session.solve().objective
    1.5
    >>> model.add_resource("gpu", 1)
    >>> session.solve().objective
    3.0
    """

    def __init__(
        self, model: Model, settings: Settings | None = None, journal: PathLike | None = None, sync: str = "batch"
    ) -> None:
        if not isinstance(model, Model):
            raise InvalidDataError(
                f"model is a {type(model).__name__}, must be a Model; copter.solve(lp) solves a LinearProgram once"
            )
        self.model = model
        self.settings = Settings.given(settings)
        self._iterate = WarmState()
        self._restart: str | None = "first solve"
        self._guard = Guard("session")
        self._plan: IntegerPlan | None = None
        self._tree_road: TreeRoad | None = None
        self._planner: Session | None = None  # of a model with concave worths
        # wall-clock time of rounding over this thread's processor time: above 1 on a busy machine
        self._slowness = 1.0
        # settings, a limit in seconds, the settings with that limit
        self._limited = self.settings, float("inf"), self.settings
        self.last_solution: Solution | None = None
        self._recorder: Recorder | None = None
        if journal is not None:
            self.journal(journal, sync)

    def __repr__(self) -> str:
        last = self.last_solution
        return f"<Session of {self.model!r}, {'not solved yet' if last is None else f'last {last!r}'}>"

    @property
    def solution(self) -> Solution:
        """What the last solve returned, also the LP's solution behind the last plan.

        Raises
        ------
        EditNotAllowedError
            Before the first solve; `last_solution` is None then.
        """
        if self.last_solution is None:
            raise EditNotAllowedError("this session has not solved its model yet: call solve or solve_integer first")
        return self.last_solution

    def solve(
        self, deadline_s: float | None = None, callback: Callback | None = None, verbose: bool = False
    ) -> Solution:
        """Solve the current model, starting from the state that the last solve left.

        Parameters
        ----------
        deadline_s : float, optional
            Wall-clock seconds for this solve; the settings' limit holds too.
        callback : callable, optional
            Called after each pricing pass as ``callback(passes, relative_gap, largest_violation)``; True ends the
            solve with INTERRUPTED. :func:`copter.with_record` makes one that gets a named record.
        verbose : bool
            A line on stderr for each pass and for the solve. The logger "copter" has the same: passes at DEBUG, solves
            at INFO. Watching a solve does not change it.

        Returns
        -------
        Solution

        Examples
        --------
        >>> import copter
        >>> model = copter.Model(sense="max")
        >>> model.add_resource("gpu", 1)
        >>> model.add_request("job", [3.0], {"gpu": [2]})
        >>> solution = copter.Session(model).solve(deadline_s=5.0)
        >>> solution.status.value, solution.objective, solution.gap < 1e-9
        ('optimal', 1.5, True)
        """
        callback = listening(callback, verbose)
        with self._guard.held("being solved"), self.model.ledger.guard.held("being solved"):
            return self._solve(deadline_s, callback, verbose)

    def _solve(self, deadline_s: float | None, callback: Callback | None = None, verbose: bool = False) -> Solution:
        """Do :meth:`solve` for a caller that holds both guards."""
        settings = self._settings_by(deadline_s)
        if self._recorder is None and (writer := begun()) is not None:
            self._begin_recording(writer, True, False)
        reason = self._restart
        if reason is not None:
            self._iterate = WarmState()
        if reason == INTERRUPTED and self._recorder is not None:
            self._recorder.event("reset")  # a tape does not hold the solve that was ended
        self._restart = INTERRUPTED  # unless the solve comes to its end
        with Watch(settings.time_limit_s) as watch:
            solve = worth_solve if self.model.ledger.worths else warm_solve
            solution = solve(self.model, self._iterate, settings, watch, callback, reason)
        diverged = f"the last solve ended {solution.status.value}" if solution.status in DIVERGED else None
        told("session", solution.status.value, solution.pricing_passes, solution.gap, solution.solve_time_s, verbose)
        job = None
        if self._recorder is not None:
            job = self._recorder.round(self.model.ledger, solution, self.settings, deadline_s, callback is not None)
        self._restart, self.last_solution = diverged, solution  # from here on no instruction of Python's is run
        if self._recorder is not None and job is not None:
            self._recorder.put(job)
        return solution

    def solve_integer(
        self,
        shim: Shim | str | None = None,
        deadline_s: float | None = None,
        proof: PathLike | None = None,
        gap: float | None = None,
        start: IntegerPlan | Start | None = None,
        callback: PlanCallback | None = None,
        verbose: bool = False,
    ) -> IntegerPlan:
        """Compute an integer plan, and a bound on every plan.

        A model takes one of two roads (docs/method/plans.md); `plan.why` says which. The fast road, for one column or
        none a request: the LP's solution is rounded, in about the time of the LP. The tree road, for all other models:
        HiGHS's branch and bound on the whole model, in a child process that is kept from round to round and begins
        while the LP is being solved. Both start from the last plan; if that still fits, the new one is not worse.

        Parameters
        ----------
        shim : Shim or {"rounding", "dive", "exact"}, optional
            "dive" adds a search among the LP's columns to the fast road. "exact": branch and bound alone, to a gap of
            1e-6, for every model. A callable of the caller's own comes after the LP.
        deadline_s : float, optional
            Wall-clock seconds. Without a deadline the tree road ends after 10 s at the latest.
        gap : float, optional
            Gap, |bound - objective| / |objective|, at which the search ends. By default 1e-4 on the tree road, and what
            rounding gives on the fast road. A gap that rounding does not reach is sought by the tree, until the
            deadline.
        start : IntegerPlan or mapping, optional
            A plan to begin with in place of the last one: {request: column}, or {request: {column: value}}. It need not
            be feasible; the tree repairs it.
        callback : callable, optional
            Called as ``callback(objective, bound)`` many times a second on the tree road (NaN without a plan); True
            ends the search.
        verbose : bool
            A line on stderr for every better plan or bound of the tree road.
        proof : path, optional
            File to be made, with a proof that no plan is better than the returned one by more than 1e-6 (1 +
            |objective|). A search first looks for a better plan than the shim's. Only small models are proven in time;
            the plan's `proof` says whether the file was written. `copter verify` checks it without the engine. A path
            that ends in ".vipr" gets a certificate in the VIPR format.

        Returns
        -------
        IntegerPlan
            Checked in exact arithmetic, with the best bound and the true gap. If there is no plan, it is false, its
            status and `why` say so, and `conflict` and `short` name the requests and resources that contradict each
            other; asking it for a request's column raises NoPlanError.

        Raises
        ------
        InvalidDataError
            For the name of an unknown shim, for a plan of the caller's own shim that does not hold, and for a `start`
            with values that no request can have.
        UnknownHandleError
            For a `start` with a request that is not in the model.
        EditNotAllowedError
            If a request with a concave worth may take more than one whole column (docs/method/concave_worth.md).
        SettingsError
            If the deadline or the gap is not a number above zero, or there is something at the proof's path.
        CopterError
            For "exact", if highspy is not installed.

        Examples
        --------
        >>> import copter
        >>> model = copter.Model(sense="max")
        >>> model.add_resource("gpu", 3)
        >>> for job in ("a", "b"):
        ...     model.add_request(job, [1.0, 1.8], {"gpu": [1, 2]}, integer=True)
        >>> plan = copter.Session(model).solve_integer()
        >>> plan.objective, sorted([plan.column("a"), plan.column("b")])
        (2.8, [0, 1])
        """
        started = time.perf_counter()
        if self.model.ledger.worths:
            planner = self._worth_planner()
            return planner.solve_integer(shim, deadline_s, proof, gap, start, callback, verbose)
        self._settings_by(deadline_s)
        if gap is not None:
            gap = checked_gap(gap)
        callback = heard_plans(callback, verbose)
        if start is not None and not isinstance(start, IntegerPlan):
            start = started_from(self.model, start)
        if shim == "exact":
            require_highspy('shim="exact"')
        searches = isinstance(shim, str) and shim != "rounding"
        if isinstance(shim, str):
            shims.shim_by_name(shim, 0.0)
        elif shim is not None and not callable(shim):
            raise InvalidDataError(f"shim is {shim!r}, must be a shim, or the name of one")
        if proof is not None:
            shims.proven.require_new(proof)
        limit, whole_s = deadline_s, float("inf") if deadline_s is None else deadline_s
        if deadline_s is not None and proof is not None:
            limit = deadline_s = PLAN_SHARE * deadline_s
        if deadline_s is not None:
            kept = self._slowness * (SHIM_S + SHIM_SLOT_S * self.model.ledger.matrix.n_slots)
            limit = LP_SHARE * deadline_s if searches else max(0.5 * deadline_s, deadline_s - kept)
        guards = self._guard.held("being planned"), self.model.ledger.guard.held("being planned")
        with guards[0], guards[1], uncollected(deadline_s is not None):
            self._follow_columns()
            wanted = Wanted(gap, start if start is not None else self._plan, callback)
            plan = self._plan_by(shim, started, deadline_s, limit, wanted)
            if proof is None or not plan.is_feasible:
                return plan
            return self._proven(plan, proof, started + whole_s)

    def _worth_planner(self) -> Session:
        """Return a session of the linear model that has this one's plans, with what the last one has learnt."""
        before = self._planner
        with self._guard.held("being planned"), self.model.ledger.guard.held("being planned"):
            self._planner = Session(linear_of(self.model), self.settings)
            if before is not None and before._restart != INTERRUPTED:
                self._planner._iterate = iterate_from(iterate_state(before._iterate), self._planner.model)
                self._planner._restart = before._restart
            if before is not None:
                self._planner._plan = before._plan
        return self._planner

    def _proven(self, plan: IntegerPlan, path: PathLike, end: float) -> IntegerPlan:
        """Return the plan, or a better one if a search finds it, with its proof; the caller holds both guards."""
        solution = self.last_solution
        if solution is None:
            raise InternalError("a plan without a solution")
        best = shims.proven.best_of(self.model, solution, plan, self.settings, end - time.perf_counter())
        if best is not plan:
            require_feasible(self.model, best)
            self._plan = best
        return shims.proven.with_proof(self.model, best, path, self.settings, end - time.perf_counter())

    def _plan_by(
        self,
        shim: Shim | str | None,
        started: float,
        deadline_s: float | None,
        limit: float | None,
        wanted: Wanted,
    ) -> IntegerPlan:
        """Return the plan: solve the LP within `limit` seconds, then run a shim until `deadline_s` after the start.

        The caller holds both guards: the model must not change before the plan has been checked.
        """
        named = "rounding" if shim is None else shim if isinstance(shim, str) else None
        if named is not None and not drafts_know(self.model):
            return self._plan_by_tree(named, started, deadline_s, wanted)
        solution = self._solve(limit)
        wall, busy = time.perf_counter(), time.thread_time() if deadline_s is not None else 0.0
        if shim is None or isinstance(shim, str):
            left = float("inf") if deadline_s is None else deadline_s - (time.perf_counter() - started)
            check = self._slowness * (CHECK_S + CHECK_SLOT_S * self.model.ledger.matrix.n_slots)
            rounding = shim is None or shim != "dive"
            shim = (
                RoundingShim(time_limit_s=left - check, most_work=WORK, searches=False)
                if rounding
                else shims.shim_by_name(str(shim), left)
            )
        plan = shim(self.model, solution, wanted.previous)
        if not isinstance(plan, IntegerPlan):
            raise InvalidDataError(f"the shim returned a {type(plan).__name__}, must return an IntegerPlan")
        if plan.is_feasible:
            require_feasible(self.model, plan)
        goal = EXACT_GAP if named == "exact" and wanted.gap is None else wanted.gap
        missing = plan.status is IntegerStatus.NONE_FOUND
        if named is not None and (missing or (goal is not None and plan.is_feasible and plan.gap > goal)):
            until = self._until(started, deadline_s)
            if time.perf_counter() < until:
                ask = replace(wanted, previous=plan if plan.is_feasible else wanted.previous)
                self._plan = plan if plan.is_feasible else self._plan
                plan = self._by_tree(lambda _: solution, until, ask, named == "exact")
                return self._recorded(plan, wall, named, deadline_s)
        self.plan_made(plan, time.perf_counter() - wall, named, deadline_s)
        self._plan = plan if plan.is_feasible else self._plan
        if deadline_s is not None:
            self._slower(wall, busy)
        return plan

    def _plan_by_tree(self, named: str, started: float, deadline_s: float | None, wanted: Wanted) -> IntegerPlan:
        """Return the plan of the tree road; the child searches while the LP is being solved."""
        if deadline_s is None:
            self._road().ready()
        until, wall = self._until(started, deadline_s), time.perf_counter()
        timed = deadline_s is not None
        plan = self._by_tree(lambda s: self._solve(s if timed else None), until, wanted, named == "exact")
        return self._recorded(plan, wall, named, deadline_s)

    def _until(self, started: float, deadline_s: float | None) -> float:
        """Return the time at which a tree must end, so that its plan can be checked by the deadline."""
        if deadline_s is None:
            return time.perf_counter() + TREE_S
        check = TREE_CHECK_S + TREE_SLOT_S * self.model.ledger.matrix.n_slots
        return started + deadline_s - min(self._slowness * check, 0.2 * deadline_s)

    def _by_tree(self, solve: Callable[[float], Solution], until: float, wanted: Wanted, exact: bool) -> IntegerPlan:
        """Return a checked plan of the tree road."""
        road = self._road()
        usual = EXACT_GAP if exact else TREE_GAP
        with Watch(float("inf")) as watch:
            goal = usual if wanted.gap is None else wanted.gap
            ask = Ask(until, goal, exact, wanted.callback, lambda: watch.interrupted)
            plan = road.plan(self.model, solve, wanted.previous, ask)
        wall, busy = time.perf_counter(), time.thread_time()
        if plan.is_feasible:
            require_feasible(self.model, plan)
            self._plan = plan
            self._slower(wall, busy)
        return plan

    def _slower(self, wall: float, busy: float) -> None:
        """Learn how much longer a check takes than its processor time: the child may have the processor still."""
        slower = (time.perf_counter() - wall) / max(time.thread_time() - busy, LEAST_S)
        self._slowness = 0.5 * self._slowness + 0.5 * min(max(slower, 1.0), MOST_SLOWNESS)

    def _recorded(self, plan: IntegerPlan, wall: float, named: str, deadline_s: float | None) -> IntegerPlan:
        """Record a plan, if a tape is being recorded; returns it."""
        self.plan_made(plan, time.perf_counter() - wall, named, deadline_s)
        return plan

    def prepare(self) -> bool:
        """Start the process of the tree road and wait for it, so that the first plan need not; returns whether it runs.

        Only models off the fast road need it (docs/method/plans.md).
        """
        with self._guard.held("being prepared"):
            return self._road().ready()

    def _road(self) -> TreeRoad:
        """Return the tree road, imported on first use because it loads the integer search."""
        if self._tree_road is None:
            self._tree_road = import_module("copter.shims.tree_road").TreeRoad()
        return self._tree_road

    def _settings_by(self, deadline_s: float | None) -> Settings:
        """Return the settings with the shorter time limit; raises SettingsError for an invalid deadline."""
        if deadline_s is None:
            return self.settings
        settings, seconds, limited = self._limited
        if settings is not self.settings or type(deadline_s) is not float or seconds != deadline_s:
            limited = self.settings.limited_to(deadline_s)
            self._limited = self.settings, float(deadline_s), limited
        return limited

    def reset(self) -> None:
        """Discard the solver state; the next solve starts cold."""
        fresh = WarmState()
        with self._guard.held("being reset"):
            if self._recorder is not None:
                self._recorder.event("reset")
            self._iterate, self._restart = fresh, "reset"

    def compact(self) -> None:
        """Move requests into slots that removed requests have left, so that passes do not visit empty slots.

        Use it after the number of requests has fallen far below its peak. It never happens automatically, so never
        inside a deadline. Ids, values and prices stay; another session of the same model starts cold.
        """
        with self._guard.held("being compacted"), self.model.ledger.guard.held("being compacted"):
            self._follow_columns()
            model, ws = self.model, self._iterate.ws
            matrix, plan = model.ledger.matrix, self._plan
            before, moved = matrix.generation.copy(), matrix.compaction()
            slot = ws.slot_of_column
            known = slot < len(moved)
            known[known] = (before[slot[known]] == ws.generation[known]) & (moved[slot[known]] >= 0)
            target = moved[slot[known]]
            key, x = target << 32 | ws.column[known], ws.x[known]
            plan = None if plan is None else self._plan_moved(plan, before, moved)
            restart = self._restart
            model.ledger.compact()
            if self._recorder is not None:
                self._recorder.event("compact")
            self._plan, self._restart = plan, INTERRUPTED  # unless the state can follow
            ws.key, ws.x, ws.generation = key, x, matrix.generation[target]
            ws.gather(matrix)
            self._iterate.follow(moved, before, matrix)
            self._restart = restart

    def _plan_moved(self, plan: IntegerPlan, before: Ages, moved: Ages) -> IntegerPlan:
        """Return the plan with its slots renumbered; removed requests are dropped."""
        known, slots = min(len(plan.generation), len(moved)), np.flatnonzero(moved >= 0)
        alive = np.flatnonzero((plan.generation[:known] == before[:known]) & (moved[:known] >= 0))
        column = np.full(len(slots), IDLE, dtype=np.int32)
        generation = before[: len(moved)].copy()
        shifted = slots[moved[slots] != slots]
        np.add.at(generation, np.concatenate((moved[shifted], shifted)), 1)  # as the matrix counts
        column[moved[alive]] = plan.column_of_slot[alive]
        kept = set(alive.tolist())
        slot_of = {request: int(moved[slot]) for request, slot in plan.slot_of.items() if slot in kept}
        same = np.zeros(len(moved), dtype=bool)
        same[alive] = True
        key, share = plan.shares_of_slots(same)
        return replace(
            plan,
            column_of_slot=column,
            generation=generation[: len(slots)],
            slot_of=slot_of,
            share_key=moved[key >> 32] << 32 | (key & 0xFFFFFFFF),
            share=share,
        )

    def __reduce__(self) -> tuple[Callable[..., Session], tuple[object, ...]]:
        """Prepare for pickle and copy: model, solver state, settings and plan; the journal stays with the original.

        The model is an object of its own in the copy: what else refers to it refers to the copied session's model.
        """
        with self._guard.held("being copied"), self.model.ledger.guard.held("being copied"):
            return restored, (type(self), beside_model(self._state()), self.model.version, self.model)

    def __copy__(self) -> Session:
        """Return a copy with a model of its own, as :func:`copy.deepcopy` does."""
        return deepcopy(self)

    def _state(self) -> SessionState:
        """Return the state that a snapshot holds."""
        self._follow_columns()
        return SessionState(self.model, self.settings, self._iterate, self._restart, self._plan)

    def _follow_columns(self) -> None:
        """Renumber the columns of the iterate and of the last plan that requests have been given in place of others.

        An iterate that a signal has left half made is dropped, as the next solve would drop it.
        """
        matrix, moves = self.model.ledger.matrix, self.model.ledger.moves
        if self._restart == INTERRUPTED:
            self._iterate = WarmState()
        restart, self._restart = self._restart, INTERRUPTED
        self._iterate.follow_columns(matrix, moves)
        plan = None if self._plan is None else self._plan.followed(matrix.generation, moves)
        self._plan, self._restart = plan, restart

    @classmethod
    def _from_state(cls, state: SessionState) -> Session:
        session = cls(state.model, state.settings)
        session._iterate, session._restart, session._plan = state.iterate, state.restart, state.plan
        return session

    # Durability ---------------------------------------------------------------------------------------------------

    def save(self, path: PathLike, restart_journal: bool = True) -> None:
        """Write the session to one file: model, solver state and settings, all exactly.

        The file is versioned and checksummed, and there whole or not at all. A session that was loaded from it solves
        in one pricing pass to the identical solution.

        Parameters
        ----------
        path : path
        restart_journal : bool
            Restart the journal, if there is one, from this snapshot. False for an extra copy: the journal then still
            continues the last snapshot.

        Raises
        ------
        SnapshotError
            If the file cannot be written; an older file at the path is kept.
        InvalidDataError
            If an id is not a str, int, float, bool, None, bytes or a tuple of these.
        """
        require_path(path)
        with self._guard.held("being saved"), self.model.ledger.guard.held("being saved"):
            save_state(self._state(), path)
            if self.model.ledger.journal is not None and restart_journal:
                self.model.ledger.journal.restart()

    @classmethod
    def load(
        cls,
        path: PathLike,
        settings: Settings | None = None,
        journal: PathLike | None = NAMED,
        sync: str = "batch",
    ) -> Session:
        """Read a session that :meth:`save` wrote, and apply the edits of its journal since then.

        Parameters
        ----------
        path : path
            A snapshot, or a journal that no snapshot has been saved to yet.
        settings : Settings, optional
            Settings to use in place of the saved ones.
        journal : path or None
            The journal to replay and to continue. By default the session's own; None for no journal: the model as
            saved.
        sync : {"always", "batch", "never"}

        Raises
        ------
        SnapshotError
            If a file is cut short, damaged, foreign or newer. A last edit that the journal holds only in part, because
            the process was killed while writing it, is left out: it was not acknowledged.
        """
        require_path(path)
        find = journal is NAMED
        return cls._from_state(load_state(path, settings, None if find else journal, find, checked_sync(sync)))

    def record(self, path: PathLike | None, answers: bool = True) -> None:
        """Record the session on a tape from now on: its model, every edit, every round. None stops the recording.

        ``copter replay`` plays a tape again, ``copter verify`` checks the answers on it (docs/reference/tape.md).

        Parameters
        ----------
        path : path or None
            A file that is not there yet.
        answers : bool
            Whether rounds have points, prices and plans too, as a verifier needs them.

        Raises
        ------
        SnapshotError
            If there is a file already, it cannot be written, or the model's edits are recorded already. With None: if
            the recording had already ended because a write failed or an id could not be saved. The logger "copter"
            reports such an end; edits and solves go on as without a recording.
        InvalidDataError
            If an id is not a str, int, float, bool, None, bytes or a tuple of these.
        """
        with self._guard.held("being recorded"), self.model.ledger.guard.held("being recorded"):
            if path is None:
                recorder, self._recorder = self._recorder, None
                if recorder is not None:
                    self.model.ledger.tape = None
                    recorder.end()
                    if recorder.failed is not None:
                        raise SnapshotError(recorder.failed)
                return
            require_path(path)
            if self._recorder is not None or self.model.ledger.tape is not None:
                raise SnapshotError("the model's edits go to a tape already: end that first, by record(None)")
            writer = TapeWriter(path)
            try:
                self._begin_recording(writer, answers, True)
            except BaseException:
                writer.discard()
                raise

    def plan_made(
        self, plan: IntegerPlan, seconds: float = 0.0, shim: str | None = None, deadline_s: float | None = None
    ) -> None:
        """Record a plan that was made from the last solution, if a tape is being recorded.

        Parameters
        ----------
        plan : IntegerPlan
        seconds : float
            Seconds that it took.
        shim : str, optional
            Name of the shim; None for the caller's own.
        deadline_s : float, optional
            Deadline of solve and shim together.
        """
        if self._recorder is not None and (job := self._recorder.plan(plan, seconds, shim, deadline_s)) is not None:
            self._recorder.put(job)

    def _begin_recording(self, writer: TapeWriter, answers: bool, own_file: bool) -> None:
        if self.model.ledger.tape is None:
            self._recorder = Recorder(writer, encode(plain(self._state())), answers, own_file)
            self.model.ledger.tape = self._recorder

    def journal(self, path: PathLike | None, sync: str = "batch") -> None:
        """Append every edit of the model to a file from now on; None stops it.

        The file starts with the current model, so :meth:`load` can read it without a snapshot. After :meth:`save` the
        journal continues that snapshot.

        Parameters
        ----------
        path : path or None
            A file that is not there yet.
        sync : {"always", "batch", "never"}
            Wait for the disk after every edit (safe against a loss of power), after batches and snapshots, or never. An
            acknowledged edit survives a killed process in all three cases.

        Raises
        ------
        SnapshotError
            If there is a file already, or it cannot be written.
        """
        policy = checked_sync(sync)
        if path is not None:
            require_path(path)
        with self._guard.held("being journaled"), self.model.ledger.guard.held("being journaled"):
            if path is not None and DISK.get().kind(path) is not None:
                raise SnapshotError(f"{os.fspath(path)} is there already: continue it with Session.load, or remove it")
            if self.model.ledger.journal is not None:
                if path is not None:
                    raise SnapshotError(
                        f"the model's edits go to {os.fspath(self.model.ledger.journal.path)} already: end that first, "
                        "by journal(None) of the session that began it"
                    )
                self.model.ledger.journal.close()
                self.model.ledger.journal = None
            if path is not None:
                base = encode(plain(self._state()))
                self.model.ledger.journal = Journal.create(path, History(), base, policy)


def restored(kind: type[Session], values: dict[str, Any], version: int, model: Model) -> Session:
    """Rebuild a copied session with its copied model, which must have the version at which the session was copied."""
    if model.version != version:
        raise SnapshotError("the model was edited while its session was copied; copy them again")
    return kind._from_state(state_from(values, None, "a copied session", model))
