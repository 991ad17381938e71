"""docs/reference/command_line.md is what its script writes from the commands' own help."""

from __future__ import annotations

import runpy
from pathlib import Path

import click
import pytest

from copter_frontends.cli import cli

SCRIPT = Path(__file__).parents[3] / "docs" / "reference" / "command_line.py"


@pytest.mark.skipif(not SCRIPT.exists(), reason="looks at the checkout's own files")
def test_the_page_is_the_commands_own_help() -> None:
    page = runpy.run_path(str(SCRIPT))["page"]()
    assert SCRIPT.with_suffix(".md").read_text() == page
    assert "## copter simulate traffic" in page
    assert "Largest body of a request, in MiB. Default: 4." in page


def test_every_option_says_what_it_is_in_a_sentence_of_its_own() -> None:
    """No text is empty, or goes on from the option's name, such as "Of the demands."."""
    short = []
    for name, command in cli.commands.items():
        inner = {**getattr(command, "commands", {}), **getattr(command, "problems", {})}
        for each in (command, *inner.values()):
            options = [option for option in each.params if isinstance(option, click.Option)]
            short += [
                f"{name} {option.opts[0]}"
                for option in options
                if len((option.help or "").split()) < 2 or (option.help or "").split()[0] in ("Of", "For", "At", "That")
            ]
    assert short == []


def test_an_option_of_several_commands_has_the_same_words() -> None:
    said: dict[str, set[str]] = {}
    for command in cli.commands.values():
        inner = {**getattr(command, "commands", {}), **getattr(command, "problems", {})}
        for each in (command, *inner.values()):
            for option in each.params:
                if isinstance(option, click.Option):
                    said.setdefault(option.opts[0], set()).add(option.help or "")
    same = ("--json", "--quiet", "--tape", "--config")
    assert {name: texts for name, texts in said.items() if name in same and len(texts) > 1} == {}


def test_the_list_of_commands_has_a_whole_line_for_each() -> None:
    groups = [cli, *(each for each in cli.commands.values() if isinstance(each, click.Group))]
    cut = [
        f"{group.name} {name}: {command.get_short_help_str(60)}"
        for group in groups
        for name, command in group.commands.items()
        if command.get_short_help_str(60).endswith("...")
    ]
    assert cut == []
