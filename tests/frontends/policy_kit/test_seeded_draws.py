"""The first numbers of many generators are NumPy's own, for every seed and name."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from copter_frontends.policy_kit.deadlines import DrawnRewards
from copter_frontends.policy_kit.deadlines.seeded_draws import first_draws
from copter_frontends.policy_kit.throughputs import representative_throughputs
from copter_frontends.vocabulary import Cluster, Job

words = st.integers(0, 2**32 - 1)


@given(st.one_of(st.integers(0, 9), st.integers(0, 2**130)), st.lists(words, max_size=5))
def test_the_first_two_numbers_are_numpys(seed: int, names: list[int]) -> None:
    chance, share = first_draws(seed, np.array(names, dtype=np.uint64))
    expected = [np.random.default_rng([seed, name]) for name in names]
    assert chance.tolist() == [rng.random() for rng in expected]
    low, high = 1.2, 2.0
    assert (low + (high - low) * share).tolist() == [rng.uniform(low, high) for rng in expected]


def test_rewards_of_many_jobs_are_as_one_after_the_other() -> None:
    cluster = Cluster.of({"t4": (4, 4), "a100": (2, 8)})
    source = DrawnRewards(cluster, representative_throughputs(cluster), seed=3)
    jobs = [Job(f"j{n}", name, 0.0, 10.0 ** (3 + n % 6), 1 + n % 4) for n, name in enumerate(["bert", "cifar10"] * 60)]
    expected = [source(job) for job in jobs]
    assert source.of_jobs(jobs) == expected
    assert {None if each is None else len(each.steps) for each in expected} == {None, 1, 4}
    assert source.of_jobs([]) == []
