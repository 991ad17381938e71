"""Data that a distributed session's solution fetches on demand: duals, reduced costs, explanations."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter.model.explaining import capacity_effects
from copter.problem.explanation import CapacityEffect, Facts
from copter.problem.values import Offsets, OwnDuals, SparseValues, ranges, sums_before
from copter.runtime.errors import StaleSolutionError
from copter_distributed.master.master import Master
from copter_distributed.messages.messages import Floats, OwnRows, no_floats, no_ints
from copter_distributed.model.deal import Deal

Keys = NDArray[np.int64]
Ask = Callable[[str, Mapping[int, tuple[Any, ...]]], dict[int, Any]]


class RoutedValues:
    """The shards and the master of a solution; implements :class:`copter.problem.values.Behind`.

    Only the shards hold costs, so values that depend on costs are fetched from the shards of the requests concerned.

    Parameters
    ----------
    deal : Deal
    master : Master
    ask : callable (method, arguments by shard)
        Calls shards.
    key, x
        Working columns: place of the request << 32 | column.
    y : ndarray (m,)
        Prices of the resources, in the signs of the model's sense.
    own : dict of id to (rows, duals)
        Duals of own rows that the master has found; for other requests they are computed from reduced costs.
    """

    def __init__(
        self,
        deal: Deal,
        master: Master,
        ask: Ask,
        key: Keys,
        x: Floats,
        y: Floats,
        own: Mapping[Hashable, tuple[NDArray[np.int32], Floats]],
    ) -> None:
        self.deal, self.master, self.ask, self.key, self.working, self.y = deal, master, ask, key, x, y
        self.known = own
        self.version, self.requests = deal.version, list(deal.owner)
        self.resources = master.model.resources
        self._own: OwnDuals | None = None

    def require_current(self) -> None:
        """Raise StaleSolutionError if the model has been edited since the solve."""
        if self.deal.version != self.version:
            raise StaleSolutionError("the model has been edited since this solution was found; solve again")

    def lowers(self, requests: Sequence[Hashable]) -> tuple[Keys, Floats]:
        """Return (offsets, lower bounds) of the columns of requests; none may have been removed since the solve."""
        for request in requests:
            if self.deal.added_at.get(request, self.version + 1) > self.version:
                raise StaleSolutionError(f"request {request!r} has been removed since this solution was found")
        offsets = sums_before(np.array([self.deal.size[request] for request in requests], dtype=np.int64))
        lower = np.zeros(int(offsets[-1]))
        for at, request in enumerate(requests):
            if request in self.master.whole:
                lower[offsets[at] : offsets[at + 1]] = self.master.model.bounds(request)[0]
        return offsets, lower

    def x(self) -> Floats:
        """Return the values of all columns, in the order of the requests."""
        self.require_current()
        offsets, x = self.lowers(self.requests)
        x[offsets[:-1][self.key >> 32] + (self.key & 0xFFFFFFFF)] = self.working
        return x

    def own(self) -> OwnDuals:
        """Return the duals of the sums and private rows of all requests."""
        if self._own is None:
            self._own = self.duals(self.requests, self.y, self.known, reduced=False)[0]
        return self._own

    def dense(self) -> tuple[Floats, Floats]:
        """Return (y, reduced costs) of all columns; needs as much memory as all shards' costs."""
        self._own, reduced, _ = self.duals(self.requests, self.y, self.known)
        return np.concatenate((self.y, self._own.dual)), reduced

    def arrays(self) -> tuple[Floats, Floats, Floats]:
        """Return (x, y, reduced costs) of the whole model."""
        return self.x(), *self.dense()

    def duals(
        self,
        requests: list[Hashable],
        y: Floats,
        known: Mapping[Hashable, tuple[NDArray[np.int32], Floats]],
        costs: bool = True,
        reduced: bool = True,
    ) -> tuple[OwnDuals, Floats, Offsets]:
        """Return the duals of own rows, the reduced costs and their offsets, for given requests at given prices.

        Own rows are a request's sum and its private rows. Calls the requests' shards.

        Parameters
        ----------
        requests : list of ids (k,)
        y : ndarray (m,)
            Prices of the resources.
        known : dict of id to (rows, duals)
            Duals of own rows that need not be computed.
        costs : bool
            If false, costs count as zero: y is then a ray.
        reduced : bool
            If false, the reduced costs are not computed, and the array is empty.

        Returns
        -------
        OwnDuals
            Keyed by place in `requests` << 32 | row.
        ndarray
            Reduced costs of the requests' columns, request by request.
        ndarray (k + 1,) int64
            First entry of each request in the reduced costs, and the end.
        """
        self.require_current()
        size = np.array([self.deal.size[request] for request in requests], dtype=np.int64)
        offsets = sums_before(size)
        flat = np.zeros(int(offsets[-1]) if reduced else 0)
        keys, values = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
        for given in (False, True):
            chosen = [at for at, request in enumerate(requests) if (request in known) is given]
            places = {
                shard: np.array(chosen, dtype=np.int64)[part]
                for shard, part in self.deal.split([requests[at] for at in chosen]).items()
            }
            ids = {shard: [requests[at] for at in part.tolist()] for shard, part in places.items()}
            arguments = {
                shard: (mine, y, own_rows(mine, known) if given else None, costs, reduced)
                for shard, mine in ids.items()
            }
            for shard, (rows, found) in self.ask("duals", arguments).items():
                keys.append(np.repeat(places[shard], rows.count) << 32 | rows.row)
                values.append(rows.dual)
                if reduced:
                    flat[ranges(offsets[places[shard]], offsets[places[shard] + 1])] = found
        key, dual = np.concatenate(keys), np.concatenate(values)
        order = np.argsort(key)
        return OwnDuals(key[order], dual[order] + 0.0), flat, offsets

    # Explanations -----------------------------------------------------------------------------------------------------

    def facts(self, request: Hashable) -> Facts:
        """Return the facts for one request's explanation: columns from its shard, capacity effects from the master."""
        self.require_current()
        shard = self.deal.shard_of(request)
        place = self.requests.index(request)
        first, last = np.searchsorted(self.key, [place << 32, (place + 1) << 32])
        column = (self.key[first:last] & 0xFFFFFFFF).astype(np.int32)
        own = own_rows([request], self.known) if request in self.known else None
        found: Facts = self.ask("facts", {shard: (request, column, self.working[first:last], self.y, own)})[shard]
        return replace(found, capacity=self._capacity(request, found.resources))

    def _capacity(self, request: Hashable, resources: list[Hashable]) -> dict[Hashable, CapacityEffect]:
        """Return the effects of counts on a request; empty if the master no longer holds the solution's columns."""
        master, ledger = self.master, self.master.model.ledger
        at = np.flatnonzero(self.working)
        place, column = (self.key[at] >> 32).tolist(), (self.key[at] & 0xFFFFFFFF).tolist()
        key = np.empty(len(at), dtype=np.int64)
        for k, (which, own) in enumerate(zip(place, column, strict=True)):
            held = master.columns.get(self.requests[which], no_ints())
            local = int(np.searchsorted(held, own))
            if local == len(held) or held[local] != own:
                return {}
            key[k] = ledger.slot_of[self.requests[which]] << 32 | local
        order = np.argsort(key)
        y = np.zeros(ledger.matrix.n_rows)
        y[list(ledger.row_of.values())] = self.y
        named = {ledger.row_of[resource]: resource for resource in resources}
        slot = ledger.slot_of.get(request, -1)
        effects = capacity_effects(ledger, slot, key[order], self.working[at[order]], y, named)
        mine = master.columns.get(request, no_ints())
        return {
            resource: replace(effect, rates={int(mine[local]): rate for local, rate in effect.rates.items()})
            for resource, effect in effects.items()
        }


@dataclass(frozen=True, slots=True)
class RoutedSparse(SparseValues):
    """Values of a distributed solution; reduced costs are fetched from the requests' shards."""

    def reduced_costs_of(self, requests: Sequence[Hashable]) -> tuple[Offsets, Floats]:
        """Return (offsets, reduced costs) of the columns of requests, concatenated."""
        self.slots(requests)
        behind = self.behind
        if not isinstance(behind, RoutedValues):  # pickled: only values that were computed before
            return SparseValues.reduced_costs_of(self, requests)
        behind.require_current()
        _, reduced, offsets = behind.duals(list(requests), behind.y, behind.known)
        return offsets, reduced


def own_rows(requests: Sequence[Hashable], known: Mapping[Hashable, tuple[NDArray[np.int32], Floats]]) -> OwnRows:
    """Return known duals of own rows in the form that is sent to shards."""
    count = np.array([len(known[request][0]) for request in requests], dtype=np.int32)
    row = np.concatenate([no_ints(), *(known[request][0] for request in requests)])
    return OwnRows(count, row, np.concatenate([no_floats(), *(known[request][1] for request in requests)]))
