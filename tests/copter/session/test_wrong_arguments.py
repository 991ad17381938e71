"""Arguments of a wrong kind get an error of copter's that names them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import copter
from copter import InvalidDataError, Model, Session, SettingsError


def model() -> Model:
    made = Model()
    made.add_resources("g", 4)
    made.add_request("a", [-1.0, -2.0], {"g": [1, 2]}, integer=True)
    return made


def test_a_dictionary_of_keys_is_a_sparse_matrix() -> None:
    made = model()
    made.add_request("b", [1.0, 2.0], sp.dok_matrix(np.array([[1.0, 2.0]])), resources=["g"])
    assert made.to_linear_program().A.toarray()[0].tolist() == [1.0, 2.0, 1.0, 2.0]


@pytest.mark.parametrize("settings", [5, 0, {}, {"threads": 1}, "fast"])
def test_settings_are_settings(settings: Any) -> None:
    with pytest.raises(SettingsError, match="must be a Settings"):
        Session(model(), settings)


@pytest.mark.parametrize("returned", [None, 5])
def test_a_shim_returns_a_plan(returned: Any) -> None:
    with pytest.raises(InvalidDataError, match="must return an IntegerPlan"):
        Session(model()).solve_integer(lambda *_: returned)


def test_paths_and_senses_and_ids(tmp_path: Path) -> None:
    session = Session(model())
    wrong: Any = 5.0
    for call in (session.record, session.save, session.journal, Session.load, copter.read_mps):
        with pytest.raises(InvalidDataError, match="must be a path"):
            call(wrong)
    with pytest.raises(InvalidDataError, match="sense is"):
        Model(sense=np.array(["max", "min"]))  # type: ignore[arg-type]
    plan, solution = session.solve_integer(), session.solve()
    for use in (plan.column, plan.shares, solution.of, solution.explain, solution.price, solution.columns_of):
        with pytest.raises(InvalidDataError, match="not hashable"):
            use([])  # type: ignore[arg-type]


def test_a_packed_program_that_would_take_much_memory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.mps.gz").write_bytes(gzip.compress(b"* a remark\n" * 4_000_000))
    with pytest.raises(InvalidDataError, match="unpacks to more than"):
        copter.read_mps(tmp_path / "a.mps.gz")
