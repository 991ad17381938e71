"""Factors with updates between them give the solutions that dense matrices give (D4)."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from copter.methods.simplex.middle_factor import MiddleFactor


@pytest.mark.parametrize("seed", range(8))
def test_solutions_after_many_exchanges(seed: int) -> None:
    rng, rows = np.random.default_rng(seed), 40
    dense = np.where(rng.random((rows, rows)) < 0.08, rng.normal(size=(rows, rows)), 0.0) + np.diag(
        rng.normal(size=rows) + 2.0
    )
    columns, head = sp.csc_matrix(dense), np.arange(rows, dtype=np.int32)
    factor = MiddleFactor(rows)
    start, index = columns.indptr.astype(np.int32), columns.indices.astype(np.int32)
    assert factor.factorise_columns(start, index, columns.data, head) == 0
    basis, exchanged = dense[:, head], 0
    for _ in range(30):
        column, row = np.where(rng.random(rows) < 0.1, rng.normal(size=rows), 0.0), int(rng.integers(rows))
        if abs(np.linalg.solve(basis, column)[row]) < 1e-2:
            continue
        factor.exchange(column, row)
        basis[:, row], exchanged = column, exchanged + 1
    assert exchanged > 5
    assert factor.updates == exchanged
    right = rng.normal(size=rows)
    np.testing.assert_allclose(basis @ factor.solve(right), right, atol=1e-7)
    np.testing.assert_allclose(basis.T @ factor.solve(right, transposed=True), right, atol=1e-7)
