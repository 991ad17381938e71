"""Orders by numbers whose ties another rule breaks, against a sort by both."""

import numpy as np
import pytest

from copter_frontends.policies.hops.latency_ratio import LatencyQueue
from copter_frontends.policies.hops.offers import Offers, OfferTable
from copter_frontends.policies.hops.requirements import RequirementSet
from copter_frontends.policies.hops.ties import without_ties
from copter_frontends.vocabulary import Job


@pytest.mark.parametrize("seed", range(20))
def test_ties_are_broken_as_by_one_sort(seed: int) -> None:
    rng = np.random.default_rng(seed)
    value, names = rng.integers(0, 4, seed).astype(float), rng.permutation(seed).tolist()
    order = np.argsort(value, kind="stable")
    ranked = value[order]
    found = without_ties(order, ranked[1:] == ranked[:-1], names.__getitem__)
    assert found == sorted(range(seed), key=lambda at: (value[at], names[at]))


@pytest.mark.parametrize("seed", range(5))
def test_the_queue_is_by_priority_then_submission_then_id(seed: int) -> None:
    rng = np.random.default_rng(seed)
    jobs = {str(n): Job(str(n), "any", float(rng.integers(3))) for n in rng.permutation(60).tolist()}
    queue = LatencyQueue()
    queue.values = {name: float(rng.integers(4)) for name in jobs} | {"0": np.inf, "1": np.inf}
    assert queue.order(jobs) == sorted(jobs, key=lambda name: (-queue.values[name], jobs[name].submit_s, name))


def test_offers_that_jobs_share_are_in_the_table_once() -> None:
    def offers(gain: list[float]) -> Offers:
        gpus = np.arange(1, len(gain) + 1)
        none = np.zeros(len(gain), dtype=np.int64)
        return Offers(RequirementSet((1,)), none, none + len(gain), gpus, np.array(gain), 1.0, 1.0, b"")

    two, one = offers([1.0, 1.5]), offers([2.0])
    table = OfferTable.of([two, one, two])
    assert table.start.tolist() == [0, 2, 0]
    assert (table.group.tolist(), table.gpus.tolist(), table.gain.tolist()) == ([2, 2, 1], [1, 2, 1], [1.0, 1.5, 2.0])
    assert OfferTable.of([]).start.tolist() == []
