"""The load of a workload: by hand on small cases, and as ``copter simulate`` makes and prints it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from copter_frontends.cli import cli
from copter_frontends.policy_kit import ThroughputTable
from copter_frontends.policy_kit.offered_load import offered_load
from copter_frontends.vocabulary import Job

HOUR = 3600.0


def job(name: str, hours: float, gpus: int = 2, submit_s: float = 0.0) -> Job:
    """A job that takes this long on type `a`."""
    return Job(name, "x", submit_s, requested_gpus=gpus, work_samples=hours)


def load(jobs: list[Job], capacity: dict[str, int], begin_h: float, end_h: float, **rates: float) -> dict[str, float]:
    """The load, all and by type, with speeds in hours of work a second."""
    table = ThroughputTable({"x": {kind: speed / HOUR for kind, speed in rates.items()}})
    found = offered_load(jobs, table, capacity, begin_h * HOUR, end_h * HOUR)
    return {"all": found.all, **found.by_type}


def test_only_the_part_of_a_run_that_lies_in_the_window_counts() -> None:
    jobs = [job("before", 1.0), job("within", 1.0, submit_s=2.5 * HOUR), job("long", 900.0, submit_s=3 * HOUR)]
    jobs += [job("after", 1.0, submit_s=4 * HOUR), job("into", 3.0)]
    # of 2 to 4: `within` has 1 h, `long` 1 h of its 900, `into` 1 h
    assert load(jobs, {"a": 8}, 2, 4, a=1.0) == pytest.approx({"all": 3 * 2 / 16, "a": 3 * 2 / 16})


def test_jobs_are_spread_so_that_the_busiest_type_has_the_least() -> None:
    jobs = [job(f"{k}", 1.0, gpus=1) for k in range(12)]
    # a does an hour's work in an hour, b in three: 9 jobs on a's 4 GPUs and 3 on b's 4 take both 9/4 hours of three
    found = load(jobs, {"a": 4, "b": 4}, 0, 3, a=1.0, b=1.0 / 3.0)
    assert found == pytest.approx({"all": 0.75, "a": 0.75, "b": 0.75})


def test_a_job_on_a_slow_type_holds_its_gpus_to_the_end_of_the_window_and_not_longer() -> None:
    jobs = [job(f"{k}", 1.0, gpus=1) for k in range(8)]
    # 8 jobs on 8 GPUs: each is held for the whole hour, whatever is done on it
    found = load(jobs, {"a": 4, "b": 4}, 0, 1, a=1.0, b=1.0 / 3.0)
    assert found == pytest.approx({"all": 1.0, "a": 1.0, "b": 1.0})
    # from the second hour on those on a have ended; on b they hold their GPUs for one hour more
    assert load(jobs, {"a": 8, "b": 8}, 2, 10, a=1.0, b=1.0 / 3.0)["all"] == pytest.approx(0.0)
    assert load(jobs, {"b": 8}, 2, 10, b=1.0 / 3.0)["all"] == pytest.approx(1.0 / 8.0)


def test_a_type_on_which_no_job_runs_does_not_lower_the_load() -> None:
    jobs = [job(f"{k}", 1.0, gpus=1) for k in range(8)]
    assert load(jobs, {"a": 4, "b": 400}, 0, 1, a=1.0) == pytest.approx({"all": 2.0, "a": 2.0, "b": 0.0})
    assert load([job("wide", 1.0, gpus=8)], {"a": 4}, 0, 1, a=1.0)["all"] == 0.0
    assert load([], {"a": 4}, 0, 1, a=1.0)["all"] == 0.0
    assert load(jobs, {"a": 4}, 1, 1, a=1.0)["all"] == 0.0


def test_no_schedule_of_a_load_above_one_does_all_the_work() -> None:
    rng = np.random.default_rng(4)
    jobs = [job(f"{k}", float(rng.uniform(0.1, 1.0)), int(rng.integers(1, 4))) for k in range(60)]
    found = load(jobs, {"a": 10}, 0, 1, a=1.0)["all"]
    assert found == pytest.approx(sum(each.requested_gpus * (each.work_samples or 0.0) for each in jobs) / 10.0)


def simulated(*options: str) -> dict[str, object]:
    """The last line of a short run."""
    found = CliRunner().invoke(cli, ["simulate", "fifo", "--rounds", "20", "--gpus", "400", "--json", *options])
    assert found.exit_code == 0, found.output
    return dict(json.loads(found.stdout.splitlines()[-1]))


def test_the_command_makes_as_many_jobs_as_are_the_load_and_prints_it() -> None:
    low, high = (simulated("--seed", "3", "--load", each)["load"] for each in ("0.8", "1.6"))
    assert isinstance(low, dict)
    assert isinstance(high, dict)
    assert low["all"] == pytest.approx(0.8, rel=0.15)  # so few jobs are in the window that one more is a step
    assert high["all"] == pytest.approx(1.6, rel=0.15)
    assert (low["begin_h"], low["end_h"]) == pytest.approx((9.0, 9.0 + 20 / 60))
    assert set(low["by_type"]) == {"t4", "rtx", "quad", "v100", "a100", "p100", "k80"}


@pytest.mark.parametrize("more", [("--jobs", "9"), ("--trace", "sample")])
def test_a_load_beside_jobs_of_ones_own_is_refused(more: tuple[str, str]) -> None:
    found = CliRunner().invoke(cli, ["simulate", "fifo", "--gpus", "64", "--rounds", "1", "--load", "1", *more])
    assert found.exit_code == 2
    assert "--load" in found.output
