"""Blocks of far leases: a partition that changes little from lease to lease, and the bound that it costs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from chronus_instances import lease_problem

from copter_frontends.policies.chronus import formulation
from copter_frontends.policies.chronus.formulation import LeaseFormulation
from copter_frontends.policies.chronus.lease_blocks import EXACT, LeaseBlocks

NO_LIMIT_S = 600.0


@pytest.mark.parametrize("first", [0, 5, 1234])
@pytest.mark.parametrize("scarce", [1, EXACT, EXACT + 1, 100, 1000])
def test_near_leases_are_blocks_of_their_own_and_far_ones_are_as_long_as_they_may_be(first: int, scarce: int) -> None:
    blocks = LeaseBlocks.of(first, scarce)
    names = blocks.names
    assert names[0][0] == first
    assert names[-1][1] == first + scarce
    assert all(a[1] == b[0] for a, b in pairwise(names))
    for begin, end in names[:-1]:
        length = end - begin
        assert length & (length - 1) == 0
        assert begin % length == 0
        assert length == 1 or EXACT * length <= begin - first
    assert len(names) <= EXACT * (2 + max(np.log2(scarce / EXACT), 0.0))


def test_from_lease_to_lease_few_blocks_change() -> None:
    changed = []
    for first in range(64):
        before, after = set(LeaseBlocks.of(first, 960).names), set(LeaseBlocks.of(first + 1, 959).names)
        changed.append(len(before ^ after))
    assert np.mean(changed) <= 12
    assert max(changed) <= 30


def test_sums_and_prices_of_blocks_are_those_of_their_leases() -> None:
    rng = np.random.default_rng(3)
    blocks = LeaseBlocks.of(7, 200)
    capacity, leases = rng.integers(0, 9, (3, 200)), rng.random((5, 260)) < 0.4
    price = rng.random((3, len(blocks.names)))
    for at, (begin, end) in enumerate(blocks.names):
        own = slice(begin - 7, end - 7)
        assert blocks.total(capacity)[:, at].tolist() == capacity[:, own].sum(axis=1).tolist()
        assert blocks.counts(leases)[:, at].tolist() == leases[:, own].sum(axis=1).tolist()
        assert (blocks.spread(price)[:, own] == price[:, at : at + 1]).all()


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_of_blocks_holds_and_is_near_that_of_leases(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks from the fifth lease on: a looser program, whose bound is valid for the exact one and little above it."""
    options, capacity = lease_problem(60, 16, 48, seed)
    whole = LeaseFormulation(gap=1e-5, max_passes=300).solve(options, capacity, time_limit_s=NO_LIMIT_S)
    coarse = LeaseBlocks.of(0, 48, exact=4)
    assert len(coarse.names) < 24
    monkeypatch.setattr(formulation.LeaseBlocks, "of", classmethod(lambda cls, first, scarce: _blocks(first, scarce)))
    looser = LeaseFormulation(gap=1e-5, max_passes=300)
    found = looser.solve(options, capacity, time_limit_s=NO_LIMIT_S)
    assert len(looser.lease_model.rows) < 48
    assert found.bound >= whole.value * (1 - 1e-6)
    assert found.bound <= whole.bound * 1.03


_exact = LeaseBlocks.of


def _blocks(first: int, scarce: int) -> LeaseBlocks:
    return _exact(first, scarce, 4)
