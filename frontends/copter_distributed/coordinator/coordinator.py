"""The coordinator of a distributed session, which keeps shards and restricted master consistent."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from math import isfinite

import numpy as np

from copter.model.model import Model
from copter.problem.solution import Solution
from copter.runtime.errors import SettingsError, SnapshotError
from copter.runtime.settings import Settings
from copter.runtime.watch import Watch
from copter_distributed.coordinator.durable import Members, write_members
from copter_distributed.master.bound import Answer, whole_bound
from copter_distributed.master.master import Master
from copter_distributed.messages.messages import Call, Floats, Hello, Ints, Inventory, Priced
from copter_distributed.messages.traffic import Traffic
from copter_distributed.model.deal import Deal
from copter_distributed.model.model import RoutedModel
from copter_distributed.model.routing import Batch
from copter_distributed.shards.exchange import Exchange
from copter_distributed.shards.export import calls_of_inventory
from copter_distributed.shards.transport import Transport

# idle columns are dropped if the held ones exceed this factor times the working ones, and this number
IDLE_FACTOR, IDLE_LEAST = 2.0, 1_000
COUNT_EDITS = frozenset({"add_resource", "add_units", "set_count", "update_counts", "remove_units"})


class Coordinator:
    """The part of :class:`copter_distributed.Session` that keeps the shards and the restricted master consistent.

    Attributes
    ----------
    settings : Settings
    model : RoutedModel
    """

    settings: Settings
    model: RoutedModel

    def _begin(self, members: Members, settings: Settings, transport: Transport) -> None:
        """Set up an empty coordinator of these shards."""
        self.settings, self._members = settings, members
        self._exchange = Exchange(transport, members.options, members.shards)
        self._deal = Deal(members.shards)
        model = Model("max" if members.options.sense == "max" else "min", members.offset)
        self._master = Master(model, settings)
        self.model = RoutedModel(
            self._master.model, self._deal, self._apply, self._read, self._members.options.cost_dtype
        )
        self._stale: set[int] = set()
        self._answers: dict[int, Answer] = {}

    @property
    def transport(self) -> Transport:
        """The transport of calls to shards."""
        return self._exchange.transport

    @property
    def traffic(self) -> Traffic:
        """Counts of everything sent and received."""
        return self._exchange.transport.traffic.copy()

    @property
    def shards(self) -> dict[int, Hello]:
        """Call every shard and return its answer, by shard number: version, size of its model, memory and time."""
        return self._exchange.every("hello")

    @property
    def lost(self) -> int:
        """Number of times a shard was found dead and restarted."""
        return self._exchange.lost

    # Passes -----------------------------------------------------------------------------------------------------------

    def _price(self, y: Floats, weight: float, watch: Watch, share: float = 1.0) -> dict[int, Priced]:
        """Return the shards' answers that arrive within a share of the remaining time."""
        left = share * (watch.limit_s - watch.elapsed_s)
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
        """Return a lower bound on the whole model's optimum, as minimised, with the constant."""
        sign, offset = self._master.model.ledger.sign, self._master.model.offset
        whole = {shard: priced for shard, priced in answers.items() if priced.whole}
        missing = {}
        for shard in self._exchange.shards:
            if shard not in whole:
                held = self._master.total_of(self._deal.of_shard(shard), y)
                least = self._answers[shard].least_at(y) if shard in self._answers else -float("inf")
                missing[shard] = held, least
        return whole_bound(sign * (found.bound - offset), whole, missing) + sign * offset

    # Edits ----------------------------------------------------------------------------------------------------------

    def _apply(self, calls: Batch) -> None:
        """Apply a batch to the shards and to the held columns."""
        changes = self._exchange.apply(calls)
        gone: list[Hashable] = []
        for shard, each in calls.items():
            for call in each:
                if call.method in ("remove_request", "remove_requests", "update_columns"):
                    gone += [call.arguments[0]] if call.method == "remove_request" else list(call.arguments[0])
                if call.method not in COUNT_EDITS:
                    self._answers.pop(shard, None)
        self._master.remove(dict.fromkeys(gone))
        for shard in calls:
            if shard in self._exchange.out_of_step:
                self._stale.add(shard)  # it lacks some held columns, so its report of changes may be incomplete
            else:
                self._master.take(changes[shard])

    def _read(self, shard: int, method: str, argument: object) -> object:
        return self._exchange.ask("read", {shard: (method, argument)})[shard]

    def _synchronise(self, watch: Watch) -> None:
        """Inform shards that are out of step which columns are held, and receive their current data.

        A late shard stays out of step; if the coordinator has not seen the shard's last edits, it waits for the shard.
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
        """Drop columns that the last solve did not keep, if there are many."""
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

    def _take_inventory(self, found: Mapping[int, Inventory]) -> None:
        """Read the resources and templates from one shard, as all have them, and the requests from every shard."""
        first = next(iter(found.values()))
        for call in calls_of_inventory(first):
            getattr(self._master.model, call.method)(*call.arguments, **call.named)
        self.model = RoutedModel(
            self._master.model, self._deal, self._apply, self._read, self._members.options.cost_dtype
        )
        for shard, inventory in found.items():
            for request, size in zip(inventory.requests, inventory.size.tolist(), strict=True):
                self._deal.add(request, size, shard)
        self._deal.settle()
        self._deal.version = 1 + sum(len(each.requests) for each in found.values())

    # Shards that join and leave ---------------------------------------------------------------------------------------

    def join(self) -> int:
        """Start one more shard with its share of the requests; returns its number."""
        members = self._members
        shard = members.following
        # even after a failure the number is not used again
        self._change_members(replace(members, following=shard + 1), in_doubt=False)
        try:
            self._exchange.join(shard)
            donor = next(each for each in self._exchange.shards if each != shard)
            known: Inventory = self._exchange.ask("inventory", {donor: ()})[donor]
            self._exchange.apply({shard: calls_of_inventory(known)})
            self._change_members(replace(self._members, shards=(*members.shards, shard)))
        except BaseException:
            if shard in self._exchange.shards:
                self._exchange.leave(shard)
            raise
        self._deal.load[shard] = 0
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
        """Move a shard's requests to the others and end it.

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
        """Move requests to other shards, all or none; the model does not change."""
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

    def _change_members(self, members: Members, in_doubt: bool = True) -> None:
        """Write the list of shards to disk. A failed write may still have reached the disk, so edits then stop."""
        self._exchange.turn.require_current()
        try:
            write_members(members, new=False)
        except SnapshotError as error:
            if in_doubt:
                self._exchange.give_up(f"it is not known which shards there are ({error})", error)
            raise
        self._members = members


def counted(columns: Mapping[Hashable, Ints]) -> tuple[Ints, Ints]:
    """Return (number of columns per request, all columns concatenated)."""
    count = np.array([len(each) for each in columns.values()], dtype=np.int32)
    return count, np.concatenate([np.zeros(0, dtype=np.int32), *columns.values()])
