"""Estimated rows (S10): growth, first configurations, projection from type to type, hybrid-parallel jobs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from copter_frontends.goodput.applications import ALL_APPLICATIONS, APPLICATIONS
from copter_frontends.goodput.hints import TrainingHints
from copter_frontends.goodput.job_agent import noise_of
from copter_frontends.goodput.pipeline import pipeline_goodput
from copter_frontends.goodput.profiled import fitted_profiles
from copter_frontends.policies.sia.estimator import HintedGoodput
from copter_frontends.vocabulary import Configuration, Job
from copter_frontends.vocabulary.semantics import SIA_ARTIFACT, Semantics

PER_NODE = {"t4": 4, "rtx": 8, "a100": 8}
PLACES = tuple(
    Configuration(-(-gpus // size), gpus, kind) for kind, size in PER_NODE.items() for gpus in (1, 2, 4, 8, 16, 32)
)
PROFILES = fitted_profiles(ALL_APPLICATIONS)
ONE, SIZES = np.array([c.gpus == 1 for c in PLACES]), np.array([c.gpus for c in PLACES])
KINDS = np.array([c.gpu_type for c in PLACES])


def estimator(**changed: object) -> HintedGoodput:
    semantics: Semantics = replace(SIA_ARTIFACT, **{"growth": 2, **changed})  # type: ignore[arg-type]
    return HintedGoodput(PLACES, PER_NODE, PROFILES, semantics)


def hints(name: str, **most: int) -> TrainingHints:
    """A job that has run on so many GPUs of these types, and fits them as they are."""
    return TrainingHints({kind: APPLICATIONS[name].gpus[kind].parameters for kind in most}, most, 500.0)


def usable(row: np.ndarray, kind: str) -> list[int]:
    return SIZES[(row > 0) & (kind == KINDS)].tolist()


def test_before_the_first_run_a_job_may_start_on_the_smallest_of_each_type() -> None:
    row = estimator().row(Job("j", "cifar10"), None)
    assert (row == ONE).all()
    row = estimator().row(Job("j", "cifar10", min_gpus=3), None)
    assert {kind: usable(row, kind) for kind in PER_NODE} == {key: [4] for key in PER_NODE}
    assert set(row.tolist()) == {0.0, 1.0}
    row = estimator().row(Job("j", "cifar10", reservation=("rtx", 8)), None)
    assert usable(row, "rtx") == [1, 8]
    for fixed in (Job("j", "cifar10", gpus=4), Job("j", "cifar10", preemptible=False)):
        assert (estimator().row(fixed, None) == 1.0).all()


@pytest.mark.parametrize(("had", "most"), [(1, 2), (2, 4), (4, 8)])
@pytest.mark.parametrize("kind", ["t4", "a100"])
def test_a_job_at_most_doubles_what_it_has_had_of_any_type(kind: str, had: int, most: int) -> None:
    row = estimator().row(Job("j", "cifar10"), hints("cifar10", **{kind: had}))
    for other in PER_NODE:
        assert max(usable(row, other)) == most
    alone = estimator(profiling="none").row(Job("j", "cifar10"), hints("cifar10", **{kind: had}))
    assert max(usable(alone, kind)) == most
    assert all(usable(alone, other) == [1] for other in PER_NODE if other != kind)


@pytest.mark.parametrize(("further", "first"), [({}, 1), ({"min_gpus": 3}, 4)])
def test_a_profiled_job_starts_on_one_gpu_and_doubles_from_what_it_ran_on(further: dict[str, int], first: int) -> None:
    """Thesis 3.3.1: exactly one GPU at first, or the fewest that the job can run on."""
    made, job = estimator(profiling="bootstrap"), Job("j", "cifar10", **further)
    seen = hints("cifar10", t4=1, rtx=1, a100=1)
    before = made.row(job, replace(seen, profiled_only=True))
    assert {kind: max(usable(before, kind)) for kind in PER_NODE} == dict.fromkeys(PER_NODE, first)
    assert max(usable(made.row(job, seen), "t4")) == max(2, first)


def test_without_a_growth_limit_the_batch_limits_the_gpus() -> None:
    known = PROFILES["bert"]
    row = estimator(growth=None).row(Job("j", "bert"), hints("bert", t4=1))
    room = max(known.max_batch_size // steps.min_local for kind, steps in known.steps.items() if kind in PER_NODE)
    assert max(usable(row, "t4")) == max(size for size in (1, 2, 4, 8, 16, 32) if size <= room)


@pytest.mark.parametrize(
    ("further", "most"),
    [
        ({}, 2),
        ({"min_gpus": 4}, 4),
        ({"preemptible": False, "requested_gpus": 8}, 8),
        ({"preemptible": False, "requested_gpus": 2, "min_gpus": 8}, 8),
        ({"requested_gpus": 8}, 2),
        ({"reservation": ("t4", 16)}, 16),
    ],
)
def test_the_growth_limit_spares_what_a_job_must_have(further: dict[str, object], most: int) -> None:
    job = Job("j", "cifar10", **further)  # type: ignore[arg-type]
    assert max(usable(estimator().row(job, hints("cifar10", t4=1)), "t4")) == most


def test_another_type_has_the_row_of_the_first_in_order_times_the_ratio_of_single_gpus() -> None:
    made = estimator(projection_order=("a100", "t4"), growth=None)
    seen = hints("cifar10", t4=4, a100=4)
    row, steps = made.row(Job("j", "cifar10"), seen), PROFILES["cifar10"].steps
    alone = made.row(Job("j", "cifar10"), hints("cifar10", a100=4))
    on = {kind: kind == KINDS for kind in PER_NODE}
    np.testing.assert_allclose(row[on["rtx"]], alone[on["rtx"]])
    one = int(np.flatnonzero(on["rtx"] & ONE)[0]), int(np.flatnonzero(on["a100"] & ONE)[0])
    assert row[one[0]] / row[one[1]] == pytest.approx(steps["rtx"].one_gpu_rate / steps["a100"].one_gpu_rate)
    other = estimator(projection_order=("t4", "a100"), growth=None).row(Job("j", "cifar10"), seen)
    assert not np.allclose(other[on["rtx"]], row[on["rtx"]])
    np.testing.assert_allclose(other[on["t4"]], row[on["t4"]])  # a type that was seen is its own source


def test_bootstrap_projects_several_gpus_from_a_type_that_had_several() -> None:
    every = hints("cifar10", t4=1, rtx=4, a100=1)
    job = Job("j", "cifar10")
    row = estimator(profiling="bootstrap", growth=None, projection_order=()).row(job, every)
    plain = estimator(profiling="projected", growth=None, projection_order=()).row(job, every)
    np.testing.assert_allclose(row[ONE], plain[ONE])
    t4 = (KINDS == "t4") & ~ONE
    assert not np.allclose(row[t4], plain[t4])
    np.testing.assert_allclose(row[KINDS == "rtx"], plain[KINDS == "rtx"])
    steps = PROFILES["cifar10"].steps
    ratio = steps["a100"].one_gpu_rate / steps["rtx"].one_gpu_rate
    wide = SIZES[0 : len(SIZES)] > 1  # rtx and a100 have nodes of one size, so that their rows are in proportion
    np.testing.assert_allclose(row[(KINDS == "a100") & wide], ratio * row[(KINDS == "rtx") & wide])
    single = estimator(profiling="bootstrap", growth=None).row(job, hints("cifar10", t4=1, rtx=1, a100=1))
    nobody = estimator(profiling="projected", growth=None).row(job, hints("cifar10", t4=1, rtx=1, a100=1))
    np.testing.assert_allclose(single, nobody)


def test_without_projection_an_unseen_type_counts_as_little_as_the_least_seen() -> None:
    row = estimator(profiling="none", growth=4).row(Job("j", "cifar10"), hints("cifar10", t4=2, rtx=2))
    seen = np.isin(KINDS, ["t4", "rtx"]) & (row > 0)
    assert row[(KINDS == "a100") & ONE] == pytest.approx(row[seen].min())
    assert usable(row, "a100") == [1]


def test_a_job_that_may_not_grow_counts_elsewhere_as_on_its_single_gpu() -> None:
    made = estimator(profiling="none", growth=1)
    row = made.row(Job("j", "cifar10"), hints("cifar10", t4=1))
    assert {kind: usable(row, kind) for kind in PER_NODE} == {kind: [1] for kind in PER_NODE}
    one = row[(KINDS == "t4") & ONE]
    assert one > 1.0
    assert row[ONE].tolist() == pytest.approx([float(one[0])] * 3)


def test_a_rigid_job_has_one_goodput_a_type_on_its_own_gpus() -> None:
    row = estimator().row(Job("j", "cifar10", gpus=4, batch_size=256), hints("cifar10", t4=1))
    assert max(usable(row, "t4")) == 8
    t4 = row[KINDS == "t4"][:3]
    assert t4[0] == pytest.approx(t4[1])  # four GPUs, whatever the configuration


def test_an_application_runs_where_it_has_steps() -> None:
    profiles = {"cifar10": replace(PROFILES["cifar10"], steps={"t4": PROFILES["cifar10"].steps["t4"]})}
    made = HintedGoodput(PLACES, PER_NODE, profiles, SIA_ARTIFACT)
    row = made.row(Job("j", "cifar10"), hints("cifar10", t4=2))
    assert {kind: usable(row, kind) for kind in PER_NODE} == {"t4": [1, 2, 4], "rtx": [], "a100": []}


def gpt(noise: float) -> np.ndarray:
    return pipeline_goodput(
        ALL_APPLICATIONS["gpt"], PLACES, PROFILES["gpt"].max_batch_size, np.ones(1), np.array([noise])
    )


def test_a_hybrid_parallel_job_is_known_beforehand_and_grows_by_replicas() -> None:
    known = PROFILES["gpt"]
    every = estimator(growth=None).row(Job("j", "gpt"), None)
    np.testing.assert_allclose(every, gpt(noise_of(known, known.init_batch_size, 0)))
    first = estimator().row(Job("j", "gpt"), None)
    assert {kind: usable(first, kind) for kind in PER_NODE} == {"t4": [], "rtx": [8], "a100": [2]}
    told = TrainingHints({}, {"rtx": 1, "a100": 4}, 80.0)
    later = estimator().row(Job("j", "gpt"), told)
    assert {kind: usable(later, kind) for kind in PER_NODE} == {"t4": [], "rtx": [8], "a100": [2, 4, 8]}
    np.testing.assert_allclose(later[later > 0], gpt(80.0)[later > 0])
    small = estimator().row(Job("j", "gpt"), TrainingHints({}, {"a100": 1}, 80.0))
    assert usable(small, "a100") == [2]  # a replica is always allowed


def test_a_replica_of_each_type_is_allowed_and_judged_at_the_first_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every type's own smallest usable configuration, however little goodput it has."""
    asked: list[tuple[int, float]] = []
    least = np.array([{"t4": 4, "rtx": 8, "a100": 2}[kind] for kind in KINDS])
    monkeypatch.setattr(
        "copter_frontends.policies.sia.estimator.noise_of",
        lambda known, batch, progress: asked.append((batch, progress)) or 3.0,
    )
    monkeypatch.setattr(
        "copter_frontends.policies.sia.estimator.pipeline_goodput",
        lambda application, places, cap, share, noise: np.where(least <= SIZES, 0.5, 0.0) * noise,
    )
    row = estimator().row(Job("j", "gpt"), None)
    assert asked == [(PROFILES["gpt"].init_batch_size, 0)]
    assert {kind: usable(row, kind) for kind in PER_NODE} == {"t4": [4], "rtx": [8], "a100": [2]}
    assert row.max() == 1.5
    told = estimator().row(Job("j", "gpt"), TrainingHints({}, {"t4": 4}, 1.0))
    assert {kind: usable(told, kind) for kind in PER_NODE} == {"t4": [4, 8], "rtx": [8], "a100": [2, 4, 8]}
    assert told.max() == 0.5


def test_the_least_seen_is_that_on_configurations_the_job_may_have() -> None:
    """A rigid job's goodput on two nodes of its type, not on the eight of a larger one or another's one node."""
    made = estimator(profiling="none", growth=1)
    row = made.row(Job("j", "cifar10", gpus=8, batch_size=512), hints("cifar10", t4=1))
    t4 = row[(KINDS == "t4") & (row > 0)]
    assert t4.min() < 0.99 * t4.max()
    assert row[(KINDS == "a100") & (row > 0)] == pytest.approx(t4.min())


def test_a_hybrid_parallel_jobs_own_limits_hold() -> None:
    wide = estimator(growth=None).row(Job("j", "gpt", min_gpus=8), None)
    assert min(usable(wide, "a100")) == 8
    batch = 48 * 2  # micro-batches of two replicas
    capped = estimator(growth=None).row(Job("j", "gpt", max_batch_size=batch), None)
    assert max(usable(capped, "a100")) == 4
    for fixed in (Job("j", "gpt", gpus=8), Job("j", "gpt", preemptible=False)):
        assert max(usable(estimator().row(fixed, None), "a100")) > 2
