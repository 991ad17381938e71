"""Throughputs from a table and from the goodput model."""

from __future__ import annotations

import pytest

from copter.runtime.errors import InvalidDataError
from copter_frontends.goodput import APPLICATIONS, GoodputModel
from copter_frontends.policy_kit import GoodputThroughputs, Throughputs, ThroughputTable
from copter_frontends.vocabulary import Cluster, Configuration, Job

JOB = Job("j", "cifar10", requested_gpus=2, work_samples=100.0)


def test_a_tables_number_is_for_the_requested_gpus_and_scales_in_proportion():
    table = ThroughputTable({"cifar10": {"t4": 10.0}})
    assert isinstance(table, Throughputs)
    assert table.rate(JOB, "t4", 2) == 10.0
    assert table.rate(JOB, "t4", 4) == 20.0
    assert table.rate(JOB, "a100", 2) == 0.0


def test_a_jobs_own_row_goes_before_its_applications_and_may_name_counts():
    table = ThroughputTable({"cifar10": {"t4": 10.0}, "j": {"t4": {1: 3.0, 2: 5.0}}}, work={"j": 7.0})
    assert (table.rate(JOB, "t4", 1), table.rate(JOB, "t4", 2), table.rate(JOB, "t4", 4)) == (3.0, 5.0, 0.0)
    assert table.work(JOB) == 7.0
    assert ThroughputTable({}).work(JOB) == 100.0


def test_what_a_table_does_not_know_is_an_error_that_names_the_job():
    with pytest.raises(InvalidDataError, match="'j'"):
        ThroughputTable({}).rate(JOB, "t4", 1)
    with pytest.raises(InvalidDataError, match="'k'"):
        ThroughputTable({}).work(Job("k", "cifar10"))
    with pytest.raises(InvalidDataError, match="'t4'"):
        ThroughputTable({"j": {"t4": -1.0}})


@pytest.mark.parametrize("gpus", [2, 3, 12])
def test_the_goodput_models_rate_is_its_row_also_where_it_has_no_such_configuration(gpus: int):
    cluster = Cluster.of({"t4": (4, 4)})
    model = GoodputModel([Configuration(1, 2, "t4")])
    source = GoodputThroughputs(cluster, model)
    where = Configuration(-(-gpus // 4), gpus, "t4")
    assert source.rate(JOB, "t4", gpus, 0.5) == GoodputModel([where]).row("cifar10", 0.5)[0]


def test_iterations_are_samples_over_the_initial_batch():
    cluster = Cluster.of({"t4": (4, 4)})
    model = GoodputModel([Configuration(1, 2, "t4")])
    samples, iterations = GoodputThroughputs(cluster, model), GoodputThroughputs(cluster, model, "iterations")
    first = APPLICATIONS["cifar10"].init_batch_size
    assert iterations.rate(JOB, "t4", 2) * first == pytest.approx(samples.rate(JOB, "t4", 2))
    assert iterations.work(JOB) == 100.0 / first
    assert samples.work(Job("k", "bert")) == APPLICATIONS["bert"].work_samples
