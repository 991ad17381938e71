"""One shard: a model with a share of the requests, which is edited, priced, saved and restored."""

from __future__ import annotations

import os
import resource as process_resources
import time
from collections.abc import Hashable
from contextlib import AbstractContextManager
from typing import Any, Literal

import numpy as np

from copter.model.explaining import facts_of
from copter.model.matrix import Template
from copter.model.model import Model
from copter.model.values import duals_of
from copter.problem.explanation import Facts
from copter.problem.values import OwnDuals
from copter.runtime.errors import CopterError, InternalError, SnapshotError
from copter.runtime.settings import available_threads
from copter.session.session import Session
from copter.storage.disk import DISK
from copter_distributed.messages.errors import ShardLostError, SupersededError
from copter_distributed.messages.messages import (
    Call,
    Changes,
    Columns,
    Floats,
    Hello,
    Ints,
    Inventory,
    OwnRows,
    Priced,
    TemplateAt,
    no_floats,
    no_ints,
)
from copter_distributed.messages.turns import Order, read_terms
from copter_distributed.shards.export import calls_of, inventory_of
from copter_distributed.shards.held import Held
from copter_distributed.shards.reach import reach_of

COST_EDITS = frozenset({"update_cost", "update_costs", "update_column_cost", "rescale_cost", "rescale_costs"})
EDITS_OF_ONE = frozenset(
    {"add_request", "remove_request", "update_usage", "update_integrality", "fix", "unfix", "update_limit",
     "update_bounds", "update_private_rows"}
)  # fmt: skip
EDITS_OF_MANY = frozenset(
    {"add_requests", "add_own_requests", "update_columns", "remove_requests", "update_limits", "update_row_bounds"}
)  # fmt: skip
READERS = frozenset(
    {"cost", "limit", "at_least", "bounds", "private_rows", "is_integer", "integrality", "fixed", "fixed_usage"}
)

OWN_READERS = frozenset({"template_of", "export"})
COLUMNS_AT_A_TIME = 4_000_000  # columns whose reduced costs are computed together, which limits the memory of a pass
NO_ROWS = OwnRows(no_ints(), no_ints(), no_floats())

HALF_ULP = 2.0**-53  # largest relative error of one rounded operation in float64
SAFE = 1.01  # factor on the rounding margin that covers the rounding of the margin itself
ROUNDING = 1e-12  # reduced costs within this relative distance of the threshold count as equal to it


class Shard:
    """A server that holds a share of the requests and answers the coordinator's calls.

    With a directory the model is durable: a new shard of the same number starts from the snapshot and the journal
    since. The list of columns that the coordinator holds is not durable; the coordinator sends it again (:meth:`hold`).

    Parameters
    ----------
    number : int
    sense : {"max", "min"}
    cost_dtype : str
        Name of the type that costs are stored in.
    threads : int
        Threads of a pricing pass; 0 for all processors.
    directory : str or None
        Directory of the snapshot and the journal.
    sync : {"always", "batch", "never"}
        When the journal waits for the disk.
    """

    def __init__(
        self,
        number: int,
        sense: Literal["max", "min"],
        cost_dtype: str = "float64",
        threads: int = 0,
        directory: str | None = None,
        sync: str = "batch",
    ) -> None:
        self.number, self.threads = number, threads or available_threads()
        self.birth = int.from_bytes(os.urandom(7), "little")
        self._snapshot: str | None = None
        if directory is None:
            self.session = Session(Model(sense, cost_dtype=np.dtype(cost_dtype)))
        else:
            self._snapshot, journal = (
                os.path.join(directory, f"shard-{number}.{end}") for end in ("copter", "journal")
            )
            if DISK.get().kind(self._snapshot) is not None:
                self.session = Session.load(self._snapshot, sync=sync)
            elif DISK.get().kind(journal) is not None:
                self.session = Session.load(journal, sync=sync)
            else:
                self.session = Session(Model(sense, cost_dtype=np.dtype(cost_dtype)), journal=journal, sync=sync)
        self.held = Held(self.model)
        self._batch: AbstractContextManager[None] | None = None
        self._open_batch = -1
        self._renewed: set[Hashable] = set()
        self._renewed_templates: set[int] = set()
        self._declared: tuple[Template, ...] | None = None
        self._reach: tuple[Floats, Floats] | None = None
        self._last = (read_terms(directory).now, 0)  # term and number of the last call

    @property
    def model(self) -> Model:
        """The shard's model: all resources without their counts, and a share of the requests."""
        return self.session.model

    def invoke(self, method: str, arguments: tuple[Any, ...], order: Order) -> tuple[bool, Any, int]:
        """Run a call and return (True, result, birth), or (False, error, birth) if it raises a CopterError.

        The birth distinguishes this shard from earlier and later ones of the same number. SupersededError refuses a
        call that was sent by a coordinator whose term is over, comes twice, comes after a later call, or was sent to
        the shard's earlier life; `hello`, which changes nothing, is never refused.
        """
        if method != "hello":
            term, number, births = order
            why = None
            if term < self._last[0]:
                why = "another coordinator goes on with this session"
            elif self.birth not in births:
                why = "it was sent before this shard was started again"
            elif (term, number) <= self._last:
                why = "a later call came"
            if why is not None:
                return False, SupersededError(f"{method} of call {number} is refused: {why}"), self.birth
            self._last = term, number
        try:
            return True, getattr(self, method)(*arguments), self.birth
        except CopterError as error:
            return False, error, self.birth

    # Look-ups ------------------------------------------------------------------------------------------------

    def hello(self) -> Hello:
        """Return the model's version, the open batch, and the shard's size, memory and processor time."""
        model = self.model
        memory = process_resources.getrusage(process_resources.RUSAGE_SELF).ru_maxrss * 1024
        requests, processor_s = len(model.ledger.slot_of), time.process_time()
        return Hello(model.version, self._open_batch, requests, model.n_columns, memory, processor_s)

    def inventory(self) -> Inventory:
        """Return the resources, the templates and the requests' ids and sizes."""
        return inventory_of(self.model, self.templates())

    def read(self, method: str, argument: Hashable) -> Any:
        """Call a read method of the model by name."""
        if method in OWN_READERS:
            return getattr(self, method)(argument)
        if method not in READERS:
            raise InternalError(f"{method!r} is no look-up of a shard")
        return getattr(self.model, method)(argument)

    def template_of(self, request: Hashable) -> int:
        """Return the index of a request's template; -1 if it has its own usage."""
        template = self.model.template_of(request)
        return -1 if template is None else self.templates().index(template)

    def templates(self) -> tuple[Template, ...]:
        """Return the declared templates in the order added."""
        if self._declared is None:
            self._declared = self.model.templates
        return self._declared

    # Edits: first every shard prepares, then every shard commits --------------------------------------------

    def prepare(self, number: int, calls: list[Call]) -> tuple[int, int]:
        """Apply a batch of edits in a way that can be undone; returns the model's version before and after.

        A second batch replaces an open one, which its coordinator has given up.
        """
        self.abort()
        before = self.model.version
        self._batch, self._open_batch = self.model.batch(), number
        self._batch.__enter__()
        try:
            for call in calls:
                self._do(call)
        except BaseException as error:
            self._leave(error)
            raise
        return before, self.model.version

    def commit(self, number: int) -> Changes:
        """Make the prepared batch durable; returns the changes of columns that the coordinator holds.

        Raises
        ------
        SnapshotError
            If the disk refuses; the batch is undone, also on disk.
        ShardLostError
            If the disk refuses both the batch and its removal: after a loss of power the batch may reappear.
        """
        if self._open_batch != number or self._batch is None:
            raise InternalError(f"shard {self.number}: batch {number} is not prepared, {self._open_batch} is open")
        try:
            self._leave(None)
        except SnapshotError as error:
            if self._soiled:
                raise ShardLostError(f"shard {self.number}: a refused batch may be on its disk: {error}") from error
            raise
        slots = {self.model.ledger.slot_of[request] for request in self._renewed & self.model.ledger.slot_of.keys()}
        changes = self.held.changes(slots, self._renewed_templates)
        self._renewed.clear()
        self._renewed_templates.clear()
        return changes

    def abort(self) -> None:
        """Undo the prepared batch, if there is one."""
        if self._batch is not None:
            self._leave(InternalError("this batch was not decided for"))

    @property
    def _soiled(self) -> bool:
        """Whether a failed write may still be on the disk."""
        journal = self.model.ledger.journal
        return journal is not None and journal.soiled

    def take_back(self) -> None:
        """Cut the remains of a failed write off the disk; raises SnapshotError if the disk refuses."""
        journal = self.model.ledger.journal
        if journal is not None and journal.soiled and not journal.take_back():
            raise SnapshotError(f"shard {self.number}: its disk does not let a refused batch be taken back")

    def _leave(self, error: BaseException | None) -> None:
        """End the open batch: keep its edits or, with an error, undo them."""
        batch, self._batch, self._open_batch = self._batch, None, -1
        self._declared = None
        if batch is None:
            return
        if error is None:
            batch.__exit__(None, None, None)
            return
        self._renewed.clear()
        self._renewed_templates.clear()
        try:
            batch.__exit__(type(error), error, error.__traceback__)
        except BaseException as raised:
            if raised is not error:
                raise

    def _do(self, call: Call) -> None:
        """Apply one edit."""
        method = call.method
        arguments = [self._resolved(each) for each in call.arguments]
        named = {name: self._resolved(each) for name, each in call.named.items()}
        if method not in COST_EDITS:
            self._reach = None
        if method in EDITS_OF_ONE:
            self._renewed.add(arguments[0])
        elif method in EDITS_OF_MANY:
            self._renewed.update(arguments[0])
        elif method == "update_template":
            self._renewed_templates.add(arguments[0].serial)
        getattr(self.model, method)(*arguments, **named)
        if method in ("add_template", "drop_template"):
            self._declared = None

    def _resolved(self, value: Any) -> Any:
        return self.templates()[value.place] if isinstance(value, TemplateAt) else value

    # Prices -------------------------------------------------------------------------------------------------------

    def price(self, y: Floats, weight: float, seconds: float) -> Priced:
        """Price all requests at prices of the resources, as minimised (equations R2 and R3).

        Parameters
        ----------
        y : ndarray (m,)
        weight : float
            Factor on the costs: 1, or 0 if `y` is a dual ray.
        seconds : float
            Wall-clock time after which no further request is priced.
        """
        started = time.perf_counter()
        self.abort()
        matrix, held = self.model.ledger.matrix, self.held
        prices = self._by_row(y)
        least = held.least_of_slots(prices, weight)
        threshold = least - ROUNDING * (1.0 + np.abs(least))
        smallest, slot, column, _ = matrix.price(prices, threshold, self.threads, weight, seconds)
        whole = not bool(np.isnan(smallest).any())
        columns = held.grow(slot, column)
        correction, total, margin = self._contribution(smallest, least) if whole else (-np.inf, -np.inf, np.inf)
        if self._reach is None:
            self._reach = reach_of(self.model)
        rounding, most_and_least = matrix.rounding_bound(), self._reach
        return Priced(
            correction, total, margin, rounding, *most_and_least, columns, held.ws.size, whole,
            time.perf_counter() - started,
        )  # fmt: skip

    def _contribution(self, smallest: Floats, least: Floats) -> tuple[float, float, float]:
        """Return (correction, total, margin) from each slot's least reduced cost over all columns and over held
        ones.
        """
        matrix = self.model.ledger.matrix
        limit, fixed = matrix.limits()
        priced = np.isfinite(smallest)
        free = priced & ~fixed
        size = limit[free]
        best, known = np.minimum(smallest[free], 0.0), least[free]
        below = np.minimum(best - known, 0.0) * size
        term = np.concatenate((best * size, smallest[priced & fixed] * limit[priced & fixed]))
        error = float((matrix.price_errors()[priced] * limit[priced]).sum())
        sums = float(np.abs(term).sum()) + float(np.abs(known * size).sum())
        margin = SAFE * (2.0 * error + HALF_ULP * (len(term) + 32) * sums)
        return float(below.sum()), float(term.sum()), margin

    # Duals and explanations --------------------------------------------------------------------

    def duals(
        self, requests: list[Hashable], y: Floats, own: OwnRows | None, costs: bool, reduced: bool
    ) -> tuple[OwnRows, Floats]:
        """Return the duals of requests' own rows and, if `reduced`, the reduced costs of their columns.

        They are computed part by part, to limit the memory.

        Parameters
        ----------
        y : ndarray (m,)
            Prices of the resources, in the signs of the model's sense.
        own : OwnRows, optional
            Known duals; without them, the limits' duals are computed from the reduced costs.
        costs : bool
            Whether to subtract from the costs; False if y is a ray.
        reduced : bool
            Whether to return reduced costs.
        """
        ledger = self.model.ledger
        slots, prices = ledger.slots(requests), self._by_row(y)
        keys = None if own is None else keys_of(slots, own)
        if own is not None and not reduced:
            return own, np.zeros(0)
        found, parts = [NO_ROWS], [np.zeros(0)]
        for part in parts_of(slots, ledger.matrix.sizes_of(slots)):
            duals, costs_of = duals_of(ledger, part, prices, keys, costs)
            if own is None:
                limited = np.isin(part, (duals.key >> 32).astype(np.int32))
                dual = duals.in_order(part.astype(np.int64))
                found.append(OwnRows(limited.astype(np.int32), np.zeros(len(dual), dtype=np.int32), dual))
            if reduced:
                parts.append(costs_of)
        rows = OwnRows(*(np.concatenate([getattr(each, name) for each in found]) for name in ("count", "row", "dual")))
        return own or rows, np.concatenate(parts)

    def facts(self, request: Hashable, column: Ints, value: Floats, y: Floats, own: OwnRows | None) -> Facts:
        """Return the facts that explain one request at these prices, except effects of counts: its nonzero columns."""
        rows = self.duals([request], y, own, True, False)[0]
        limit_dual = float(rows.dual[0]) if len(rows.row) and rows.row[0] == 0 else 0.0
        key = self.model.ledger.slot(request) << 32 | column.astype(np.int64)
        return facts_of(self.model.ledger, request, key, value, self._by_row(y), limit_dual, {})

    def _by_row(self, y: Floats) -> Floats:
        """Return the prices of the resources by row slot."""
        prices = np.zeros(self.model.ledger.matrix.n_rows)
        prices[list(self.model.ledger.row_of.values())] = y
        return prices

    # Columns that the coordinator holds
    # -------------------------------------------------------------------------------------

    def hold(self, requests: list[Hashable], count: Ints, column: Ints) -> Changes:
        """Set the columns that the coordinator holds, as far as they exist; returns their data."""
        return self.held.begin(requests, count, column)

    def let_go(self, requests: list[Hashable], count: Ints, column: Ints) -> int:
        """Note that the coordinator no longer holds these columns; returns how many it still holds."""
        return self.held.let_go(requests, count, column)

    def fetch(self, requests: list[Hashable]) -> Columns:
        """Return all columns of these plain requests, which the coordinator holds from now on."""
        slots = self.model.ledger.slots(requests)
        size = self.model.ledger.matrix.sizes_of(slots)
        every = np.concatenate([np.arange(each, dtype=np.int32) for each in size.tolist()] or [slots[:0]])
        return self.held.grow(np.repeat(slots, size), every, always=True)

    # Requests that move, and the disk ---------------------------------------------------------------------------------

    def export(self, requests: list[Hashable]) -> list[Call]:
        """Return the edits that recreate these requests in another shard."""
        return [call for request in requests for call in calls_of(self.model, self.templates(), request)]

    def compact(self) -> None:
        """Move requests into free slots, in the model and in the held columns."""
        self.abort()
        held = self.held.named()
        self.session.compact()
        self.held.begin(*held)

    def save(self) -> None:
        """Write a snapshot, from which the journal continues."""
        self.abort()
        if self._snapshot is not None:
            self.session.save(self._snapshot)


def keys_of(slots: Ints, own: OwnRows) -> OwnDuals:
    """Return duals of own rows by key slot << 32 | row, ascending."""
    key = np.repeat(slots.astype(np.int64), own.count) << 32 | own.row
    order = np.argsort(key)
    return OwnDuals(key[order], own.dual[order])


def parts_of(slots: Ints, size: Ints) -> list[Ints]:
    """Split requests into consecutive parts with about equal numbers of columns."""
    before = np.cumsum(size, dtype=np.int64) - size
    cuts = np.flatnonzero(np.diff(before // COLUMNS_AT_A_TIME)) + 1
    return [part for part in np.split(slots, cuts) if len(part)]
