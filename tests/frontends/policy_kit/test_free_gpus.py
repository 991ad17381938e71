"""Free GPUs that are found and taken in one step are those that are found first and taken then."""

from __future__ import annotations

import numpy as np
import pytest

from copter_frontends.policy_kit.free_gpus import FreeGpus, Shares


@pytest.mark.parametrize("seed", range(5))
def test_one_step_takes_what_two_steps_take(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, two = FreeGpus(4), FreeGpus(4)
    for node in range(6):
        one.add(f"n{node}")
        two.add(f"n{node}")
    held: list[Shares] = []
    refused = 0
    for _ in range(300):
        if held and rng.random() < 0.45:
            back = held.pop(int(rng.integers(len(held))))
            one.give(back)
            two.give(back)
        else:
            gpus = int(rng.integers(1, 11))
            found = two.find(gpus)
            if found is not None and len(found) <= -(-gpus // 4):
                two.take(found)
                held.append(found)
            else:
                found, refused = None, refused + 1
            assert one.take_whole(gpus) == found
        assert one.nodes_by_free == two.nodes_by_free
        assert [one.free_on(node) for node in one.nodes] == [two.free_on(node) for node in two.nodes]
        assert [one.find(gpus) for gpus in range(1, 25)] == [two.find(gpus) for gpus in range(1, 25)]
    assert held or refused
    assert refused, "some jobs had no room"
