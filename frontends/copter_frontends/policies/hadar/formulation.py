"""Hadar's LP on the differential model: one request per job, one column per GPU type (docs/papers/hadar.md, H7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, repeat
from typing import cast

import numpy as np
from numpy.typing import NDArray

from copter import Model, Session, Settings, Solution, Template
from copter.runtime.errors import InternalError
from copter_frontends.policies.hadar.job_book import Floats, Ints, JobBook
from copter_frontends.policies.hadar.round_values import NO_VALUE, RoundTerms, RoundValues, round_values
from copter_frontends.policies.hadar.utility import Utility
from copter_frontends.policy_kit import Throughputs, rates_at_start, requested_gpus
from copter_frontends.vocabulary import InvalidJobError, Job

# the scale is kept while the largest value is in this range, so that unchanged values need not be sent
SMALLEST, LARGEST = 1 / 16, 16.0
MOST_COLUMNS = 200_000  # up to this many columns, a round's changes are solved faster by pivots than by prices
IDLE = "idle GPUs"  # first part of the ids of requests that keep GPUs idle at posted prices (H10)


@dataclass(frozen=True, slots=True)
class Shares:
    """The LP's solution, job by job.

    Attributes
    ----------
    x : float64 array (n, types)
        Share of the round that a job spends on W_j GPUs of each type.
    own : float64 array (n,)
        Share in which a job keeps its current GPUs, if these are not a column of `x`.
    """

    x: Floats
    own: Floats


class HadarFormulation:
    """max sum v_jq x_jq; sum_q x_jq <= 1 for every job; sum_j W_j x_jq <= C_q for every GPU type (H7).

    Jobs of equal size share a template. A job with GPUs of several types has one more column, for keeping them.

    Parameters
    ----------
    types : sequence of str
    capacity : int64 array (types,)
    utility : Utility
    settings : copter.Settings
        Its `basis_columns` counts as at least :data:`MOST_COLUMNS`.

    Attributes
    ----------
    book : JobBook
        Data of the jobs; edited only by this class's methods.
    values : RoundValues or None
        Values of the last :meth:`refresh`.
    scale : float
        Power of two that scales the model's largest value to about one, for which its tolerances are made.
    """

    def __init__(self, types: Sequence[str], capacity: Ints, utility: Utility, settings: Settings) -> None:
        self.types = tuple(types)
        self.capacity = np.array(capacity, dtype=np.int64)
        self.utility = utility
        self.book = JobBook(self.types)
        self._model = Model(sense="max")
        for name, count in zip(self.types, self.capacity.tolist(), strict=True):
            self._model.add_resource(name, count)
        most_columns = max(settings.basis_columns, MOST_COLUMNS)
        self.session = Session(self._model, replace(settings, basis_columns=most_columns))
        self._gone: list[str] = []  # removed jobs that are still in the model
        self.values: RoundValues | None = None
        self.scale = 1.0
        # prices of keeping idle the last, next to last, ... part of every type, (types, segments)
        self.posted: Floats | None = None
        self._templates: dict[int, Template] = {}
        self._own: dict[str, bytes] = {}  # jobs with a column for their current GPUs, and these GPUs
        self._changed: set[str] = set()  # jobs whose GPUs or pin have changed since the last refresh

    @property
    def model(self) -> Model:
        """The program of the last :meth:`refresh`, without jobs removed since then."""
        self._let_go()
        return self._model

    # Edits --------------------------------------------------------------------------------------------------------

    def change_capacity(self, gpu_type: str, count: int) -> None:
        """Add GPUs of a type, or remove them if `count` is negative."""
        at = self.types.index(gpu_type)
        if count >= 0:
            self.model.add_resource(gpu_type, count)
        else:
            self.model.remove_units(gpu_type, -count)
        self.capacity[at] += count

    def add_jobs(
        self, jobs: Sequence[Job], throughputs: Throughputs, restarts_s: Sequence[float] | None = None
    ) -> None:
        """Write jobs down, which the next :meth:`refresh` adds to the model; on an error none.

        Parameters
        ----------
        jobs : sequence of Job
        throughputs : Throughputs
        restarts_s : sequence of float, optional
            Seconds that a change of GPUs costs each job; NaN, the default: what the round says.

        Raises
        ------
        DuplicateJobError, InvalidJobError
            If the id is already known; if the job requests more GPUs than exist of its types, has no throughput on any
            type, or has no work.
        """
        gpus, works = [requested_gpus(job) for job in jobs], [throughputs.work(job) for job in jobs]
        rates, fits = list[list[float]](), set[tuple[int, int]]()  # (rates, GPUs) that have room: jobs alike share both
        for job, count, work in zip(jobs, gpus, works, strict=True):
            if not 0 < work < np.inf:
                raise InvalidJobError(f"job {job.id!r}: its work is {work}, must be finite and > 0")
            rates.append(rates_at_start(throughputs, job, self.types, count))
            if (id(rates[-1]), count) not in fits and job.id not in self.book.index:
                self._require_room(job, count, rates[-1])
                fits.add((id(rates[-1]), count))
        self.book.add_many(jobs, gpus, works, rates, [np.nan] * len(jobs) if restarts_s is None else restarts_s)

    def _require_room(self, job: Job, gpus: int, rates: Sequence[float]) -> None:
        """Raise InvalidJobError if the types that a job runs on have too few GPUs for it."""
        may_run = [q for q, rate in enumerate(rates) if rate > 0 or rate != rate]
        there = sum(int(self.capacity[q]) for q in may_run)
        if may_run and gpus > there:
            raise InvalidJobError(
                f"job {job.id!r} fits nowhere: it asks for {gpus} GPUs; there are {there} of the types it runs on "
                f"({', '.join(self.types[q] for q in may_run)})"
            )

    def update_job(self, job_id: str, progress: float | None = None, rates: Mapping[str, float] | None = None) -> None:
        """Update a job's progress and its measured rates ({type: units per second of the whole job})."""
        if rates is not None:
            self.book.set_rates(job_id, dict(rates))
        if progress is not None:
            self.book.note_progress({job_id: progress})

    def remove_jobs(self, job_ids: Sequence[str]) -> None:
        """Delete jobs; UnknownJobError, and nothing is deleted, if an id is unknown."""
        book = self.book
        there = ~np.isnan(book.sent[[book.row(job_id) for job_id in job_ids], 0])
        book.remove_many(job_ids)
        self._gone += [job_id for job_id, in_model in zip(job_ids, there.tolist(), strict=True) if in_model]
        for job_id in job_ids:
            self._own.pop(job_id, None)
        self._changed.difference_update(job_ids)

    def hold(self, job_id: str, held: Ints, spread: bool = False) -> None:
        """Set a job's current GPUs of each type, (types,), and whether they are on more servers than necessary."""
        row = self.book.row(job_id)
        if not np.array_equal(self.book.held[row], held):
            self.book.held[row] = held
            self._changed.add(job_id)
        self.book.spread[row] = spread

    def hold_many(self, rows: NDArray[np.intp], held: Ints, spread: NDArray[np.bool_]) -> None:
        """Do :meth:`hold` for many jobs: rows (k,), GPUs of each type (k, types), whether spread (k,)."""
        different = rows[(self.book.held[rows] != held).any(axis=1)]
        self._changed.update(self.book.ids[row] for row in different.tolist())
        self.book.held[rows], self.book.spread[rows] = held, spread

    def pin(self, job_id: str, pinned: bool) -> None:
        """Pin a job to its current GPUs, or end the pin."""
        row = self.book.row(job_id)
        if bool(self.book.pinned[row]) != pinned:
            self.book.pinned[row] = pinned
            self._changed.add(job_id)
            if not pinned and self._in_model(job_id):
                self.model.unfix(job_id)

    # A round ------------------------------------------------------------------------------------------------------

    def value(self, terms: RoundTerms) -> RoundValues:
        """Compute all jobs' values for the round; the model does not change."""
        self.values = round_values(self.book, self.utility, terms)
        return self.values

    def refresh(self, terms: RoundTerms) -> RoundValues:
        """Compute all jobs' values for the round and send the changes to the model."""
        values = self.value(terms)
        largest = float(values.column.max(initial=0.0))
        if largest > 0 and not SMALLEST <= largest * self.scale <= LARGEST:
            self.scale = float(2.0 ** -np.round(np.log2(largest)))
        with self.model.batch():
            self._reshape()
            self._send(values)
            self._fix()
        self._changed.clear()
        return values

    def post_prices(self, prices: Floats | None) -> None:
        """Set posted prices, at which GPUs may be kept idle: piecewise-linear convex costs (H10).

        Parameters
        ----------
        prices : float64 array (types, segments), optional
            Ascending prices of a GPU in the first, second, ... equal part of each type's capacity; None for no prices.
        """
        for request in [request for request in self.model.requests if isinstance(request, tuple)]:
            self.model.remove_request(request)
        self.posted = prices
        if prices is None:
            return
        for name, capacity, price in zip(self.types, self.capacity.tolist(), prices, strict=True):
            width = capacity / len(price)
            if width > 0:
                usage = {name: np.full(len(price), width)}
                self.model.add_request(
                    (IDLE, name), price * (width * self.scale), usage, limit=float(len(price)), upper=1.0
                )

    def posted_cost(self, used: Ints) -> float:
        """Return the cost of GPUs of each type at the posted prices; zero without prices."""
        if self.posted is None:
            return 0.0
        segments = self.posted.shape[1]
        width = self.capacity / segments
        filled = np.clip(used[:, None] - np.arange(segments) * width[:, None], 0.0, width[:, None])
        return float((filled * self.posted).sum())

    def solve(self, deadline_s: float | None = None) -> Solution:
        """Solve the LP from the last round's state."""
        self._let_go()
        return self.session.solve(deadline_s=deadline_s)

    def bound_of(self, solution: Solution) -> float:
        """Return a certified bound on the value of any plan, less posted costs."""
        return solution.bound / self.scale - self.posted_cost(self.capacity)

    def dual_value(self, prices: Floats) -> tuple[float, Floats]:
        """Return the bound on any plan's value from prices >= 0 (H9), and the GPUs wanted at these prices."""
        if self.values is None:
            raise InternalError("no plan has been valued yet: call refresh or value first")
        book, values = self.book, self.values
        payoff = np.column_stack([values.column - book.gpus[:, None] * prices, values.own - book.held @ prices])
        payoff[~book.held.any(axis=1), -1] = 0.0
        payoff[book.pinned, :-1] = -np.inf  # a pinned job keeps its GPUs even at a negative payoff
        best, rows = payoff.argmax(axis=1), np.arange(len(book))
        gain = payoff[rows, best]
        served = (gain > 0) | book.pinned
        single = served & (best < len(prices))
        wanted: Floats = np.bincount(best[single], book.gpus[single], len(prices)).astype(np.float64)
        wanted += book.held[served & (best == len(prices))].sum(axis=0)
        return float(self.capacity @ prices + gain[served].sum()), wanted

    def least_dual_value(self, prices: Floats, steps: int = 24) -> float:
        """Return the least bound found near given prices, raising prices of types in excess demand and lowering
        others.
        """
        capacity = np.maximum(self.capacity, 1)
        least, prices = np.inf, np.maximum(prices, 0.0)
        for step in range(steps):
            bound, wanted = self.dual_value(prices)
            least = min(least, bound)
            prices = prices * np.exp(np.clip(wanted / capacity - 1.0, -1.0, 1.0) / (1.0 + step / 4.0))
        return min(least, self.dual_value(np.zeros(len(prices)))[0])

    def prices(self, solution: Solution) -> Floats:
        """Return the worth of one more GPU of each type in this round, (types,); never negative."""
        return np.maximum(solution.prices(self.types), 0.0) / self.scale

    def shares(self, solution: Solution) -> Shares:
        """Return the solution as arrays over the book's rows."""
        index, kinds = self.book.index, len(self.types)
        x, own = np.zeros((len(index), kinds)), np.zeros(len(index))
        requests, at, column, value = solution.by_column()
        some = np.flatnonzero(value)  # jobs that get nothing are not looked up
        at, column, value = at[some], column[some], value[some]
        used = np.zeros(len(requests), dtype=bool)
        used[at] = True
        rows, having = np.full(len(requests), -1, dtype=np.intp), np.flatnonzero(used)
        ids = cast("list[str]", requests)  # or of requests that keep GPUs idle, which no job is
        rows[having] = list(map(index.get, compress(ids, used.tolist()), repeat(-1)))
        row = rows[at]
        of_type = np.flatnonzero((row >= 0) & (column < kinds))
        x[row[of_type], column[of_type]] = value[of_type]
        of_held = np.flatnonzero((row >= 0) & (column == kinds))
        own[row[of_held]] = value[of_held]
        return Shares(x, own)

    # Inside -------------------------------------------------------------------------------------------------------

    def _let_go(self) -> None:
        """Delete removed jobs from the model."""
        if self._gone:
            gone, self._gone = self._gone, []
            self._model.remove_requests(gone)

    def _in_model(self, job_id: str) -> bool:
        return not np.isnan(self.book.sent[self.book.row(job_id), 0])

    def _changed_rows(self) -> NDArray[np.intp]:
        """Return the rows of jobs whose GPUs or pin have changed, in the order of their ids."""
        index = self.book.index
        return np.fromiter((index[job_id] for job_id in sorted(self._changed)), dtype=np.intp, count=len(self._changed))

    def _reshape(self) -> None:
        """Remove requests whose own column appears or disappears; :meth:`_send` adds them again.

        A job's current GPUs are not a column of its template if they are of several types or not the requested number.
        """
        book, rows = self.book, self._changed_rows()
        held = book.held[rows]
        total = held.sum(axis=1)
        own = (total > 0) & ((total != book.gpus[rows]) | (held.max(axis=1, initial=0) != total))
        there = ~np.isnan(book.sent[rows, 0])
        gone = []
        had = np.fromiter((book.ids[row] in self._own for row in rows.tolist()), dtype=np.bool_, count=len(rows))
        some = np.flatnonzero(own | had)
        few = (rows[some].tolist(), held[some], own[some].tolist(), there[some].tolist())
        for row, bundle, wanted, in_model in zip(*few, strict=True):
            job_id = book.ids[row]
            after = bundle.tobytes() if wanted else None
            if in_model and self._own.get(job_id) != after:
                gone.append(row)
            if after is None:
                del self._own[job_id]
            else:
                self._own[job_id] = after
        if gone:
            self.model.remove_requests([book.ids[row] for row in gone])
            book.sent[gone] = np.nan

    def _send(self, values: RoundValues) -> None:
        """Send changed costs and new jobs to the model."""
        book = self.book
        costs = values.column * self.scale
        missing = np.isnan(book.sent[:, 0]) if len(self.types) else np.zeros(len(book), dtype=bool)
        mixed = np.zeros(len(book), dtype=bool)
        mixed[[book.index[job_id] for job_id in self._own]] = True
        changed = np.flatnonzero((costs != book.sent).any(axis=1) & ~missing & ~mixed)
        self.model.update_costs(book.ids_at(changed), costs[changed])
        kept = np.flatnonzero(mixed & ~missing)
        self.model.update_costs(book.ids_at(kept), self._with_own(costs, values, kept))
        self._add_pure(np.flatnonzero(missing & ~mixed), costs)
        self._add_mixed(np.flatnonzero(missing & mixed), costs, values)
        book.sent[:] = costs

    def _with_own(self, costs: Floats, values: RoundValues, rows: NDArray[np.intp]) -> Floats:
        """Return costs of jobs with a column for their current GPUs, (rows, types + 1)."""
        return np.column_stack([costs[rows], np.maximum(values.own[rows] * self.scale, 0.0)])

    def _add_pure(self, rows: NDArray[np.intp], costs: Floats) -> None:
        """Add jobs by template, those of equal size together."""
        for gpus in np.unique(self.book.gpus[rows]).tolist():
            those = rows[self.book.gpus[rows] == gpus]
            ids = self.book.ids_at(those)
            self.model.add_requests(ids, costs[those], template=self._template(gpus), integer=True)

    def _add_mixed(self, rows: NDArray[np.intp], costs: Floats, values: RoundValues) -> None:
        """Add jobs that have GPUs of several types, from one matrix of their columns."""
        if len(rows) == 0:
            return
        ids, kinds = self.book.ids_at(rows), len(self.types)
        self._changed.update(ids)  # pinned jobs must be fixed again, because their requests are new
        usage = np.zeros((kinds, len(rows), kinds + 1))
        usage[np.arange(kinds), :, np.arange(kinds)] = self.book.gpus[rows]
        usage[:, :, kinds] = self.book.held[rows].T
        table = {name: usage[q].ravel() for q, name in enumerate(self.types)}
        sizes = np.full(len(rows), kinds + 1)
        self.model.add_own_requests(ids, sizes, self._with_own(costs, values, rows).ravel(), table)
        for job_id in ids:
            self.model.update_integrality(job_id, True)

    def _template(self, gpus: int) -> Template:
        if gpus not in self._templates:
            usage = {
                name: np.where(np.arange(len(self.types)) == q, float(gpus), 0.0) for q, name in enumerate(self.types)
            }
            self._templates[gpus] = self.model.add_template(usage)
        return self._templates[gpus]

    def _fix(self) -> None:
        """Fix pinned jobs whose GPUs or pin have changed to the column of their current GPUs."""
        rows = self._changed_rows()
        for row in rows[self.book.pinned[rows]].tolist():
            job_id = self.book.ids[row]
            own = job_id in self._own
            self.model.fix(job_id, len(self.types) if own else int(np.argmax(self.book.held[row])))


def bundle_values(book: JobBook, values: RoundValues, bundles: NDArray[np.int64]) -> Floats:
    """Return the worth of each job's bundle, (n,): its current GPUs, W_j of one type, or a mixture (H4, H5)."""
    result = np.zeros(len(book))
    some, same = bundles.any(axis=1), (bundles == book.held).all(axis=1)
    kept = some & same
    result[kept] = values.own[kept]
    rows = np.flatnonzero(some & ~same)
    if len(rows) == 0:
        return result
    used = bundles[rows] > 0
    slowest = np.argmin(np.where(used, values.rate[rows], np.inf), axis=1)
    single = used.sum(axis=1) == 1
    worth = np.where(single, values.pure[rows, slowest], values.mixed[rows, slowest])
    result[rows] = np.maximum(worth, NO_VALUE)
    return result
