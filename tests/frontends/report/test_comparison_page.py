"""The page of ``copter compare --report``: pairs, intervals, one file."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from copter_frontends import cli
from copter_frontends.report.comparison import ComparedRun, comparison_page, conclusion, difference
from copter_frontends.simulator.paired import Paired

pytest.importorskip("matplotlib", reason="needs copter-lp[report]")
pytest.importorskip("jinja2", reason="needs copter-lp[report]")


class Cells(HTMLParser):
    """The text of every table cell, and what the page would load from elsewhere."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.loads: list[str] = []
        self._inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        self._inside = tag in ("td", "th")
        if self._inside:
            self.rows[-1].append("")
        self.loads += [v for k, v in attrs if k in ("src", "href", "srcset") and v and not v.startswith("data:")]

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.rows[-1][-1] += data


def run_of(policy: str, seed: int, hours: dict[str, float]) -> ComparedRun:
    summary: dict[str, Any] = {
        "policy": policy, "seed": seed, "gpus": 64, "jobs_completed": len(hours), "p99_jct_h": None, "makespan_h": 1.0,
        "avg_jct_h": sum(hours.values()) / len(hours), "utilisation": 0.5, "queue_h_per_job": 0.1,
        "restarts_per_job": 0.0, "round_s": {"p50": 0.001},
    }  # fmt: skip
    return ComparedRun(summary, hours)


def test_the_page_has_every_pair_and_seed() -> None:
    hostile = "<script>alert(1)</script>"
    runs = [run_of("fifo", 4, {"a": 2.0, "b": 3.0, hostile: 9.0}), run_of("sia", 4, {"a": 1.0, "b": 3.5, hostile: 1.0}),
            run_of("fifo", 5, {"a": 2.0, "c": 1.0}), run_of("sia", 5, {"a": 1.0})]  # fmt: skip
    page = comparison_page(runs, "copter compare ...")
    cells = Cells(page)
    assert "<script>" not in page
    assert cells.loads == []
    assert ["4", "3", "0", "0", "-2.833", "2", "1"] in cells.rows
    assert ["5", "1", "1", "0", "-1.000", "1", "0"] in cells.rows
    assert ["average JCT", "3.083 h (1.500 h to 4.667 h)", "1.417 h (1.000 h to 1.833 h)"] in cells.rows
    assert [hostile, "4", "9.000", "1.000"] in cells.rows
    assert "sia: -1.917 h a job, -2.833 to -1.000 h (95% of resampled seeds): sia is faster." in page


def test_intervals_are_over_seeds_or_over_jobs() -> None:
    one = Paired.of({"a": 1.0, "b": 2.0}, {"a": 0.5, "b": 2.5})
    mean, interval, over = difference({0: one})
    assert (mean, interval, over) == (0.0, (-0.5, 0.5), "jobs")
    assert "leaves the sign open" in conclusion("sia", "fifo", {0: one})
    assert difference({0: one, 1: one})[1:] == ((0.0, 0.0), "seeds")
    nothing = Paired.of({"a": 1.0}, {"b": 1.0})
    assert conclusion("sia", "fifo", {0: nothing}) == "No job completed under both fifo and sia."
    lone = Paired.of({"a": 1.0}, {"a": 2.0})
    assert "too few jobs for an interval" in conclusion("sia", "fifo", {0: lone})


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        cli.main(list(arguments))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


def test_compare_writes_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    asked = ("compare", "--policies", "fifo,srtf", "--cluster", "sia-het", "--hours", "2", "--jobs", "200", "--json")
    page = tmp_path / "page.html"
    code, out, err = run(capsys, *asked, "--seeds", "2", "--seed", "7", "--report", str(page))
    assert code == 0, err
    found = json.loads(out)["policies"]
    assert [(each["policy"], each["seed"]) for each in found] == [("fifo", 7), ("srtf", 7), ("fifo", 8), ("srtf", 8)]
    rows = Cells(page.read_text()).rows
    told = {row[0]: row[1:] for row in rows}
    assert told.keys() >= {"7", "8", "average JCT", "utilisation", "mean latency ratio of all jobs"}
    unserved = [
        sum(each["waiting"]["never_run"] for each in found if each["policy"] == name) for name in ("fifo", "srtf")
    ]
    assert min(unserved) > 0
    shown = [float(cell.partition(" (")[0].replace(",", "")) for cell in told["never run, of all jobs"]]
    assert shown == [pytest.approx(count / 2, abs=0.5) for count in unserved]
    assert told["bound on waiting"] == ["none: new jobs may always come first"] * 2
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    code, out, err = run(capsys, *asked, "--report", str(tmp_path / "none" / "page.html"))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "--report" in err
