"""Values that snapshots and journals hold come back as they were; others are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from copter import InvalidDataError, SnapshotError
from copter.storage.encoding import Reader, encode


@pytest.mark.parametrize(
    "value",
    [None, True, False, 0, -1, 2**200, -(2**63), 1.5, -0.0, np.inf, "", "ünï\ud800", b"", b"\0\xff", (),
     (1, ("a", None)), [1, [2.0]], {"a": 1, (1, 2): [3]}],
)  # fmt: skip
def test_values_come_back(value: Any) -> None:
    read = Reader(b"".join(encode(value)), "test").whole()
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "i8", "u1", "b1"])
@pytest.mark.parametrize("shape", [(0,), (3,), (2000, 3), ()])
def test_arrays_come_back(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    read = Reader(b"".join(encode([array, array[..., None].T, 1])), "test").whole()
    np.testing.assert_array_equal(read[0], array)
    assert (read[0].dtype, read[0].shape, read[2]) == (array.dtype, array.shape, 1)


def test_numpy_scalars_are_read_back_as_equal_ids() -> None:
    ids = (np.int64(3), np.float64(2.5), np.str_("x"), np.bool_(True))
    assert Reader(b"".join(encode(ids)), "test").whole() == (3, 2.5, "x", True)


@pytest.mark.parametrize("value", [object(), {1, 2}, np.array(["x"]), 1j, frozenset()])
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(InvalidDataError, match="cannot be saved"):
        encode(("deep", value))


def test_more_values_than_allowed_are_refused_before_they_are_made() -> None:
    empties = b"[" + (100).to_bytes(8, "little") + (b"[" + bytes(8)) * 100
    assert Reader(empties, "test", 100).whole() == [[]] * 100
    for most in (99, 0):
        with pytest.raises(SnapshotError, match="more values than its bytes in the file allow"):
            Reader(empties, "test", most).whole()
    pairs = b"".join(encode({1: 2, 3: 4}))
    assert Reader(pairs, "test", 4).whole() == {1: 2, 3: 4}
    with pytest.raises(SnapshotError, match="more values"):
        Reader(pairs, "test", 3).whole()
