"""The report in headless Chromium: nothing overlaps or runs out, wide and narrow, light and dark."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest
from service.browser import Browser

from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.baselines import FifoPolicy
from copter_frontends.report.writer import write_report
from copter_frontends.simulator import Simulation
from copter_frontends.simulator.traces import generate_day
from copter_frontends.vocabulary import configurations_of
from copter_frontends.vocabulary.named_clusters import named_cluster

pytest.importorskip("pyarrow", reason="needs copter-lp[report]")
pytest.importorskip("matplotlib", reason="needs copter-lp[report]")
pytest.importorskip("jinja2", reason="needs copter-lp[report]")

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
OVERLAPS = """(() => {
  const boxes = [...document.querySelectorAll('.panel, .card')].map(each => each.getBoundingClientRect());
  return boxes.filter((a, i) => boxes.some((b, k) => k > i && a.left < b.right - 1 && b.left < a.right - 1
    && a.top < b.bottom - 1 && b.top < a.bottom - 1)).length;
})()"""
OUTSIDE = """[...document.querySelectorAll('.panel > *, .card > *')].filter(each => {
  const box = each.getBoundingClientRect(), card = each.parentElement.getBoundingClientRect();
  return box.width > 0 && (box.right > card.right + 1 || box.left < card.left - 1);
}).map(each => each.outerHTML.slice(0, 80))"""
RUN_OUT = """[...document.querySelectorAll('.card *, .panel td, .panel dd')].filter(
  each => each.scrollWidth > each.clientWidth + 1 && !each.closest('.scroll')).map(each => each.textContent)"""
COLOURS = "['color', 'backgroundColor'].map(each => getComputedStyle(document.querySelector('.panel'))[each])"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a short FIFO run with a long command and long notes."""
    cluster = named_cluster("sia-het")
    run = Simulation(
        cluster, generate_day(40, 4.0, seed=1), FifoPolicy(cluster), GoodputModel(configurations_of(cluster))
    )
    found = run.run(rounds=60)
    found = dataclasses.replace(
        found, rounds=tuple(dataclasses.replace(each, gap=1e-7, prices={"t4": 0.1}) for each in found.rounds)
    )
    summary = {"policy": "fifo", "gpus": found.gpus, **found.summary(), "seed": 1, "jobs_submitted": 40, "highs": None}
    facts = {"Command": "copter simulate fifo " + "--a-rather-long-option=with/a/long/value " * 5, "Trace": "x" * 300}
    return write_report(found, tmp_path_factory.mktemp("report"), summary, facts)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "scheme"), [(1200, "light"), (1200, "dark"), (700, "light"), (375, "light"), (375, "dark")]
)
def test_the_report_fits_light_and_dark_wide_and_narrow(report: Path, tmp_path: Path, width: int, scheme: str) -> None:
    page = Browser(report.as_uri(), tmp_path / "profile")
    try:
        page.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
        )
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        page.until("document.readyState === 'complete' && document.querySelectorAll('.panel').length > 2")
        page.until("[...document.images].every(each => each.complete && each.naturalWidth > 0)")
        assert page.value(OVERFLOW) <= 0
        assert page.value(OVERLAPS) == 0
        assert page.value(OUTSIDE) == []
        assert page.value(RUN_OUT) == []
        ink, paper = (sum(map(int, each[4:-1].split(","))) / 3 for each in page.value(COLOURS))
        assert (ink < 60 < 200 < paper) if scheme == "light" else (paper < 60 < 200 < ink)
        if folder := os.environ.get("COPTER_PICTURES"):
            Path(folder, f"report-{width}-{scheme}.png").write_bytes(page.picture())
        assert page.problems == []
    finally:
        page.close()
