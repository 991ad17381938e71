"""The throughput and efficiency equations, and the table of applications."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from copter.runtime.errors import InvalidDataError
from copter_frontends.goodput import (
    APPLICATIONS,
    Application,
    GpuProfile,
    ThroughputParameters,
    UnknownApplicationError,
    application_of,
    bootstrapped,
    compute_time_s,
    efficiency,
    noise_scale_at,
    step_time_s,
    sync_time_s,
    throughput,
)

SEVEN_TYPES = {"t4", "rtx", "quad", "v100", "a100", "p100", "k80"}
EXAMPLE = ThroughputParameters(0.1, 0.02, 0.5, 0.03, 0.2, 0.01, 2.0)

seconds = st.floats(1e-4, 2.0)
parameters = st.builds(
    ThroughputParameters, seconds, seconds, seconds, seconds, seconds, seconds, gamma=st.floats(1.0, 10.0)
)


def test_equations_against_hand_arithmetic() -> None:
    assert compute_time_s(EXAMPLE, 20) == pytest.approx(0.5)
    assert sync_time_s(EXAMPLE, 1, 4) == pytest.approx(0.2 + 0.01 * 2)
    assert sync_time_s(EXAMPLE, 2, 8) == pytest.approx(0.5 + 0.03 * 6)
    assert sync_time_s(EXAMPLE, 1, 1) == pytest.approx(1e-8)
    step = (0.5**2 + 0.68**2) ** 0.5
    assert step_time_s(EXAMPLE, 2, 8, 20) == pytest.approx(step)
    assert throughput(EXAMPLE, 2, 8, 20, 3) == pytest.approx(8 * 20 * 4 / (3 * 0.5 + step))


def test_equations_broadcast_over_arrays() -> None:
    rates = throughput(EXAMPLE, np.array([1, 1, 2]), np.array([1, 2, 8]), 20)
    assert rates.shape == (3,)
    assert rates[1] == throughput(EXAMPLE, 1, 2, 20)


@given(parameters, st.integers(1, 64), st.integers(1, 256), st.integers(0, 4))
def test_a_larger_local_batch_never_lowers_throughput(
    p: ThroughputParameters, gpus: int, local: int, steps: int
) -> None:
    nodes = -(-gpus // 8)
    assert throughput(p, nodes, gpus, local + 1, steps) >= throughput(p, nodes, gpus, local, steps) * (1 - 1e-12)


@given(parameters, st.integers(1, 64), st.integers(1, 256))
def test_throughput_lies_between_no_overlap_and_perfect_overlap(p: ThroughputParameters, gpus: int, local: int) -> None:
    nodes = -(-gpus // 8)
    compute, sync = float(compute_time_s(p, local)), float(sync_time_s(p, nodes, gpus))
    rate = float(throughput(p, nodes, gpus, local))
    assert gpus * local / (compute + sync) * (1 - 1e-9) <= rate <= gpus * local / max(compute, sync) * (1 + 1e-9)


def test_more_gpus_process_more_samples_when_synchronising_is_cheap() -> None:
    cheap = ThroughputParameters(0.1, 0.02, 0.01, 1e-4, 0.01, 1e-4, 1.5)
    rates = throughput(cheap, np.array([1, 1, 1, 1, 2, 4]), np.array([1, 2, 4, 8, 16, 32]), 16)
    assert (np.diff(rates) > 0).all()


@given(st.floats(1e-3, 1e9), st.integers(1, 1000), st.integers(1, 100_000))
def test_efficiency_is_in_zero_to_one_and_falls_with_the_batch(noise: float, first: int, extra: int) -> None:
    at, beyond = float(efficiency(noise, first, first + extra)), float(efficiency(noise, first, first + 2 * extra))
    assert 0 < beyond <= at <= 1
    assert efficiency(noise, first, first) == 1.0


@given(st.floats(1.0, 1e6), st.integers(1, 1000), st.integers(1, 1000))
def test_efficiency_is_the_published_gain_over_scale(noise: float, first: int, factor: int) -> None:
    sqr, var = 1.0, noise / first
    gain = (var + sqr) / (var / factor + sqr)
    assert float(efficiency(noise, first, first * factor)) == pytest.approx(gain / factor, rel=1e-12)


def test_noise_scale_is_geometric_between_points() -> None:
    assert noise_scale_at((1.0, 100.0), 0.5) == pytest.approx(10.0)
    assert noise_scale_at((1.0, 100.0, 7.0), 1.0) == pytest.approx(7.0)
    with pytest.raises(InvalidDataError, match=r"1\.5"):
        noise_scale_at((1.0, 2.0), 1.5)


@pytest.mark.parametrize(
    "values", [(-0.1, 0, 0, 0, 0, 0, 1), (0, float("nan"), 0, 0, 0, 0, 1), (0, 0, 0, 0, 0, 0, 0.5)]
)
def test_impossible_parameters_are_refused(values: tuple[float, ...]) -> None:
    with pytest.raises(InvalidDataError, match="must be"):
        ThroughputParameters(*values)


def test_every_application_has_all_seven_gpu_types() -> None:
    assert set(APPLICATIONS) == {"cifar10", "bert", "deepspeech2", "yolov3", "imagenet", "ncf"}
    for name, application in APPLICATIONS.items():
        assert application.name == name
        assert set(application.gpus) == SEVEN_TYPES
        assert len(application.noise_scale) == 11


def test_quad_networks_are_raised_above_its_nodes() -> None:
    for application in APPLICATIONS.values():
        quad = application.gpus["quad"].parameters
        assert quad.alpha_n == pytest.approx(1.1 * quad.alpha_r)
        assert quad.beta_n == pytest.approx(1.1 * quad.beta_r)


def test_bootstrapping_scales_one_gpu_throughput_by_the_ratio() -> None:
    slower = bootstrapped(EXAMPLE, 4.0)
    assert throughput(EXAMPLE, 1, 1, 32) / throughput(slower, 1, 1, 32) == pytest.approx(4.0, rel=1e-6)
    assert (slower.alpha_n, slower.beta_r) == (EXAMPLE.alpha_n, EXAMPLE.beta_r)
    with pytest.raises(InvalidDataError, match="slowdown"):
        bootstrapped(EXAMPLE, 0.0)


def test_unknown_application_lists_the_known_ones() -> None:
    with pytest.raises(UnknownApplicationError, match=r"'gpt5'.*bert.*yolov3"):
        application_of("gpt5")


@pytest.mark.parametrize(
    "field", [{"max_batch_size": 1}, {"work_samples": 0.0}, {"noise_scale": (1.0,)}, {"slowdown": 0.0}]
)
def test_impossible_applications_are_refused(field: dict[str, object]) -> None:
    sound: dict[str, object] = {
        **{"name": "toy", "init_batch_size": 8, "max_batch_size": 64, "work_samples": 100.0, "noise_scale": (1.0, 2.0)},
        **{"restart_s": 0.0, "policy_restart_s": 0.0, "slowdown": 1.0, "gpus": {"t4": GpuProfile(EXAMPLE, 1, 8)}},
    }
    assert Application(**sound).name == "toy"  # type: ignore[arg-type]
    with pytest.raises(InvalidDataError, match="toy"):
        Application(**{**sound, **field})  # type: ignore[arg-type]
    with pytest.raises(InvalidDataError, match="local batch"):
        GpuProfile(EXAMPLE, 9, 8)
