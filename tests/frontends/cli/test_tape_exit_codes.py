"""One meaning of an unusable tape: verify, info and replay agree on records that are whole and hold what cannot be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from copter import Model, Session, Settings
from copter.storage.tape import TapeReader
from copter_frontends.cli import main
from tests.copter.storage.tape.lies import written


def records(path: Path) -> list[tuple[Any, Any]]:
    """The records of a true tape of three rounds."""
    model = Model(sense="max")
    model.add_resources("gpu", 3.0)
    for name in ("a", "b"):
        model.add_request(name, [1.0, 1.5], {"gpu": [1.0, 2.0]}, limit=1.0)
    session = Session(model, Settings(threads=1))
    session.record(path)
    session.solve()
    model.remove_request("a")
    session.solve()
    model.update_cost("b", [2.0, 1.0])
    session.solve()
    session.record(None)
    return [(record, record.value()) for record in TapeReader(path)]


def code(*words: str) -> Any:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return ended.value.code


def codes(path: Path) -> list[Any]:
    return [code("verify", str(path)), code("tape", "info", str(path)), code("replay", str(path))]


def without_x(values: list[Any]) -> None:
    del values[1][-1]["answer"]["x"]


def beyond(values: list[Any]) -> None:
    answer = values[1][-1]["answer"]
    answer["place"] = np.asarray(answer["place"]) + 7


def of_no_column(values: list[Any]) -> None:
    answer = values[1][-1]["answer"]
    answer["column"] = np.asarray(answer["column"]).astype(np.int32) + 9


def few_prices(values: list[Any]) -> None:
    values[1][-1]["answer"]["prices"] = np.zeros(0)


def unknown_edit(values: list[Any]) -> None:
    values[2][0] = ("edit", [("paint", ("b",))])


def stranger(values: list[Any]) -> None:
    values[2][0] = ("edit", [("remove", ("nobody",))])


def no_settings(values: list[Any]) -> None:
    del values[1][-1]["settings"]


def no_rows(values: list[Any]) -> None:
    del values[0]["model"]["rows"]


@pytest.mark.parametrize(
    "spoil", [without_x, beyond, of_no_column, few_prices, unknown_edit, stranger, no_settings, no_rows]
)
def test_all_three_call_it_unusable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spoil: Callable[[list[Any]], None]
) -> None:
    true = records(tmp_path / "true")
    values = [value for _, value in true]
    spoil(values)
    written(tmp_path / "spoilt", [(record, value) for (record, _), value in zip(true, values, strict=True)])
    capsys.readouterr()
    assert codes(tmp_path / "spoilt") == [2, 2, 2]
    told = capsys.readouterr().err
    assert "Error" not in told
    assert "Traceback" not in told


def test_all_three_take_a_true_tape(tmp_path: Path) -> None:
    records(tmp_path / "true")
    assert codes(tmp_path / "true") == [0, 0, 0]
