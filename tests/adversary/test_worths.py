"""Models with concave worths and their edits, judged by Clarabel: some of the long run's seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("clarabel")

from tests.adversary import worths

HAD_NO_ANSWER = (
    *(737, 2637, 5334),  # steep tangents: residuals of their rows were too large for an optimum
    *(22_930, 39_542),  # a point that breaks a dear row by 1e-7 was kept for its objective, above the bound
    *(46_528, 48_866, 50_615, 52_403, 52_669),  # prices of 1e-13 let columns grow, which took from better ones
)


@pytest.mark.parametrize("seed", [*range(20_000, 20_012), *HAD_NO_ANSWER])
def test_answers_stand_beside_clarabels(seed: int, tmp_path: Path) -> None:
    assert worths.trial(seed, tmp_path) is None
