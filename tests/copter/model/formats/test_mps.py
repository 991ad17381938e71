"""MPS files: every rule of files.md on small texts, errors with their line, round trips, and HiGHS's reading."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import copter
from copter import CopterError, DimensionError, InvalidDataError, LinearProgram, read_mps, write_mps

INF = np.inf
DATA = Path(os.environ.get("COPTER_DATA", "../shared/data"))
SETS = ("netlib", "netlib_infeasible", "lp_small_highs", "miplib_small", "extra_lp")
FILES = sorted(path for name in SETS for path in (DATA / name).rglob("*.mps*"))
FIRST_SET = {"greenbea-infeas"}  # two sets of bounds: the first is the problem's; HiGHS puts both together
SEMICONTINUOUS = {"semi-continuous", "semi-integer"}  # HiGHS says so by their kind, and keeps the lower bound
QUADRATIC = {"atwood0"}

SMALL = """\
NAME          SMALL ONE
* a comment
ROWS
 N  COST
 L  LIM
 G  MIN
 E  EQ
 N  OTHER
COLUMNS
    X         COST              1.   LIM               2.
    X         OTHER             9.   EQ                1.
    Y         MIN            1.5D0   EQ               -1.
    Y         COST             -2.
RHS
    B         COST              5.   LIM               8.
    B         MIN               1.
RANGES
    R         LIM               3.   MIN              -2.
BOUNDS
 UP BND       X                 4.
ENDATA
"""


def read(tmp_path: Path, text: str) -> LinearProgram:
    path = tmp_path / "case.mps"
    path.write_text(text)
    return read_mps(path)


def bounds(tmp_path: Path, lines: str, mark: bool = False) -> tuple[float, float, bool]:
    """(lower, upper, integer) of a column after these lines of BOUNDS."""
    inside = "    X  R  1\n"
    if mark:
        inside = f"    M  'MARKER'  'INTORG'\n{inside}    M  'MARKER'  'INTEND'\n"
    lp = read(tmp_path, f"NAME\nROWS\n N  C\n G  R\nCOLUMNS\n{inside}RHS\nBOUNDS\n{lines}\nENDATA\n")
    return float(lp.col_lower[0]), float(lp.col_upper[0]), bool(lp.integrality[0])


def ranged(tmp_path: Path, kind: str, span: float) -> tuple[float, float]:
    """Bounds of a row with right-hand side 10 and this RANGES value."""
    text = f"ROWS\n N C\n {kind} R\nCOLUMNS\n X R 1\nRHS\n B R 10\nRANGES\n S R {span}\nENDATA\n"
    lp = read(tmp_path, text)
    return float(lp.row_lower[0]), float(lp.row_upper[0])


def differences(one: LinearProgram, two: LinearProgram) -> list[str]:
    """What is not the same in two programs."""
    names = ("c", "row_lower", "row_upper", "col_lower", "col_upper", "integrality", "semicontinuous")
    found = [name for name in names if not np.array_equal(getattr(one, name), getattr(two, name))]
    found += ["A"] if one.shape != two.shape or (one.A != two.A).nnz else []
    return found + [n for n in ("offset", "sense", "row_names", "col_names") if getattr(one, n) != getattr(two, n)]


def test_every_section(tmp_path):
    lp = read(tmp_path, SMALL)
    assert lp.name == "SMALL ONE"
    assert (lp.row_names, lp.col_names) == (("LIM", "MIN", "EQ"), ("X", "Y"))
    assert lp.c.tolist() == [1, -2]
    assert lp.A.toarray().tolist() == [[2, 0], [0, 1.5], [1, -1]]
    assert (lp.row_lower.tolist(), lp.row_upper.tolist()) == ([5, 1, 0], [8, 3, 0])
    assert (lp.col_lower.tolist(), lp.col_upper.tolist()) == ([0, 0], [4, INF])
    assert (lp.offset, lp.sense) == (-5.0, "min")
    assert not lp.integrality.any()


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (" UP B X 4", (0, 4, False)),
        (" UP B X -4", (-INF, -4, False)),
        (" LO B X -9\n UP B X -4", (-9, -4, False)),
        (" UP B X -4\n LO B X -9", (-9, -4, False)),
        (" UP B X 0", (0, 0, False)),
        (" UP B X 1e30", (0, INF, False)),
        (" LO B X 2", (2, INF, False)),
        (" LO B X -1e30", (-INF, INF, False)),
        (" FX B X 3", (3, 3, False)),
        (" FR B X", (-INF, INF, False)),
        (" MI B X", (-INF, INF, False)),
        (" MI B X\n UP B X 7", (-INF, 7, False)),
        (" UP B X 7\n PL B X", (0, INF, False)),
        (" BV B X", (0, 1, True)),
        (" LI B X 2", (2, INF, True)),
        (" UI B X 6", (0, 6, True)),
        (" UP X 4", (0, 4, False)),
        (" FR X", (-INF, INF, False)),
        (" MI X 0", (-INF, INF, False)),
        (" BV B X 1", (0, 1, True)),
        (" up B X 4", (0, 4, False)),
        ("", (0, INF, False)),
    ],
)
def test_every_bound_type(tmp_path, lines, expected):
    assert bounds(tmp_path, lines) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("", (0, 1, True)),
        (" PL B X", (0, INF, True)),
        (" LO B X 2", (2, INF, True)),
        (" UP B X 9", (0, 9, True)),
        (" FR B X", (-INF, INF, True)),
    ],
)
def test_integer_columns_between_markers(tmp_path, lines, expected):
    assert bounds(tmp_path, lines, mark=True) == expected


@pytest.mark.parametrize("kind", ["SC", "SI"])
def test_semicontinuous_columns(tmp_path, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bounds(tmp_path, f" {kind} B X 10\n LO B X 2") == (0, 10, kind == "SI")
        assert bounds(tmp_path, f" {kind} B X 10") == (0, 10, kind == "SI")
    for lines, expected in ((f" {kind} B X 1e30\n LO B X 2", (0, INF)), (f" {kind} B X -2\n LO B X -5", (-5, 0))):
        with pytest.warns(UserWarning, match="1 semi-continuous columns are relaxed"):
            assert bounds(tmp_path, lines) == (*expected, kind == "SI")
    with pytest.warns(UserWarning, match="1 semi-continuous columns have upper bounds below their lower ones"):
        assert bounds(tmp_path, f" {kind} B X 10\n LO B X 12") == (0, 0, kind == "SI")  # as HiGHS reads it
    with pytest.raises(InvalidDataError, match=r"column 'X': lower bound 12.0 is above upper bound -10.0"):
        bounds(tmp_path, f" {kind} B X -10\n LO B X 12")


def test_a_byte_order_mark_is_no_section(tmp_path):
    (tmp_path / "bom.mps").write_bytes("NAME a\nROWS\n N c\nCOLUMNS\n x c 1\nRHS\nENDATA\n".encode("utf-8-sig"))
    assert read_mps(tmp_path / "bom.mps").col_names == ("x",)


@pytest.mark.parametrize(
    ("kind", "span", "expected"),
    [
        ("L", 4, (6, 10)),
        ("L", -4, (6, 10)),
        ("G", 4, (10, 14)),
        ("G", -4, (10, 14)),
        ("E", 4, (10, 14)),
        ("E", -4, (6, 10)),
        ("E", 0, (10, 10)),
        ("G", 1e30, (10, INF)),
    ],
)
def test_every_sign_of_ranges(tmp_path, kind, span, expected):
    assert ranged(tmp_path, kind, span) == expected


def fixed(kind: str, first: str, second: str = "", value: str = "", third: str = "", other: str = "") -> str:
    """A line with its fields in the columns of fixed MPS."""
    return f" {kind:<2} {first:<8}  {second:<8}  {value:<12}   {third:<8}  {other}\n"


def test_fixed_layout_takes_names_with_blanks_and_sets_without_a_name(tmp_path):
    lines = ["NAME          BLANKS\n", "ROWS\n", fixed("N", "CO ST"), fixed("L", "ROW 1"), fixed("G", "ROW 2")]
    lines += ["COLUMNS\n", fixed("", "COL 1", "CO ST", "1.", "ROW 1", "2."), fixed("", "COL 1", "ROW 2", "3.")]
    lines += [fixed("", "MARKER", "'MARKER'", "", "'INTORG'"), fixed("", "COL 2", "ROW 1", "-4.")]
    lines += [fixed("", "MARKER", "'MARKER'", "", "'INTEND'"), "RHS\n", fixed("", "", "ROW 1", "8.", "ROW 2", "1.")]
    lines += ["BOUNDS\n", fixed("UP", "", "COL 1", "5."), fixed("UP", "", "COL 2", "6."), "ENDATA\n"]
    lp = read(tmp_path, "".join(lines))
    assert (lp.row_names, lp.col_names) == (("ROW 1", "ROW 2"), ("COL 1", "COL 2"))
    assert lp.A.toarray().tolist() == [[2, -4], [3, 0]]
    assert (lp.row_lower.tolist(), lp.row_upper.tolist()) == ([-INF, 1], [8, INF])
    assert (lp.col_upper.tolist(), lp.integrality.tolist()) == ([5, 6], [False, True])
    write_mps(lp, tmp_path / "again.mps")
    assert differences(lp, read_mps(tmp_path / "again.mps")) == []


def test_blank_set_names_and_sections_in_column_one(tmp_path):
    text = "ROWS\n N C\n L R\n G S\nCOLUMNS\n X R 1 S 1\n X C 1\nRHS\n R 5 S 2\nRHS C 1\nRANGES\n R 3\nENDATA\n"
    with pytest.warns(UserWarning, match="only the first set, ''"):
        lp = read(tmp_path, text)
    assert (lp.row_lower.tolist(), lp.row_upper.tolist(), lp.offset) == ([2, 2], [5, INF], 0.0)


@pytest.mark.parametrize(("word", "sense"), [("MAX", "max"), ("Maximize", "max"), ("MIN", "min"), ("minimise", "min")])
@pytest.mark.parametrize("form", ["OBJSENSE\n    {}\n", "OBJSENSE {}\n"])
def test_the_sense(tmp_path, word, sense, form):
    assert read(tmp_path, SMALL.replace("ROWS\n", form.format(word) + "ROWS\n")).sense == sense


def test_the_objective_can_be_named(tmp_path):
    lp = read(tmp_path, SMALL.replace("ROWS\n", "OBJNAME\n    OTHER\nROWS\n"))
    assert (lp.c.tolist(), lp.offset) == ([9, 0], 0.0)


def test_duplicates_are_summed(tmp_path):
    text = "ROWS\n N C\n L R\nCOLUMNS\n X R 1 R 2\n X C 1\n Y R 5\n X R 4 C 2\nRHS\nENDATA\n"
    lp = read(tmp_path, text)
    assert (lp.A.toarray().tolist(), lp.c.tolist()) == ([[7, 5]], [3, 0])


def test_only_the_first_set_is_read(tmp_path):
    with pytest.warns(UserWarning, match="first set, 'B1'"):
        assert bounds(tmp_path, " UP B1 X 4\n UP B2 X 9") == (0, 4, False)


def test_gzip_is_told_by_content_and_lines_may_end_in_crlf(tmp_path):
    (tmp_path / "odd.txt").write_bytes(gzip.compress(SMALL.replace("\n", "\r\n").encode()))
    assert differences(read_mps(tmp_path / "odd.txt"), read(tmp_path, SMALL)) == []


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        (" L  LIM", " Q  LIM", 5, "row type 'Q'"),
        (" E  EQ", " E  LIM", 7, "'LIM' is there twice"),
        ("    Y         COST             -2.", "    Y         COZT             -2.", 13, "'COZT' is not in ROWS"),
        ("    Y         COST             -2.", "    Y         COST             -2x", 13, "'-2x' is not a number"),
        ("    Y         COST             -2.", "    Y         COST             nan", 13, "'nan'"),
        ("    Y         COST             -2.", "    Y         COST             inf", 13, "must be finite"),
        ("    Y         COST             -2.", "    Y         COST", 13, "COLUMNS"),
        ("    B         MIN               1.", "    B         MEN               1.", 16, "'MEN' is not in ROWS"),
        (" UP BND       X                 4.", " UP BND       Z                 4.", 20, "'Z' is not in COLUMNS"),
        (" UP BND       X                 4.", " UQ BND       X                 4.", 20, "bound type 'UQ'"),
        (" UP BND       X                 4.", " UP BND       X", 20, "'BND' is not in COLUMNS"),
        ("ENDATA\n", "", 21, "without ENDATA"),
        ("BOUNDS\n", "QUADOBJ\n", 19, "quadratic"),
        ("RANGES\n", "RHS\n", 17, "second section RHS"),
        ("ROWS\n", "OBJSENSE\n    UP\nROWS\n", 4, "MAX or MIN"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, old, new, line, message):
    assert old in SMALL
    with pytest.raises(InvalidDataError, match=message) as caught:
        read(tmp_path, SMALL.replace(old, new, 1))
    assert f"case.mps, line {line}:" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"hello", b"NAME x\nENDATA\n", b"\x1f\x8bnot gzip", b"    X Y 1\n"])
def test_what_is_no_mps_file_is_said(tmp_path, content):
    (tmp_path / "x.mps").write_bytes(content)
    with pytest.raises(InvalidDataError, match=r"x\.mps"):
        read_mps(tmp_path / "x.mps")
    with pytest.raises(InvalidDataError, match="cannot be read"):
        read_mps(tmp_path / "absent.mps")


def test_crossed_bounds_name_the_file(tmp_path):
    with pytest.raises(InvalidDataError, match=r"case\.mps: column 0: lower bound"):
        bounds(tmp_path, " LO B X 4\n UP B X 3")


def test_what_cannot_be_written_is_said_and_leaves_the_file(tmp_path):
    path = tmp_path / "kept.mps"
    path.write_text("kept")
    with pytest.raises(InvalidDataError, match="1e20"):
        write_mps(LinearProgram([1.0], [[1.0]], row_upper=1e25), path)
    with pytest.raises(InvalidDataError, match="8 characters"):
        write_mps(LinearProgram([1.0], [[1.0]], col_names=["a long name"]), path)
    with pytest.raises(InvalidDataError, match="12 characters"):
        write_mps(LinearProgram([1 / 3], [[1.0]], col_names=["a b"]), path)
    with pytest.raises(CopterError, match="cannot be written"):
        write_mps(LinearProgram([1.0], [[1.0]]), tmp_path / "no" / "folder.mps")
    assert path.read_text() == "kept"


def test_names_are_checked():
    with pytest.raises(DimensionError, match="col_names holds 2 names, must hold 1"):
        LinearProgram([1.0], [[1.0]], col_names=["a", "b"])
    with pytest.raises(InvalidDataError, match="'a' twice"):
        LinearProgram([1.0, 2.0], [[1.0, 1.0]], col_names=["a", "a"])
    with pytest.raises(InvalidDataError, match=r"row_names\[0\]"):
        LinearProgram([1.0], [[1.0]], row_names=[""])


NUMBERS = st.floats(-1e15, 1e15, allow_nan=False, width=64)
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=1, max_size=12)


@st.composite
def programs(draw: st.DrawFn) -> LinearProgram:
    m, n = draw(st.integers(0, 4)), draw(st.integers(0, 4))

    def pairs(size: int) -> tuple[list[float], list[float]]:
        kinds = st.sampled_from(["free", "lower", "upper", "both", "fixed"])
        low, high = [], []
        for _ in range(size):
            kind, value, width = draw(kinds), draw(NUMBERS), draw(st.integers(1, 2**20))
            whole = float(np.round(value / 1e6))  # ranges whose other end is exact
            low.append({"free": -INF, "upper": -INF, "both": whole}.get(kind, value))
            high.append({"free": INF, "lower": INF, "both": whole + width}.get(kind, value))
        return low, high

    names = st.none() | st.lists(NAMES, min_size=m, max_size=m, unique=True)
    columns = st.none() | st.lists(NAMES, min_size=n, max_size=n, unique=True)
    entries = draw(st.lists(NUMBERS | st.just(0.0), min_size=m * n, max_size=m * n))
    return LinearProgram(
        draw(st.lists(NUMBERS, min_size=n, max_size=n)),
        np.array(entries).reshape(m, n),
        *pairs(m),
        *pairs(n),
        draw(st.lists(st.booleans(), min_size=n, max_size=n)),
        draw(st.sampled_from(["min", "max"])),
        draw(NUMBERS),
        draw(names),
        draw(columns),
    )


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(programs())
def test_what_is_written_reads_back_the_same(tmp_path_factory, lp):
    path = tmp_path_factory.mktemp("round") / "trip.mps.gz"
    write_mps(lp, path)
    again = read_mps(path)
    default = LinearProgram(
        lp.c, lp.A, row_names=[f"r{i}" for i in range(lp.shape[0])], col_names=[f"c{j}" for j in range(lp.shape[1])]
    )
    found = differences(lp, again)
    assert set(found) <= {"row_names", "col_names"}
    for name in found:
        assert getattr(lp, name) is None
        assert getattr(again, name) == getattr(default, name)


def test_importing_copter_imports_no_reader():
    code = "import sys, copter; assert not [m for m in sys.modules if 'mps' in m or 'highspy' in m]; copter.read_mps"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert {"read_mps", "write_mps"} <= set(dir(copter))
    with pytest.raises(AttributeError, match="no_such"):
        _ = copter.no_such


def as_highs_reads(path: Path) -> LinearProgram:
    """The same file through HiGHS's reader."""
    import highspy

    solver = highspy.Highs()
    solver.silent()
    solver.readModel(str(path))
    lp = solver.getLp()
    shape = (lp.num_row_, lp.num_col_)
    matrix = sp.csc_array((lp.a_matrix_.value_, lp.a_matrix_.index_, lp.a_matrix_.start_), shape=shape)
    kinds = (highspy.HighsVarType.kInteger, highspy.HighsVarType.kSemiInteger)
    return LinearProgram(
        lp.col_cost_,
        matrix,
        lp.row_lower_,
        lp.row_upper_,
        lp.col_lower_,
        lp.col_upper_,
        [kind in kinds for kind in lp.integrality_] or None,
        "max" if lp.sense_ == highspy.ObjSense.kMaximize else "min",
        lp.offset_,
        list(lp.row_names_),
        list(lp.col_names_),
    )


@pytest.mark.slow
@pytest.mark.skipif(not FILES, reason=f"no LP files under {DATA}: set COPTER_DATA")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.split(".mps")[0])
def test_files_read_as_highs_reads_them_and_survive_writing(path, tmp_path):
    pytest.importorskip("highspy")
    name = path.name.split(".mps")[0]
    if name in QUADRATIC:
        with pytest.raises(InvalidDataError, match="quadratic"):
            read_mps(path)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lp = read_mps(path)
    reference = as_highs_reads(path)
    matrix = lp.A.copy()
    matrix.data[np.abs(matrix.data) <= 1e-9] = 0.0  # HiGHS drops such entries
    kept = LinearProgram(**vars(lp) | {"A": matrix})
    allowed = {"col_lower", "col_upper"} if name in FIRST_SET else set()
    allowed |= {"integrality", "col_lower", "semicontinuous"} if name in SEMICONTINUOUS else set()
    assert set(differences(kept, reference)) <= allowed
    write_mps(lp, tmp_path / "again.mps.gz")
    assert differences(lp, read_mps(tmp_path / "again.mps.gz")) == []
