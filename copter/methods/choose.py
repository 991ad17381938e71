"""Which method solves a program, in which order, and why.

Every threshold by which a method is tried stands in this file; by which work or trouble one gives up that was begun,
here or with the method (`MOST_ROWS` of `methods/blocks/solve.py`).

A **model**, solved by a session (:func:`for_model`), has few or many *coupling rows* (resources) and requests.

0. A small model (:func:`is_small`): pivots of its whole program from the basis of the last round. The rules below are
   for larger models, and for small ones whose pivots do not end at a proven optimum.
1. Private rows: the block methods (beyond `VERTEX_ROWS` coupling rows first HiGHS's vertex and pivots from it, as in
   rule 4), because no other method for models supports private rows; before them, if the
   private rows are least sums only, pivots as in rule 2. If these do not finish, or the program is infeasible or
   unbounded, the whole program goes to the simplex method (up to `COLD_COLUMNS` columns) and then to the interior-point
   method.
2. Few coupling rows (`Settings.interior_rows`, 64) and few columns (`Settings.basis_columns`, 40,000): pivots from the
   basis of the last round. The first round has no basis; up to `COLD_COLUMNS` columns pivots start from nothing, above
   that the proximal method solves the first round and its prices start the basis of the second. Up to `COLD_COLUMNS`
   the simplex method of the whole program decides where those pivots do not end at an optimum.
3. Few coupling rows and more columns than that: the proximal method, which looks at most columns only to price them.
4. Many coupling rows: pivots from the last basis if there is one, then the block interior-point method; before that,
   if its dense matrix would take longer (:func:`vertex_work`), HiGHS's interior points and crossover in a process of
   their own, whose basis the pivots start from. If none of these
   ends at an optimum, the proximal method goes on from where they stopped, up to `PRICED_ROWS` rows; with more rows
   the interior-point method of the whole program goes first, and at once with more coupling rows than columns. Rounds
   after such a solve start from its optimum: pivots of the whole program, for work of `RESUMED_WORK` an entry.
5. Wherever the proximal method stalls, the interior-point method of the whole program has one try, up to
   `Settings.interior_columns` columns.

A **linear program** that is solved once (:func:`for_program`): the dual simplex method while its work stays small, on
the program as given (up to `DIRECT_ENTRIES` entries) or presolved; blocks, if the program has some that pay; the
interior-point method. If rounding ends the interior-point method, the proximal method has a short try.

`Settings.method` names one method in place of this order. A method that cannot prove that there is no optimum leaves
that verdict to the interior-point method, and `Solution.why` says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from copter.runtime.errors import SettingsError
from copter.runtime.settings import Settings

Method = Literal[
    "",
    "kept",
    "presolve",
    "basis",
    "blocks",
    "proximal",
    "price_descent",
    "coordinate_descent",
    "simplex",
    "interior",
    "worth",
    "highs",
]

# Of models ------------------------------------------------------------------------------------------------------------

COLD_COLUMNS: Final = 1000
"""Columns up to which a model's first solve pivots as well: its few pivots cost less than one proximal step."""

SMALL_COLUMNS: Final = 5_000
"""Columns up to which the first method of a model is pivots of its whole program from the last basis. With private
rows the limit is `Settings.basis_columns`, because no other pivots are left for such a model.
"""

FEW_REQUESTS: Final = 64
"""Requests up to which a model with private rows counts as small whatever its number of coupling rows."""

REQUESTS_A_ROW: Final = 4
"""Requests per coupling row up to which a model with private rows counts as small (:func:`is_small`)."""

PLAIN_REQUESTS_A_ROW: Final = 1.5
"""`REQUESTS_A_ROW` for models without private rows: with more, pivots that eliminate the requests' rows are faster."""

SUMS_A_ROW: Final = 0.4
"""Requests with a limit on several columns, per coupling row, up to which a model without private rows counts as small.
Each has a row in the whole program; other requests do not.
"""

LIMITED_ROWS: Final = 256
"""Coupling rows up to which a model with such limits is not small: pivots of its blocks are faster."""

ENTRIES_A_ROW: Final = 100
"""Entries per coupling row up to which a model without private rows counts as small. With more, a pivot of the whole
program takes longer than one of a dense inverse, whose ratio tests look at few columns.
"""

MOST_FAILURES: Final = 5
"""Most consecutive failures of warm pivots that count (:func:`after_failure`)."""

COLD_COLUMN_WORK: Final = 300.0
"""Work per column after which pivots from an empty basis are given up above `SMALL_COLUMNS`: a tenth of what the block
methods take on random programs with private rows, most of which need more pivots. Programs of shards need half of it.
"""

COLUMN_WORK: Final = 2_000.0
"""`COLD_COLUMN_WORK` for pivots from the basis of an earlier optimum, about the work of the block methods."""

PRICED_ROWS: Final = 1024
"""Coupling rows up to which the proximal method goes on when the block methods give up. Its dense Newton system has as
many rows; with more of them, the sparse factorisation of the whole program is faster.
"""

VERTEX_ROWS: Final = 1_500
"""Coupling rows up to which a first vertex is not asked of HiGHS: starting its process and handing over the program
take longer than that saves.
"""

VERTEX_WORK: Final = 1e4
"""Work of HiGHS's interior points per entry at 1,000 coupling rows, in that of a cold solve by blocks
(:func:`vertex_work`).
"""

VERTEX_GROWTH: Final = 0.65
"""Power of the number of coupling rows with which that grows: 0.11, 0.53 and 4.4 s at 1,000, 3,000 and 10,000 rows."""

RESUMED_WORK: Final = 1_500.0
"""Work per entry after which pivots from the last optimum of a whole program are given up: about half of what the
interior-point method takes.
"""

# Of linear programs that are solved once ------------------------------------------------------------------------------

DIRECT_ENTRIES: Final = 6_000
"""Entries up to which the simplex method gets the program as given: presolve would take longer than it saves."""

DIRECT_WORK: Final = 2e7
"""Work after which the simplex method gives up a program as given; a unit is about three nanoseconds."""

FROM_VERTEX_WORK: Final = 6_000.0
"""`RESUMED_WORK` for models with private rows whose first optimum HiGHS has found: about what that takes."""

SIMPLEX_WORK: Final = 1e8
"""Work after which the simplex method gives up a presolved program, or a small model in a round: the interior-point
method needs about as much.
"""

SPARSE_WORK: Final = 3e8
"""`SIMPLEX_WORK` for programs, such as networks, in which each step of the simplex method touches few rows."""

SIMPLEX_ENTRIES: Final = 500_000
"""Entries of a presolved program above which the simplex method is not tried."""

SIMPLEX_ROWS: Final = 10_000
"""Rows of a presolved program above which the simplex method is not tried."""

STRUCTURE_ENTRIES: Final = 2_000
"""Entries below which a linear program is not searched for blocks: the search takes longer than the solve."""

STRUCTURE_WORK: Final = 2_000.0
"""Multiplications per entry in one block iteration, above which the sparse factorisation is cheaper."""

PATIENCE: Final = 3.0
"""Time limit of the proximal method after rounding has ended the interior-point method, in multiples of the latter's
time.
"""


Way = Literal["small_simplex", "block_round", "whole_program", "proximal_round"]
"""The file of `methods/` whose class runs a choice in a session's round."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A method, the reason for its place in the order, and what runs it in a session's round."""

    method: Method
    why: str
    by: Way = "proximal_round"


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Facts about a model from which its method is chosen.

    Attributes
    ----------
    columns, rows : int
        Columns of all requests; coupling rows.
    private_rows : bool
        Whether a request has rows of its own beside its limit.
    only_sums : bool
        Whether these are least sums of all its columns, and no others.
    has_basis : bool
        Whether the last round has left a basis.
    requests : int
    sums, entries : int
        Requests with a limit on several columns; entries in coupling rows; 0 with more than `SMALL_COLUMNS` columns.
    unchanged : bool
        Whether the last answer was optimal for this very model, and no basis holds it: one pricing pass proves it.
    has_optimum : bool
        Whether pivots of the whole program can start from an earlier optimum.
    has_own_duals : bool
        Whether the last answer came with duals of the requests' own rows.
    """

    columns: int
    rows: int
    private_rows: bool
    has_basis: bool
    requests: int = 0
    unchanged: bool = False
    has_optimum: bool = False
    has_own_duals: bool = False
    only_sums: bool = True
    sums: int = 0
    entries: int = 0


NAMED: Final = "Settings.method names it"
KEPT: Final = Choice("kept", "the last answer is still optimal: one pricing pass proves it")
VERDICT: Final = Choice("interior", "the method that Settings.method names found no optimum", "whole_program")
NAMED_INTERIOR: Final = Choice("interior", NAMED, "whole_program")
SUM_PIVOTS: Final = Choice(
    "basis", "private rows are sums of a request's columns only: pivots from the last basis", "block_round"
)
PRESOLVED: Final = Choice("presolve", "presolve decides the whole program")

SMALL: Final = Choice("basis", "a small model: pivots of the whole program from the last basis", "small_simplex")
SMALL_COLD: Final = Choice("basis", "a small model: pivots of the whole program from an empty basis", "small_simplex")
_PRIVATE: Final = Choice("blocks", "requests have private rows", "whole_program")
_WHOLE: Final = Choice("interior", "the block methods did not end at an optimum")
_PRIVATE_VERTEX: Final = Choice(
    "highs", "very many coupling rows and private rows: HiGHS gives a vertex", "whole_program"
)
_WHOLE_PRIVATE: Final = Choice("interior", _WHOLE.why, "whole_program")
WHOLE_PIVOTS: Final = Choice("simplex", "few columns, and the first method did not end at an optimum", "whole_program")
_UNCOUPLED: Final = Choice("interior", "more coupling rows than columns: nothing is eliminated")
RESUMED: Final = Choice(
    "basis", "more coupling rows than columns: pivots of the whole program from the last optimum", "whole_program"
)
FROM_VERTEX: Final = Choice(
    "basis", "very many coupling rows: pivots of the whole program from the last optimum", "whole_program"
)
_STALLED: Final = Choice("interior", "the proximal method stalled")
PIVOTS: Final = Choice("basis", "few columns: pivots from the last basis", "block_round")
_COLD_PIVOTS: Final = Choice("basis", "very few columns: pivots from an empty basis", "block_round")
_ROW_PIVOTS: Final = Choice("basis", "many coupling rows: pivots from the last basis", "block_round")
_VERTEX: Final = Choice("highs", "many coupling rows and no basis: HiGHS gives a vertex", "block_round")
_BLOCKS: Final = Choice("blocks", "many coupling rows: requests are eliminated", "block_round")
_FIRST: Final = Choice("proximal", "few columns, and no basis before the first solve")
_PRICES: Final = Choice("proximal", "few coupling rows and many columns")
_INSTEAD: Final = Choice("proximal", "pivots did not end at an optimum")
_GOES_ON: Final = Choice("proximal", "goes on from where the block methods stopped")


def pivots_fit(facts: ModelFacts, settings: Settings) -> bool:
    """Whether a model has few enough columns to be solved by pivots from the last round's basis."""
    return 0 < facts.columns <= settings.basis_columns


def is_small(facts: ModelFacts, settings: Settings) -> bool:
    """Whether a model is so small that pivots of its whole program, with a row for every request, solve it fastest."""
    if facts.private_rows:
        few_requests = facts.requests <= max(FEW_REQUESTS, REQUESTS_A_ROW * facts.rows)
    else:  # an unchanged model's answer is proven again by the method that found it
        most_sums = SUMS_A_ROW * facts.rows if facts.rows > LIMITED_ROWS else 0
        few_requests = facts.requests <= PLAIN_REQUESTS_A_ROW * facts.rows and facts.sums <= most_sums
        few_requests &= facts.entries <= ENTRIES_A_ROW * facts.rows
        few_requests &= facts.has_own_duals or not facts.unchanged
    most = settings.basis_columns if facts.private_rows else min(SMALL_COLUMNS, settings.basis_columns)
    return 0 < facts.columns <= most and few_requests


def round_work(columns: int, warm: bool) -> float:
    """Return the work after which pivots of a model's whole program are given up; `warm` if there is a basis."""
    return SIMPLEX_WORK if columns <= SMALL_COLUMNS else (COLUMN_WORK if warm else COLD_COLUMN_WORK) * columns


def after_failure(failures: int) -> tuple[int, int]:
    """Return the count of consecutive failures of warm pivots after one more, and for how many rounds they rest."""
    failures = min(failures + 1, MOST_FAILURES)
    return failures, 2**failures // 2


def many_rows(facts: ModelFacts, settings: Settings) -> bool:
    """Whether a model has so many coupling rows that the proximal method would be slower than interior points."""
    return settings.interior_columns > 0 and facts.rows > settings.interior_rows


def vertex_work(entries: int, rows: int) -> float:
    """Return the work of a first vertex by HiGHS; infinite where it is not asked."""
    return VERTEX_WORK * entries * (rows / 1000.0) ** VERTEX_GROWTH if rows > VERTEX_ROWS else float("inf")


def for_model(facts: ModelFacts, settings: Settings) -> tuple[Choice, ...]:
    """Return the methods that a session tries on a model, in order.

    Raises
    ------
    SettingsError
        If `Settings.method` names a method that takes no such model.
    """
    if settings.method != "auto":
        return _named_for_model(facts, settings)
    order: list[Choice] = [SMALL] if is_small(facts, settings) else []
    if facts.private_rows:
        if facts.only_sums and pivots_fit(facts, settings) and not facts.unchanged:
            order.append(SUM_PIVOTS)
        if facts.rows > VERTEX_ROWS and not facts.unchanged:
            order += [FROM_VERTEX, _PRIVATE_VERTEX] if facts.has_optimum else [_PRIVATE_VERTEX]
        return (*order, _PRIVATE, *([WHOLE_PIVOTS] if facts.columns <= COLD_COLUMNS else []), _WHOLE_PRIVATE)
    few, many = pivots_fit(facts, settings), many_rows(facts, settings)
    whole = facts.columns <= settings.interior_columns
    uncoupled = many and whole and facts.rows > max(PRICED_ROWS, facts.columns)
    if uncoupled and facts.has_optimum:
        order.append(RESUMED)
    if facts.unchanged:
        pass
    elif facts.has_basis or (few and facts.columns <= COLD_COLUMNS):
        if few:
            order.append(PIVOTS if facts.has_basis else _COLD_PIVOTS)
            if facts.columns <= COLD_COLUMNS:
                order.append(WHOLE_PIVOTS)
        elif many:
            order.append(_ROW_PIVOTS)
    if many and not uncoupled and not facts.unchanged and facts.rows > VERTEX_ROWS:
        order.append(_VERTEX)
    if uncoupled:
        return *order, _UNCOUPLED, _GOES_ON
    if many and whole and facts.rows > PRICED_ROWS:
        return (*order, _WHOLE, _GOES_ON) if facts.unchanged else (*order, _BLOCKS, _WHOLE, _GOES_ON)
    if many and not facts.unchanged:
        order.append(_BLOCKS)
    order.append(_GOES_ON if many else _INSTEAD if order else _FIRST if few else _PRICES)
    return (*order, _STALLED) if whole else tuple(order)


def _named_for_model(facts: ModelFacts, settings: Settings) -> tuple[Choice, ...]:
    name = settings.method
    if facts.private_rows and name in ("basis", "proximal", "price_descent", "coordinate_descent"):
        raise SettingsError(
            f"setting method is {name!r}, which takes no model with private rows or at_least: "
            "use 'auto', 'blocks', 'interior' or 'simplex'"
        )
    if name == "basis":
        return Choice("basis", NAMED, "block_round"), VERDICT
    if name == "blocks":
        return Choice("blocks", NAMED, "whole_program" if facts.private_rows else "block_round"), VERDICT
    if name in ("proximal", "price_descent", "coordinate_descent"):
        return (Choice(name, NAMED),)
    if name == "simplex":
        return Choice("simplex", NAMED, "whole_program"), VERDICT
    return (NAMED_INTERIOR,)


@dataclass(frozen=True, slots=True)
class ProgramFacts:
    """Facts about one linear program from which its method is chosen."""

    entries: int
    rows: int
    columns: int
    presolved: bool


_DIRECT: Final = Choice("simplex", "so small that presolve would take longer than it saves")
_SMALL: Final = Choice("simplex", "small: the simplex method ends within its allowance of work")
_STRUCTURED: Final = Choice("blocks", "few rows couple many small blocks of columns")
_INTERIOR: Final = Choice("interior", "the default for a linear program that is solved once")
ROUNDED: Final = Choice("proximal", "rounding ended the interior-point method")
MEMORY: Final = Choice("proximal", "a factorisation does not fit into memory")


def for_program(facts: ProgramFacts, settings: Settings) -> tuple[Choice, ...]:
    """Return the methods that a one-shot solve tries on a program, in order; before presolve, only the simplex method.

    Raises
    ------
    SettingsError
        If `Settings.method` names a method that takes no linear program.
    """
    name = settings.method
    if name == "basis":
        raise SettingsError(
            "setting method is 'basis', which starts from a session's last round: use a Session, or 'simplex'"
        )
    if name in ("proximal", "price_descent", "coordinate_descent"):
        return (Choice(name, NAMED),)
    if not facts.presolved:
        direct = name == "auto" and facts.entries <= DIRECT_ENTRIES and facts.rows <= SIMPLEX_ROWS
        return (_DIRECT,) if direct else ()
    if name == "simplex":
        return Choice("simplex", NAMED), VERDICT
    if name == "blocks":
        return Choice("blocks", NAMED), VERDICT
    if name == "interior":
        return (Choice("interior", NAMED),)
    order: list[Choice] = []
    if facts.entries <= SIMPLEX_ENTRIES and facts.rows <= SIMPLEX_ROWS:
        order.append(_SMALL)
    if facts.entries >= STRUCTURE_ENTRIES and facts.columns > facts.rows:
        order.append(_STRUCTURED)
    return *order, _INTERIOR


def blocks_pay(multiplications: float, entries: int) -> bool:
    """Whether one iteration by blocks is cheaper than the sparse factorisation of the program."""
    return multiplications <= STRUCTURE_WORK * entries
