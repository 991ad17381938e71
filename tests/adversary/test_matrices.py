"""Every door that takes a sparse matrix checks it: a clear error, or the matrix that it is; never a crash."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from copter import CopterError, DimensionError, InvalidDataError, LinearProgram, Model, solve
from tests.copter.plain import innards

ROWS, COLUMNS = 2, 3
FORMATS = ("csc", "csr", "coo")


def matrix(layout: str) -> Any:
    """A full 2 by 3 matrix."""
    return sp.csc_array(np.arange(1.0, 7.0).reshape(ROWS, COLUMNS)).asformat(layout)


def spoiled(layout: str, attribute: str, value: Any) -> Any:
    """The matrix with one of its arrays replaced after SciPy has looked at them."""
    found = matrix(layout)
    if attribute in ("row", "col"):
        found.coords = (value, found.col) if attribute == "row" else (found.row, value)
    else:
        setattr(found, attribute, value)
    return found


def model() -> Model:
    """A model with two resources, a request of three columns and a template."""
    made = Model()
    made.add_resources("a", 4)
    made.add_resources("b", 4)
    made.add_request("own", [1.0, 2.0, 3.0], sp.csc_array(np.ones((2, 3))), resources=["a", "b"])
    return made


DOORS = {
    "LinearProgram": lambda m, found: LinearProgram(np.ones(COLUMNS), found, row_upper=1.0),
    "add_request": lambda m, found: m.add_request("new", np.ones(COLUMNS), found, resources=["a", "b"]),
    "add_template": lambda m, found: m.add_template(found, resources=["a", "b"]),
    "update_usage": lambda m, found: m.update_usage("own", found, resources=["a", "b"]),
}

SPOILED = {
    "row beyond": lambda: spoiled("csc", "indices", np.array([0, 1, 0, 2, 0, 1])),
    "row far beyond": lambda: spoiled("csc", "indices", np.array([0, 1, 0, 77, 0, 1], dtype=np.int32)),
    "row beyond 2^32, which wraps to 1": lambda: spoiled("csc", "indices", np.array([0, 2**32 + 1, 0, 1, 0, 1])),
    "row negative": lambda: spoiled("csc", "indices", np.array([0, 1, 0, -1, 0, 1])),
    "column beyond": lambda: spoiled("csr", "indices", np.array([0, 1, 3, 0, 1, 2])),
    "column negative": lambda: spoiled("csr", "indices", np.array([0, 1, 2, -3, 1, 2])),
    "coordinate beyond": lambda: spoiled("coo", "row", np.array([0, 1, 0, 2, 0, 1])),
    "coordinate negative": lambda: spoiled("coo", "col", np.array([0, 0, 1, 1, -1, 2])),
    "coordinates too few": lambda: spoiled("coo", "col", np.array([0, 0])),
    "pointers fall": lambda: spoiled("csc", "indptr", np.array([0, 4, 2, 6])),
    "pointers begin late": lambda: spoiled("csc", "indptr", np.array([1, 2, 4, 6])),
    "pointers negative": lambda: spoiled("csr", "indptr", np.array([0, -3, 6])),
    "pointers beyond": lambda: spoiled("csr", "indptr", np.array([0, 3, 60])),
    "pointers too few": lambda: spoiled("csc", "indptr", np.array([0, 6])),
    "pointers none": lambda: spoiled("csc", "indptr", np.array([], dtype=int)),
    "values too few": lambda: spoiled("csc", "data", np.ones(5)),
    "values complex": lambda: spoiled("csc", "data", np.ones(6) * 1j),
    "values of words": lambda: spoiled("csc", "data", np.array(list("abcdef"))),
    "values not finite": lambda: spoiled("csr", "data", np.array([1, 1, np.nan, 1, 1, 1])),
    "indices in floats": lambda: spoiled("csc", "indices", np.array([0.0, 1.0, 0.0, 1.5, 0.0, 1.0])),
    "indices in two dimensions": lambda: spoiled("csc", "indices", np.zeros((2, 3), dtype=int)),
    "indices of objects": lambda: spoiled("csc", "indices", np.array([0, 1, 0, None, 0, 1])),
    "one dimension": lambda: sp.coo_array(np.ones(3)),
    "blocks beyond": lambda: broken_blocks(),
}


def broken_blocks() -> sp.bsr_array:
    """A matrix of blocks one of which lies outside."""
    found = sp.bsr_array(np.ones((2, 3)), blocksize=(1, 1))
    found.indices[-1] = 50
    return found


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", SPOILED)
def test_a_spoiled_matrix_is_refused_at_every_door(door: str, name: str) -> None:
    """And the model is as it was."""
    made = model()
    before = innards(made)
    with pytest.raises((InvalidDataError, DimensionError)):
        DOORS[door](made, SPOILED[name]())
    assert innards(made) == before


def test_the_error_says_where() -> None:
    with pytest.raises(InvalidDataError, match="entry 3 is in row 77, outside the 2 by 3 matrix"):
        LinearProgram(np.ones(3), SPOILED["row far beyond"]())


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("layout", FORMATS)
def test_columns_out_of_order_are_put_in_order_whatever_the_flags_say(door: str, layout: str) -> None:
    """SciPy's flags for sorted and canonical indices may be wrong; duplicates are summed all the same."""
    found = sp.csc_array((np.array([2.0, 1.0, 3.0, 4.0]), np.array([1, 0, 0, 0]), np.array([0, 2, 2, 4])), shape=(2, 3))
    found.has_sorted_indices = found.has_canonical_format = True
    true = np.array([[1.0, 0.0, 7.0], [2.0, 0.0, 0.0]])
    given_ = found if layout == "csc" else found.asformat(layout)
    made = model()
    lp = DOORS[door](made, given_)
    if door == "LinearProgram":
        assert (lp.A.toarray() == true).all()
    elif door in ("add_request", "update_usage"):
        request = "new" if door == "add_request" else "own"
        columns = slice(3, 6) if door == "add_request" else slice(0, 3)
        assert request in made
        assert (made.to_linear_program().A.toarray()[:2, columns] == true).all()


def test_entries_behind_the_last_pointer_are_no_part_of_the_matrix() -> None:
    """As SciPy has it."""
    found = sp.csc_array((np.array([1.0, 1.0, 9.0]), np.array([0, 1, 9]), np.array([0, 1, 2])), shape=(2, 2))
    assert (LinearProgram([1.0, 1.0], found).A.toarray() == np.eye(2)).all()


indices = st.lists(st.integers(-3, 5) | st.sampled_from([2**31, 2**32, 2**32 + 1, -(2**31) - 1, 2**62]), max_size=8)
kinds = st.sampled_from([np.int32, np.int64, np.uint64, np.float64, np.int8, object])


@settings(deadline=None, max_examples=400)
@given(st.sampled_from(FORMATS), st.sampled_from(("one", "two")), indices, kinds, st.sampled_from(tuple(DOORS)))
def test_any_arrays_at_any_door(layout: str, which: str, numbers: list[int], kind: Any, door: str) -> None:
    """Refused with one of the library's errors, or taken and solvable."""
    try:
        array = np.array(numbers).astype(kind)
    except OverflowError:
        array = np.array(numbers, dtype=object)
    names = ("row", "col") if layout == "coo" else ("indptr", "indices")
    try:
        found = spoiled(layout, names[which == "two"], array)
    except (ValueError, TypeError, IndexError):
        return  # SciPy has refused it
    made = model()
    before = innards(made)
    try:
        lp = DOORS[door](made, found)
    except CopterError as error:
        lp = error
    if isinstance(lp, CopterError):
        assert len(str(lp)) < 500
        assert innards(made) == before
        return
    program = lp if isinstance(lp, LinearProgram) else made.to_linear_program()
    assert program.A.indices.min(initial=0) >= 0
    assert program.A.indices.max(initial=0) < program.shape[0]
    solve(program)


@pytest.mark.parametrize(
    "values",
    [
        np.array([1 + 2j, 1, 1]),
        [1 + 2j, 1, 1],
        [np.complex128(1 + 2j), 1, 1],
        np.array([np.complex128(1 + 2j), 1, None], dtype=object),
        np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False]),
        ["4_0", "1", "1"],
        np.array(["2020-01-01"] * 3, dtype="datetime64[s]"),
    ],
)
def test_costs_that_would_lose_a_part_are_refused(values: Any) -> None:
    """Complex, masked and worded numbers: as costs of a program and of a request."""
    with pytest.raises(InvalidDataError, match="c "):
        LinearProgram(values, np.ones((1, 3)))
    made = model()
    before = innards(made)
    for edit in (
        lambda: made.update_cost("own", values),
        lambda: made.add_request("new", values, {"a": [1, 1, 1]}),
        lambda: made.update_costs(["own"], [values]),
        lambda: made.add_template({"a": values}),
    ):
        with pytest.raises(InvalidDataError):
            edit()
        assert innards(made) == before


@pytest.mark.parametrize("offset", [None, np.nan, np.inf, "1", 1j, [1.0, 2.0]])
def test_an_offset_that_is_no_number_is_refused(offset: Any) -> None:
    with pytest.raises(InvalidDataError, match="offset"):
        LinearProgram([1.0], [[1.0]], offset=offset)
