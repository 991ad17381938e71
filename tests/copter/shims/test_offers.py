"""Which whole columns of the LP a draft of a plan takes where they do not fit together."""

from __future__ import annotations

import numpy as np
import pytest

from copter import Model
from copter.shims.draft import Draft


def three(count: float) -> Model:
    """Three requests of one column each, of two units of one resource; their values are 1, 3 and 2."""
    model = Model()
    model.add_resources("gpu", count)
    for request, value in enumerate((1.0, 3.0, 2.0)):
        model.add_request(request, [value], {"gpu": [2.0]}, integer=True)
    return model


@pytest.mark.parametrize(("count", "taken"), [(6.0, {0, 1, 2}), (5.0, {1, 2}), (3.0, {1}), (1.0, set())])
def test_the_dearest_are_taken_first(count: float, taken: set[int]) -> None:
    draft = Draft(three(count))
    slots = np.arange(3, dtype=np.int32)
    split = draft.round(slots, np.zeros(3, dtype=np.int32), np.ones(3), 0.999, 1e-6)
    assert split == 0
    assert set(np.flatnonzero(draft.column == 0).tolist()) == taken
    assert draft.holds()
    assert draft.left[0] == count - 2.0 * len(taken)


def test_whether_any_slot_must_be_whole() -> None:
    model = three(1.0)
    model.add_request("part", [1.0], {"gpu": [1.0]})
    matrix = model.ledger.matrix
    assert matrix.any_integer(np.arange(4, dtype=np.int32))
    assert matrix.any_integer(np.array([3, 0], dtype=np.int32))
    assert not matrix.any_integer(np.array([3], dtype=np.int32))
    assert not matrix.any_integer(np.zeros(0, dtype=np.int32))
