"""Records, lines and the logger of solves."""

from __future__ import annotations

import logging
import re

import numpy as np
import pytest

import copter
from copter import LinearProgram, Model, Progress, Session, Status, with_record

LINE = re.compile(r" *\d+  gap +\d\.\d\de[+-]\d\d  violation +\d\.\d\de[+-]\d\d  +\d+\.\d{3} s")


def model() -> Model:
    rng = np.random.default_rng(0)
    made = Model()
    for resource in range(3):
        made.set_count(resource, 5.0)
    for request in range(40):
        made.add_request(request, rng.uniform(1, 2, 3), {r: np.eye(3)[r] for r in range(3)})
    return made


def program() -> LinearProgram:
    rng = np.random.default_rng(0)
    return LinearProgram(-rng.uniform(1, 2, 30), rng.uniform(0.1, 1, (10, 30)), None, np.full(10, 3.0))


def test_a_callback_with_a_record() -> None:
    records: list[Progress] = []
    Session(model()).solve(callback=with_record(records.append))
    assert records
    assert [each.passes for each in records] == sorted(each.passes for each in records)
    assert all(LINE.fullmatch(each.line) for each in records)
    assert copter.solve(program(), callback=with_record(lambda now: True)).status is Status.INTERRUPTED


def test_verbose_lines_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    copter.solve(program(), verbose=True)
    Session(model()).solve(verbose=True)
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert all(line.startswith("copter ") for line in lines)
    assert [line.split()[1] for line in lines if not LINE.fullmatch(line.removeprefix("copter "))] == [
        "solve",
        "session",
    ]
    assert len(lines) > 3


def test_the_logger(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="copter"):
        Session(model()).solve()
    assert [record.message.split()[:2] for record in caplog.records] == [["session", "optimal"]]
    caplog.clear()
    with caplog.at_level(logging.DEBUG, logger="copter"):
        copter.solve(program())
    *passes, last = [record.message for record in caplog.records]
    assert passes
    assert all(LINE.fullmatch(line) for line in passes)
    assert last.startswith("solve optimal")


def test_silence_is_the_default(capfd: pytest.CaptureFixture[str]) -> None:
    copter.solve(program())
    Session(model()).solve()
    assert capfd.readouterr() == ("", "")
