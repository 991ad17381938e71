"""What a first user tries: nothing, wrong values, shapes and types, damaged files: one clear word each."""

from __future__ import annotations

import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import copter
from copter import CopterError, InvalidDataError, LinearProgram, Settings, SettingsError, Status
from copter.runtime.settings import Internals

INF, NAN = math.inf, math.nan
GOOD: dict[str, Any] = {
    "c": [1.0, 2.0],
    "A": [[1.0, 1.0]],
    "row_lower": [1.0],
    "row_upper": [INF],
    "col_lower": [0.0, 0.0],
    "col_upper": [INF, INF],
}


@pytest.mark.parametrize("method", ["interior", "proximal"])
@pytest.mark.parametrize(
    ("lp", "status"),
    [
        (LinearProgram([], np.zeros((0, 0))), Status.OPTIMAL),
        (LinearProgram([1.0], np.zeros((0, 1))), Status.OPTIMAL),
        (LinearProgram([-1.0], np.zeros((0, 1))), Status.DUAL_INFEASIBLE),
        (LinearProgram([], np.zeros((2, 0)), row_upper=1.0), Status.OPTIMAL),
        (LinearProgram([], np.zeros((2, 0)), row_lower=1.0), Status.PRIMAL_INFEASIBLE),
    ],
    ids=["nothing", "no rows", "no rows, unbounded", "no columns", "no columns, infeasible"],
)
def test_programs_of_nothing(lp: LinearProgram, status: Status, method: Any) -> None:
    assert copter.solve(lp, Settings(method=method)).status is status


@pytest.mark.parametrize("wrong", [NAN, INF, -INF, "x", None])
@pytest.mark.parametrize("name", sorted(GOOD))
def test_a_value_that_cannot_be_is_named(name: str, wrong: object) -> None:
    values = np.array(GOOD[name], dtype=object)
    values.flat[0] = wrong
    allowed = {"row_lower": -INF, "col_lower": -INF, "row_upper": INF, "col_upper": INF}
    if isinstance(wrong, float) and allowed.get(name) == wrong:
        assert copter.solve(LinearProgram(**GOOD | {name: values.tolist()})).status is Status.OPTIMAL
        return
    with pytest.raises(CopterError, match=f"^{name}"):
        LinearProgram(**GOOD | {name: values.tolist()})


@pytest.mark.parametrize("shape", [(3,), (3, 3), (0,)])
@pytest.mark.parametrize("name", sorted(GOOD))
def test_a_wrong_shape_is_named(name: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(CopterError, match=name):
        LinearProgram(**GOOD | {name: np.ones(shape)})


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("huge", [1e200, -1e200])
@pytest.mark.parametrize("name", sorted(GOOD))
def test_huge_values_give_an_honest_status_without_warnings(name: str, huge: float) -> None:
    values = np.array(GOOD[name], dtype=float)
    values.flat[0] = huge
    if name.endswith("upper") and huge < 0:
        with pytest.raises(CopterError, match="is above upper bound"):
            LinearProgram(**GOOD | {name: values})
        return
    lp = LinearProgram(**GOOD | {name: values})
    solution = copter.solve(lp)
    assert solution.status in (Status.OPTIMAL, Status.DUAL_INFEASIBLE, Status.NUMERICAL_ERROR)
    if solution.status is Status.OPTIMAL:
        assert solution.residuals.within(1e-6, 1e-6)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", sorted(GOOD))
def test_beyond_what_can_be_multiplied_is_named(name: str) -> None:
    values = np.array(GOOD[name], dtype=float)
    values.flat[0] = -1e300 if name.endswith("lower") else 1e300
    lp = LinearProgram(**GOOD | {name: values})
    with pytest.raises(InvalidDataError, match=rf"^{name}.*1e\+300"):
        copter.solve(lp)


@pytest.mark.parametrize("wrong", [0, -1.0, NAN, "1", [1.0]])
def test_deadlines_that_are_none(wrong: Any) -> None:
    lp = LinearProgram(**GOOD)
    with pytest.raises(SettingsError, match="time_limit_s is"):
        Settings(time_limit_s=wrong)
    with pytest.raises(SettingsError, match=r"deadline_s is .*None for no deadline"):
        copter.solve_integer(lp, deadline_s=wrong)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("tolerance", "small"), ("tolerance", NAN), ("threads", 1.5), ("threads", INF),
        ("max_proximal_steps", INF), ("method", 3), ("time_limit_s", None),
    ],
)  # fmt: skip
def test_settings_that_cannot_be(name: str, wrong: Any) -> None:
    with pytest.raises(SettingsError, match=f"setting {name} is"):
        Settings(**{name: wrong})


def test_numbers_of_numpy_are_settings() -> None:
    made = Settings(
        tolerance=np.float32(1e-4), threads=np.int64(2), internals=Internals(purify=np.bool_(True)), time_limit_s=5
    )
    assert made.threads == 2


@pytest.mark.parametrize("solve", [copter.solve, copter.solve_integer])
def test_what_is_no_program_and_no_settings_is_said(solve: Any) -> None:
    with pytest.raises(copter.InvalidDataError, match="lp is a list, must be a LinearProgram"):
        solve([1.0, 2.0])
    with pytest.raises(SettingsError, match="settings is a dict, must be a Settings"):
        solve(LinearProgram(**GOOD), settings={"tolerance": 1e-6})


WHOLE = b"NAME T\nROWS\n N COST\n L R\nCOLUMNS\n X COST 1.0 R 1.0\nRHS\n RHS R 4.0\nENDATA\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("absent.mps", None, "cannot be read: No such file"),
        ("empty.mps", b"", "ends without ENDATA"),
        ("words.mps", b"hello\nworld\n", "'hello' is no section"),
        ("half.mps", WHOLE[:60], "ends without ENDATA|line"),
        ("cut.mps.gz", gzip.compress(WHOLE, mtime=0)[:-12], "Compressed file ended"),
        ("noise.mps", bytes(range(128, 256)) * 8, "is no section"),
    ],
)
@pytest.mark.parametrize("options", [(), ("--integer",), ("--json",)])
def test_damaged_files_on_the_command_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    content: bytes | None,
    message: str,
    options: tuple[str, ...],
) -> None:
    main = pytest.importorskip("copter_frontends.cli").main
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    code = exit_code(main, ["solve", str(path), *options])
    told = capsys.readouterr()
    assert code == 2
    assert told.out == ""
    assert len(told.err.strip().splitlines()) == 1
    assert name in told.err
    assert any(part in told.err for part in message.split("|"))


@pytest.mark.parametrize("option", ["--time-limit", "--tolerance"])
@pytest.mark.parametrize("value", ["0", "-1", "nan", "soon"])
def test_limits_that_are_none_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    main = pytest.importorskip("copter_frontends.cli").main
    path = tmp_path / "good.mps"
    path.write_bytes(WHOLE)
    assert exit_code(main, ["solve", str(path), option, value]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def exit_code(main: Any, arguments: list[str]) -> int:
    """What the command line ends with."""
    try:
        return int(main(arguments) or 0)
    except SystemExit as ended:
        return int(ended.code or 0)
