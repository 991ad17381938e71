"""The generated tables compare like with like: warm with warm, on one tape, edits and linear program on both sides."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import readme_table
import sizes
import tapes
from pictures.measured import points_of

from copter_frontends.replay import runs
from copter_frontends.replay.peers import keeps_state
from copter_frontends.replay.runs import LEAST_ROUNDS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "measured.md"
GOOD = """## At a glance

| tape | columns | copter, p50 (ms) | rival | its p50 (ms) | times | sum | rounds of both | start | p99 | counted |
|---|---|---|---|---|---|---|---|---|---|---|
| sia-10-1.6 | 9 | 2 | highs_columns_warm | 8 | 4 | 5 | 23 | warm | 3 | 23 |

## sia-10-1.6

Load 1.59 from hour 9 to 10; jobs without GPUs: 7 in the median round.

| solver | cold | counted | p50 | p95 | p99 | sum | edits p50 | times | times, sum | of both | judged |
|---|---|---|---|---|---|---|---|---|---|---|---|
| copter | 9 | 23 | 2 | 3 | 3 | 46 | 1 | 1 | 1 | 23 | 24 |
| highs_columns_warm | 90 | 23 | 8 | 9 | 9 | 230 | 1 | 4 | 5 | 23 | 24 |
| highs_ipm_cold | 90 | 23 | 30 | 30 | 30 | 690 | 1 | 15 | 15 | 23 | 24 |
| pdlp_warm | 900 | 1 | 900 | 900 | 900 | 900 | 1 | - | - | 1 | 2 |
"""


def rows(text: str) -> list[list[str]]:
    """The cells of a table's rows, without its head."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "]
    return cells[1:]


def number(cell: str) -> float:
    """The number of a cell, thousands apart."""
    return float(cell.replace(",", ""))


def is_of_the_rounds(cells: list[str], own: list[str]) -> bool:
    """Whether a row's ratios are its median and its sum over copter's, of the rounds that both counted."""
    pairs = ((cells[8], cells[3], own[3]), (cells[9], cells[6], own[6]))
    return all(abs(number(told) * number(under) / number(over) - 1.0) <= 0.02 for told, over, under in pairs)


def faults(page: str) -> list[str]:
    """What a referee would not sign on a measured page, one line each."""
    found = []
    parts = {part.partition("\n")[0]: part for part in page.split("\n## ")[1:]}
    if page.startswith("## "):
        parts[page.partition("\n")[0][3:]] = page.split("\n## ")[0]
    for tape, _, own, rival, theirs, times, total, both, start, _, counted in rows(parts["At a glance"]):
        table = {cells[0]: cells for cells in rows(parts[tape])}
        if re.match(r"(sia|hadar|hops|chronus|hare)-\d+-", tape):
            load = re.search(r"^Load ([\d.]+) from", parts[tape], flags=re.MULTILINE)
            if load is None or abs(float(load[1]) / float(tape.rsplit("-", 1)[1]) - 1.0) > 0.15:
                found.append(f"{tape}: its jobs are not the load of its name")
        if table["copter"][3] != own or table["copter"][2] != counted:
            found.append(f"{tape}: copter's figure is not that of its counted rounds")
        for cells in table.values():
            if cells[8] != "-" and cells[2] == cells[10] == counted and not is_of_the_rounds(cells, table["copter"]):
                found.append(f"{tape}: {cells[0]} has a ratio that is not of the counted rounds")
            if cells[8] != "-" and cells[0] != "copter" and int(cells[10]) < LEAST_ROUNDS:
                found.append(f"{tape}: {cells[0]} has a ratio of {cells[10]} rounds")
            if int(cells[10]) > min(int(cells[2]), int(counted)):
                found.append(f"{tape}: {cells[0]} has its first solve among the compared rounds")
        if not times:
            continue
        if int(both) < LEAST_ROUNDS:
            found.append(f"{tape}: a ratio of {both} rounds")
        if (start == "warm") != keeps_state(rival):
            found.append(f"{tape}: {rival} is not {start}")
        if table[rival][8:11] != [times, total, both]:
            found.append(f"{tape}: the ratio is not that of {rival}'s row")
        quicker = [
            way
            for way, cells in table.items()
            if way not in ("copter", rival) and cells[9] != "-" and number(cells[9]) < number(total)
        ]
        if quicker:
            found.append(f"{tape}: {quicker[0]} is quicker than {rival}")
        if table[rival][2] == both and table[rival][3] != theirs:
            found.append(f"{tape}: {rival}'s figure is not that of its counted rounds")
    return found


@pytest.mark.skipif(not PAGE.exists(), reason="docs/measured.md: `make suite` writes it")
def test_every_ratio_of_the_page_compares_like_with_like() -> None:
    assert faults(PAGE.read_text()) == []


def test_a_table_that_compares_like_with_like_has_no_fault() -> None:
    assert faults(GOOD) == []


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("| 5 | 23 | warm |", "| 5 | 1 | warm |", "a ratio of 1 rounds"),
        ("| highs_columns_warm | 8 |", "| highs_ipm_cold | 8 |", "highs_ipm_cold is not warm"),
        ("| 900 | 1 | - | - | 1 |", "| 900 | 1 | 450 | 450 | 1 |", "pdlp_warm has a ratio of 1 rounds"),
        ("| 30 | 690 | 1 | 15 | 15 |", "| 3 | 69 | 1 | 1.5 | 1.5 |", "highs_ipm_cold is quicker"),
        ("Load 1.59 from", "Load 0.30 from", "not the load of its name"),
        ("| 9 | 2 | highs_columns_warm", "| 9 | 1 | highs_columns_warm", "copter's figure is not that of its counted"),
        ("| copter | 9 | 23 |", "| copter | 9 | 22 |", "copter's figure is not"),
        ("| pdlp_warm | 900 | 1 | 900 | 900 | 900 | 900 | 1 | - | - | 1 |",
         "| pdlp_warm | 900 | 1 | 900 | 900 | 900 | 900 | 1 | - | - | 2 |", "has its first solve among"),
        ("| 9 | 230 | 1 | 4 | 5 |", "| 9 | 230 | 1 | 45 | 5 |", "a ratio that is not of the counted"),
        ("| 30 | 690 | 1 | 15 | 15 |", "| 30 | 690 | 1 | 15 | 75 |", "a ratio that is not of the counted"),
        ("| 8 | 4 | 5 | 23 |", "| 8 | 400 | 5 | 23 |", "not that of highs_columns_warm's row"),
    ],
)  # fmt: skip
def test_a_table_with_a_fault_is_told(before: str, after: str, told: str) -> None:
    assert before in GOOD
    assert any(told in each for each in faults(GOOD.replace(before, after, 1)))


def test_readme_has_a_ratio_only_of_enough_rounds() -> None:
    few = GOOD.replace("sia-10-1.6", "sia-10000-1.6")
    few = few.replace("| highs_columns_warm | 8 | 4 | 5 | 23 | warm |", "| pdlp_warm: 1 of 23 rounds | | | | 1 | |")
    readme = f"{readme_table.BEGIN}\n{readme_table.END}"
    (row,) = [line for line in readme_table.inserted(readme, few).splitlines() if line.startswith("| Sia")]
    assert row == "| Sia, 10,000 GPUs, load 1.6 | 2 ms | 3 ms | 23 | pdlp_warm: 1 of 23 rounds | none |"
    (row,) = [
        line
        for line in readme_table.inserted(readme, GOOD.replace("sia-10-", "sia-10000-")).splitlines()
        if line.startswith("| Sia")
    ]
    assert row == "| Sia, 10,000 GPUs, load 1.6 | 2 ms | 3 ms | 23 | 8 ms, HiGHS column generation | 4 (warm) |"


def test_readme_has_a_warm_rivals_ratio_before_that_of_one_from_scratch() -> None:
    cells = "| {} | 9 | 23 | {} | 1 | 1 | 1 | 1 | {} | 1 | {} | 24 | 0 | 0 | |\n"
    page = "## At a glance\n\n| sia-10000-1.6 | 9 | 2 | highs_ipm_cold | 6 | 3 | 3 | 23 | scratch | 3 | 23 |\n\n"
    page += "## sia-10000-1.6\n\n"
    page += cells.format("highs_ipm_cold", 6, 3, 23) + cells.format("highs_dual_warm", 10, 5, 23)
    page += cells.format("highs_primal_warm", 8, 4, 20) + cells.format("glop_warm", 2, 1, 3)
    (row,) = [line for line in readme_table.inserted("<!-- results --><!-- end of results -->", page).splitlines()
              if line.startswith("| Sia")]  # fmt: skip
    assert row.endswith("| 8 ms, HiGHS primal | 4 (warm), 3 (scratch) |")


def test_the_page_of_sizes_is_made_of_the_pages_that_measure() -> None:
    engine = "| row | columns | round | edits and LP |\n|---|\n| sia 10,000 GPUs | 9 | 1 / 2 | 0.8 |\n"
    tape = GOOD.replace("sia-10-", "sia-10000-")
    whole = (
        "| scheduler | GPUs | load | columns | round | edits | LP | shim | placement |\n|---|\n"
        "| sia | 10,000 | 1.59 | 7 | 20 / 35 | 10 / 20 | 5 / 9 | 2 / 3 | 2 / 3 |\n\n## Later\n\n"
    )
    whole += "| sia | 10,000 | 1.6 | 9 | 99 / 99 | 1 / 1 | 1 / 1 | 1 / 1 | 1 / 1 |\n"
    made = sizes.page(engine, tape, whole)
    (row,) = [line for line in made.splitlines() if line.startswith("| Sia, 10,000 GPUs, load 1.6")]
    assert row.startswith("| Sia, 10,000 GPUs, load 1.6 | 0.8 | 9 | 2 | ")
    assert row.endswith(" | 2.5 | 20 | 7 | 10 | 50%, 25%, 10%, 10% |")
    assert "Hadar" not in made.partition("| thing |")[2]


def test_the_page_of_sizes_is_current() -> None:
    texts = [(sizes.PAGE.parent / each).read_text() for each in ("engine.md", "../measured.md", "rounds.md")]
    assert sizes.PAGE.read_text() == sizes.page(*texts)


def test_a_row_that_is_replayed_alone_leaves_the_other_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "measured.md"
    page.write_text(PAGE.read_text())
    monkeypatch.setattr(tapes, "PAGE", page)
    monkeypatch.setattr(tapes, "stream_bytes_per_s", lambda: 1e9)
    monkeypatch.setattr(tapes.measured_picture, "write", lambda page: None)
    rows, sections = tapes.on_page()
    assert len(rows) >= 3
    tapes.write_page(tmp_path / "tapes")
    assert tapes.on_page() == (rows, sections)
    name = next(iter(rows))
    (tmp_path / "tapes").mkdir()
    section = {"at_a_glance": f"| {name} | new |", "lines": ["new lines"], "how": "just now"}
    tapes.kept(tmp_path / "tapes" / f"{name}.tape").write_text(json.dumps(section))
    tapes.write_page(tmp_path / "tapes")
    now, parts = tapes.on_page()
    assert now == rows | {name: f"| {name} | new |"}
    assert {each for each in sections if parts[each] != sections[each]} == {name}
    assert parts[name][-1] == "new lines"


def test_figures_of_a_thousand_and_more_are_written_as_people_write_them() -> None:
    kept = "| a | 2.17e+03 | 4e+03 | 1.2e+04 | 2.5e-15 | 0.0e+00 |"
    assert tapes.plain(kept) == "| a | 2,170 | 4,000 | 12,000 | 2.5e-15 | 0.0e+00 |"
    assert tapes.plain(tapes.plain(kept)) == tapes.plain(kept)
    assert tapes.plain(PAGE.read_text()) == PAGE.read_text()
    page = GOOD.replace("| highs_columns_warm | 8 | 4 | 5 |", "| highs_columns_warm | 8,000 | 4,000 | 5 |")
    page = page.replace("sia-10-1.6", "sia-10000-1.6")
    (row,) = [line for line in readme_table.inserted("<!-- results --><!-- end of results -->", page).splitlines()
              if line.startswith("| Sia")]  # fmt: skip
    assert "| 8,000 ms, HiGHS column generation | 4,000 (warm) |" in row
    assert points_of(page) == [("sia-10000-1.6", 9, 2.0, 8000.0)]
    assert sizes.figures(
        sizes.THINGS[0], "| row |\n", page.replace("| 9 | 2 | highs", "| 9 | 2,100 | highs"), "| scheduler |\n"
    )[1] == (sizes.Figure(2100.0, "9"))


def test_the_generator_prints_no_exponent_in_milliseconds() -> None:
    def rows(total_s: float) -> list[dict[str, object]]:
        stages = dict.fromkeys(("edit_s", "solve_s", "shim_s", "lp_s", "total_s", "processor_s"), total_s)
        own = {"columns": 4, "gap": 0.0, "difference": 0.0, "verified": True, "identical": False, "method": "x"}
        return [{**stages, **own, "round": k, "objective": 1.0, "start": "warm"} for k in range(24)]

    done = [runs.Run("copter", rows(1.25), first=rows(1.25)), runs.Run("highs_dual_warm", rows(2500.0))]
    row = tapes.at_a_glance(tapes.TAPES[0], done)
    told = "4 | 1,250 | highs_dual_warm | 2,500,000 | 2,000 | 2,000 | 24 | warm | 1,250 | 24"
    assert row == f"| {tapes.TAPES[0].name} | {told} |"
    lines = tapes.table([runs.summary(run) for run in done], done, {"bytes": 1, "sha256": "0" * 64})
    assert lines[-2].startswith("| copter | 1,250 | 24 | 1,250 | 1,250 | 1,250 | 30,000 | 1,250 | 1 | 1 | 24 |")
    assert lines[-1].startswith("| highs_dual_warm | - | 24 | 2,500,000 |")
    assert lines == tapes.plain("\n".join(lines)).split("\n")
