"""True tapes that were rejected, or lost rounds; small files that would take much memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from copter import Model, Session, SnapshotError, verify
from copter.storage.files import require_path
from copter.storage.tape import TapeReader
from copter.storage.tape.layout import DIGEST, FREELY, ROUND, head, record
from copter.storage.tape.writer import TapeWriter


def forced(model: Model) -> None:
    """A least sum below what the lower bound gives."""
    model.add_resources("g", 4)
    model.add_request("a", [6.0], {"g": [1]}, lower=1.0, limit=2.0, at_least=0.0)


def fixed(model: Model) -> None:
    """A fixed request with a least sum."""
    model.add_resources("g", 4)
    model.add_request("a", [6.0, 7.0], {"g": [1, 1]}, at_least=0.0)
    model.fix("a", 0)


def short(model: Model) -> None:
    """A lower bound for which there is too little."""
    model.add_resources("g", 0.5)
    model.add_request("a", [6.0], {"g": [1]}, lower=1.0, limit=2.0, at_least=0.0)


def negative(model: Model) -> None:
    """A least sum below zero."""
    model.add_resources("g", 4)
    model.add_request("a", [6.0, 7.0], {"g": [1, 1]}, at_least=-1.0)


def open_above(model: Model) -> None:
    """A column that its row alone bounds."""
    model.add_resources("g", 6)
    model.add_request("a", [-4.0, -1.0], {"g": [3, 1]}, limit=np.inf)


def too_much(model: Model) -> None:
    """A least sum that its column cannot reach: the ray has no price."""
    model.add_resources("g", 6)
    model.add_request("a", [1.0], {"g": [1]}, at_least=1.0, upper=0.75, limit=4.0)


@pytest.mark.parametrize("made", [forced, fixed, short, negative, open_above, too_much])
def test_right_answers_are_accepted(made: Callable[[Model], None], tmp_path: Path) -> None:
    model = Model(sense="min")
    session = Session(model)
    session.record(tmp_path / "t")
    made(model)
    session.solve()
    session.record(None)
    ((_, checked, faults),) = verify.verify(tmp_path / "t")
    assert checked
    assert faults == []


def test_whatever_goes_wrong_in_the_writer_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    model.add_resources("g", 4)
    model.add_request("a", [-1.0], {"g": [1]})
    session = Session(model)
    session.record(tmp_path / "t")

    def breaks(*_: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr("copter.session.recorder.columns_of", breaks)
    session.solve()
    session.solve()
    with pytest.raises(SnapshotError, match="KeyError: 'lost'"):
        session.record(None)


def test_an_infeasible_model_without_requests_is_recorded(tmp_path: Path) -> None:
    model = Model("min")
    model.set_count("g", 4.0, lower=1.0)
    session = Session(model)
    session.record(tmp_path / "t")
    assert session.solve().status.value == "primal_infeasible"
    session.record(None)
    assert [faults for _, _, faults in verify.verify(tmp_path / "t")] == [[]]


def test_a_small_tape_takes_little_memory(tmp_path: Path) -> None:
    """Zeros pack to a thousandth: what is written has a least share, and what has not is refused."""
    parts, _ = record(ROUND, 0, [bytes(2 * FREELY)], bytes(DIGEST))
    assert sum(map(len, parts)) >= 2 * FREELY // 64
    tape = b"".join([head(), *parts])
    (tmp_path / "t").write_bytes(tape)
    assert len(list(TapeReader(tmp_path / "t"))) == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("copter.storage.tape.layout.LEAST_SHARE", 1 << 20)
        parts, _ = record(ROUND, 0, [bytes(2 * FREELY)], bytes(DIGEST))
    (tmp_path / "t").write_bytes(b"".join([head(), *parts]))
    with pytest.raises(SnapshotError, match="would take"):
        list(TapeReader(tmp_path / "t"))
    with pytest.raises(verify.Unusable, match="damaged"):
        list(verify.verify(tmp_path / "t"))


def test_a_ray_at_which_two_columns_without_bounds_have_to_cost_nothing(tmp_path: Path) -> None:
    """Prices are floats, so that the two rates are zero but for rounding: rationals close what is left."""
    from tests.adversary import taped

    taped.recorded(6300, tmp_path / "tape")
    first = next(iter(verify.verify(tmp_path / "tape")))
    assert first == (0, ["ray"], [])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of weak references' callbacks
def test_an_interrupted_recording_has_not_begun(tmp_path: Path) -> None:
    """A signal in the start of a thread once came out as a RuntimeError, of a lock that nobody held."""
    from tests.adversary.interrupted import interrupted

    count = interrupted(lambda: TapeWriter(tmp_path / "whole").close(), -1)
    assert count > 50
    for place in range(1, count + 1):
        made = tmp_path / str(place)
        interrupted(lambda made=made: TapeWriter(made), place)  # type: ignore[misc]
        if made.exists():  # interrupted in `close`, which this call has not, or by the collector
            assert made.read_bytes() == head()
        TapeWriter(tmp_path / f"after-{place}").discard()


def test_a_path_whose_type_cannot_be_asked() -> None:
    """Compiled code once went on with an exception set, which Python tells as a SystemError."""

    class Signal(BaseException):
        pass

    class Odd:
        @property
        def __class__(self) -> type:  # type: ignore[override]
            raise Signal

    with pytest.raises(Signal):
        require_path(Odd())
