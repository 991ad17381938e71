"""The Hadar paper's figures in small: the numbers that their commands come to, against what they must be."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from copter_frontends.policies.hadar import HadarPolicy
from copter_frontends.policy_kit import GoodputThroughputs
from copter_frontends.simulator import Simulation
from copter_frontends.simulator.table_source import TableApplication, TableSource
from copter_frontends.vocabulary import Cluster, Job, configurations_of
from copter_papers.hadar.workload import RESTART_S, STEPS_PER_S, hadar_jobs

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks" / "tables"))
import hadar_changes
import hadar_figures
import hadar_packing
from hadar_watch import Watched

ROUND_S = 360.0


def told(
    module: ModuleType, options: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[Any, list[list[str]]]:
    """The figures of a command, and the words of every line that it printed."""
    monkeypatch.setattr(sys, "argv", ["command", *options, "--json"])
    module.main()
    lines = capsys.readouterr().out.splitlines()
    return json.loads(lines[-1]), [line.split() for line in lines[:-1]]


def row(lines: list[list[str]], *begin: str) -> list[float]:
    """The numbers of the line that begins so; brackets and what is no number left out."""
    found = next(words for words in lines if words[: len(begin)] == list(begin))
    numbers = [word.strip("()") for word in found[len(begin) :]]
    return [float(word) for word in numbers if word.replace(".", "").replace("e-", "").isdigit()]


def test_figure_3_is_the_share_of_jobs_done_and_its_multiples_are_hadars(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["3", "--jobs", "16", "--scale", "0.05", "--seeds", "2", "--schedulers", "hadar,yarn"]
    found, lines = told(hadar_figures, options, monkeypatch, capsys)
    for name in ("hadar", "yarn"):
        runs = [np.array(run) for run in found[name]]
        assert [len(run) for run in runs] == [16, 16]
        shares = np.mean([np.percentile(run, hadar_figures.SHARES) for run in runs], axis=0)
        numbers = row(lines, name)
        assert numbers[:6] == pytest.approx(shares.tolist(), abs=0.006)
        assert numbers[6] == pytest.approx(np.mean([run.mean() for run in runs]), rel=0.01)
        ratio = [mine.mean() / np.mean(base) for mine, base in zip(runs, found["hadar"], strict=True)]
        assert numbers[9] == pytest.approx(np.mean(ratio), rel=0.01)
        assert numbers[12] == {"hadar": 1.0, "yarn": 7.0}[name], "the paper's beside it"
    assert np.mean(found["hadar"]) < np.mean(found["yarn"])


@pytest.mark.parametrize("figure", ["4", "10"])
def test_utilisations_and_changes_are_shares(
    figure: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [figure, "--jobs", "60", "--scale", "0.03", "--seeds", "2", "--schedulers", "hadar,yarn"]
    found, lines = told(hadar_figures, options, monkeypatch, capsys)
    for name in ("hadar", "yarn"):
        used, changed = np.array(found[name]).T
        assert np.all((used > 0.5) & (used <= 1))
        assert np.all((changed > 0) & (changed < 1))
        numbers = row(lines, name)
        assert [numbers[0], numbers[3]] == pytest.approx([used.mean(), changed.mean()], rel=0.01)
    assert np.array(found["hadar"])[:, 0].mean() >= np.array(found["yarn"])[:, 0].mean()


def test_figure_7_times_every_round_at_every_size(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hadar_figures, "CROWDS", (32, 96))
    options = ["7", "--rounds", "2", "--seeds", "2", "--schedulers", "hadar"]
    found, lines = told(hadar_figures, options, monkeypatch, capsys)
    assert {name: np.shape(seconds) for name, seconds in found.items()} == {"hadar 32": (2, 2), "hadar 96": (2, 2)}
    for jobs in (32, 96):
        seconds = np.array(found[f"hadar {jobs}"])
        assert (seconds > 0).all()
        numbers = row(lines, str(jobs), "12", "hadar")
        assert numbers[0] == pytest.approx(np.median(seconds, axis=1).mean(), rel=0.01)
        assert numbers[-1] == pytest.approx(seconds.max(), rel=0.01)


def test_figure_8s_least_average_and_most_are_in_order_and_rise_with_the_rate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["8", "--jobs", "30", "--scale", "0.05", "--seeds", "2", "--schedulers", "hadar,tiresias"]
    found, lines = told(hadar_figures, options, monkeypatch, capsys)
    assert len(found) == 2 * len(hadar_figures.RATES)
    for name, figures in found.items():
        least, average, most = np.array(figures)
        assert np.all((least > 0) & (least < average) & (average < most)), name
    slow, fast = (np.mean(found[f"hadar {rate}"][1]) for rate in (0.5, 2.0))
    assert slow <= fast * 1.02
    printed = row(lines, "40", "hadar")  # 2 jobs an hour of a twentieth of the work
    assert printed[3] == pytest.approx(fast, rel=0.01)


def test_table_4s_losses_are_the_restarts_and_the_paper_s_are_beside_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found, lines = told(hadar_figures, ["IV", "--jobs", "40", "--scale", "0.25"], monkeypatch, capsys)
    paper = {"resnet50": (2.1, 0.33), "resnet18": (1.29, 0.21), "lstm": (2.01, 0.87)}
    paper |= {"cyclegan": (0.68, 0.13), "transformer": (0.71, 0.17)}
    assert set(found) == set(paper)
    for name, ((moved, stayed, every, share, expected),) in found.items():
        assert moved == pytest.approx(100 * RESTART_S[name] / ROUND_S, abs=1e-6)
        assert stayed == 0.0
        assert every == pytest.approx(moved * share / 100, abs=1e-6)
        assert expected == pytest.approx(paper[name][0] * share / 100 + paper[name][1] * (1 - share / 100))
        assert row(lines, name) == pytest.approx([*paper[name], moved, stayed, every, share, expected], rel=0.01)


# What the changes' and the pairs' tables are made of ------------------------------------------------------------------


def watched(work_rounds: float, anew: bool = False) -> Watched:
    """One job of so many rounds of work, alone on two servers of one GPU."""
    cluster = Cluster.of({"v100": (2, 1)})
    source = TableSource(configurations_of(cluster), {"m": TableApplication("m", {"v100": 2.0}, {"v100": 1})})
    found = Watched(HadarPolicy(cluster, GoodputThroughputs(cluster, source)), anew)
    job = Job("j", "m", work_samples=work_rounds * ROUND_S * 2.0, requested_gpus=1)
    Simulation(cluster, [job], found, source, ROUND_S).run()  # type: ignore[arg-type]
    return found


def test_a_job_that_stays_changes_once_and_loses_its_start() -> None:
    found = watched(3.0)
    job = found.jobs["j"]
    assert job.changed == [True, False, False, False]
    assert job.lost[:3] == pytest.approx([10 / 360, 0, 0], abs=1e-9)
    assert np.isnan(job.lost[3]), "the job ended in it"
    assert found.changed_shares() == {
        "together": 0.25,
        "by job": 0.25,
        "by job, after its first": 0.0,
        "of the cluster": 0.25,
    }
    assert found.lost_shares()["m"] == pytest.approx((10 / 360, 0.0, 10 / 1080, 1 / 3), abs=1e-9)


def test_an_average_job_changes_more_often_than_an_average_round() -> None:
    """Nine rounds of one job and one of another: 2 of 10 rounds begin with new GPUs, but 1/9 and 1 of the jobs' own."""
    found = watched(8.5)
    found.jobs["short"] = type(found.jobs["j"])("m", [True], [float("nan")])
    shares = found.changed_shares()
    assert shares["together"] == pytest.approx(2 / 10)
    assert shares["by job"] == pytest.approx((1 / 9 + 1) / 2)


def test_the_changes_table_prints_all_variants(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found, lines = told(hadar_changes, ["--jobs", "10", "--scale", "0.03"], monkeypatch, capsys)
    for arrivals in ("static", "continuous"):
        plain, anew = found[f"{arrivals}, hadar"], found[f"{arrivals}, anew"]
        assert plain["together"][0] <= anew["together"][0]
        assert 0 < plain["together"][0] <= plain["by job"][0] <= 1
    assert row(lines, "hadar")[:2] == pytest.approx(
        [found["static, hadar"]["together"][0], found["static, hadar"]["by job"][0]], rel=0.01
    )


def pairs(count: int, factor: float | None, rounds: float = 2.0) -> tuple[hadar_packing.Rounds, list[Job]]:
    """Jobs of so many rounds of work each for one V100, two models taking turns, and their rate beside each other."""
    models = ("resnet18", "lstm")
    jobs = [
        Job(f"j{i}", m, work_samples=rounds * ROUND_S * STEPS_PER_S[m]["v100"], requested_gpus=1)
        for i, m in ((i, models[i % 2]) for i in range(count))
    ]
    size = len(hadar_packing.MODELS)
    factors = None if factor is None else np.full((size, size, 1), factor)
    return hadar_packing.Rounds(Cluster.of({"v100": (1, 1)}), jobs, factors), jobs


@pytest.mark.parametrize(
    ("count", "factor", "worth", "progress"),
    [(2, None, 1 / 2, 1.0), (2, 0.75, 2 / 3, 1.5), (2, 0.5, 1 / 2, 1.0), (1, 0.75, 1 / 2, 1.0), (4, 0.75, 2 / 3, 1.5)],
)
def test_a_round_with_a_pair_is_worth_what_it_is_by_hand(
    count: int, factor: float | None, worth: float, progress: float
) -> None:
    """Alone a job needs 2 rounds, beside another at 0.75 of its rate 3, at 0.5 of it 4; one job has nobody there."""
    made, jobs = pairs(count, factor)
    left = np.array([job.work_samples or 0.0 for job in jobs])
    assert made.solve(left, np.arange(count))[0] == pytest.approx(worth)
    assert made.solve(left, np.arange(count), "progress")[0] == pytest.approx(progress)


def test_a_run_with_pairs_ends_when_it_does_by_hand() -> None:
    """Two jobs of one round: in turn they end after 1 and 2 rounds, side by side at 0.75 both after 4/3 of a round."""
    alone, jobs = pairs(2, None, 1.0)
    jct_h, gains = hadar_packing.run(alone, jobs, pairs(2, 0.75, 1.0)[0])
    assert jct_h == pytest.approx(1.5 * 0.1)
    assert gains == [pytest.approx([1.0, 1.5])], "1/2 + 1/2 beside each other, 1 alone; the second round is not short"
    side_by_side, _ = pairs(2, 1.0, 1.0)
    assert hadar_packing.run(side_by_side, jobs)[0] == pytest.approx(0.1)


def test_philly_jobs_mostly_have_one_gpu() -> None:
    for sizes, shares in (("gavel", [0.70, 0.10, 0.15, 0.05]), ("philly", [0.935, 0.022, 0.023, 0.020])):
        drawn = [job.requested_gpus for job in hadar_jobs(4000, seed=1, sizes=sizes)]  # type: ignore[arg-type]
        assert [drawn.count(gpus) / 4000 for gpus in (1, 2, 4, 8)] == pytest.approx(shares, abs=0.02)
