"""Each paper's page names every figure and table of it by its number, with what was measured or the reason for none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAPERS = Path(__file__).parents[1] / "docs" / "papers"
ROMAN = {"I": 1, "II": 2, "III": 3, "IV": 4}


def chapter(number: int, last: int) -> list[str]:
    """The numbers of a chapter's figures or tables."""
    return [f"{number}.{each}" for each in range(1, last + 1)]


def whole(last: int) -> list[str]:
    return [str(each) for each in range(1, last + 1)]


FIGURES = {
    "copter": [*chapter(3, 13), *chapter(4, 6), *chapter(5, 6)],
    "hadar": whole(10),
    "hops": whole(15),
    "chronus": whole(10),
    "hare": whole(19),
}
TABLES = {
    "copter": [*chapter(3, 4), "4.1"],
    "hadar": whole(4),
    "hops": whole(4),
    "chronus": whole(1),
    "hare": whole(3),
}
"""Of the papers: the thesis's chapters 3 to 5, and four articles."""

NUMBER = r"\[?(?:\d+\.)?\d+\]?(?:\([a-z]\)|[a-z])?(?:\([^)]*\))?"
LISTED = rf"{NUMBER}(?:(?:,? (?:and|to) |, |; ){NUMBER})*"


def expanded(text: str) -> set[str]:
    """The numbers in "2 to 8, 11", "[4](link), [10](link)" and "6(b), 9(c) to (f)"."""
    plain = re.sub(r"\]\([^)]*\)", "]", text).replace("[", "").replace("]", "")
    found = set(re.findall(r"(?:\d+\.)?\d+", plain))
    for first, last in re.findall(r"\b(\d+) to (\d+)\b", plain):
        found |= {str(each) for each in range(int(first), int(last) + 1)}
    return found


def named(page: str, what: str) -> set[str]:
    """The numbers of figures or tables that a page names in prose, and those that begin the rows of its tables."""
    text = re.sub(r"\b(Tables?|Table) (IV|III|II|I)\b(?:, (IV|III|II|I)\b)?", _arabic, page)
    found: set[str] = set()
    for listed in re.findall(rf"{what}s? ({LISTED})", text):
        found |= expanded(listed)
    if what == "Figure":
        for row in re.findall(rf"^\| ({LISTED})", text, re.MULTILINE):
            found |= expanded(row)
    return found


def _arabic(match: re.Match[str]) -> str:
    numbers = [str(ROMAN[each]) for each in match.groups()[1:] if each]
    return f"{match.group(1)} {', '.join(numbers)}"


@pytest.mark.parametrize("paper", FIGURES)
@pytest.mark.parametrize(("what", "numbers"), [("Figure", FIGURES), ("Table", TABLES)])
def test_a_papers_page_names_every_figure_and_table(paper: str, what: str, numbers: dict[str, list[str]]) -> None:
    page = (PAPERS / f"{paper}.md").read_text()
    assert [number for number in numbers[paper] if number not in named(page, what)] == []


def test_every_table_that_is_linked_is_kept() -> None:
    for page in PAPERS.glob("*.md"):
        for link in re.findall(r"\]\((\.\./results/tables/[^)]*)\)", page.read_text()):
            assert (PAPERS / link).is_file(), f"{page.name}: {link}"
