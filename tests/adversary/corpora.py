"""Programs on which other solvers failed, solved by copter and decided exactly; writes docs/results/corpora.md.

    python -m tests.adversary.corpora --files FOLDER --page

Small models are rebuilt here from what the reports say. FOLDER has those that are files: `check/instances` of a
checkout of HiGHS. SciPy's are taken from its own installed tests while these run.
"""

from __future__ import annotations

import argparse
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import scipy.sparse as sp

import copter
from copter import LinearProgram, Settings
from copter.highs.lp import highs_lp
from copter.interop.live_program import LiveProgram
from copter.interop.scipy_input import NotTaken, linprog_program
from copter.methods.integer.proof import MOST_ENTRIES
from copter.methods.integer.solution import IntegerStatus
from copter.problem.checker import check
from copter.runtime.errors import CopterError
from copter.verify.tree import verify_proof
from tests.adversary.exact_judge import EXACT_COLUMNS, FALSE, OPEN, TOLERATED, TRUE, Judgement, judged, proves_itself
from tests.adversary.solver_fuzz import commit
from tests.adversary.test_bounds import dual_function

PAGE = Path(__file__).parents[2] / "docs" / "results" / "corpora.md"
INF = np.inf
HIGHS = "[HiGHS {0}](https://github.com/ERGO-Code/HiGHS/issues/{0})"
SCIPY = "SciPy's tests of linprog"
DISCOPT = "[discopt {0}](https://github.com/jkitchin/discopt/issues/{0})"
SOLVE_S, INTEGER_S = 60.0, 10.0
NEAR = 1e-6
MOST_POINTS = 1e7  # whole points that are looked at one by one
LARGEST = 300_000  # bytes of a file that is read
SERIES = 8  # solves of a series with changed sides
ABSENT = (
    (HIGHS.format(3194), "a model of 2.4 MB that is in a later state of HiGHS's repository than could be had"),
    (HIGHS.format(3273), "neither its text nor its instance was found in public copies"),
    (HIGHS.format(3294), "the reporter's model is not public; the same series of calls is done here on other models"),
    (HIGHS.format(2874), "its first two instances are attachments that could not be had; the third is here"),
    ("[discopt pull request 1258](https://github.com/jkitchin/discopt/pull/1258)",
     "it names models by the number of a random probe that is not in the repository; reports that followed it, 1309 "
     "and 1410, are here"),
    ("OSQP's quadratic programs", "copter solves linear programs"),
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One program, and where it comes from."""

    name: str
    source: str
    failed: str
    make: Callable[[], LinearProgram]


@dataclass(frozen=True)
class Row:
    """What copter says of it, and whether that is true."""

    case: Case
    says: str
    judgement: Judgement


def program(cost: Any, rows: Any, low: Any, high: Any, lower: Any, upper: Any, whole: Any = None) -> LinearProgram:
    """A program of dense data."""
    matrix = np.array(rows, dtype=float).reshape(len(low), len(cost))
    kinds = None if whole is None else np.array(whole, dtype=np.uint8)
    return LinearProgram(cost, matrix, low, high, lower, upper, integrality=kinds)


def osqp_infeasible() -> LinearProgram:
    """As OSQP's test of primal infeasibility makes it, without the quadratic part."""
    rng = np.random.Generator(np.random.PCG64(2))
    n, m = 50, 150
    cost = rng.standard_normal(n)
    matrix = sp.random(m, n, random_state=rng).tolil()
    upper, lower = 3 + rng.standard_normal(m), -3 + rng.standard_normal(m)
    matrix[n // 2, :] = matrix[n // 2 + 1, :]
    lower[n // 2] = upper[n // 2 + 1] + 10 * rng.random()
    upper[n // 2] = lower[n // 2] + 0.5
    return LinearProgram(cost, matrix.tocsc(), lower, upper, -INF, INF)


def badly_scaled() -> LinearProgram:
    """Five whole columns, coefficients from 2e-3 to 7e5."""
    cost = [0.6866774929690818, -0.005713836158671233, 11740.059150860803, 0.007721491930584785, 21.9371989038807]
    rows = [
        [10.023552111631327, -554709.2273055869, -31120.64874492787, 0.0019316280314185673, -731961.352263406],
        [1445.4625401493574, 21007.7074712139, -20275.753039620417, -499143.4063638526, -0.24860654636723628],
    ]
    sides = [-77796.72865470266, 19089.22626419994]
    return program(cost, rows, [-INF] * 2, sides, [0.0] * 5, [3.0, 4.0, 3.0, 2.0, 4.0], [1] * 5)


def written_down() -> list[Case]:
    """Models that the reports tell in full."""
    return [
        Case("two free columns and three in boxes", HIGHS.format(295), "interior points: values of another objective",
             lambda: program([0, 0, 0, 1, -1], [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0]], [-INF] * 2, [2, -2],
                             [-INF, -INF, -INF, -1, -1], [INF, INF, INF, 1, 1])),
        Case("a free column and one from -3", HIGHS.format(395), "primal simplex: called unbounded",
             lambda: program([1, -4], [[-3, 1], [1, 2]], [-INF] * 2, [6, 4], [-INF, -3], [INF, INF])),
        Case("parallel equations and a fixed column", HIGHS.format(396), "primal simplex: called optimal",
             lambda: program([1, 2], [[1, 2], [1.1, 2.2]], [4, 8], [4, 8], [1, 2], [2, 2])),
        Case("one free column between crossed rows", HIGHS.format(1807), "interior points: called feasible",
             lambda: program([0], [[1], [1]], [-INF, 1], [0, INF], [-INF], [INF])),
        Case("two rows that contradict each other", HIGHS.format(1966), "interior points: no infeasibility was seen",
             lambda: program([2, -1], [[1, -1], [1, -1]], [-INF, 2], [1, INF], [0, 0], [INF, INF])),
        Case("free columns, unbounded", HIGHS.format(648), "presolve: no longer seen to be unbounded",
             lambda: program(
                 [0.5488135039, -1, 0.6027633761, 0.544883183],
                 [[0.0710360582, 0, 0.0202183974, 0.8326198455], [0.7781567509, 0, 0.9786183422, 0.7991585642],
                  [0.4236547993, 0, 0.4375872113, 0.8917730008], [0.9636627605, 0, 0.7917250381, 0.5288949198]],
                 [-INF, -INF, 0.5680445611, 0.9255966383], [0.4614793623, 0.7805291763, 0.5680445611, 0.9255966383],
                 [-INF] * 4, [INF] * 4)),
        Case("bounds of 1e16 and a side of 2", DISCOPT.format(1309), "called infeasible, with a certificate",
             lambda: program([0, 5, 2], [[5, -1, -1]], [-2], [INF], [-1e16, 5e15, -5e15], [1e16, 2e18, 1e16])),
        Case("four rows, two columns", "OSQP's test basic_lp", "a regression test",
             lambda: program([1.1, 0.95], [[1, 1], [1, 0], [0, 1], [0, 1]], [1, 0, 0, -INF], [1, 0.7, 0.7, INF],
                             [-INF] * 2, [INF] * 2)),
        Case("the same after its update", "OSQP's test basic_lp", "a regression test",
             lambda: program([2.5, 3.2], [[1, 1], [1, 0], [0, 1], [0, 1]], [0.8, -3.4, -INF, 0.5], [1.6, 1, INF, 0.5],
                             [-INF] * 2, [INF] * 2)),
        Case("150 rows, one of them twice with sides apart", "OSQP's test primal_infeasibility", "a regression test",
             osqp_infeasible),
        Case("three rows, three columns, two whole", HIGHS.format(2432), "presolve: called infeasible",
             lambda: program([-93, 25, 17], [[-89, -40.7, -12], [-0.1, 77.2, -23.7], [-8.6, -6.5, 72.78]],
                             [3994.5, -4878.3, -4930], [INF] * 3, [-100] * 3, [120, 10, 0], [1, 0, 1])),
        Case("one row, one whole column and one from 8", HIGHS.format(2957), "presolve: 29 in the place of 28.2",
             lambda: program([1, 2], [[1, 1]], [20.1], [INF], [0, 8], [20, 20], [1, 0])),
        Case("one row, one whole column", HIGHS.format(3043), "presolve: 15 in the place of 9",
             lambda: program([2, 3], [[1, 1]], [4.5], [INF], [0, 0], [10, 10], [0, 1])),
        Case("a difference and a switch of 1e8", HIGHS.format(3034), "called optimal, a row is 200 off",
             lambda: program([0, 0, 0, 0], [[1, -1, 0, 0], [1, -1, 99_807_000, 0]], [193_200, -INF],
                             [193_200, 100_000_000], [0, 0, 1, 0], [1e8, 1e8, 1, 10], [0, 0, 0, 1])),
        Case("five whole columns, badly scaled", DISCOPT.format(1410), "a certified bound beyond the optimum",
             badly_scaled),
    ]  # fmt: skip


def from_files(folder: Path) -> Iterator[Case]:
    """HiGHS's instances that have the number of a report in their name."""
    for path in sorted(folder.glob("*.mps")):
        number = "".join(letter for letter in path.stem.removeprefix("issue-")[:4] if letter.isdigit())
        if len(number) == 4 and path.stem.removeprefix("issue-").startswith(number) and path.stat().st_size < LARGEST:
            yield Case(path.name, HIGHS.format(number), "the instance of a report", partial(copter.read_mps, path))


def from_scipy() -> Iterator[Case]:
    """Programs that SciPy's tests of linprog hand to its HiGHS methods; each once."""
    script = """
import pickle, sys, warnings
warnings.simplefilter("ignore")
import pytest, scipy.optimize.tests.test_linprog as tests
real, seen = tests.linprog, []
def noted(c, A_ub=None, b_ub=None, A_eq=None, b_eq=None, bounds=(0, None), *more, **named):
    seen.append((c, A_ub, b_ub, A_eq, b_eq, bounds, named.get("integrality")))
    return real(c, A_ub, b_ub, A_eq, b_eq, bounds, *more, **named)
tests.linprog = noted
pytest.main(["-q", "-p", "no:cacheprovider", "-k", "Highs", "--pyargs", "scipy.optimize.tests.test_linprog"])
kept = []
for each in seen:
    try:
        kept.append(pickle.dumps(each))
    except Exception:
        pass
pickle.dump(kept, open(sys.argv[1], "wb"))
"""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "programs"
        subprocess.run([sys.executable, "-c", script, str(path)], cwd=folder, capture_output=True, check=False)
        kept = pickle.loads(path.read_bytes()) if path.exists() else []
    known: set[bytes] = set()
    for data in kept:
        try:
            found = linprog_program(*pickle.loads(data))
        except (NotTaken, CopterError, ValueError, TypeError):
            continue
        lp = found.lp
        if lp is None:
            continue
        print_of_it = b"".join(
            np.ascontiguousarray(each).tobytes()
            for each in (lp.c, lp.A.data, lp.A.indices, lp.row_lower, lp.row_upper, lp.col_lower, lp.col_upper)
        )
        if print_of_it not in known:
            known.add(print_of_it)
            shape = f"{lp.shape[0]} rows, {lp.shape[1]} columns"
            yield Case(shape, SCIPY, "regression tests", partial(copy, lp))


def series(case: Case) -> Iterator[Row]:
    """A program whose sides change between solves from the last basis, as the reports of wrong hot starts have it."""
    lp = case.make()
    rng, live = np.random.default_rng(3294), LiveProgram()
    low, high = lp.row_lower, lp.row_upper
    for at in range(SERIES):
        if at:
            step = rng.normal(0.0, 0.02, lp.shape[0]) * (rng.random(lp.shape[0]) < 0.1)
            low, high = moved(low, step), moved(high, step)
        changed = LinearProgram(lp.c, lp.A, low, high, lp.col_lower, lp.col_upper, sense=lp.sense, offset=lp.offset)
        found = live.solve(changed)
        yield Row(case, found.status.value, against_another(changed, found))


def against_another(lp: LinearProgram, found: Any) -> Judgement:
    """The verdict on an answer by its ray in exact arithmetic, or by HiGHS, which starts from nothing."""
    if found.status is copter.Status.PRIMAL_INFEASIBLE and found.ray is not None:
        rows = LinearProgram(np.zeros(lp.shape[1]), lp.A, lp.row_lower, lp.row_upper, lp.col_lower, lp.col_upper)
        value = dual_function(rows, found.ray)
        return Judgement(TRUE if value is not None and value > 0 else FALSE, "its ray, exactly")
    solver = highspy.Highs()
    solver.silent()
    solver.passModel(highs_lp(lp))
    solver.run()
    best, optimal = solver.getInfo().objective_function_value, highspy.HighsModelStatus.kOptimal
    if found.status is copter.Status.DUAL_INFEASIBLE:  # it may have no point either
        return Judgement(FALSE if solver.getModelStatus() == optimal else TRUE, "HiGHS, cold", "it has an optimum")
    if found.status is not copter.Status.OPTIMAL:
        return Judgement(OPEN, "checker", found.status.value)
    seen = check(lp, found.x, found.y)
    if seen.residuals.primal > NEAR:
        return Judgement(FALSE, "checker", f"rows are violated by {seen.residuals.primal:.3g}")
    if solver.getModelStatus() != optimal:
        return Judgement(OPEN, "HiGHS, cold")
    same = abs(seen.objective - best) <= NEAR * (1.0 + abs(best))
    return Judgement(TRUE if same else FALSE, "HiGHS, cold", f"{seen.objective!r}, it is {best!r}")


def moved(sides: Any, step: Any) -> Any:
    """Finite sides, moved by a part of their size."""
    finite = np.isfinite(sides)
    return np.where(finite, sides + step * (1.0 + np.abs(np.where(finite, sides, 0.0))), sides)


def decided(case: Case) -> Row:
    """Solve a program, and judge the answer."""
    print(case.name, case.source, file=sys.stderr, flush=True)
    try:
        lp = case.make()
    except CopterError as error:
        why = str(error).rpartition(case.name)[2].lstrip(", ")
        return Row(case, f"refused: {why[:80]}", Judgement(OPEN, "reader"))
    if lp.integrality is not None and np.any(lp.integrality):
        return integer(case, lp)
    found = copter.solve(lp, Settings(time_limit_s=SOLVE_S))
    said = (
        f"{found.status.value} {found.objective:.9g}" if found.status is copter.Status.OPTIMAL else found.status.value
    )
    if max(lp.shape) <= EXACT_COLUMNS:
        return Row(case, said, judged(lp, found, False))
    proven = proves_itself(lp, found)
    return Row(case, said, Judgement(TRUE, "certificate") if proven else against_another(lp, found))


def integer(case: Case, lp: LinearProgram) -> Row:
    """Solve one with whole columns: its own proof judged exactly, or HiGHS without presolve."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "proof"
        can = lp.A.nnz <= MOST_ENTRIES and not lp.semicontinuous.any()
        found = copter.solve_integer(lp, deadline_s=INTEGER_S, proof=path if can else None)
        proven = path.exists() and not verify_proof(path)[1]
    said = found.status.value if found.x is None else f"{found.status.value} {found.objective:.9g}"
    wrong = fault_of_point(lp, found.x)
    if wrong:
        return Row(case, said, Judgement(FALSE, "checker", wrong))
    if proven:
        return Row(case, said, Judgement(TRUE, "its proof, exactly"))
    return Row(case, said, by_highs(lp, found))


def fault_of_point(lp: LinearProgram, x: Any) -> str:
    """What is wrong with a whole point; empty for nothing, or no point."""
    if x is None:
        return ""
    seen = check(lp, x, np.zeros(lp.shape[0]))
    whole = np.asarray(lp.integrality) == 1
    if np.abs(x[whole] - np.rint(x[whole])).max(initial=0.0) > NEAR:
        return "a column is not whole"
    return "" if seen.residuals.primal <= NEAR else f"rows are violated by {seen.residuals.primal:.3g}"


def by_highs(lp: LinearProgram, found: Any) -> Judgement:
    """Compare with HiGHS's branch and bound without presolve."""
    solver = highspy.Highs()
    solver.silent()
    solver.setOptionValue("time_limit", INTEGER_S)
    solver.setOptionValue("presolve", "off")
    solver.setOptionValue("mip_rel_gap", 0.0)
    solver.passModel(highs_lp(lp, integer=True))
    solver.run()
    status, sign = solver.getModelStatus(), 1.0 if lp.sense == "min" else -1.0
    infeasible = status == highspy.HighsModelStatus.kInfeasible
    if found.x is None:
        if found.status is IntegerStatus.PRIMAL_INFEASIBLE and widest(lp) < -NEAR:
            return Judgement(TRUE, "all whole points")
        if found.status is IntegerStatus.PRIMAL_INFEASIBLE:
            return Judgement(TRUE if infeasible else FALSE, "HiGHS", f"it says {status}")
        return Judgement(OPEN, "HiGHS")
    if status != highspy.HighsModelStatus.kOptimal:
        return Judgement(TRUE if found.status is IntegerStatus.FEASIBLE else OPEN, "checker")
    best = solver.getInfo().objective_function_value
    size = 1.0 + abs(best)
    if sign * (found.bound - best) > NEAR * size and sign * (found.objective - best) > NEAR * size:
        return Judgement(FALSE, "HiGHS", f"bound {found.bound!r}, a point has {best!r}")
    if found.status is IntegerStatus.OPTIMAL and sign * (found.objective - best) > NEAR * size:
        return Judgement(FALSE, "HiGHS", f"called optimal, a point has {best!r}")
    return Judgement(TRUE, "HiGHS")


def widest(lp: LinearProgram) -> float:
    """The longest interval that rows leave to the one continuous column, over all whole points; inf if not looked."""
    own = np.flatnonzero(~lp.integrality)
    size = lp.col_upper - lp.col_lower + 1.0
    whole = np.flatnonzero(lp.integrality)
    if len(own) != 1 or not len(whole) or not np.prod(size[whole]) <= MOST_POINTS:
        return INF
    matrix, best = lp.A.toarray(), -INF
    axes = [np.arange(lp.col_lower[j], lp.col_upper[j] + 1.0) for j in whole.tolist()]
    rest = np.stack([each.ravel() for each in np.meshgrid(*axes[1:], indexing="ij")]) if axes[1:] else np.zeros((0, 1))
    for value in axes[0].tolist():
        sums = matrix[:, whole[0], None] * value + matrix[:, whole[1:]] @ rest
        factor = matrix[:, own[0], None]
        low, high = lp.row_lower[:, None] - sums, lp.row_upper[:, None] - sums
        outside = (factor == 0) & ((low > 0) | (high < 0))
        with np.errstate(divide="ignore", invalid="ignore"):
            first, last = low / factor, high / factor
        begin = np.where(factor > 0, first, np.where(factor < 0, last, np.where(outside, INF, -INF))).max(axis=0)
        end = np.where(factor > 0, last, np.where(factor < 0, first, INF)).min(axis=0)
        length = np.minimum(end, lp.col_upper[own[0]]) - np.maximum(begin, lp.col_lower[own[0]])
        best = max(best, float(length.max()))
    return best


def page(rows: list[Row]) -> str:
    """The page."""
    together: dict[tuple[str, str, str, str, str], int] = {}
    for row in rows:
        case, seen = row.case, row.judgement
        verdict = f"{seen.verdict} (by {seen.by})" + (f": {seen.why}" if seen.verdict == FALSE else "")
        key = case.name, case.source, case.failed, row.says, verdict
        if case.source == SCIPY and seen.verdict == TRUE:  # they have no names: a row for all that one judge decides
            key = "programs", case.source, case.failed, "its verdict or optimum", verdict
        together[key] = together.get(key, 0) + 1
    lines = [
        f"| {name} | {source} | {failed} | {says}{f', {count} times' if count > 1 else ''} | {verdict} |"
        for (name, source, failed, says, verdict), count in together.items()
    ]
    totals = {
        verdict: sum(row.judgement.verdict == verdict for row in rows) for verdict in (TRUE, TOLERATED, OPEN, FALSE)
    }
    return "\n".join([
        "# Programs on which others failed",
        "",
        "Made by `python -m tests.adversary.corpora`; not edited by hand.",
        f"Commit and its date: {commit()}.",
        "",
        f"{len(rows):,} solves: " + ", ".join(f"{count} {verdict}" for verdict, count in totals.items())
        + ". The words are those of [trust.md](trust.md). Small models were written down anew from the reports; "
        "files are read from HiGHS's `check/instances`, SciPy's programs are what its own tests hand to `linprog`. "
        "An integer answer is decided by its proof in exact arithmetic where copter writes one, else by HiGHS without "
        "presolve.",
        "",
        "| instance | source | what failed elsewhere | copter says | verdict |",
        "|---|---|---|---|---|",
        *lines,
        "",
        "Not here:",
        "",
        *(f"- {source}: {why}." for source, why in ABSENT),
        "",
    ])  # fmt: skip


def main() -> int:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=Path, help="check/instances of a checkout of HiGHS")
    parser.add_argument("--page", action="store_true")
    arguments = parser.parse_args()
    rows = [decided(case) for case in written_down()]
    if arguments.files is not None:
        rows += [decided(case) for case in from_files(arguments.files)]
        for name, number in (("adlittle", 2913), ("25fv47", 3294)):
            case = Case(
                f"{name}.mps, sides changed", HIGHS.format(number), "another objective, or too much work, from a basis",
                partial(copter.read_mps, arguments.files / f"{name}.mps"),
            )  # fmt: skip
            rows += series(case)
    rows += [decided(case) for case in from_scipy()]
    for row in rows:
        if row.judgement.verdict in (FALSE, OPEN):
            print(row.case.name, row.case.source, row.says, row.judgement, file=sys.stderr)
    if arguments.page:
        PAGE.write_text(page(rows))
    return int(any(row.judgement.verdict == FALSE for row in rows))


if __name__ == "__main__":
    sys.exit(main())
