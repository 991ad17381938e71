"""Every ratio on a generated page compares like with like; measured.md's are read in test_measured_page.py.

Of two solvers both begin with nothing or both have had the rounds before, and both figures stand in the ratio's row, so
that it can be recomputed. A column that looks like a ratio and that no check here reads is a fault.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from harness import WAYS

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
LOOKS = re.compile(
    r"times|ratio|factor|faster|quicker|\w / (copter|HiGHS|fresh|cold|warm)|better by|over ", re.IGNORECASE
)
TIMELESS = {"plans.md": "better by (geom. mean)", "plans_unseen.md": "better by (geom. mean)"}  # ratios of objectives
TIMELESS |= {"simulation.md": "times", "slurm.md": "large, over FIFO"}  # how often; waits
ALIKE = {"kept / fresh", "fresh / HiGHS fresh", "kept / HiGHS warm"}
LOADS = (1.0, 1.6)
Row = dict[str, str]


def tables(page: str) -> list[list[Row]]:
    """The tables of a page: rows, cells by the names of columns."""
    found: list[list[Row]] = []
    names: list[str] = []
    lines = page.splitlines()
    for line, after in itertools.zip_longest(lines, lines[1:], fillvalue=""):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if re.match(r"\|[-:| ]+\|$", after) and line.startswith("|"):
            names = cells
            found.append([])
        elif line.startswith("| ") and names:
            found[-1].append(dict(zip(names, cells, strict=True)))
        elif not line.startswith("|"):
            names = []
    return found


def interval(text: str) -> tuple[float, float]:
    """The least and the most that a printed number may stand for."""
    number = Decimal(text.replace(",", ""))
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    if "," in text and not any(digits[3:]):  # three digits are printed: 1,670 is 1.67e+03
        exponent += len(digits) - 3
    half = Decimal(5).scaleb(exponent - 1)
    return float(number - half), float(number + half)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [("1,670", 1665, 1675), ("1.67e+03", 1665, 1675), ("1464", 1463.5, 1464.5), ("12,345", 12344.5, 12345.5),
     ("0.50", 0.495, 0.505)],
)  # fmt: skip
def test_a_printed_number_stands_for_what_rounds_to_it(text: str, least: float, most: float) -> None:
    assert interval(text) == pytest.approx((least, most))


def is_quotient(told: str, over: list[str], under: list[str]) -> bool:
    """Whether a printed ratio can be the least of some figures over the sum of others."""
    above, below = [interval(each) for each in over], [interval(each) for each in under]
    least, most = (min(each[side] for each in above) for side in (0, 1))
    low, high = (sum(each[side] for each in below) for side in (0, 1))
    own_low, own_high = interval(told)
    return own_low * 0.999 <= most / max(low, 1e-9) and least / high <= own_high * 1.001


def of_many_rows(row: Row) -> str | None:
    """Warm rounds of both, or the peer's first solve where it is quicker; copter's warm rounds over its first solve."""
    if row["peer / copter"] == "-":
        return None
    if not is_quotient(row["peer / copter"], [row["HiGHS warm, ms"], row["HiGHS cold, ms"]], [row["warm, ms"]]):
        return "peer / copter is not of HiGHS's quicker way and warm rounds"
    return (
        None if is_quotient(row["warm / cold"], [row["warm, ms"]], [row["cold, ms"]]) else "warm / cold is not copter's"
    )


def of_concave(row: Row) -> str | None:
    """The peer's better way in the rounds that copter's edits and solves are of."""
    if row["ratio"] == "-":
        return None
    if "DeDe" in row:
        return None if is_quotient(row["ratio"], [row["DeDe"]], [row["copter"]]) else "the ratio is not of its row"
    same = is_quotient(row["ratio"], [row["new"], row["updated"]], [row["edits"], row["solve"]])
    return None if same else "the ratio is not of Clarabel's better way and warm rounds with their edits"


def of_fair_policies(row: Row) -> str | None:
    """No ratio where copter keeps its program and the published form does not."""
    if row["policy"].startswith("Gavel"):
        return None if row["ratio"] == "-" else "warm rounds over solves from nothing"
    same = is_quotient(row["ratio"], [row["published"]], [row["edits"], row["solve"]])
    return None if same else "the ratio is not of the rounds' figures"


def of_doors(row: Row) -> str | None:
    """Both from nothing, or both with what they kept."""
    for name in row:
        if LOOKS.search(name) and row[name]:
            own, other = name.split(" / ")
            if name not in ALIKE:
                return f"{name} compares unlike ways"
            if not is_quotient(row[name], [row[f"{own}, ms"]], [row[f"{other}, ms"]]):
                return f"{name} is not of its row"
    return None


def of_cold(row: Row) -> str | None:
    """First solves of both."""
    ways = [row["interior point (s)"], row["dual simplex (s)"]]
    best = min((each for each in ways if each), key=lambda each: float(each.removeprefix("> ")))
    if row["times"].startswith("> ") != best.startswith("> "):
        return "a run that was cut is not told"
    told, best = (each.removeprefix("> ") for each in (row["times"], best))
    return None if is_quotient(told, [best], [row["copter (s)"]]) else "times is not of the first solves"


def of_engine(row: Row) -> str | None:
    """A way that ended rounds after the first, named by whether it keeps its basis."""
    if row["times"] in ("", "-"):
        return None
    known = {way for ways in WAYS.values() for way in ways}
    if row["best peer"] not in known:
        return "a ratio to no way of a solver"
    return None if float(row["times"]) > 0.0 else "no ratio"


def of_sizes(row: Row) -> str | None:
    """Of the same thing, each factor of the two figures beside it."""
    for name, over, under in (("factor to study", "tape", "study"), ("factor to tape", "round", "tape")):
        if (row[name] == "-") != ("-" in (row[over], row[under])):
            return f"{name} is not of two figures"
        if row[name] != "-" and not is_quotient(row[name], [row[over]], [row[under]]):
            return f"{name} is not of its row"
    return None


CHECKS: dict[str, Callable[[Row], str | None]] = {
    "many_rows.md": of_many_rows,
    "concave.md": of_concave,
    "fair_policies.md": of_fair_policies,
    "doors.md": of_doors,
    "cold.md": of_cold,
    "engine.md": of_engine,
    "sizes.md": of_sizes,
}


def faults(name: str, page: str) -> list[str]:
    """What a referee would not sign on a page."""
    found = []
    for table in tables(page):
        looks = {column for row in table for column in row if LOOKS.search(column)} - {TIMELESS.get(name, "")}
        if looks and name not in CHECKS:
            found.append(f"{name}: no check reads {', '.join(sorted(looks))}")
        elif looks:
            found += [f"{name}: {told}" for row in table if (told := CHECKS[name](row)) is not None]
    return found


@pytest.mark.parametrize("name", sorted(each.name for each in RESULTS.glob("*.md")))
def test_every_ratio_of_a_page_compares_like_with_like(name: str) -> None:
    assert faults(name, (RESULTS / name).read_text()) == []


HEADS = {
    "many_rows.md": "resources x requests | cold, ms | HiGHS cold, ms | warm, ms | HiGHS warm, ms | peer / copter | "
    "warm / cold",
    "concave.md": "jobs | edits | solve | new | updated | ratio | cold: copter | Clarabel",
    "fair_policies.md": "policy | edits | solve | published | ratio | cold: copter | cold",
    "doors.md": "series | fresh, ms | kept, ms | HiGHS fresh, ms | HiGHS warm, ms | fresh / HiGHS fresh | "
    "kept / HiGHS warm",
    "cold.md": "instance | copter (s) | interior point (s) | dual simplex (s) | times",
    "engine.md": "row | edits and LP | best peer | times",
    "sizes.md": "thing | study | tape | factor to study | round | factor to tape",
}


def page_of(name: str, *rows: str) -> str:
    """A page with one table."""
    head = HEADS.get(name, "a | times")
    return "\n".join((f"| {head} |", f"|{'---|' * (head.count('|') + 1)}", *(f"| {row} |" for row in rows), ""))


@pytest.mark.parametrize(
    ("name", "good", "bad", "told"),
    [
        (
            "many_rows.md",
            "a | 50 | 40 | 2.0 | 6.0 | 3.0 | 0.04",
            "a | 50 | 40 | 2.0 | 6.0 | 20.0 | 0.04",
            "quicker way",
        ),
        (
            "many_rows.md",
            "a | 50 | 4.0 | 2.0 | 6.0 | 2.0 | 0.04",
            "a | 50 | 4.0 | 2.0 | 6.0 | 3.0 | 0.04",
            "quicker way",
        ),
        ("many_rows.md", "a | 5 | 4 | - | - | - | -", "a | 50 | 40 | 2.0 | 6.0 | 3.00 | 0.050", "not copter's"),
        ("concave.md", "9 | 1 | 4 | 90 | 60 | 12 | 40 | 500", "9 | 1 | 4 | 90 | 60 | 100 | 40 | 500", "better way"),
        (
            "concave.md",
            "9 | 1 | 4 | - | - | - | 40 | -",
            "9 | 1.0 | 4.0 | 90.0 | 60.0 | 15 | 40 | 500",
            "with their edits",
        ),
        ("fair_policies.md", "Gavel | 0 | 4 | 90 | - | 80 | 90", "Gavel | 0 | 4 | 90 | 22 | 80 | 90", "from nothing"),
        (
            "fair_policies.md",
            "flows | 1.0 | 4.0 | 90 | 18 | 8 | 9",
            "flows | 1.0 | 4.0 | 90 | 22 | 8 | 9",
            "not of the rounds'",
        ),
        (
            "doors.md",
            "a | 9.0 | 3.0 | 18.0 | 6.0 | 0.5 | 0.5",
            "a | 9.0 | 3.0 | 18.0 | 6.0 | 0.5 | 0.17",
            "not of its row",
        ),
        ("cold.md", "a | 0.5 | 4 | > 5 | 8", "a | 0.5 | > 4 | > 5 | 8", "was cut"),
        ("cold.md", "a | 0.5 | > 4 | > 5 | > 8", "a | 0.5 | 4 | > 5 | 80", "first solves"),
        ("engine.md", "a | 2 | none within 30 s | -", "a | 2 | none | 24.7", "no way"),
        ("engine.md", "a | 2 | highs_dual_warm | 3", "a | 2 | none within 30 s | > 15", "no way"),
        ("sizes.md", "a | 0.5 | 2.0 | 4.0 | - | -", "a | 0.5 | 2.0 | 4.0 | 9 | -", "not of two figures"),
        ("sizes.md", "a | - | 2.0 | - | 9.0 | 4.5", "a | - | 2.0 | - | 9.0 | 9.5", "not of its row"),
        ("rounds.md", "", "a | 3", "no check reads times"),
    ],
)
def test_a_table_with_an_unlike_ratio_is_told(name: str, good: str, bad: str, told: str) -> None:
    assert not good or faults(name, page_of(name, good)) == []
    assert any(told in each for each in faults(name, page_of(name, bad)))


def test_a_ratio_of_a_kept_and_a_fresh_solver_is_told() -> None:
    page = page_of("doors.md", "a | 9.0 | 3.0 | 18.0 | 6.0 | 0.17 | 0.50").replace("fresh / HiGHS", "kept / HiGHS")
    assert any("unlike ways" in each for each in faults("doors.md", page))


def unloaded(page: str) -> list[str]:
    """Rows of whole rounds that have another load, that do not tell of the queue, or whose LPs are not accounted for.

    Where no job waits the row says so in words; every counted round solved a program, was proven to need none, or had
    none due.
    """
    found = []
    (rows,) = tables(page)
    for row in rows:
        told = {part.partition(" ")[2]: int(part.split(" ")[0].replace(",", "")) for part in row["LPs"].split(", ")}
        if min(abs(float(row["load"]) / each - 1.0) for each in LOADS) > 0.1:
            found.append(f"{row['scheduler']}: load {row['load']}")
        if row["waiting"] != "no job in any round" and int(row["waiting"].split(" / ")[1].replace(",", "")) <= 0:
            found.append(f"{row['scheduler']}: a queue of {row['waiting']}")
        if not told.keys() <= {"solved", "proven without", "not due"} or sum(told.values()) != int(row["rounds"]):
            found.append(f"{row['scheduler']}: LPs {row['LPs']} of {row['rounds']} rounds")
    return found


def test_whole_rounds_are_loaded() -> None:
    assert unloaded((RESULTS / "rounds.md").read_text()) == []


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("hadar | 1.59 | 240 | 260 / 981 | 240 solved", None),
        ("chronus | 1.02 | 1440 | no job in any round | 1,000 solved, 400 proven without, 40 not due", None),
        ("sia | 1.3 | 30 | no job in any round | 30 solved", "load 1.3"),
        ("sia | 1.0 | 30 | 0 / 0 | 30 solved", "a queue of 0 / 0"),
        ("hare | 1.0 | 30 | 1 / 2 | 29 solved", "LPs 29 solved of 30 rounds"),
        ("hare | 1.0 | 30 | 1 / 2 | 30 kept", "LPs 30 kept"),
    ],
)
def test_a_row_that_is_not_loaded_is_told(row: str, told: str | None) -> None:
    found = unloaded(f"| scheduler | load | rounds | waiting | LPs |\n|---|---|---|---|---|\n| {row} |\n")
    assert found == [] if told is None else told in "; ".join(found)


PACE = re.compile(
    r"times (?:faster|quicker|slower|as (?:fast|quick|long|slow))|\d+x\b|(?:faster|quicker) than", re.IGNORECASE
)
RIVALS = re.compile(r"HiGHS|GLOP|SoPlex|PDLP|Clarabel|Gurobi|CPLEX|COPT|CVXPY|rival|peer", re.IGNORECASE)


def paces(text: str) -> list[str]:
    """Sentences that tell how many times faster than a rival something is."""
    sentences = re.split(r"(?<=[.:;])\s|\n\n|\n- ", text)
    return [each for each in sentences if PACE.search(each) and RIVALS.search(each)]


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "docs/README.md", "docs/index.md"])
def test_ratios_to_rivals_stand_on_generated_pages_only(name: str) -> None:
    assert paces((ROOT / name).read_text()) == []


def test_a_ratio_to_a_rival_is_found_in_prose() -> None:
    assert paces("Warm rounds: two to four\ntimes faster than HiGHS's simplex.") != []
    assert paces("Edits are two times faster than before. HiGHS is unchanged.") == []


COLD_RATIO = re.compile(r"^\s*(lp-star|pop|milp) over .*p99 solve", re.MULTILINE)


@pytest.mark.parametrize("name", sorted(each.name for each in (RESULTS / "tables").glob("table_4_1*.txt")))
def test_no_printed_table_has_a_warm_solve_over_a_cold_one(name: str) -> None:
    assert COLD_RATIO.search((RESULTS / "tables" / name).read_text()) is None


def test_a_printed_ratio_of_a_cold_opponent_is_found() -> None:
    assert COLD_RATIO.search(" lp-star over lp-star: JCT 1.000, makespan 1.0000, p99 solve 8.20 of copter's")
    assert COLD_RATIO.search(" pop-copter over lp-star: JCT 1.195, makespan 1.7541, p99 solve 0.44 of copter's") is None


def stacked(text: str) -> dict[str, str]:
    """What Figure 4.6's ways have over HiGHS, which begins each round with nothing."""
    lines = [re.split(r"[┃│]", line)[1:-1] for line in text.split("parts, ms")[0].splitlines() if line[:1] in "┃│"]
    at = next(place for place, name in enumerate(lines[0]) if name.strip() == "over HiGHS")
    return {cells[0].strip(): cells[at].strip() for cells in lines[1:]}


def test_figure_4_6_has_no_warm_way_over_a_solver_that_begins_with_nothing() -> None:
    told = stacked((RESULTS / "tables" / "copter_figure_4_6.txt").read_text())
    assert {way for way, ratio in told.items() if ratio} == {"solver", "edits"}
