"""LP files: what each form means, what is refused and how, and that writing loses nothing."""

from __future__ import annotations

import gzip
from pathlib import Path

import highspy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter import InvalidDataError, LinearProgram, read_lp, solve_integer, write_lp
from copter.model.formats.lp import LpError
from copter.model.formats.lp_tokens import LONGEST_LINE

INF = np.inf

WHOLE = r"""\Problem name: tiny
Maximize
 obj: 3 x + 2y - 4 z + 5   \ a comment
Subject To
 c1: x + y + z <= 10
 c2: 2 <= x - y
   <= 8
 3 x + 2 z >= -1
 r: -4 >= - x - z
 eq: x
  + y = 4
Bounds
 -inf <= z <= 5
 x <= 40
 y >= 1
 w free
General
 x
Binary
 b1 b2
End
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "program.lp"
    path.write_text(text)
    return path


def one(folder: Path, rows: str = " r: x >= 1", bounds: str = "") -> LinearProgram:
    return read_lp(written(folder, f"min\n x\nst\n{rows}\n{bounds}\nend\n"))


def test_every_section(tmp_path: Path) -> None:
    lp = read_lp(written(tmp_path, WHOLE))
    assert (lp.name, lp.sense, lp.offset) == ("tiny", "max", 5.0)
    assert lp.col_names == ("x", "y", "z", "w", "b1", "b2")
    assert lp.row_names == ("c1", "c2", "R3", "r", "eq")
    assert lp.c.tolist() == [3, 2, -4, 0, 0, 0]
    assert lp.A.toarray()[:, :3].tolist() == [[1, 1, 1], [1, -1, 0], [3, 0, 2], [-1, 0, -1], [1, 1, 0]]
    assert lp.row_lower.tolist() == [-INF, 2, -1, -INF, 4]
    assert lp.row_upper.tolist() == [10, 8, INF, -4, 4]
    assert lp.col_lower.tolist() == [0, 1, -INF, -INF, 0, 0]
    assert lp.col_upper.tolist() == [40, INF, 5, INF, 1, 1]
    assert lp.integrality.tolist() == [True, False, False, False, True, True]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x <= 5", (0, 5)),
        ("5 >= x", (0, 5)),
        ("x >= -2", (-2, INF)),
        ("-2 <= x", (-2, INF)),
        ("-2 <= x <= 5", (-2, 5)),
        ("5 >= x >= -2", (-2, 5)),
        ("x = 3", (3, 3)),
        ("3 = x", (3, 3)),
        ("x free", (-INF, INF)),
        ("x FREE", (-INF, INF)),
        ("-infinity <= x <= 2", (-INF, 2)),
        ("x >= -1e30", (-INF, INF)),
        ("x <= +inf", (0, INF)),
        ("x <= 5\nx >= 2", (2, 5)),
        ("x =< 5\nx => 2", (2, 5)),
        ("x < 5\nx > 2", (2, 5)),
    ],
)
def test_every_bound(tmp_path: Path, line: str, expected: tuple[float, float]) -> None:
    lp = one(tmp_path, bounds=f"Bounds\n{line}")
    assert (lp.col_lower[0], lp.col_upper[0]) == expected


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("x + y <= 3", (-INF, 3)),
        ("3 >= x + y", (-INF, 3)),
        ("1 <= x + y <= 3", (1, 3)),
        ("3 >= x + y >= 1", (1, 3)),
        ("x + y + 2 <= 3", (-INF, 1)),
        ("x + y = - 3", (-3, -3)),
        ("x - -1 y >= -inf", (-INF, INF)),
        ("a:x+1.y>=.5e1", (5, INF)),
        ("0.5 x + y + 0.5 x <= 3", (-INF, 3)),
    ],
)
def test_every_row(tmp_path: Path, row: str, expected: tuple[float, float]) -> None:
    lp = one(tmp_path, row)
    assert (lp.row_lower[0], lp.row_upper[0]) == expected
    assert lp.A.toarray().tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize("name", ["x[1,2]", "x(1)", "_a.b", "flow#3", "ä1", "e", "inferno", "freedom", "stop"])
def test_names(tmp_path: Path, name: str) -> None:
    assert one(tmp_path, f"3 {name} + x <= 4").col_names == ("x", name)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("min\n [ x^2 ]\nst\nend\n", 2, "quadratic"),
        ("min\n x\nst\n c: b = 1 -> x <= 3\nend\n", 4, "indicator"),
        ("min\n x\nst\n c: x <= y\nend\n", 4, "right-hand sides and bounds hold no columns"),
        ("min\n x\nst\n c: x + <= 3\nend\n", 4, "a term must be"),
        ("min\n x\nst\n c: x 3\nend\n", 4, "needs <=, >= or ="),
        ("min\n x\nst\n c: x <= 3\n c: x >= 1\nend\n", 5, "two rows"),
        ("min\n x\nst\n c: 5 <= x <= 3\nend\n", 4, "crossed"),
        ("min\n x\nst\n c: x <=\nend\n", 4, "in the middle"),
        ("min\n x\nst\nbounds\n x <= -5\nend\n", 5, "crosses"),
        ("min\n x\nst\nbounds\n x\nend\n", 5, "no bound behind it"),
        ("min\n x\nst\nbounds\n 3 <= 4\nend\n", 5, "the name of a column"),
        ("min\n x\nst\ngeneral\n 3\nend\n", 5, "names only"),
        ("min\n x\nst\nsos\nend\n", 4, "special ordered sets"),
        ("min\n 1e400 x\nst\nend\n", 2, "infinite"),
        ("min\n x\nst\nst\nend\n", 4, "second section"),
        ("x\nend\n", 1, "begin with Minimize"),
        ("end\n", 1, "no objective"),
        ("st\n x >= 1\nend\n", 1, "begin with Minimize"),
        ("min\n x y\nst\nend\n", 2, "not part of the objective"),
        ("", 1, "End"),
        ("min\n \0x\nst\nend\n", 2, "NUL"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, text: str, line: int, message: str) -> None:
    with pytest.raises(LpError, match=message) as caught:
        read_lp(written(tmp_path, text))
    assert caught.value.line_number == line
    assert len(str(caught.value)) < 600


def test_hostile_files_get_short_answers(tmp_path: Path) -> None:
    with pytest.raises(LpError, match="cannot be read"):
        read_lp(tmp_path / "none.lp")
    (tmp_path / "broken.lp").write_bytes(b"\x1f\x8b" + b"junk" * 100)
    with pytest.raises(LpError, match="cannot be read"):
        read_lp(tmp_path / "broken.lp")
    with gzip.open(tmp_path / "bomb.lp", "wb") as file:
        for _ in range(20):
            file.write(b"x" * 1_000_000)
    with pytest.raises(LpError, match="unpacks to more than"):
        read_lp(tmp_path / "bomb.lp")
    (tmp_path / "long.lp").write_bytes(b"x" * (LONGEST_LINE + 2))
    with pytest.raises(LpError, match=f"longer than {LONGEST_LINE:,} bytes"):
        read_lp(tmp_path / "long.lp")
    long_name = "x" * 100_000
    with pytest.raises(LpError) as caught:
        read_lp(written(tmp_path, f"min\n x\nst\n c: 3 <= {long_name} <= 1\nend\n"))
    assert len(str(caught.value)) < 600


def test_semicontinuous_columns_are_zero_or_within_their_bounds(tmp_path: Path) -> None:
    lp = read_lp(written(tmp_path, "min\n x + y\nst\n c: x + y >= 1\nbounds\n 2 <= x <= 8\nsemi-continuous\n x\nend\n"))
    assert (lp.col_lower[0], lp.col_upper[0]) == (0.0, 8.0)
    assert lp.semicontinuous.tolist() == [2.0, 0.0]
    found = solve_integer(lp)
    assert found.x is not None
    assert found.x.tolist() == [0.0, 1.0]


def test_semicontinuous_columns_without_an_upper_bound_are_relaxed(tmp_path: Path) -> None:
    path = written(tmp_path, "min\n x\nst\nbounds\n x >= 2\nsemi-continuous\n x\nend\n")
    with pytest.warns(UserWarning, match="relaxed"):
        lp = read_lp(path)
    assert (lp.col_lower[0], lp.semicontinuous[0]) == (0.0, 0.0)


def test_semicontinuous_columns_go_to_a_file_and_back(tmp_path: Path) -> None:
    lp = LinearProgram(
        [1.0, -2.0], [[1.0, 1.0]], col_upper=[9.0, 4.0], integrality=[True, False], semicontinuous=[2.5, 0.0]
    )
    write_lp(lp, tmp_path / "semi.lp")
    again = read_lp(tmp_path / "semi.lp")
    assert again.semicontinuous.tolist() == [2.5, 0.0]
    assert again.integrality.tolist() == [True, False]
    assert again.col_upper.tolist() == [9.0, 4.0]
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.readModel(str(tmp_path / "semi.lp"))
    kinds = [kind.name for kind in highs.getLp().integrality_]
    assert kinds == ["kSemiInteger", "kContinuous"]


@pytest.mark.parametrize(
    ("lp", "message"),
    [
        (LinearProgram([1.0], [[1.0]], col_names=["a b"]), "cannot stand"),
        (LinearProgram([1.0], [[1.0]], row_names=["End"]), "cannot stand"),
        (LinearProgram([1.0], [[1.0]], row_names=["1st"]), "cannot stand"),
        (LinearProgram([1.0], [[1.0]], col_upper=[1e25]), "1e20"),
        (LinearProgram([], np.zeros((1, 0))), "without a column"),
    ],
)
def test_what_cannot_be_written_is_said_and_leaves_the_file(tmp_path: Path, lp: LinearProgram, message: str) -> None:
    path = written(tmp_path, "as it was")
    with pytest.raises(InvalidDataError, match=message):
        write_lp(lp, path)
    assert path.read_text() == "as it was"


NUMBERS = st.floats(-1e15, 1e15, allow_nan=False, width=64)


@st.composite
def programs(draw: st.DrawFn) -> LinearProgram:
    n = draw(st.integers(1, 4))
    m = draw(st.integers(0, 4))

    def pairs(size: int) -> tuple[list[float], list[float]]:
        ends = [sorted((draw(NUMBERS), draw(NUMBERS))) for _ in range(size)]
        open_ = [draw(st.tuples(st.booleans(), st.booleans())) for _ in range(size)]
        low = [-INF if is_open[0] else each[0] for each, is_open in zip(ends, open_, strict=True)]
        high = [INF if is_open[1] else each[1] for each, is_open in zip(ends, open_, strict=True)]
        return low, high

    entries = draw(st.lists(NUMBERS | st.just(0.0), min_size=m * n, max_size=m * n))
    return LinearProgram(
        draw(st.lists(NUMBERS, min_size=n, max_size=n)),
        np.array(entries).reshape(m, n),
        *pairs(m),
        *pairs(n),
        draw(st.lists(st.booleans(), min_size=n, max_size=n)),
        draw(st.sampled_from(["min", "max"])),
        draw(NUMBERS),
    )


@settings(max_examples=40, deadline=None)
@given(lp=programs())
def test_what_is_written_reads_back_the_same(tmp_path_factory: pytest.TempPathFactory, lp: LinearProgram) -> None:
    path = tmp_path_factory.mktemp("round") / "trip.lp.gz"
    write_lp(lp, path)
    again = read_lp(path)
    assert (again.sense, again.offset) == (lp.sense, lp.offset)
    np.testing.assert_array_equal(again.A.toarray(), lp.A.toarray())
    for name in ("c", "row_lower", "row_upper", "col_lower", "col_upper", "integrality"):
        np.testing.assert_array_equal(getattr(again, name), getattr(lp, name), err_msg=name)


def test_highs_reads_what_is_written(tmp_path: Path) -> None:
    """All but ranges, which HiGHS 1.15 reads as two rows, the first without its columns."""
    highspy = pytest.importorskip("highspy")
    lp = read_lp(written(tmp_path, WHOLE.replace(" c2: 2 <= x - y\n   <= 8\n", " c2: x - y <= 8\n")))
    write_lp(lp, tmp_path / "out.lp")
    solver = highspy.Highs()
    solver.silent()
    assert solver.readModel(str(tmp_path / "out.lp")) == highspy.HighsStatus.kOk
    found = solver.getLp()
    assert list(found.col_names_) == list(lp.col_names or ())
    assert (list(found.row_lower_), list(found.row_upper_)) == (lp.row_lower.tolist(), lp.row_upper.tolist())
    assert (list(found.col_lower_), list(found.col_upper_)) == (lp.col_lower.tolist(), lp.col_upper.tolist())
    assert list(found.a_matrix_.value_) == lp.A.data.tolist()
    assert found.offset_ == lp.offset
    solver.writeModel(str(tmp_path / "theirs.lp"))
    theirs = read_lp(tmp_path / "theirs.lp")
    assert theirs.c.tolist() == lp.c.tolist()
    assert theirs.integrality.tolist() == lp.integrality.tolist()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("c1: 3 x >= 2 y + 4\n c2: y >= 1", r"line 4: 'y' stands behind a right-hand side: columns go to the left"),
        ("3 x >= 2 y + 4\n y >= 1", r"line 4: 'y' stands behind"),
        ("c1: 3 x >= 2 + 4\n c2: y >= 1", r"line 4: '\+' stands behind a right-hand side: .*constants are added up"),
        ("c1: 3 x >= 2 - y\n c2: y >= 1", r"line 4: '-' stands behind"),
        ("c1: 3 x + y\n c2: y >= 1", r"line 4: the line ends with 'y', and <=, >= or = .* is missing before 'c2'"),
        ("c1: 3 x + y >=\n c2: y >= 1", r"line 4: the line ends with '>=', and a number is missing before 'c2'"),
        ("c1: 3 x +\n c2: y >= 1", r"line 4: the line ends with '\+', and a term is missing before 'c2'"),
        ("c1: x >= 1\nbounds\n x <= 5 + 3\n y <= 3", r"line 6: the line ends with '3', and <=, >= or ="),
        ("c1: x >= 1\nbounds\n x <=\n y <= 3", r"line 6: the line ends with '<=', and a number is missing before 'y'"),
    ],
)
def test_the_line_that_is_wrong_is_blamed_not_the_next(tmp_path: Path, rows: str, message: str) -> None:
    with pytest.raises(LpError, match=message):
        read_lp(written(tmp_path, f"min\n x\nst\n {rows}\nend\n"))


def test_rows_on_one_line_and_over_lines_are_still_read(tmp_path: Path) -> None:
    lp = read_lp(written(tmp_path, "min\n x\nst\n c1: x >= 4 c2: y >= 1\n c3: x +\n y\n >= 2\n 1 <= x <= 9\nend\n"))
    assert lp.row_names == ("c1", "c2", "c3", "R4")
    assert lp.row_lower.tolist() == [4.0, 1.0, 2.0, 1.0]


def test_a_file_without_end_is_read_with_a_warning(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="ends without End: it may be cut short") as told:
        lp = read_lp(written(tmp_path, "min\n x\nst\n c1: x >= 2\n"))
    assert lp.row_lower.tolist() == [2.0]
    assert told[0].filename == __file__
    with (
        pytest.raises(LpError, match="ends in the middle of a relation"),
        pytest.warns(UserWarning, match="without End"),
    ):
        read_lp(written(tmp_path, "min\n x\nst\n c1: x >=\n"))
    with pytest.raises(LpError, match="without Subject To and End"):
        read_lp(written(tmp_path, "min\n x\n"))


def test_a_byte_order_mark_is_no_word(tmp_path: Path) -> None:
    text = "min\n x\nst\n c1: x >= 2\nend\n"
    for data in (text.encode("utf-8-sig"), gzip.compress(text.encode("utf-8-sig"))):
        (tmp_path / "bom.lp").write_bytes(data)
        assert read_lp(tmp_path / "bom.lp").row_lower.tolist() == [2.0]
    (tmp_path / "bom.lp").write_bytes(text.encode("utf-16"))
    with pytest.raises(LpError, match="UTF-16: save it as UTF-8"):
        read_lp(tmp_path / "bom.lp")
