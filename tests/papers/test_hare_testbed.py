"""The paper's 15 GPUs with its own eight models, on the simulator's round clock."""

import numpy as np
import pytest

from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.hare import HareJob
from copter_frontends.policies.hare.models import MODELS
from copter_frontends.policies.hare.policy import HarePolicy
from copter_frontends.simulator import Simulation
from copter_frontends.vocabulary import Configuration, InvalidJobError, configurations_of
from copter_frontends.vocabulary.named_clusters import cluster_from
from copter_papers.hare.applications import HARE_APPLICATIONS, as_jobs
from copter_papers.hare.workload import TESTBED, PaperWorkload


def test_a_round_takes_as_long_as_in_the_models() -> None:
    kinds = tuple(TESTBED)
    model = GoodputModel([Configuration(1, 2, kind) for kind in kinds], HARE_APPLICATIONS)
    for name, known in MODELS.items():
        job = HareJob(name, 10, 2, {kind: known.train_s(kind) for kind in kinds}, model=name)
        rates = model.job_row(as_jobs([job])[0], 0.0)
        for kind, rate in zip(kinds, rates, strict=True):
            assert 2.0 / rate == pytest.approx(known.train_s(kind) + known.sync_s())


def test_the_testbed_can_be_simulated() -> None:
    cluster = cluster_from("hare-15")
    assert {kind: cluster.capacity(kind) for kind in cluster.types} == TESTBED
    jobs = PaperWorkload(12).make(3)
    model = GoodputModel(configurations_of(cluster), HARE_APPLICATIONS)
    policy = HarePolicy(cluster, model, round_s=60.0, weights={job.id: job.weight for job in jobs})
    result = Simulation(cluster, as_jobs(jobs), policy, model, 60.0).run()
    assert result.skipped == ()
    ends = np.asarray(result.jobs["completion_s"], dtype=np.float64)
    assert np.isfinite(ends).all()
    alone = {job.id: job.rounds * min(job.train_s[k] + job.sync_s[k] for k in job.train_s) for job in jobs}
    jct = dict(zip(result.jobs["id"].tolist(), np.asarray(result.jobs["jct_s"]).tolist(), strict=True))
    assert all(jct[name] >= seconds * (1 - 1e-9) for name, seconds in alone.items())


def test_only_the_eight_models_are_known() -> None:
    with pytest.raises(InvalidJobError, match="no model is named 'gpt'"):
        as_jobs([HareJob("j", 1, 1, {"v100": 1.0}, model="gpt")])
