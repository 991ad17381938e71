"""Private rows eliminated block by block, against the whole matrix (docs/method/blocks.md, K2 and K3)."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from copter.methods.blocks.arrow import arrows
from copter.methods.blocks.eliminate import Elimination
from copter.methods.blocks.program import BlockProgram
from copter.methods.blocks.tiled_cholesky import dense_cholesky, dense_solve


class Blocks:
    """A random block matrix, whole and as the kernels take it."""

    def __init__(self, seed: int, rows: int, blocks: int, private: tuple[int, int], loose: int) -> None:
        rng = np.random.default_rng(seed)
        self.rows = rows
        counts, own_counts = rng.integers(1, 6, blocks), rng.integers(private[0], private[1] + 1, blocks)
        self.column_start = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
        self.private_start = np.concatenate(([0], np.cumsum(own_counts))).astype(np.int32)
        n = int(self.column_start[-1]) + loose
        shared = sp.random_array((rows, n), density=min(1.0, 3.0 / rows), rng=rng, format="csc")
        shared.sort_indices()
        self.start, self.row, self.value = shared.indptr.astype(np.int32), shared.indices.astype(np.int32), shared.data
        own = sp.lil_array((int(self.private_start[-1]), n))
        own_row, own_value, own_start = [], [], [0]
        for j in range(n):
            g = int(np.searchsorted(self.column_start, j, side="right")) - 1
            if g < blocks:
                for i in range(own_counts[g]):
                    if rng.random() < 0.8:
                        own_row.append(i)
                        own_value.append(1.0 if private == (1, 1) else rng.normal())
                        own[self.private_start[g] + i, j] = own_value[-1]
            own_start.append(len(own_row))
        self.own = (np.array(own_start, np.int32), np.array(own_row, np.int32), np.array(own_value, dtype=np.float64))
        self.whole = sp.csr_array(sp.vstack((shared, own)))
        self.theta = 10.0 ** rng.uniform(-3.0, 3.0, n)
        self.slack = 10.0 ** rng.uniform(-3.0, 3.0, self.whole.shape[0])
        self.right = rng.normal(size=self.whole.shape[0])

    @classmethod
    def of_arrows(cls, seed: int, rows: int, blocks: int, border: int) -> Blocks:
        """Blocks with a private row for every few columns, and `border` rows across them, in any order."""
        found = cls(seed, rows, 0, (1, 1), 0)
        rng = np.random.default_rng(seed)
        own_counts = rng.integers(4 + border, 14, blocks)
        per_row = [rng.integers(0, 4, count - border) for count in own_counts]
        counts = [int(each.sum()) + 2 for each in per_row]  # two columns are in border rows alone, if in any
        found.column_start = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
        found.private_start = np.concatenate(([0], np.cumsum(own_counts))).astype(np.int32)
        n = int(found.column_start[-1])
        shared = sp.random_array((rows, n), density=min(1.0, 2.0 / rows), rng=rng, format="csc")
        shared.sort_indices()
        found.start, found.row, found.value = (
            shared.indptr.astype(np.int32),
            shared.indices.astype(np.int32),
            shared.data,
        )
        own = sp.lil_array((int(found.private_start[-1]), n))
        for g, each in enumerate(per_row):
            place = rng.permutation(own_counts[g]) + found.private_start[g]
            for c, i in enumerate(np.append(np.repeat(np.arange(len(each)), each), [-1, -1])):
                column = found.column_start[g] + c
                if i >= 0:
                    own[place[i], column] = rng.normal()
                for k in range(border):
                    if i >= 0 or rng.random() < 0.5:
                        own[place[-1 - k], column] = rng.normal()
        by_column = own.tocsc()
        by_column.sort_indices()
        base = np.repeat(np.repeat(found.private_start[:-1], counts), np.diff(by_column.indptr))
        found.own = (by_column.indptr.astype(np.int32), (by_column.indices - base).astype(np.int32), by_column.data)
        found.whole = sp.csr_array(sp.vstack((shared, own)))
        found.theta = 10.0 ** rng.uniform(-3.0, 3.0, n)
        found.slack = 10.0 ** rng.uniform(-3.0, 3.0, found.whole.shape[0])
        found.right = rng.normal(size=found.whole.shape[0])
        return found

    def elimination(self, threads: int) -> Elimination:
        shape = (self.rows, self.column_start, self.private_start, self.start, self.row, self.value)
        return Elimination(BlockProgram(*shape, *self.own, *NUMBERS), threads)


NUMBERS = (np.zeros(0),) * 3  # costs and bounds, which an elimination does not read
KINDS = [(5, 40, (1, 1), 0), (60, 40, (1, 1), 7), (4, 60, (0, 3), 5), (70, 90, (0, 3), 0), (3, 0, (1, 1), 9)]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_the_reduced_system_has_the_solution_of_the_whole_one(kind, threads):
    require_solution(Blocks(3, *kind), threads)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("border", [0, 1, 2, 3])
@pytest.mark.parametrize("rows", [3, 40, 300])
def test_blocks_that_are_arrows_have_it_too(rows, border, threads):
    blocks = Blocks.of_arrows(11, rows, 30, border)
    own_start, own_row, _ = blocks.own
    border_start = arrows(blocks.column_start, blocks.private_start, own_start, own_row)[0]
    assert (np.diff(border_start) > 0).all()
    require_solution(blocks, threads)


def test_the_border_is_the_rows_across_the_others():
    # Rows 0, 2 and 3 have columns of their own, row 1 has all; the second block has no such order.
    own = sp.csc_array([[1, 1, 0, 0, 0], [1, 1, 1, 1, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0]])
    full = sp.csc_array(np.ones((4, 4)))
    own_start = np.concatenate((own.indptr, own.indptr[-1] + full.indptr[1:])).astype(np.int32)
    own_row = np.concatenate((own.indices, full.indices)).astype(np.int32)
    starts = np.array([0, 5, 9], dtype=np.int32), np.array([0, 4, 8], dtype=np.int32)
    border_start, border_row, place, group_start, group_column = arrows(*starts, own_start, own_row)
    assert border_start.tolist() == [0, 1, 1]
    assert border_row[:1].tolist() == [1]
    assert place.tolist() == [-1, 0, -1, -1, -1, -1, -1, -1]
    assert group_start.tolist() == [0, 2, 2, 3, 4, 4, 4, 4, 4]
    assert group_column[:4].tolist() == [0, 1, 2, 3]


def require_solution(blocks: Blocks, threads: int) -> None:
    """The reduced system, solved and restored, gives what the whole matrix gives."""
    m, elimination = blocks.rows, blocks.elimination(threads)
    elimination.form(blocks.theta, blocks.slack[m:].copy())
    reduced = elimination.reduced
    reduced[np.arange(m), np.arange(m)] += blocks.slack[:m]
    dense_cholesky(reduced, np.zeros(m), threads)
    solution, scaled = np.empty(len(blocks.right)), np.empty(len(blocks.right) - m)
    coupling = blocks.right[:m].copy()
    elimination.eliminate(blocks.right[m:], coupling, scaled)
    dense_solve(reduced, coupling)
    solution[:m] = coupling
    elimination.restore(coupling, blocks.right[m:], solution[m:])
    whole = blocks.whole
    matrix = (whole @ sp.diags_array(blocks.theta) @ whole.T).toarray() + np.diag(blocks.slack)
    np.testing.assert_allclose(solution, np.linalg.solve(matrix, blocks.right), rtol=1e-6, atol=1e-9)


def test_a_column_that_carries_all_the_weight_leaves_no_cancellation_behind():
    ones = np.ones(2)
    start = np.array([0, 1, 2], dtype=np.int32)
    one_block = np.array([0, 2], dtype=np.int32), np.array([0, 1], dtype=np.int32)
    own = start, np.zeros(2, dtype=np.int32), ones
    entries = start, np.zeros(2, dtype=np.int32), np.array([1.0, 2.0])
    elimination = Elimination(BlockProgram(1, *one_block, *entries, *own, *NUMBERS), 1)
    elimination.form(np.array([1e16, 1.0]), np.zeros(1))
    # theta_1 theta_2 (a_1 - a_2)^2 / (theta_1 + theta_2) is 1 to the last bit; the difference of the terms would be 0.
    assert elimination.reduced[0, 0] == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("size", [1, 55, 56, 57, 200])
@pytest.mark.parametrize("threads", [1, 2])
def test_tiles_factorise_as_numpy_does(size, threads):
    rng = np.random.default_rng(size)
    root = rng.normal(size=(size, size))
    matrix = root @ root.T + np.eye(size)
    factor = matrix.copy()
    dense_cholesky(factor, np.zeros(size), threads)
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(matrix), rtol=1e-9, atol=1e-9)
    right = rng.normal(size=size)
    solution = right.copy()
    dense_solve(factor, solution)
    np.testing.assert_allclose(matrix @ solution, right, atol=1e-6)


def test_a_dependent_row_is_left_out():
    matrix = np.array([[2.0, 0.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 3.0]])
    dense_cholesky(matrix, np.full(3, 1e-12), 1)
    right = np.array([4.0, 4.0, 6.0])
    dense_solve(matrix, right)
    np.testing.assert_allclose(right, [2.0, 0.0, 2.0], atol=1e-12)


def test_a_stop_ends_an_elimination_and_a_factorisation():
    blocks = Blocks(3, 60, 40, (1, 1), 7)
    elimination = blocks.elimination(1)
    weights = blocks.theta, blocks.slack[blocks.rows :].copy()
    assert elimination.form(*weights, lambda: True) is False
    assert elimination.form(*weights, lambda: False) is True
    assert elimination.form(*weights) is True
    assert dense_cholesky(np.eye(200), np.zeros(200), 1, lambda: True) is False
    assert dense_cholesky(np.eye(200), np.zeros(200), 1) is True
