"""Each paper's page names every figure and table of it by its number, with what was measured or the reason for none."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tables.table_list import TABLES as MADE

from copter_frontends.policies.registry.names import POLICY_NAMES

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
COMMERCIAL = ("copter", "hops", "chronus", "hare")
"""Papers whose figures have CPLEX or Gurobi."""

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


# What a page says was made ------------------------------------------------------------------------------------------

ROOT = PAPERS.parents[1]
LINK = r"\]\((\.\./results/tables/[^)]*\.txt)\)"
POLICIES = (
    *("Sia", "Pollux", "Gavel", "Shockwave", "Themis", "Tiresias", "YARN", "POP", "DeDe", "Hadar", "Hops", "Hare"),
    *("Chronus", "EDF", "3Sigma", "GENIE", "SRTF", "AlloX", "LP-Top", "LP-All"),
)
FIRST_CELLS = {*POLICY_NAMES, *(each.lower() for each in POLICIES)}
"""What a row of results begins with if it is a policy's."""
PAGES = sorted(PAPERS.glob("*.md"))


def statements(page: str) -> list[tuple[str, list[str]]]:
    """Every paragraph and row of a table that says what was measured, with the tables that it links.

    One without links of its own says it of those that its section has linked before.
    """
    found = []
    for section in re.split(r"^#+ ", page, flags=re.MULTILINE):
        linked: list[str] = []
        for paragraph in section.split("\n\n"):
            for said in paragraph.splitlines() if paragraph.lstrip().startswith("|") else [paragraph]:
                own = re.findall(LINK, said)
                linked += own
                if own or linked:
                    found.append((said, own or list(linked)))
    return found


def not_made(page: str, read: Callable[[str], str]) -> list[str]:
    """The policies that a page names beside a table that was made without them, and options that it was made without.

    A policy's possessive ("Sia's public profiles") is no statement about a run of it.
    """
    wrong = []
    for said, linked in statements(page):
        tables = " ".join(read(each) for each in linked).lower()
        named = (each for each in POLICIES if re.search(rf"(?<![\w-]){each}(?![\w-]|'s public)", said))
        wrong += [f"{each}: {said[:60]}" for each in named if each.lower() not in tables]
        row = re.match(r"\| ([a-z0-9][\w-]*)", said)
        if row and row[1] in FIRST_CELLS and row[1] not in tables:
            wrong.append(f"{row[1]}: {said[:60]}")
    for command, link in re.findall(rf"`([^`\[]*\.py[^`\[]*)`[^`\[\n|]{{0,40}}\n?\(?\[as printed{LINK}", page):
        made = read(link).splitlines()[0]
        script, *options = command.split()
        given = {*options, *(part for each in options for part in each.split(","))}
        known = {*made.split(), *(part for each in made.split() for part in each.split(","))}
        known |= {each.rpartition("/")[2] for each in made.split()}
        wrong += [f"{each}: {command}" for each in (script, *given) if each not in known and "," not in each]
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_says_nothing_of_a_policy_or_option_that_its_table_was_made_without(page: Path) -> None:
    assert not_made(page.read_text(), lambda link: (PAPERS / link).read_text()) == []


def test_what_was_not_made_is_found() -> None:
    tables = {
        "../results/tables/fair.txt": "# command: python benchmarks/tables/f.py --policies sia,gavel\nsia 1 gavel 2"
    }
    link = "[as printed](../results/tables/fair.txt)"
    read = tables.__getitem__
    assert not_made(f"# A\n\n`f.py --policies sia,gavel` ({link})\n\nSia 1, Gavel 2.\n", read) == []
    assert not_made(f"# A\n\n`f.py --policies sia,gavel` ({link})\n\nSia 1, Pollux 2.\n", read) == [
        "Pollux: Sia 1, Pollux 2.\n"
    ]
    assert not_made(f"# A\n\n`f.py --policies sia,pollux` ({link})", read) == ["pollux: f.py --policies sia,pollux"]
    assert not_made(f"# A\n\n`f.py --workloads 5` ({link})", read) != []
    assert not_made(f"# A\n\n| {link} | Shockwave 3 |", read) != []
    assert not_made(f"# A\n\n{link}\n\n| policy | JCT |\n|---|---|\n| sia | 1 |\n| gavel | 2 |", read) == []
    assert not_made(f"# A\n\n{link}\n\n| policy | JCT |\n|---|---|\n| sia | 1 |\n| tiresias | 2 |", read) != []


VALUE = r"(\d[\d,]*(?:\.\d+)?)"
NUMBER_TO_NUMBER = rf"{VALUE}%? to {VALUE}"


def rounds_to(told: Sequence[str], known: Sequence[float]) -> bool:
    """Whether figures as printed are others, rounded."""
    near = (0.5001 * 10.0 ** -len(each.partition(".")[2]) for each in told)
    return all(abs(float(a.replace(",", "")) - b) <= e for a, b, e in zip(told, known, near, strict=True))


def not_printed(page: str, read: Callable[[str], str]) -> list[str]:
    """The ranges "(least to most)" of a paragraph or row that no table which it links, or its section, has printed.

    A range is printed if those of the table, or a hundred times them, round to it; so is a mean before it, "mean (least
    to most)" or "mean, least to most (the paper's)", if it stands there in the table too.
    """
    wrong = []
    for said, linked in statements(page):
        text = " ".join(map(read, linked))
        printed = re.findall(NUMBER_TO_NUMBER, text)
        printed += re.findall(rf"{VALUE}(?:, [\d.]+)?%?\s*[(│]\s*{NUMBER_TO_NUMBER}", text)
        known = [[float(end.replace(",", "")) * times for end in ends] for ends in printed for times in (1, 100)]
        stated = re.sub(r"\]\([^)]*\)", "]", said)
        told = re.findall(rf"\({NUMBER_TO_NUMBER}%?\)", stated)
        told += re.findall(rf"{VALUE}%?(?: h| s| min)? \({NUMBER_TO_NUMBER}%?\)", stated)
        told += re.findall(rf"{VALUE}, {NUMBER_TO_NUMBER} \(", stated)
        wrong += [
            f"{' to '.join(each)}: {said[:60]}"
            for each in told
            if not any(len(each) == len(other) and rounds_to(each, other) for other in known)
        ]
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_range_that_a_page_states_beside_a_table_is_printed_in_it(page: Path) -> None:
    assert not_printed(page.read_text(), lambda link: (PAPERS / link).read_text()) == []


def test_a_range_that_was_not_made_is_found() -> None:
    read = {"../results/tables/a.txt": "sia 1.93 (1.788 to 2.081), 0.09 (0.064 to 0.12), 1,234"}.__getitem__
    link = "[as printed](../results/tables/a.txt)"
    assert not_printed(f"# A\n\n{link}: 1.93 (1.79 to 2.08), 9% (6.4% to 12%)", read) == []
    assert not_printed(f"# A\n\n| {link} | 1.93 (1.70 to 2.08) |", read) != []
    assert not_printed(f"# A\n\n| {link} | 1.95 (1.79 to 2.08) |", read) != []
    assert not_printed(f"# A\n\n| {link} | 1.9 h (1.79 to 2.08) |", read) == []
    assert not_printed(f"# A\n\n| {link} | 1.93, 1.79 to 2.08 (1.5) |", read) == []
    assert not_printed(f"# A\n\n| {link} | 1.95, 1.79 to 2.08 (1.5) |", read) != []
    assert not_printed(f"# A\n\n| {link} | 1.93 (1.79 to 1,235) |", read) != []


WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
SOME_SEEDS = rf"\b({'|'.join(WORDS)}) (?:seeds|workloads|draws)\b|\bseeds (\d+(?: to \d+|(?:, \d+)+))(?![\d.%])"


def draws_of(table: str) -> tuple[int, str]:
    """With how many seeds or workloads a table was made, and which, by what stands above it."""
    head = dict(line[2:].split(": ", 1) for line in table.splitlines() if line.startswith("# ") and ": " in line)
    given = re.search(r"--workloads (\d+)", head["command"])
    if given:
        return int(given[1]), head["seed"]
    first, _, last = head["seed"].partition(" to ")
    return (int(last) - int(first) + 1 if last else len(head["seed"].split(","))), head["seed"]


def other_seeds(page: str, read: Callable[[str], str]) -> list[str]:
    """Numbers of seeds that a paragraph or row states and with which no table that it links was made."""
    wrong = []
    for said, linked in statements(page):
        made = [draws_of(read(each)) for each in linked]
        known = {*(WORDS[count - 1] for count, _ in made if count <= len(WORDS)), *(which for _, which in made)}
        for number, which in re.findall(SOME_SEEDS, re.sub(r"\]\([^)]*\)", "]", said).lower().replace("`", " `")):
            if (number or which) not in known and f"--seeds {which}" not in said:
                wrong.append(f"{number or which} seeds: {said[:60]}")
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_states_the_seeds_with_which_its_tables_were_made(page: Path) -> None:
    assert other_seeds(page.read_text(), lambda link: (PAPERS / link).read_text()) == []


def test_seeds_that_were_not_drawn_are_found() -> None:
    tables = {
        "../results/tables/a.txt": "# command: python a.py --seeds 5\n# seed: 0 to 4\na 1",
        "../results/tables/b.txt": "# command: python b.py --workloads 3\n# seed: of the workloads\nb 1",
    }
    read = tables.__getitem__
    a, b = (f"[{each}](../results/tables/{each}.txt)" for each in "ab")
    assert other_seeds(f"# A\n\n{a}, five seeds, and {b}, three workloads; two further seeds: 3", read) == []
    assert other_seeds(f"# A\n\n| {a}, seeds 0 to 4 | 1 |", read) == []
    assert other_seeds(f"# A\n\n{a}, Three seeds", read) == [f"three seeds: {a}, Three seeds"[: 13 + 60]]
    assert other_seeds(f"# A\n\n| {a}, seeds 0, 1 | 1 |", read) != []
    assert other_seeds(f"# A\n\n| {b}, five workloads | 1 |", read) != []


def test_every_table_is_made_and_linked_from_a_page() -> None:
    text = " ".join(page.read_text() for page in (ROOT / "docs").rglob("*.md"))
    kept = {path.stem for path in (ROOT / "docs" / "results" / "tables").glob("*.txt")}
    assert {table.name for table in MADE} - kept == set()
    assert {table.name for table in MADE if f"tables/{table.name}.txt)" not in text} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_names_only_scripts_that_there_are_and_policies_that_are_known(page: Path) -> None:
    text = page.read_text()
    files = {
        path.name for folder in ("benchmarks", "copter", "frontends", "tests") for path in (ROOT / folder).rglob("*.py")
    }
    scripts = {Path(each).name for each in re.findall(r"`([\w/]+\.py)", text)}
    assert scripts - files == set()
    sources = [*(ROOT / "benchmarks" / "tables").glob("*.py"), *(ROOT / "frontends" / "copter_papers").rglob("*.py")]
    quoted = {each for path in sources for each in re.findall(r"[\"',]([a-z0-9.-]+)(?=[\"',])", path.read_text())}
    policies = set(re.findall(r"`((?:sia|pop|lp|copter|hadar|hops|hare|chronus|gavel|yarn)-[a-z0-9-]+)`", text))
    assert policies - quoted - set(POLICY_NAMES) == set()


def test_pages_of_papers_that_compare_with_a_commercial_solver_say_that_none_was_run() -> None:
    for name in COMMERCIAL:
        assert "no commercial solver was run" in " ".join((PAPERS / f"{name}.md").read_text().lower().split()), name
