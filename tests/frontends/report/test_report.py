"""Parquet files, plots and the page."""

from __future__ import annotations

import dataclasses
import importlib.util
from html.parser import HTMLParser
from io import StringIO
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from copter.problem.figures import seconds
from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.baselines import FifoPolicy
from copter_frontends.report.charts import MOST_POINTS, _thin, charts_of
from copter_frontends.report.extras import MissingExtraError, check_extras
from copter_frontends.report.figures import image_of
from copter_frontends.report.progress import LiveProgress
from copter_frontends.report.table import cards_of, number
from copter_frontends.report.theme import DARK, LIGHT
from copter_frontends.report.writer import write_report
from copter_frontends.simulator import Simulation, SimulationResult
from copter_frontends.simulator.traces import generate_day
from copter_frontends.vocabulary import configurations_of
from copter_frontends.vocabulary.named_clusters import named_cluster

pq = pytest.importorskip("pyarrow.parquet", reason="needs copter-lp[report]")
pytest.importorskip("matplotlib", reason="needs copter-lp[report]")
pytest.importorskip("jinja2", reason="needs copter-lp[report]")

ROWS = [
    {
        "round": 10 * i,
        "variables": 1000,
        "copter_s": 0.1,
        "highs_warm_s": 1.0,
        "highs_cold_s": None if i == 2 else 9.0,
        "objective_rel_diff": 1e-9,
    }
    for i in range(4)
]


@pytest.fixture(scope="module")
def result() -> SimulationResult:
    """A FIFO run whose records carry a gap and prices too, as those of a policy with a program do."""
    cluster = named_cluster("sia-het")
    jobs = generate_day(40, 4.0, seed=1)
    simulation = Simulation(cluster, jobs, FifoPolicy(cluster), GoodputModel(configurations_of(cluster)))
    found = simulation.run(rounds=200, warmup_rounds=40)
    rounds = tuple(
        dataclasses.replace(r, gap=1e-7 * (1 + r.index), prices={"t4": 0.1, "a100": 0.5}, variables=7)
        for r in found.rounds
    )
    return dataclasses.replace(found, rounds=rounds)


def summary_of(result: SimulationResult) -> dict[str, Any]:
    return {
        "policy": "fifo",
        "gpus": result.gpus,
        **result.summary(),
        "seed": 1,
        "jobs_submitted": 40,
        "highs": {"warm_s": {"p50": 1.0, "p99": 1.0, "max": 1.0}},
    }


class Page(HTMLParser):
    """Collects what a page refers to, and checks that its tags are balanced."""

    VOID = ("meta", "img", "source", "br", "link")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sources: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.sources += [value or "" for name, value in attrs if name in ("src", "srcset", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_page_is_whole_and_refers_to_nothing_outside(result, tmp_path):
    facts = {"Command": "copter simulate fifo <&>", "Cluster": "sia-het"}
    page = write_report(result, tmp_path / "new", summary_of(result), facts, ROWS)
    assert page == tmp_path / "new" / "report.html"
    parsed = Page()
    parsed.feed(page.read_text(encoding="utf-8"))
    text = " ".join(parsed.text)
    assert parsed.open == []
    names = [chart.name for chart in charts_of(result, ROWS)]
    assert names == ["round_time", "gap", "highs", "utilisation", "jobs", "activity", "jct", "prices"]
    assert len(parsed.sources) == 2 * len(names)
    assert all(source.startswith("data:image/svg+xml;base64,") for source in parsed.sources)
    for words in ("fifo on 64 GPUs", "copter simulate fifo <&>", "Average JCT", "Rounds solved by HiGHS too"):
        assert words in text
    for name in names:
        assert (tmp_path / "new" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_the_tables_hold_every_round_and_job(result, tmp_path):
    write_report(result, tmp_path, summary_of(result))
    rounds = pq.read_table(tmp_path / "rounds.parquet").to_pydict()
    jobs = pq.read_table(tmp_path / "jobs.parquet").to_pydict()
    assert rounds["index"] == list(range(240))
    assert rounds["warmup"] == [True] * 40 + [False] * 200
    assert rounds["gpus_used_t4"] == [r.gpus_used["t4"] for r in result.rounds]
    assert rounds["price_a100"][0] == 0.5
    assert sum(rounds["completed_jobs"]) == int(np.isfinite(jobs["jct_s"]).sum())
    assert jobs["id"] == list(result.jobs["id"])
    assert jobs["gpu_seconds"] == list(result.jobs["gpu_seconds"])


def test_a_run_without_programme_or_ends_has_fewer_plots(result, tmp_path):
    bare = dataclasses.replace(
        result,
        rounds=tuple(dataclasses.replace(r, gap=0.0, prices={}, variables=0) for r in result.rounds[:3]),
        jobs={name: values[:0] for name, values in result.jobs.items()},
        spans=(),
    )
    summary = {**summary_of(bare), "highs": None}
    assert [chart.name for chart in charts_of(bare, [])] == ["utilisation", "jobs"]
    write_report(bare, tmp_path, summary)
    assert "Gap" not in [name for name, _, _ in cards_of(summary)]
    empty = dataclasses.replace(bare, rounds=())
    assert charts_of(empty, []) == []
    assert write_report(empty, tmp_path, {**summary_of(empty), "highs": None}).exists()


def test_the_same_chart_gives_the_same_bytes_and_themes_differ(result):
    chart = charts_of(result, [])[0]
    assert image_of(chart, LIGHT, "svg") == image_of(chart, LIGHT, "svg") != image_of(chart, DARK, "svg")


@pytest.mark.parametrize("count", [1, MOST_POINTS, MOST_POINTS + 1, 1440, 1441])
def test_long_runs_are_thinned_without_losing_their_mean(count):
    values = np.arange(count, dtype=np.float64)
    thin = _thin(values, np.mean)
    step = -(-count // MOST_POINTS)
    assert len(thin) == -(-count // step) <= MOST_POINTS
    assert thin[0] == values[:step].mean()
    assert thin[-1] == values[(len(thin) - 1) * step :].mean()


def test_a_missing_package_names_the_extra(monkeypatch, result, tmp_path):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        "copter_frontends.report.extras.find_spec", lambda name: None if name == "jinja2" else real(name)
    )
    with pytest.raises(MissingExtraError, match="needs jinja2: pip install jinja2"):
        check_extras()
    with pytest.raises(MissingExtraError):
        write_report(result, tmp_path / "none", summary_of(result))
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.0, "0 s"), (3.2e-6, "3.2 µs"), (0.0123, "12.3 ms"), (1.234, "1.23 s"), (2345.6, "2,346 s")],
)
def test_seconds_as_text(value, text):
    assert seconds(value) == text
    assert number(None, "{}") == "–"


def test_progress_on_a_terminal_is_one_live_line(result):
    stream = StringIO()
    console = Console(file=stream, force_terminal=True, width=150)
    with LiveProgress(len(result.rounds), 40, console) as progress:
        for record in result.rounds[:41]:
            progress(record)
        assert progress._line(result.rounds[40]).startswith("round 41/240: ")
    assert "starting" in stream.getvalue() or "round" in stream.getvalue()


def test_progress_without_a_known_end_follows_the_jobs(result):
    stream = StringIO()
    with LiveProgress(None, 40, Console(file=stream)) as progress:
        for record in result.rounds:
            progress(record)
    ended = sum(len(record.completed) for record in result.rounds)
    lines = stream.getvalue().splitlines()
    assert 1 <= len(lines) <= 10 * ended // 40
    assert "(warm-up)" in lines[0] or lines[0].startswith("round ")


@pytest.mark.parametrize("terminal", [True, False])
def test_the_progress_of_a_resumed_run_goes_on_counting(result, terminal):
    stream, rest = StringIO(), result.rounds[200:]
    with LiveProgress(240, 40, Console(file=stream, force_terminal=terminal, width=150), before=200) as progress:
        for record in rest:
            progress(record)
        if terminal:
            assert progress._bar.tasks[0].completed == progress._bar.tasks[0].total == 240
            assert progress._bar.tasks[0].fields["line"].startswith("round 240/240: ")
            return
    lines = stream.getvalue().splitlines()
    assert [line.partition("/")[0] for line in lines] == [f"round {k}" for k in range(204, 241, 4)]


def test_the_activity_chart_says_how_many_jobs_it_draws(result, monkeypatch):
    def caption() -> str:
        return next(chart.caption for chart in charts_of(result, []) if chart.name == "activity")

    assert "Drawn are" not in caption()
    monkeypatch.setattr("copter_frontends.report.charts.MOST_JOBS", 2)
    many = len({span.job for span in result.spans})
    assert f"Drawn are 2 of {many} jobs" in caption()
