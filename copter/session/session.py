"""A model together with the iterate that survives from round to round."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from math import isfinite
from sys import float_info
from typing import Final

import numpy as np
from numpy.typing import NDArray

from copter.errors import SnapshotError
from copter.model.assembly import dense_ray, dense_solution
from copter.model.model import Model
from copter.problem.solution import Residuals, Solution, SparseValues, Status
from copter.proximal.iterate import Iterate
from copter.proximal.solve import Outcome, Solve
from copter.runtime.guard import Guard
from copter.runtime.watch import Watch
from copter.session import snapshot
from copter.settings import Settings
from copter.shims import IntegerPlan, Shim, require_feasible, shim_by_name
from copter.shims.plan import IDLE
from copter.solving.interior_start import InteriorStart
from copter.storage.encoding import encode
from copter.storage.files import PathLike
from copter.storage.journal import History, Journal, checked_sync

# Endings after which prices or values have gone off to infinity: there is nothing worth starting from.
DIVERGED = (Status.PRIMAL_INFEASIBLE, Status.DUAL_INFEASIBLE, Status.NUMERICAL_ERROR)

SHIM_S = 5e-3  # of a deadline, kept for rounding (half of it at most)
LP_SHARE = 0.7  # of a deadline, where a shim that searches comes after the LP
NAMED: Final = ""  # Session.load uses the journal that the snapshot names
Ages = NDArray[np.int64]


class Session:
    """Solves a model again and again, each time from where the last solve ended.

    Prices of surviving resources and values of surviving requests are kept through every edit; new requests start at
    rest and are priced in; removed ones give their capacity back.

    Parameters
    ----------
    model : Model
        Edited by its owner between solves.
    settings : Settings, optional
    journal : path, optional
        As :meth:`journal` would begin it.
    sync : {"always", "batch", "never"}
        When the journal waits for the disk.

    Notes
    -----
    A session and its model are used by one thread at a time, and say so otherwise; different sessions of different
    models are independent. A forked process may go on with its copy of a session, on one thread and without its
    journal; a spawned one may be given a session, or a model, as it is: they can be pickled.
    """

    def __init__(
        self, model: Model, settings: Settings | None = None, journal: PathLike | None = None, sync: str = "batch"
    ) -> None:
        self.model = model
        self.settings = settings or Settings()
        self._iterate = Iterate(self.settings.sigma)
        self._restart: str | None = "first solve"
        self._guard = Guard("session")
        self._plan: IntegerPlan | None = None
        self.last_solution: Solution | None = None
        if journal is not None:
            self.journal(journal, sync)

    def solve(
        self, deadline_s: float | None = None, callback: Callable[[int, float, float], bool | None] | None = None
    ) -> Solution:
        """Solve the model as it now stands, from the state that the last solve left.

        Parameters
        ----------
        deadline_s : float, optional
            Wall-clock seconds for this solve; the settings' limit holds too.
        callback : callable, optional
            Called after each pricing pass as ``callback(passes, relative_gap, largest_violation)``; True ends the
            solve with INTERRUPTED.

        Returns
        -------
        Solution
        """
        with self._guard.held("being solved"), self.model._guard.held("being solved"):
            settings = self._settings_by(deadline_s)
            reason, self._restart = self._restart, None
            if reason is not None:
                self._iterate = Iterate(self.settings.sigma)
            with Watch(settings.time_limit_s) as watch:
                outcome = Solve(
                    self.model._matrix,
                    self._iterate,
                    settings,
                    callback,
                    self.model._sign * self.model.offset,
                    watch,
                    InteriorStart(self.model, self._iterate, settings, watch),
                ).run()
            if outcome.status in DIVERGED:
                self._restart = f"the last solve ended {outcome.status.value}"
            return self._solution(outcome, reason, watch.elapsed_s)

    def solve_integer(self, shim: Shim | str | None = None, deadline_s: float | None = None) -> IntegerPlan:
        """Solve the LP, then make a whole plan of it.

        Parameters
        ----------
        shim : Shim or {"rounding", "dive", "exact"}, optional
            By default :class:`copter.shims.RoundingShim`; "dive" and "exact" are :class:`copter.shims.RestrictedShim`.
            It is given the last plan that this method returned, and the new one is never worse where that still fits.
        deadline_s : float, optional
            Wall-clock seconds; "dive" and "exact" leave the LP a part of them, other shims come after the LP.

        Returns
        -------
        IntegerPlan
            Checked in exact arithmetic, with the LP's bound and the true gap; or one whose status says that there is
            no plan, and `conflict` why.

        Raises
        ------
        InvalidDataError
            For the name of an unknown shim, and for a plan of the caller's own shim that does not hold.
        SettingsError
            If the deadline is not a number above zero.
        """
        started = time.perf_counter()
        self._settings_by(deadline_s)
        searches = isinstance(shim, str) and shim != "rounding"
        if isinstance(shim, str):
            shim_by_name(shim, 0.0)
        limit = deadline_s
        if deadline_s is not None:
            limit = LP_SHARE * deadline_s if searches else max(0.5 * deadline_s, deadline_s - SHIM_S)
        solution = self.solve(deadline_s=limit)
        self.last_solution = solution
        if shim is None or isinstance(shim, str):
            left = float("inf") if deadline_s is None else deadline_s - (time.perf_counter() - started)
            shim = shim_by_name(shim or "rounding", left)
        plan = shim(self.model, solution, self._plan)
        if plan.is_feasible:
            require_feasible(self.model, plan)
            self._plan = plan
        return plan

    def _settings_by(self, deadline_s: float | None) -> Settings:
        """The settings, with the time limit that is the shorter; SettingsError for what is no time."""
        if deadline_s is None:
            return self.settings
        limited = replace(self.settings, time_limit_s=deadline_s)
        return limited if deadline_s < self.settings.time_limit_s else self.settings

    def reset(self) -> None:
        """Forget the iterate: the next solve starts cold."""
        with self._guard.held("being reset"):
            self._iterate = Iterate(self.settings.sigma)
            self._restart = "reset"

    def compact(self) -> None:
        """Move requests into the places that removed ones have left, so that passes do not walk over empty ones.

        Worth its time after the number of requests has fallen far below its peak. It never happens by itself, so never
        inside a deadline. Ids, values and prices stay; another session of the same model starts cold.
        """
        with self._guard.held("being compacted"), self.model._guard.held("being compacted"):
            model, ws = self.model, self._iterate.ws
            before = model._matrix.generation.copy()
            moved = model._matrix.compact()
            model._slot_of = {request: int(moved[slot]) for request, slot in model._slot_of.items()}
            slot = ws.slot_of_column
            known = slot < len(moved)
            known[known] = (before[slot[known]] == ws.generation[known]) & (moved[slot[known]] >= 0)
            target = moved[slot[known]]
            ws.key, ws.x = target << 32 | ws.column[known], ws.x[known]
            ws.generation = model._matrix.generation[target]
            ws.gather(model._matrix)
            self._plan = None if self._plan is None else self._plan_moved(self._plan, before, moved)

    def _plan_moved(self, plan: IntegerPlan, before: Ages, moved: Ages) -> IntegerPlan:
        """The plan with its slots where they are now; removed requests keep no place in it."""
        matrix, known = self.model._matrix, min(len(plan.generation), len(moved))
        alive = np.flatnonzero((plan.generation[:known] == before[:known]) & (moved[:known] >= 0))
        column = np.full(matrix.n_slots, IDLE, dtype=np.int32)
        column[moved[alive]] = plan.column_of_slot[alive]
        kept = set(alive.tolist())
        slot_of = {request: int(moved[slot]) for request, slot in plan.slot_of.items() if slot in kept}
        same = np.zeros(len(moved), dtype=bool)
        same[alive] = True
        key, share = plan.shares_of_slots(same)
        return replace(
            plan,
            column_of_slot=column,
            generation=matrix.generation[: matrix.n_slots].copy(),
            slot_of=slot_of,
            share_key=moved[key >> 32] << 32 | (key & 0xFFFFFFFF),
            share=share,
        )

    def __reduce__(self) -> tuple[Callable[..., Session], tuple[object, ...]]:
        """How pickle and copy take a session: model, iterate, settings, plan; the journal stays with the original."""
        with self._guard.held("being copied"), self.model._guard.held("being copied"):
            return snapshot.session_from, (type(self), snapshot.session_state(self), None, "a copied session")

    # Durability ---------------------------------------------------------------------------------------------------

    def save(self, path: PathLike, restart_journal: bool = True) -> None:
        """Write the session to one file: the model exactly, the iterate, the settings.

        The file is versioned and checksummed, and there whole or not at all. A session that was loaded from it solves
        in one pricing pass to the identical solution.

        Parameters
        ----------
        path : path
        restart_journal : bool
            Let the journal, if there is one, begin anew from this snapshot. False for a copy on the side: the journal
            then still goes on from the last snapshot.

        Raises
        ------
        SnapshotError
            If the file cannot be written; what was there before is still there.
        InvalidDataError
            If an id is not a str, int, float, bool, None, bytes or a tuple of these.
        """
        with self._guard.held("being saved"), self.model._guard.held("being saved"):
            snapshot.save(self, path)
            if self.model._journal is not None and restart_journal:
                self.model._journal.restart()

    @classmethod
    def load(
        cls,
        path: PathLike,
        settings: Settings | None = None,
        journal: PathLike | None = NAMED,
        sync: str = "batch",
    ) -> Session:
        """Read a session that :meth:`save` wrote, with the edits that its journal holds since.

        Parameters
        ----------
        path : path
            A snapshot, or a journal that no snapshot has been saved to yet.
        settings : Settings, optional
            Those that were saved by default.
        journal : path or None
            By default the one that the session had, if it had one; None for the model as it was saved. The session
            goes on writing it.
        sync : {"always", "batch", "never"}

        Raises
        ------
        SnapshotError
            If a file is cut short, damaged, foreign or newer. A last edit that the journal holds only in part, because
            the process was killed while writing it, is left out: it was not acknowledged.
        """
        find = journal is NAMED
        return snapshot.load(cls, path, settings, None if find else journal, find, checked_sync(sync))

    def journal(self, path: PathLike | None, sync: str = "batch") -> None:
        """Append every edit of the model to a file from now on; None ends that.

        The file starts with the model as it is, so that :meth:`load` can read it alone until :meth:`save` has been
        called, and from then on goes on from the snapshot.

        Parameters
        ----------
        path : path or None
            A file that is not there yet.
        sync : {"always", "batch", "never"}
            Wait for the disk after every edit (safe against a loss of power), after batches and snapshots, or never. An
            acknowledged edit survives the process being killed in any case.

        Raises
        ------
        SnapshotError
            If there is a file already, or it cannot be written.
        """
        policy = checked_sync(sync)
        with self._guard.held("being journaled"), self.model._guard.held("being journaled"):
            if path is not None and os.path.exists(path):
                raise SnapshotError(
                    f"{os.fspath(path)} is there already: Session.load goes on with a journal; otherwise remove it"
                )
            if self.model._journal is not None:
                if path is not None:
                    raise SnapshotError(
                        f"the model's edits go to {os.fspath(self.model._journal.path)} already: end that first, by "
                        "journal(None) of the session that began it"
                    )
                self.model._journal.close()
                self.model._journal = None
            if path is not None:
                base = encode(snapshot.session_state(self))
                self.model._journal = Journal.create(path, History(), base, policy)

    def _solution(self, outcome: Outcome, reason: str | None, seconds: float) -> Solution:
        model, sign = self.model, self.model._sign
        ws = self._iterate.ws
        objective = sign * outcome.objective + model.offset
        rounding = model._matrix.rounding_bound()
        certified = outcome.priced.certified and isfinite(rounding)
        lowest = outcome.priced.bound - (rounding * (1.0 + 1e-12) if isfinite(rounding) else 0.0)
        if certified:  # what rounding may have added is taken off, that of these sums included
            size = abs(outcome.priced.bound) + abs(rounding) + abs(model.offset)
            lowest -= outcome.priced.margin + 8.0 * float_info.epsilon * size
        bound = sign * lowest + model.offset
        raw = outcome.residuals
        gap = abs(objective - bound)
        residuals = Residuals(
            raw.primal, raw.dual, gap / (1.0 + abs(objective) + abs(bound)), raw.primal_absolute, raw.dual_absolute, gap
        )
        sparse = SparseValues(
            ws.key, ws.x.copy(), sign * outcome.priced.y, dict(model._slot_of), dict(model._row_of), model
        )
        version = model.version
        status, ray = outcome.status, outcome.ray
        return Solution(
            status=status,
            objective=objective,
            bound=bound,
            bound_is_certified=certified,
            residuals=residuals,
            iterations=outcome.newton_steps,
            pricing_passes=outcome.passes,
            proximal_steps=outcome.proximal_steps,
            solve_time_s=seconds,
            model_version=version,
            restart_reason=reason,
            working_columns=ws.size,
            _ray=None if ray is None else (lambda: dense_ray(model, sparse, status, ray, version)),
            _dense=lambda: dense_solution(model, sparse, version),
            _sparse=sparse,
        )
