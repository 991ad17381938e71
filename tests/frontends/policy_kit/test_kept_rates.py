"""Rates that are kept by a job's shape are those that are worked out for the job itself."""

from __future__ import annotations

import pytest

from copter_frontends.goodput import GoodputModel, UnknownApplicationError
from copter_frontends.policy_kit import GoodputThroughputs, throughputs
from copter_frontends.vocabulary import Job, configurations_of
from copter_frontends.vocabulary.named_clusters import named_cluster

CLUSTER = named_cluster("sia-het")


def made() -> GoodputThroughputs:
    return GoodputThroughputs(CLUSTER, GoodputModel(configurations_of(CLUSTER)))


def jobs() -> list[Job]:
    shapes = [{}, {"max_batch_size": 64}, {"batch_size": 64}, {"gpus": 2}, {"max_batch_size": 64, "batch_size": 32}]
    return [
        Job(f"{application} {at} {again}", application, 0.0, **shape)
        for application in ("bert", "cifar10")
        for at, shape in enumerate(shapes)
        for again in range(2)
    ]


@pytest.mark.parametrize("kept", [100_000, 1])
def test_kept_rates_are_the_jobs_own(monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    monkeypatch.setattr(throughputs, "MOST_RATES", kept)
    source, fresh = made(), made()
    for job in jobs():
        for kind in CLUSTER.types:
            for gpus in (1, 2, 4):
                assert source.rate(job, kind, gpus) == fresh._rate(job, kind, gpus, 0.0)
                assert source.rate(job, kind, gpus, 0.7) == fresh._rate(job, kind, gpus, 0.7)
    assert len(source._first) <= max(kept, 1)


def test_an_unknown_application_is_refused_each_time() -> None:
    source = made()
    for _ in range(2):
        with pytest.raises(UnknownApplicationError):
            source.rate(Job("a", "quantum", 0.0), "t4", 1)
