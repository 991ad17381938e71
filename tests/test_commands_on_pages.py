"""The `copter` commands on README and the pages: each is one that the command line takes; the task pages' run."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import click
import pytest

from copter_frontends.cli import cli, main

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "frontends" / "copter_frontends" / "vocabulary" / "samples" / "workload.csv"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("[!_]*/*.md"))]
# words that stand for the reader's own: a command with one of them cannot be read as it stands
PLACEHOLDER = re.compile(r"\.\.\.|\||\b[A-Z]{2,}\b|--what-if$")
RUN = ("simulate sia --cluster sia-het --trace workload.csv --json", "doctor")
RUN_SLOWLY = ("compare --policies sia,hadar,gavel --trace workload.csv --out report",)


def commands_of(page: Path) -> list[str]:
    """Commands in blocks and between backquotes that have arguments and no placeholders."""
    text = page.read_text()
    lines = [
        line for block in re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE) for line in block.split("\n")
    ]
    lines += re.findall(r"^    (copter .*)$", text, re.MULTILINE) + re.findall(
        r"`(copter [^`]+)`", text.replace("\n", " ")
    )
    found = (line.strip().removesuffix("&").partition("  #")[0].strip() for line in lines)
    return [
        line.removeprefix("copter ") for line in found if line.startswith("copter ") and not PLACEHOLDER.search(line)
    ]


COMMANDS = list(dict.fromkeys(each for page in PAGES for each in commands_of(page)))


@pytest.fixture
def readers_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the files that the pages name."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(SAMPLE, "workload.csv")
    for each in COMMANDS:
        for word in shlex.split(each):
            if re.fullmatch(r"[\w-]+\.(saved|tape|json)", word):
                Path(word).touch()


@pytest.mark.usefixtures("readers_files")
@pytest.mark.parametrize("line", COMMANDS)
def test_the_command_line_takes_it(line: str) -> None:
    context, command, words = click.Context(cli), click.Command("none"), shlex.split(line)
    group: click.Command = cli
    while isinstance(group, click.Group) and words and not words[0].startswith("-"):
        name, found, words = group.resolve_command(context, words)
        assert found is not None
        command = group = found
        context = click.Context(found, info_name=name, parent=context)
    if words:
        command.make_context(command.name, list(words), parent=context.parent)  # raises for what it does not take


@pytest.mark.usefixtures("readers_files")
@pytest.mark.parametrize("line", [*RUN, *(pytest.param(each, marks=pytest.mark.slow) for each in RUN_SLOWLY)])
def test_it_runs_as_printed(line: str) -> None:
    assert line in COMMANDS
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(line))
    assert ended.value.code in (0, None)


def test_there_are_many() -> None:
    assert len(COMMANDS) > 30
