"""MPS files that are large, damaged or ambiguous: short errors with their line, no memory to speak of, no silence."""

from __future__ import annotations

import gzip
import pickle
import subprocess
import sys
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest

import copter
from copter import CopterError, LinearProgram, Model, Session, SnapshotError
from copter.model.formats.text_lines import FREELY, TIMES

HEAD = "NAME t\nROWS\n N c\n L r\nCOLUMNS\n"
TAIL = "RHS\n RHS r 4\nENDATA\n"


def read(folder: Path, columns: str, tail: str = TAIL) -> LinearProgram:
    path = folder / "t.mps"
    path.write_text(HEAD + columns + tail)
    return copter.read_mps(path)


@pytest.mark.parametrize(
    ("columns", "tail", "line"),
    [
        (" x c 4_0 r 1\n", TAIL, 6),
        (" x c 1 r 1_0\n", TAIL, 6),
        (" x c 1e400 r 1\n", TAIL, 6),
        (" x c 1 r -1e999\n", TAIL, 6),
        (" x c 1 r 1\n", "RHS\n RHS r 1e400\nENDATA\n", 8),
        (" x c 1 r 1\n", "RHS\n RHS r 1\nBOUNDS\n UP B x 2_5\nENDATA\n", 10),
        (" x c 1 r 1\n", "RHS\n RHS r 1\nBOUNDS\n UP B x 1e400\nENDATA\n", 10),
    ],
)
def test_numbers_that_are_none_are_named_with_their_line(tmp_path: Path, columns: str, tail: str, line: int) -> None:
    with pytest.raises(CopterError, match=f"line {line}: "):
        read(tmp_path, columns, tail)


def test_infinite_bounds_in_words_are_fine(tmp_path: Path) -> None:
    lp = read(tmp_path, " x c 1 r 1\n", "RHS\n RHS r Inf\nBOUNDS\n UP B x 1e30\nENDATA\n")
    assert lp.row_upper[0] == lp.col_upper[0] == np.inf


@pytest.mark.parametrize("line", ["\x1f", "\x1c\x1d", "\x85", "\xa0", "\x0b\x0c"])
def test_lines_of_strange_blanks_are_blank(tmp_path: Path, line: str) -> None:
    """Found by the fuzzer: they begin with no blank of MPS, and hold no word."""
    path = tmp_path / "t.mps"
    path.write_bytes(line.encode("latin-1"))
    with pytest.raises(CopterError, match="ends without ENDATA"):
        copter.read_mps(path)
    path.write_bytes(f"{line}\n{HEAD} x c 1 r 1\n{line}\n{TAIL}".encode("latin-1"))
    assert copter.read_mps(path).shape == (1, 1)


def test_an_entry_given_twice_is_added_up_with_a_warning(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"line 7: column 'x' has a second entry in row 'r'"):
        lp = read(tmp_path, " x c 1 r 1\n x r 2\n")
    assert lp.A.toarray().tolist() == [[3.0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(tmp_path, " x c 1 r 1\n y c 1 r 2\n")


def test_a_gzip_of_blank_lines_takes_no_memory(tmp_path: Path) -> None:
    """292 KB that unpack to 300 MB: refused with less than 200 MB more than an import takes."""
    path = tmp_path / "t.mps.gz"
    with gzip.open(path, "wb", compresslevel=9) as file:
        for _ in range(60):
            file.write(b"\n" * 5_000_000)
    program = (
        "import copter\n"
        "from copter import read_mps\n"
        f"try: read_mps({str(path)!r})\n"
        "except copter.CopterError as e: print(e)\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    most = max(FREELY, TIMES * path.stat().st_size)
    assert f"unpacks to more than {most:,} bytes" in found[0]
    assert int(found[1]) < 400_000  # kilobytes; imports alone are about 100,000


@pytest.mark.parametrize(
    "data", [b"\0" * 3_000_000, b"x" * 3_000_000, b"NAME " + b"\xff" * 60_000, b"ROWS\n " + b"y" * 60_000]
)
def test_messages_are_short(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "t.mps"
    path.write_bytes(data)
    with pytest.raises(CopterError) as caught:
        copter.read_mps(path)
    assert len(str(caught.value)) < 600 + len(str(path))


def test_solutions_can_be_pickled() -> None:
    lp = LinearProgram([1.0, 2.0], [[1.0, 1.0]], row_lower=1.0)
    for found in (copter.solve(lp), copter.solve(lp, copter.Settings(method="proximal"))):
        again = pickle.loads(pickle.dumps(found))
        assert np.array_equal(again.x, found.x)
        assert np.array_equal(again.y, found.y)
        assert again.objective == found.objective
    ray = copter.solve(LinearProgram([1.0], [[1.0]], row_lower=2.0, col_upper=1.0))
    assert np.array_equal(pickle.loads(pickle.dumps(ray)).ray, ray.ray)
    model = Model()
    model.add_resources("g", 1)
    model.add_request("r", [1.0, 3.0], {"g": [1, 2]})
    solution = Session(model).solve()
    again = pickle.loads(pickle.dumps(solution))
    assert np.array_equal(again.x, solution.x)
    assert again.price("g") == solution.price("g")
    assert np.array_equal(again.of("r"), solution.of("r"))


def test_a_row_named_again_and_again_ends_the_reading_at_once(tmp_path: Path) -> None:
    path = tmp_path / "t.mps"
    path.write_text("NAME t\nROWS\n N c\n" + " L  r\n" * 100_000)
    tracemalloc.start()
    with pytest.raises(CopterError, match="line 5: row 'r' is there twice"):
        copter.read_mps(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000_000


def test_a_session_is_not_read_from_what_has_no_end() -> None:
    with pytest.raises(SnapshotError, match="no regular file"):
        Session.load("/dev/zero")


def test_a_large_foreign_file_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "zeros"
    with path.open("wb") as file:
        file.truncate(1 << 36)
    with pytest.raises(SnapshotError, match="is not a copter snapshot"):
        Session.load(path)
