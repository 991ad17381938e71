"""The most promises that can be kept, against trying every set of jobs."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from chronus_instances import lease_problem

from copter_frontends.policies.chronus.draft import Draft
from copter_frontends.policies.chronus.options import Ints, Options
from copter_frontends.policies.chronus.salvage import most_kept, salvaged


def too_many_promises(seed: int) -> tuple[Options, Ints]:
    options, capacity = lease_problem(8, 8, 6, seed)
    return replace(options, must=np.ones(options.jobs, dtype=bool)), np.maximum(capacity // 2, 1)


@pytest.mark.parametrize("seed", range(6))
def test_as_many_promises_as_can_be_are_kept(seed: int) -> None:
    options, capacity = too_many_promises(seed)
    draft = salvaged(options, capacity)
    kept = options.jobs - draft.broken
    assert kept == most_kept(options, capacity, kept, 20.0)
    use = np.zeros_like(capacity)
    for job in np.flatnonzero(draft.row >= 0).tolist():
        row = int(draft.row[job])
        leases = np.flatnonzero(draft.taken[job])
        assert len(leases) == options.need[row]
        assert leases.max() < options.last[row]
        use[options.kind[row], leases] += options.gpus[row]
    assert (use <= capacity).all()


def test_a_draft_that_can_keep_all_breaks_none() -> None:
    options, capacity = too_many_promises(0)
    assert salvaged(options, 100 * capacity).broken == int((np.diff(options.rows_of()) == 0).sum())


@pytest.mark.parametrize("seed", range(3))
def test_no_greater_set_can_be_placed_by_hand(seed: int) -> None:
    options, capacity = too_many_promises(seed)
    kept = options.jobs - salvaged(options, capacity).broken
    for jobs in combinations(range(options.jobs), kept + 1):
        draft = Draft(options, capacity)
        assert not all(any(draft.squeeze(row) for row in draft.ranked(job)) for job in jobs)
