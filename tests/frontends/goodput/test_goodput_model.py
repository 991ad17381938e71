"""Rows of goodput: the compiled kernel against a slow twin, phases, limits and errors."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter.runtime.errors import InvalidDataError
from copter_frontends.goodput import (
    APPLICATIONS,
    PHASES,
    Application,
    GoodputModel,
    UnknownApplicationError,
    efficiency,
    noise_scale_at,
    throughput,
)
from copter_frontends.vocabulary import Cluster, Configuration, UnknownGpuTypeError, configurations_of

KINDS = ("t4", "rtx", "quad", "v100", "a100", "p100", "k80")
SMALL = configurations_of(Cluster.of(dict.fromkeys(KINDS, (4, 8))))
MODEL = GoodputModel(SMALL)
LOADED = """
from copter_frontends.goodput import GoodputModel
from copter_frontends.goodput.batch_kernel import best_batches
from copter_frontends.vocabulary import Configuration
print(len(best_batches.signatures))
model = GoodputModel([Configuration(1, 1, "t4")])

print(len(best_batches.signatures))
"""


def slow_noise(application: Application, progress: float, total: int) -> float:
    """The noise scale at a total batch: linear between those it was measured at, at the middle of the phase."""
    middle = (min(int(progress * PHASES), PHASES - 1) + 0.5) / PHASES
    table = application.noise_by_batch
    return float(np.interp(total, sorted(table), [noise_scale_at(table[batch], middle) for batch in sorted(table)]))


def slow_best(
    application: Application, place: Configuration, progress: float, cap: int
) -> tuple[float, tuple[int, int, int] | None]:
    """Best goodput and batch of one configuration, written from the equations without regard to speed."""
    best, chosen = 0.0, None
    profile = application.gpus.get(place.gpu_type)
    if profile is None:
        return best, chosen
    low = max(application.init_batch_size, profile.min_local_batch_size * place.gpus)
    if low > cap:
        return best, chosen
    for batch in np.geomspace(low, cap, 50):
        share = batch / place.gpus
        steps = math.ceil(share / profile.max_local_batch_size - 1e-8) - 1
        if place.gpus == 1 and share > application.init_batch_size + 1e-8:
            steps = max(steps, 1)
        local = math.ceil(share / (steps + 1) - 1e-8)
        if not profile.min_local_batch_size <= local <= profile.max_local_batch_size:
            continue
        total = place.gpus * local * (steps + 1)
        rate = float(throughput(profile.parameters, place.nodes, place.gpus, local, steps))
        goodput = rate * float(efficiency(slow_noise(application, progress, total), application.init_batch_size, total))
        assert goodput <= rate
        if goodput > best:
            best, chosen = goodput, (total, local, steps)
    return best, chosen


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(sorted(APPLICATIONS)), st.floats(0, 1), st.one_of(st.none(), st.integers(1, 40_000)))
def test_row_equals_the_slow_twin(name: str, progress: float, cap: int | None) -> None:
    application = APPLICATIONS[name]
    most = min(cap or application.max_batch_size, application.max_batch_size)
    row = MODEL.row(name, progress, cap)
    slow = [slow_best(application, place, progress, most) for place in SMALL]
    np.testing.assert_allclose(row, [value for value, _ in slow], rtol=1e-12, atol=0)
    assert ((row > 0) == [batch is not None for _, batch in slow]).all()


@pytest.mark.parametrize("name", sorted(APPLICATIONS))
def test_batch_gives_the_rows_goodput(name: str) -> None:
    application = APPLICATIONS[name]
    row = MODEL.row(name, 0.51)
    runnable = 0
    for place, goodput in zip(SMALL, row, strict=True):
        batch = MODEL.batch(name, 0.51, place)
        if batch is None:
            assert goodput == 0
            continue
        runnable += 1
        profile = application.gpus[place.gpu_type]
        total, local, steps = batch
        assert total == place.gpus * local * (steps + 1)
        assert profile.min_local_batch_size <= local <= profile.max_local_batch_size
        assert application.init_batch_size <= total < application.max_batch_size + place.gpus * (steps + 1)
        rate = throughput(profile.parameters, place.nodes, place.gpus, local, steps)
        assert goodput == pytest.approx(
            float(rate * efficiency(slow_noise(application, 0.51, total), application.init_batch_size, total)),
            rel=1e-12,
        )
        assert goodput <= rate * (1 + 1e-12)
    assert runnable == len(SMALL)


def test_zero_where_the_smallest_local_batches_exceed_the_largest_batch() -> None:
    places = [Configuration(12, 96, "t4"), Configuration(13, 104, "t4")]
    row = GoodputModel(places).row("bert", 0.5)  # 384 / 4 = 96 GPUs at most
    assert row[0] > 0
    assert row[1] == 0


def test_zero_for_a_type_without_a_model_and_for_a_cap_below_the_first_batch() -> None:
    bert = APPLICATIONS["bert"]
    only_t4: Mapping[str, Application] = {
        "bert": replace(bert, gpus={"t4": bert.gpus["t4"]}),
        "ncf": APPLICATIONS["ncf"],
    }
    model = GoodputModel([Configuration(1, 1, "t4"), Configuration(1, 1, "a100")], only_t4)
    assert (model.row("bert", 0.2) > 0).tolist() == [True, False]
    assert (model.row("ncf", 0.2) > 0).all()
    assert (MODEL.row("bert", 0.2, 11) == 0).all()
    assert MODEL.batch("bert", 0.2, SMALL[0], 11) is None
    assert model.training_time_s("bert", Configuration(1, 1, "a100")) == math.inf


def test_a_lower_cap_never_raises_goodput() -> None:
    for name in APPLICATIONS:
        free, capped = MODEL.row(name, 0.9), MODEL.row(name, 0.9, APPLICATIONS[name].init_batch_size * 8)
        assert (capped <= free * 1.02).all()  # the two grids of 50 candidates differ
        assert capped.sum() < free.sum()


@given(st.sampled_from(sorted(APPLICATIONS)), st.floats(0, 1))
def test_phases_partition_training(name: str, progress: float) -> None:
    phase = MODEL.phase(name, progress)
    start = MODEL.phase_end(name, phase - 1) if phase else 0.0
    assert start <= progress <= MODEL.phase_end(name, phase)


def test_a_phases_end_starts_the_next() -> None:
    ends = [MODEL.phase_end("bert", phase) for phase in range(MODEL.phases)]
    assert ends == sorted(set(ends))
    assert ends[-1] == 1.0
    assert [MODEL.phase("bert", end) for end in ends] == [*range(1, PHASES), PHASES - 1]
    assert MODEL.phase("bert", 0.0) == 0


def test_rows_are_shared_read_only_and_constant_within_a_phase() -> None:
    first = MODEL.row("cifar10", 0.5001)
    assert MODEL.row("cifar10", 0.5249) is first
    assert MODEL.row("cifar10", 0.5001, 10**9) is first  # a cap above the application's own changes nothing
    assert MODEL.row("cifar10", 0.5251) is not first
    assert first.dtype == np.float64
    assert first.shape == (len(SMALL),)
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1.0


def test_training_time_is_the_integral_of_the_rows() -> None:
    place = Configuration(1, 8, "a100")
    application, total = APPLICATIONS["imagenet"], 0.0
    position = SMALL.index(place)
    for phase in range(PHASES):
        rate = MODEL.row("imagenet", (phase + 0.5) / PHASES)[position]
        total += application.work_samples / PHASES / rate * application.slowdown
    assert MODEL.training_time_s("imagenet", place) == pytest.approx(total)
    assert 5 * 3600 < total < 10 * 3600


def test_bad_questions_are_answered_with_clear_errors() -> None:
    with pytest.raises(UnknownGpuTypeError, match=r"'h100'.*a100"):
        GoodputModel([Configuration(1, 1, "h100")])
    with pytest.raises(UnknownApplicationError, match=r"llama.*bert"):
        MODEL.row("llama", 0.5)
    for progress in (-0.1, 1.1, math.nan):
        with pytest.raises(InvalidDataError, match="progress"):
            MODEL.row("bert", progress)
    with pytest.raises(InvalidDataError, match="max_batch_size"):
        MODEL.row("bert", 0.5, 0)
    with pytest.raises(InvalidDataError, match="configurations"):
        MODEL.batch("bert", 0.5, Configuration(9, 72, "t4"))
    with pytest.raises(InvalidDataError, match="phase"):
        MODEL.phase_end("bert", PHASES)


def test_no_configurations_give_an_empty_row() -> None:
    assert GoodputModel([]).row("bert", 0.5).shape == (0,)


def test_a_row_of_a_ten_thousand_gpu_cluster_agrees_with_the_slow_twin_at_its_ends() -> None:
    places = configurations_of(Cluster.of({kind: (179 if i < 4 else 178, 8) for i, kind in enumerate(KINDS)}))
    assert len(places) == 1271
    row = GoodputModel(places).row("ncf", 0.5)
    for at in (0, 3, 181, 1270):
        found, _ = slow_best(APPLICATIONS["ncf"], places[at], 0.5, APPLICATIONS["ncf"].max_batch_size)
        assert row[at] == pytest.approx(found, rel=1e-12)


def test_a_model_loads_its_kernel_when_it_is_made() -> None:
    made = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert made.stdout.split() == ["0", "1"]
