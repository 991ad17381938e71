"""Sia's objective: normalisation, the sign of p, the restart factor, the least value (docs/papers/sia.md, S1-S4)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from copter import SettingsError
from copter_frontends.policies.sia import SiaObjective, restart_factor
from copter_frontends.policies.sia.objective import INVALID_VALUE
from copter_frontends.vocabulary import InvalidJobError

ALL = np.ones(3, dtype=bool)


def test_values_for_each_sign_of_p_by_hand() -> None:
    goodput = np.array([2.0, 8.0, 0.0])
    assert SiaObjective(power=-0.5).values(SiaObjective(power=-0.5).base("j", goodput, ALL, 1), 1.0) == pytest.approx(
        [1.1 - 1.0, 1.1 - 0.5, INVALID_VALUE]
    )
    assert SiaObjective(power=0.5).values(SiaObjective(power=0.5).base("j", goodput, ALL, 1), 1.0) == pytest.approx(
        [1.1 + 1.0, 1.1 + 2.0, INVALID_VALUE]
    )
    assert SiaObjective(power=0.0).values(SiaObjective(power=0.0).base("j", goodput, ALL, 1), 1.0) == pytest.approx(
        [1.1, 1.1 + np.log(4.0), INVALID_VALUE]
    )


def test_the_smallest_valid_goodput_counts_as_min_gpus() -> None:
    objective = SiaObjective(power=1.0)
    base = objective.base("j", np.array([3.0, 6.0, 12.0]), np.array([False, True, True]), 4)
    assert np.isnan(base[0])
    assert base[1:] == pytest.approx([4.0, 8.0])


@pytest.mark.parametrize("power", [-1.0, -0.5, 0.0, 0.5, 1.0])
def test_more_goodput_is_worth_more_and_a_restart_never_pays_by_itself(power: float) -> None:
    objective = SiaObjective(power=power)
    base = objective.base("j", np.array([1.0, 2.0, 4.0]), ALL, 1)
    free, discounted = objective.values(base, 1.0), objective.values(base, 0.9)
    assert (np.diff(free) > 0).all()
    assert (discounted <= free).all()
    assert (discounted >= objective.least_value).all()


def test_a_heavily_discounted_job_is_still_worth_running() -> None:
    objective = SiaObjective(power=-0.5)
    base = objective.base("j", np.array([1.0, 2.0, 4.0]), ALL, 1)
    assert objective.values(base, 0.1) == pytest.approx([objective.least_value] * 3)


def test_restart_factor_by_hand() -> None:
    assert restart_factor(10.0, 0, 30.0) == 1.0  # younger than one restart
    assert restart_factor(600.0, 1, 50.0) == pytest.approx(550.0 / 650.0)
    assert restart_factor(100.0, 9, 30.0) == 0.0


@given(st.floats(0, 1e6), st.integers(0, 100), st.floats(0, 1e3))
def test_restart_factor_is_a_share(age_s: float, restarts: int, cost_s: float) -> None:
    assert 0.0 <= restart_factor(age_s, restarts, cost_s) <= 1.0


@given(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), st.floats(1e-3, 1.0), st.lists(st.floats(0.1, 1e4), min_size=1))
def test_scale_and_offset_over_the_base_are_the_values(power: float, factor: float, goodputs: list[float]) -> None:
    objective = SiaObjective(power=power)
    base = objective.base("j", np.array(goodputs), np.ones(len(goodputs), dtype=bool), 1)
    scale, offset = objective.scale_and_offset(factor)
    expected = np.maximum(scale * base + offset, objective.least_value)
    assert objective.values(base, factor) == pytest.approx(expected)


def test_a_job_that_fits_nowhere_is_named() -> None:
    with pytest.raises(InvalidJobError, match="'lost-1' fits nowhere"):
        SiaObjective().base("lost-1", np.zeros(3), ALL, 1)


@pytest.mark.parametrize("bad", [{"power": np.nan}, {"incentive": 0.0}, {"incentive": np.inf}, {"least_value": 2.0}])
def test_settings_out_of_range(bad: dict[str, float]) -> None:
    with pytest.raises(SettingsError, match=next(iter(bad))):
        SiaObjective(**bad)
