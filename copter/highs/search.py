"""The child's search: an LP dive, neighbourhoods of good points, and HiGHS's branch and bound (M17)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.highs import configurations
from copter.highs.beside import Beside
from copter.highs.configurations import Configurations, Pool, moved_prices
from copter.highs.cuts import Cuts, root_cuts
from copter.highs.greedy import Greedy
from copter.highs.lp import highs_lp, require_highspy, run_highs, silent_highs
from copter.highs.small_tree import WHOLE, SmallTree
from copter.highs.tree import GREEDY, Floats, Point, Program, Report, Task
from copter.problem.linear_program import LinearProgram
from copter.runtime.settings import available_threads

Mask = NDArray[np.bool_]

FEASIBLE = 1e-6  # largest violation of a row, in units of 1 + |side|
LEAST_S = 2e-3  # a search with less time left ends
SMALL_INTEGERS, SMALL_ENTRIES = 2_000, 20_000  # programs up to this size get cuts
FIRST_LP_SHARE = 0.25  # share of the time left that the LP has before branch and bound, while there is no point
LEAST_GAIN = 0.1  # share of the gap between the LP and the best point that cuts must close
WEAK = 0.1  # an LP with this relative gap says little of good points: it gets cuts
CORE = 1.5  # integer columns of the first core, as a multiple of those that the LP uses
CORE_LEAST, CORE_MOST = 200, 0.7  # fewest columns of a core; largest share of all
CORE_RANK = 6  # columns of each request that the LP splits, in the first core
CORE_FACTORS = (1, 3)  # sizes of the cores that are tried until one has a point
ROUNDING_SHARE = 0.25  # share of the time left for the program that the LP leaves open
GENERATION_SHARE = 0.4  # share of the time left for finding configurations, and for proving their bound
CHOICE_SHARE = 0.4  # share of the time left for branch and bound over configurations
START_SHARE = 0.15  # share of the time left for the repair of the start, and for each early neighbourhood
LP_SHARE = 0.1  # share of the time left that the LP may take before the parent's point replaces it
TREE_ROOTS = 12.0  # branch and bound gets no further than its root in less time than so many times that of the cuts
CUT_BETWEEN_SHARE = 0.4  # share of the time left for what the best point and the LP with cuts disagree on
DIVE_SHARE, CUT_DIVE_SHARE = 0.4, 0.15  # share of the time left for the dive; for one in an LP with cuts
REPLY_SHARE, REPLY_ROWS = 0.8, 2  # most of the time left for replies; private equations of a request that gives one
GREEDY_SHARE = 0.2  # most of the time left for single moves
LARGE_SHARE = 0.03  # an LP that takes more than this share of the time makes a program large
PART_SHARE, PART_S = 0.15, 1.0  # time of one neighbourhood: share of the time left, and most seconds
NODES = 500  # branch-and-bound nodes of one neighbourhood
FIRST_SIZE, LEAST_SIZE = 300, 20  # integer columns of a neighbourhood: of the first one, and at least
REPAIRS = (0, 40, 300, 1_200)  # integer columns of the programs that repair the last plan, until one has a point
GROW, SHRINK = 1.4, 0.7  # factors on the size after a neighbourhood solved early, or stopped by time
BATCH, LEAST_BATCH = 0.2, 0.02  # share of the fractional columns that a dive rounds at once
SURE = 0.8  # a dive rounds all columns up that are at least this far above a whole number
STEPS_BACK, DIVE_STEPS = 8, 200  # most times that a dive undoes a step; most steps
SEVERAL = (12, 48)  # configurations of each request among which choices are made
FIRST_TRIES, TRIES = 10, 1_000  # changes of penalties without a gain: of the first choice, and of those that follow
CHOICES = "configurations"
CUT_ROUNDS, LEAST_CUT_GAIN = (
    10,
    0.003,
)  # most times that cuts are sought at new prices; share of the gap that one must close
CUTS_SHARE = 0.8  # share of the time left that finding cuts may take
TREE_NODES, TREE_SIZE = 40, 48  # LPs of a small tree; integer columns of the first one
TREE_IDLE, TREE_MORE = 20, 2.0  # trees without a gain until the next ones get more nodes; factor on these
TREE_GROW, TREE_SHRINK = 1.05, 0.95  # factors on the size after a tree searched to its end, or not
KINDS = 9  # neighbourhoods between two LPs of all continuous columns
TREES, REPLIES = "small trees", "one request at a time"
LAST, REPAIRED, ROUNDED, CUT = "last plan", "last plan repaired", "rounded LP", "rounded LP with cuts"
GHOST = 1e-5  # a value this far below all points, in units of 1 + |value|, is of none
ALONE_SHARE = 0.6  # share of the time left for branch and bound where it cannot run beside the search
WAIT_S = 0.005  # seconds between two looks at the clock while branch and bound goes on alone
IDLE_PARTS = 60  # without a deadline, the search ends after this many neighbourhoods without a gain


def private_rows(rows: sp.csr_array, group: NDArray[np.int32]) -> Mask:
    """Return whether all columns of a row are of one request, (m,); a row without columns is nobody's."""
    found = np.zeros(rows.shape[0], dtype=bool)
    used = np.flatnonzero(np.diff(rows.indptr))
    if len(used):
        of = group[rows.indices]
        found[used] = np.minimum.reduceat(of, rows.indptr[used]) == np.maximum.reduceat(of, rows.indptr[used])
    return found


class Warm:
    """What stays from task to task: the last program, its LP in HiGHS, and the LP's optimal basis.

    Attributes
    ----------
    program : Program or None
    lp : highspy.Highs or None
    basis : (list, list) or None
        Statuses of columns and rows.
    prices : ndarray or None
        Prices of the last program's rows at the best bound of its configurations.
    pool : Pool or None
        The best of these configurations.
    is_rough : bool
        Whether the last task ended without a point, or with one that was found without LP and start.
    cuts : Cuts or None
        Cuts of the last program.
    cuts_s : float
        Seconds that must be there for cuts to be sought; infinite once they have hardly closed the gap.
    root_s : float
        Seconds that cuts of all requests took.
    """

    def __init__(self) -> None:
        self.program: Program | None = None
        self.lp: Any = None
        self.basis: tuple[list[Any], list[Any]] | None = None
        self.prices: Floats | None = None
        self.pool: Pool | None = None
        self.is_rough = True
        self.cuts: Cuts | None = None
        self.cuts_s = self.root_s = 0.0


class Ghost:
    """Whether HiGHS believes in a better point than it has.

    Attributes
    ----------
    best : float
        The best value of a point that HiGHS was given or has shown.
    seen : bool
        Whether it has said a better one.
    """

    def __init__(self, best: float) -> None:
        self.best, self.has_start, self.seen = best, np.isfinite(best), False

    def found(self, value: float) -> None:
        """Take in a point's value."""
        self.best = min(self.best, value)

    def of(self, value: float) -> bool:
        """Take in the value that HiGHS says its best point has; returns whether there is no such point."""
        self.seen = self.seen or (self.has_start and value < self.best - GHOST * (1.0 + abs(self.best)))
        return self.seen


class Search:
    """One task; :meth:`run` searches until the gap, the time limit, or a stop.

    Parameters
    ----------
    task : Task
    program : Program
        The task's, with its matrix.
    warm : Warm
    stops : callable
        Whether the task must stop.
    point_of : callable
        The LP's point, once the parent has sent it.
    tell : callable
        Sends a report.
    """

    def __init__(
        self,
        task: Task,
        program: Program,
        warm: Warm,
        stops: Callable[[int], bool],
        point_of: Callable[[int], Point | None],
        tell: Callable[[Report], None],
    ) -> None:
        self.highspy = require_highspy("branch and bound")
        self.task, self.program, self.warm = task, program, warm
        self.number, self.gap = task.number, task.gap
        self._stops, self._point_of, self._tell = stops, point_of, tell
        self.until = time.perf_counter() + task.time_limit_s
        if program.matrix is None:
            raise ValueError("a program without a matrix")
        self.A: sp.csc_array = program.matrix
        self.rows = sp.csr_array(self.A)
        self.cost, self.is_integer = program.cost, program.integrality
        self.lower = np.where(self.is_integer, np.ceil(program.col_lower - WHOLE), program.col_lower)
        self.upper = np.where(self.is_integer, np.floor(program.col_upper + WHOLE), program.col_upper)
        self.integers = np.flatnonzero(self.is_integer)
        self.n = len(self.cost)
        self.room_low, self.room_high = (
            FEASIBLE * (1.0 + np.abs(np.where(np.isfinite(side), side, 0.0)))
            for side in (program.row_lower, program.row_upper)
        )
        self.groups = int(program.group.max(initial=-1)) + 1
        self.per_group = np.bincount(program.group[self.integers], minlength=self.groups)
        self.rng = np.random.default_rng(1)
        self.x: Floats | None = None
        self.value, self.bound, self.guess = np.inf, -np.inf, -np.inf
        self.by = ""  # what found the best point
        self.is_rough = True  # whether the best point is missing, or found without LP and start
        self.relaxed: Floats | None = None  # the LP's point
        self.reduced: Floats = np.zeros(self.n)
        self.basis: tuple[list[Any], list[Any]] | None = None  # of the LP, with cuts if it has some
        self.changed = np.zeros(self.groups, dtype=bool)
        self.pool: Pool | None = None  # the last task's
        self.infeasible = self.solved = self.is_large = self.is_cut = False  # is_cut: the LP has cuts
        self.is_small = len(self.integers) <= SMALL_INTEGERS and self.A.nnz <= SMALL_ENTRIES
        self.told_bound = -np.inf
        self.size = min(FIRST_SIZE, max(LEAST_SIZE, len(self.integers) // 5))
        self.tree_nodes = TREE_NODES
        self.tree_size = float(TREE_SIZE)  # of a neighbourhood that a small tree searches
        self.beside: Beside | None = None  # branch and bound on the whole program
        self.lock = threading.Lock()  # of the best point and bound, which two threads offer
        self.greedy = Greedy(
            self.A, program.row_lower, program.row_upper, self.lower, self.upper, self.is_integer, self.cost
        )

    # The whole search -----------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Search, and report the end."""
        self._move_warm()
        try:
            if self.task.tree_only:
                self._load()
                if not self.infeasible:
                    self._whole(self.left_s, None)
            else:
                self._search()
        finally:
            if self.beside is not None:
                self.beside.end()
            if self.warm.lp is not None:
                self._uncut()
        self.warm.is_rough = self.is_rough
        self._tell(Report(self.number, None, self.bound, "", self.infeasible, finished=True, solved=self.solved))

    def _move_warm(self) -> None:
        """Bring what the last tasks have left into this program's columns and rows, whether it is used or not."""
        warm, columns, rows = self.warm, self.task.came_from, self.task.rows_from
        self.changed = self._changed()
        self.pool, warm.pool = warm.pool, None
        if columns is None or rows is None:
            self.pool = warm.prices = warm.cuts = None  # another session's
            warm.cuts_s = 0.0
            return
        if warm.prices is not None:
            warm.prices = moved_prices(warm.prices, rows)
        if warm.cuts is not None:
            warm.cuts = warm.cuts.moved(columns, self._same_columns() & ~self.changed[self.program.group], self.n)

    def _same_columns(self) -> Mask:
        """Return the columns of requests whose columns have the last program's entries and kinds, and no others, (n,).

        A cut of their private rows is right then; a row that is new only takes points away.
        """
        last, columns, rows = self.warm.program, self.task.came_from, self.task.rows_from
        if last is None or last.matrix is None or columns is None or rows is None:
            return np.zeros(self.n, dtype=bool)
        same: Mask = columns >= 0
        same[same] = last.integrality[columns[same]] == self.is_integer[same]
        if self.task.program.matrix is not None:
            known = np.flatnonzero(same)
            place = np.full(len(last.row_lower), -1, dtype=np.int64)
            place[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
            was, now = sp.coo_array(last.matrix[:, columns[known]]), sp.coo_array(self.A[:, known])
            same[known[was.col[place[was.row] < 0]]] = False
            parts = []
            for part, row in ((was, place[was.row]), (now, np.where(rows[now.row] >= 0, now.row, -1))):
                at = row >= 0
                parts.append(sp.csc_array((part.data[at], (row[at], part.col[at])), shape=(len(rows), len(known))))
            # a row that only one request used may be another's too by now
            lost = private_rows(sp.csr_array(last.matrix), last.group)[rows[rows >= 0]] & ~self._is_private[rows >= 0]
            shared = np.zeros(len(rows), dtype=bool)
            shared[np.flatnonzero(rows >= 0)[lost]] = True
            same[known[now.col[shared[now.row]]]] = False
            different = sp.csc_array(parts[0] - parts[1])
            different.eliminate_zeros()
            same[known[np.diff(different.indptr) > 0]] = False
        broken = np.zeros(self.groups, dtype=bool)
        broken[self.program.group[~same]] = True
        found: Mask = ~broken[self.program.group]
        return found

    def _search(self) -> None:
        changed, start = self.changed, self.task.start
        if start is not None and np.isfinite(start).all():
            self.offer(start, LAST)
        found = Configurations(self.program, self.lower, self.upper)
        if not found.is_fit and not self.is_rough:
            self._branch_beside()
        self._load()
        self._by_configurations(found)
        if self.over():
            return
        self._from_start(changed)
        self._replies(changed)
        if not self.over():
            self._relaxed()
        alone = self.is_cut and self.waits
        is_late = alone and self.left_s < TREE_ROOTS * self.warm.root_s
        if not alone:
            self._near_and_around(changed)
        elif not self.over():
            if is_late:
                self._between(CUT_BETWEEN_SHARE * self.left_s)
            else:
                self._branch_beside()
        if self.beside is None and not is_late and not self.over():
            self._whole((ALONE_SHARE if self.x is not None else 1.0) * self.left_s, None if self.is_rough else self.x)
        while not self.over():
            if self.x is not None and (is_late or not alone):
                self._neighbourhoods()
            if self.beside is None or not self.beside.is_running:
                return
            self.beside.wait(min(self.left_s, WAIT_S))

    def _near_and_around(self, changed: Mask) -> None:
        """Search near the LP's point, between it and the best point, and around what has changed."""
        if self.relaxed is not None and not self.over():
            self._near_lp((DIVE_SHARE if self.is_cut else ROUNDING_SHARE) * self.left_s)
        if not self.over():
            self._branch_beside()
        if self.x is not None and self.relaxed is not None and not self.over():
            self._between(START_SHARE * self.left_s)
            if changed.any() and not self.over():
                self._around(changed[self.program.group], START_SHARE * self.left_s, "changed requests")

    @property
    def waits(self) -> bool:
        """Whether branch and bound waits for cuts, since it would take half of the processor, and has it alone then."""
        return self.warm.cuts is not None and available_threads() == 1

    def _branch_beside(self) -> None:
        """Begin branch and bound on the whole program beside this search, if it has not begun."""
        if self.beside is not None or self.infeasible:
            return
        near = self.by == LAST or not self.is_weak
        start = self.x if near and not self.is_rough else None

        def work(tell: Callable[[Report], None]) -> None:
            self._tell, self._stops = tell, lambda _: False
            self._whole(self.left_s, start)
            tell(Report(self.number, None, self.bound, "", self.infeasible, finished=True, solved=self.solved))

        with suppress(OSError, AttributeError):  # this system does not fork
            self.beside = Beside(work, self._hear)

    def stop_beside(self) -> None:
        """End branch and bound, from any thread; the search itself ends at its next look at `stops`."""
        if self.beside is not None:
            self.beside.kill()

    def _hear(self, report: Report) -> None:
        """Take in what branch and bound has found."""
        if report.x is not None:
            self.offer(report.x, report.by)
        self.better_bound(report.bound)
        self.infeasible = self.infeasible or (report.infeasible and self.x is None)
        self.solved = self.solved or (report.solved and self.x is not None)

    def _by_configurations(self, found: Configurations) -> None:
        """Take requests' whole columns as one option each (M19), where the program has such requests."""
        if not found.is_fit:
            return
        if found.generate(self.warm.prices, self._in(GENERATION_SHARE), self.over, self.pool, self.task.came_from):
            self._among(found)
        self.warm.prices, self.warm.pool = found.prices, found.pool()

    def _among(self, found: Configurations) -> None:
        """Choose configurations, find more, and choose again; then branch and bound over all of them."""
        self.better_bound(found.bound)
        if not self.over():
            self._chosen(found, found.rounded(self._in(START_SHARE), self.gap, FIRST_TRIES))
        if self.x is None and not self.over():
            self._first_point()
        for nodes in (configurations.NODES, configurations.MOST_NODES):
            if self.over():
                return
            found.improve(self._in(GENERATION_SHARE), self.over, nodes)
            self.better_bound(found.bound)
            for several in SEVERAL:
                if self.over():
                    return
                found.enrich(several, self._in(START_SHARE))
                self._chosen(found, found.rounded(self._in(START_SHARE), self.gap, TRIES))
                if not self.over():
                    self._branch_beside()
            if not self.over():
                self._by_choices(found)

    def _by_choices(self, found: Configurations) -> None:
        """Run branch and bound over the configurations that a better point may use."""
        lp, kept = found.restricted(self.value)
        k = len(found.rest)

        def whole(part: Floats) -> Floats:
            x = found.point_of(kept[part[k:] > 0.5])
            x[found.rest] = part[:k]
            return x

        self._branch(lp, CHOICE_SHARE * self.left_s, CHOICES, whole, None, None)

    def _in(self, share: float) -> float:
        """Return the time at which a share of the time left is over."""
        return time.perf_counter() + share * min(self.left_s, 60.0)

    def _chosen(self, found: Configurations, choice: NDArray[np.int64]) -> None:
        """Offer the point of a choice of configurations, with the other columns as cheap as they can be."""
        x = found.point_of(choice)
        if not len(found.rest):
            self.offer(x, CHOICES)
        elif float(self.cost[found.columns] @ x[found.columns]) < self.value or not self.offer(x, CHOICES):
            free = np.zeros(self.n, dtype=bool)
            free[found.rest] = True
            self._part(free, x, GENERATION_SHARE * self.left_s, CHOICES)

    def _from_start(self, changed: Mask) -> None:
        """Find a first point: the start, the start after single moves or repaired, or single moves alone."""
        start = self.task.start
        if start is not None and np.isfinite(start).all():
            holds = self.offer(start, LAST) or self.holds(start)
            base = np.clip(np.where(self.is_integer, np.rint(start), start), self.lower, self.upper)
            self._moved(base, LAST if holds else REPAIRED)
            if not holds and not self.warm.is_rough and not self.over():
                self._repair(start, changed)
        if self.is_rough and not self.over():
            self._from_nothing()

    def _replies(self, changed: Mask) -> None:
        """Give requests in turn their best columns beside those of the others, changed ones first, then the dearest:
        those of whole columns that several private equations tie, so that no move of one column leads anywhere.
        """
        program, until = self.program, self._in(REPLY_SHARE)
        equal = np.flatnonzero(self._is_private & (program.row_lower == program.row_upper))
        owner = program.group[self.rows.indices[self.rows.indptr[equal]]]
        tied = np.bincount(owner, minlength=self.groups) >= REPLY_ROWS
        tied[program.group[~self.is_integer]] = False
        if self.x is None or not tied.any():
            return
        spent = np.bincount(program.group, weights=self.cost * self.x, minlength=self.groups)
        for group in np.lexsort((-spent, ~changed)).tolist():
            if self.over() or time.perf_counter() > until:
                return
            if tied[group]:
                self._tree_around((program.group == group) | self._loose(), REPLIES)

    def _first_point(self) -> None:
        """Find some point where the first choice of configurations is none, since the next ones may take all of the
        time: by single moves from the start's, or from nothing.
        """
        start = self.task.start
        if start is not None and np.isfinite(start).all():
            self._moved(np.clip(np.where(self.is_integer, np.rint(start), start), self.lower, self.upper), REPAIRED)
        if self.x is None and not self.over():
            self._from_nothing()

    def _from_nothing(self) -> None:
        """Find a point without LP and start: by single moves in the rows' order, and the heaviest rows first; without
        any, by those that mend most, whatever they cost.
        """
        base = self.greedy.free_point()
        for price in (None, self.cost, np.zeros(self.n)):
            if self.over() or (price is not None and self.x is not None and not price.any()):
                return
            self._moved(base, GREEDY, price)

    def _relaxed(self) -> None:
        """Solve the LP; look for points near it by single moves, in its core, and by a dive for a share of the time."""
        began, limit = time.perf_counter(), self.left_s
        if not self.is_rough and not self.waits:
            self._branch_beside()
        self._relax(FIRST_LP_SHARE * limit if self.is_rough else limit)
        if self.relaxed is None and not self.over():
            self._branch_beside()
            self._relax(self.left_s)
        self.is_large = time.perf_counter() - began > LARGE_SHARE * limit
        if self.relaxed is None or self.over():
            return
        self._rounded(self.relaxed, ROUNDED)
        if self.over():
            return
        if available_threads() > 1:
            self._branch_beside()
        self._strengthened()
        if self.over():
            return
        if not self.waits:
            self._branch_beside()
        if not self.over() and not self.is_cut:  # a dive is enough then
            self._core(ROUNDING_SHARE * self.left_s)
        far = self.is_weak if self.waits else self.is_cut or not self.is_large
        if not self.over() and (self.is_rough or far):
            self._dive((CUT_DIVE_SHARE if self.is_cut else DIVE_SHARE) * self.left_s)

    def _rounded(self, x: Floats, by: str) -> None:
        """Round an LP's point down and up, and let single moves make it hold."""
        raised = self._raised(x)
        for base in (self.greedy.near(x), raised):
            self._moved(base, by)
        if not self.over() and (self.is_rough or self.is_weak):
            self._complete(raised, by)

    def _raised(self, x: Floats) -> Floats:
        """Return a point with its integer columns rounded up."""
        return np.clip(np.where(self.is_integer, np.ceil(x - WHOLE), x), self.lower, self.upper)

    def _strengthened(self) -> None:
        """Add cuts to a weak LP, those of the last program first, and round its point."""
        warm = self.warm
        if self.is_rough or not self.is_weak:
            return
        until, before = self._in(CUTS_SHARE), self.guess
        cuts = self._known_cuts() if warm.cuts is not None else self._new_cuts()
        if cuts is None or self._cut(cuts) is None:
            return
        warm.cuts, self.is_cut = cuts, True
        self._more_cuts(until)
        if self.relaxed is not None:
            self._rounded(self.relaxed, CUT)
        if self.guess - before < LEAST_GAIN * (self.value - before):
            self._uncut()
            warm.cuts, warm.cuts_s, self.is_cut = None, np.inf, False

    def _more_cuts(self, until: float) -> None:
        """Find cuts at the prices that the LP with cuts has, of the requests that it splits, until they gain little."""
        warm, gap = self.warm, self.value - self.guess
        for _ in range(CUT_ROUNDS):
            if warm.cuts is None or self.relaxed is None or self.over() or time.perf_counter() > until:
                return
            split = np.zeros(self.groups, dtype=bool)
            whole = self.relaxed[self.integers]
            split[self.program.group[self.integers[np.abs(whole - np.rint(whole)) > WHOLE]]] = True
            if not split.any():
                return
            fresh = self._cuts_of(split[self.program.group], until, warm.cuts)
            if fresh is None:
                return
            before = self.guess
            if self._cut(fresh) is None:
                self.is_cut = False
                return
            warm.cuts = warm.cuts.joined(fresh)
            if self.guess - before < LEAST_CUT_GAIN * gap:
                return

    def _new_cuts(self) -> Cuts | None:
        """Return cuts of all requests, if there is time for them."""
        warm = self.warm
        if not self.is_small or warm.cuts_s >= CUTS_SHARE * self.left_s:
            return None
        began = time.perf_counter()
        cuts = self._cuts_of(np.ones(self.n, dtype=bool), began + CUTS_SHARE * self.left_s)
        warm.root_s = time.perf_counter() - began
        if cuts is None:
            warm.cuts_s = 2.0 * warm.root_s
        return cuts

    def _known_cuts(self) -> Cuts | None:
        """Return the last program's cuts, and new ones of the requests that have changed."""
        known, changed = self.warm.cuts, self.changed[self.program.group]
        if known is None or not changed.any():
            return known
        fresh = self._cuts_of(changed, time.perf_counter() + START_SHARE * self.left_s)
        return known if fresh is None else known.joined(fresh)

    def _cuts_of(self, chosen: Mask, until: float, known: Cuts | None = None) -> Cuts | None:
        """Return cuts of some requests' columns; their private rows alone make them, so that no other edit can make
        them wrong. With known ones: others, where the LP's prices of the coupling rows lead.
        """
        part, program, cost = sp.csr_array(self.A[:, chosen]), self.program, self.cost[chosen]
        own = np.flatnonzero((np.diff(part.indptr) > 0) & self._is_private)
        matrix, low, high = part[own], program.row_lower[own], program.row_upper[own]
        if known is not None:
            prices = np.array(self.warm.lp.getSolution().row_dual)[: len(self._is_private)]
            cost = cost - part.T @ np.where(self._is_private, 0.0, prices)
            inside = known.inside(chosen)
            matrix = sp.vstack([matrix, inside.matrix[:, np.flatnonzero(chosen)]])
            low, high = np.concatenate((low, inside.lower)), np.concatenate((high, inside.upper))
        fresh = root_cuts(
            LinearProgram(
                cost, sp.csc_array(matrix), low, high, self.lower[chosen], self.upper[chosen], self.is_integer[chosen]
            ),
            until, self.over,
        )  # fmt: skip
        if fresh is None:
            return None
        back = np.full(self.n, -1, dtype=np.int32)
        back[chosen] = np.arange(int(chosen.sum()))
        return fresh.moved(back, chosen, self.n)

    @cached_property
    def _is_private(self) -> Mask:
        """Whether all of a row's columns are of one request, (m,)."""
        return private_rows(self.rows, self.program.group)

    def _cut(self, cuts: Cuts) -> Floats | None:
        """Add cuts to the LP and solve it; returns its point, None if that is not known in time: it has none then."""
        lp, matrix = self.warm.lp, cuts.matrix
        lp.addRows(
            matrix.shape[0], cuts.lower, cuts.upper, matrix.nnz, matrix.indptr[:-1].astype(np.int32),
            matrix.indices.astype(np.int32), matrix.data,
        )  # fmt: skip
        lp.setOptionValue("time_limit", lp.getRunTime() + max(self.left_s, LEAST_S))
        run_highs(lp)
        if lp.getModelStatus() != self.highspy.HighsModelStatus.kOptimal:
            self._uncut()
            return None
        point, basis = lp.getSolution(), lp.getBasis()
        self.relaxed, self.reduced = np.array(point.col_value), np.array(point.col_dual)
        self.basis = list(basis.col_status), list(basis.row_status)
        self.guess = float(lp.getInfo().objective_function_value)
        self.better_bound(self.guess)
        return self.relaxed

    def _uncut(self) -> None:
        """Take the cuts out of the LP again."""
        rows = self.warm.lp.getNumRow()
        if rows > self.A.shape[0]:
            self.warm.lp.deleteRows(rows - self.A.shape[0], np.arange(self.A.shape[0], rows, dtype=np.int32))
        self.basis = self.warm.basis

    @property
    def is_weak(self) -> bool:
        """Whether the best point is far from what the LP, with its cuts, says."""
        return self.value - self.guess > WEAK * abs(self.value)

    def _moved(self, base: Floats, by: str, price: Floats | None = None) -> None:
        """Offer a point after single moves, ordered by prices of columns: the LP's reduced costs if it is solved."""
        if price is None and self.relaxed is not None:
            price = self.reduced
        found = self.greedy.point(base, price, time.perf_counter() + GREEDY_SHARE * min(self.left_s, 60.0))
        if found is not None:
            self.offer(found, by)

    @property
    def left_s(self) -> float:
        """Seconds left."""
        return self.until - time.perf_counter()

    def over(self) -> bool:
        """Whether to stop: no time, told so, infeasible, or the gap is closed."""
        if self.infeasible or self.solved or self.left_s < LEAST_S or self._stops(self.number):
            return True
        self.solved = self.x is not None and abs(self.value - self.bound) <= self.gap * abs(self.value)
        return self.solved

    def offer(self, x: Floats, by: str) -> bool:
        """Report a point if it is feasible and better than the best so far; integer columns are rounded first."""
        if not np.isfinite(x).all():
            return False
        x = np.where(self.is_integer, np.rint(x), x)
        x = np.clip(x, self.lower, self.upper)
        value = float(self.cost @ x)
        if not value < self.value - 1e-9 * (1.0 + abs(value)) or not self.holds(x):
            return False
        with self.lock:
            if not value < self.value - 1e-9 * (1.0 + abs(value)):
                return False
            self.x, self.value, self.by = x, value, by
            self.is_rough = by == GREEDY or (by in (LAST, REPAIRED) and self.warm.is_rough)
            self._tell(Report(self.number, x, self.bound, by))
        return True

    def holds(self, x: Floats) -> bool:
        """Whether all rows hold to FEASIBLE."""
        return not self.broken(x).any()

    def broken(self, x: Floats) -> Mask:
        """Return the rows that do not hold to FEASIBLE."""
        activity, program = self.A @ x, self.program
        found: Mask = (activity < program.row_lower - self.room_low) | (activity > program.row_upper + self.room_high)
        return found

    def better_bound(self, bound: float) -> None:
        """Keep a bound, and report it if it is better by far enough to matter."""
        with self.lock:
            if not bound > self.bound or not np.isfinite(bound):
                return
            self.bound = bound
            if bound - self.told_bound > 1e-7 * (1.0 + abs(bound)):
                self.told_bound = bound
                self._tell(Report(self.number, None, bound))

    # The relaxation -------------------------------------------------------------------------------------------------

    def _changed(self) -> Mask:
        """Return the groups whose costs or bounds are not those of the last program, (groups,)."""
        last, came_from = self.warm.program, self.task.came_from
        if last is None or came_from is None:
            return np.zeros(self.groups, dtype=bool)
        known = came_from >= 0
        old = came_from[known]
        different = ~known
        program = self.program
        different[known] = (
            (program.cost[known] != last.cost[old])
            | (program.col_lower[known] != last.col_lower[old])
            | (program.col_upper[known] != last.col_upper[old])
        )
        found = np.zeros(self.groups, dtype=bool)
        found[program.group[different]] = True
        rows_from = self.task.rows_from
        if rows_from is not None:
            kept = np.flatnonzero(rows_from >= 0)
            was = rows_from[kept]
            moved = (program.row_lower[kept] != last.row_lower[was]) | (program.row_upper[kept] != last.row_upper[was])
            for row in kept[moved].tolist():
                touched = program.group[self.rows.indices[self.rows.indptr[row] : self.rows.indptr[row + 1]]]
                if len(touched) and (touched == touched[0]).all():  # a private row
                    found[touched[0]] = True
        return found

    def _load(self) -> None:
        """Bring the program's LP into HiGHS: by edits if the matrix is the last one, else anew with the last basis."""
        warm, program, m = self.warm, self.program, self.A.shape[0]
        same = warm.lp is not None and self.task.program.matrix is None
        if same:
            columns, rows = np.arange(self.n, dtype=np.int32), np.arange(m, dtype=np.int32)
            warm.lp.changeColsCost(self.n, columns, self.cost)
            warm.lp.changeColsBounds(self.n, columns, self.lower, self.upper)
            warm.lp.changeRowsBounds(m, rows, program.row_lower, program.row_upper)
        else:
            warm.lp = silent_highs()
            for name, value in (("threads", 1), ("solver", "simplex"), ("presolve", "off")):
                warm.lp.setOptionValue(name, value)
            if (self.lower > self.upper).any():
                self.infeasible = True
            else:
                lp = LinearProgram(self.cost, self.A, program.row_lower, program.row_upper, self.lower, self.upper)
                if warm.lp.passModel(highs_lp(lp)) == self.highspy.HighsStatus.kError:
                    raise ValueError("HiGHS does not take this program")
            warm.basis = self._moved_basis()
        if warm.basis is not None:
            self._set_basis(warm.basis)
        warm.program = program

    def _moved_basis(self) -> tuple[list[Any], list[Any]] | None:
        """Return the last basis in the new columns and rows; new columns rest, new rows are basic."""
        basis, columns, rows = self.warm.basis, self.task.came_from, self.task.rows_from
        if basis is None or columns is None or rows is None:
            return None
        words = self.highspy.HighsBasisStatus
        parts = []
        for old, came, usual in ((basis[0], columns, words.kLower), (basis[1], rows, words.kBasic)):
            parts.append([old[at] if at >= 0 else usual for at in came.tolist()])
        return parts[0], parts[1]

    def _set_basis(self, basis: tuple[list[Any], list[Any]]) -> None:
        found = self.highspy.HighsBasis()
        found.col_status, found.row_status, found.valid = basis[0], basis[1], True
        self.warm.lp.setBasis(found)

    def _relax(self, seconds: float) -> None:
        """Find the LP's point: by HiGHS, or the parent's if that comes first."""
        warm, status, kind = self.warm, self.highspy.HighsModelStatus, self.highspy.cb.HighsCallbackType
        warm.basis = None

        patience = time.perf_counter() + LP_SHARE * max(self.left_s, LEAST_S)  # a basis is worth more than a point

        def heard(event: Any, message: str, out: Any, answer: Any, data: Any) -> None:
            late = time.perf_counter() > patience and self._point_of(self.number) is not None
            if late or self._stops(self.number):
                answer.user_interrupt = True

        warm.lp.setOptionValue("time_limit", warm.lp.getRunTime() + max(min(seconds, self.left_s), LEAST_S))
        warm.lp.setCallback(heard, None)
        warm.lp.startCallback(kind.kCallbackSimplexInterrupt)
        run_highs(warm.lp)
        warm.lp.stopCallback(kind.kCallbackSimplexInterrupt)
        found = warm.lp.getModelStatus()
        if found == status.kOptimal:
            point_of_lp, basis = warm.lp.getSolution(), warm.lp.getBasis()
            self.relaxed, self.reduced = np.array(point_of_lp.col_value), np.array(point_of_lp.col_dual)
            warm.basis = list(basis.col_status), list(basis.row_status)
            self.basis = warm.basis
            self.guess = float(warm.lp.getInfo().objective_function_value)
            self.better_bound(self.guess)
        elif found == status.kInfeasible:
            self.infeasible = True
        else:
            basis = warm.lp.getBasis()
            if basis.valid:  # the next task goes on from it
                warm.basis = list(basis.col_status), list(basis.row_status)
            if (point := self._point_of(self.number)) is not None:
                self.relaxed, self.reduced = point.x, point.reduced
                self.guess = point.bound
                self.better_bound(self.guess)

    def _resolve(self, lower: Floats, upper: Floats) -> Floats | None:
        """Return the LP's point within other bounds; None if there is none below the best value, or no time."""
        lp, columns = self.warm.lp, np.arange(self.n, dtype=np.int32)
        lp.changeColsBounds(self.n, columns, lower, upper)
        lp.setOptionValue("time_limit", lp.getRunTime() + max(self.left_s, LEAST_S))
        run_highs(lp)
        if lp.getModelStatus() != self.highspy.HighsModelStatus.kOptimal:
            return None
        x = np.array(lp.getSolution().col_value)
        return x if float(self.cost @ x) < self.value else None

    # Heuristics -----------------------------------------------------------------------------------------------------

    def _dive(self, seconds: float) -> None:
        """Round fractional columns in batches, the surest first, and solve the LP again after each."""
        x, share, back, last, until = self.relaxed, BATCH, 0, self.n, time.perf_counter() + seconds
        deepest = None
        lower, upper = self.lower.copy(), self.upper.copy()
        for _ in range(DIVE_STEPS):
            if x is None or back > STEPS_BACK or self.over() or time.perf_counter() > until:
                break
            values = x[self.integers]
            nearest, above = np.rint(values), values - np.floor(values)
            split = np.flatnonzero(np.abs(values - nearest) > WHOLE)
            if not len(split):
                if not self.offer(x, "dive"):
                    self._complete(x, "dive")
                break
            if self.is_cut:
                self.offer(self._raised(x), "dive")
            # columns of 0 or 1 are rounded up, since their requests need one of them; counts to the nearest number, and
            # all where cuts make the LP's fractions tell something, as long as they become fewer
            binary, stalls = self.upper[self.integers] - self.lower[self.integers] <= 1.0, len(split) >= last
            up, last = (above >= 0.5) | (binary & (stalls or not self.is_cut)), len(split)
            certain = np.where(up, above, 1.0 - above)
            order = split[np.argsort(-certain[split], kind="stable")]
            count = max(1, int(share * len(split)), int((certain[split] > SURE).sum()) if share > 0.0 else 1)
            low, high = lower.copy(), upper.copy()
            settled = self.integers[(np.abs(values - nearest) <= WHOLE) & (values > self.lower[self.integers] + 0.5)]
            low[settled] = np.maximum(low[settled], np.minimum(np.rint(x[settled]), high[settled]))
            picked, upward = self.integers[order[:count]], up[order[:count]]
            low[picked] = np.where(upward, np.minimum(np.ceil(x[picked]), high[picked]), low[picked])
            high[picked] = np.where(upward, high[picked], np.maximum(np.floor(x[picked]), low[picked]))
            deeper = self._resolve(low, high)
            if deeper is None:
                back += 1
                if count > 1:
                    share = share / 4 if share * len(split) >= 1.0 else 0.0
                    continue
                low, high = lower.copy(), upper.copy()
                if upward[0]:
                    high[picked] = np.floor(x[picked])
                else:
                    low[picked] = np.ceil(x[picked])
                deeper = self._resolve(low, high)
            lower, upper, x = low, high, deeper
            deepest = x if x is not None else deepest
            share = min(BATCH, 2.0 * share + LEAST_BATCH)
        self._restore()
        if self.is_cut and deepest is not None and not self.over():
            self._complete(self._raised(deepest), "dive")

    def _restore(self) -> None:
        """Give the LP its own bounds and its optimal basis again."""
        self.warm.lp.changeColsBounds(self.n, np.arange(self.n, dtype=np.int32), self.lower, self.upper)
        if self.basis is not None:
            self._set_basis(self.basis)

    def _complete(self, x: Floats, by: str) -> bool:
        """Offer a point whose continuous columns are found anew for its rounded integer columns."""
        if self.is_integer.all():
            return False
        fixed = np.clip(np.rint(x), self.lower, self.upper)
        low, high = np.where(self.is_integer, fixed, self.lower), np.where(self.is_integer, fixed, self.upper)
        found = self._resolve(low, high)
        self._restore()
        return found is not None and self.offer(found, by)

    def _near_lp(self, seconds: float) -> None:
        """Search with all columns fixed that the LP has whole (RENS)."""
        if self.relaxed is not None:
            free = ~self.is_integer | (np.abs(self.relaxed - np.rint(self.relaxed)) > WHOLE)
            base = np.where(self.is_integer, np.clip(np.rint(self.relaxed), self.lower, self.upper), self.relaxed)
            self._part(free, base, seconds, "near the LP")

    def _core(self, seconds: float) -> None:
        """Search the integer columns that the LP uses or nearly uses, with all others at the LP's values (a kernel
        search); once more with more columns if these have no point.
        """
        if self.relaxed is None:
            return
        x, whole, until = self.relaxed, self.integers, time.perf_counter() + seconds
        base = np.where(self.is_integer, np.clip(np.rint(x), self.lower, self.upper), x)
        inside = (x > self.lower + WHOLE) & (x < self.upper - WHOLE)
        score = np.where(inside, 0.0, np.abs(self.reduced))
        split = np.zeros(self.groups, dtype=bool)
        split[self.program.group[whole[np.abs(x[whole] - base[whole]) > WHOLE]]] = True
        order = whole[np.argsort(score[whole], kind="stable")]
        own = self.program.group[order]
        # rank of a column within its group, by score
        by_group = np.argsort(own, kind="stable")
        first = np.searchsorted(own[by_group], np.arange(self.groups))
        rank = np.empty(len(order), dtype=np.int64)
        rank[by_group] = np.arange(len(order)) - first[own[by_group]]
        single = np.diff(self.A.indptr)[order] <= 1
        used = int((x[whole] > self.lower[whole] + WHOLE).sum())
        for factor in CORE_FACTORS:
            near = np.arange(len(order)) < max(CORE_LEAST, factor * CORE * used)
            near |= split[own] & (single | (rank < factor * CORE_RANK))
            if near.sum() > CORE_MOST * len(order):
                return
            free = ~self.is_integer
            free[order[near]] = True
            left = until - time.perf_counter()
            if left < LEAST_S or self.over() or self._part(free, base, left, "near the LP") or self.x is not None:
                return

    def _between(self, seconds: float) -> None:
        """Search with all columns fixed in which the best point and the LP's agree (RINS)."""
        if self.relaxed is not None and self.x is not None:
            free = ~self.is_integer | (np.abs(self.relaxed - self.x) > WHOLE)
            self._part(free, self.x, seconds, "between plan and LP")

    def _repair(self, start: Floats, changed: Mask) -> None:
        """Search around a start that no longer holds: with the changed requests free, then those in broken rows too."""
        group = self.program.group
        base = np.clip(np.where(self.is_integer, np.rint(start), start), self.lower, self.upper)
        chosen, until = changed.copy(), time.perf_counter() + START_SHARE * self.left_s
        for size in REPAIRS:
            if size:
                rows = self.broken(base)
                touching = np.zeros(self.groups, dtype=bool)
                touching[group[np.unique(sp.csr_array(self.rows[rows]).indices)]] = True
                score = 2.0 * chosen + touching + self.rng.random(self.groups)
                chosen = chosen | self._largest(score, size)
            left = until - time.perf_counter()
            if self._part(chosen[group] | self._loose(), base, left, REPAIRED):
                return
            if self.over() or time.perf_counter() > until - LEAST_S:
                return

    def _loose(self) -> Mask:
        """Return the columns of groups without integer columns, which every neighbourhood leaves free."""
        found: Mask = (self.per_group == 0)[self.program.group]
        return found

    def _largest(self, score: Floats, size: int) -> Mask:
        """Return the groups with the largest scores that have `size` integer columns in all, at least two of them."""
        ints = np.flatnonzero(self.per_group)
        order = ints[np.argsort(-score[ints], kind="stable")]
        count = max(2, int(np.searchsorted(np.cumsum(self.per_group[order]), size)))
        found = np.zeros(self.groups, dtype=bool)
        found[order[:count]] = True
        return found

    def _neighbourhoods(self) -> None:
        """Search parts of the program around the best point: by small trees where the LP has cuts."""
        touches = self._touching()
        idle = kind = 0
        tidy = self.value
        while not self.over():
            if self.x is None or not self.per_group.any() or (idle >= IDLE_PARTS and np.isinf(self.task.time_limit_s)):
                return
            kind = (kind + 1) % KINDS
            score = self._score(kind % 3, touches)
            size = int(self.tree_size) if self.is_cut else self.size
            chosen = self._largest(score, size)[self.program.group]
            if chosen.sum() > 4 * size:  # requests of many columns: a part of each
                chosen &= (self.rng.random(self.n) < 2.0 * size / chosen.sum()) | (self.x > self.lower)
            before = self.value
            if self.is_cut:
                is_whole = self._tree_around(chosen | self._loose(), TREES)
                self.tree_size = max(LEAST_SIZE, self.tree_size * (TREE_GROW if is_whole else TREE_SHRINK))
                if kind == 0 and self.value < tidy:
                    self._complete(self.x, TREES)
                    tidy = self.value
            else:
                self._around(chosen | self._loose(), min(PART_SHARE * self.left_s, PART_S), "neighbourhood")
            idle = 0 if self.value < before else idle + 1
            if idle >= TREE_IDLE:
                self.tree_nodes, idle = int(TREE_MORE * self.tree_nodes), 0

    def _score(self, kind: int, touches: sp.csr_array) -> Floats:
        """Return what says which groups come into a neighbourhood of a kind, (groups,)."""
        score: Floats = self.rng.random(self.groups)
        if kind == 1:
            loss = self._losses()
            score = loss / (loss.max(initial=0.0) + 1e-12) + 0.5 * score
        elif kind == 2:
            seed = int(self.rng.choice(np.flatnonzero(self.per_group)))
            rows = np.asarray(touches[[seed]].toarray()).ravel()
            near = np.asarray(touches @ rows).ravel()
            score = near / (near.max(initial=0.0) + 1e-12) + 0.3 * score
        return score

    def _tree_around(self, free: Mask, by: str) -> bool:
        """Search around the best point by a small tree; returns whether it was searched to its end."""
        if self.x is None or (lp := self._fixed(free, self.x)) is None:
            return True
        base = float(self.cost[~free] @ self.x[~free])
        tree = SmallTree(lp, self.value - base, self.tree_nodes, lambda: self.left_s, self.over)
        is_whole = tree.run()
        if tree.x is not None:
            found = self.x.copy()
            found[free] = tree.x
            self.offer(found, by)
        return is_whole

    def _touching(self) -> sp.csr_array:
        """Return which rows each group has columns in, weighted by how few columns a row has, (groups, m)."""
        group = np.repeat(self.program.group, np.diff(self.A.indptr))
        counts = np.bincount(self.A.indices, minlength=self.A.shape[0])
        weight = 1.0 / np.maximum(counts[self.A.indices], 1)
        shape = (self.groups, self.A.shape[0])
        return sp.csr_array((weight, (group, self.A.indices)), shape=shape)

    def _losses(self) -> Floats:
        """Return what the best point's values lose at the LP's prices, by group."""
        if self.x is None:
            return np.zeros(self.groups)
        rest = np.where(self.reduced > 0.0, self.lower, np.where(np.isfinite(self.upper), self.upper, self.x))
        rest = np.where(np.isfinite(rest), rest, self.x)
        loss = np.maximum(self.reduced * (self.x - rest), 0.0)
        return np.asarray(np.bincount(self.program.group, weights=loss, minlength=self.groups), dtype=np.float64)

    def _around(self, free: Mask, seconds: float, by: str) -> None:
        """Search around the best point, with these columns free, and adapt the size of the next neighbourhood."""
        if self.x is None:
            return
        began = time.perf_counter()
        done = self._part(free, self.x, seconds, by)
        used = time.perf_counter() - began
        if done and used < 0.5 * seconds:
            self.size = min(int(GROW * self.size) + 1, len(self.integers))
        elif not done and used > 0.8 * seconds:
            self.size = max(LEAST_SIZE, int(SHRINK * self.size))

    # Branch and bound -----------------------------------------------------------------------------------------------

    def _fixed(self, free: Mask, base: Floats) -> LinearProgram | None:
        """Return the program with all other columns at their values in `base`; None if a row of them does not hold."""
        kept = np.where(free, 0.0, base)
        used = self.A @ kept
        part = self.A[:, free]
        gone = np.ones(len(used), dtype=bool)
        gone[part.indices] = False
        rows = np.flatnonzero(~gone)
        low, high = self.program.row_lower - used, self.program.row_upper - used
        if ((low > self.room_low) | (high < -self.room_high))[gone].any():
            return None
        # sums of what is fixed have rounding errors, which must not make a part infeasible
        low, high = np.minimum(low, high), np.maximum(low, high)
        matrix, low, high = sp.csr_array(part)[rows], low[rows], high[rows]
        if self.is_cut and (cuts := self.warm.cuts) is not None:
            strong, used = sp.csr_array(cuts.matrix[:, free]), cuts.matrix @ kept
            rows = np.flatnonzero(np.diff(strong.indptr))
            matrix = sp.vstack([matrix, strong[rows]])
            low = np.concatenate((low, (cuts.lower - used)[rows]))
            high = np.concatenate((high, (cuts.upper - used)[rows]))
        return LinearProgram(
            self.cost[free], sp.csc_array(matrix), low, high, self.lower[free], self.upper[free], self.is_integer[free]
        )

    def _part(self, free: Mask, base: Floats, seconds: float, by: str) -> bool:
        """Search with all other columns at their values in `base`; returns whether the part was solved to its end."""
        if not free.any():
            return self.offer(base, by)
        lp = self._fixed(free, base)
        if lp is None:
            return False
        known = self.x is not None and np.array_equal(self.x[~free], base[~free])

        def whole(x: Floats) -> Floats:
            found = base.copy()
            found[free] = x
            return found

        start = self.x[free] if known and self.x is not None else None
        status = self._branch(lp, min(seconds, self.left_s), by, whole, start, NODES)
        return bool(status == self.highspy.HighsModelStatus.kOptimal)

    def _whole(self, seconds: float, start: Floats | None) -> None:
        """Run branch and bound on the whole program."""
        statuses = self.highspy.HighsModelStatus
        if (self.lower > self.upper).any():
            self.infeasible = True
            return
        program = self.program
        lp = LinearProgram(
            self.cost, self.A, program.row_lower, program.row_upper, self.lower, self.upper, self.is_integer
        )
        seconds = min(seconds, self.left_s)
        status = self._branch(lp, seconds, "branch and bound", lambda x: x, start, self.task.max_nodes, True)
        self.infeasible = self.infeasible or (status == statuses.kInfeasible and self.x is None)
        if status == statuses.kOptimal and self.x is not None:
            self.solved = True

    def _branch(
        self,
        lp: LinearProgram,
        seconds: float,
        by: str,
        whole: Callable[[Floats], Floats],
        start: Floats | None,
        nodes: int | None,
        bounds: bool = False,
    ) -> Any:
        """Run branch and bound on a program, offering all its points; returns HiGHS's model status.

        HiGHS's presolve assumes what holds for some optimal point only, and may turn a start into a point that is
        better than any: HiGHS then proves an optimum that does not exist. Where its best value is below that of all its
        points (`Ghost`), it runs again without the start.
        """
        until, ghost = time.perf_counter() + seconds, Ghost(np.inf if start is None else float(lp.c @ start))
        status = self._branch_once(lp, seconds, by, whole, start, nodes, bounds, ghost)
        if ghost.seen and (left := until - time.perf_counter()) > LEAST_S and not self.over():
            status = self._branch_once(lp, left, by, whole, None, nodes, bounds, Ghost(np.inf))
        elif ghost.seen:
            status = None
        return status

    def _branch_once(
        self,
        lp: LinearProgram,
        seconds: float,
        by: str,
        whole: Callable[[Floats], Floats],
        start: Floats | None,
        nodes: int | None,
        bounds: bool,
        ghost: Ghost,
    ) -> Any:
        """Run branch and bound once."""
        solver, highspy = silent_highs(), self.highspy
        options: list[tuple[str, Any]] = [
            ("threads", 1),
            ("mip_rel_gap", self.gap),
            ("time_limit", max(seconds, LEAST_S)),
        ]
        if not np.isfinite(seconds):
            options.pop()
        if nodes is not None:
            options.append(("mip_max_nodes", nodes))
        for name, value in options:
            solver.setOptionValue(name, value)
        if solver.passModel(highs_lp(lp, integer=True)) == highspy.HighsStatus.kError:
            return None
        if start is not None:
            known = highspy.HighsSolution()
            known.col_value = start.tolist()
            solver.setSolution(known)
        kind = highspy.cb.HighsCallbackType

        def heard(event: Any, message: str, out: Any, answer: Any, data: Any) -> None:
            if event == kind.kCallbackMipImprovingSolution:
                values = np.array(out.mip_solution, dtype=np.float64)
                ghost.found(float(lp.c @ values))  # HiGHS's own value of it may be the ghost's
                self.offer(whole(values), by)
            elif ghost.of(out.mip_primal_bound) or self._stops(self.number) or self.solved or self.infeasible:
                answer.user_interrupt = True
            if bounds:
                self.better_bound(float(out.mip_dual_bound))

        solver.setCallback(heard, None)
        solver.startCallback(kind.kCallbackMipImprovingSolution)
        solver.startCallback(kind.kCallbackMipInterrupt)
        run_highs(solver)
        info, status = solver.getInfo(), solver.getModelStatus()
        if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
            values = np.array(solver.getSolution().col_value)
            ghost.found(float(lp.c @ values))
            ghost.of(float(info.objective_function_value))
            x = whole(values)
            better = self.x is None or float(self.cost @ x) < self.value - 1e-9 * (1.0 + abs(self.value))
            if better and not self.offer(x, by):
                self._complete(x, by)
        if bounds and status != highspy.HighsModelStatus.kInfeasible:
            self.better_bound(float(info.mip_dual_bound))
        return status
