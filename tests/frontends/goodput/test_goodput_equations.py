"""Goodput's equations one by one, against plain loops: G1 to G6, the loss of G11 and what it does not fit, G15."""

from __future__ import annotations

import csv
import math
import os
from pathlib import Path

import numpy as np
import pytest

from copter.runtime.errors import InvalidDataError
from copter_frontends.goodput import ThroughputParameters, compute_time_s, efficiency, noise_scale_at, step_time_s
from copter_frontends.goodput import fitting as fits
from copter_frontends.goodput.applications import ALL_APPLICATIONS
from copter_frontends.goodput.noise_scales import NOISE_SCALE
from copter_frontends.goodput.pipeline import pipeline_goodput, pipeline_step_s
from copter_frontends.goodput.throughput import sync_time_s, throughput
from copter_frontends.vocabulary import Configuration

PROFILES = Path(os.environ.get("COPTER_DATA", "../shared/data")) / "profiles" / "sia"
P = ThroughputParameters(0.06, 0.004, 0.3, 0.007, 0.08, 0.002, 1.8)


def plain_sync(nodes: int, gpus: int) -> float:
    """G2."""
    if gpus == 1:
        return 1e-8
    further = max(gpus - 2, 1e-8)
    return P.alpha_n + P.beta_n * further if nodes > 1 else P.alpha_r + P.beta_r * further


def plain_step(nodes: int, gpus: int, local: float) -> float:
    """G3."""
    compute, sync = P.alpha_c + P.beta_c * local, plain_sync(nodes, gpus)
    return float((compute**P.gamma + sync**P.gamma) ** (1.0 / P.gamma))


@pytest.mark.parametrize(("nodes", "gpus"), [(1, 1), (1, 2), (1, 3), (1, 8), (2, 2), (2, 3), (4, 32)])
def test_times_and_rates_of_a_step(nodes: int, gpus: int) -> None:
    assert float(sync_time_s(P, nodes, gpus)) == pytest.approx(plain_sync(nodes, gpus), rel=1e-12, abs=0.0)
    for local in (4, 200):
        compute, step = 0.06 + 0.004 * local, plain_step(nodes, gpus, local)
        assert float(compute_time_s(P, local)) == compute
        assert float(step_time_s(P, nodes, gpus, local)) == pytest.approx(step, rel=1e-12)
        for more in (0, 3):
            rate = gpus * local * (more + 1) / (more * compute + step)
            assert float(throughput(P, nodes, gpus, local, more)) == pytest.approx(rate, rel=1e-12)
    assert float(throughput(P, nodes, gpus, 4)) == float(throughput(P, nodes, gpus, 4, 0))


def test_a_floor_between_nodes_is_a_tenth_above_that_within_one() -> None:
    low = ThroughputParameters(0.06, 0.004, 0.01, 0.0001, 0.08, 0.002, 1.8).with_multi_node_floor()
    assert (low.alpha_n, low.beta_n) == (1.1 * 0.08, 1.1 * 0.002)
    assert P.with_multi_node_floor() == P
    for name, value in (("alpha_c", -0.1), ("beta_r", math.inf), ("gamma", 0.99), ("gamma", 10.01)):
        given = dict(zip(ThroughputParameters.__slots__, P.as_array().tolist(), strict=True)) | {name: value}
        with pytest.raises(InvalidDataError, match=name):
            ThroughputParameters(**given)
    for gamma in (1.0, 10.0):
        assert ThroughputParameters(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, gamma).gamma == gamma


def test_efficiency_and_the_noise_between_its_points() -> None:
    assert float(efficiency(300.0, 100, 500.0)) == 400.0 / 800.0
    scale = (1.0, 4.0, 64.0)
    for progress, noise in ((0.0, 1.0), (0.25, 2.0), (0.5, 4.0), (0.75, 16.0), (1.0, 64.0)):
        assert noise_scale_at(scale, progress) == pytest.approx(noise, rel=1e-12)
    for wrong in (-1e-9, 1.0 + 1e-9, 1.5):
        with pytest.raises(InvalidDataError, match="from 0 to 1"):
            noise_scale_at(scale, wrong)


@pytest.mark.skipif(not PROFILES.is_dir(), reason=f"no profiles at {PROFILES}: set COPTER_DATA to the data folder")
@pytest.mark.parametrize("name", NOISE_SCALE)
def test_noise_scales_are_those_of_the_validation_profiles(name: str) -> None:
    """M0 grad_var / grad_sqr at 0, 10, ..., 100% of training, geometrically between epochs, to four digits."""
    application = ALL_APPLICATIONS[name]
    for batch, known in NOISE_SCALE[name].items():
        with open(PROFILES / name / f"validation-{batch}.csv") as file:
            rows = [(row["progress"], row["grad_sqr"], row["grad_var"]) for row in csv.DictReader(file)]
        progress, squared, variance = np.array(rows, dtype=float).T
        held = squared > 0.0
        scale = application.init_batch_size * variance[held] / squared[held]
        at = np.interp(np.linspace(0.0, 1.0, 11), progress[held] / progress[-1], np.log(scale))
        assert [float(f"{value:.4g}") for value in np.exp(at)] == list(known), batch


# Fitting ----------------------------------------------------------------------------------------------------------


def points(places: list[tuple[int, int]], batches: tuple[int, ...] = (4, 16), times: float = 1.0) -> fits._Points:
    rows = np.array([(n, k, b) for n, k in places for b in batches], dtype=float)
    nodes, gpus, local = rows.T
    compute, step = compute_time_s(P, local) * times, step_time_s(P, nodes, gpus, local) * times
    return fits._checked(nodes, gpus, local, compute, step)


def test_the_loss_is_the_errors_and_a_little_for_gamma_and_slopes() -> None:
    """G11: root-mean-square errors of two logarithms, 1e-3 (gamma - 1)^2, 1e-2 of the squared slopes."""
    off = points([(1, 1), (1, 4), (2, 8)], times=1.1)
    compute, step = fits._errors(P, off)
    assert compute == pytest.approx(math.log(1.1), rel=1e-9)
    assert step == pytest.approx(math.log(1.1), rel=1e-9)
    slopes = (0.007 / 0.3) ** 2 + (0.002 / 0.08) ** 2
    loss = 2.0 * math.log(1.1) + 1e-3 * 0.8**2 + 1e-2 * slopes
    assert fits._loss(P, off) == pytest.approx(loss, rel=1e-9)
    half = points([(1, 1)], (4,))
    half.log_compute[0] += 0.3
    assert fits._errors(P, half) == pytest.approx((0.3, 0.0), abs=1e-12)


@pytest.mark.parametrize(
    ("places", "fixed"),
    [
        ([(1, 1), (1, 2), (1, 3), (2, 4)], set()),
        ([(1, 2), (2, 4)], set()),  # two GPUs of one node are several
        ([(1, 1), (2, 4)], {4, 5}),
        ([(1, 1), (1, 2)], {2, 3, 5}),
        ([(1, 1), (1, 2), (2, 2)], {3, 5}),
        ([(1, 1), (1, 4)], {2, 3}),
        ([(1, 1)], {2, 3, 4, 5}),
    ],
)
def test_constants_without_observations_are_not_fitted(places: list[tuple[int, int]], fixed: set[int]) -> None:
    assert fits._pinned(points(places)) == dict.fromkeys(fixed, 1e-8)
    one = fits._pinned(points(places, (16,)))
    assert one.keys() == fixed | {0}
    assert one[0] == pytest.approx((0.06 + 0.004 * 16) / 2, rel=1e-12)


def test_a_fit_is_the_best_of_its_starts_and_no_worse_than_the_truth() -> None:
    seen = [(1, 1), (1, 2), (1, 4), (2, 8), (4, 32)]
    data = points(seen, (4, 16, 64))
    fitted = fits.fit_throughput(
        data.nodes, data.gpus, data.local_batch, np.exp(data.log_compute), np.exp(data.log_step)
    )
    assert fitted.loss <= fits._loss(P, data) * (1 + 1e-3)
    assert fitted.loss == pytest.approx(fits._loss(fitted.parameters, data), rel=1e-9)
    errors = fits._errors(fitted.parameters, data)
    assert (fitted.rmsle_compute, fitted.rmsle_step) == errors


@pytest.mark.parametrize(
    ("column", "value", "what"),
    [
        (0, math.inf, "nodes must be finite"),
        (0, 0.0, "nodes must be finite and >= 1"),
        (1, math.inf, "gpus must be finite"),
        (2, 0.5, "local_batch_size must be finite and >= 1"),
        (2, math.inf, "local_batch_size must be finite"),
        (3, 0.0, "compute_s must be finite and > 0"),
        (3, math.inf, "compute_s must be finite"),
        (4, -1.0, "step_s must be finite"),
    ],
)
def test_each_wrong_observation_is_named(column: int, value: float, what: str) -> None:
    given = [[1.0, 1.0], [1.0, 2.0], [4.0, 8.0], [0.1, 0.2], [0.2, 0.3]]
    fits._checked(*given)
    given[column][1] = value
    with pytest.raises(InvalidDataError, match=f"observed step 1: {what}"):
        fits._checked(*given)
    with pytest.raises(InvalidDataError, match="one GPU a node"):
        fits._checked([1, 3], [1, 2], [4, 4], [0.1, 0.1], [0.2, 0.2])


def test_a_fitted_gamma_stays_within_its_bounds() -> None:
    theta = np.log(np.array([0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 10.0])) + np.array([0.0] * 6 + [1e-12])
    found = fits._parameters(theta)
    assert found.gamma == 10.0
    assert found.alpha_c == pytest.approx(0.1)
    theta[6] = -1e-12
    assert fits._parameters(theta).gamma == 1.0


# Pipelines --------------------------------------------------------------------------------------------------------


def test_a_pipelines_step_and_goodput_are_those_of_the_equation() -> None:
    """3 (P - 1 + micro-batches) T_grad(1) + T_sync(N, K); M = micro-batches K (G15)."""
    application = ALL_APPLICATIONS["gpt"]
    pipeline = application.pipeline
    assert pipeline is not None
    shapes = (("a100", 1, 2), ("a100", 1, 8), ("rtx", 2, 16), ("a100", 1, 3), ("t4", 1, 4))
    places = [Configuration(nodes, gpus, kind) for kind, nodes, gpus in shapes]
    batches, noise = np.array([48.0, 480.0]), np.array([100.0, 300.0])
    cap = 10**6
    found = pipeline_goodput(application, places, cap, batches, noise)
    for place, goodput in zip(places, found, strict=True):
        stages = pipeline.stages.get(place.gpu_type)
        if stages is None or place.gpus % stages:
            assert goodput == 0.0
            continue
        parameters, replicas = application.gpus[place.gpu_type].parameters, place.gpus // stages
        sync = float(sync_time_s(parameters, place.nodes, replicas))
        step = 3 * (stages - 1 + pipeline.microbatches) * (parameters.alpha_c + parameters.beta_c) + sync
        assert pipeline_step_s(application, place) == pytest.approx((step, sync), rel=1e-12, abs=0.0)
        total = pipeline.microbatches * replicas
        scale = float(np.interp(total, batches, noise))
        gained = (scale + application.init_batch_size) / (scale + total)
        assert goodput == pytest.approx(total / step * gained, rel=1e-12)
    total = pipeline.microbatches * (8 // pipeline.stages["a100"])
    assert pipeline_goodput(application, places, total, batches, noise)[1] > 0.0, "a batch at the cap"
    assert pipeline_goodput(application, places, total - 1, batches, noise)[1] == 0.0
    assert pipeline_goodput(ALL_APPLICATIONS["bert"], places, cap, batches, noise).tolist() == [0.0] * 5
    with pytest.raises(InvalidDataError, match="no pipeline"):
        pipeline_step_s(ALL_APPLICATIONS["bert"], places[0])
