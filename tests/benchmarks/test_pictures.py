"""The pictures of README and the pages: each from a tiny input, for light and for dark pages."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from copter_frontends.cli import cli
from copter_frontends.report.theme import DARK, LIGHT

pytest.importorskip("matplotlib", reason="needs copter-lp[report]")
pytest.importorskip("pyarrow", reason="needs copter-lp[report]")

import make_pictures
import tapes
from pictures import day, drawing, first_screen, measured, price_map, recording, terminal, thesis, working_set

ROOT = Path(__file__).parents[2]
HEAD = (
    "## At a glance\n\n| tape | columns | copter, p50 (ms) | fastest other | its p50 (ms) | times | rounds of both |\n"
)
ROWS = "| a-1 | 1,000 | 0.5 | highs | 2 | 4 | 9 |\n| b-1 | 20,000 | 30 | none has an answer | | | |\n"


def words_of(svg: str) -> str:
    """The text of a picture that is one document of XML."""
    root = ElementTree.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    return " ".join(root.itertext()).replace("\u00a0", " ")


def assert_light_and_dark(svg: str) -> None:
    """A rule for dark pages, and the light theme's ground without it."""
    words_of(svg)
    light, _, rest = svg.partition("@media (prefers-color-scheme:dark)")
    assert DARK.ink in rest
    assert LIGHT.ink in rest + light
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")  # nothing from outside


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a small run."""
    folder = tmp_path_factory.mktemp("pictures") / "report"
    command = ["simulate", "sia", "--gpus", "64", "--rounds", "12", "--warmup-rounds", "30", "--jobs", "400"]
    done = CliRunner().invoke(cli, [*command, "--out", str(folder), "--json"])
    assert done.exit_code == 0, done.output
    return folder


def test_the_first_screen_has_the_reports_figures_and_charts(report: Path) -> None:
    svg = first_screen.picture((report / "report.html").read_text(encoding="utf-8"))
    assert_light_and_dark(svg)
    said = words_of(svg)
    for words in ("sia on 64 GPUs", "Round time", "Average JCT", "Utilisation"):
        assert words in said
    used = set(re.findall(r'(?:href="|url\()#([\w-]+)', svg))
    there = re.findall(r'\bid="([\w-]+)"', svg)
    assert used <= set(there)
    assert len([each for each in there if each in used]) == len(used)  # what is referred to is there once


def test_a_page_that_is_no_report_is_refused() -> None:
    with pytest.raises(ValueError, match="not a page that"):
        first_screen.picture("<html><body><h1>Other</h1></body></html>")


def test_a_day_is_read_back_from_the_tables(report: Path) -> None:
    rounds = day.rounds_in(report)
    assert len(rounds) == 42
    assert sum(each.warmup for each in rounds) == 30
    assert all(each.active_jobs == each.running_jobs + each.queued_jobs for each in rounds)
    assert {sum(each.gpus_capacity.values()) for each in rounds} == {64}
    assert all(set(each.prices) == set(each.gpus_capacity) for each in rounds if each.prices)
    svg = day.picture(report)
    assert_light_and_dark(svg)
    assert svg == day.picture(report)  # the same run, the same picture


def test_a_day_without_programs_is_refused(tmp_path: Path) -> None:
    command = ["simulate", "fifo", "--rounds", "3", "--warmup-rounds", "0", "--out", str(tmp_path), "--json"]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 0, done.output
    with pytest.raises(ValueError, match="no prices"):
        day.picture(tmp_path)


def test_the_working_set_is_a_small_part_and_shrinks_after_the_first_round() -> None:
    rounds = working_set.counted(gpus=560, rounds=3)
    assert all(each.used <= each.working < each.all / 5 for each in rounds)
    assert rounds[1].working < rounds[0].working
    assert_light_and_dark(working_set.picture(rounds))


def test_prices_of_a_network_are_drawn_and_a_free_one_is_refused() -> None:
    assert_light_and_dark(price_map.picture(price_map.run("random-8", 2, 500.0)))
    with pytest.raises(ValueError, match="no link of the last round has a price"):
        price_map.picture(price_map.run("random-8", 1, 1e-3))


def test_the_page_of_results_has_its_picture_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, row = tmp_path / "measured.md", ROWS.splitlines()[0]
    monkeypatch.setattr(tapes, "PAGE", page)
    tapes.write_page(tmp_path)  # nothing is measured yet
    assert not (tmp_path / measured.NAME).exists()
    kept = tapes.kept(tmp_path / f"{tapes.TAPES[0].name}.tape")
    kept.write_text(json.dumps({"lines": ["rows"], "at_a_glance": row, "how": "here", "failed": False}))
    tapes.write_page(tmp_path)
    assert measured.line() in page.read_text()
    assert f"({measured.NAME})" in measured.line()
    assert measured.points_of(page.read_text()) == [("a-1", 1000, 0.5, 2.0)]
    svg = (tmp_path / measured.NAME).read_text()
    assert_light_and_dark(svg)
    rate = measured.memory_of(page.read_text())  # of this machine, measured as the page was written
    assert rate is not None
    assert rate > 1e8
    assert f"memory floor {measured.floor_ms(1000, rate):.3g} ms" in words_of(svg)


def test_the_memory_floor_is_the_time_to_read_every_cost_once() -> None:
    assert measured.memory_of("| memory | read at 16.0 GB/s |\n") == 16e9
    assert measured.floor_ms(2_000_000, 16e9) == pytest.approx(1.0)
    assert measured.memory_of(HEAD + ROWS) is None
    assert "memory floor" not in words_of(measured.picture(HEAD + ROWS))


def test_a_tape_that_no_other_solver_answered_is_drawn_alone() -> None:
    assert measured.points_of(HEAD + ROWS)[1] == ("b-1", 20000, 30.0, None)
    assert_light_and_dark(measured.picture(HEAD + ROWS))
    with pytest.raises(ValueError, match="no row at a glance"):
        measured.picture(HEAD)


SCRIPT = r"""
import sys, time
for at in range(3):
    sys.stdout.write(f"\r\x1b[2K\x1b[32mround {at}\x1b[0m"); sys.stdout.flush(); time.sleep(0.02)
print("\n\x1b[1A\x1b[2K\x1b[1mfigure\x1b[0m   5 < 6")
"""


def test_a_command_is_recorded_on_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "demo.cast"
    recording.record([sys.executable, "-c", SCRIPT], path, tmp_path)
    frames = recording.frames(path)  # how many depends on when the other side is read
    assert [frame.at_s for frame in frames] == sorted(frame.at_s for frame in frames)
    assert [line for line in frames[-1].lines if line] == ["\x1b[1mfigure\x1b[0m   5 < 6"]


def test_a_recording_is_drawn(tmp_path: Path) -> None:
    path = tmp_path / "demo.cast"
    said = [f"\r\x1b[2K\x1b[32mround {at}\x1b[0m" for at in range(3)]
    said.append("\n\x1b[1A\x1b[2K\x1b[1mfigure\x1b[0m   5 < 6\n")
    events = [json.dumps([0.1 * at, "o", text]) for at, text in enumerate(said)]
    path.write_text("\n".join([json.dumps({"version": 2}), *events]) + "\n")
    frames = recording.frames(path)
    assert any("round 1" in frame.lines[0] for frame in frames)
    assert [line for line in frames[-1].lines if line] == ["\x1b[1mfigure\x1b[0m   5 < 6"]
    svg = terminal.picture("make demo", frames)
    assert_light_and_dark(svg)
    ends = ElementTree.fromstring(svg).findall("{*}g[@class='end']")
    assert ["".join(each.itertext()).replace("\u00a0", " ") for each in ends] == ["figure   5 < 6"]
    assert {float(each) for each in re.findall(r"animation:\w+ ([\d.]+)s", svg)} == {terminal.PLAY_S + terminal.REST_S}
    assert terminal.PLAY_S + terminal.REST_S <= 30


def test_a_command_that_fails_leaves_no_recording(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        recording.record([sys.executable, "-c", "raise SystemExit(3)"], tmp_path / "demo.cast", tmp_path)
    assert not (tmp_path / "demo.cast").exists()
    (tmp_path / "other").write_text("{}\n")
    with pytest.raises(ValueError, match="not an asciicast"):
        recording.frames(tmp_path / "other")


def test_few_frames_stand_for_many_and_the_last_one_stays() -> None:
    many = [recording.Frame(0.1 * at, (f"round {at}",)) for at in range(500)]
    few = terminal.thinned(many, 10)
    assert (few[0], few[-1]) == (many[0], many[-1])
    assert len(few) == 11
    with pytest.raises(ValueError, match="printed nothing"):
        terminal.thinned([])


def test_the_notice_of_highs_is_left_out(tmp_path: Path) -> None:
    events = [
        {"version": 2},
        [0.1, "o", "round 1"],
        [0.2, "o", "Running HiGHS 1.1\r\n"],
        [0.3, "o", "\r\x1b[2Kround 2"],
    ]
    (tmp_path / "a.cast").write_text("\n".join(map(json.dumps, events)))
    assert [frame.lines for frame in recording.frames(tmp_path / "a.cast")] == [("round 1",), ("round 2",)]


def test_equal_marks_say_their_style_once() -> None:
    uses = "".join(f'<use xlink:href="#m" x="{at}.123" y="2.06" style="fill: #3366b8"/>\n' for at in range(3))
    path = "<path d='' /><path style='' d=\"M 1.234 5\nL 2 3.96\n\"/>"
    small = drawing.smaller(f'<svg xmlns="s">\n{uses}{path}</svg>')
    assert small.count("#3366b8") == 1
    assert '<use href="#m" x="2.1" y="2.1"/>' in small
    assert 'd="M1.2 5L2 4"' in small


@pytest.mark.parametrize("picture", make_pictures.MADE, ids=lambda picture: picture.name)
def test_every_picture_is_there_and_its_page_shows_it(picture: make_pictures.Picture) -> None:
    if not picture.page.exists():
        pytest.skip(f"{picture.page.name}: a generated page")
    assert f"![{picture.alt}]({os.path.relpath(picture.file, picture.page.parent)})" in picture.page.read_text()
    svg = picture.file.read_text()
    assert_light_and_dark(svg)
    if picture.page.name == "README.md":
        assert len(svg.encode()) < 60_000


def test_the_picture_of_results_is_that_of_the_page() -> None:
    page = ROOT / "docs" / "measured.md"
    if not page.exists():
        pytest.skip("docs/measured.md: `make suite` writes it")
    described = ElementTree.fromstring(page.with_name(measured.NAME).read_text()).findtext("{*}desc")
    text = page.read_text()
    said = measured.said(measured.points_of(text), measured.memory_of(text))
    assert described == said, "make pictures, or --only measured"


def test_the_script_says_which_pictures_there_are() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "make_pictures.py")]
    done = subprocess.run([*command, "--list"], capture_output=True, text=True, check=False)
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == [each.name for each in make_pictures.MADE]
    done = subprocess.run([*command, "--only", "dya"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "unknown picture 'dya'" in done.stderr


def test_the_thesiss_figures_are_drawn_from_the_points_of_their_tables(tmp_path: Path) -> None:
    curve = {"rho": [0.5, 1.0, 2.0], "jct_h": [0.1, 1.0, 9.0]}
    spike = {"bars": [[[0, 5]], []], "from_min": [0, 2], "to_min": [9, 8], "jct_h": 1.5}
    kept = {
        "sia_figure_3_1": {"sia": {"adaptive, one type": [1.0], "rigid, three types": [2.0]}},
        "sia_figure_3_4": {"jobs": {"bert": [[0, 5, "a100", 4], [6, 9, "rtx", 8]]}, "active": [[0, 3], [9, 5]]},
        "sia_figure_3_6": {"sia 10": [1.0, 2.0], "sia 20": [3.0], "gavel 10": [2.0], "gavel 20": [5.0]},
        "sia_figure_3_7": {"shares": [0, 50, 100], "sia": curve, "gavel": curve},
        "sia_figure_3_7_shockwave": {"shares": [0, 50, 100], "shockwave": curve},
        "sia_figure_3_8": {"sia": spike, "gavel": spike},
        "sia_figure_3_9": {"rates": [[10, 20], [20, 40]]},
        "sia_figure_3_10": {"sia 64": [[0.1], [0.2], [0.3], [0.4]], "sia 128": [[], [], [], []]},
        "sia_gpt": {"throughput": {"a100": [[2, 1.0], [4, 2.0]]}, "spans": [[0, 5, "a100", 4]], "active": [[0, 3]]},
    }
    for name, found in kept.items():
        (tmp_path / f"{name}.txt").write_text(f"# command: x\na table\n{json.dumps(found)}\n")
    for svg in (thesis.figures(tmp_path), thesis.timelines(tmp_path)):
        assert_light_and_dark(svg)
    assert thesis.joined([[0, 1], [1, 4], [5, 6]]) == [[0, 4], [5, 6]]
    (tmp_path / "sia_figure_3_6.txt").write_text("# command: x\na table without points\n")
    (tmp_path / "sia_figure_3_10.txt").unlink()
    some = words_of(thesis.figures(tmp_path))  # those that there are
    assert len(some) < len(words_of(thesis.timelines(tmp_path))) or "svg" not in some
    assert thesis.by_number(kept["sia_figure_3_6"])["sia"] == [(10, [1.0, 2.0]), (20, [3.0])]
