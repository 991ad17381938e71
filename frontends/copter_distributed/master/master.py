"""The restricted master: an ordinary session over the columns that shards have sent (equation R1)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from math import isfinite

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.model.assembly import own_rows_of
from copter.model.model import Model
from copter.model.values import ModelValues
from copter.problem.solution import Solution
from copter.runtime.settings import Settings
from copter.session.session import Session
from copter.shims.plan import IDLE, IntegerPlan
from copter_distributed.messages.messages import Changes, Columns, Floats, Ints, WholeRequest

Keys = NDArray[np.int64]
Values = dict[Hashable, tuple[Ints, Floats]]


class Master:
    """All resources, and the columns of every request that have improved the master so far.

    It is an ordinary model: edited in place and solved from its last state, by the same code as on one machine. A
    request whose held columns change is replaced; its values and all prices are kept.

    Parameters
    ----------
    model : Model
        A model with the resources and templates, without requests.
    settings : Settings

    Attributes
    ----------
    session : Session
    columns : dict of id to ndarray int32
        For each request, the numbers of its held columns, ascending.
    whole : set of ids
        Requests that are always held with all their columns.
    """

    def __init__(self, model: Model, settings: Settings) -> None:
        self.session = Session(model, settings)
        self.columns: dict[Hashable, Ints] = {}
        self.whole: set[Hashable] = set()

    @property
    def model(self) -> Model:
        """The restricted program."""
        return self.session.model

    @property
    def n_columns(self) -> int:
        """Number of columns in the restricted program."""
        return self.model.n_columns

    # Edits ----------------------------------------------------------------------------------------------------------

    def remove(self, requests: Iterable[Hashable]) -> None:
        """Remove requests from the master, if it has them."""
        here = [request for request in requests if request in self.columns]
        if here:
            self.model.remove_requests(here)
        for request in here:
            del self.columns[request]
            self.whole.discard(request)

    def take(self, changes: Changes) -> None:
        """Apply the changes of held columns by a batch of edits."""
        if changes.requests:
            self.model.update_costs(changes.requests, changes.cost)
        self.put(changes.columns, changes.whole)

    def growth(self, columns: Columns) -> int:
        """Return how many columns these columns would add to their requests."""
        held = [len(self.columns.get(request, ())) for request in columns.requests]
        return int(columns.count.sum()) - sum(held)

    def put(self, columns: Columns, whole: Iterable[WholeRequest] = ()) -> None:
        """Replace requests by their currently held columns."""
        whole = list(whole)
        if not (columns.requests or whole):
            return
        requests = [*columns.requests, *(each.request for each in whole)]
        values = self.values_of(requests)
        self.remove(requests)
        if columns.requests:
            self._add_plain(columns)
        for each in whole:
            self._add_whole(each)
        self.carry(values)

    def drop(self, dropped: Mapping[Hashable, Ints]) -> None:
        """Drop columns of plain requests; requests without remaining columns are removed."""
        kept = {request: without(self.columns[request], gone) for request, gone in dropped.items()}
        self.put(self._as_columns({request: columns for request, columns in kept.items() if len(columns)}))
        self.remove([request for request, columns in kept.items() if not len(columns)])

    def _as_columns(self, kept: Mapping[Hashable, Ints]) -> Columns:
        """Return some of the held columns with their data."""
        if not kept:
            return Columns()
        matrix, ledger = self.model.ledger.matrix, self.model.ledger
        requests = list(kept)
        slots = ledger.slots(requests)
        count = np.array([len(kept[request]) for request in requests], dtype=np.int32)
        start = np.zeros(len(requests) + 1, dtype=np.int32)
        np.cumsum(count, out=start[1:])
        local = np.concatenate([np.searchsorted(self.columns[each], kept[each]) for each in requests]).astype(np.int32)
        flat = matrix.gather(slots, start, local)
        place = np.full(matrix.n_rows, -1, dtype=np.int32)
        place[list(ledger.row_of.values())] = np.arange(len(ledger.row_of), dtype=np.int32)
        fixed = [matrix.fixed_of(slot) for slot in slots.tolist()]
        return Columns(
            requests,
            count,
            flat.limit,
            np.array([matrix.slabs[slot].integer for slot in slots.tolist()], dtype=bool),
            np.array([-1 if at < 0 else self.columns[each][at] for each, at in zip(requests, fixed, strict=True)]),
            np.concatenate([kept[request] for request in requests]),
            ledger.sign * flat.cost,
            flat.entry_start,
            place[flat.row],
            flat.coefficient,
        )

    def _add_plain(self, columns: Columns) -> None:
        model, n = self.model, len(columns.column)
        usage = sp.csc_array(
            (columns.coefficient, columns.row, columns.entry_start), shape=(len(model.ledger.row_of), n)
        )
        model.add_own_requests(
            columns.requests, columns.count, columns.cost, usage, resources=model.resources, limit=columns.limit
        )
        end = np.cumsum(columns.count).tolist()
        each = zip(columns.requests, columns.count.tolist(), end, strict=True)
        self.columns.update((request, columns.column[last - size : last]) for request, size, last in each)
        for at in np.flatnonzero(columns.integer).tolist():
            model.update_integrality(columns.requests[at], True)
        for at in np.flatnonzero(columns.fixed >= 0).tolist():
            request = columns.requests[at]
            model.fix(request, int(np.searchsorted(self.columns[request], columns.fixed[at])))

    def _add_whole(self, each: WholeRequest) -> None:
        n = len(each.entry_start) - 1
        usage = sp.csc_array((each.coefficient, each.row, each.entry_start), shape=(len(self.model.ledger.row_of), n))
        self.model.add_request(each.request, usage=usage, resources=self.model.resources, **each.named)
        self.columns[each.request] = np.arange(n, dtype=np.int32)
        self.whole.add(each.request)

    # State of the iterate -----------------------------------------------------------------------------------------

    def values_of(self, requests: Iterable[Hashable] | None = None) -> Values:
        """Return {id: (columns, values)} of the iterate's working columns, by default of all requests."""
        ws, ledger = self.session._iterate.ws, self.model.ledger
        if not ws.size:
            return {}
        alive = ws.generation == ledger.matrix.generation[ws.slot_of_column]
        slot_of = ledger.slot_of
        named = [each for each in (slot_of if requests is None else requests) if each in slot_of]
        slots = np.fromiter((slot_of[each] for each in named), dtype=np.int64, count=len(named))
        first, last = np.searchsorted(ws.key, slots << 32), np.searchsorted(ws.key, (slots + 1) << 32)
        there = np.flatnonzero(last > first)
        local = (ws.key & 0xFFFFFFFF).astype(np.int32)
        found: Values = {}
        for at in there[alive[first[there]]].tolist():
            part, request = slice(first[at], last[at]), named[at]
            found[request] = self.columns[request][local[part]], ws.x[part].copy()
        return found

    def carry(self, values: Values) -> None:
        """Restore the values of working columns for requests that are new in the master, as far as these columns
        are held.
        """
        ws, ledger = self.session._iterate.ws, self.model.ledger
        alive = ws.generation == ledger.matrix.generation[ws.slot_of_column] if ws.size else np.zeros(0, dtype=bool)
        keys, points = [ws.key[alive]], [ws.x[alive]]
        for request, (column, x) in values.items():
            slot = ledger.slot_of.get(request)
            if slot is None:
                continue
            own = self.columns[request]
            place = np.minimum(np.searchsorted(own, column), len(own) - 1)
            there = own[place] == column
            keys.append(slot << 32 | place[there].astype(np.int64))
            points.append(x[there])
        key, x = np.concatenate(keys), np.concatenate(points)
        order = np.argsort(key)
        ws.key, ws.x = key[order], x[order]
        ws.generation = ledger.matrix.generation[ws.slot_of_column]
        ws.gather(ledger.matrix)

    def prices(self, solution: Solution) -> Floats:
        """Return the prices of the resources in order, as minimised, (m,)."""
        return self.model.ledger.sign * solution.prices()

    def own_duals(self, solution: Solution) -> dict[Hashable, tuple[Ints, Floats]]:
        """Return {id: (rows, duals)} of own rows of wholly held requests, if their solve computed them.

        The duals of other requests follow from the reduced costs of all their columns, which only their shards know.
        """
        behind = solution._sparse.behind if solution._sparse is not None else None
        known = behind._own if isinstance(behind, ModelValues) else None
        if known is None or not self.whole:
            return {}
        found: dict[Hashable, tuple[Ints, Floats]] = {}
        for request in self.whole:
            slot = self.model.ledger.slot_of[request]
            first, last = np.searchsorted(known.key, [slot << 32, (slot + 1) << 32])
            found[request] = (known.key[first:last] & 0xFFFFFFFF).astype(np.int32), known.dual[first:last].copy()
        return found

    def own_of_whole(self, own: Floats) -> dict[Hashable, tuple[Ints, Floats]]:
        """Return {id: (rows, multipliers)} of wholly held requests, from all own rows of the master."""
        requests, first = own_rows_of(self.model.ledger)
        begin = (first - len(self.model.resources)).tolist()
        found: dict[Hashable, tuple[Ints, Floats]] = {}
        for at, request in enumerate(requests):
            if request in self.whole:
                part = own[begin[at] : begin[at + 1]]
                has_sum = isfinite(self.model.limit(request)) or isfinite(self.model.at_least(request))
                found[request] = np.arange(len(part), dtype=np.int32) + (0 if has_sum else 1), part.copy()
        return found

    def standing_prices(self) -> Floats | None:
        """Return the starting prices of the next solve, see :meth:`prices`; zero for new resources, None for a cold
        start.
        """
        iterate, matrix = self.session._iterate, self.model.ledger.matrix
        if iterate.cold or self.session._restart is not None:
            return None
        y = np.zeros(len(self.model.ledger.row_of))
        known = min(len(iterate.y), len(iterate.row_generation))
        for at, row in enumerate(self.model.ledger.row_of.values()):
            if row < known and iterate.row_generation[row] == matrix.row_generation[row]:
                y[at] = iterate.y[row]
        return y

    def begin_at(self, prices: Mapping[Hashable, float], values: Values) -> None:
        """Start the next solve from these prices (as minimised) and values, rather than cold."""
        iterate, matrix = self.session._iterate, self.model.ledger.matrix
        iterate.y = np.zeros(matrix.n_rows)
        for resource, row in self.model.ledger.row_of.items():
            iterate.y[row] = prices.get(resource, 0.0)
        iterate.row_generation = matrix.row_generation[: matrix.n_rows].copy()
        self.carry(values)
        iterate.cold = False
        self.session._restart = None

    # Conversions between master and requests' own columns
    # ----------------------------------------------------------------------------

    def idle(self, requests: Iterable[Hashable]) -> dict[Hashable, Ints]:
        """Return the columns of plain requests that are not in the iterate's working set."""
        kept = self.values_of()
        found = {}
        for request in requests:
            if request in self.whole or self.model.fixed(request) is not None:
                continue
            known = kept.get(request)
            gone = self.columns[request] if known is None else without(self.columns[request], known[0])
            if len(gone):
                found[request] = gone
        return found

    def total_of(self, requests: Iterable[Hashable], y: Floats) -> float:
        """Return the dual value of some plain requests, computed from their held columns at these prices."""
        ledger = self.model.ledger
        matrix = ledger.matrix
        prices = np.zeros(matrix.n_rows)
        prices[list(ledger.row_of.values())] = y
        smallest = matrix.price(prices, np.full(matrix.n_slots, -np.inf), 1)[0]
        limit, fixed = matrix.limits()
        slots = [ledger.slot_of[each] for each in requests if each in ledger.slot_of and each not in self.whole]
        at = np.array(slots, dtype=np.int64)
        term = np.where(fixed[at], smallest[at], np.minimum(smallest[at], 0.0)) * limit[at]
        return float(term.sum())

    def plan_of(self, chosen: Mapping[Hashable, int], shares: Values, like: IntegerPlan) -> IntegerPlan:
        """Convert an earlier plan, by ids and columns, to the current program."""
        ledger = self.model.ledger
        matrix = ledger.matrix
        column: Ints = np.full(matrix.n_slots, IDLE, dtype=np.int32)
        for request, which in chosen.items():
            own = self.columns.get(request)
            if own is not None and which in own:
                column[ledger.slot_of[request]] = np.searchsorted(own, which)
        keys: list[Keys] = [np.zeros(0, dtype=np.int64)]
        values = [np.zeros(0)]
        for request, (these, share) in shares.items():
            own = self.columns.get(request)
            if own is not None and np.isin(these, own).all():
                keys.append(ledger.slot_of[request] << 32 | np.searchsorted(own, these).astype(np.int64))
                values.append(share)
        key, value = np.concatenate(keys), np.concatenate(values)
        order = np.argsort(key)
        return replace(
            like,
            column_of_slot=column,
            generation=matrix.generation[: matrix.n_slots].copy(),
            slot_of=ledger.slots_then(),
            share_key=key[order],
            share=value[order],
        )


def without(own: Ints, gone: Ints) -> Ints:
    """Return a request's columns except some; both arrays ascend."""
    stays = np.ones(len(own), dtype=bool)
    stays[np.searchsorted(own, gone)] = False
    return own[stays]
