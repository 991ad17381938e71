"""Fill-reducing ordering of a symmetric pattern."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from numpy.typing import NDArray

from copter.interior.cholesky import elimination_tree, postorder

Ints = NDArray[np.int32]

NEGLIGIBLE = 1e-30  # off-diagonal entries of the matrix that SuperLU orders, so that it drops them all


def minimum_degree(pattern: sp.csc_array) -> Ints:
    """Multiple minimum degree ordering of a symmetric pattern, (m,); position k of the factor is row ordering[k].

    SuperLU orders before it factorises. An incomplete factorisation that may drop everything off the diagonal costs
    next to nothing beside the ordering, which is all that is wanted here.
    """
    m = pattern.shape[0]
    if m < 3:
        return np.arange(m, dtype=np.int32)
    matrix = pattern.copy()
    matrix.data = np.full(matrix.nnz, NEGLIGIBLE)
    matrix.setdiag(1.0)
    factor = spl.spilu(
        sp.csc_matrix(matrix),
        drop_tol=0.5,
        fill_factor=1.0,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return np.argsort(factor.perm_c).astype(np.int32)


def postordered(pattern: sp.csc_array, ordering: Ints) -> tuple[Ints, sp.csc_array, Ints]:
    """(ordering, permuted pattern, elimination tree), with the ordering changed so that children precede parents."""
    permuted = permute(pattern, ordering)
    parent = np.empty(len(ordering), dtype=np.int32)
    elimination_tree(permuted.indptr, permuted.indices, parent)
    order = np.empty(len(ordering), dtype=np.int32)
    postorder(parent, order)
    position = np.empty(len(ordering) + 1, dtype=np.int32)
    position[order] = np.arange(len(ordering), dtype=np.int32)
    position[-1] = -1
    return ordering[order], permute(permuted, order), position[parent[order]]


def permute(pattern: sp.csc_array, ordering: Ints) -> sp.csc_array:
    """The pattern with rows and columns in a new order, 32-bit indices, sorted."""
    permuted = sp.csc_array(pattern[ordering][:, ordering])
    permuted.sort_indices()
    permuted.indptr, permuted.indices = permuted.indptr.astype(np.int32), permuted.indices.astype(np.int32)
    return permuted
