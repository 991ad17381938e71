"""Jobs of a model that ran before (thesis 6.2), and profiling with more than one GPU count (3.5.8)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from copter.runtime.errors import SettingsError
from copter_frontends.cli.options import SimulateOptions
from copter_frontends.cli.run import Run
from copter_frontends.cli.simulate import simulate
from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.sia import SiaPolicy
from copter_frontends.simulator import Simulation, load_run, save_run
from copter_frontends.vocabulary import Job, configurations_of
from copter_frontends.vocabulary.named_clusters import cluster_from
from copter_frontends.vocabulary.semantics import SIA_THESIS, Semantics

PROFILED_S = 20.0
TYPES = 3


def run_of(semantics: Semantics, jobs: list[Job]) -> Simulation:
    cluster = cluster_from("sia-het")
    model = GoodputModel(configurations_of(cluster))
    policy = SiaPolicy(cluster, model, semantics=semantics)
    return Simulation(cluster, jobs, policy, model, 60.0, semantics=semantics)


def two(application: str = "cifar10") -> list[Job]:
    """A job, and one of the same model that is submitted long after the first has ended."""
    return [Job("first", application), Job("second", application, submit_s=86_400.0)]


def first_gpus(simulation: Simulation, job: str) -> int:
    spans = [span for span in simulation.result().spans if span.job == job]
    return min(spans, key=lambda span: span.begin_s).gpus


def column(simulation: Simulation, name: str) -> dict[str, float]:
    jobs = simulation.result().jobs
    return dict(zip(jobs["id"].tolist(), jobs[name].astype(float).tolist(), strict=True))


def test_a_job_of_a_model_that_ran_before_is_not_profiled_and_starts_where_it_ran() -> None:
    plain, known = run_of(SIA_THESIS, two()), run_of(replace(SIA_THESIS, deja_vu=True), two())
    for each in (plain, known):
        each.run()
    assert (first_gpus(plain, "first"), first_gpus(plain, "second")) == (1, 1)
    assert first_gpus(known, "first") == 1
    assert first_gpus(known, "second") > 4
    jct_s = [column(each, "jct_s") for each in (plain, known)]
    assert jct_s[0]["first"] == jct_s[1]["first"]
    assert jct_s[1]["second"] < jct_s[0]["second"]
    wait_s = [column(each, "first_start_s")["second"] for each in (plain, known)]
    assert wait_s[0] - wait_s[1] == 60.0, "20 s of profiling are a round's"


def test_nothing_is_known_of_a_model_before_its_first_job_ends() -> None:
    semantics = replace(SIA_THESIS, deja_vu=True)
    together = run_of(semantics, [Job("first", "cifar10"), Job("second", "cifar10", submit_s=30.0)])
    together.run()
    assert first_gpus(together, "second") == 1
    other = run_of(semantics, [Job("first", "cifar10"), Job("second", "ncf", submit_s=86_400.0)])
    other.run()
    assert first_gpus(other, "second") == 1


def test_what_was_learned_is_saved_with_a_run(tmp_path: Any) -> None:
    semantics = replace(SIA_THESIS, deja_vu=True)
    whole, cut = run_of(semantics, two()), run_of(semantics, two())
    whole.run()
    cut.run(hours=20)
    save_run(cut, tmp_path / "run")
    rest = load_run(tmp_path / "run")
    rest.run()
    assert column(rest, "jct_s") == column(whole, "jct_s")


@pytest.mark.parametrize("gpus", [1, 2, 4])
def test_profiling_on_more_gpus_takes_longer_is_charged_and_grants_none(gpus: int) -> None:
    simulation = run_of(replace(SIA_THESIS, profiled_gpus=gpus, profiling_s=PROFILED_S), two()[:1])
    simulation.step()
    assert not simulation.active, "it is being profiled"
    counts = gpus.bit_length()
    while not simulation.active:
        simulation.step()
    assert simulation.now_s == 60.0 * (1 + -(-PROFILED_S * counts // 60.0))
    hints = simulation._training.news(0)["hints"]  # type: ignore[attr-defined]
    assert set(hints.max_gpus.values()) == {gpus}
    assert bool(hints.several) is (gpus > 1)
    assert simulation._table.gpu_seconds[0] >= PROFILED_S * (2 * gpus - 1) * TYPES
    simulation.run()
    spans = sorted((span.begin_s, span.gpus) for span in simulation.result().spans)
    sizes = [count for _, count in spans]
    assert sizes[0] == 1
    had = 1
    for count in sizes[1:]:
        assert count <= 2 * had, sizes
        had = max(had, count)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"profiled_gpus": 3}, "profiled_gpus is 3, must be a power of two"),
        ({"profiled_gpus": 0}, "profiled_gpus is 0"),
        ({"profiled_gpus": 2, "profiling_share": 0.1}, "without profiling_share"),
        ({"profiled_gpus": 2, "profiling": "none"}, "needs profiling='bootstrap'"),
        ({"deja_vu": True, "profiling": "oracle"}, "deja_vu needs"),
        ({"deja_vu": True, "training": "exact", "profiling": "oracle"}, "deja_vu needs"),
    ],
)
def test_what_cannot_be_profiled_or_remembered_is_refused(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint):
        replace(SIA_THESIS, **change)


def test_the_command_line_has_it(tmp_path: Any) -> None:
    given = ["sia", "--cluster", "sia-het", "--jobs", "4", "--hours", "1", "--semantics", "thesis", "--deja-vu"]
    with simulate.make_context("simulate", given) as context:
        simulation = Run.read(SimulateOptions(**context.params)).simulation
    assert simulation.semantics.deja_vu is True
