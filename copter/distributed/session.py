"""A session whose requests are spread over shards (docs/distributed.md)."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping
from dataclasses import replace
from math import isfinite

import numpy as np

from copter import shims
from copter.distributed.answers import chosen_of, plan_of, shares_of, solution_of
from copter.distributed.bound import SAFE, Answer, whole_bound
from copter.distributed.deal import Deal
from copter.distributed.durable import Members, Remembered, read_members, remembered, write_members, write_remembered
from copter.distributed.exchange import Exchange
from copter.distributed.export import calls_of, calls_of_inventory, inventory_of
from copter.distributed.master import Master, Values
from copter.distributed.messages import Call, Floats, Hello, Ints, Inventory, Priced
from copter.distributed.model import Batch, RoutedModel
from copter.distributed.traffic import Traffic
from copter.distributed.transport import LocalTransport, ShardOptions, Transport
from copter.errors import InvalidDataError, SettingsError, SnapshotError
from copter.model.model import Model
from copter.problem.residuals import relative_gap
from copter.problem.solution import Solution, Status
from copter.runtime.progress import listening, told
from copter.runtime.watch import Watch
from copter.session.session import WORK
from copter.settings import Settings
from copter.shims import IntegerPlan, RoundingShim, Shim, require_feasible
from copter.solving.warm import Callback

MASTER_SHARE = 0.3  # of the tolerance: the gap that the master's own solves may keep
NEAR = 0.1  # of the last gap: the tolerance of the master's next solve
FAR = 1e-2  # loosest tolerance of the master's solves
IDLE_FACTOR, IDLE_LEAST = 2.0, 1_000  # columns held beyond this many times the working ones are let go
LP_SHARE = 0.7  # of a deadline, where a shim comes after the LP
COUNT_EDITS = frozenset({"add_resources", "set_count", "update_counts", "remove_resources"})


class Session:
    """Solves a model whose requests are spread over shards; the interface of :class:`copter.Session`.

    The shards price their requests at the prices that the coordinator's restricted master gives, and hand up the
    columns that improve it (equations R1 to R3). It is column generation, so the answer is that of the whole model:
    the same tolerance, with a bound that counts all columns.

    Parameters
    ----------
    model : Model
        Its resources, templates and requests are dealt to the shards; it is not read again. :attr:`model` is edited
        instead.
    settings : Settings, optional
    shards : int
        How many; more can join later.
    directory : str, optional
        Where the shards keep their snapshots and journals and the coordinator its own; all must see it. Without one, a
        shard that dies takes its requests with it.
    transport : Transport, optional
        By default shards in this process; :class:`copter.distributed.over_ray.RayTransport` has one actor each.
    threads : int
        Of a shard's pricing pass; 0 for all processors of its machine.
    sync : {"always", "batch", "never"}
        When shards' journals wait for the disk.

    Attributes
    ----------
    model : RoutedModel
        Edited by its owner between solves.
    last_solution : Solution or None
    last_traffic : Traffic
        What the last solve has sent and received.

    Raises
    ------
    InvalidDataError
        If `model` is no Model.
    SettingsError
        If there is no shard.
    SnapshotError
        If the directory holds a session already: :meth:`load` goes on with that.
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
        with self.model.batch():
            self._deal_out(model)

    def _begin(self, members: Members, settings: Settings, transport: Transport) -> None:
        """An empty coordinator of these shards."""
        self.settings, self._members = settings, members
        self._exchange = Exchange(transport, members.options, members.shards)
        self._deal = Deal(members.shards)
        model = Model("max" if members.options.sense == "max" else "min", members.offset)
        self._master = Master(model, settings)
        self.model = RoutedModel(self._master.model, self._deal, self._apply, self._read)
        self._stale: set[int] = set()
        self._answers: dict[int, Answer] = {}
        self._plan: tuple[dict[Hashable, int], Values, IntegerPlan] | None = None
        self._cold = True
        self.last_solution: Solution | None = None
        self.last_traffic = Traffic()

    def _deal_out(self, model: Model) -> None:
        """Do all of a model's edits here."""
        for call in calls_of_inventory(inventory_of(model, model.templates)):
            getattr(self.model, call.method)(*call.arguments, **call.named)
        templates = model.templates
        for request in model.requests:
            for call in calls_of(model, templates, request):
                if call.method == "add_request":
                    shard = self._deal.add(request, len(call.named["cost"]))
                self.model.send(shard, call)

    # Solving --------------------------------------------------------------------------------------------------------

    @property
    def traffic(self) -> Traffic:
        """All that has been sent and received."""
        return self._exchange.transport.traffic.copy()

    @property
    def shards(self) -> dict[int, Hello]:
        """Every shard's number, and where it stands."""
        return self._exchange.every("hello")

    @property
    def lost(self) -> int:
        """How many times a shard was found dead, and began again."""
        return self._exchange.lost

    def solve(
        self, deadline_s: float | None = None, callback: Callback | None = None, verbose: bool = False
    ) -> Solution:
        """Solve the model as it now stands, from the state that the last solve left.

        Parameters
        ----------
        deadline_s : float, optional
            Wall-clock seconds for this solve; the settings' limit holds too. A shard that has not answered by then
            counts with its last answer, and the bound with the least that this leaves (equation R4).
        callback : callable, optional
            Called after each pass as ``callback(passes, relative_gap, largest_violation)``; True ends the solve.
        verbose : bool
            A line on stderr for each pass and for the solve.

        Returns
        -------
        Solution
            Values by request, prices and figures; duals and reduced costs of all columns are not gathered.
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
        """Passes: the master solved, its prices out, bounds and columns back."""
        self._synchronise(watch)
        self._let_idle_go()
        last, passes, best, certified = MASTER_SHARE * settings.tolerance, 0, -float("inf"), False
        goal = FAR if self._cold else last
        while True:
            self._synchronise(watch)
            found = self._solve_master(settings, goal, last, watch)
            weight = 0.0 if found.status is Status.PRIMAL_INFEASIBLE else 1.0
            if found.status is Status.DUAL_INFEASIBLE:
                return self._answer(found, found.status, best, False, passes, watch)
            y = self._prices(found, weight)
            answers = self._price(y, weight, watch)
            passes += 1
            grown = sum(self._master.growth(priced.columns) for priced in answers.values())
            late = bool(self._exchange.late)
            absent = len(answers) < len(self._exchange.shards)  # late, or dead and to be asked again
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
                goal = max(last, min(FAR, NEAR * gap)) if grown else last
            # The answer is in the master's columns as they are: it is read off before new ones come in.
            answer = None if status is None else self._answer(found, status, best, certified, passes, watch)
            for priced in answers.values():
                self._master.put(priced.columns)
            if answer is not None:
                return answer

    def _solve_master(self, settings: Settings, goal: float, last: float, watch: Watch) -> Solution:
        """Solve the restricted program, to a vertex where it is solved to the last tolerance."""
        session = self._master.session
        session.settings = replace(settings, tolerance=goal, purify=settings.purify and goal <= last)
        left = max(watch.limit_s - watch.elapsed_s, 1e-3)
        return session.solve(deadline_s=left if isfinite(left) else None)

    def _prices(self, found: Solution, weight: float) -> Floats:
        """Prices of the resources as minimised; of an infeasible program those of its ray."""
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
        """How the solve ends; None where it goes on."""
        if found.status is Status.OPTIMAL and last and gap <= settings.tolerance:
            return Status.OPTIMAL
        if watch.interrupted:
            return Status.INTERRUPTED
        if watch() or found.status is Status.TIME_LIMIT or (late and stuck):
            return Status.TIME_LIMIT
        if passes >= settings.max_pricing_passes:
            return Status.ITERATION_LIMIT
        if last and stuck:
            return found.status if found.status is not Status.OPTIMAL else Status.NUMERICAL_ERROR
        return None

    def _price(self, y: Floats, weight: float, watch: Watch) -> dict[int, Priced]:
        """Answers of the shards that answer in time."""
        left = watch.limit_s - watch.elapsed_s
        ready = [shard for shard in self._exchange.shards if shard not in self._exchange.out_of_step]
        self._exchange.transport.traffic.passes += 1
        answers: dict[int, Priced] = self._exchange.in_time("price", ready, (y, weight, max(left, 0.0)), left)
        answers = {shard: priced for shard, priced in answers.items() if shard not in self._exchange.out_of_step}
        if weight == 1.0:
            for shard, priced in answers.items():
                if priced.whole:
                    self._answers[shard] = Answer(y, priced)
        return answers

    def _bound(self, found: Solution, y: Floats, answers: Mapping[int, Priced]) -> float:
        """Lower bound on the whole model as minimised, with its constant."""
        sign, offset = self._master.model.ledger.sign, self._master.model.offset
        whole = {shard: priced for shard, priced in answers.items() if priced.whole}
        missing = {}
        for shard in self._exchange.shards:
            if shard not in whole:
                held = self._master.total_of(self._deal.of_shard(shard), y)
                least = self._answers[shard].least_at(y) if shard in self._answers else -float("inf")
                missing[shard] = held, least
        return whole_bound(sign * (found.bound - offset), whole, missing) + sign * offset

    def _outward(self, lowest: float) -> float:
        """A bound in the sense of the model."""
        return self._master.model.ledger.sign * lowest

    def _answer(
        self, found: Solution, status: Status, best: float, certified: bool, passes: int, watch: Watch
    ) -> Solution:
        rounding = sum(SAFE * abs(answer.priced.rounding) for answer in self._answers.values())
        bound = self._outward(best - rounding)
        return solution_of(self._deal, self._master, found, status, bound, certified, passes, watch.elapsed_s)

    # Integer plans --------------------------------------------------------------------------------------------------

    def solve_integer(self, shim: Shim | str | None = None, deadline_s: float | None = None) -> IntegerPlan:
        """Solve the LP, then make a whole plan of it.

        The shim works on the columns that the coordinator holds, with those of split requests all fetched first. Its
        bound is the LP's, of all columns.

        Parameters
        ----------
        shim : Shim or {"rounding", "dive", "exact"}, optional
            As for :meth:`copter.Session.solve_integer`.
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
        """Integer requests of which the LP takes parts of columns, and of which not all columns are held."""
        model, found = self._master.model, []
        for request, _, values in solution.by_request():
            parts = ((values > 1e-9) & (values < 1.0 - 1e-6)).any() if len(values) else False
            held = self._master.columns.get(request)
            if parts and held is not None and len(held) < self._deal.size[request] and model.is_integer(request):
                found.append(request)
        return found

    # Edits ----------------------------------------------------------------------------------------------------------

    def _apply(self, calls: Batch) -> None:
        """Do a batch on the shards, and on the columns held."""
        changes = self._exchange.apply(calls)
        gone: list[Hashable] = []
        for shard, each in calls.items():
            for call in each:
                if call.method in ("remove_request", "remove_requests"):
                    gone += [call.arguments[0]] if call.method == "remove_request" else list(call.arguments[0])
                if call.method not in COUNT_EDITS:
                    self._answers.pop(shard, None)
        self._master.remove(dict.fromkeys(gone))
        for shard in calls:
            if shard in self._exchange.out_of_step:
                self._stale.add(shard)  # it does not know of all that is held, so it does not tell of all that changed
            else:
                self._master.take(changes[shard])

    def _read(self, shard: int, method: str, argument: Hashable) -> object:
        return self._exchange.ask("read", {shard: (method, argument)})[shard]

    def _synchronise(self, watch: Watch) -> None:
        """Tell shards that do not know it which columns are held, and hear what those are now.

        A shard that is late stays out of step; one whose edits the coordinator has not seen is waited for.
        """
        exchange = self._exchange
        for shard in sorted(exchange.out_of_step):
            mine = [request for request in self._deal.of_shard(shard) if request in self._master.columns]
            arguments = (mine, *counted({request: self._master.columns[request] for request in mine}))
            if shard in self._stale or not isfinite(watch.limit_s):
                answers = exchange.ask("hold", {shard: arguments})
            else:
                left = max(watch.limit_s - watch.elapsed_s, 0.0)
                answers = exchange.in_time("hold", [shard], arguments, left, again=True)
            for changes in answers.values():
                kept = {*changes.columns.requests, *(each.request for each in changes.whole)}
                self._master.remove([request for request in mine if request not in kept])
                self._master.put(changes.columns, changes.whole)
                exchange.out_of_step.discard(shard)
                self._stale.discard(shard)

    def _let_idle_go(self) -> None:
        """Let columns go that the last solve has not kept, where they are many."""
        master, working = self._master, self._master.session._iterate.ws.size
        if self._exchange.out_of_step or master.n_columns <= IDLE_FACTOR * working + IDLE_LEAST:
            return
        idle = master.idle(list(master.columns))
        if not idle:
            return
        owned = {
            shard: [request for request in idle if self._deal.owner[request] == shard] for shard in self._deal.load
        }
        arguments = {
            shard: (mine, *counted({request: idle[request] for request in mine}))
            for shard, mine in owned.items()
            if mine
        }
        self._exchange.ask("let_go", arguments)
        master.drop({request: gone for request, gone in idle.items() if self._deal.owner[request] in arguments})

    def reset(self) -> None:
        """Discard the iterate: the next solve starts cold."""
        self._master.session.reset()
        self._cold = True

    # Shards that join and leave ---------------------------------------------------------------------------------------

    def join(self) -> int:
        """Start one more shard, which gets its share of the requests; its number."""
        members = self._members
        shard = members.following
        self._change_members(replace(members, shards=(*members.shards, shard), following=shard + 1))
        self._exchange.join(shard)
        self._deal.load[shard] = 0
        donor = next(each for each in self._exchange.shards if each != shard)
        known: Inventory = self._exchange.ask("inventory", {donor: ()})[donor]
        self._exchange.apply({shard: calls_of_inventory(known)})
        share = self.model.n_columns // len(self._deal.load)
        moves: dict[Hashable, int] = {}
        taken = 0
        load = dict(self._deal.load)
        for request, owner in self._deal.owner.items():
            if taken >= share:
                break
            if load[owner] > share:
                moves[request] = shard
                load[owner] -= self._deal.size[request]
                taken += self._deal.size[request]
        self._move(moves)
        return shard

    def leave(self, shard: int) -> None:
        """Move a shard's requests to the others, and end it.

        Raises
        ------
        SettingsError
            If there is no such shard, or it is the last one.
        """
        if shard not in self._deal.load or len(self._deal.load) == 1:
            raise SettingsError(f"shard {shard} cannot leave: there are {sorted(self._deal.load)}")
        load = {other: columns for other, columns in self._deal.load.items() if other != shard}
        moves = {}
        for request in self._deal.of_shard(shard):
            target = min(load, key=lambda each: (load[each], each))
            moves[request] = target
            load[target] += self._deal.size[request]
        self._move(moves)
        self._change_members(replace(self._members, shards=tuple(load)))
        self._exchange.leave(shard)
        del self._deal.load[shard]
        self._answers.pop(shard, None)

    def _move(self, moves: Mapping[Hashable, int]) -> None:
        """Requests go to other shards, all or none; for the model nothing has changed."""
        if not moves:
            return
        calls: Batch = {}
        by_owner: dict[int, list[Hashable]] = {}
        for request in moves:
            by_owner.setdefault(self._deal.owner[request], []).append(request)
        for source, requests in by_owner.items():
            calls.setdefault(source, []).append(Call("remove_requests", (requests,), {}))
            for call in self._exchange.ask("export", {source: (requests,)})[source]:
                calls.setdefault(moves[call.arguments[0]], []).append(call)
        self._exchange.apply(calls)
        for request, shard in moves.items():
            self._deal.move(request, shard)
        self._deal.settle()
        for shard in calls:
            self._answers.pop(shard, None)
            self._exchange.out_of_step.add(shard)
            self._stale.add(shard)

    def _change_members(self, members: Members) -> None:
        self._members = members
        write_members(members, new=False)

    # Durability -----------------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Have every shard write a snapshot, and the coordinator what makes its next solve warm.

        Every edit is durable in any case, in the shards' journals; what is lost without a snapshot is the warm start.

        Raises
        ------
        SnapshotError
            If the session has no directory.
        """
        directory = self._members.options.directory
        if directory is None:
            raise SnapshotError("this session has no directory to be saved in: give one when it is made")
        self._exchange.every("save")
        plan = None if self._plan is None else self._plan
        write_remembered(directory, remembered(self._master, self.settings, plan))

    @classmethod
    def load(cls, directory: str, settings: Settings | None = None, transport: Transport | None = None) -> Session:
        """Go on with the session of a directory: after the coordinator, or everything, has died.

        Shards that still run are found, others start from their snapshots and journals. A batch of edits that had been
        decided for is carried through; one that had not is taken back.

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
        session._exchange.finish_pending()
        found: dict[int, Inventory] = session._exchange.every("inventory")
        session._take_inventory(found)
        if known is not None:
            session._recall(known)
        return session

    def _take_inventory(self, found: Mapping[int, Inventory]) -> None:
        """Resources and templates, which all shards have, and every shard's requests."""
        first = next(iter(found.values()))
        for call in calls_of_inventory(first):
            getattr(self._master.model, call.method)(*call.arguments, **call.named)
        self.model = RoutedModel(self._master.model, self._deal, self._apply, self._read)
        for shard, inventory in found.items():
            for request, size in zip(inventory.requests, inventory.size.tolist(), strict=True):
                self._deal.add(request, size, shard)
        self._deal.settle()
        self._deal.version = 1 + sum(len(each.requests) for each in found.values())

    def _recall(self, known: Remembered) -> None:
        """Hold the columns that were worked with, and start from their values and prices."""
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
        """End the shards, or leave them running for a session that :meth:`load` makes."""
        if end_shards:
            for shard in list(self._exchange.shards):
                self._exchange.leave(shard)


def counted(columns: Mapping[Hashable, Ints]) -> tuple[Ints, Ints]:
    """(how many of each request, all of them one after the other)."""
    count = np.array([len(each) for each in columns.values()], dtype=np.int32)
    return count, np.concatenate([np.zeros(0, dtype=np.int32), *columns.values()])
