"""Small trees: the best point of a small program, pruned by a value to beat, ended by a number of nodes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from copter.highs.small_tree import SmallTree
from copter.problem.linear_program import LinearProgram

pytest.importorskip("highspy")
INF = math.inf


def covering(seed: int, n: int = 6) -> LinearProgram:
    """A set covering of six columns with one continuous column that fills every row dearly."""
    rng = np.random.default_rng(seed)
    rows = np.hstack([(rng.random((4, n)) < 0.5).astype(float) * rng.integers(1, 4, (4, n)), np.ones((4, 1))])
    return LinearProgram(
        np.append(rng.integers(1, 9, n).astype(float), 6.0), rows, np.full(4, 3.0), np.full(4, INF),
        np.zeros(n + 1), np.append(np.ones(n), INF), np.append(np.ones(n, dtype=bool), False),
    )  # fmt: skip


def best_value(lp: LinearProgram) -> float:
    """The optimum, by all choices of the whole columns."""
    n, found = len(lp.c) - 1, INF
    rows = lp.A.toarray()
    for choice in itertools.product((0.0, 1.0), repeat=n):
        lacks = max(0.0, float((lp.row_lower - rows[:, :n] @ np.array(choice)).max()))
        found = min(found, float(lp.c[:n] @ np.array(choice) + lp.c[n] * lacks))
    return found


def tree(lp: LinearProgram, best: float = INF, nodes: int = 10_000) -> SmallTree:
    return SmallTree(lp, best, nodes, lambda: 60.0, lambda: False)


@given(st.integers(0, 10_000))
def test_the_tree_s_point_is_the_optimum(seed: int) -> None:
    lp = covering(seed)
    found = tree(lp)
    assert found.run()
    assert found.x is not None
    assert float(lp.c @ found.x) == pytest.approx(best_value(lp))
    assert (lp.A @ found.x >= lp.row_lower - 1e-6).all()
    assert np.abs(found.x[:-1] - np.rint(found.x[:-1])).max() <= 1e-6


@given(st.integers(0, 10_000))
def test_a_value_that_no_point_beats_leaves_none(seed: int) -> None:
    lp = covering(seed)
    found = tree(lp, best_value(lp))
    assert found.run()
    assert found.x is None


def test_nodes_and_a_stop_end_the_tree() -> None:
    lp = next(lp for lp in map(covering, range(100)) if not tree(lp, nodes=1).run())
    assert tree(lp, nodes=1).x is None
    stopped = SmallTree(lp, INF, 10_000, lambda: 60.0, lambda: True)
    assert not stopped.run()
    assert stopped.x is None
