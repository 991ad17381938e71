"""What a running job's agent learns and chooses (G7, G12, G13), and goodput from its fit, against plain loops."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from copter_frontends.goodput import ThroughputParameters, compute_time_s, refitting, step_time_s
from copter_frontends.goodput import fitting as fits
from copter_frontends.goodput.applications import ALL_APPLICATIONS
from copter_frontends.goodput.job_agent import ANY_TYPE, MOST_NOISE, FitCache, JobAgent, noise_of
from copter_frontends.goodput.learned import learned_goodput
from copter_frontends.goodput.profiled import FittedSteps, fitted_profiles, profile_of
from copter_frontends.goodput.throughput import throughput
from copter_frontends.vocabulary import InvalidJobError, Job

PROFILES = fitted_profiles()
CIFAR = PROFILES["cifar10"]
M0 = CIFAR.init_batch_size
P = ThroughputParameters(0.06, 0.004, 0.3, 0.007, 0.08, 0.002, 1.8)
T4 = CIFAR.steps["t4"]


def plain_goodput(nodes: int, gpus: int, cap: int, fixed: int | None, noise: float) -> float:
    """G7 by a loop: fifty total batches, the smallest allowed even if it exceeds the cap."""
    low = max(M0, T4.min_local * gpus)
    totals = np.geomspace(low, max(low, cap), 50) if fixed is None else [float(fixed)]
    best = 0.0
    for total in totals:
        share = total / gpus
        steps = math.ceil(share / T4.max_local - 1e-8) - 1
        if gpus == 1 and share > M0 + 1e-8:
            steps = max(steps, 1)
        local = math.ceil(share / (steps + 1) - 1e-8)
        if T4.min_local <= local <= T4.max_local:
            batch = gpus * local * (steps + 1)
            rate = float(throughput(P, nodes, gpus, local, steps))
            best = max(best, rate * (noise + M0) / (noise + batch))
    return best


@pytest.mark.parametrize("given", [{}, {"max_batch_size": 300}, {"max_batch_size": 10**9}, {"batch_size": 512}])
def test_goodput_of_a_fit_is_the_best_over_batches(given: dict[str, int]) -> None:
    nodes, gpus = np.array([1, 1, 1, 2, 8]), np.array([1, 2, 4, 8, 64])
    job = Job("j", "cifar10", **given)  # type: ignore[arg-type]
    found = learned_goodput(job, CIFAR, T4, P, 700.0, nodes, gpus)
    cap = min(given.get("max_batch_size", CIFAR.max_batch_size), CIFAR.max_batch_size)
    wanted = [
        plain_goodput(int(n), int(k), cap, given.get("batch_size"), 700.0) for n, k in zip(nodes, gpus, strict=True)
    ]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert (found > 0).any()


# Agents -----------------------------------------------------------------------------------------------------------


def agent(**given: Any) -> JobAgent:
    return JobAgent(CIFAR, FitCache(), **{"max_batch_size": 2000, **given})


def seen(gpus: int, local: int, kind: str = "t4") -> tuple[int, int, int, float, float]:
    return (1, gpus, local, *CIFAR.steps[kind].step((gpus,), local))


@pytest.mark.parametrize(
    ("gpus", "batch", "split"),
    [
        ((1,), M0, (M0, 0)),
        ((1,), 2 * M0, (M0, 1)),  # one GPU makes a larger batch of at least two gradients
        ((2,), 2 * M0, (M0, 0)),
        ((2,), 2 * M0 + 1, (M0 + 1, 0)),
        ((2, 2), 400, (100, 0)),
        ((1,), 3 * T4.max_local, (T4.max_local, 2)),
        ((2,), 4 * T4.max_local + 2, (math.ceil((2 * T4.max_local + 1) / 3), 2)),
    ],
)
def test_a_fixed_batch_is_split_over_gpus_and_gradients(
    gpus: tuple[int, ...], batch: int, split: tuple[int, int]
) -> None:
    made = agent(fixed_batch=batch, max_batch_size=10**6)
    made.tune("t4", gpus)
    assert (made.local, made.accumulation) == split


def test_before_it_knows_anything_a_job_has_the_smallest_batch() -> None:
    made = agent()
    assert (made.local, made.accumulation, made.noise_scale) == (0, 0, None)
    made.tune("t4", (2,))
    assert (made.local, made.accumulation) == (max(M0, 2 * T4.min_local) // 2, 0)
    assert made.hints() is None
    made.seed("t4", [seen(1, 64), seen(1, 128)])
    assert made.hints() is None, "no noise is known yet"
    made.tune("t4", (1,))
    assert (made.local, made.accumulation) == (M0, 0)
    made.tune("t4", (200,))
    assert made.local == min(T4.min_local, max(1, 2000 // 200)), "at most the largest batch"


def test_a_seeded_job_chooses_the_best_batch_of_its_fit() -> None:
    made = agent()
    made.seed("t4", [seen(k, m) for k in (1, 2, 4) for m in (32, 128)])
    made.seed_noise()
    assert made.noise_scale == noise_of(CIFAR, M0, 0)
    made.noise_scale = 5000.0
    made.tune("t4", (4,))
    hints = made.hints()
    assert hints is not None
    assert (hints.max_gpus, hints.noise_scale, set(hints.parameters)) == ({"t4": 4}, 5000.0, {"t4"})
    fit = hints.parameters["t4"]
    best = {}
    for local in range(T4.min_local, T4.max_local + 1):
        total = 4 * local
        if M0 <= total <= 2000:
            best[local] = float(throughput(fit, 1, 4, local)) * (5000.0 + M0) / (5000.0 + total)
    assert best[made.local] >= 0.995 * max(best.values()), "up to the step between fifty candidates"
    assert made.accumulation == 0


def test_a_step_is_observed_once_and_its_noise_always() -> None:
    made = agent()
    made.local = 64
    made.observe("t4", (2, 2), 0.5, 0.1, 300.0)
    made.observe("t4", (2, 2), 9.0, 1.0, 400.0)
    assert made._seen == {"t4": {(2, 4, 64): (0.5, 0.1)}}
    assert made.noise_scale == 400.0
    hints = made.hints()
    assert hints is not None
    assert hints.max_gpus == {"t4": 4}
    made.local = 32
    made.observe("rtx", (1,), 0.3, 0.0, 500.0)
    later = made.hints()
    assert later is not None
    assert later.max_gpus == {"t4": 4, "rtx": 1}
    assert later.parameters["t4"] == hints.parameters["t4"]


def test_a_type_blind_agent_has_one_model_for_all_types() -> None:
    made = agent(type_blind=True)
    made.local = 64
    made.observe("t4", (2,), 0.5, 0.1, 300.0)
    made.observe("rtx", (2,), 0.1, 0.02, 300.0)
    assert made._seen == {ANY_TYPE: {(1, 2, 64): (0.5, 0.1)}}
    hints = made.hints()
    assert hints is not None
    assert set(hints.parameters) == set(hints.max_gpus) == set(CIFAR.steps)
    assert set(hints.max_gpus.values()) == {2}
    assert len(set(map(id, hints.parameters.values()))) == 1


def test_a_pipelines_batch_is_that_of_its_micro_batches() -> None:
    known = PROFILES["gpt"]
    made = JobAgent(known, FitCache(), 10**6)
    made.tune("a100", (2,))
    pipeline = known.application.pipeline
    assert pipeline is not None
    assert (made.local, made.accumulation) == (1, pipeline.microbatches - 1)
    assert made.hints() is None
    made.observe("a100", (2,), 1.0, 0.1, 90.0)
    hints = made.hints()
    assert hints is not None
    assert (hints.parameters, hints.max_gpus, hints.noise_scale) == ({}, {"a100": 2}, 90.0)


def test_equal_observations_are_fitted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr("copter_frontends.goodput.job_agent.refit", lambda key: calls.append(key) or P)
    cache = FitCache()
    one, other = seen(1, 64), seen(1, 128)
    assert cache.fit([one, other]) is P
    assert cache.fit([other, one]) is P
    assert cache.fit([one]) is P
    assert calls == [(one, other), (one,)]


def test_noise_is_the_variance_over_the_squared_norm() -> None:
    gradients = np.array([[[2.0, 6.0]], [[4.0, 20.0]]])
    known = replace(CIFAR, batches=np.array([100.0, 300.0]), gradients=gradients, epoch_ends=np.ones(1))
    assert noise_of(known, 200, 0) == pytest.approx(M0 * 13.0 / 3.0)
    assert noise_of(known, 50, 0) == pytest.approx(M0 * 3.0)
    none = replace(known, gradients=np.array([[[0.0, 6.0]], [[0.0, 20.0]]]))
    assert noise_of(none, 200, 0) == MOST_NOISE == 1e18
    least = replace(known, gradients=np.array([[[0.5, 6.0]], [[0.5, 6.0]]]))
    assert noise_of(least, 200, 0) == pytest.approx(M0 * 12.0)


# Profiles from constants ------------------------------------------------------------------------------------------


def test_a_profile_of_constants_has_steps_on_one_node_and_on_several() -> None:
    profile = ALL_APPLICATIONS["cifar10"].gpus["t4"]
    steps = FittedSteps(profile)
    assert (steps.most_local((4, 4)), steps.most_local_of(8)) == (steps.max_local, steps.max_local)
    points = steps.observations(3, 9)
    assert {(n, k) for n, k, *_ in points} == {(1, 1), (1, 2), (1, 4), (1, 8), (2, 8)}
    assert {(n, k) for n, k, *_ in steps.observations(4, 16)} >= {(2, 8), (3, 12), (4, 16), (1, 16)}
    shares = sorted({m for _, _, m, *_ in points})
    assert (shares[0], shares[-1], len(shares)) == (steps.min_local, steps.max_local, 6)
    for n, k, m, step, sync in points:
        whole = float(step_time_s(profile.parameters, n, k, m))
        assert step == pytest.approx(whole)
        assert sync == pytest.approx(whole - float(compute_time_s(profile.parameters, m)))
    rate = steps.max_local / float(step_time_s(profile.parameters, 1, 1, steps.max_local))
    assert steps.one_gpu_rate == pytest.approx(rate)


def test_epochs_of_constants_have_the_noise_of_their_middles() -> None:
    application = CIFAR.application
    count = CIFAR.epochs
    assert CIFAR.epoch_ends[-1] == pytest.approx(application.work_samples / M0)
    np.testing.assert_allclose(np.diff(CIFAR.epoch_ends, prepend=0.0), application.work_samples / M0 / count)
    for epoch in (0, count // 2, count - 1):
        batches, scales = application.noise_scales_at((epoch + 0.5) / count)
        for batch, scale in zip(batches, scales, strict=True):
            assert noise_of(CIFAR, int(batch), epoch) == pytest.approx(scale)
    assert CIFAR.max_batch_size == application.max_batch_size
    with pytest.raises(InvalidJobError, match="no profile of 'nothing'; there are bert"):
        profile_of(PROFILES, Job("j", "nothing"))


# Refitting --------------------------------------------------------------------------------------------------------


def observed(places: list[tuple[int, int]], batches: tuple[int, ...] = (16, 64)) -> list[refitting.Observation]:
    """Steps that the constants P make."""
    rows = [(n, k, m) for n, k in places for m in batches]
    steps = [(float(step_time_s(P, *row)), float(compute_time_s(P, row[2]))) for row in rows]
    return [(*row, step, step - compute) for row, (step, compute) in zip(rows, steps, strict=True)]


@pytest.mark.parametrize("seed", range(4))
def test_the_refits_loss_is_that_of_the_fit_and_its_gradient_that_of_differences(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = np.array(observed([(1, 1), (1, 2), (1, 4), (2, 8), (3, 12)]))
    data[:, 3] *= rng.uniform(0.8, 1.2, len(data))
    points = np.column_stack([data[:, :3], np.log(data[:, 3] - data[:, 4]), np.log(data[:, 3])])
    theta = P.as_array() * rng.uniform(0.7, 1.3, 7)
    gradient = np.empty(7)
    loss = refitting.loss_and_gradient(theta, points, gradient)
    same = fits._checked(*data[:, :3].T, data[:, 3] - data[:, 4], data[:, 3])
    assert loss == pytest.approx(fits._loss(ThroughputParameters(*theta), same), rel=1e-6)
    for k in range(7):
        step = np.zeros(7)
        step[k] = 1e-6 * theta[k]
        ends = [refitting.loss_and_gradient(theta + sign * step, points, np.empty(7)) for sign in (1, -1)]
        assert gradient[k] == pytest.approx((ends[0] - ends[1]) / (2 * step[k]), rel=1e-4, abs=1e-6)


def test_a_refit_pins_what_was_not_observed() -> None:
    tiny = pytest.approx(1e-8)
    one = refitting.refit(observed([(1, 1)]))
    assert (one.alpha_r, one.beta_r) == (tiny, tiny)
    assert one.alpha_n == pytest.approx(1.1e-8)
    two = refitting.refit(observed([(1, 1), (1, 2)]))
    assert two.beta_r == tiny
    assert two.alpha_r > 1e-3
    assert two.alpha_n == pytest.approx(1.1 * two.alpha_r)
    wide = refitting.refit(observed([(1, 1), (2, 2)]))
    assert (wide.alpha_r, wide.beta_n) == (tiny, tiny)
    assert wide.alpha_n > 1e-3
    half = refitting.refit(observed([(1, 1), (1, 4)], (16,)))
    assert half.alpha_c == pytest.approx((0.06 + 0.004 * 16) / 2)
    every = refitting.refit(observed([(1, 1), (1, 2), (1, 4), (2, 8), (4, 16)]))
    for n, k, m, step, _ in observed([(1, 1), (1, 4), (2, 8)]):
        assert float(step_time_s(every, n, k, m)) == pytest.approx(step, rel=0.3)


def test_hints_say_whether_a_job_has_run_or_was_only_profiled() -> None:
    agent = JobAgent(CIFAR, FitCache(), CIFAR.max_batch_size)
    agent.seed("t4", T4.observations(1, 1))
    agent.seed_noise()
    profiled = agent.hints()
    assert profiled is not None
    assert (profiled.profiled_only, profiled.max_gpus) == (True, {"t4": 1})
    agent.tune("t4", (1,))
    agent.observe("t4", (1,), 0.5, 0.4, 900.0)
    ran = agent.hints()
    assert ran is not None
    assert (ran.profiled_only, ran.max_gpus) == (False, {"t4": 1})
