"""Factors of a basis against dense linear algebra (method/simplex.md, D4), and scaling against its definition (D10)."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from copter.methods.simplex.basis_factor import BasisFactor
from copter.methods.simplex.scaling import geometric_scaling

quick = settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
seeds = st.integers(0, 2**31)


def some_matrix(rng: np.random.Generator, most: int = 40) -> sp.csc_array:
    """Few different values, so that columns depend on each other and entries cancel out."""
    shape = int(rng.integers(1, most + 1)), int(rng.integers(1, 2 * most))
    values = [1.0, -1.0, 2.0, 0.5, 3.7]
    a = sp.random_array(
        shape, density=rng.uniform(0.02, 0.6), rng=rng, data_sampler=lambda size: rng.choice(values, size)
    )
    found = sp.csc_array(a)
    found.sort_indices()
    return found


def with_units(a: sp.csc_array) -> NDArray[np.float64]:
    """The matrix and a unit column for each row."""
    return np.hstack([a.toarray(), np.eye(a.shape[0])])


def factorised(factor: BasisFactor, a: sp.csc_array, head: NDArray[np.int32]) -> int:
    return factor.factorise_columns(a.indptr.astype(np.int32), a.indices.astype(np.int32), a.data, head)


def require_solves(factor: BasisFactor, basis: NDArray[np.float64], right: NDArray[np.float64]) -> None:
    """Both systems hold, as well as the condition of the basis allows."""
    accuracy = 1e-12 * np.linalg.cond(basis) + 1e-9
    for matrix, transposed in ((basis, False), (basis.T, True)):
        x = factor.solve(right, transposed)
        assert np.abs(matrix @ x - right).max() <= accuracy * (1.0 + np.abs(x).max())


@quick
@given(seeds)
def test_factors_solve_both_systems_and_replace_what_is_dependent(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = some_matrix(rng)
    whole, m = with_units(a), a.shape[0]
    head = rng.permutation(whole.shape[1])[:m].astype(np.int32)
    factor = BasisFactor(m)
    asked = whole[:, head]
    replaced = factorised(factor, a, head)
    assert m - replaced == np.linalg.matrix_rank(asked)
    assert len(set(head.tolist())) == m
    require_solves(factor, whole[:, head], rng.normal(size=m))
    assert factorised(factor, a, head) == 0  # the same factor object, once more


@quick
@given(seeds)
def test_exchanges_of_columns_keep_the_factors_right(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = some_matrix(rng)
    whole, m = with_units(a), a.shape[0]
    head = np.arange(a.shape[1], a.shape[1] + m, dtype=np.int32)
    factor = BasisFactor(m)
    factorised(factor, a, head)
    for j in rng.permutation(a.shape[1])[:30].tolist():
        alpha = factor.solve(whole[:, j])
        row = int(np.abs(alpha).argmax())
        if j in head or abs(alpha[row]) < 0.1:
            continue
        factor.exchange(whole[:, j], row)
        head[row] = j
    require_solves(factor, whole[:, head], rng.normal(size=m))


def test_a_basis_of_nothing_but_the_same_column() -> None:
    a = sp.csc_array([[1.0, 1.0], [1.0, 1.0]])
    head, factor = np.array([0, 1], dtype=np.int32), BasisFactor(2)
    assert factorised(factor, a, head) == 1
    require_solves(factor, with_units(a)[:, head], np.array([1.0, 3.0]))


def test_a_pivot_of_rounding_alone_counts_as_none() -> None:
    a = sp.csc_array([[0.1, 0.3], [0.2, 0.6 + 1e-16]])
    head, factor = np.array([0, 1], dtype=np.int32), BasisFactor(2)
    assert factorised(factor, a, head) == 1


def test_factors_that_fill_in_too_much_are_given_up() -> None:
    rng = np.random.default_rng(0)
    a = sp.csc_array(rng.normal(size=(60, 60)))
    head, factor = np.arange(60, dtype=np.int32), BasisFactor(60)
    factor.most_work = 1e4
    with pytest.raises(ArithmeticError, match="fill in"):
        factorised(factor, a, head)
    factor.most_work = 1e9
    assert factorised(factor, a, head) == 0
    require_solves(factor, with_units(a)[:, head], np.ones(60))


def slow_scaling(a: NDArray[np.float64], passes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Definition D10, one loop a line."""
    row, column = np.ones(a.shape[0]), np.ones(a.shape[1])
    for turn in range(passes + 1):
        for i in range(a.shape[0]):
            sizes = [abs(v) * column[j] for j, v in enumerate(a[i]) if v != 0.0]
            if sizes:
                row[i] = 1.0 / (max(sizes) if turn == passes else np.sqrt(min(sizes)) * np.sqrt(max(sizes)))
        for j in range(a.shape[1]):
            sizes = [abs(v) * row[i] for i, v in enumerate(a[:, j]) if v != 0.0]
            if sizes:
                column[j] = 1.0 / (max(sizes) if turn == passes else np.sqrt(min(sizes)) * np.sqrt(max(sizes)))
    return row, column


@quick
@given(seeds, st.integers(0, 4))
def test_scaling_is_that_of_its_definition_to_a_power_of_two(seed: int, passes: int) -> None:
    rng = np.random.default_rng(seed)
    a = some_matrix(rng, 12)
    a.data *= 10.0 ** rng.uniform(-6, 6, a.nnz)
    row, column, scaled = np.empty(a.shape[0]), np.empty(a.shape[1]), np.empty(a.nnz)
    geometric_scaling(a.indptr.astype(np.int32), a.indices.astype(np.int32), a.data, passes, row, column, scaled)
    for found, exact in zip((row, column), slow_scaling(a.toarray(), passes), strict=True):
        assert np.array_equal(np.frexp(found)[0], np.full(len(found), 0.5))
        assert (np.abs(np.log2(found / exact)) <= 0.5 + 1e-9).all()
    again = sp.csc_array((scaled, a.indices, a.indptr), shape=a.shape).toarray()
    assert np.array_equal(again, row[:, None] * a.toarray() * column)


def test_lines_without_entries_are_not_scaled() -> None:
    row, column, scaled = np.empty(2), np.empty(3), np.empty(1)
    start, index = np.array([0, 0, 1, 1], dtype=np.int32), np.array([1], dtype=np.int32)
    geometric_scaling(start, index, np.array([64.0]), 3, row, column, scaled)
    assert row.tolist() == [1.0, 1.0 / 64.0]
    assert column.tolist() == [1.0, 1.0, 1.0]
    assert scaled.tolist() == [1.0]


@pytest.mark.parametrize("m", [1, 150])
def test_more_exchanges_than_one_factor_holds_are_asked_for_fresh_ones(m: int) -> None:
    factor = BasisFactor(m)
    head = np.arange(m, dtype=np.int32)
    empty = sp.csc_array((m, 0))
    factorised(factor, empty, head)
    for k in range(factor.most_updates):
        unit = np.zeros(m)
        unit[k % m] = 2.0
        factor.exchange(unit, k % m)
    assert factor.updates == factor.most_updates
    with pytest.raises(ValueError, match="fresh"):
        factor.exchange(np.ones(m), 0)
