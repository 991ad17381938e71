"""Rows of a run's table that a reader would take for something else."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from copter_frontends import cli
from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.baselines import FifoPolicy
from copter_frontends.report.charts import charts_of
from copter_frontends.report.table import cards_of, headline, print_side_by_side, print_summary
from copter_frontends.simulator import Simulation
from copter_frontends.simulator.activity import Span
from copter_frontends.simulator.traces import generate_day
from copter_frontends.vocabulary import configurations_of
from copter_frontends.vocabulary.named_clusters import named_cluster

SHORT = ("simulate", "fifo", "--cluster", "sia-het", "--hours", "2", "--jobs", "40")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        cli.main(list(arguments))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


def test_a_short_run_says_how_many_jobs_came_and_were_judged(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, *SHORT, "--json")
    summary = json.loads(out)
    assert summary["jobs_completed"] <= summary["jobs_arrived"] < summary["jobs_submitted"] == 40
    judged = summary["finish_time_fairness"]["jobs"]
    assert judged == summary["jobs_completed"] > 0
    rows = dict(headline(summary))
    assert rows["jobs submitted"] == f"40 ({summary['jobs_arrived']} by the end of the run)"
    assert rows["unfair jobs, thesis / artifact"].endswith(f"% of {judged}")
    assert ("Jobs completed", f"{judged}", f"of {summary['jobs_arrived']} submitted in the run") in cards_of(summary)


def test_the_table_explains_rho_and_the_hours_before(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("simulate", "fifo", "--cluster", "sia-het", "--rounds", "10", "--warmup-rounds", "20")
    _, out, _ = run(capsys, *asked, "--json")
    summary = json.loads(out)
    hours = summary["simulated_h"]
    assert dict(headline(summary))["variables, p50 / max"] == "no round needed a linear program"
    assert dict(headline({**summary, "variables": {"p50": 0.0, "max": 12.0}}))["variables, p50 / max"] == "0 / 12"
    assert dict(headline(summary))["simulated"] == f"{hours:.4g} h (+ {2 * hours:.4g} h to warm up)"
    for show in (lambda console: print_summary(summary, console),
                 lambda console: print_side_by_side([summary] * 3, console)):  # fmt: skip
        text = StringIO()
        show(Console(file=text, width=80))
        told = " ".join(text.getvalue().split())
        assert "finish-time ρ: a completed job's time over its time alone on an equal share" in told
        assert "..." not in told
        assert "…" not in told


def test_a_sampled_day_says_what_it_is_drawn_from(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trace = tmp_path / "log.csv"
    lines = [f"2017-10-09 {h:02d}:{m:02d}:00,600.0,1,600.0,vc" for h in range(20) for m in (0, 20, 40)]
    trace.write_text("\n".join(["timestamp,duration,num_gpus,gpu_time,cluster", *lines]) + "\n")
    asked = ("simulate", "fifo", "--cluster", "sia-het", "--rounds", "2", "--warmup-rounds", "0", "--json")
    code, out, err = run(capsys, *asked, "--trace", str(trace))
    assert code == 0, err
    assert json.loads(out)["jobs_submitted"] == 256
    assert "256 jobs over 24 h, drawn from its 60, some more than once (4 a GPU and day; --jobs N for N)" in err
    _, _, err = run(capsys, *asked, "--trace", str(trace), "--jobs", "30")
    assert "drawn from" not in err


def test_gpus_that_are_no_whole_nodes_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("simulate", "fifo", "--gpus", "60", "--rounds", "1", "--warmup-rounds", "0", "--jobs", "5", "--json")
    _, out, err = run(capsys, *asked)
    gpus = json.loads(out)["gpus"]
    assert gpus != 60
    assert f"--gpus 60: a cluster of whole nodes, {gpus} GPUs" in err


def test_the_activity_chart_says_how_many_jobs_it_draws() -> None:
    cluster = named_cluster("sia-het")
    model = GoodputModel(configurations_of(cluster))
    made = Simulation(cluster, generate_day(5, hours=1.0, seed=1), FifoPolicy(cluster), model).run(rounds=2)
    spans = tuple(Span(f"job{k}", 60.0 * k, 60.0 * k + 30.0, "a100", 1) for k in range(500))
    charts = {chart.name: chart.caption for chart in charts_of(replace(made, spans=spans), [])}
    assert "Drawn are 160 of 500 jobs, evenly by their first start." in charts["activity"]


@pytest.mark.parametrize("policies", [2, 3, 5, 8])
def test_no_heading_of_a_comparison_is_cut_in_80_columns(capsys: pytest.CaptureFixture[str], policies: int) -> None:
    _, out, _ = run(capsys, *SHORT, "--json")
    names = ["gavel-finish-time-fairness", "gavel-max-min-fairness", "tiresias", "srtf", "sia", "hadar", "yarn-cs", "x"]
    summaries = [{**json.loads(out), "policy": name} for name in names[:policies]]
    text = StringIO()
    print_side_by_side(summaries, Console(file=text, width=80))
    assert "…" not in text.getvalue()
    assert max(len(line.rstrip()) for line in text.getvalue().splitlines()) <= 80
    squeezed = "".join(text.getvalue().split())
    assert squeezed.count("averageJCT") >= policies / 2
    assert ("tiresias" in squeezed) == (policies > 2)
