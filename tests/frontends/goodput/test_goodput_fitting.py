"""Fitting: synthetic truth comes back, pinning rules hold, and real profiles are fitted as well as published."""

from __future__ import annotations

import csv
import os
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from copter.runtime.errors import DimensionError, InvalidDataError
from copter_frontends.goodput import ThroughputParameters, compute_time_s, step_time_s
from copter_frontends.goodput.fitting import FittedThroughput, fit_throughput

PROFILES = Path(os.environ.get("COPTER_DATA", "../shared/data")) / "profiles"
TRUTH = ThroughputParameters(0.06, 0.004, 0.3, 0.0066, 0.08, 0.002, 1.8)


def synthetic(places: list[tuple[int, int]], batches: tuple[int, ...] = (4, 8, 16, 32, 64)) -> FittedThroughput:
    """Fit steps that the truth itself makes."""
    rows = np.array([(n, k, b) for n, k in places for b in batches], dtype=float)
    nodes, gpus, local = rows.T
    return fit_throughput(nodes, gpus, local, compute_time_s(TRUTH, local), step_time_s(TRUTH, nodes, gpus, local))


EVERYWHERE = [(1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (2, 16), (4, 32)]


def test_synthetic_truth_is_recovered() -> None:
    fitted = synthetic(EVERYWHERE)
    assert fitted.rmsle_compute < 2e-3
    assert fitted.rmsle_step < 5e-3
    np.testing.assert_allclose(fitted.parameters.as_array()[:2], TRUTH.as_array()[:2], rtol=0.02)
    np.testing.assert_allclose(fitted.parameters.as_array()[2:6:2], TRUTH.as_array()[2:6:2], rtol=0.1)
    assert abs(fitted.parameters.gamma - TRUTH.gamma) < 0.2


def test_without_two_nodes_the_network_is_taken_from_the_node() -> None:
    p = synthetic([(1, 1), (1, 2), (1, 4), (1, 8)]).parameters
    assert p.alpha_n == pytest.approx(1.1 * p.alpha_r)
    assert p.beta_n == pytest.approx(1.1 * p.beta_r)
    assert p.alpha_r == pytest.approx(TRUTH.alpha_r, rel=0.1)


def test_on_one_gpu_synchronising_stays_at_its_floor() -> None:
    p = synthetic([(1, 1)]).parameters
    assert (p.alpha_r, p.beta_r) == pytest.approx((1e-8, 1e-8))
    assert p.alpha_n == pytest.approx(1.1e-8)
    assert p.beta_c == pytest.approx(TRUTH.beta_c, rel=0.02)


def test_on_two_gpus_the_slopes_stay_at_their_floor() -> None:
    p = synthetic([(1, 1), (1, 2), (2, 2)]).parameters
    assert p.beta_r == pytest.approx(1e-8)
    assert p.beta_n == pytest.approx(1e-8)


def test_one_batch_size_halves_the_compute_time() -> None:
    p = synthetic(EVERYWHERE, batches=(16,)).parameters
    compute = float(compute_time_s(TRUTH, 16))
    assert p.alpha_c == pytest.approx(compute / 2)
    assert p.beta_c * 16 == pytest.approx(compute / 2, rel=0.01)


def test_bad_observations_are_refused() -> None:
    with pytest.raises(DimensionError, match="one length"):
        fit_throughput([1], [1, 2], [1], [1.0], [1.0])
    with pytest.raises(DimensionError, match="at least 1"):
        fit_throughput([], [], [], [], [])
    with pytest.raises(InvalidDataError, match="observed step 1: compute_s"):
        fit_throughput([1, 1], [1, 1], [4, 8], [0.1, -0.1], [0.1, 0.2])
    with pytest.raises(InvalidDataError, match="one GPU a node"):
        fit_throughput([2], [1], [4], [0.1], [0.1])
    with pytest.raises(InvalidDataError, match="local_batch_size"):
        fit_throughput([1], [1], [float("nan")], [0.1], [0.1])


def profile_points(model: str, suffix: str) -> NDArray[np.float64]:
    """Measured steps: means over placements with the same nodes and GPUs, and the scalability runs."""
    times: dict[tuple[int, int, float], list[tuple[float, float]]] = defaultdict(list)
    folder = PROFILES / "sia" / model
    with open(folder / f"placements-{suffix}.csv") as file:
        for row in csv.DictReader(file):
            place = row["placement"]
            key = len(place), sum(map(int, place)), float(row["local_bsz"])
            times[key].append((float(row["step_time"]), float(row["sync_time"])))
    with open(folder / f"scalability-{suffix}.csv") as file:
        for row in csv.DictReader(file):
            key = int(float(row["num_nodes"])), int(float(row["num_replicas"])), float(row["local_bsz"])
            times.setdefault(key, [(float(row["step_time"]), float(row["sync_time"]))])
    rows = [(*key, *np.mean(values, axis=0)) for key, values in times.items()]
    return np.array([(n, k, b, step - sync, step) for n, k, b, step, sync in rows if step > sync])


@pytest.mark.skipif(not PROFILES.is_dir(), reason=f"no profiles at {PROFILES}: set COPTER_DATA to the data folder")
@pytest.mark.parametrize(("model", "suffix"), [("cifar10", "rtx"), ("bert", "aws"), ("imagenet", "dgx-ext")])
def test_real_profiles_are_fitted_as_well_as_the_reference(model: str, suffix: str) -> None:
    with open(PROFILES / "derived_sia_perf_params_fit.csv") as file:
        rows = [r for r in csv.DictReader(file) if (r["model"], r["gpu_type"]) == (model, suffix)]
    points = profile_points(model, suffix)
    assert len(points) == int(rows[0]["n_profile_points"])
    fitted = fit_throughput(*points.T)
    assert fitted.rmsle_compute <= 1.1 * float(rows[0]["rmsle_compute"])
    assert fitted.rmsle_step <= 1.1 * float(rows[0]["rmsle_step"])
