"""Hadar's LP on the differential model: one request per job, one column per GPU type (docs/hadar.md, H7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter import Model, Session, Settings, Solution
from copter.matrix import Template
from copter_frontends.hadar.job_book import Floats, Ints, JobBook
from copter_frontends.hadar.round_values import NO_VALUE, RoundTerms, RoundValues, round_values
from copter_frontends.hadar.utility import Utility
from copter_frontends.policy_kit import Throughputs, requested_gpus
from copter_frontends.vocabulary import InvalidJobError, Job

SMALLEST, LARGEST = 1 / 16, 16.0  # between these the scale stays, so that values that did not change are not sent
IDLE = "idle GPUs"  # first part of the ids of the requests that hold GPUs back at posted prices


@dataclass(frozen=True, slots=True)
class Shares:
    """The LP's solution, job by job.

    Attributes
    ----------
    x : float64 array (n, types)
        Share of the round that a job spends on W_j GPUs of each type.
    own : float64 array (n,)
        Share in which it keeps exactly what it has, where that is no column of `x`.
    """

    x: Floats
    own: Floats


class HadarFormulation:
    """max sum v_jq x_jq; sum_q x_jq <= 1 for every job; sum_j W_j x_jq <= C_q for every GPU type (H7).

    Jobs of one size share a template. A job that now has GPUs of several types gets one column more, for keeping them.

    Parameters
    ----------
    types : sequence of str
    capacity : int64 array (types,)
    utility : Utility
    settings : copter.Settings

    Attributes
    ----------
    book : JobBook
        Edited through this class's methods alone.
    values : RoundValues or None
        Of the last :meth:`refresh`.
    scale : float
        Power of two that brings the largest value near one in the model, whose tolerances are for such numbers.
    """

    def __init__(self, types: Sequence[str], capacity: Ints, utility: Utility, settings: Settings) -> None:
        self.types = tuple(types)
        self.capacity = np.array(capacity, dtype=np.int64)
        self.utility = utility
        self.book = JobBook(self.types)
        self.model = Model(sense="max")
        for name, count in zip(self.types, self.capacity.tolist(), strict=True):
            self.model.add_resources(name, count)
        self.session = Session(self.model, settings)
        self.values: RoundValues | None = None
        self.scale = 1.0
        self.posted: Floats | None = None  # prices of the last GPU, next to last, ... of every type, (types, segments)
        self._templates: dict[int, Template] = {}
        self._own: dict[str, bytes] = {}  # jobs with a column for what they have, and what that was
        self._changed: set[str] = set()  # jobs whose GPUs or pin have changed since the last refresh

    # Edits --------------------------------------------------------------------------------------------------------

    def change_capacity(self, gpu_type: str, count: int) -> None:
        """Add GPUs of a type (or, negative, take them away)."""
        at = self.types.index(gpu_type)
        if count >= 0:
            self.model.add_resources(gpu_type, count)
        else:
            self.model.remove_resources(gpu_type, -count)
        self.capacity[at] += count

    def add_job(self, job: Job, throughputs: Throughputs) -> None:
        """Write a job down, which the next :meth:`refresh` adds to the model.

        Raises
        ------
        DuplicateJobError, InvalidJobError
            If its id is known; if it asks for more GPUs than there are of the types that it runs on, or has no
            throughput on any, or no work.
        """
        gpus = requested_gpus(job)
        work = throughputs.work(job)
        if not 0 < work < np.inf:
            raise InvalidJobError(f"job {job.id!r}: its work is {work}, must be finite and > 0")
        rates = np.array([throughputs.rate(job, name, gpus) for name in self.types])
        may_run = np.isnan(rates) | (rates > 0)
        there = int(self.capacity[may_run].sum())
        if job.id not in self.book.index and may_run.any() and gpus > there:
            raise InvalidJobError(
                f"job {job.id!r} fits nowhere: it asks for {gpus} GPUs; there are {there} of the types it runs on "
                f"({', '.join(name for name, runs in zip(self.types, may_run.tolist(), strict=True) if runs)})"
            )
        self.book.add(job, gpus, work, rates)

    def update_job(self, job_id: str, progress: float | None = None, rates: Mapping[str, float] | None = None) -> None:
        """Take in how far a job is, and rates that were measured ({type: units per second of the whole job})."""
        row = self.book.row(job_id)
        if rates is not None:
            self.book.set_rates(job_id, dict(rates))
        if progress is not None:
            self.book.progress[row] = progress

    def remove_job(self, job_id: str) -> None:
        """Forget a job; UnknownJobError."""
        there = self._in_model(job_id)
        self.book.remove(job_id)
        if there:
            self.model.remove_request(job_id)
        self._own.pop(job_id, None)
        self._changed.discard(job_id)

    def hold(self, job_id: str, held: Ints, spread: bool = False) -> None:
        """Say which GPUs of each type a job now has, (types,), and whether on more servers than need be."""
        row = self.book.row(job_id)
        if not np.array_equal(self.book.held[row], held):
            self.book.held[row] = held
            self._changed.add(job_id)
        self.book.spread[row] = spread

    def pin(self, job_id: str, pinned: bool) -> None:
        """Hold a job on the GPUs that it has, or let it go."""
        row = self.book.row(job_id)
        if bool(self.book.pinned[row]) != pinned:
            self.book.pinned[row] = pinned
            self._changed.add(job_id)
            if not pinned and self._in_model(job_id):
                self.model.unfix(job_id)

    # A round ------------------------------------------------------------------------------------------------------

    def refresh(self, terms: RoundTerms) -> RoundValues:
        """Value all jobs for the round and bring the model up to date; only what changed is sent."""
        values = self.values = round_values(self.book, self.utility, terms)
        largest = float(values.column.max(initial=0.0))
        if largest > 0 and not SMALLEST <= largest * self.scale <= LARGEST:
            self.scale = float(2.0 ** -np.round(np.log2(largest)))
        with self.model.batch():
            for job_id in sorted(self._changed):
                self._reshape(job_id)
            self._send(values)
            for job_id in sorted(self._changed):
                self._fix(job_id)
        self._changed.clear()
        return values

    def post_prices(self, prices: Floats | None) -> None:
        """Let GPUs be held back at posted prices: piecewise-linear convex costs (H10).

        Parameters
        ----------
        prices : float64 array (types, segments), optional
            Price of a GPU in the first, second, ... equal part of a type's capacity, rising; None for no prices.
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
        """Cost of so many GPUs of each type at the posted prices; zero if there are none."""
        if self.posted is None:
            return 0.0
        segments = self.posted.shape[1]
        width = self.capacity / segments
        filled = np.clip(used[:, None] - np.arange(segments) * width[:, None], 0.0, width[:, None])
        return float((filled * self.posted).sum())

    def solve(self, deadline_s: float | None = None) -> Solution:
        """Solve the LP from where the last round left it."""
        return self.session.solve(deadline_s=deadline_s)

    def bound_of(self, solution: Solution) -> float:
        """Certified bound on the value of any plan, posted costs taken off."""
        return solution.bound / self.scale - self.posted_cost(self.capacity)

    def prices(self, solution: Solution) -> Floats:
        """Worth of one more GPU of each type for this round, (types,)."""
        return np.array([solution.price(name) for name in self.types]) / self.scale

    def shares(self, solution: Solution) -> Shares:
        """The solution as arrays over the book's rows."""
        x, own = np.zeros((len(self.book), len(self.types))), np.zeros(len(self.book))
        index, kinds = self.book.index, len(self.types)
        for request, columns, values in solution.by_request():
            row = index.get(request) if isinstance(request, str) else None
            if row is None or not len(columns):
                continue
            for column, value in zip(columns.tolist(), values.tolist(), strict=True):
                if column < kinds:
                    x[row, column] = value
                else:
                    own[row] = value
        return Shares(x, own)

    # Inside -------------------------------------------------------------------------------------------------------

    def has_own_column(self, row: int) -> bool:
        """Whether what a job has is no column of its template: several types, or another number than it asked for."""
        held = self.book.held[row]
        total = int(held.sum())
        return total > 0 and (total != int(self.book.gpus[row]) or int(held.max()) != total)

    def _in_model(self, job_id: str) -> bool:
        return not np.isnan(self.book.sent[self.book.row(job_id), 0])

    def _reshape(self, job_id: str) -> None:
        """Give a job's request a column for what it has, or take that away; :meth:`_send` adds the request again."""
        row = self.book.row(job_id)
        wanted = self.book.held[row].tobytes() if self.has_own_column(row) else None
        if self._in_model(job_id) and self._own.get(job_id) != wanted:
            self.model.remove_request(job_id)
            self.book.sent[row] = np.nan
        if wanted is None:
            self._own.pop(job_id, None)
        else:
            self._own[job_id] = wanted

    def _send(self, values: RoundValues) -> None:
        """Tell the model the costs that changed, and of the jobs that it does not have yet."""
        book = self.book
        costs = values.column * self.scale
        missing = np.isnan(book.sent[:, 0]) if len(self.types) else np.zeros(len(book), dtype=bool)
        changed = np.flatnonzero((costs != book.sent).any(axis=1) & ~missing).tolist()
        changed = [row for row in changed if book.jobs[row].id not in self._own]
        self.model.update_costs([book.jobs[row].id for row in changed], costs[changed])
        for job_id in self._own:
            row = book.row(job_id)
            if not missing[row]:
                self.model.update_cost(job_id, self._with_own(costs[row], values, row))
        for row in np.flatnonzero(missing).tolist():
            self._add(row, costs[row], values)
        book.sent[:] = costs

    def _with_own(self, costs: Floats, values: RoundValues, row: int) -> Floats:
        return np.append(costs, max(values.own[row] * self.scale, 0.0))

    def _add(self, row: int, costs: Floats, values: RoundValues) -> None:
        job_id, gpus = self.book.jobs[row].id, int(self.book.gpus[row])
        if job_id not in self._own:
            self.model.add_request(job_id, costs, template=self._template(gpus), integer=True)
            return
        self._changed.add(job_id)  # its fixing, if it is pinned, went with its former request
        held = self.book.held[row].astype(np.float64)
        usage = {
            name: np.append(np.where(np.arange(len(self.types)) == q, float(gpus), 0.0), held[q])
            for q, name in enumerate(self.types)
        }
        self.model.add_request(job_id, self._with_own(costs, values, row), usage, integer=True)

    def _template(self, gpus: int) -> Template:
        if gpus not in self._templates:
            usage = {
                name: np.where(np.arange(len(self.types)) == q, float(gpus), 0.0) for q, name in enumerate(self.types)
            }
            self._templates[gpus] = self.model.add_template(usage)
        return self._templates[gpus]

    def _fix(self, job_id: str) -> None:
        row = self.book.row(job_id)
        if self.book.pinned[row]:
            own = job_id in self._own
            self.model.fix(job_id, len(self.types) if own else int(np.argmax(self.book.held[row])))

    def objective_of(self, bundles: NDArray[np.int64]) -> float:
        """Value of whole bundles, (n, types), at this round's values, posted costs taken off."""
        if self.values is None:
            raise RuntimeError("no plan has been valued yet: call refresh first")
        return float(bundle_values(self.book, self.values, bundles).sum()) - self.posted_cost(bundles.sum(axis=0))


def bundle_values(book: JobBook, values: RoundValues, bundles: NDArray[np.int64]) -> Floats:
    """Worth of the GPUs that each job is given, (n,): what it has, W_j of one type, or a mixture (H4, H5)."""
    n = len(book)
    result = np.zeros(n)
    rows = np.flatnonzero(bundles.sum(axis=1) > 0)
    if len(rows) == 0:
        return result
    used = bundles[rows] > 0
    slowest = np.argmin(np.where(used, values.rate[rows], np.inf), axis=1)
    single = used.sum(axis=1) == 1
    worth = np.where(single, values.pure[rows, slowest], values.mixed[rows, slowest])
    same = (bundles[rows] == book.held[rows]).all(axis=1)
    result[rows] = np.where(same, values.own[rows], np.maximum(worth, NO_VALUE))
    return result
