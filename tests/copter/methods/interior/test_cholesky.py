"""The multifrontal Cholesky factorisation, step by step, against slow twins on dense matrices."""

from __future__ import annotations

import threading
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from numpy.typing import NDArray

from copter.methods.interior.augmented_system import AugmentedSystem
from copter.methods.interior.cholesky import (
    Factor,
    NormalMatrix,
    column_counts,
    elimination_tree,
    front_rows,
    postorder,
    supernodes,
)
from copter.methods.interior.normal_equations import NormalEquations
from copter.methods.interior.ordering import minimum_degree, permute, postordered
from copter.methods.interior.stopping import unless_stopped
from copter.runtime.memory import memory_bytes, require_room
from copter.runtime.watch import Stopped

Floats = NDArray[np.float64]

rng_of = np.random.default_rng


def arrow(m: int) -> sp.csr_array:
    """Every row meets the last one."""
    return sp.csr_array(sp.hstack((sp.eye_array(m), sp.csr_array(np.eye(m)[:, [-1]] + 1.0))))


PATTERNS: dict[str, sp.csr_array] = {
    "one row": sp.csr_array([[1.0, 2.0, 0.0]]),
    "two rows": sp.csr_array([[1.0, 2.0], [0.0, 3.0]]),
    "dense": sp.csr_array(rng_of(1).normal(size=(9, 14))),
    "larger than a block": sp.csr_array(rng_of(2).normal(size=(150, 200))),
    "diagonal": sp.csr_array(np.diag(np.arange(1.0, 8.0))),
    "blocks": sp.csr_array(sp.block_diag([sp.coo_array(rng_of(3).normal(size=(k, k + 2))) for k in (1, 5, 3, 70)])),
    "banded": sp.csr_array(sp.diags_array([np.ones(60), np.full(60, -0.5)], offsets=[0, 1], shape=(60, 61))),
    "empty rows": sp.csr_array(np.vstack((np.zeros(4), rng_of(4).normal(size=(3, 4)), np.zeros((2, 4))))),
    "arrow": arrow(40),
    "tree": sp.csr_array(
        ([1.0] * 62, ([*range(31)] * 2, [*range(31), *(max(k - 1, 0) // 2 for k in range(31))])), shape=(31, 31)
    ),
    **{
        f"random {seed}": sp.csr_array(sp.random_array((m, 2 * m), density=3.0 / m, rng=rng_of(seed)))
        for seed, m in enumerate((5, 12, 30, 60, 120, 200), start=10)
    },
}
patterns = pytest.mark.parametrize("matrix", PATTERNS.values(), ids=PATTERNS)


def pattern_of(matrix: sp.csr_array) -> sp.csc_array:
    """Pattern of A A' with a full diagonal."""
    ones = sp.csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape)
    return permute(
        sp.csc_array(ones @ ones.T + sp.eye_array(matrix.shape[0])), np.arange(matrix.shape[0], dtype=np.int32)
    )


def filled(pattern: sp.csc_array) -> NDArray[np.bool_]:
    """Where the factor has entries, by elimination of one column after the other."""
    full = pattern.toarray() != 0
    for j in range(len(full)):
        below = np.flatnonzero(full[j + 1 :, j]) + j + 1
        full[np.ix_(below, below)] = True
    return np.tril(full)


def tree_of(pattern: sp.csc_array) -> NDArray[np.int32]:
    """Elimination tree by the kernel."""
    parent = np.empty(pattern.shape[0], dtype=np.int32)
    elimination_tree(pattern.indptr, pattern.indices, parent)
    return parent


@patterns
def test_elimination_tree_is_the_first_entry_below_each_diagonal(matrix: sp.csr_array) -> None:
    pattern = pattern_of(matrix)
    factor = filled(pattern)
    below = [np.flatnonzero(factor[j + 1 :, j]) for j in range(len(factor))]
    np.testing.assert_array_equal(
        tree_of(pattern), [j + 1 + rows[0] if len(rows) else -1 for j, rows in enumerate(below)]
    )


@patterns
def test_column_counts_are_those_of_the_factor(matrix: sp.csr_array) -> None:
    pattern = pattern_of(matrix)
    count = np.empty(pattern.shape[0], dtype=np.int32)
    column_counts(pattern.indptr, pattern.indices, tree_of(pattern), count)
    np.testing.assert_array_equal(count, filled(pattern).sum(axis=0))


@pytest.mark.slow
@patterns
def test_postorder_puts_every_subtree_in_one_run_before_its_root(matrix: sp.csr_array) -> None:
    parent = tree_of(pattern_of(matrix))
    order = np.empty(len(parent), dtype=np.int32)
    postorder(parent, order)
    assert sorted(order) == list(range(len(parent)))
    place = np.argsort(order)
    for j in range(len(parent)):
        descendants = [k for k in range(len(parent)) if j in ancestors(parent, k)]
        assert sorted(place[descendants]) == list(range(place[j] - len(descendants), place[j]))


def ancestors(parent: NDArray[np.int32], node: int) -> list[int]:
    """From the node's parent up."""
    found = []
    while parent[node] != -1:
        node = int(parent[node])
        found.append(node)
    return found


@patterns
def test_orderings_are_permutations_and_keep_fill_down(matrix: sp.csr_array) -> None:
    pattern = pattern_of(matrix)
    ordering, permuted, tree = postordered(pattern, minimum_degree(pattern))
    assert sorted(ordering) == list(range(pattern.shape[0]))
    np.testing.assert_array_equal(permuted.toarray() != 0, pattern.toarray()[np.ix_(ordering, ordering)] != 0)
    np.testing.assert_array_equal(tree, tree_of(permuted))
    assert filled(permuted).sum() <= 1.1 * filled(pattern).sum()


def test_minimum_degree_of_an_arrow_has_no_fill() -> None:
    pattern = pattern_of(sp.csr_array(arrow(40)[::-1]))
    ordered = permute(pattern, minimum_degree(pattern))
    assert filled(ordered).sum() == np.tril(ordered.toarray() != 0).sum()


@patterns
def test_supernodes_part_the_columns_and_hold_the_factor(matrix: sp.csr_array) -> None:
    """Every column is in one supernode, and each front has all rows in which one of its columns has an entry."""
    pattern = pattern_of(matrix)
    _, permuted, tree = postordered(pattern, minimum_degree(pattern))
    n = permuted.shape[0]
    count, first = np.empty(n, dtype=np.int32), np.empty(n + 1, dtype=np.int32)
    column_counts(permuted.indptr, permuted.indices, tree, count)
    groups = supernodes(tree, count, first)
    first = first[: groups + 1]
    assert first[0] == 0
    assert first[-1] == n
    assert (np.diff(first) > 0).all()
    start, row, parent = front_rows(permuted.indptr, permuted.indices, first, groups)
    factor = filled(permuted)
    for s in range(groups):
        rows = row[start[s] : start[s + 1]]
        assert (np.diff(rows) > 0).all()
        assert set(np.flatnonzero(factor[:, first[s] : first[s + 1]].any(axis=1))) <= {
            *range(first[s], first[s + 1]),
            *rows,
        }
        assert (rows >= first[s + 1]).all()
        if len(rows):
            assert first[parent[s]] <= rows[0] < first[parent[s] + 1]
            handed = {*range(first[parent[s]], first[parent[s] + 1]), *row[start[parent[s]] : start[parent[s] + 1]]}
            assert set(rows) <= handed
        else:
            assert parent[s] == -1


@patterns
def test_normal_matrix_is_the_product(matrix: sp.csr_array) -> None:
    theta = rng_of(0).uniform(0.1, 2.0, matrix.shape[1])
    matrix = sp.csr_array(matrix)
    columns, lower = sp.csc_array(matrix), sp.csc_array(sp.tril(pattern_of(matrix)))
    matrix.sort_indices()
    columns.sort_indices()
    lower.sort_indices()
    value, work = np.full(lower.nnz, np.nan), np.zeros(matrix.shape[0])
    arrays = [(a.indptr.astype(np.int32), a.indices.astype(np.int32), a.data) for a in (matrix, columns)]
    pattern = lower.indptr.astype(np.int32), lower.indices.astype(np.int32)
    for begin, end in pairwise([0, matrix.shape[0] // 3, matrix.shape[0]]):
        NormalMatrix(*arrays, *pattern).write(theta, value, work, begin, end)
    found = sp.csc_array((value, lower.indices, lower.indptr), shape=lower.shape).toarray()
    dense = matrix.toarray()
    np.testing.assert_allclose(found, np.tril(dense * theta @ dense.T), atol=1e-13)
    assert not work.any()


@patterns
def test_solves_what_a_dense_solver_solves(matrix: sp.csr_array) -> None:
    system = NormalEquations(matrix)
    for seed in range(3):
        theta = rng_of(seed).uniform(0.01, 100.0, matrix.shape[1])
        right = rng_of(seed + 9).normal(size=matrix.shape[0])
        system.factorise(theta, 1e-2)
        y = right[system.ordering].copy()
        system.factor.solve(y)
        dense = matrix.toarray()
        expected = np.linalg.solve(dense * theta @ dense.T + 1e-2 * np.eye(len(right)), right)
        np.testing.assert_allclose(y, expected[system.ordering], rtol=1e-7, atol=1e-9)
        assert system.factor.skipped == 0


@pytest.mark.slow
@patterns
def test_normal_equations_are_those_of_least_squares(matrix: sp.csr_array) -> None:
    """A theta A' y = A theta g is min |sqrt(theta) (A'y - g)|; of rows that depend on others only A'y is fixed."""
    theta, known = rng_of(5).uniform(0.1, 10.0, matrix.shape[1]), rng_of(6).normal(size=matrix.shape[1])
    root = np.sqrt(theta)
    expected = np.linalg.lstsq((matrix.toarray() * root).T, root * known, rcond=None)[0]
    for system in (NormalEquations(matrix), AugmentedSystem(matrix)):
        system.factorise(theta, 1e-11)
        y = system.solve(matrix @ (theta * known))
        np.testing.assert_allclose(matrix.T @ y, matrix.T @ expected, rtol=1e-6, atol=1e-7)


@patterns
def test_a_step_meets_both_equations(matrix: sp.csr_array) -> None:
    theta, known = rng_of(7).uniform(0.01, 10.0, matrix.shape[1]), rng_of(8).normal(size=matrix.shape[1])
    short = matrix @ rng_of(9).normal(size=matrix.shape[1])
    for system in (NormalEquations(matrix), AugmentedSystem(matrix)):
        system.factorise(theta, 1e-11)
        dt, dy = system.step(short, known)
        np.testing.assert_allclose(matrix @ dt, short, atol=1e-8)
        np.testing.assert_allclose(matrix.T @ dy - dt / theta, known, atol=1e-6)


@pytest.mark.parametrize("copies", [1, 3])
def test_dependent_rows_are_lifted(copies: int) -> None:
    """Their pivots are above what rounding leaves, so that none drops out, and no entry of the factor grows."""
    independent = rng_of(1).integers(-3, 4, (6, 15)).astype(float)
    matrix = sp.csr_array(np.vstack([independent] * (copies + 1)))
    system = NormalEquations(matrix)
    assert system.factorise(np.ones(15), 0.0) == 0
    known = rng_of(2).normal(size=15)
    y = system.solve(matrix @ known)
    np.testing.assert_allclose(matrix @ (matrix.T @ y), matrix @ known, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_prices_of_dependent_rows_stay_small(seed: int) -> None:
    """Rounding leaves a part of the right side outside the range; it must not be divided by next to nothing."""
    n = 6
    matrix = sp.csr_array(
        sp.vstack((sp.kron(sp.eye_array(n), np.ones((1, n))), sp.kron(np.ones((1, n)), sp.eye_array(n))))
    )
    theta = 10.0 ** rng_of(seed).uniform(-8, 0, n * n)
    system = NormalEquations(matrix)
    system.factorise(theta, 1e-11)
    known = rng_of(seed + 50).normal(size=n * n)
    y = system.solve(matrix @ (theta * known))
    assert np.abs(y).max() < 1e6
    np.testing.assert_allclose(matrix @ (theta * (matrix.T @ y - known)), 0.0, atol=1e-9)


def test_an_empty_row_keeps_a_finite_answer() -> None:
    system = NormalEquations(PATTERNS["empty rows"])
    system.factorise(np.ones(4), 1e-11)
    y = system.solve(np.array([0.0, 1.0, 2.0, 3.0, 0.0, 0.0]))
    assert np.isfinite(y).all()


@pytest.mark.slow
def test_a_factorisation_stops_when_it_is_told_to() -> None:
    matrix = sp.csr_array(rng_of(0).normal(size=(600, 700)))
    patience = [1_000_000]

    def must_stop() -> bool:
        patience[0] -= 1
        return patience[0] < 0

    system = NormalEquations(matrix, must_stop)
    for after in (0, 1, 5, 8):
        patience[0] = after
        with pytest.raises(Stopped):
            system.factorise(np.ones(700), 0.0)
    patience[0] = 1000
    assert system.factorise(np.ones(700), 0.0) == 0
    assert patience[0] < 1000 - 4
    known = rng_of(1).normal(size=700)
    expected = np.linalg.lstsq(matrix.toarray().T, known, rcond=None)[0]
    np.testing.assert_allclose(system.solve(matrix @ known), expected, rtol=1e-6, atol=1e-8)


def test_factor_says_what_it_holds() -> None:
    system = NormalEquations(sp.csr_array(rng_of(0).normal(size=(20, 30))))
    factor = system.factor
    assert isinstance(factor, Factor)
    assert (factor.size, factor.groups, factor.nonzeros) == (20, 1, 210)
    assert factor.flops == pytest.approx(20**3 / 3)


def test_what_does_not_fit_is_refused_before_it_is_allocated() -> None:
    assert memory_bytes() > 0
    require_room("a small array", 1e3, 8)
    with pytest.raises(MemoryError, match=r"the factor would take 7.* GiB of .* GiB"):
        require_room("the factor", 1e15, 8)


# Stopping -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_minimum_degree_is_a_permutation_that_fills_no_more_than_none(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 80))
    half = sp.random_array((n, n), density=float(rng.uniform(0, 0.2)), rng=rng)
    pattern = sp.csc_array(half + half.T + sp.eye_array(n))
    pattern.sort_indices()
    ordering = minimum_degree(pattern)
    assert sorted(ordering.tolist()) == list(range(n))
    assert fill(pattern, ordering) <= 1.2 * fill(pattern, np.arange(n, dtype=np.int32)) + 5


def fill(pattern: sp.csc_array, ordering: NDArray[np.int32]) -> int:
    """Entries of the factor in this order."""
    _, permuted, tree = postordered(pattern, ordering)
    count = np.empty(len(ordering), dtype=np.int32)
    column_counts(permuted.indptr, permuted.indices, tree, count)
    return int(count.sum())


def test_minimum_degree_of_a_grid_fills_as_another_one_does() -> None:
    side = 60
    line = sp.diags_array([np.ones(side - 1), np.ones(side), np.ones(side - 1)], offsets=[-1, 0, 1])
    pattern = sp.csc_array(sp.kron(sp.eye_array(side), line) + sp.kron(line, sp.eye_array(side)))
    pattern.sort_indices()
    symmetric = spl.splu(
        sp.csc_matrix(pattern + 10.0 * sp.eye_array(side * side)),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    assert fill(pattern, minimum_degree(pattern)) < 1.15 * symmetric.L.nnz


def test_an_ordering_is_given_up() -> None:
    half = sp.random_array((20_000, 20_000), density=2e-4, rng=rng_of(0))
    pattern = sp.csc_array(half + half.T + sp.eye_array(20_000))
    pattern.sort_indices()
    with pytest.raises(Stopped):
        minimum_degree(pattern, lambda: True)


def test_a_long_call_is_given_up_and_its_error_is_not_lost() -> None:
    begun, ended = threading.Event(), threading.Event()

    def work() -> int:
        begun.set()
        ended.wait(30.0)
        return 1

    with pytest.raises(Stopped):
        unless_stopped(work, begun.is_set, 1e9)
    ended.set()
    assert unless_stopped(lambda: 7, lambda: False, 1e9) == 7
    with pytest.raises(ZeroDivisionError):
        unless_stopped(lambda: 1 // 0, lambda: False, 1e9)
    assert unless_stopped(lambda: 7, None, 1e9) == 7
