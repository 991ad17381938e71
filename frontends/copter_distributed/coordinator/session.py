"""A session whose requests are spread over shards (docs/method/distributed.md)."""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import replace
from math import isfinite

import numpy as np

from copter import shims
from copter.methods.protocol import Callback
from copter.model.model import Model
from copter.problem.residuals import relative_gap
from copter.problem.solution import Solution, Status
from copter.runtime.errors import InvalidDataError, SettingsError, SnapshotError
from copter.runtime.progress import listening, told
from copter.runtime.settings import Settings
from copter.runtime.watch import Watch
from copter.session.session import WORK
from copter.shims import IntegerPlan, RoundingShim, Shim, require_feasible
from copter_distributed.coordinator.coordinator import Coordinator, counted
from copter_distributed.coordinator.durable import (
    Members,
    Remembered,
    read_members,
    remembered,
    write_members,
    write_remembered,
)
from copter_distributed.master.answers import chosen_of, plan_of, shares_of, solution_of
from copter_distributed.master.bound import SAFE
from copter_distributed.master.master import Values
from copter_distributed.messages.messages import Floats, Inventory
from copter_distributed.messages.traffic import Traffic
from copter_distributed.shards.export import calls_of, calls_of_inventory, inventory_of
from copter_distributed.shards.transport import LocalTransport, ShardOptions, Transport

MASTER_SHARE = 0.3  # final tolerance of the master's solves, as a share of the session's tolerance
NEAR = 0.1  # tolerance of the master's next solve, as a share of the last gap
FAR = 1e-2  # loosest tolerance of the master's solves
LEAP = 100.0  # if the next tolerance were below this many times the final one, the final one is used at once
OPENING = 5e-4  # tolerance of the first master after a pass at the last solve's prices that found new columns
OPENING_SHARE = 0.3  # share of a deadline that the first pass may wait for late shards
SAME_PRICES = 1e-9  # relative change of prices below which they need no pricing pass of their own
LP_SHARE = 0.7  # share of a deadline that the LP may use if a shim follows it


class Session(Coordinator):
    """Solves a model whose requests are spread over shards; same interface as :class:`copter.Session`.

    The coordinator solves a restricted master and sends its prices to the shards. They return the columns that improve
    the master (equations R1 to R3). This is column generation: the answer holds for the whole model, within the same
    tolerance, and its bound counts all columns.

    Parameters
    ----------
    model : Model
        Its resources, templates and requests are distributed to the shards. It is not read again; edit :attr:`model`
        instead.
    settings : Settings, optional
    shards : int
        Number of shards; more can join later.
    directory : str, optional
        Directory of the snapshots and journals of shards and coordinator; all must have access to it. Without one, the
        requests of a shard that dies are lost.
    transport : Transport, optional
        By default shards in this process; :class:`copter_distributed.over_ray.RayTransport` runs each as a Ray actor.
    threads : int
        Threads of a shard's pricing pass; 0 for all processors of its machine.
    sync : {"always", "batch", "never"}
        When shards' journals wait for the disk.

    Attributes
    ----------
    model : RoutedModel
        Edited by its owner between solves.
    last_solution : Solution or None
    last_traffic : Traffic
        Messages and bytes of the last solve.

    Raises
    ------
    InvalidDataError
        If `model` is not a Model.
    SettingsError
        If there is no shard, or the transport finds shards of another session that still runs.
    SnapshotError
        If the directory already holds a session; :meth:`load` continues that one.
    """

    def __init__(
        self,
        model: Model,
        settings: Settings | None = None,
        *,
        shards: int = 2,
        directory: str | None = None,
        transport: Transport | None = None,
        threads: int = 0,
        sync: str = "batch",
    ) -> None:
        if not isinstance(model, Model):
            raise InvalidDataError(f"model is a {type(model).__name__}, must be a Model")
        if shards < 1:
            raise SettingsError(f"shards is {shards}, must be >= 1")
        options = ShardOptions(model.sense, str(model.cost_dtype), threads, directory, sync)
        members = Members(tuple(range(shards)), shards, model.offset, options)
        write_members(members, new=True)
        self._begin(members, settings or Settings(), transport or LocalTransport())
        self._forget()
        self._require_empty_shards()
        with self.model.batch():
            self._deal_out(model)

    def _require_empty_shards(self) -> None:
        """Raise SettingsError if a shard already has edits and so belongs to another session."""
        for shard, hello in self.shards.items():
            if hello.version:
                self.transport.release()
                raise SettingsError(
                    f"shard {shard} runs already, with {hello.requests} requests of another session: give the "
                    "transport another name, or go on with that session by Session.load"
                )

    def _forget(self) -> None:
        """Reset the state to that before the first solve."""
        self._plan: tuple[dict[Hashable, int], Values, IntegerPlan] | None = None
        self._cold = True
        self.last_solution: Solution | None = None
        self.last_traffic = Traffic()

    def _deal_out(self, model: Model) -> None:
        """Recreate a model's resources, templates and requests on the shards."""
        for call in calls_of_inventory(inventory_of(model, model.templates)):
            getattr(self.model, call.method)(*call.arguments, **call.named)
        templates = model.templates
        for request in model.requests:
            for call in calls_of(model, templates, request):
                if call.method == "add_request":
                    shard = self._deal.add(request, len(call.named["cost"]))
                self.model.send(shard, call)

    # Solving --------------------------------------------------------------------------------------------------------

    def solve(
        self, deadline_s: float | None = None, callback: Callback | None = None, verbose: bool = False
    ) -> Solution:
        """Solve the current model, starting from the state that the last solve left.

        Parameters
        ----------
        deadline_s : float, optional
            Wall-clock seconds for this solve; the settings' limit holds too. For a shard that has not answered by then,
            its last answer counts, and the bound is reduced accordingly (equation R4).
        callback : callable, optional
            Called after each pass as ``callback(passes, relative_gap, largest_violation)``; True ends the solve.
        verbose : bool
            A line on stderr for each pass and for the solve.

        Returns
        -------
        Solution
            As of :meth:`copter.Session.solve`. Duals of the requests' own rows, reduced costs and explanations are
            fetched from the shards when they are read.
        """
        settings = self.settings if deadline_s is None else self.settings.limited_to(deadline_s)
        before = self.traffic
        with Watch(settings.time_limit_s) as watch:
            solution = self._solve(settings, watch, listening(callback, verbose))
        self.last_traffic = self.traffic - before
        self._cold = solution.status is not Status.OPTIMAL and self._cold
        self.last_solution = solution
        told("session", solution.status.value, solution.pricing_passes, solution.gap, solution.solve_time_s, verbose)
        return solution

    def _solve(self, settings: Settings, watch: Watch, callback: Callback | None) -> Solution:
        """Repeat passes until the solve ends: solve the master, send its prices, receive bounds and columns."""
        self._synchronise(watch)
        self._let_idle_go()
        last, passes, best, certified = MASTER_SHARE * settings.tolerance, 0, -float("inf"), False
        goal = FAR if self._cold else last
        opened = self._opened(watch)
        if opened is not None:
            passes, goal = 1, OPENING if opened else last
        settled: Floats | None = None  # prices of the last pass, if it was complete and found no new column
        while True:
            self._synchronise(watch)
            found = self._solve_master(settings, goal, last, watch)
            if settled is not None and self._is_known(found, settled, best, settings):
                return self._answer(found, found.status, best, certified, passes, watch)
            weight = 0.0 if found.status is Status.PRIMAL_INFEASIBLE else 1.0
            if found.status is Status.DUAL_INFEASIBLE:
                return self._answer(found, found.status, best, False, passes, watch)
            y = self._prices(found, weight)
            answers = self._price(y, weight, watch)
            passes += 1
            grown = sum(self._master.growth(priced.columns) for priced in answers.values())
            late = bool(self._exchange.late)
            absent = len(answers) < len(self._exchange.shards)  # some shards were late or died, and are asked again
            stuck = not grown and (late or not absent)
            status: Status | None
            if weight == 0.0:
                status = Status.TIME_LIMIT if watch() or (stuck and late) else found.status if stuck else None
            else:
                bound = self._bound(found, y, answers)
                if bound > best:
                    best, certified = bound, found.bound_is_certified and isfinite(bound)
                gap = relative_gap(found.objective, self._outward(best))
                if callback is not None and callback(passes, gap, found.residuals.primal_absolute):
                    watch.interrupted = True
                status = self._status(found, gap, goal <= last, stuck, late, passes, settings, watch)
                settled = None if grown or absent or late or goal <= last else y
                goal = min(FAR, NEAR * gap) if grown and NEAR * gap > LEAP * last else last
            # The answer refers to the master's present columns, so it is read before new ones are added.
            answer = None if status is None else self._answer(found, status, best, certified, passes, watch)
            for priced in answers.values():
                self._master.put(priced.columns)
            if answer is not None:
                return answer

    def _opened(self, watch: Watch) -> int | None:
        """Start a warm solve with a pass at the last prices; returns the number of new columns, None without a pass.

        Prices change less from round to round than costs and requests. So a pass at the last prices finds nearly all
        the columns that a pass after a first solve of the master would find, and saves that solve.
        """
        y = None if self._cold else self._master.standing_prices()
        known = self.last_solution
        if y is None or (known is not None and known.model_version == self._deal.version):
            return None
        answers = self._price(y, 1.0, watch, OPENING_SHARE)
        grown = sum(self._master.growth(priced.columns) for priced in answers.values())
        for priced in answers.values():
            self._master.put(priced.columns)
        return grown

    def _is_known(self, found: Solution, y: Floats, best: float, settings: Settings) -> bool:
        """Whether the master's solution is optimal for the whole model without another pass, because its prices
        equal those of the last pass, `y`.
        """
        if found.status is not Status.OPTIMAL or self._exchange.out_of_step:
            return False
        moved = np.abs(self._master.prices(found) - y).max(initial=0.0)
        gap = relative_gap(found.objective, self._outward(best))
        return bool(moved <= SAME_PRICES * (1.0 + np.abs(y).max(initial=0.0)) and gap <= settings.tolerance)

    def _solve_master(self, settings: Settings, goal: float, last: float, watch: Watch) -> Solution:
        """Solve the restricted program; at the final tolerance, to a vertex."""
        session = self._master.session
        internals = replace(settings.internals, purify=settings.internals.purify and goal <= last)
        session.settings = replace(settings, tolerance=goal, internals=internals)
        left = max(watch.limit_s - watch.elapsed_s, 1e-3)
        return session.solve(deadline_s=left if isfinite(left) else None)

    def _prices(self, found: Solution, weight: float) -> Floats:
        """Return the resources' prices as minimised; for an infeasible program, those of its ray."""
        if weight == 1.0:
            return self._master.prices(found)
        ray = found.ray
        rows = len(self._master.model.resources)
        if ray is None:
            raise InvalidDataError("the master is infeasible, but no ray proves it: please report it")
        return ray[:rows].copy()

    @staticmethod
    def _status(
        found: Solution, gap: float, last: bool, stuck: bool, late: bool, passes: int, settings: Settings, watch: Watch
    ) -> Status | None:
        """Return the status if the solve ends, otherwise None."""
        if found.status is Status.OPTIMAL and last and gap <= settings.tolerance:
            return Status.OPTIMAL
        if watch.interrupted:
            return Status.INTERRUPTED
        if watch() or found.status is Status.TIME_LIMIT or (late and stuck):
            return Status.TIME_LIMIT
        if passes >= settings.internals.max_pricing_passes:
            return Status.ITERATION_LIMIT
        if last and stuck:
            return found.status if found.status is not Status.OPTIMAL else Status.NUMERICAL_ERROR
        return None

    def _outward(self, lowest: float) -> float:
        """Return a bound of the minimisation with the sign of the model."""
        return self._master.model.ledger.sign * lowest

    def _answer(
        self, found: Solution, status: Status, best: float, certified: bool, passes: int, watch: Watch
    ) -> Solution:
        rounding = sum(SAFE * abs(answer.priced.rounding) for answer in self._answers.values())
        bound = self._outward(best - rounding)
        return solution_of(
            self._deal, self._master, self._exchange.ask, found, status, bound, certified, passes, watch.elapsed_s
        )

    # Integer plans --------------------------------------------------------------------------------------------------

    def solve_integer(self, shim: Shim | str | None = None, deadline_s: float | None = None) -> IntegerPlan:
        """Solve the LP, then compute an integer plan from its solution.

        All columns of split requests are fetched first. The shim then uses the columns that the coordinator holds. The
        plan's bound is the LP's, which counts all columns.

        Parameters
        ----------
        shim : Shim or {"rounding", "dive", "exact"}, optional
            See :meth:`copter.Session.solve_integer`.
        deadline_s : float, optional

        Returns
        -------
        IntegerPlan
            Checked in exact arithmetic.
        """
        started = time.perf_counter()
        if isinstance(shim, str) and shim != "rounding":
            shims.shim_by_name(shim, 0.0)
        solution = self.solve(deadline_s=None if deadline_s is None else LP_SHARE * deadline_s)
        split = self._split_requests(solution)
        if split and not (deadline_s is not None and time.perf_counter() - started > LP_SHARE * deadline_s):
            for shard, places in self._deal.split(split).items():
                columns = self._exchange.ask("fetch", {shard: ([split[at] for at in places],)})[shard]
                self._master.put(columns)
            solution = self.solve(deadline_s=None if deadline_s is None else 0.5 * (1.0 - LP_SHARE) * deadline_s)
        master = self._master
        found = master.session.last_solution = master.session.solve()
        left = float("inf") if deadline_s is None else deadline_s - (time.perf_counter() - started)
        if shim is None or isinstance(shim, str):
            rounding = shim is None or shim == "rounding"
            shim = RoundingShim(time_limit_s=left, most_work=WORK) if rounding else shims.shim_by_name(str(shim), left)
        previous = None if self._plan is None else master.plan_of(*self._plan)
        known = replace(found, bound=solution.bound, bound_is_certified=solution.bound_is_certified)
        plan = shim(master.model, known, previous)
        if not plan.is_feasible:
            return plan
        require_feasible(master.model, plan)
        self._plan = chosen_of(master, plan), shares_of(master, plan), plan
        return plan_of(self._deal, master, plan, solution.bound, solution.bound_is_certified)

    def _split_requests(self, solution: Solution) -> list[Hashable]:
        """Return the integer requests with fractional columns in the LP's solution that are not wholly held."""
        model, found = self._master.model, []
        for request, _, values in solution.by_request():
            parts = ((values > 1e-9) & (values < 1.0 - 1e-6)).any() if len(values) else False
            held = self._master.columns.get(request)
            if parts and held is not None and len(held) < self._deal.size[request] and model.is_integer(request):
                found.append(request)
        return found

    def reset(self) -> None:
        """Discard the iterate: the next solve starts cold."""
        self._master.session.reset()
        self._cold = True

    def compact(self) -> None:
        """Call :meth:`copter.Session.compact` on every shard and in the master."""
        self._exchange.every("compact")
        self._master.session.compact()

    # Durability -----------------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Let every shard write a snapshot, and write the coordinator's state.

        The shards' journals make every edit durable in any case. Without a snapshot only the warm start is lost.

        Raises
        ------
        SnapshotError
            If the session has no directory.
        """
        directory = self._members.options.directory
        if directory is None:
            raise SnapshotError("this session has no directory to be saved in: give one when it is made")
        self._exchange.every("save")
        self._exchange.turn.require_current()
        plan = None if self._plan is None else self._plan
        write_remembered(directory, remembered(self._master, self.settings, plan))

    @classmethod
    def load(cls, directory: str, settings: Settings | None = None, transport: Transport | None = None) -> Session:
        """Continue the session of a directory after its coordinator, or everything, has died.

        Shards that still run are found; others start from their snapshots and journals. A batch of edits that was
        decided is completed; an undecided one is undone.

        Raises
        ------
        SnapshotError
            If there is no session, or a file is damaged.
        """
        members = read_members(directory)
        known: Remembered | None = Remembered.read(directory)
        session = object.__new__(cls)
        chosen = settings or (Settings() if known is None else known.settings)
        session._begin(members, chosen, transport or LocalTransport())
        session._forget()
        session._exchange.finish_pending()
        found: dict[int, Inventory] = session._exchange.every("inventory")
        session._take_inventory(found)
        if known is not None:
            session._recall(known)
        return session

    def _recall(self, known: Remembered) -> None:
        """Hold the remembered working columns, and start from their values and prices."""
        here = {request: each for request, each in known.values.items() if request in self._deal.owner}
        for shard in self._exchange.shards:
            mine = [request for request in here if self._deal.owner[request] == shard]
            arguments = (mine, *counted({request: here[request][0] for request in mine}))
            changes = self._exchange.ask("hold", {shard: arguments})[shard]
            self._master.put(changes.columns, changes.whole)
            self._exchange.out_of_step.discard(shard)
        self._master.begin_at(known.prices, here)
        self._cold = False
        if known.chosen is not None and known.shares is not None:
            self._plan = known.chosen, known.shares, known.empty_plan()

    def close(self, end_shards: bool = True) -> None:
        """End the shards, or leave them running for a session made by :meth:`load`."""
        if end_shards:
            for shard in list(self._exchange.shards):
                self._exchange.leave(shard)
